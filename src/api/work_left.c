/* A command's file of results: finding what it lacks, and making it. The planner does both, so that a full disk, or a
 * file of another config, is reported before anything runs. */
#include <stdio.h>

#include "api/api.h"
#include "store/block_sink.h"
#include "store/folder.h"
#include "store/beside.h"
#include "systems/system.h"

/* A trace must not replace the results, which may be a folder, or what lies next to them; nor may they replace what is
 * read, except the page, which is not made where something else is (results_page.c). */
static pl_status check_uses(const pl_config *c, const pl_data *data, pl_error *err)
{
    enum { READ_MAX = 16 };
    const char *results = data->sink->path;
    char trace[PL_FILE_PATH_MAX], page[PL_FILE_PATH_MAX], config[PL_FILE_PATH_MAX], processes[PL_FILE_PATH_MAX],
        times[PL_FILE_PATH_MAX];
    PL_TRY(pl_beside_path(results, PL_BESIDE_PAGE, page, err));
    PL_TRY(pl_beside_path(results, PL_BESIDE_CONFIG, config, err));
    PL_TRY(pl_beside_path(results, PL_BESIDE_PROCESSES, processes, err));
    PL_TRY(pl_beside_path(results, PL_BESIDE_TIMES, times, err));
    PL_TRY(pl_path_of_part(trace, sizeof trace, c->run.trace, data->piece, err));
    pl_file_use named[READ_MAX], use[READ_MAX + 6] = {{c->run.trace[0] ? trace : "", "run.trace", PL_FILE_WRITTEN},
                                                      {results, "the results", PL_FILE_CLOSED},
                                                      {page, "their page", PL_FILE_READ},
                                                      {config, "the config of the results", PL_FILE_WRITTEN},
                                                      {processes, "what processes told", PL_FILE_WRITTEN},
                                                      {times, "their table of times", PL_FILE_WRITTEN}};
    const size_t all = pl_config_files(c, named, READ_MAX);
    size_t count = 6;
    for (size_t i = 0; i < all && i < READ_MAX; i++)
        if (named[i].role == PL_FILE_READ) use[count++] = named[i];
    return pl_files_check(use, count, err);
}

static pl_status with_sink(const pl_config *c, pl_command command,
                           pl_status (*work)(const pl_block_sink *, pl_block_found *, pl_error *), pl_work_left *left,
                           pl_error *err)
{
    pl_data *data;
    pl_block_found found = {0};
    PL_TRY(pl_system_require(c, command, err));
    PL_TRY(pl_open_data(c, command, PL_DATA_FOR_PLAN, NULL, &data, err));
    pl_status status = data->sink ? check_uses(c, data, err) : PL_OK;
    if (data->sink && status == PL_OK) status = work(data->sink, &found, err);
    *left = (pl_work_left){.blocks = found.blocks, .done = found.done};
    if (data->sink) snprintf(left->path, sizeof left->path, "%s", data->sink->path);
    pl_data_close(data);
    return status;
}

/* Even where all blocks are done, a file that was cut off, say, is made whole first. */
static pl_status look(const pl_block_sink *sink, pl_block_found *found, pl_error *err)
{
    PL_TRY(pl_block_file_look(sink->path, sink->form, sink->layout, found, err));
    if (found->done == found->blocks) pl_beside_sweep(sink->path);
    return found->needs_mending ? pl_block_file_make(sink->path, sink->form, sink->layout, found, err) : PL_OK;
}

static pl_status make(const pl_block_sink *sink, pl_block_found *found, pl_error *err)
{
    PL_TRY(pl_block_file_make(sink->path, sink->form, sink->layout, found, err));
    return found->is_new ? pl_beside_forget(sink->path, err) : PL_OK;
}

pl_status pl_work_find_left(const pl_config *c, pl_command command, pl_work_left *left, pl_error *err)
{
    return with_sink(c, command, look, left, err);
}

/* Keeps the config for the page about the results; they themselves keep only what decides their numbers. */
static pl_status keep_config(const pl_config *c, const char *results, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text;
    size_t bytes;
    if (!results[0] || !pl_task_of(c)->keeps_config) return PL_OK;
    PL_TRY(pl_beside_path(results, PL_BESIDE_CONFIG, path, err));
    PL_TRY(pl_config_text(c, PL_CONFIG_KEPT, &text, &bytes, err));
    pl_status status = pl_file_write_all(path, text, bytes, err);
    pl_text_free(text);
    return status;
}

pl_status pl_work_reserve(const pl_config *c, pl_command command, pl_work_left *left, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(c, folder, sizeof folder, err));
    PL_TRY(pl_folder_create(folder, err));
    PL_TRY(with_sink(c, command, make, left, err));
    return keep_config(c, left->path, err);
}

pl_status pl_work_hold(const pl_work_left *left, int *descriptor, pl_error *err)
{
    return pl_block_file_hold(left->path, descriptor, err);
}

void pl_work_adopt(int descriptor) { pl_block_file_adopt(descriptor); }
