/* A child that works: how it ends is what is returned, and what it tells is told here. Each way in which it may die. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/folder.h"
#include "support/program.h"
#include "systems/clouds_child.h"

enum { WELL = 1000, REFUSED, SILENT }; /* keys: otherwise the signal that ends it */

static pl_error err;
static char folder[] = "/tmp/plimsoll-child-XXXXXX";
static const pl_flight_files flight[] = {{.name = "first"}, {.name = "second"}};
static uint64_t told, most;
static pid_t parent;

static pl_status work(const pl_clouds_options *o, pl_error *e)
{
    const uint64_t key = o->identity; /* says how it is to end */
    if (getpid() == parent) return pl_fail(e, PL_E_INTERNAL, "not in a child");
    if (key == SILENT) _exit(0);
    (void)o->progress(o->context, "second", 0, 0);
    write_file("frames" PL_FILE_TEMPORARY, "half a file", 1);
    for (uint64_t i = 1; i <= 20; i++)
        if (!o->progress(o->context, "second", i, 20)) {
            unlink("frames" PL_FILE_TEMPORARY);
            return pl_fail(e, PL_E_STOPPED, "nobody listens");
        }
    if (key < WELL) raise((int)key);
    unlink("frames" PL_FILE_TEMPORARY);
    return key == WELL ? PL_OK : pl_fail(e, PL_E_CONFIG, "a swath of %d rows", 7);
}

static bool hear(void *context, const char *name, uint64_t done, uint64_t all)
{
    assert_ptr_equal(context, &told);
    assert_string_equal(name, "second");
    assert_true(done == ++told && all == 20 && getpid() == parent);
    return done < most;
}

static void expect(uint64_t key, uint64_t until, pl_status status, const char *says)
{
    const pl_clouds_options o = {.flight = flight,
                                 .flights = 2,
                                 .path = "frames",
                                 .in_child = true,
                                 .identity = key,
                                 .progress = hear,
                                 .context = &told};
    told = 0, most = until, err = (pl_error){0};
    assert_int_equal(pl_clouds_in_child(work, &o, &err), status);
    if (!strstr(err.text, says)) fail_msg("\"%s\" was expected in: %s", says, err.text);
    assert_int_equal(access("frames" PL_FILE_TEMPORARY, F_OK), -1);
}

static void test_ends(void **state)
{
    (void)state;
    expect(WELL, 99, PL_OK, "");
    assert_int_equal(told, 20);
    expect(REFUSED, 99, PL_E_CONFIG, "a swath of 7 rows");
    expect(WELL, 5, PL_E_STOPPED, "stopped at picture 5 of 20, of flight second");
    assert_int_equal(told, 5);
}

static void test_dies(void **state)
{
    (void)state;
    expect(SIGSEGV, 99, PL_E_DATA,
           "flight second: the process that read its files was ended by signal 11, a crash of libhdf5: perhaps it got "
           "no memory");
    expect(SIGBUS, 99, PL_E_DATA, "a crash of libhdf5");
    expect(SIGABRT, 99, PL_E_DATA, "a crash of libhdf5");
    expect(SIGKILL, 99, PL_E_NOMEM, "flight second: the process that read its files was ended (signal 9)");
    assert_int_equal(told, 20);
    expect(SILENT, 99, PL_E_NOMEM, "flight first: the process that read its files was ended");
}

static int begin(void **state)
{
    (void)state;
    parent = getpid();
    return enter_folder(folder);
}

static int finish(void **state)
{
    (void)state;
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ends), cmocka_unit_test(test_dies)};
    return cmocka_run_group_tests(tests, begin, finish);
}
