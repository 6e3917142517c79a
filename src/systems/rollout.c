/* The row of rollouts: which group of operators a command works on, and what no single key can tell. */
#include "systems/rollout.h"

#include "base/alloc.h"
#include "models/model.h"
#include "systems/rollout_page.h"
#include "systems/system.h"

/* ---- the group ---- */

static bool is_operator_done(const pl_rollout_data *d, const pl_block_reader *results, uint32_t number)
{
    uint64_t place[] = {pl_rollout_place(d, number), 0, 0};
    if (!pl_block_reader_is_done(results, pl_block_at(&d->layout, PL_ROLLOUT_FIELDS, place))) return false;
    if (d->setup.features && !pl_block_reader_is_done(results, pl_block_at(&d->layout, PL_ROLLOUT_FEATURES, place)))
        return false;
    for (; place[1] < d->setup.realisations; place[1]++)
        for (place[2] = 0; place[2] < d->setup.states; place[2] += d->setup.piece)
            if (!pl_block_reader_is_done(results, pl_block_at(&d->layout, PL_ROLLOUT_STATES, place))) return false;
    return true;
}

static bool is_group_done(const pl_rollout_data *d, const pl_block_reader *results, uint32_t group)
{
    for (uint32_t i = d->groups.first[group]; i < d->groups.first[group + 1]; i++)
        if (!is_operator_done(d, results, pl_space_groups_point(&d->groups, i))) return false;
    return true;
}

/* Puts the place of the key to blame before a sentence about the points. */
static pl_status blame(const pl_config *c, const char *path, pl_status status, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (status != PL_E_CONFIG) return status;
    return pl_fail_prefix(err, status, "%s", pl_config_where(c, path, where, sizeof where));
}

/* The first group that is not done by the marks in the file; the first of all if all are done or there is no file. */
static pl_status find_group(const pl_config *c, const pl_rollout_data *d, uint32_t *group, pl_error *err)
{
    pl_block_found found;
    pl_block_reader *results;
    *group = 0;
    PL_TRY(pl_block_file_look(d->sink.path, d->sink.form, &d->layout, &found, err));
    if (found.is_new) /* else the others were already checked */
        return blame(c, "sampling.total_samples", pl_rollout_check_points(d, err), err);
    if (found.done == 0) return PL_OK;
    PL_TRY(pl_block_reader_open(d->sink.path, false, &results, err));
    uint32_t first = 0;
    while (first < d->groups.groups && is_group_done(d, results, first)) first++;
    if (first < d->groups.groups) *group = first;
    pl_block_reader_close(results);
    return PL_OK;
}

static pl_status choose_group(const pl_config *c, pl_rollout_data *d, pl_data_use use, const pl_facts *planned,
                              pl_error *err)
{
    const uint64_t witness = planned ? pl_facts_value(planned, PL_FACT_WITNESS, UINT64_MAX) : UINT64_MAX;
    if (witness != UINT64_MAX) return pl_rollout_data_witness(d, witness, PL_FACT_WITNESS, err);
    uint32_t group = planned ? (uint32_t)pl_facts_value(planned, "shape", 0) : 0;
    if (use == PL_DATA_FOR_PLAN) PL_TRY(find_group(c, d, &group, err));
    return pl_rollout_data_choose(d, group, err);
}

/* The key that has its sizes. */
static const char *grid_size_key(const pl_config *c)
{
    static const char bounds[] = "parameter_space.operator.grid_size.bounds";
    return pl_config_is_set(c, bounds) ? bounds : "parameter_space.operator.grid_size.choices";
}

/* ---- the row ---- */

static pl_status open_rollout(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                              pl_data **data, pl_error *err)
{
    pl_rollout_data *d = NULL;
    pl_rollout_reading *r = pl_alloc(1, sizeof *r);
    (void)command;
    if (!r) return pl_fail(err, PL_E_NOMEM, "no memory for the operators");
    pl_status status = pl_rollout_read(c, r, err);
    if (status == PL_OK) status = pl_rollout_data_open(&r->setup, &d, err);
    pl_rollout_reading_deinit(r);
    pl_free(r);
    if (status == PL_OK) status = blame(c, grid_size_key(c), pl_rollout_check_grid_sizes(d, err), err);
    if (status == PL_OK) status = choose_group(c, d, use, planned, err);
    if (status != PL_OK && d) pl_data_close(&d->data);
    if (status == PL_OK) *data = &d->data;
    return status;
}

static pl_status check(const pl_config *c, pl_error *err)
{
    pl_share share;
    return pl_rollout_read_share(c, &share, err);
}

static const pl_dataset dataset = {.open = open_rollout};

static const pl_task task = {.job = {[PL_COMMAND_ROLLOUT] = &pl_job_rollout, [PL_COMMAND_INFER] = &pl_job_infer},
                             .page = pl_rollout_page_write};

const pl_system pl_system_rollout = {
    .words = {"state", "states", "realisation", "realisations", "states/s", "operators", "operator", "step", "",
              "simulation.realizations_at_once",
              "parameter_space.operator.grid_size or parameter_space.architecture.base_channels",
              "parameter_space.architecture.base_channels"},
    .check = check,
    .dataset = {&dataset},
    .task = &task};
