/* Texts of /proc with random damage: reading them never crashes, every mapping that is read lands in one row, and what
 * is written about it is well-formed. Usage: program [seed] */
#include <jansson.h>

#include "unit/doctor/fixture.h"
#include "support/program.h"
#include "support/seed.h"

enum { ROUNDS = 150 };
static uint64_t seed, state_of_dice;

static uint64_t dice(void) /* splitmix64 */
{
    uint64_t z = state_of_dice += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Overwrites, cuts out or doubles a few stretches. */
static size_t damage(char *text, size_t bytes, size_t room)
{
    static const char letters[] = "0123456789abcdef-: \n/[]kB()srwxp\\";
    for (uint64_t n = dice() % 6; n-- > 0 && bytes > 1;) {
        size_t at = dice() % bytes, length = 1 + dice() % 40;
        if (length > bytes - at) length = bytes - at;
        switch (dice() % 3) {
        case 0:
            for (size_t i = 0; i < length % 8 + 1 && at + i < bytes; i++)
                text[at + i] = dice() % 8 ? letters[dice() % (sizeof letters - 1)] : (char)dice();
            break;
        case 1:
            memmove(text + at, text + at + length, bytes - at - length);
            bytes -= length;
            break;
        default:
            if (bytes + length > room) break;
            memmove(text + at + length, text + at, bytes - at);
            bytes += length;
        }
    }
    return bytes;
}

static void put_damaged(const char *path, const char *original)
{
    size_t bytes = strlen(original), room = 2 * bytes + 512;
    char *text = pl_alloc(room, 1);
    assert_non_null(text);
    memcpy(text, original, bytes);
    fake_root_put_bytes(path, text, damage(text, bytes, room));
    pl_free(text);
}

static void check(const pl_doctor_process *p)
{
    pl_doctor_view v;
    pl_error err = {0};
    pl_str text = {0}, json = {0};
    assert_int_equal(pl_doctor_view_build(p, &v, &err), PL_OK);
    uint32_t maps = 0;
    for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++) maps += v.row[k].maps;
    assert_int_equal(maps, p->map_count);
    pl_doctor d = {.id = p->id, .asked_id = 77, .looks = 1, .last = {.known = true, .process = *p}};
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_REPORT_LONG, &d.last, &text, &err), PL_OK);
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_JSON, &d.last, &json, &err), PL_OK);
    json_error_t why;
    json_t *whole = json_loads(json.data, 0, &why);
    /* jansson has no numbers above 2^63: sums of absurd sizes may exceed it */
    if (!whole && json_error_code(&why) != json_error_numeric_overflow)
        fail_msg("line %d: %s; repeat with seed %llu", why.line, why.text, (unsigned long long)seed);
    json_decref(whole);
    pl_str_deinit(&text);
    pl_str_deinit(&json);
    pl_doctor_view_deinit(&v);
}

static void test_damaged_texts(void **state)
{
    (void)state;
    state_of_dice = seed;
    uint64_t blocks = pl_alloc_live_blocks();
    size_t readable = 0;
    fixture_put();
    for (int round = 0; round < ROUNDS; round++) {
        pl_doctor_process p;
        pl_error err = {0};
        put_damaged("/proc/77/smaps", fixture_smaps);
        put_damaged("/proc/77/status", fixture_status);
        put_damaged("/proc/77/task/78/syscall", "-1 0x7f0005800f00 0x7f000a000545\n");
        put_damaged("/proc/77/stat", "77 (ser) ver) S 1 77 77 0 -1 0 1 2 3 4 5 6 7 8 20 0 3 0 4242 84992000 675 0 0\n");
        pl_status status = pl_doctor_process_read(fake_root, 77, &p, &err);
        if (status == PL_OK) {
            readable++;
            check(&p);
            pl_doctor_process_deinit(&p);
        } else if (!err.text[0]) {
            fail_msg("no sentence; repeat with seed %llu", (unsigned long long)seed);
        }
        pl_doctor_member *list;
        size_t count;
        if (pl_doctor_tree_read(fake_root, 77, true, &list, &count, &err) == PL_OK) pl_free(list);
    }
    assert_true(readable > ROUNDS / 4);
    assert_int_equal(pl_alloc_live_blocks(), blocks);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_damaged_texts, fake_root_begin, fake_root_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
