/* The curriculum: stage-0 learns chains with all their steps, stage-k with latents in place of the first k, and answer
 * with no steps at all after as many latents as the last stage has. Each is a training of its own that begins with the
 * weights of the previous one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/text/told_chains.h"
#include "systems/chain.h"
#include "systems/trainings.h"

enum { STAGES_MAX = 66 }; /* 0 to 64, and answer */
#define ANSWER "answer"
#define PREFIX "stage-"

/* ---- which there are ---- */

static void name_of(const pl_config *c, uint32_t k, char name[PL_STAGE_NAME_BYTES])
{
    if (k > (uint64_t)c->chain.stages)
        snprintf(name, PL_STAGE_NAME_BYTES, ANSWER);
    else
        snprintf(name, PL_STAGE_NAME_BYTES, PREFIX "%u", k);
}

/* How many steps latents replace in stage number k. */
static int64_t replaced_in(const pl_config *c, uint32_t k)
{
    return (int64_t)k < c->chain.stages ? (int64_t)k : c->chain.stages;
}

bool pl_chain_stage(const pl_config *c, uint32_t k, pl_stage_row *row)
{
    const uint32_t count = c->chain.stages ? (uint32_t)c->chain.stages + 1 + c->chain.answer_stage : 0;
    if (k >= count) return false;
    *row = (pl_stage_row){.what = "the stage", .begin_key = "train.init_from"};
    name_of(c, k, row->name);
    if (k > 0) name_of(c, k - 1, row->begins_with);
    pl_stage_set(row, "chain.replaced", "%" PRId64, replaced_in(c, k));
    pl_stage_set(row, "chain.answer_only", k > (uint64_t)c->chain.stages ? "true" : "false");
    pl_stage_set(row, "chain.stages", "0");
    pl_stage_set(row, "chain.stage", "%s", "");
    return true;
}

pl_status pl_chain_check(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
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
    return PL_OK;
}

/* ---- their results ---- */

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
    PL_TRY(pl_system_find_predictions(out, name, path, is_done, err));
    if (!*is_done) return PL_OK;
    PL_TRY(pl_told_chains_sum(path, &sum, err));
    const int64_t steps = replaced_in(c, pl_system_stages_before(c, name));
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
    pl_stage_row stage;
    pl_trainings_row row[STAGES_MAX];
    pl_trainings_report p = {.title = "Chains of thought",
                             .schema = "plimsoll.chains/1",
                             .about = "Steps that become latent thoughts, a stage at a time.",
                             .judged = "Each judged by the chains that were held out.",
                             .column = columns,
                             .columns = COLUMNS,
                             .row = row};
    for (; p.stages < STAGES_MAX && pl_system_find_stage(c, p.stages, &stage); p.stages++) {
        bool is_done;
        memcpy(name[p.stages], stage.name, sizeof stage.name);
        PL_TRY(read_row(c, out, name[p.stages], &row[p.rows], &is_done, err));
        p.rows += is_done;
    }
    PL_TRY(pl_system_require_done(out, p.rows, err));
    pl_trainings_add(&p, d);
    return PL_OK;
}
