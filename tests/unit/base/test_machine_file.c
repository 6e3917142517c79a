/* A machine's file: what was printed reads back, what is not so is refused with the key's name, whichever byte is wrong
 * reading ends, and plans are made for it. Oracle: the fields of pl_machine, set by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/machine_file.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

static uint64_t draw_limit(void) { return draw(2) ? PL_MACHINE_UNLIMITED : draw(1 << 30) << draw(30); }

static pl_machine_file drawn(void)
{
    pl_machine_file f = {.machine = {.cpu_name = "A \"processor\" of 5 GHz\\",
                                     .is_virtual = draw(2),
                                     .isa = (pl_isa)draw(PL_ISA_COUNT),
                                     .hertz = draw(2) ? 2.3e9 : 0,
                                     .cache_bytes = draw(1 << 30),
                                     .cores_online = 1 + (int)draw(256),
                                     .cores_allowed = 1 + (int)draw(256),
                                     .cores_quota = draw(2) ? INFINITY : 0.125 * (double)(1 + draw(99)),
                                     .ram_bytes = draw(1 << 30) << draw(20),
                                     .available_bytes = draw(1 << 30) << draw(20),
                                     .swap_bytes = draw(1 << 30),
                                     .swap_free_bytes = draw(1 << 30),
                                     .cgroup_limit_bytes = draw_limit(),
                                     .cgroup_room_bytes = draw_limit(),
                                     .cgroup_path = "/a/b",
                                     .address_space_limit_bytes = draw_limit(),
                                     .data_limit_bytes = draw_limit(),
                                     .stack_limit_bytes = draw_limit(),
                                     .kernel = "6.1.0",
                                     .transparent_huge_pages = "madvise"},
                         .extras = draw(8),
                         .f32_operations = draw(2) ? 0 : 1e9 * (double)(1 + draw(999)),
                         .bf16_operations = 1.5e12,
                         .memory_bytes = 2e10};
    f.fastest = (pl_isa)draw((uint64_t)f.machine.isa + 1);
    return f;
}

/* Of a part of the fields by hand: the rest follows, for what is printed again is the same text. */
static void expect_equal(const pl_machine_file *a, const pl_machine_file *b)
{
    assert_string_equal(a->machine.cpu_name, b->machine.cpu_name);
    assert_true(a->machine.isa == b->machine.isa && a->fastest == b->fastest && a->extras == b->extras);
    assert_true(a->machine.cores_allowed == b->machine.cores_allowed);
    assert_true(a->machine.cores_quota == b->machine.cores_quota && a->machine.hertz == b->machine.hertz);
    assert_true(a->machine.ram_bytes == b->machine.ram_bytes && a->f32_operations == b->f32_operations);
    assert_true(a->machine.cgroup_limit_bytes == b->machine.cgroup_limit_bytes);
    assert_true(a->machine.data_limit_bytes == b->machine.data_limit_bytes);
    const double quota = b->machine.cores_quota, allowed = b->machine.cores_allowed;
    assert_true(a->machine.cores == (int)ceil(fmin(quota, allowed)));
}

static void test_reads_back(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        pl_str text = {0}, again = {0};
        pl_error err = {0};
        pl_machine_file read;
        const pl_machine_file f = drawn();
        pl_machine_file_print(&f, &text);
        if (pl_machine_file_parse("f.json", text.data, text.bytes, &read, &err))
            fail_msg("%s\n%s", err.text, text.data);
        expect_equal(&read, &f);
        pl_machine_file_print(&read, &again);
        assert_string_equal(text.data, again.data);
        pl_str_deinit(&text);
        pl_str_deinit(&again);
    }
}

static void expect_refused(const char *text, const char *sentence)
{
    pl_error err = {0};
    pl_machine_file f;
    assert_int_equal(pl_machine_file_parse("f.json", text, strlen(text), &f, &err), PL_E_DATA);
    if (!strstr(err.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
}

/* The good text, with the value of a key replaced. */
static void expect_refused_with(const char *key, const char *value, const char *sentence)
{
    pl_str text = {0}, changed = {0};
    const pl_machine_file f = drawn();
    char name[64];
    pl_machine_file_print(&f, &text);
    snprintf(name, sizeof name, "\"%s\":", key);
    const char *at = strstr(text.data, name);
    assert_non_null(at);
    const char *end = strchr(at, '\n');
    pl_str_printf(&changed, "%.*s\"%s\": %s%s%s", (int)(at - text.data), text.data, key, value,
                  end[-1] == ',' ? "," : "", end);
    expect_refused(changed.data, sentence);
    pl_str_deinit(&text);
    pl_str_deinit(&changed);
}

static void test_wrong_values(void **state)
{
    static const char *const rows[][3] = {{"schema", "\"plimsoll.machine/2\"", "its schema is plimsoll.machine/2"},
                                          {"schema", "1", "its schema is missing"},
                                          {"isa", "\"avx1024\"", "isa is not one of"},
                                          {"isa", "null", "isa is not one of"},
                                          {"virtual", "1", "virtual is not true or false"},
                                          {"processor", "5", "processor is not a short text"},
                                          {"processor", "\"a\\u0000b\"", "is not valid JSON"},
                                          {"cores_allowed", "0", "cores_allowed is not a number from 1"},
                                          {"cores_allowed", "-3", "cores_allowed is not a number from 1"},
                                          {"cores_allowed", "99999999999", "cores_allowed is not a number from 1"},
                                          {"cores_allowed", "1.5", "cores_allowed is not a number from 1"},
                                          {"cores_quota", "0", "cores_quota is not a number above 0"},
                                          {"cores_quota", "1e999", "cores_quota is not a number above 0"},
                                          {"memory_bytes", "null", "memory_bytes is not a number of bytes"},
                                          {"memory_bytes", "-1", "memory_bytes is not a number of bytes"},
                                          {"cgroup_limit_bytes", "1e3", "cgroup_limit_bytes is not a number of bytes"},
                                          {"clock_hertz", "\"fast\"", "clock_hertz is not a number above 0"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) expect_refused_with(rows[i][0], rows[i][1], rows[i][2]);
    expect_refused("", "is not valid JSON");
    expect_refused("[]", "is not an object");
    expect_refused("{\"schema\": \"plimsoll.machine/1\"}", "the key processor is missing");
    expect_refused("{\"schema\": \"plimsoll.machine/1\", \"gpu\": 1}", "the key gpu is not known");
    expect_refused("{\"schema\": \"plimsoll.machine/1\", \"schema\": 1}", "duplicate");
}

/* Whatever it says then: reading ends, and nothing is left. */
static void test_wrong_bytes(void **state)
{
    pl_str text = {0};
    const pl_machine_file f = drawn();
    (void)state;
    pl_machine_file_print(&f, &text);
    const size_t before = pl_alloc_live_blocks();
    for (int i = 0; i < 2000; i++) {
        pl_error err = {0};
        pl_machine_file read;
        char *at = &text.data[draw(text.bytes)], kept = *at;
        const size_t bytes = draw(4) ? text.bytes : draw(text.bytes);
        *at = (char)draw(256);
        const pl_status status = pl_machine_file_parse("f.json", text.data, bytes, &read, &err);
        assert_true(status == PL_OK || (status == PL_E_DATA && err.text[0]));
        *at = kept;
        assert_int_equal(pl_alloc_live_blocks(), before);
    }
    pl_str_deinit(&text);
}

/* Last: from then on it is that machine. */
static void test_plans_for_it(void **state)
{
    pl_machine here, there;
    pl_machine_file f = drawn();
    pl_error err = {0};
    (void)state;
    assert_null(pl_machine_described());
    assert_int_equal(pl_machine_planned(&here, &err), PL_OK);
    assert_true(here.isa == pl_isa_of_machine() && here.cores >= 1);
    f.machine.isa = PL_ISA_AMX, f.fastest = PL_ISA_AVX512, f.extras = PL_ISA_VPOPCNTDQ, f.machine.ram_bytes = 12345;
    pl_machine_describe(&f);
    assert_int_equal(pl_machine_planned(&there, &err), PL_OK);
    assert_true(there.ram_bytes == 12345 && pl_isa_of_machine() == PL_ISA_AMX && pl_isa_fastest() == PL_ISA_AVX512);
    assert_true(pl_isa_extras(PL_ISA_AVX512) == PL_ISA_VPOPCNTDQ && pl_isa_extras(PL_ISA_AVX2) == 0);
    assert_int_equal(pl_machine_read("", &here, &err), PL_OK);
    assert_true(here.ram_bytes != 12345);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads_back), cmocka_unit_test(test_wrong_values),
                                       cmocka_unit_test(test_wrong_bytes), cmocka_unit_test(test_plans_for_it)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
