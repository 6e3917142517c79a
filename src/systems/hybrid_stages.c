#include "systems/hybrid_stages.h"
#include "systems/trainings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "data/pages/read_pages.h"
#include "models/hybrid.h"
#include "store/folder.h"

enum { STAGES = 3, ALL = 5 };
#define DENOISER "denoiser"
#define POLICY   "policy"
#define N2N      "n2n"
#define TASK     "task"
#define FINETUNE "finetune"

/* Those that a folder can hold: the first two are made by name alone. */
static const char *const all_names[ALL] = {DENOISER, POLICY, N2N, TASK, FINETUNE};

/* ---- which there are ---- */

/* Those of the config, in their order. */
static uint32_t list_stages(const pl_config *c, const char *name[STAGES])
{
    uint32_t stages = 0;
    if (c->n2n_pretrain.enabled) name[stages++] = N2N;
    name[stages++] = TASK;
    if (c->finetune.enabled) name[stages++] = FINETUNE;
    return stages;
}

/* Where it is one training that nobody named, it is no stage. */
bool pl_hybrid_name_stage(const pl_config *c, uint32_t k, char name[PL_STAGE_NAME_BYTES])
{
    const char *all[STAGES], *only = c->task_training.stage;
    const uint32_t stages = list_stages(c, all);
    if (k >= (only[0] ? 1 : stages) || (!only[0] && stages == 1)) return false;
    snprintf(name, PL_STAGE_NAME_BYTES, "%s", only[0] ? only : all[k]);
    return true;
}

/* Each is judged by pages that were held out. */
static pl_status check_judged(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], name[PL_STAGE_NAME_BYTES];
    if (c->reading.held_out > 0 || !pl_hybrid_name_stage(c, 0, name)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: the training %s is judged by pages that were held out, and reading.held_out is 0; raise it",
                   pl_config_where(c, "reading.held_out", where, sizeof where), name);
}

static bool is_named(const pl_config *c, const char *name) { return strcmp(c->task_training.stage, name) == 0; }

/* A layer that a later training thaws comes out of the earlier one's files in the form in which that one kept it. */
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

/* A tower goes from one training to the next in the form in which its files have it, and each training searches alone:
 * one might store 16 bits and the next want 32, which would be found out when the first is through. */
static pl_status check_form(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], name[PL_STAGE_NAME_BYTES];
    const char *earlier = find_earlier(c);
    if (c->vision_encoder.pretrained_precision != PL_CONFIG_FROZEN_AUTO || !pl_hybrid_narrows(c)) return PL_OK;
    if (earlier)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: fit.allow lets the training %s choose whether it stores what is frozen in 16 bits, and it "
                       "begins with what the training %s, or that of train.init_from, stored; say how that was with "
                       "vision_encoder.pretrained_precision (f32, bf16 or fp16)",
                       pl_config_where(c, "fit.allow", where, sizeof where), c->task_training.stage, earlier);
    if (c->task_training.stage[0] || !pl_hybrid_name_stage(c, 0, name)) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: fit.allow lets each of several trainings choose whether it stores what is frozen in 16 bits, and "
        "each begins with what the one before it stored; say it for all with "
        "vision_encoder.pretrained_precision (f32, bf16 or fp16)",
        pl_config_where(c, "fit.allow", where, sizeof where));
}

pl_status pl_hybrid_check_stage(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *only = c->task_training.stage;
    bool is_stage = false;
    for (size_t i = 0; i < ALL; i++) is_stage |= strcmp(only, all_names[i]) == 0;
    const char *alone = pl_hybrid_aim_key(c);
    if (alone && (only[0] || c->n2n_pretrain.enabled || c->finetune.enabled))
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s makes the config that of one training, and %s asks for others; leave one of the two out",
                       pl_config_where(c, alone, where, sizeof where), alone,
                       only[0]                   ? "task_training.stage"
                       : c->n2n_pretrain.enabled ? "n2n_pretrain.enabled"
                                                 : "finetune.enabled");
    PL_TRY(check_thawing(c, err));
    PL_TRY(check_form(c, err));
    if (!only[0] || is_stage) return check_judged(c, err);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: there is no stage %.60s; they are " DENOISER ", " POLICY ", " N2N ", " TASK " and " FINETUNE,
                   pl_config_where(c, "task_training.stage", where, sizeof where), only);
}

/* ---- one of them ---- */

pl_status pl_hybrid_check_begun(const pl_config *c, pl_error *err)
{
    const char *only = c->task_training.stage;
    const pl_earlier all[] = {{FINETUNE, TASK, "train.init_from", c->train.init_from},
                              {TASK, N2N, "train.init_from", c->train.init_from},
                              {POLICY, DENOISER, "dataset.denoiser_path", c->dataset.denoiser_path}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const bool begins_alone = strcmp(all[i].stage, TASK) == 0 && !c->n2n_pretrain.enabled;
        if (strcmp(only, all[i].stage) == 0 && !begins_alone) return pl_system_check_earlier(c, &all[i], err);
    }
    return PL_OK;
}

/* Named by hand it begins with what train.init_from says, else with the training before it; of several only the first
 * begins there. The tower comes with the weights, whatever file the earlier training had it from. */
static pl_status begin_behind(pl_config *c, const char *earlier, pl_error *err)
{
    char why[64], out[PL_FILE_PATH_MAX], folder[PL_FILE_PATH_MAX];
    snprintf(why, sizeof why, "the training behind %s", earlier);
    if (!c->task_training.stage[0] || !c->train.init_from[0]) {
        PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
        PL_TRY(pl_path_join(folder, sizeof folder, out, earlier, err));
        PL_TRY(pl_config_set(c, "train.init_from", folder, why, err));
    }
    return pl_config_set(c, "vision_encoder.pretrained_weights", "none", why, err);
}

typedef struct setting {
    const char *key, *value;
} setting;

static pl_status set_all(pl_config *c, const setting *s, const char *why, pl_error *err)
{
    for (; s->key; s++) PL_TRY(pl_config_set(c, s->key, s->value, why, err));
    return PL_OK;
}

/* Does the command line say it of the training that it names? Of several it speaks of the task's. */
static bool is_said(const pl_config *c, const char *key)
{
    return c->task_training.stage[0] && pl_config_is_option(c, key);
}

static pl_status begin_with(pl_config *c, const setting *s, const char *why, pl_error *err)
{
    for (; s->key; s++)
        if (!is_said(c, s->key)) PL_TRY(pl_config_set(c, s->key, s->value, why, err));
    return PL_OK;
}

/* What a section says of a training of its own; `only` makes the config that training's, which does not read. */
typedef struct own_training {
    const char *only;
    int64_t steps, batch_size;
    double learning_rate;
} own_training;

static pl_status become_own(pl_config *c, const own_training *t, const char *why, pl_error *err)
{
    char steps[32], batch[32], rate[32];
    const setting to[] = {{"train.steps", steps},
                          {"train.batch_size", batch},
                          {"train.gradient_accumulation_steps", "1"},
                          {"train.learning_rate", rate},
                          {"vision_encoder.progressive_fusion", "false"},
                          {"reasoning.halt_max_steps", "1"},
                          {NULL, NULL}};
    snprintf(steps, sizeof steps, "%" PRId64, t->steps);
    snprintf(batch, sizeof batch, "%" PRId64, t->batch_size);
    pl_print(rate, sizeof rate, "%.17g", t->learning_rate);
    PL_TRY(pl_config_set(c, t->only, "true", why, err));
    return begin_with(c, to, why, err);
}

static pl_status become_n2n(pl_config *c, pl_error *err)
{
    static const char why[] = "the training of the adapter";
    static const setting to[] = {{"train.warmup_steps", "auto"},
                                 {"task_training.freeze_n2n_adapter", "false"},
                                 {"task_training.freeze_pretrained", "auto"},
                                 {"vision_encoder.unfreeze_pretrained_layers", "0"},
                                 {NULL, NULL}};
    const pl_config_n2n_pretrain *n = &c->n2n_pretrain;
    PL_TRY(become_own(c, &(own_training){"n2n_pretrain.only", n->steps, n->batch_size, n->learning_rate}, why, err));
    return begin_with(c, to, why, err);
}

/* What is said of a frozen tower says nothing of a training that has none. */
static const setting no_tower[] = {
    {"vision_encoder.features_cache", "0"}, {"vision_encoder.pretrained_weights", "none"}, {NULL, NULL}};

/* As the source trains it: Adam, whose rate is halved where five evaluations bring nothing. */
static pl_status become_denoiser(pl_config *c, pl_error *err)
{
    static const char why[] = "the training of the denoiser";
    static const setting to[] = {{"train.optimizer", "adamw"},
                                 {"train.weight_decay", "0"},
                                 {"train.beta2", "0.999"},
                                 {"train.warmup_steps", "0"},
                                 {NULL, NULL}};
    static const setting falls[] = {
        {"train.schedule", "plateau"}, {"train.plateau_patience", "5"}, {"train.plateau_factor", "0.5"}, {NULL, NULL}};
    const pl_config_denoiser *d = &c->denoiser;
    if (!is_said(c, "train.schedule")) PL_TRY(begin_with(c, falls, why, err));
    PL_TRY(become_own(c, &(own_training){"denoiser.only", d->steps, d->batch_size, d->learning_rate}, why, err));
    PL_TRY(begin_with(c, no_tower, why, err));
    return begin_with(c, to, why, err);
}

/* It tries the denoiser of the same run where no other is named; that stays as its files have it, in f32. Its own pages
 * are noisy as the denoiser's were. */
static pl_status become_policy(pl_config *c, pl_error *err)
{
    static const char why[] = "the training of the policy";
    static const setting to[] = {{"train.warmup_steps", "auto"}, {NULL, NULL}},
                         wide[] = {{"vision_encoder.pretrained_precision", "f32"}, {NULL, NULL}};
    char out[PL_FILE_PATH_MAX], folder[PL_FILE_PATH_MAX];
    const pl_config_page_policy *p = &c->page_policy;
    PL_TRY(become_own(c, &(own_training){"page_policy.only", p->steps, p->batch_size, p->learning_rate}, why, err));
    if (!c->dataset.denoiser_path[0]) {
        PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
        PL_TRY(pl_path_join(folder, sizeof folder, out, DENOISER, err));
        PL_TRY(pl_config_set(c, "dataset.denoiser_path", folder, why, err));
    }
    PL_TRY(begin_with(c, no_tower, why, err));
    if (pl_hybrid_narrows(c)) PL_TRY(begin_with(c, wide, why, err));
    return begin_with(c, to, why, err);
}

static pl_status become_task(pl_config *c, pl_error *err)
{
    return c->n2n_pretrain.enabled ? begin_behind(c, N2N, err) : PL_OK;
}

static pl_status become_finetune(pl_config *c, pl_error *err)
{
    char layers[32], rate[32];
    const setting to[] = {{"vision_encoder.unfreeze_pretrained_layers", layers},
                          {"task_training.freeze_pretrained", "auto"},
                          {"train.learning_rate", rate},
                          {NULL, NULL}};
    snprintf(layers, sizeof layers, "%" PRId64, c->finetune.unfreeze_pretrained_layers);
    pl_print(rate, sizeof rate, "%.17g", c->finetune.learning_rate);
    PL_TRY(begin_behind(c, TASK, err));
    return begin_with(c, to, "the training behind task", err);
}

pl_status pl_hybrid_take_stage(pl_config *c, uint32_t k, pl_error *err)
{
    char name[PL_STAGE_NAME_BYTES];
    PL_TRY(pl_hybrid_check_stage(c, err));
    if (!pl_hybrid_name_stage(c, k, name)) return pl_fail(err, PL_E_INTERNAL, "there is no training %u", k);
    if (strcmp(name, DENOISER) == 0) PL_TRY(become_denoiser(c, err));
    if (strcmp(name, POLICY) == 0) PL_TRY(become_policy(c, err));
    if (strcmp(name, N2N) == 0) PL_TRY(become_n2n(c, err));
    if (strcmp(name, TASK) == 0) PL_TRY(become_task(c, err));
    if (strcmp(name, FINETUNE) == 0) PL_TRY(become_finetune(c, err));
    static const setting one[] = {
        {"n2n_pretrain.enabled", "false"}, {"finetune.enabled", "false"}, {"task_training.stage", ""}, {NULL, NULL}};
    return set_all(c, one, "it is one training", err);
}

/* ---- what they have brought ---- */

enum { PAGES, WORDS, WORDS_READ, PAGES_READ, Q_HALT_RIGHT, NOISE_LEFT, DENOISED_LEFT, COLUMNS };
static const pl_trainings_column columns[COLUMNS] = {
    [PAGES] = {"pages", "pages", .is_count = true},
    [WORDS] = {"words", "words", .is_count = true},
    [WORDS_READ] = {"words read", "token_accuracy", .card = "of the words are read, after the last of them"},
    [PAGES_READ] = {"pages read", "exact_accuracy"},
    [Q_HALT_RIGHT] = {"q_halt right", "q_halt_accuracy"},
    [NOISE_LEFT] = {"noise left", "noise_left", .card = "of the noise is left"},
    [DENOISED_LEFT] = {"denoiser alone", "denoised_left"}};

/* Of counts and of sums of squares, which may be 0. */
static double share(double part, double of) { return of > 0 ? part / of : 0; }

/* What cleans reads nothing, and what reads takes no noise away. */
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
    char asked[PL_STAGE_NAME_BYTES];
    for (uint32_t k = 0; pl_hybrid_name_stage(c, k, asked); k++)
        if (strcmp(asked, name) == 0) return true;
    return false;
}

/* Each that was made in this folder, whichever command made it. */
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
        PL_TRY(read_row(out, all_names[i], &row[p.rows], &is_done, err));
        p.rows += is_done;
        p.stages += is_done || is_asked_for(c, all_names[i]);
    }
    PL_TRY(pl_system_require_done(out, p.rows, err));
    pl_trainings_add(&p, d);
    return PL_OK;
}
