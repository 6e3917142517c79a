/* store/folder.h: the names in a folder, also in one that goes while they are read. */
#include "unit/store/scratch_folder.h"

#include "store/folder.h"
#include "support/program.h"

enum { NAMES = 400 }; /* several lists of the system call */

static _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
static pl_error err;

typedef struct found {
    const char *folder; /* it is emptied and removed at the first name; NULL: it stays */
    size_t count;
} found;

static pl_status note(void *context, const char *name, pl_error *e)
{
    found *f = context;
    (void)name, (void)e;
    f->count++;
    if (f->folder) remove_tree(f->folder);
    f->folder = NULL;
    return PL_OK;
}

static const char *make(const char *name, int count)
{
    assert_int_equal(mkdir(in_folder("%s", name), 0755), 0);
    for (int i = 0; i < count; i++) write_bytes(in_folder("%s/a-name-that-is-not-short-%03d", name, i), "x", 1);
    return in_folder("%s", name);
}

static void test_each_once(void **state)
{
    found f = {0};
    (void)state;
    assert_int_equal(pl_folder_each(make("many", NAMES), list, note, &f, &err), PL_OK);
    assert_int_equal(f.count, NAMES);
    assert_int_equal(pl_folder_each(in_folder("none"), list, note, &f, &err), PL_OK);
    assert_int_equal(f.count, NAMES);
}

/* Linux lists nothing of a removed folder, with ENOENT: to who lists it, it is one that is not there. */
static void test_goes_meanwhile(void **state)
{
    (void)state;
    for (int count = 1; count <= NAMES; count += NAMES - 1) {
        const char *path = make("going", count);
        found f = {.folder = path};
        assert_int_equal(pl_folder_each(path, list, note, &f, &err), PL_OK);
        assert_true(f.count >= 1 && f.count <= (size_t)count);
        assert_false(exists(path));
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_goes_meanwhile)};
    return cmocka_run_group_tests_name("folder", tests, make_test_folder, remove_test_folder);
}
