/* Builds that share a cache folder keep a table each, and not more than six of one machine stay. Oracle: which files
 * are there, of some that are made here with times of use given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "calibrate/table.h"
#include "ir/op.h"
#include "support/program.h"

enum { OTHERS = 9, KEPT = 6, MACHINE_BYTES = sizeof "calibration-0123456789abcdef" - 1 };
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pl_builds_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static void own_path(char path[256])
{
    pl_error err = {0};
    assert_int_equal(pl_calibration_path(path, 256, folder, &err), PL_OK);
}

/* A file of that name, last used so many seconds after 1970. */
static void put(const char *name, time_t used)
{
    char path[256];
    pl_error err = {0};
    const struct timespec times[2] = {{.tv_sec = used}, {.tv_sec = used}};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(pl_file_write_all(path, "{}", 2, &err), PL_OK);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void other(char name[80], const char *machine, int number)
{
    snprintf(name, 80, "%.*s-%016d.json", MACHINE_BYTES, machine, number);
}

static pl_graph *make_graph(void)
{
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    pl_builder b = pl_builder_begin(g, pl_graph_add_region(g, "init", PL_NONE, 1), &err);
    pl_id out = pl_build_persistent(&b, PL_ROLE_WEIGHT, PL_DTYPE_F32, pl_shape_of(1, (int64_t)64), "w");
    pl_build_node(&b, PL_OP_FILL, (pl_attr[]){pl_attr_f(1)}, 0, NULL, 1, &out);
    assert_int_equal(b.status, PL_OK);
    return g;
}

/* Opens the table at path and measures what it lacks, keeping it. */
static void use(const char *path)
{
    pl_error err = {0};
    pl_calibration *c;
    pl_calibration_options o = {.team = {1, PL_ISA_REF}, .seconds_max = 0.02};
    pl_graph *g = make_graph();
    assert_int_equal(pl_calibration_open(path, &o, &c, &err), PL_OK);
    assert_int_equal(pl_calibration_measure(c, g, &err), PL_OK);
    assert_int_equal(pl_calibration_save(c, &err), PL_OK);
    assert_string_equal(pl_calibration_warning(c), "");
    pl_calibration_close(c);
    pl_graph_destroy(g);
}

static void the_name_tells_machine_and_code(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_calibration_machine m;
    char path[256], end[64];
    own_path(path);
    assert_int_equal(pl_calibration_machine_read(&m, &err), PL_OK);
    int n = snprintf(end, sizeof end, "-%016" PRIx64 ".json", m.kernels);
    assert_string_equal(path + strlen(path) - (size_t)n, end);
    assert_int_equal(strlen(path), strlen(folder) + 1 + MACHINE_BYTES + (size_t)n);
}

static void few_builds_stay(void **state)
{
    (void)state;
    char path[256], name[80], stranger[80], older_version[80];
    own_path(path);
    const char *own = strrchr(path, '/') + 1;
    for (int i = 0; i < OTHERS; i++) {
        other(name, own, i);
        put(name, 1000 + i);
    }
    other(stranger, "calibration-0000000000000000", 1);
    put(stranger, 1);
    put("notes.json", 1);
    snprintf(older_version, sizeof older_version, "%.*s.json", MACHINE_BYTES, own);
    put(older_version, 2000);
    use(path);
    assert_true(is_there(own) && is_there(stranger) && is_there("notes.json") && is_there(older_version));
    for (int i = 0; i < OTHERS; i++) {
        other(name, own, i);
        if (is_there(name) != (i >= OTHERS - (KEPT - 2))) fail_msg("%s is%s there", name, is_there(name) ? "" : " not");
    }
}

/* Reading a table is using it: the one read last is not the first to go. */
static void a_table_that_is_read_is_in_use(void **state)
{
    (void)state;
    char path[256];
    struct stat before, after;
    const struct timespec times[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
    own_path(path);
    use(path);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_int_equal(stat(path, &before), 0);
    use(path); /* nothing is missing, nothing is written */
    assert_int_equal(stat(path, &after), 0);
    assert_true(after.st_ino == before.st_ino && after.st_mtim.tv_sec > 5);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_name_tells_machine_and_code),
                                       cmocka_unit_test(few_builds_stay),
                                       cmocka_unit_test(a_table_that_is_read_is_in_use)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
