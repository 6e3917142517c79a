#include "jobs/witness.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "run/session_impl.h"

static const char key[] = "written_by";

static bool is_marked(const char *folder, const char *by)
{
    char path[PL_FILE_PATH_MAX];
    pl_safetensors *weights = NULL;
    if (pl_path_join(path, sizeof path, folder, PL_WITNESS_WEIGHTS, NULL) != PL_OK) return false;
    if (access(path, F_OK) != 0 || pl_safetensors_open(path, &weights, NULL) != PL_OK) return false;
    const char *mark = pl_safetensors_metadata(weights, key);
    const bool is_ours = mark && strcmp(mark, by) == 0;
    pl_safetensors_destroy(weights);
    return is_ours;
}

static pl_status check_free(const char *folder, const char *name, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    PL_TRY(pl_path_join(path, sizeof path, folder, name, err));
    if (lstat(path, &st) != 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: is there already, and is not of an earlier witness; choose another folder or move it away",
                   path);
}

pl_status pl_witness_check_folder(const char *folder, const char *by, const char *const names[], pl_error *err)
{
    if (is_marked(folder, by)) return PL_OK;
    for (size_t k = 0; names[k]; k++) PL_TRY(check_free(folder, names[k], err));
    return check_free(folder, PL_WITNESS_WEIGHTS, err);
}

pl_status pl_witness_write_weights(const pl_session *s, const char *folder, const char *by, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const pl_st_text mark = {key, by};
    const pl_graph *g = s->o.plan->graph;
    pl_status status = PL_OK;
    size_t count = 0;
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_WITNESS_WEIGHTS, err));
    pl_st_entry *entry = pl_alloc(g->value_count + 1, sizeof *entry);
    pl_st_writer *writer = pl_alloc(1, sizeof *writer);
    if (!entry || !writer) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the list of weights"));
    for (size_t i = 0; i < g->value_count; i++)
        if (pl_session_keeps(g, (pl_id)i) == PL_KEPT_WITH_MODEL)
            PL_TRY_DONE(pl_session_fill_entry(g, s->program, (pl_id)i, &entry[count++], err));
    pl_st_list list = {.entries = entry, .count = count, .metadata = &mark, .metadata_count = 1};
    PL_TRY_DONE(pl_safetensors_check(&list, err));
    PL_TRY_DONE(pl_safetensors_write(writer, path, &list, NULL, err));
done:
    pl_free(entry);
    pl_free(writer);
    return status;
}
