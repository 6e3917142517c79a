/* What is removed is never a link, nor what one leads to; links on the way to it are followed. */
#include "unit/store/scratch_folder.h"

#include <errno.h>

#include "base/remove.h"
#include "support/program.h"

static pl_error err;

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* A folder "big" elsewhere with a file in it, and a folder "here". */
static void begin(void)
{
    remove_tree(in_folder("big")), remove_tree(in_folder("here"));
    assert_int_equal(mkdir(in_folder("big"), 0755), 0);
    assert_int_equal(mkdir(in_folder("here"), 0755), 0);
    write_bytes(in_folder("big/data"), "x", 1);
}

static void refuses_link(pl_status status)
{
    assert_int_equal(status, PL_E_STORAGE);
    assert_non_null(strstr(err.text, "is a link, so neither it nor what it leads to is removed"));
}

static void a_file_goes_and_a_link_stays(void **state)
{
    (void)state;
    begin();
    assert_int_equal(symlink("../big/data", in_folder("here/data")), 0);
    refuses_link(pl_remove_file(in_folder("here/data"), &err));
    assert_true(is_there(in_folder("here/data")) && is_there(in_folder("big/data")));
    assert_int_equal(symlink("nowhere", in_folder("here/dangling")), 0);
    refuses_link(pl_remove_file(in_folder("here/dangling"), &err));
    assert_int_equal(pl_remove_file(in_folder("here/missing"), &err), PL_OK);
    assert_int_equal(pl_remove_file(in_folder("big/data"), &err), PL_OK);
    assert_false(is_there(in_folder("big/data")));
    assert_int_equal(pl_remove_file(in_folder("big"), &err), PL_E_STORAGE); /* a folder */
    assert_true(is_there(in_folder("big")));
}

static void the_way_there_may_be_a_link(void **state)
{
    (void)state;
    begin();
    assert_int_equal(symlink("../big", in_folder("here/way")), 0);
    assert_int_equal(pl_remove_file(in_folder("here/way/data"), &err), PL_OK);
    assert_false(is_there(in_folder("big/data")));
    assert_true(is_there(in_folder("here/way")));
}

static void a_folder_is_emptied_not_what_a_link_leads_to(void **state)
{
    static const char *const names[] = {"data", "more"};
    int fd;
    (void)state;
    begin();
    assert_int_equal(symlink("../big", in_folder("here/link")), 0);
    refuses_link(pl_remove_folder(in_folder("here/link"), names, 2, &err));
    refuses_link(pl_remove_open_folder(in_folder("here/link"), &fd, &err));
    refuses_link(pl_remove_empty_folder(in_folder("here/link"), &err));
    assert_true(is_there(in_folder("big/data")));
    assert_true(pl_remove_meets_link(in_folder("here/link"), names, 2));
    assert_false(pl_remove_meets_link(in_folder("big"), names, 2));
    assert_int_equal(symlink("data", in_folder("big/more.plimsoll.tmp")), 0);
    assert_true(pl_remove_meets_link(in_folder("big"), names, 2));
    assert_int_equal(pl_remove_folder(in_folder("big"), names, 2, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "a link is in it, and is not removed"));
    assert_true(is_there(in_folder("big/more.plimsoll.tmp")) && !is_there(in_folder("big/data")));
}

static void what_somebody_put_there_stays(void **state)
{
    static const char *const names[] = {"data", "more"};
    (void)state;
    begin();
    write_bytes(in_folder("big/more.plimsoll.tmp"), "x", 1);
    write_bytes(in_folder("big/mine"), "x", 1);
    assert_int_equal(pl_remove_folder(in_folder("big"), names, 2, &err), PL_OK);
    assert_true(is_there(in_folder("big/mine")));
    assert_false(is_there(in_folder("big/data")) || is_there(in_folder("big/more.plimsoll.tmp")));
    assert_int_equal(unlink(in_folder("big/mine")), 0);
    assert_int_equal(pl_remove_folder(in_folder("big"), names, 2, &err), PL_OK);
    assert_false(is_there(in_folder("big")));
    assert_int_equal(pl_remove_folder(in_folder("big"), names, 2, &err), PL_OK); /* not there */
}

static void what_was_made_goes(void **state)
{
    (void)state;
    begin();
    assert_int_equal(pl_remove_made(in_folder("big"), NULL), PL_OK);
    assert_true(is_there(in_folder("big/data"))); /* something is in it */
    assert_int_equal(pl_remove_made(in_folder("big/data"), NULL), PL_OK);
    assert_int_equal(pl_remove_made(in_folder("big"), NULL), PL_OK);
    assert_false(is_there(in_folder("big")));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_goes_and_a_link_stays),
        cmocka_unit_test(the_way_there_may_be_a_link),
        cmocka_unit_test(a_folder_is_emptied_not_what_a_link_leads_to),
        cmocka_unit_test(what_somebody_put_there_stays),
        cmocka_unit_test(what_was_made_goes),
    };
    return cmocka_run_group_tests_name("remove", tests, make_test_folder, remove_test_folder);
}
