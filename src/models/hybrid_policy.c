/* A policy over pages, docs/hybrid.md: of each text it says in which size it is drawn, how far the page is moved across
 * and down, and how much the denoiser counts in σ(strength)·denoised + (1 − σ(strength))·noisy. The denoiser stays as
 * it is. It learns from what it has tried (ReST-EM, Singh et al. 2023): of each page `samples` actions are drawn as it
 * says them, each is done, and the half that comes nearest to the clean page, which is drawn as it is, counts: the mean
 * of the cross-entropies of its choices, and of the squared differences of the strengths. A step is one round of it:
 * its batch is tried, and then learnt from once.
 *
 *   policy.layers.0, .3                relu after each, dropout after the first
 *   policy.size, .across, .down        logits of the choices (base/policy.h)
 *   policy.strength
 *
 * All actions that are tried on a page have the same noise, so that only they differ. Evaluation does what the policy
 * says is best, and tells how far that is from the clean page, next to the noisy page and what the denoiser alone makes
 * of it. */
#include <math.h>
#include <stdio.h>

#include "base/colours.h"
#include "base/policy.h"
#include "base/rollout.h"
#include "base/row_loss.h"
#include "models/hybrid.h"

enum { WIDTH = 256, CHOICES = 3 };

/* The choices, as columns of base/policy.h. */
static const struct {
    const char *name;
    int64_t count, as_is;
} choices[CHOICES] = {{"size", PL_POLICY_SIZES, PL_POLICY_SIZE_AS_IS},
                      {"across", PL_POLICY_SHIFTS, PL_POLICY_SHIFT_AS_IS},
                      {"down", PL_POLICY_SHIFTS, PL_POLICY_SHIFT_AS_IS}};

/* What is said of each page: logits [B,count], and of the strength [B,1]. */
typedef struct policy {
    pl_id choice[CHOICES], strength;
} policy;

/* What is done with each page, once or several times: ids [B,copies,1], and the logit of the strength, likewise. */
typedef struct actions {
    int64_t copies;
    pl_id choice[CHOICES], strength;
} actions;

/* ---- the network ---- */

/* Before anything is learnt, what changes nothing is as likely as all the rest together. Where all choices began alike,
 * hardly one action in a thousand would leave a page where it is, and the policy would settle for small letters, which
 * are wrong in fewer pixels. */
static pl_id lean(const pl_hybrid *k, pl_id logits, int64_t count, int64_t as_is)
{
    const int64_t columns[] = {as_is, 1, count - as_is - 1};
    pl_concat_args prior = pl_concat_none;
    for (int i = 0; i < 3; i++)
        prior.part[i] =
            pl_hybrid_fill(k, PL_DTYPE_F32, i == 1 ? log((double)(count - 1)) : 0, pl_shape_of(2, PL_B(1), columns[i]));
    return pl_net_add(k->n, logits, pl_build_concat(&k->n->b, &prior));
}

static policy judge(const pl_hybrid *k, pl_id feature)
{
    policy p;
    char name[64];
    pl_id x = pl_net_activate(k->n, PL_ACT_RELU, pl_hybrid_linear(k, feature, WIDTH, "policy.layers.0"));
    const bool learns = k->n->training && k->m->config->page_policy.only;
    if (learns) x = pl_net_dropout(k->n, k->m->config->page_policy.dropout, x, PL_NONE);
    x = pl_net_activate(k->n, PL_ACT_RELU, pl_hybrid_linear(k, x, WIDTH, "policy.layers.3"));
    for (int i = 0; i < CHOICES; i++) {
        snprintf(name, sizeof name, "policy.%s", choices[i].name);
        pl_id logits = pl_hybrid_linear(k, x, choices[i].count, name);
        p.choice[i] = lean(k, logits, choices[i].count, choices[i].as_is);
    }
    p.strength = pl_hybrid_linear(k, x, 1, "policy.strength");
    return p;
}

/* ---- actions ---- */

static pl_id best(const pl_hybrid *k, pl_id x, int64_t count)
{
    pl_top_k_args top = pl_top_k_none;
    top.x = x, top.count = count;
    return pl_build_top_k(&k->n->b, &top);
}

static pl_id perturb(const pl_hybrid *k, pl_id x, int64_t count, pl_perturbation kind, double scale, const char *which)
{
    pl_net *n = k->n;
    pl_perturb_args a = pl_perturb_none;
    a.x = x, a.step = n->input[PL_INPUT_STEP], a.first_sample = n->input[PL_INPUT_FIRST_SAMPLE];
    a.count = count, a.kind = kind, a.scale = scale;
    a.seed = n->dropout_seed, a.stream = pl_net_stream(n, which);
    return pl_build_perturb(&n->b, &a);
}

static actions draw(const pl_hybrid *k, const policy *p, int64_t copies)
{
    actions a = {.copies = copies};
    for (int i = 0; i < CHOICES; i++)
        a.choice[i] = best(k, perturb(k, p->choice[i], copies, PL_PERTURB_GUMBEL, 1, choices[i].name), 1);
    a.strength = perturb(k, p->strength, copies, PL_PERTURB_NORMAL, k->m->config->page_policy.exploration, "strength");
    return a;
}

static actions take_best(const pl_hybrid *k, const policy *p)
{
    const int64_t one = 1;
    actions a = {.copies = one, .strength = pl_net_view(k->n, p->strength, pl_shape_of(3, PL_B(1), one, one))};
    for (int i = 0; i < CHOICES; i++)
        a.choice[i] = best(k, pl_net_view(k->n, p->choice[i], pl_shape_of(3, PL_B(1), one, choices[i].count)), 1);
    return a;
}

/* ---- what comes of them ---- */

static pl_id repeat(const pl_hybrid *k, pl_id x, int64_t copies)
{
    pl_repeat_args a = pl_repeat_none;
    a.x = x, a.count = copies;
    return pl_build_repeat(&k->n->b, &a);
}

static pl_id gather(const pl_hybrid *k, pl_id rows, pl_id index)
{
    pl_gather_rows_args a = pl_gather_rows_none;
    a.tokens = rows, a.index = index;
    return pl_build_gather_rows(&k->n->b, &a);
}

static pl_id sizes_of(const pl_hybrid *k, pl_id pages)
{
    return pl_net_view(k->n, pages, pl_shape_of(3, PL_B(1), (int64_t)PL_POLICY_SIZES, k->side * k->side));
}

/* u8 [B·copies,H,W] */
static pl_id place(const pl_hybrid *k, pl_id pages, const actions *a)
{
    const pl_shape one = pl_shape_of(1, PL_B(a->copies));
    pl_shift_args shift = pl_shift_none;
    pl_id which = pl_net_view(k->n, a->choice[0], pl_shape_of(2, PL_B(1), a->copies));
    shift.page =
        pl_net_view(k->n, gather(k, sizes_of(k, pages), which), pl_shape_of(3, PL_B(a->copies), k->side, k->side));
    shift.across = pl_net_view(k->n, a->choice[1], one);
    shift.down = pl_net_view(k->n, a->choice[2], one);
    shift.reach = PL_POLICY_SHIFT_AS_IS;
    return pl_build_shift(&k->n->b, &shift);
}

/* What makes the copies of a page noisy is the same for all. */
static pl_hybrid noise_of_copies(const pl_hybrid *k, int64_t copies)
{
    pl_hybrid all = *k;
    all.noise =
        pl_net_view(k->n, repeat(k, k->noise, copies), pl_shape_of(2, PL_B(copies), (int64_t)PL_ROLLOUT_COLUMNS));
    all.numbers =
        pl_net_view(k->n, repeat(k, k->numbers, copies), pl_shape_of(2, PL_B(copies), (int64_t)PL_ROLLOUT_IDS));
    return all;
}

/* f32, whatever the network computes in. The denoiser stays as it is. */
static pl_id denoise(const pl_hybrid *k, pl_id noisy)
{
    const bool before = pl_net_freeze(k->n, true);
    pl_id cleaned = pl_hybrid_cast(k, pl_hybrid_denoise(k, pl_hybrid_cast(k, noisy)));
    pl_net_thaw(k->n, before);
    return cleaned;
}

/* The sum of squares [B,copies] of how far what comes of each action is from the clean page [B,H,W,3]. */
static pl_id try_all(const pl_hybrid *k, pl_id pages, const actions *a, pl_id clean, pl_id *made)
{
    const pl_shape image = pl_hybrid_image(k, a->copies);
    const pl_hybrid all = noise_of_copies(k, a->copies);
    pl_id noisy = pl_hybrid_noisy(&all, pl_hybrid_colour(k, place(k, pages, a), a->copies), "page");
    pl_id cleaned = denoise(k, noisy);
    pl_id strength = pl_net_view(k->n, a->strength, pl_shape_of(2, PL_B(a->copies), (int64_t)1));
    pl_id flat = pl_net_view(k->n, clean, pl_shape_of(2, PL_B(1), k->side * k->side * PL_COLOURS));
    *made = pl_hybrid_blend(k, cleaned, noisy, strength, NULL);
    pl_id apart = pl_hybrid_apart(k, *made, pl_net_view(k->n, repeat(k, flat, a->copies), image), image);
    return pl_net_view(k->n, apart, pl_shape_of(2, PL_B(1), a->copies));
}

/* ---- training ---- */

static void learn_choice(const pl_hybrid *k, pl_id logits, pl_id ids, pl_id kept, int64_t count, pl_id *loss)
{
    const pl_id said = repeat(k, logits, count), target = gather(k, ids, kept);
    const pl_loss_term term = pl_hybrid_term(k, pl_hybrid_scale(k, 1, count), *loss);
    *loss = pl_net_cross_entropy(k->n, said, target, &term);
}

/* Which of several is the best has no answer where one is no number, as a denoiser may make it in 16 bits: times 0 it
 * makes the loss none either, which ends the training. Of numbers it is 0, to the last bit, and no gradient passes. */
static void check_tried(const pl_hybrid *k, pl_id apart, pl_id none, pl_id *loss)
{
    const pl_loss_term term = pl_hybrid_term(k, pl_hybrid_number(k, 0), *loss);
    *loss = pl_net_squared_error(k->n, apart, none, &term);
}

static void learn(const pl_hybrid *k, const policy *p, const actions *a, pl_id apart, pl_id *loss)
{
    const int64_t count = a->copies / 2;
    pl_id none = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(2, PL_B(1), a->copies));
    check_tried(k, apart, none, loss);
    pl_id kept = best(k, pl_hybrid_minus(k, none, apart), count);
    for (int i = 0; i < CHOICES; i++) learn_choice(k, p->choice[i], a->choice[i], kept, count, loss);
    pl_id said = pl_net_activate(k->n, PL_ACT_SIGMOID, repeat(k, p->strength, count)),
          tried = pl_net_activate(k->n, PL_ACT_SIGMOID, gather(k, a->strength, kept));
    const pl_loss_term term = pl_hybrid_term(k, pl_hybrid_scale(k, 1, count), *loss);
    *loss = pl_net_squared_error(k->n, said, tried, &term);
}

/* ---- evaluation ---- */

static void tell(const pl_hybrid *k, const policy *p, pl_id noisy, pl_id denoised, pl_id apart, pl_id clean)
{
    const pl_shape page = pl_hybrid_image(k, 1);
    pl_id noise = pl_hybrid_apart(k, noisy, clean, page), left = pl_hybrid_apart(k, denoised, clean, page);
    pl_id gates = pl_hybrid_spread(k, PL_NONE);
    pl_concat_args row = pl_concat_none;
    pl_store_args store = pl_store_none;
    pl_id *part = row.part;
    *part++ = noise, *part++ = apart, *part++ = gates, *part++ = left;
    for (int i = 0; i < CHOICES; i++) *part++ = p->choice[i];
    *part++ = p->strength;
    store.port[0] = pl_build_concat(&k->n->b, &row);
    pl_build_store(&k->n->b, &store);
}

static void evaluate(const pl_hybrid *k, const policy *p, pl_id pages, pl_id clean, pl_id *loss)
{
    const actions a = take_best(k, p);
    const double numbers = (double)(k->side * k->side * PL_COLOURS);
    pl_id made, apart = try_all(k, pages, &a, clean, &made);
    pl_id noisy = pl_hybrid_noisy(k, clean, "page"), denoised = denoise(k, noisy);
    const pl_loss_term term = pl_hybrid_term(k, pl_hybrid_number(k, 1 / numbers), *loss);
    *loss = pl_net_squared_error(k->n, made, clean, &term);
    pl_builder_enter(&k->n->b, "told");
    tell(k, p, noisy, denoised, apart, clean);
    pl_builder_leave(&k->n->b);
}

/* ---- both ---- */

/* As it is drawn where nothing is decided. */
static pl_id clean_page(const pl_hybrid *k, pl_id pages)
{
    pl_id as_is = pl_hybrid_fill(k, PL_DTYPE_I32, PL_POLICY_SIZE_AS_IS, pl_shape_of(2, PL_B(1), (int64_t)1));
    pl_id page = gather(k, sizes_of(k, pages), as_is);
    return pl_hybrid_colour(k, pl_net_view(k->n, page, pl_shape_of(3, PL_B(1), k->side, k->side)), 1);
}

pl_id pl_hybrid_draw_best(const pl_hybrid *k, pl_id pages, pl_id *strength)
{
    pl_builder_enter(&k->n->b, "policy");
    const policy p = judge(k, pl_net_slice(k->n, k->feature, 0, PL_POLICY_FEATURES));
    const actions a = take_best(k, &p);
    pl_id placed = place(k, pages, &a);
    pl_builder_leave(&k->n->b);
    *strength = p.strength;
    return placed;
}

void pl_hybrid_learn_policy(pl_hybrid *k, pl_id pages, pl_id *loss)
{
    pl_builder_enter(&k->n->b, "policy");
    /* After its numbers a feature says whether there is a page at all. */
    k->counted = pl_net_slice(k->n, k->feature, PL_POLICY_FEATURES, 1);
    const policy p = judge(k, pl_net_slice(k->n, k->feature, 0, PL_POLICY_FEATURES));
    pl_id clean = clean_page(k, pages);
    if (k->n->training) {
        const actions a = draw(k, &p, k->m->config->page_policy.samples);
        pl_id made, apart = try_all(k, pages, &a, clean, &made);
        learn(k, &p, &a, apart, loss);
    } else {
        evaluate(k, &p, pages, clean, loss);
    }
    pl_builder_leave(&k->n->b);
}
