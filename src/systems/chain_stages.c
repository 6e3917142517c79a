/* The curriculum: stage-0 learns chains with all their steps, stage-k with latents in place of the first k, and answer
 * with no steps at all behind as many latents as the last stage has. Each is a training of its own, that begins with
 * the weights of the one before it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/text/told_chains.h"
#include "store/folder.h"
#include "systems/chain.h"
#include "systems/trainings.h"

enum { STAGES_MAX = 66 }; /* 0 to 64, and answer */
#define ANSWER "answer"
#define PREFIX "stage-"

/* ---- which there are ---- */

static uint32_t count_stages(const pl_config *c)
{
    return c->chain.stages ? (uint32_t)c->chain.stages + 1 + c->chain.answer_stage : 0;
}

static void name_of(const pl_config *c, uint32_t k, char name[PL_STAGE_NAME_BYTES])
{
    if (k > (uint64_t)c->chain.stages)
        snprintf(name, PL_STAGE_NAME_BYTES, ANSWER);
    else
        snprintf(name, PL_STAGE_NAME_BYTES, PREFIX "%u", k);
}

/* The number of the one that is named; false: there is none of that name. */
static bool find_stage(const pl_config *c, const char *named, uint32_t *k)
{
    char name[PL_STAGE_NAME_BYTES];
    for (*k = 0; *k < count_stages(c); ++*k) {
        name_of(c, *k, name);
        if (strcmp(name, named) == 0) return true;
    }
    return false;
}

bool pl_chain_name_stage(const pl_config *c, uint32_t k, char name[PL_STAGE_NAME_BYTES])
{
    const char *only = c->chain.stage;
    if (k >= (only[0] ? 1 : count_stages(c))) return false;
    if (only[0])
        snprintf(name, PL_STAGE_NAME_BYTES, "%s", only);
    else
        name_of(c, k, name);
    return true;
}

pl_status pl_chain_check_stage(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    uint32_t k;
    const char *by_hand = c->chain.replaced ? "chain.replaced" : c->chain.answer_only ? "chain.answer_only" : NULL;
    if (c->chain.stages && by_hand)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s is for one training, and chain.stages %" PRId64 " asks for several, each of which sets "
                       "it; leave it out, or write chain.stages 0",
                       pl_config_blame(c, by_hand, "chain.stages", where), by_hand, c->chain.stages);
    if (c->chain.stages && c->chain.held_out <= 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: each of the trainings that chain.stages %" PRId64 " asks for is judged by chains that were "
                       "held out, and chain.held_out is 0; raise it, or write chain.stages 0",
                       pl_config_blame(c, "chain.held_out", "chain.stages", where), c->chain.stages);
    if (!c->chain.stage[0] || find_stage(c, c->chain.stage, &k)) return PL_OK;
    pl_config_where(c, "chain.stage", where, sizeof where);
    if (c->chain.stages == 0)
        return pl_fail(err, PL_E_CONFIG, "%s: there is no stage %.60s, since chain.stages is 0; leave it out", where,
                       c->chain.stage);
    return pl_fail(err, PL_E_CONFIG, "%s: there is no stage %.60s; they are " PREFIX "0 to " PREFIX "%" PRId64 "%s",
                   where, c->chain.stage, c->chain.stages, c->chain.answer_stage ? " and " ANSWER : "");
}

/* ---- one of them ---- */

pl_status pl_chain_check_begun(const pl_config *c, pl_error *err)
{
    char name[PL_STAGE_NAME_BYTES], earlier[PL_STAGE_NAME_BYTES];
    uint32_t k;
    if (!find_stage(c, c->chain.stage, &k) || k == 0) return PL_OK;
    name_of(c, k, name);
    name_of(c, k - 1, earlier);
    return pl_system_check_earlier(c, &(pl_earlier){name, earlier, "train.init_from", c->train.init_from}, err);
}

/* Of several, only the first begins where train.init_from says. */
static pl_status begin_behind(pl_config *c, uint32_t k, pl_error *err)
{
    char out[PL_FILE_PATH_MAX], folder[PL_FILE_PATH_MAX], earlier[PL_STAGE_NAME_BYTES];
    if (k == 0 || (c->chain.stage[0] && c->train.init_from[0])) return PL_OK;
    name_of(c, k - 1, earlier);
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(pl_path_join(folder, sizeof folder, out, earlier, err));
    return pl_config_set(c, "train.init_from", folder, "the stage before", err);
}

pl_status pl_chain_take_stage(pl_config *c, uint32_t k, pl_error *err)
{
    static const char why[] = "the stage";
    char replaced[32];
    PL_TRY(pl_chain_check_stage(c, err));
    if (c->chain.stage[0] && !find_stage(c, c->chain.stage, &k))
        return pl_fail(err, PL_E_INTERNAL, "there is no stage %s", c->chain.stage);
    PL_TRY(begin_behind(c, k, err));
    const bool is_answer = k > (uint64_t)c->chain.stages;
    snprintf(replaced, sizeof replaced, "%" PRId64, is_answer ? c->chain.stages : (int64_t)k);
    PL_TRY(pl_config_set(c, "chain.replaced", replaced, why, err));
    PL_TRY(pl_config_set(c, "chain.answer_only", is_answer ? "true" : "false", why, err));
    PL_TRY(pl_config_set(c, "chain.stages", "0", why, err));
    return pl_config_set(c, "chain.stage", "", why, err);
}

/* ---- what they have brought ---- */

enum { LATENTS, CHAINS, TOKENS, TOKEN_ACCURACY, ANSWER_ACCURACY, COLUMNS };
static const pl_trainings_column columns[COLUMNS] = {
    [LATENTS] = {"latents", "latents", .is_count = true},
    [CHAINS] = {"chains", "chains", .is_count = true},
    [TOKENS] = {"tokens", "tokens", .is_count = true},
    [TOKEN_ACCURACY] = {"tokens right", "token_accuracy"},
    [ANSWER_ACCURACY] = {"answers right", "answer_accuracy",
                         .card = "of the answers are right, after the last of them"}};

static pl_status read_row(const pl_config *c, const char *out, const char *name, pl_trainings_row *row, bool *is_done,
                          pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_told_chains sum;
    uint32_t k = 0;
    PL_TRY(pl_system_find_predictions(out, name, path, is_done, err));
    if (!*is_done) return PL_OK;
    PL_TRY(pl_told_chains_sum(path, &sum, err));
    (void)find_stage(c, name, &k);
    const int64_t steps = k > (uint64_t)c->chain.stages ? c->chain.stages : (int64_t)k;
    *row = (pl_trainings_row){
        .name = name,
        .value = {[LATENTS] = (double)(steps * c->chain.latents),
                  [CHAINS] = (double)sum.chains,
                  [TOKENS] = (double)sum.tokens,
                  [TOKEN_ACCURACY] = sum.tokens ? (double)sum.right / (double)sum.tokens : 0,
                  [ANSWER_ACCURACY] = sum.chains ? (double)sum.answers_right / (double)sum.chains : 0}};
    return PL_OK;
}

pl_status pl_chain_report_stages(const pl_config *c, const char *out, pl_doc *d, pl_error *err)
{
    char name[STAGES_MAX][PL_STAGE_NAME_BYTES];
    pl_trainings_row row[STAGES_MAX];
    pl_trainings_report p = {.title = "Chains of thought",
                             .schema = "plimsoll.chains/1",
                             .about = "Steps that become latent thoughts, a stage at a time.",
                             .judged = "Each judged by the chains that were held out.",
                             .column = columns,
                             .columns = COLUMNS,
                             .row = row};
    for (; p.stages < STAGES_MAX && pl_chain_name_stage(c, p.stages, name[p.stages]); p.stages++) {
        bool is_done;
        PL_TRY(read_row(c, out, name[p.stages], &row[p.rows], &is_done, err));
        p.rows += is_done;
    }
    PL_TRY(pl_system_require_done(out, p.rows, err));
    pl_trainings_add(&p, d);
    return PL_OK;
}
