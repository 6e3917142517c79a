/* Leaves results of the small rollout of tests/unit/store/small_blocks.h:
 *
 *   leave_results FORM PATH [FIRST COUNT]     all operators, or a part of them; goes on where PATH is there already
 *   leave_results FORM PATH stop              the first operator only
 *   leave_results FORM PATH hold              the same, then says "ready" and stays, the file open
 *
 * Ends as the command does: a sentence on stderr and its exit code. */
#include "unit/store/small_blocks.h"

static small_blocks b;
static pl_block_found found;
static pl_error err;

static int complain(void)
{
    static const int codes[] = {
        [PL_OK] = 0, [PL_E_USAGE] = 2, [PL_E_CONFIG] = 2, [PL_E_STORAGE] = 5, [PL_E_DATA] = 4, [PL_E_UNSUPPORTED] = 77};
    fprintf(stderr, "%s\n", err.text);
    return err.status < sizeof codes / sizeof *codes && codes[err.status] ? codes[err.status] : 1;
}

static int leave_one(pl_block_form form, const char *path, bool hold)
{
    if (pl_block_file_make(path, form, &small_layout, &found, &err) != PL_OK ||
        small_open(&b, path, &small_layout, &err) != PL_OK || run_operator(&b, &small_layout, 0, &err) != PL_OK ||
        pl_block_file_commit(b.file, &err) != PL_OK)
        return complain();
    if (hold) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    return pl_block_file_close(b.file, &err) == PL_OK ? 0 : complain();
}

static int leave_part(pl_block_form form, const char *path, int first, int count)
{
    static pl_block_kind kind[2];
    static pl_block_dataset dataset[DATASETS];
    pl_block_layout l = small_layout;
    memcpy(kind, small_kind, sizeof kind);
    memcpy(dataset, small_dataset, sizeof dataset);
    for (int i = 0; i < 2; i++) kind[i].axis[0].extent = (uint64_t)count;
    for (int i = 0; i < DATASETS; i++) dataset[i].shape[0] = (uint64_t)count;
    dataset[NAMES].constant = small_names[first];
    l.kind = kind, l.dataset = dataset, l.first = (uint64_t)first, l.whole = OPERATORS;
    small_first = first;
    return small_run_all(&b, path, form, &l, &found, &err) == PL_OK ? 0 : complain();
}

int main(int argc, char **argv)
{
    pl_block_form form;
    if (argc < 3 || pl_block_form_parse(argv[1], &form)) return 2;
    if (argc == 4) return leave_one(form, argv[2], strcmp(argv[3], "hold") == 0);
    if (argc == 5) return leave_part(form, argv[2], atoi(argv[3]), atoi(argv[4]));
    return small_run_all(&b, argv[2], form, &small_layout, &found, &err) == PL_OK ? 0 : complain();
}
