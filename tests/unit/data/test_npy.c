/* Arrays of NumPy: headers as numpy.save has written them (versions 1.0 to 3.0, bytes copied from its files), what is
 * refused, and random damage, which must never be taken for an array that the file cannot hold. */
#include "unit/data/scratch.h"

#include "data/infer/npy.h"
#include "data/infer/rows.h"
#include "support/program.h"
#include "support/seed.h"

static scratch_random numbers;
static pl_error err;

/* Header, then `more` bytes. */
static pl_status parse(int version, const char *text, uint64_t more, pl_npy_array *a)
{
    char head[PL_NPY_TEXT_MAX] = "\x93NUMPY";
    const size_t fixed = version == 1 ? 10 : 12, bytes = strlen(text);
    head[6] = (char)version;
    head[8] = (char)(bytes & 255), head[9] = (char)(bytes >> 8);
    memcpy(head + fixed, text, bytes);
    return pl_npy_parse("a.npy", head, fixed + bytes, fixed + bytes + more, a, &err);
}

static void what_numpy_writes(void **state)
{
    static const struct {
        const char *text;
        pl_npy_number number;
        uint32_t rank;
        uint64_t dim[3], bytes;
    } known[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                 \n", PL_NPY_F32, 2, {2, 3}, 24},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }\n", PL_NPY_F64, 1, {5}, 40},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", PL_NPY_U8, 0, {0}, 1},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4), }\n", PL_NPY_I64, 2, {0, 4}, 0},
        {"{'shape': (2, 1, 3), 'fortran_order': False, 'descr': '<f2'}", PL_NPY_F16, 3, {2, 1, 3}, 12},
        {"{\"descr\":\"<i4\",\"fortran_order\":False,\"shape\":(4L,1L)}", PL_NPY_I32, 2, {4, 1}, 16},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (7,)}", PL_NPY_U16, 1, {7}, 14},
    };
    (void)state;
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            pl_npy_array a;
            if (parse(version, known[i].text, known[i].bytes, &a)) fail_msg("%s: %s", known[i].text, err.text);
            assert_int_equal(a.number, known[i].number);
            assert_int_equal(a.rank, known[i].rank);
            assert_memory_equal(a.dim, known[i].dim, known[i].rank * sizeof *a.dim);
            assert_int_equal(a.at, (version == 1 ? 10 : 12) + strlen(known[i].text));
            assert_int_equal(parse(version, known[i].text, known[i].bytes + 1, &a), PL_E_DATA);
            assert_says(&err, "the file is damaged or was not written to its end");
        }
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } known[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "Fortran's order"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "big endian"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }", "its dtype is \"<c8\""},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", "its dtype is \"|O\""},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", "no plain one"},
        {"{'descr': '<f4', 'fortran_order': False, }", "lacks descr"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3), }", "one twice"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", "no tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "more than 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }", "more than a file holds"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "whole numbers"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "damaged"},
        {"", "is no .npy file"},
        {"   \n", "damaged"},
    };
    (void)state;
    pl_npy_array a;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(parse(1, known[i].text, 24, &a), PL_E_DATA);
        assert_says(&err, known[i].says);
    }
    assert_int_equal(parse(4, "{}", 0, &a), PL_E_DATA);
    assert_says(&err, "a version that is not known");
    assert_int_equal(pl_npy_parse("a.npy", "\x93NUMPX\x01\x00\x02\x00{}", 12, 12, &a, &err), PL_E_DATA);
    assert_says(&err, "is no .npy file");
    assert_int_equal(pl_npy_parse("a.npy", "\x93NUMPY\x01\x00\xff\xff{}", 12, 12, &a, &err), PL_E_DATA);
    assert_says(&err, "longer than");
}

/* Whatever stands there: it is refused, or needs exactly the bytes that there are. */
static void damage(void **state)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    \n";
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char torn[sizeof text];
        pl_npy_array a;
        memcpy(torn, text, sizeof text);
        for (uint32_t k = scratch_next(&numbers, 3) + 1; k > 0; k--)
            torn[scratch_next(&numbers, sizeof text - 1)] = (char)(scratch_next(&numbers, 95) + 32);
        if (parse(1, torn, 24, &a) != PL_OK) continue;
        uint64_t bytes = pl_npy_number_bytes(a.number);
        for (uint32_t k = 0; k < a.rank; k++) bytes *= a.dim[k];
        assert_int_equal(bytes, 24);
    }
}

/* A file is looked at once and read row by row: in between it may become another. */
static void a_file_that_changes(void **state)
{
    static const char text[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    const pl_infer_port port = {.name = "x", .dtype = PL_DTYPE_F32, .rank = 1, .dim = {3}};
    char file[10 + sizeof text - 1 + 24] = "\x93NUMPY\x01", scratch[PL_ROWS_SCRATCH_BYTES];
    const float wanted[] = {1.5f, -2, 3e38f, 0, 1e-42f, 7};
    float row[3];
    pl_rows rows;
    (void)state;
    file[8] = sizeof text - 1;
    memcpy(file + 10, text, sizeof text - 1);
    memcpy(file + 10 + sizeof text - 1, wanted, sizeof wanted);
    const char *path = scratch_file("x.npy", file, sizeof file);
    if (pl_rows_open(path, &port, &rows, &err)) fail_msg("%s", err.text);
    assert_int_equal(rows.count, 2);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(pl_rows_read(&rows, i, row, scratch, &err), PL_OK);
        assert_memory_equal(row, wanted + 3 * i, sizeof row);
    }
    (void)scratch_file("x.npy", file, sizeof file - 1);
    assert_int_equal(pl_rows_read(&rows, 0, row, scratch, &err), PL_E_DATA);
    assert_says(&err, "was changed while it was read");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pl_rows_read(&rows, 0, row, scratch, &err), PL_E_DATA);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_numpy_writes), cmocka_unit_test(what_is_refused),
                                       cmocka_unit_test(damage), cmocka_unit_test(a_file_that_changes)};
    numbers = (scratch_random){.key = pl_philox_init(test_seed_said(argc, argv), 29)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
