/* Random layouts: every element of what is made belongs to exactly one block, found element by element; what is put in
 * portions of any size, in windows that turn, lies where it should; what was put is read back. Usage: program [seed] */
#include "unit/store/scratch_folder.h"

#include <inttypes.h>

#include "base/philox.h"
#include "store/block_file.h"
#include "support/program.h"
#include "support/seed.h"

enum { LAYOUTS = 20, KINDS = 3, SETS = 6, BYTES_MAX = 3 << 20, MEMORY = 1 << 20 };

static uint64_t seed, drawn;
static pl_error err;

static uint32_t draw(uint32_t below)
{
    pl_philox p = pl_philox_init(seed, 1);
    uint32_t out[4];
    pl_philox_block(&p, 0, drawn++, 0, out);
    return out[0] % below;
}

/* ---- layouts ---- */

typedef struct random_layout {
    char words[KINDS][PL_BLOCK_AXES_MAX + 1][8], names[SETS][16];
    pl_block_kind kind[KINDS];
    pl_block_dataset set[SETS];
    unsigned char constant[1 << 16];
    pl_block_layout l;
} random_layout;

static random_layout a;

static void draw_kind(uint32_t i)
{
    pl_block_kind *k = &a.kind[i];
    snprintf(a.words[i][PL_BLOCK_AXES_MAX], sizeof a.words[i][0], "k%u", i);
    *k = (pl_block_kind){.name = a.words[i][PL_BLOCK_AXES_MAX], .axes = draw(PL_BLOCK_AXES_MAX + 1)};
    for (uint32_t d = 0; d < k->axes; d++) {
        snprintf(a.words[i][d], sizeof a.words[i][d], "a%u", d);
        uint32_t extent = 1 + draw(d < 2 ? 5 : 9);
        k->axis[d] = (pl_block_axis){a.words[i][d], extent, d + 1 == k->axes ? 1 + draw(extent + 3) : 1};
    }
}

static void draw_set(uint32_t i)
{
    static const pl_dtype dtypes[] = {PL_DTYPE_F32, PL_DTYPE_F16, PL_DTYPE_F64, PL_DTYPE_U8, PL_DTYPE_I32};
    pl_block_dataset *d = &a.set[i];
    snprintf(a.names[i], sizeof a.names[i], draw(2) ? "group/x%u" : "x%u", i);
    *d = (pl_block_dataset){.name = a.names[i], .dtype = dtypes[draw(5)], .kind = i < a.l.kinds ? i : draw(a.l.kinds)};
    const pl_block_kind *k = &a.kind[d->kind];
    for (; d->rank < k->axes; d->rank++) d->shape[d->rank] = k->axis[d->rank].extent;
    for (uint32_t more = draw(3) + (k->axes == 0); more; more--) d->shape[d->rank++] = 1 + draw(12);
    if (draw(8) == 0) d->shape[d->rank++] = 3000; /* so that windows turn */
    while (pl_block_dataset_bytes(d) > BYTES_MAX) d->shape[d->rank - 1] = (d->shape[d->rank - 1] + 1) / 2;
    if (i >= a.l.kinds && draw(5) == 0 && /* each kind makes something */
        pl_block_dataset_bytes(d) <= sizeof a.constant)
        d->constant = a.constant;
}

static void draw_layout(void)
{
    a.l = (pl_block_layout){.text = "{}", .kind = a.kind, .kinds = 1 + draw(KINDS), .dataset = a.set};
    a.l.datasets = a.l.kinds + draw(SETS - KINDS + 1);
    for (uint32_t i = 0; i < a.l.kinds; i++) draw_kind(i);
    for (uint32_t i = 0; i < a.l.datasets; i++) draw_set(i);
    for (size_t i = 0; i < sizeof a.constant; i++) a.constant[i] = (unsigned char)(i * 7 + 1);
}

/* ---- who owns an element ---- */

/* The block by its definition: the place on each axis, the pieces of the last axis counted one by one. */
static uint64_t owner_of(const pl_block_dataset *d, uint64_t element)
{
    const pl_block_kind *k = &a.kind[d->kind];
    uint64_t place[PL_BLOCK_RANK_MAX], at = 0, before = 0;
    for (uint32_t i = d->rank; i-- > 0; element /= d->shape[i]) place[i] = element % d->shape[i];
    for (uint32_t i = 0; i < d->kind; i++) {
        uint64_t blocks = 1;
        for (uint32_t x = 0; x < a.kind[i].axes; x++) {
            uint64_t pieces = 0;
            for (uint64_t p = 0; p < a.kind[i].axis[x].extent; p += a.kind[i].axis[x].step) pieces++;
            blocks *= pieces;
        }
        before += blocks;
    }
    for (uint32_t i = 0; i < k->axes; i++) {
        uint64_t pieces = 0;
        for (uint64_t p = 0; p < k->axis[i].extent; p += k->axis[i].step) pieces++;
        at = at * pieces + place[i] / k->axis[i].step;
    }
    return before + at;
}

static void check_pieces(void)
{
    uint64_t blocks = pl_block_count(&a.l), offset, bytes;
    for (uint32_t i = 0; i < a.l.datasets; i++) {
        const pl_block_dataset *d = &a.set[i];
        uint64_t owned = 0, each = pl_dtype_bytes(d->dtype);
        for (uint64_t b = 0; b < blocks; b++) {
            if (!pl_block_piece(&a.l, b, i, &offset, &bytes)) continue;
            for (uint64_t e = offset / each; e<(offset + bytes) / each; e += bytes / each> 400 ? 97 : 1)
                assert_int_equal(owner_of(d, e), b);
            assert_int_equal(owner_of(d, (offset + bytes) / each - 1), b);
            owned += bytes;
        }
        assert_int_equal(owned, d->constant ? 0 : pl_block_dataset_bytes(d));
    }
}

/* ---- written and read ---- */

static unsigned char byte_at(uint32_t dataset, uint64_t offset)
{
    return (unsigned char)((offset * 2654435761u >> 7) + dataset * 31 + offset / 5);
}

static void put_block(pl_block_file *f, uint64_t block)
{
    static unsigned char portion[BYTES_MAX];
    uint64_t offset, bytes, at[SETS] = {0};
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < a.l.datasets; i++) {
            if (!pl_block_piece(&a.l, block, i, &offset, &bytes) || at[i] == bytes) continue;
            uint64_t left = bytes - at[i], n = draw(3) ? left : 1 + draw((uint32_t)left);
            for (uint64_t k = 0; k < n; k++) portion[k] = byte_at(i, offset + at[i] + k);
            if (pl_block_file_put(f, block, i, at[i], portion, n, &err) != PL_OK) fail_msg("%s", err.text);
            at[i] += n;
            any = any || at[i] < bytes;
        }
        for (uint32_t i = 0; i < a.l.datasets; i++)
            any = any || (pl_block_piece(&a.l, block, i, &offset, &bytes) && at[i] < bytes);
    }
}

static uint64_t write_all(const char *path)
{
    static _Alignas(64) char memory[MEMORY];
    const pl_block_use use = {1, 1 + draw(40)};
    pl_block_sizes sizes;
    pl_block_file *f;
    uint64_t written = 0;
    if (pl_block_file_measure(&a.l, PL_BLOCK_NATIVE, &use, &sizes, &err) != PL_OK) fail_msg("%s", err.text);
    assert_true(sizes.memory_bytes <= MEMORY);
    memset(memory, 0xa5, sizeof memory);
    if (pl_block_file_open(path, &a.l, &use, memory, sizes.memory_bytes, &f, &err) != PL_OK) fail_msg("%s", err.text);
    for (uint64_t b = pl_block_count(&a.l); b-- > 0;) {
        put_block(f, b);
        if (pl_block_file_finish(f, b, &err) != PL_OK) fail_msg("%s", err.text);
        written++;
    }
    if (pl_block_file_close(f, &err) != PL_OK) fail_msg("%s", err.text);
    for (size_t i = sizes.memory_bytes; i < sizeof memory; i++) assert_int_equal((unsigned char)memory[i], 0xa5);
    return written;
}

static void check_read(const char *path, uint64_t written)
{
    static unsigned char found[BYTES_MAX];
    pl_block_reader *r;
    pl_block_checked c;
    if (pl_block_reader_open(path, false, &r, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(pl_block_reader_done(r), written);
    for (uint32_t i = 0; i < a.l.datasets; i++) {
        uint64_t bytes = pl_block_dataset_bytes(&a.set[i]);
        if (pl_block_reader_read(r, i, 0, found, bytes, &err) != PL_OK) fail_msg("%s", err.text);
        for (uint64_t k = 0; k < bytes; k++)
            if (found[k] != (a.set[i].constant ? a.constant[k] : byte_at(i, k)))
                fail_msg("%s: byte %" PRIu64 " is another", a.set[i].name, k);
    }
    if (pl_block_reader_check(r, NULL, NULL, &c, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(c.damaged + c.constants_damaged, 0);
    assert_int_equal(c.checked, written);
    pl_block_reader_close(r);
}

static void test_random_layouts(void **state)
{
    pl_block_found found;
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        const char *path = in_folder("file");
        draw_layout();
        if (pl_block_layout_check(&a.l, &err) != PL_OK) fail_msg("%s", err.text);
        check_pieces();
        if (pl_block_file_make(path, PL_BLOCK_NATIVE, &a.l, &found, &err) != PL_OK) fail_msg("%s", err.text);
        check_read(path, write_all(path));
        unlink(path);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_layouts)};
    seed = test_seed_said(argc, argv);
    use_memory_for_folder();
    return cmocka_run_group_tests_name("random blocks", tests, make_test_folder, remove_test_folder);
}
