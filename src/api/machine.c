/* This machine as a file, and plans for one that a file describes. */
#include "plimsoll/machine.h"

#include "api/api.h"
#include "base/file.h"
#include "base/machine_file.h"
#include "calibrate/calibrate.h"

enum { FILE_BYTES_MAX = 64 << 10 };

static pl_status find_rates(const char *folder, pl_machine_file *m, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_calibration *known;
    const pl_calibration_options o = {.team = {m->machine.cores, m->fastest}};
    if (!folder) return PL_OK;
    PL_TRY(pl_calibration_path(path, sizeof path, folder, err));
    PL_TRY(pl_calibration_open(path, &o, &known, err));
    (void)pl_calibration_recall_rates(known);
    const pl_rates r = pl_calibration_rates(known);
    pl_calibration_close(known);
    m->f32_operations = r.operations[PL_ARITHMETIC_F32];
    m->bf16_operations = r.operations[PL_ARITHMETIC_BF16];
    m->memory_bytes = r.bytes;
    return PL_OK;
}

pl_status pl_machine_text(const char *cache_folder, char **text, size_t *bytes, pl_error *err)
{
    pl_machine_file m;
    pl_str out = {0};
    *text = NULL;
    PL_TRY(pl_machine_file_fill(&m, err));
    PL_TRY(find_rates(cache_folder, &m, err));
    pl_machine_file_print(&m, &out);
    return pl_give_text(&out, text, bytes, err);
}

pl_status pl_machine_plan_for(const char *path, pl_error *err)
{
    char *text;
    size_t bytes;
    pl_machine_file m;
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    const pl_status status = pl_machine_file_parse(path, text, bytes, &m, err);
    pl_free(text);
    if (status == PL_OK) pl_machine_describe(&m);
    return status;
}
