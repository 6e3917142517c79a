/* Tensors of a folder and of GGUF files against the formula that their numbers come from: in every encoding, with small
 * and large stagings, without a request for memory; and files that change, are damaged, or hold numbers too large. */
#include "unit/store/scratch_folder.h"

#include <math.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/narrow.h"
#include "pretrained/pretrained.h"
#include "support/program.h"
#include "support/tiny_model.h"

enum { NUMBERS_MAX = TINY_VOCAB * TINY_INNER, STAGING_BYTES = 1 << 16 };

static _Alignas(64) unsigned char into[NUMBERS_MAX * 4], again[NUMBERS_MAX * 4], staging[STAGING_BYTES];

static const char *new_folder(const char *name)
{
    const char *folder = in_folder("%s", name);
    assert_int_equal(mkdir(folder, 0777), 0);
    tiny_write_folder(folder);
    return folder;
}

static const char *new_gguf(const char *name, uint32_t type)
{
    const char *path = in_folder("%s", name);
    size_t bytes;
    unsigned char *data = tiny_make_gguf(type, &bytes);
    write_bytes(path, data, bytes);
    free(data);
    return path;
}

static pl_pretrained *opened(const char *path)
{
    pl_error err = {0};
    pl_pretrained *p;
    if (pl_pretrained_open(path, &p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

static void read_as(const pl_pretrained *p, const pl_pretrained_tensor *t, pl_encoding to, size_t room)
{
    pl_error err = {0};
    if (pl_pretrained_read(p, t, to, into, staging, room, &err) != PL_OK) fail_msg("%s", err.text);
}

/* Every tensor, f32: how far the largest number is off. */
static double largest_error(const char *path, size_t room)
{
    pl_pretrained *p = opened(path);
    double most = 0;
    assert_int_equal(pl_pretrained_tensor_count(p), TINY_TENSORS);
    pl_alloc_seal(1);
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const tiny_tensor t = tiny_tensor_at(i);
        const pl_pretrained_tensor *got = pl_pretrained_tensor_find(p, t.name);
        assert_non_null(got);
        assert_int_equal(got->rows, t.rows);
        assert_int_equal(got->columns, t.columns);
        read_as(p, got, PL_ENCODING_F32, room);
        for (int64_t k = 0; k < t.rows * t.columns; k++)
            most = fmax(most, fabs((double)((float *)into)[k] - (double)tiny_number(&t, k)));
    }
    pl_alloc_seal(0);
    pl_pretrained_close(p);
    return most;
}

static void test_numbers(void **state)
{
    (void)state;
    for (size_t room = PL_TENSOR_STAGING_MIN; room <= STAGING_BYTES; room += 30720) {
        assert_true(largest_error(room == PL_TENSOR_STAGING_MIN ? new_folder("hf") : in_folder("hf"), room) == 0);
        assert_true(largest_error(new_gguf("f32.gguf", 0), room) == 0);
        assert_true(largest_error(new_gguf("f16.gguf", 1), room) == 0);
        assert_true(largest_error(new_gguf("q8_0.gguf", 8), room) < 1.0 / 200); /* half of 1/127 */
        assert_true(largest_error(new_gguf("q4_0.gguf", 2), room) < 1.0 / 7);
    }
}

/* What is read in an encoding is what the numbers become in it. */
static void check_encoding(const pl_pretrained *p, pl_encoding to)
{
    const pl_pretrained_tensor *t = pl_pretrained_tensor_find(p, "model.layers.1.self_attn.q_proj.weight");
    const int64_t row_bytes = pl_encoding_row_bytes(to, t->columns);
    read_as(p, t, PL_ENCODING_F32, STAGING_BYTES);
    for (int64_t row = 0; row < t->rows; row++)
        pl_encoding_narrow(to, (float *)into + row * t->columns, t->columns, again + row * row_bytes);
    read_as(p, t, to, PL_TENSOR_STAGING_MIN);
    assert_memory_equal(into, again, (size_t)(t->rows * row_bytes));
}

static void test_encodings(void **state)
{
    const char *paths[] = {new_folder("encodings"), new_gguf("encodings.gguf", 1)};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        pl_pretrained *p = opened(paths[i]);
        for (pl_encoding to = 0; to < PL_ENCODING_COUNT; to++)
            if (pl_encoding_is_written(to)) check_encoding(p, to);
        pl_pretrained_close(p);
    }
}

/* Packed blocks are the file's own; rows of Wq are put in our order, and no other byte changes. */
static void test_blocks_are_copied(void **state)
{
    pl_pretrained *p = opened(new_gguf("copied.gguf", 8));
    const char *names[] = {"model.layers.0.mlp.down_proj.weight", "model.layers.0.self_attn.q_proj.weight"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_find(p, names[i]);
        assert_int_equal(t->encoding, PL_ENCODING_Q8_0);
        assert_int_equal(t->bytes, t->rows * t->columns / 32 * 34);
        read_as(p, t, PL_ENCODING_Q8_0, PL_TENSOR_STAGING_MIN);
        pl_encoding_widen(PL_ENCODING_Q8_0, into, t->rows * t->columns, (float *)again);
        read_as(p, t, PL_ENCODING_F32, STAGING_BYTES);
        assert_memory_equal(into, again, (size_t)(t->rows * t->columns) * 4);
    }
    pl_pretrained_close(p);
}

static void expect(const pl_pretrained *p, const char *tensor, pl_encoding to, size_t room, pl_status status,
                   const char *sentence)
{
    pl_error err = {0};
    const pl_pretrained_tensor *t = pl_pretrained_tensor_find(p, tensor);
    assert_int_equal(pl_pretrained_read(p, t, to, into, staging, room, &err), status);
    if (!strstr(err.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
}

static void test_wrong_calls(void **state)
{
    pl_pretrained *p = opened(new_folder("wrong"));
    (void)state;
    expect(p, "model.norm.weight", PL_ENCODING_F32, PL_TENSOR_STAGING_MIN - 1, PL_E_USAGE, "give at least 4096");
    expect(p, "lm_head.weight", PL_ENCODING_Q4_K, STAGING_BYTES, PL_E_USAGE, "not whole blocks of q4_k");
    pl_pretrained_close(p);
}

static void change_byte(const char *path, long from_end, int to)
{
    FILE *file = fopen(path, "r+b");
    assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
    fputc(to, file);
    fclose(file);
}

/* The last tensor of the file is the last block's down_proj: 32 rows of two blocks of 34 bytes. */
static void test_scales(void **state)
{
    const char *path = new_gguf("scales.gguf", 8);
    (void)state;
    change_byte(path, 33, 0x7e); /* the upper byte of the last scale: NaN */
    pl_pretrained *p = opened(path);
    static const char name[] = "model.layers.1.mlp.down_proj.weight";
    expect(p, name, PL_ENCODING_F32, STAGING_BYTES, PL_E_DATA, "scale is not finite");
    expect(p, name, PL_ENCODING_Q8_0, STAGING_BYTES, PL_E_DATA, "blk.1.ffn_down.weight has a block");
    pl_pretrained_close(p);
}

static void test_numbers_that_do_not_fit(void **state)
{
    const char *folder = new_folder("large"), *path = in_folder("large/model.safetensors");
    (void)state, (void)folder;
    change_byte(path, 1, 0x47); /* the last number of the last tensor: some 1e5 */
    pl_pretrained *p = opened(in_folder("large"));
    static const char name[] = "model.layers.1.mlp.down_proj.weight";
    expect(p, name, PL_ENCODING_F16, STAGING_BYTES, PL_E_DATA, "too large for f16");
    expect(p, name, PL_ENCODING_BF16, STAGING_BYTES, PL_OK, "");
    pl_pretrained_close(p);
    change_byte(path, 1, 0x7f), change_byte(path, 2, 0xc0);
    p = opened(in_folder("large"));
    expect(p, name, PL_ENCODING_Q8_0, STAGING_BYTES, PL_E_DATA, "not finite");
    pl_pretrained_close(p);
}

/* In place, by renaming, and cut short. */
/* ---- mapped ---- */

enum { MAPPED_MAX = 1 << 18 };

static unsigned char *new_pages(void)
{
    void *at = mmap(NULL, MAPPED_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    return at;
}

/* Where a tensor has a place, the bytes there are what is read. Queries and keys of llama have none in GGUF, where the
 * rows are in another order. */
static void check_places(const char *path, bool is_gguf)
{
    pl_error err = {0};
    pl_pretrained *p = opened(path);
    unsigned char *pages = new_pages();
    pl_alloc_seal(1);
    if (pl_pretrained_map(p, pages, MAPPED_MAX, &err) != PL_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(p, i);
        const uint64_t place = pl_pretrained_place(p, t, t->encoding);
        const bool in_order = !is_gguf || !(strstr(t->name, "q_proj") || strstr(t->name, "k_proj"));
        assert_int_equal(place != PL_PRETRAINED_NO_PLACE, in_order);
        assert_true(pl_pretrained_place(p, t, PL_ENCODING_BF16) == PL_PRETRAINED_NO_PLACE);
        if (!in_order) continue;
        read_as(p, t, t->encoding, STAGING_BYTES);
        assert_memory_equal(pages + place, into, t->bytes);
        assert_string_equal(pl_pretrained_file_at(p, place), pl_pretrained_file_path(p, t->file));
    }
    assert_null(pl_pretrained_file_at(p, MAPPED_MAX));
    pl_alloc_seal(0);
    munmap(pages, MAPPED_MAX);
    pl_pretrained_close(p);
}

static void test_mapped(void **state)
{
    (void)state;
    check_places(new_folder("mapped"), false);
    check_places(new_gguf("mapped.gguf", 0), true);
    check_places(new_gguf("mapped16.gguf", 1), true);
    check_places(new_gguf("mapped4.gguf", 2), true);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

/* Who maps no more than needed gets no more, and a file that changes is noticed. */
static void test_mapped_files_that_change(void **state)
{
    pl_error err = {0};
    pl_pretrained *p = opened(new_gguf("mapped_part.gguf", 0));
    unsigned char *pages = new_pages();
    (void)state;
    assert_int_equal(pl_pretrained_map(p, pages, 4096, &err), PL_OK);
    assert_memory_equal(pages, "GGUF", 4);
    assert_int_equal(pl_pretrained_check_mapped(p, &err), PL_OK);
    assert_int_equal(rename(new_gguf("mapped_other.gguf", 0), in_folder("mapped_part.gguf")), 0);
    assert_int_equal(pl_pretrained_check_mapped(p, &err), PL_OK); /* it is still the one that is mapped */
    assert_int_equal(pl_pretrained_map(p, pages, 4096, &err), PL_E_DATA);
    pl_pretrained_close(p);
    p = opened(in_folder("mapped_part.gguf"));
    assert_int_equal(truncate(in_folder("mapped_part.gguf"), 3000), 0);
    assert_int_equal(pl_pretrained_check_mapped(p, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "mapped_part.gguf: was written to while it was in use"));
    munmap(pages, MAPPED_MAX);
    pl_pretrained_close(p);
}

static void test_files_that_change(void **state)
{
    static const char name[] = "model.norm.weight";
    pl_pretrained *p = opened(new_gguf("changes.gguf", 0));
    (void)state;
    expect(p, name, PL_ENCODING_F32, STAGING_BYTES, PL_OK, "");
    assert_int_equal(truncate(in_folder("changes.gguf"), 3000), 0);
    expect(p, name, PL_ENCODING_F32, STAGING_BYTES, PL_E_DATA, "was replaced or written to");
    pl_pretrained_close(p);
    p = opened(new_gguf("renamed.gguf", 0));
    assert_int_equal(rename(new_gguf("other.gguf", 0), in_folder("renamed.gguf")), 0);
    expect(p, name, PL_ENCODING_F32, STAGING_BYTES, PL_E_DATA, "was replaced or written to");
    pl_pretrained_close(p);
    p = opened(new_gguf("touched.gguf", 0));
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, in_folder("touched.gguf"), long_ago, 0), 0);
    expect(p, name, PL_ENCODING_F32, STAGING_BYTES, PL_E_DATA, "was replaced or written to");
    pl_pretrained_close(p);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_blocks_are_copied),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_numbers_that_do_not_fit),
        cmocka_unit_test(test_mapped),
        cmocka_unit_test(test_mapped_files_that_change),
        cmocka_unit_test(test_files_that_change),
    };
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
