/* safetensors: golden bytes written out from the format's description (and read with the Python package by hand), round
 * trips, every way a header can lie, refused memory and failing files. */
#include "unit/store/scratch_folder.h"

#include <errno.h>

#include "base/alloc.h"
#include "store/safetensors.h"
#include "support/program.h"

static pl_st_writer writer;

static float weights[6] = {0, 1, 2, -1, 0.5f, 1e30f};
static uint8_t flags[3] = {1, 0, 255};
static int64_t counter = -2;

static const pl_st_text note = {"format", "pt"};
static pl_st_entry three[] = {
    {"flags", PL_ST_U8, 1, {3}, flags, 3},
    {"w\"1", PL_ST_F32, 2, {2, 3}, weights, 24},
    {"count", PL_ST_I64, 0, {0}, &counter, 8},
};
static const pl_st_list list = {three, 3, &note, 1};

#define HEADER                                                                                                         \
    "{\"__metadata__\":{\"format\":\"pt\"},"                                                                           \
    "\"count\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"                                               \
    "\"w\\\"1\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"                                          \
    "\"flags\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[32,35]}}"

static void test_golden(void **state)
{
    char expected[512], got[512];
    pl_error err = {0};
    size_t json = strlen(HEADER), data = (8 + json + 63) / 64 * 64;
    uint64_t checksum;
    (void)state;
    memset(expected, ' ', sizeof expected);
    memset(expected, 0, 8);
    expected[0] = (char)((data - 8) & 255), expected[1] = (char)((data - 8) >> 8);
    memcpy(expected + 8, HEADER, json);
    memcpy(expected + data, &counter, 8);
    memcpy(expected + data + 8, weights, 24);
    memcpy(expected + data + 32, flags, 3);

    assert_int_equal(pl_safetensors_check(&list, &err), PL_OK);
    assert_int_equal(pl_safetensors_header_bytes(&list), data);
    assert_int_equal(pl_safetensors_file_bytes(&list), data + 35);
    pl_alloc_seal(1);
    assert_int_equal(pl_safetensors_write(&writer, in_folder("golden"), &list, &checksum, &err), PL_OK);
    pl_alloc_seal(0);
    assert_int_equal(read_bytes(in_folder("golden"), got, sizeof got), data + 35);
    assert_memory_equal(got, expected, data + 35);
    assert_int_equal(checksum, pl_checksum_of(expected, data + 35));
}

static void test_round_trip(void **state)
{
    pl_safetensors *s;
    pl_error err = {0};
    float back[6];
    pl_st_entry entry = three[1];
    (void)state;
    assert_int_equal(pl_safetensors_write(&writer, in_folder("a"), &list, NULL, &err), PL_OK);
    assert_int_equal(pl_safetensors_open(in_folder("a"), &s, &err), PL_OK);
    assert_int_equal(pl_safetensors_count(s), 3);
    assert_string_equal(pl_safetensors_at(s, 0)->name, "count");
    assert_string_equal(pl_safetensors_metadata(s, "format"), "pt");
    assert_null(pl_safetensors_metadata(s, "other"));
    assert_null(pl_safetensors_find(s, "other"));
    assert_int_equal(pl_safetensors_find(s, "flags")->bytes, 3);
    entry.data = back;
    assert_int_equal(pl_safetensors_read(s, &entry, &err), PL_OK);
    assert_memory_equal(back, weights, sizeof weights);
    assert_int_equal(pl_safetensors_match_all(s, &list, &err), PL_OK);
    pl_safetensors_destroy(s);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void test_mismatch_names_both_shapes(void **state)
{
    pl_safetensors *s;
    pl_error err = {0};
    pl_st_entry wrong = {"w\"1", PL_ST_F32, 2, {3, 2}, weights, 24}, missing = {"v", PL_ST_BF16, 1, {4}, weights, 8};
    pl_st_list fewer = {three, 2, NULL, 0};
    (void)state;
    assert_int_equal(pl_safetensors_write(&writer, in_folder("b"), &list, NULL, &err), PL_OK);
    assert_int_equal(pl_safetensors_open(in_folder("b"), &s, &err), PL_OK);
    assert_int_equal(pl_safetensors_read(s, &wrong, &err), PL_E_DATA);
    assert_says(err.text, "F32 [2, 3]");
    assert_says(err.text, "F32 [3, 2]");
    wrong.dtype = PL_ST_F16;
    assert_int_equal(pl_safetensors_match(s, &wrong, &err), PL_E_DATA);
    assert_int_equal(pl_safetensors_read(s, &missing, &err), PL_E_DATA);
    assert_says(err.text, "has no tensor \"v\"; BF16 [4] was expected");
    assert_int_equal(pl_safetensors_match_all(s, &fewer, &err), PL_E_DATA);
    assert_says(err.text, "\"count\" that was not expected");
    pl_safetensors_destroy(s);
}

/* More numbers than one buffer holds, from f32 to each and back; a file in 16 bits is widened exactly. */
static void test_other_precisions(void **state)
{
    enum { COUNT = 9001 };
    static float wide[COUNT], back[COUNT];
    static uint16_t narrow[COUNT];
    static const pl_st_dtype dtypes[] = {PL_ST_BF16, PL_ST_F16};
    (void)state;
    for (int i = 0; i < COUNT; i++) wide[i] = (float)(i - 4000) * 1.2345f;
    for (int k = 0; k < 2; k++) {
        pl_safetensors *s;
        pl_error err = {0};
        const pl_real real = k ? PL_REAL_F16 : PL_REAL_BF16;
        pl_st_entry entry = {"x", PL_ST_F32, 1, {COUNT}, wide, sizeof wide};
        const pl_st_list one = {&entry, 1, NULL, 0};
        assert_int_equal(pl_safetensors_write(&writer, in_folder("wide"), &one, NULL, &err), PL_OK);
        assert_int_equal(pl_safetensors_open(in_folder("wide"), &s, &err), PL_OK);
        entry = (pl_st_entry){"x", dtypes[k], 1, {COUNT}, narrow, sizeof narrow};
        assert_int_equal(pl_safetensors_read(s, &entry, &err), PL_E_DATA);
        entry.converts = true;
        pl_alloc_seal(1);
        assert_int_equal(pl_safetensors_match_all(s, &one, &err), PL_OK);
        assert_int_equal(pl_safetensors_read(s, &entry, &err), PL_OK);
        pl_alloc_seal(0);
        pl_safetensors_destroy(s);
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(narrow[i], k ? pl_f16_of_f32(wide[i]) : pl_bf16_of_f32(wide[i]));

        assert_int_equal(pl_safetensors_write(&writer, in_folder("narrow"), &one, NULL, &err), PL_OK);
        assert_int_equal(pl_safetensors_open(in_folder("narrow"), &s, &err), PL_OK);
        entry = (pl_st_entry){"x", PL_ST_F32, 1, {COUNT}, back, sizeof back, .converts = true};
        assert_int_equal(pl_safetensors_read(s, &entry, &err), PL_OK);
        pl_safetensors_destroy(s);
        for (int i = 0; i < COUNT; i++) assert_true(back[i] == pl_real_get(real, narrow, i));
    }
}

/* What is finite stays so, or is told; whole numbers are not converted. */
static void test_too_large_for_a_precision(void **state)
{
    pl_safetensors *s;
    pl_error err = {0};
    uint16_t narrow[6];
    pl_st_entry entry = {"w\"1", PL_ST_F16, 2, {2, 3}, narrow, sizeof narrow, .converts = true},
                count = {"count", PL_ST_F32, 0, {0}, narrow, 4, .converts = true};
    (void)state;
    assert_int_equal(pl_safetensors_write(&writer, in_folder("b"), &list, NULL, &err), PL_OK);
    assert_int_equal(pl_safetensors_open(in_folder("b"), &s, &err), PL_OK);
    assert_int_equal(pl_safetensors_read(s, &entry, &err), PL_E_DATA);
    assert_says(err.text, "tensor w\"1 holds a number that is not finite or too large for f16");
    entry.dtype = PL_ST_BF16;
    assert_int_equal(pl_safetensors_read(s, &entry, &err), PL_OK);
    assert_int_equal(pl_safetensors_read(s, &count, &err), PL_E_DATA);
    assert_says(err.text, "is I64");
    pl_safetensors_destroy(s);
}

/* Numbers come and go with a precision; nothing else does. */
static void test_what_may_miss_and_what_may_be_more(void **state)
{
    pl_safetensors *s;
    pl_error err = {0};
    float number = 5, kept = 7;
    pl_st_entry some[] = {three[0], three[1], three[2], {"number", PL_ST_F32, 1, {1}, &number, 4}};
    pl_st_entry others[] = {three[0], three[2]};
    pl_st_list four = {some, 4, NULL, 0}, more = {some, 3, NULL, 0, .more_numbers = true}, fewer = more;
    (void)state;
    assert_int_equal(pl_safetensors_write(&writer, in_folder("b"), &four, NULL, &err), PL_OK);
    assert_int_equal(pl_safetensors_open(in_folder("b"), &s, &err), PL_OK);
    assert_int_equal(pl_safetensors_match_all(s, &more, &err), PL_OK);
    fewer.entries = others, fewer.count = 2;
    assert_int_equal(pl_safetensors_match_all(s, &fewer, &err), PL_E_DATA);
    assert_says(err.text, "that was not expected");
    more.more_numbers = false;
    assert_int_equal(pl_safetensors_match_all(s, &more, &err), PL_E_DATA);
    assert_says(err.text, "\"number\" that was not expected");
    pl_st_entry other = {"other", PL_ST_F32, 1, {1}, &kept, 4};
    assert_int_equal(pl_safetensors_read(s, &other, &err), PL_E_DATA);
    other.optional = some[3].optional = true;
    assert_int_equal(pl_safetensors_read(s, &other, &err), PL_OK);
    assert_true(kept == 7);
    some[3].data = &kept;
    assert_int_equal(pl_safetensors_read(s, &some[3], &err), PL_OK);
    assert_true(kept == 5);
    some[3].dtype = PL_ST_I32;
    assert_int_equal(pl_safetensors_match_all(s, &four, &err), PL_E_DATA);
    some[3].name = "gone";
    more.more_numbers = four.more_numbers = true;
    assert_int_equal(pl_safetensors_match_all(s, &four, &err), PL_OK);
    pl_safetensors_destroy(s);
}

static void test_list_is_checked(void **state)
{
    pl_error err = {0};
    char longest[PL_ST_TEXT_MAX + 2];
    memset(longest, '"', sizeof longest);
    longest[PL_ST_TEXT_MAX + 1] = 0;
    pl_st_entry bad[] = {
        {"", PL_ST_U8, 1, {3}, flags, 3},      {"__metadata__", PL_ST_U8, 1, {3}, flags, 3},
        {"tab\t", PL_ST_U8, 1, {3}, flags, 3}, {"\xff", PL_ST_U8, 1, {3}, flags, 3},
        {longest, PL_ST_U8, 1, {3}, flags, 3}, {"a", PL_ST_U8, 9, {3}, flags, 3},
        {"a", PL_ST_F32, 1, {3}, flags, 3},    {"a", PL_ST_F32, 2, {UINT64_MAX / 2, 8}, flags, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pl_st_list one = {&bad[i], 1, NULL, 0};
        assert_int_equal(pl_safetensors_check(&one, &err), PL_E_USAGE);
    }
    pl_st_entry twins[] = {three[0], three[0]};
    assert_int_equal(pl_safetensors_check(&(pl_st_list){twins, 2, NULL, 0}, &err), PL_E_USAGE);
    assert_says(err.text, "two tensors are named flags");
    /* The longest name that is allowed, every byte of it escaped, still fits the piece. */
    longest[PL_ST_TEXT_MAX] = 0;
    pl_st_entry wide = {longest, PL_ST_U8, 8, {1, 1, 1, 1, 1, 1, 1, 3}, flags, 3};
    pl_st_text wide_note = {longest, longest};
    pl_st_list fits = {&wide, 1, &wide_note, 1};
    assert_int_equal(pl_safetensors_check(&fits, &err), PL_OK);
    assert_int_equal(pl_safetensors_write(&writer, in_folder("c"), &fits, NULL, &err), PL_OK);
    pl_safetensors *s;
    assert_int_equal(pl_safetensors_open(in_folder("c"), &s, &err), PL_OK);
    assert_non_null(pl_safetensors_find(s, longest));
    pl_safetensors_destroy(s);
}

/* A file of this header and so many bytes of data, parsed from memory. */
static pl_status parse(const char *json, uint64_t data_bytes, pl_error *err)
{
    static char memory[4096];
    pl_safetensors *s;
    size_t n = strlen(json);
    for (int i = 0; i < 8; i++) memory[i] = (char)(n >> (8 * i));
    memcpy(memory + 8, json, n);
    pl_status status = pl_safetensors_parse(memory, 8 + n, 8 + n + data_bytes, "FILE", &s, err);
    if (status == PL_OK)
        pl_safetensors_destroy(s);
    else
        assert_null(s);
    return status;
}

static void test_hostile_headers(void **state)
{
#define T(body) "{\"t\":{" body "}}"
    static const struct {
        const char *json, *says;
        uint64_t data_bytes;
    } bad[] = {
        {"", "does not begin with '{'", 0},
        {"[]", "does not begin with '{'", 0},
        {" {}", "does not begin with '{'", 0},
        {"{", "not valid JSON", 0},
        {"{}x", "not valid JSON", 0},
        {"{\"a\":1,\"a\":1}", "duplicate", 0},
        {"{\"t\":7}", "an object with dtype", 0},
        {"{\"\":{}}", "empty name", 0},
        {"{\"\\u001b[2J\":{}}", "control character", 0},
        {T(""), "dtype is missing", 0},
        {T("\"dtype\":4"), "dtype is missing", 0},
        {T("\"dtype\":\"f32\""), "dtype \"f32\" is unknown", 0},
        {T("\"dtype\":\"F32\""), "shape is missing", 0},
        {T("\"dtype\":\"F32\",\"shape\":[1.0]"), "something other than whole numbers", 0},
        {T("\"dtype\":\"F32\",\"shape\":[-1]"), "something other than whole numbers", 0},
        {T("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1]"), "more than 8 dimensions", 0},
        {T("\"dtype\":\"F32\",\"shape\":[4611686018427387904]"), "more bytes than a file", 0},
        {T("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296]"), "more bytes than a file", 0},
        {T("\"dtype\":\"F32\",\"shape\":[99999999999999999999]"), "holds something other than whole numbers", 0},
        {T("\"dtype\":\"F32\",\"shape\":[1]"), "data_offsets are not two", 4},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]"), "data_offsets are not two", 4},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]"), "data_offsets are not two", 4},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), "do not lie in", 4},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), "do not lie in the 3 bytes", 3},
        {T("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]"), "F32 [2] needs 8 bytes", 4},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1"), "more than dtype", 4},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"),
         "tensors end at byte 4 of the data, but the file has 5", 5},
        {T("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]"), "neither overlap nor leave holes", 5},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
         "\"data_offsets\":[2,6]}}",
         "\"b\" begins at byte 2 of the data, but the one before ends at 4", 6},
        {"{\"__metadata__\":3}", "__metadata__ is not an object", 0},
        {"{\"__metadata__\":{\"a\":3}}", "metadata \"a\" is not text", 0},
    };
    static const struct {
        const char *json;
        uint64_t data_bytes;
    } good[] = {
        {"{}", 0},
        {"{}    ", 0},
        {T("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]"), 4},
        {T("\"dtype\":\"F32\",\"shape\":[0,4611686018427387904,8],\"data_offsets\":[0,0]"), 0},
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]},\"e\":{\"dtype\":\"U8\",\"shape\":[0],"
         "\"data_offsets\":[2,2]},\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
         4},
    };
    pl_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pl_error_clear(&err);
        if (parse(bad[i].json, bad[i].data_bytes, &err) != PL_E_DATA) fail_msg("accepted: %s", bad[i].json);
        assert_says(err.text, "FILE");
        assert_says(err.text, bad[i].says);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (parse(good[i].json, good[i].data_bytes, &err) != PL_OK) fail_msg("%s: %s", good[i].json, err.text);
}

static void test_lengths_that_lie(void **state)
{
    pl_error err = {0};
    pl_safetensors *s;
    unsigned char huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'};
    (void)state;
    assert_int_equal(pl_safetensors_parse(huge, 16, 16, "FILE", &s, &err), PL_E_DATA);
    assert_says(err.text, "says that its header has 18446744073709551615 bytes");
    assert_int_equal(pl_safetensors_parse(huge, 7, 7, "FILE", &s, &err), PL_E_DATA);
    memset(huge, 0, 8);
    huge[3] = 1; /* 16 MiB, in a file said to be large enough */
    assert_int_equal(pl_safetensors_parse(huge, 16, 1 << 30, "FILE", &s, &err), PL_E_DATA);
    assert_says(err.text, "at most 4194304 are read");
    assert_int_equal(pl_safetensors_open(in_folder("absent"), &s, &err), PL_E_DATA);
    assert_int_equal(pl_safetensors_open(test_folder, &s, &err), PL_E_DATA);
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(pl_safetensors_open(in_folder("pipe"), &s, &err), PL_E_DATA);
}

/* The deepest and the most crowded headers that the bound lets through are refused without harm. */
static void test_large_hostile_headers(void **state)
{
    static char memory[PL_ST_HEADER_MAX + 8];
    const char *fillings[] = {"[", "0,", "\"a\":{", "{\"a\":"};
    pl_error err = {0};
    pl_safetensors *s;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        size_t n = strlen(fillings[i]);
        for (size_t at = 8; at + n <= sizeof memory; at += n) memcpy(memory + at, fillings[i], n);
        memcpy(memory, "\0\0\x40\0\0\0\0\0", 8);
        memcpy(memory + 8, "{\"a\":[", 6);
        assert_int_equal(pl_safetensors_parse(memory, sizeof memory, sizeof memory, "FILE", &s, &err), PL_E_DATA);
    }
}

/* Cut after any byte the file is refused. */
static void test_truncated_anywhere(void **state)
{
    char whole[512];
    pl_error err = {0};
    pl_safetensors *s;
    (void)state;
    assert_int_equal(pl_safetensors_write(&writer, in_folder("d"), &list, NULL, &err), PL_OK);
    size_t bytes = read_bytes(in_folder("d"), whole, sizeof whole);
    for (size_t n = 0; n < bytes; n++) {
        write_bytes(in_folder("cut"), whole, n);
        assert_int_equal(pl_safetensors_open(in_folder("cut"), &s, &err), PL_E_DATA);
        assert_says(err.text, "cut: ");
    }
}

static void test_refused_memory(void **state)
{
    pl_error err = {0};
    pl_safetensors *s;
    int failures = 0;
    (void)state;
    assert_int_equal(pl_safetensors_write(&writer, in_folder("e"), &list, NULL, &err), PL_OK);
    for (int forever = 0; forever < 2; forever++) {
        for (uint64_t n = 1;; n++, failures++) {
            pl_alloc_fail_at(n, forever);
            pl_status status = pl_safetensors_open(in_folder("e"), &s, &err);
            pl_alloc_fail_at(0, 0);
            if (status == PL_OK) break;
            assert_int_equal(status, PL_E_NOMEM);
            assert_int_equal(pl_alloc_live_blocks(), 0);
        }
        pl_safetensors_destroy(s);
    }
    assert_true(failures >= 6);
}

/* Whichever call fails, the file there before stays, and no temporary one is left. */
static void test_failing_files(void **state)
{
    static const pl_io_kind kinds[] = {PL_IO_OPEN, PL_IO_WRITE, PL_IO_FSYNC, PL_IO_RENAME};
    pl_error err = {0};
    pl_safetensors *s;
    pl_st_list other = {three, 2, NULL, 0};
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        for (uint64_t n = 1;; n++) {
            assert_int_equal(pl_safetensors_write(&writer, in_folder("f"), &list, NULL, &err), PL_OK);
            pl_io_fail_at(kinds[k], n, ENOSPC, 0);
            pl_status status = pl_safetensors_write(&writer, in_folder("f"), &other, NULL, &err);
            pl_io_fail_at(kinds[k], 0, 0, 0);
            assert_int_equal(pl_safetensors_open(in_folder("f"), &s, &err), PL_OK);
            size_t count = pl_safetensors_count(s);
            pl_safetensors_destroy(s);
            assert_false(exists(in_folder("f.plimsoll.tmp")));
            if (status == PL_OK) break;
            assert_int_equal(status, PL_E_STORAGE);
            /* After the rename the folder is opened and synced: the second call of either kind. */
            int renamed = n == 2 && (kinds[k] == PL_IO_FSYNC || kinds[k] == PL_IO_OPEN);
            assert_int_equal(count, renamed ? 2 : 3);
        }
    }
    pl_io_fail_at(PL_IO_READ, 2, EIO, 0);
    assert_int_equal(pl_safetensors_open(in_folder("f"), &s, &err), PL_E_STORAGE);
    pl_io_fail_at(PL_IO_READ, 0, 0, 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_mismatch_names_both_shapes),
        cmocka_unit_test(test_other_precisions),
        cmocka_unit_test(test_too_large_for_a_precision),
        cmocka_unit_test(test_what_may_miss_and_what_may_be_more),
        cmocka_unit_test(test_list_is_checked),
        cmocka_unit_test(test_hostile_headers),
        cmocka_unit_test(test_lengths_that_lie),
        cmocka_unit_test(test_large_hostile_headers),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_refused_memory),
        cmocka_unit_test(test_failing_files),
    };
    return cmocka_run_group_tests_name("safetensors", tests, make_test_folder, remove_test_folder);
}
