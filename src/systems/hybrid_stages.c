#include "systems/hybrid_stages.h"
#include "systems/trainings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/pages/read_pages.h"
#include "models/hybrid.h"
#include "store/folder.h"

enum { ALL = 5 };
#define DENOISER "denoiser"
#define POLICY   "policy"
#define N2N      "n2n"
#define TASK     "task"
#define FINETUNE "finetune"

/* ---- which there are ---- */

/* Is the config one of several trainings, or of a named one? */
static bool is_staged(const pl_config *c)
{
    return c->task_training.stage[0] || c->n2n_pretrain.enabled || c->finetune.enabled;
}

/* Each training is judged by held-out pages. */
static pl_status check_judged(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_stage_row row;
    if (c->reading.held_out > 0 || !pl_system_find_stage(c, 0, &row)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: the training %s is judged by pages that were held out, and reading.held_out is 0; raise it",
                   pl_config_where(c, "reading.held_out", where, sizeof where), row.name);
}

static bool is_named(const pl_config *c, const char *name) { return strcmp(c->task_training.stage, name) == 0; }

/* A layer that a later training unfreezes comes from the earlier one's files, in the form in which that stored it. */
static pl_status check_thawing(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t thawed = c->vision_encoder.unfreeze_pretrained_layers;
    const char *key = pl_hybrid_narrows(c);
    const char *thaws = c->finetune.enabled && c->finetune.unfreeze_pretrained_layers > thawed
                            ? "finetune.unfreeze_pretrained_layers"
                        : c->n2n_pretrain.enabled && thawed ? "vision_encoder.unfreeze_pretrained_layers"
                                                            : NULL;
    if (!thaws || !key || is_named(c, DENOISER) || is_named(c, POLICY)) return PL_OK; /* these have no tower */
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: %s stores what is frozen in 16 bits, and %s trains layers in a later training that were stored so "
        "before; leave one of the two out",
        pl_config_blame(c, key, thaws, where), key, thaws);
}

/* The training whose weights the named one begins with; NULL: it begins with none. */
static const char *find_earlier(const pl_config *c)
{
    return is_named(c, FINETUNE) ? TASK : is_named(c, TASK) && c->n2n_pretrain.enabled ? N2N : NULL;
}

/* A tower passes from one training to the next in the form of its files, and each training searches alone: one might
 * store 16 bits and the next need 32, which would be found out only when the first is done. */
static pl_status check_form(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *earlier = find_earlier(c);
    if (c->vision_encoder.pretrained_precision != PL_CONFIG_FROZEN_AUTO || !pl_hybrid_narrows(c)) return PL_OK;
    if (earlier)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: fit.allow lets the training %s choose whether it stores what is frozen in 16 bits, and it "
                       "begins with what the training %s, or that of train.init_from, stored; say how that was with "
                       "vision_encoder.pretrained_precision (f32, bf16 or fp16)",
                       pl_config_where(c, "fit.allow", where, sizeof where), c->task_training.stage, earlier);
    if (c->task_training.stage[0] || !is_staged(c)) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: fit.allow lets each of several trainings choose whether it stores what is frozen in 16 bits, and "
        "each begins with what the one before it stored; say it for all with "
        "vision_encoder.pretrained_precision (f32, bf16 or fp16)",
        pl_config_where(c, "fit.allow", where, sizeof where));
}

pl_status pl_hybrid_check(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *only = c->task_training.stage;
    const char *alone = pl_hybrid_aim_key(c);
    if (alone && is_staged(c))
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s makes the config that of one training, and %s asks for others; leave one of the two out",
                       pl_config_where(c, alone, where, sizeof where), alone,
                       only[0]                   ? "task_training.stage"
                       : c->n2n_pretrain.enabled ? "n2n_pretrain.enabled"
                                                 : "finetune.enabled");
    PL_TRY(check_thawing(c, err));
    PL_TRY(check_form(c, err));
    return check_judged(c, err);
}

/* ---- one of them ---- */

/* Unless the command line sets it for the training that it names. */
#define SET(row, c, key, ...)                                                                                          \
    do {                                                                                                               \
        if (!pl_system_is_said(c, key)) pl_stage_set(row, key, __VA_ARGS__);                                           \
    } while (0)

/* What a section says about its own training; the key `only` makes the config that training's, which does not read. */
typedef struct own_training {
    const char *only;
    int64_t steps, batch_size;
    double learning_rate;
} own_training;

static void become_own(const pl_config *c, const own_training *t, pl_stage_row *row)
{
    pl_stage_set(row, t->only, "true");
    SET(row, c, "train.steps", "%" PRId64, t->steps);
    SET(row, c, "train.batch_size", "%" PRId64, t->batch_size);
    SET(row, c, "train.gradient_accumulation_steps", "1");
    SET(row, c, "train.learning_rate", "%.17g", t->learning_rate);
    SET(row, c, "vision_encoder.progressive_fusion", "false");
    SET(row, c, "reasoning.halt_max_steps", "1");
}

static void become_n2n(const pl_config *c, pl_stage_row *row)
{
    const pl_config_n2n_pretrain *n = &c->n2n_pretrain;
    row->alone = !n->enabled;
    row->what = "the training of the adapter";
    become_own(c, &(own_training){"n2n_pretrain.only", n->steps, n->batch_size, n->learning_rate}, row);
    SET(row, c, "train.warmup_steps", "auto");
    SET(row, c, "task_training.freeze_n2n_adapter", "false");
    SET(row, c, "task_training.freeze_pretrained", "auto");
    SET(row, c, "vision_encoder.unfreeze_pretrained_layers", "0");
}

/* Keys of a frozen tower do not apply to a training without one. */
static void have_no_tower(const pl_config *c, pl_stage_row *row)
{
    SET(row, c, "vision_encoder.features_cache", "0");
    SET(row, c, "vision_encoder.pretrained_weights", "none");
}

/* As the source trains it: Adam, with the rate halved after five evaluations without improvement. */
static void become_denoiser(const pl_config *c, pl_stage_row *row)
{
    const pl_config_denoiser *d = &c->denoiser;
    row->alone = true;
    row->what = "the training of the denoiser";
    if (!pl_system_is_said(c, "train.schedule")) {
        pl_stage_set(row, "train.schedule", "plateau");
        SET(row, c, "train.plateau_patience", "5");
        SET(row, c, "train.plateau_factor", "0.5");
    }
    become_own(c, &(own_training){"denoiser.only", d->steps, d->batch_size, d->learning_rate}, row);
    have_no_tower(c, row);
    SET(row, c, "train.optimizer", "adamw");
    SET(row, c, "train.weight_decay", "0");
    SET(row, c, "train.beta2", "0.999");
    SET(row, c, "train.warmup_steps", "0");
}

/* It tries the denoiser of the same run unless another is named; that stays in f32, as in its files. Its own pages are
 * as noisy as the denoiser's were. */
static void become_policy(const pl_config *c, pl_stage_row *row)
{
    const pl_config_page_policy *p = &c->page_policy;
    row->alone = true;
    row->what = "the training of the policy";
    snprintf(row->begins_with, sizeof row->begins_with, DENOISER);
    row->begin_key = "dataset.denoiser_path";
    become_own(c, &(own_training){"page_policy.only", p->steps, p->batch_size, p->learning_rate}, row);
    have_no_tower(c, row);
    if (pl_hybrid_narrows(c)) SET(row, c, "vision_encoder.pretrained_precision", "f32");
    SET(row, c, "train.warmup_steps", "auto");
}

/* The tower comes with the weights of the previous training, whatever file that had it from. */
static void begin_after(const char *earlier, pl_stage_row *row)
{
    snprintf(row->begins_with, sizeof row->begins_with, "%s", earlier);
    row->begin_key = "train.init_from";
    pl_stage_set(row, "vision_encoder.pretrained_weights", "none");
}

static void become_task(const pl_config *c, pl_stage_row *row)
{
    row->alone = !c->n2n_pretrain.enabled && !c->finetune.enabled;
    row->what = c->n2n_pretrain.enabled ? "the training after n2n" : "the training of the task";
    if (c->n2n_pretrain.enabled) begin_after(N2N, row);
}

static void become_finetune(const pl_config *c, pl_stage_row *row)
{
    row->alone = !c->finetune.enabled;
    row->what = "the training after task";
    begin_after(TASK, row);
    SET(row, c, "vision_encoder.unfreeze_pretrained_layers", "%" PRId64, c->finetune.unfreeze_pretrained_layers);
    SET(row, c, "task_training.freeze_pretrained", "auto");
    SET(row, c, "train.learning_rate", "%.17g", c->finetune.learning_rate);
}

/* Those that a folder can hold; the first two run only when named. */
static const struct {
    const char *name;
    void (*become)(const pl_config *, pl_stage_row *);
} all[ALL] = {{DENOISER, become_denoiser},
              {POLICY, become_policy},
              {N2N, become_n2n},
              {TASK, become_task},
              {FINETUNE, become_finetune}};

bool pl_hybrid_stage(const pl_config *c, uint32_t k, pl_stage_row *row)
{
    if (k >= ALL) return false;
    *row = (pl_stage_row){0};
    snprintf(row->name, sizeof row->name, "%s", all[k].name);
    all[k].become(c, row);
    pl_stage_set(row, "n2n_pretrain.enabled", "false");
    pl_stage_set(row, "finetune.enabled", "false");
    pl_stage_set(row, "task_training.stage", "%s", "");
    return true;
}

/* ---- their results ---- */

enum { PAGES, WORDS, WORDS_READ, PAGES_READ, Q_HALT_RIGHT, NOISE_LEFT, DENOISED_LEFT, COLUMNS };
static const pl_trainings_column columns[COLUMNS] = {
    [PAGES] = {"pages", "pages", .is_count = true},
    [WORDS] = {"words", "words", .is_count = true},
    [WORDS_READ] = {"words read", "token_accuracy", .card = "of the words are read, after the last of them"},
    [PAGES_READ] = {"pages read", "exact_accuracy"},
    [Q_HALT_RIGHT] = {"q_halt right", "q_halt_accuracy"},
    [NOISE_LEFT] = {"noise left", "noise_left", .card = "of the noise is left"},
    [DENOISED_LEFT] = {"denoiser alone", "denoised_left"}};

/* For counts and sums of squares, which may be 0. */
static double share(double part, double of) { return of > 0 ? part / of : 0; }

/* A training that cleans does not read, and one that reads removes no noise. */
static pl_status read_row(const char *out, const char *name, pl_trainings_row *row, bool *is_done, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_read_pages sum;
    PL_TRY(pl_system_find_predictions(out, name, path, is_done, err));
    if (!*is_done) return PL_OK;
    const bool chooses = strcmp(name, POLICY) == 0,
               cleans = chooses || strcmp(name, DENOISER) == 0 || strcmp(name, N2N) == 0;
    PL_TRY(pl_read_pages_sum(path, chooses ? PL_LINES_CHOSEN : cleans ? PL_LINES_CLEANED : PL_LINES_READ, &sum, err));
    *row = (pl_trainings_row){
        .name = name,
        .value = {[PAGES] = (double)sum.pages,
                  [WORDS] = (double)sum.words,
                  [WORDS_READ] = cleans ? NAN : share((double)sum.right, (double)sum.words),
                  [PAGES_READ] = cleans ? NAN : share((double)sum.all_right, (double)sum.pages),
                  [Q_HALT_RIGHT] = cleans ? NAN : share((double)sum.halted_rightly, (double)sum.pages),
                  [NOISE_LEFT] = cleans ? share(sum.noise_left, sum.noise) : NAN,
                  [DENOISED_LEFT] = chooses ? share(sum.denoised_left, sum.noise) : NAN}};
    return PL_OK;
}

static bool is_asked_for(const pl_config *c, const char *name)
{
    pl_stage_row row;
    for (uint32_t k = 0; pl_system_find_stage(c, k, &row); k++)
        if (strcmp(row.name, name) == 0) return true;
    return false;
}

/* Every training made in this folder, by whatever command. */
pl_status pl_hybrid_report_stages(const pl_config *c, const char *out, pl_doc *d, pl_error *err)
{
    pl_trainings_row row[ALL];
    pl_trainings_report p = {.title = "Pages that are read",
                             .schema = "plimsoll.words_read/1",
                             .about = "Trainings of a model that reads pages, one after another.",
                             .judged = "Each judged by the pages that were held out.",
                             .column = columns,
                             .columns = COLUMNS,
                             .row = row};
    for (size_t i = 0; i < ALL; i++) {
        bool is_done;
        PL_TRY(read_row(out, all[i].name, &row[p.rows], &is_done, err));
        p.rows += is_done;
        p.stages += is_done || is_asked_for(c, all[i].name);
    }
    PL_TRY(pl_system_require_done(out, p.rows, err));
    pl_trainings_add(&p, d);
    return PL_OK;
}
