/* Random lists of tensors: what is written is read back bit for bit, sizes are as foretold, and a file changed in
 * random places is refused with a sentence or read within its bounds; never a crash, never memory left behind. Usage:
 * program [seed] */
#include "unit/store/scratch_folder.h"

#include "base/alloc.h"
#include "base/philox.h"
#include "store/safetensors.h"
#include "support/program.h"
#include "support/seed.h"

enum { TENSORS_MAX = 40, DATA_MAX = 1 << 16, FILE_MAX = 1 << 18, LISTS = 150, MUTATIONS = 60 };

static uint64_t seed, drawn;
static pl_error err;
static pl_st_writer writer;

/* The next random number in [0, below). */
static uint32_t draw(uint32_t below)
{
    pl_philox p = pl_philox_init(seed, 1);
    uint32_t out[4];
    pl_philox_block(&p, 0, drawn++, 0, out);
    return out[0] % below;
}

typedef struct random_list {
    char names[TENSORS_MAX][64];
    pl_st_entry entries[TENSORS_MAX];
    pl_st_text text;
    pl_st_list list;
    unsigned char data[DATA_MAX];
} random_list;

static random_list a;

static void draw_entry(random_list *r, uint32_t i, uint64_t *used)
{
    static const char *const parts[] = {"weight", "é",   "\\", "\"", "日本", " ",
                                        "/",      "h.0", "{",  "]",  ",",    "\xf0\x9f\x9a\xa2"};
    pl_st_entry *e = &r->entries[i];
    int n = snprintf(r->names[i], sizeof r->names[i], "%u", i);
    for (uint32_t k = draw(5); k; k--)
        n += snprintf(r->names[i] + n, sizeof r->names[i] - (size_t)n, "%s", parts[draw(12)]);
    *e = (pl_st_entry){
        .name = r->names[i], .dtype = (pl_st_dtype)draw(PL_ST_DTYPE_COUNT), .rank = draw(PL_ST_RANK_MAX + 1)};
    for (uint32_t d = 0; d < e->rank; d++) e->shape[d] = draw(20) == 0 ? 0 : 1 + draw(d < 3 ? 9 : 2);
    assert_int_equal(pl_st_tensor_bytes(e->dtype, e->rank, e->shape, &e->bytes), 0);
    if (*used + e->bytes > DATA_MAX) {
        e->rank = 1;
        e->shape[0] = e->bytes = 0;
    }
    e->data = r->data + *used;
    *used += e->bytes;
}

static void draw_list(random_list *r)
{
    uint64_t used = 0;
    uint32_t count = draw(TENSORS_MAX + 1);
    for (uint32_t i = 0; i < count; i++) draw_entry(r, i, &used);
    for (uint64_t i = 0; i < used; i++) r->data[i] = (unsigned char)draw(256);
    r->text = (pl_st_text){"key", "a \"value\""};
    r->list = (pl_st_list){r->entries, count, &r->text, draw(2)};
}

static void check_round_trip(const random_list *r, const char *path)
{
    static unsigned char back[DATA_MAX];
    pl_safetensors *s;
    struct stat st;
    assert_int_equal(pl_safetensors_check(&r->list, &err), PL_OK);
    assert_int_equal(pl_safetensors_write(&writer, path, &r->list, NULL, &err), PL_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, pl_safetensors_file_bytes(&r->list));
    assert_int_equal(pl_safetensors_header_bytes(&r->list) % PL_ST_ALIGNMENT, 0);
    if (pl_safetensors_open(path, &s, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(pl_safetensors_match_all(s, &r->list, &err), PL_OK);
    for (size_t i = 0; i < r->list.count; i++) {
        pl_st_entry e = r->list.entries[i];
        assert_int_equal(pl_safetensors_find(s, e.name)->offset % pl_st_dtype_bytes(e.dtype), 0);
        e.data = back;
        assert_int_equal(pl_safetensors_read(s, &e, &err), PL_OK);
        assert_memory_equal(back, r->list.entries[i].data, e.bytes);
    }
    pl_safetensors_destroy(s);
}

/* What the parser lets through has to be sound: inside the file, in order, with sizes that multiply out. */
static void assert_sound(const pl_safetensors *s, uint64_t file_bytes)
{
    for (size_t i = 0; i < pl_safetensors_count(s); i++) {
        const pl_st_tensor *t = pl_safetensors_at(s, i);
        uint64_t bytes;
        assert_int_equal(pl_st_tensor_bytes(t->dtype, t->rank, t->shape, &bytes), 0);
        assert_int_equal(bytes, t->bytes);
        assert_true(t->offset <= file_bytes && t->bytes <= file_bytes - t->offset);
        assert_true(i == 0 || t->offset == t[-1].offset + t[-1].bytes);
        assert_ptr_equal(pl_safetensors_find(s, t->name), t);
    }
}

static void mutate(unsigned char *file, size_t *bytes, size_t header_bytes)
{
    static const char pieces[] = "{}[]\",:0123456789-e.F BU\\\n";
    for (uint32_t k = 1 + draw(3); k; k--) {
        size_t at = draw(8) == 0 ? draw(8) : draw((uint32_t)header_bytes);
        switch (draw(4)) {
        case 0:
            file[at] = (unsigned char)draw(256);
            break;
        case 1:
            file[at] = (unsigned char)pieces[draw(sizeof pieces - 1)];
            break;
        case 2:
            memmove(file + at, file + at + 1, *bytes - at - 1), file[*bytes - 1] = 0;
            break;
        case 3:
            *bytes = draw(4) ? *bytes : at + 1;
            return;
        }
    }
}

static void check_mutations(const random_list *r, const char *path)
{
    static unsigned char whole[FILE_MAX], changed[FILE_MAX];
    size_t bytes = read_bytes(path, whole, sizeof whole), header = (size_t)pl_safetensors_header_bytes(&r->list);
    for (int i = 0; i < MUTATIONS; i++) {
        pl_safetensors *s;
        size_t n = bytes;
        memcpy(changed, whole, bytes);
        mutate(changed, &n, header);
        pl_error_clear(&err);
        pl_status status = pl_safetensors_parse(changed, n, n, "FILE", &s, &err);
        if (status == PL_OK)
            assert_sound(s, n), pl_safetensors_destroy(s);
        else
            assert_true(status == PL_E_DATA && strncmp(err.text, "FILE: ", 6) == 0);
        assert_int_equal(pl_alloc_live_blocks(), 0);
    }
}

static void test_random_lists(void **state)
{
    (void)state;
    for (int i = 0; i < LISTS; i++) {
        draw_list(&a);
        check_round_trip(&a, in_folder("list"));
        check_mutations(&a, in_folder("list"));
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_lists)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests_name("random tensors", tests, make_test_folder, remove_test_folder);
}
