/* Pages packed and unpacked; and the cache of pages: whatever is found in it is what was put, to the bit; it keeps what
 * is used and no more than it may; a file that is damaged, removed, or left by a process that was killed is no
 * error. */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "unit/data/scratch.h"

#include "data/pages/cache.h"
#include "data/pages/pack.h"
#include "support/program.h"
#include "support/seed.h"

enum { SIZE = 64, PIXELS = SIZE * SIZE, BOUND = 1 << 20, RECIPE = 77, KEYS_MAX = 4096 };

static scratch_random dice;
static pl_error err;
static uint8_t *scratch;

/* ---- packing ---- */

/* Of so many shades, on so many of a hundred pixels, in some of the rows. */
static void make_page(uint8_t *page, uint32_t height, uint32_t width, unsigned shades, unsigned ink, unsigned rows)
{
    uint8_t shade[256];
    for (unsigned i = 0; i < shades; i++) shade[i] = (uint8_t)scratch_next(&dice, 256);
    memset(page, 255, (size_t)height * width);
    for (uint32_t y = 0; y < height; y++) {
        if (scratch_next(&dice, 100) >= rows) continue;
        for (uint32_t x = 0; x < width; x++)
            if (scratch_next(&dice, 100) < ink) page[y * width + x] = shade[scratch_next(&dice, shades)];
    }
}

static void test_packed_and_back(void **state)
{
    (void)state;
    enum { MOST = 300 };
    uint8_t *page = malloc(MOST * MOST), *back = malloc(MOST * MOST), *packed = malloc(pl_pack_bytes(MOST, MOST));
    for (int i = 0; i < 300; i++) {
        const uint32_t most = i % 10 ? 70 : MOST, height = 1 + (uint32_t)scratch_next(&dice, most),
                       width = i % 2 ? height : 1 + (uint32_t)scratch_next(&dice, most);
        const unsigned shades = 1 + (unsigned)scratch_next(&dice, i % 3 ? 20 : 256);
        make_page(page, height, width, shades, (unsigned)scratch_next(&dice, 101), (unsigned)scratch_next(&dice, 101));
        const uint64_t bytes = pl_pack(page, height, width, packed);
        assert_true(bytes <= pl_pack_bytes(height, width));
        memset(back, 1, (size_t)height * width);
        assert_true(pl_unpack(packed, bytes, height, width, back));
        assert_memory_equal(page, back, (size_t)height * width);
        /* One byte less or more is none, nor is one of another size; others may be a page, and break nothing. */
        assert_false(pl_unpack(packed, bytes - 1, height, width, back));
        packed[bytes] = 0;
        assert_false(pl_unpack(packed, bytes + 1, height, width, back));
        packed[scratch_next(&dice, bytes)] ^= (uint8_t)(1 + scratch_next(&dice, 255));
        (void)pl_unpack(packed, bytes, height, width, back);
    }
    free(page), free(back), free(packed);
}

static void test_smallest_pages(void **state)
{
    (void)state;
    uint8_t page[PIXELS], packed[8192];
    memset(page, 255, sizeof page);
    assert_int_equal(pl_pack(page, SIZE, SIZE, packed), 1 + SIZE / 8); /* a bit a row */
    page[5] = 0;
    assert_int_equal(pl_pack(page, SIZE, SIZE, packed), 2 + SIZE / 8 + SIZE / 8); /* one shade needs no number */
}

/* ---- the cache ---- */

static char folder[96];
static bool is_there;

static pl_page_cache *cache_of(uint64_t bound, uint32_t size, uint64_t recipe)
{
    pl_page_cache *c;
    const pl_page_cache_setup setup = {folder, bound, size, size, &pl_page_cache_drawn};
    if (pl_page_cache_create(&setup, &c, &err) != PL_OK) fail_msg("%s", err.text);
    pl_page_cache_open(c, recipe);
    return c;
}

static pl_page_cache *new_cache(uint64_t recipe) { return cache_of(BOUND, SIZE, recipe); }

static void check_quiet(pl_page_cache *c)
{
    char text[PL_PAGE_CACHE_TEXT_BYTES];
    if (pl_page_cache_tell(c, text)) fail_msg("%s", text);
    assert_true(pl_page_cache_is_open(c));
}

static void check_told(pl_page_cache *c, const char *part)
{
    char text[PL_PAGE_CACHE_TEXT_BYTES] = "";
    if (!pl_page_cache_tell(c, text) || !strstr(text, part)) fail_msg("\"%s\" lacks \"%s\"", text, part);
    assert_false(pl_page_cache_tell(c, text)); /* once */
}

/* The page of a number: all of one size when packed, and no two alike. */
static void page_of(uint32_t number, uint8_t page[PIXELS], uint8_t *remarks)
{
    for (uint32_t i = 0; i < PIXELS; i++) page[i] = (uint8_t)(((number + 1) * 2654435761u >> (i % 24)) ^ i);
    *remarks = (uint8_t)(number % 16);
}

static bool find(pl_page_cache *c, uint32_t number)
{
    uint8_t page[PIXELS], want[PIXELS], remarks, of;
    if (!pl_page_cache_get(c, &number, sizeof number, true, scratch, page, &remarks)) return false;
    page_of(number, want, &of);
    assert_memory_equal(page, want, PIXELS);
    assert_int_equal(remarks, of);
    return true;
}

static void keep(pl_page_cache *c, uint32_t number)
{
    uint8_t page[PIXELS], remarks;
    page_of(number, page, &remarks);
    pl_page_cache_put(c, &number, sizeof number, true, scratch, page, remarks);
}

static void begin_empty(void)
{
    char command[160];
    snprintf(folder, sizeof folder, "%s", scratch_path("cache"));
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static uint64_t size_of(const char *name)
{
    struct stat st;
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void check_sizes(void)
{
    if (size_of(PL_PAGE_CACHE_NAME) > BOUND) fail_msg("%llu bytes", (unsigned long long)size_of(PL_PAGE_CACHE_NAME));
    assert_true(size_of(PL_PAGE_CACHE_NAME "-journal") <= PL_CACHE_JOURNAL_BYTES);
}

/* Somebody moved it to another disk, and left a link. */
static void test_a_link_stays(void **state)
{
    (void)state;
    char moved[160], link[160], beside[160];
    struct stat st;
    begin_empty();
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(moved, sizeof moved, "%s/moved", folder);
    snprintf(link, sizeof link, "%s/" PL_PAGE_CACHE_NAME, folder);
    snprintf(beside, sizeof beside, "%s/" PL_PAGE_CACHE_NAME "-journal", folder);
    close(open(moved, O_CREAT | O_WRONLY, 0644)), close(open(beside, O_CREAT | O_WRONLY, 0644));
    assert_int_equal(symlink("moved", link), 0);
    assert_int_equal(pl_page_cache_remove(folder, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "is a link, so neither it nor what it leads to is removed"));
    assert_true(lstat(link, &st) == 0 && stat(link, &st) == 0 && stat(beside, &st) == 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(pl_page_cache_remove(folder, &err), PL_OK);
    assert_true(stat(beside, &st) != 0 && stat(moved, &st) == 0);
}

#define NEEDS_MODULE()                                                                                                 \
    if (!is_there) skip()

/* Those that are asked for all the time are kept, whatever comes beside them; use by use the cache is held against a
 * list in tests/cli/lru_oracle.py. */
static void test_keeps_what_is_used(void **state)
{
    (void)state;
    NEEDS_MODULE();
    enum { HOT = 50, USES = 6000 };
    uint32_t kept = 0;
    begin_empty();
    pl_page_cache *c = new_cache(RECIPE);
    const uint32_t keys = 300 + (uint32_t)scratch_next(&dice, 700);
    for (int i = 0; i < USES; i++) {
        const uint32_t k = (uint32_t)(scratch_next(&dice, 2) ? scratch_next(&dice, keys) : scratch_next(&dice, HOT));
        if (!find(c, k)) keep(c, k);
        if (i % 500 == 0) check_sizes();
        if (i == USES / 2) pl_page_cache_destroy(c), c = new_cache(RECIPE); /* it is known from run to run */
    }
    check_quiet(c);
    for (uint32_t k = 0; k < keys; k++) {
        const bool found = find(c, k);
        if (k < HOT) assert_true(found);
        kept += found;
    }
    assert_true(kept > BOUND * 3 / 4 / 4800); /* a page takes some 4.7 kB */
    pl_page_cache_count count;
    pl_page_cache_read_count(c, &count);
    assert_int_equal(count.facts.values, kept);
    assert_int_equal(count.facts.refused, 0);
    assert_true(count.facts.peak_bytes <= PL_CACHE_MEMORY_BYTES / 2);
    pl_page_cache_destroy(c);
    check_sizes();
}

/* Pages of any sizes and shades: found is what was put, and the file keeps its bound. */
static void test_pages_of_any_size(void **state)
{
    (void)state;
    NEEDS_MODULE();
    static uint8_t pages[200][PIXELS], page[PIXELS], remarks;
    begin_empty();
    pl_page_cache *c = new_cache(RECIPE);
    for (uint32_t k = 0; k < 200; k++)
        make_page(pages[k], SIZE, SIZE, 1 + (unsigned)scratch_next(&dice, 256), (unsigned)scratch_next(&dice, 101), 60);
    for (int i = 0; i < 5000; i++) {
        const uint32_t k = (uint32_t)scratch_next(&dice, 200), text[2] = {k, (uint32_t)scratch_next(&dice, 9)};
        if (pl_page_cache_get(c, text, sizeof text, true, scratch, page, &remarks)) {
            assert_memory_equal(page, pages[k], PIXELS);
            assert_int_equal(remarks, k % 16);
        } else {
            pl_page_cache_put(c, text, sizeof text, true, scratch, pages[k], (uint8_t)(k % 16));
        }
        if (i % 100 == 0) check_sizes();
    }
    check_quiet(c);
    pl_page_cache_destroy(c);
    check_sizes();
}

static void test_keys(void **state)
{
    (void)state;
    NEEDS_MODULE();
    uint8_t page[PIXELS], remarks;
    const uint32_t one = 1;
    begin_empty();
    pl_page_cache *c = new_cache(RECIPE);
    keep(c, 1);
    keep(c, 1); /* by another thread, meanwhile */
    assert_true(find(c, 1) && !find(c, 2));
    assert_false(pl_page_cache_get(c, &one, sizeof one, false, scratch, page, &remarks)); /* a text that goes on */
    assert_false(pl_page_cache_get(c, &one, sizeof one - 1, true, scratch, page, &remarks));
    pl_page_cache *second = new_cache(RECIPE);
    check_told(second, "another run has it");
    assert_false(find(second, 1));
    keep(second, 1);
    pl_page_cache_destroy(second);
    check_quiet(c);
    pl_page_cache_destroy(c);
    c = new_cache(RECIPE + 5); /* drawn otherwise */
    assert_false(find(c, 1));
    pl_page_cache_destroy(c);
}

/* ---- what happens to the file ---- */

static void fill(pl_page_cache *c, uint32_t from, uint32_t count)
{
    for (uint32_t k = from; k < from + count; k++)
        if (!find(c, k)) keep(c, k);
}

/* Found is what was put, or nothing; in the end it works again. */
static void check_after_damage(void)
{
    char text[PL_PAGE_CACHE_TEXT_BYTES];
    for (int run = 0; run < 3; run++) {
        pl_page_cache *c = new_cache(RECIPE);
        fill(c, 0, 150);
        const bool told = pl_page_cache_tell(c, text);
        if (run == 2 && told) fail_msg("%s", text);
        if (run == 2) assert_true(find(c, 149));
        pl_page_cache_destroy(c);
    }
}

static void test_damaged(void **state)
{
    (void)state;
    NEEDS_MODULE();
    char path[160];
    for (int i = 0; i < 40; i++) {
        begin_empty();
        pl_page_cache *c = new_cache(RECIPE);
        fill(c, 0, 150);
        pl_page_cache_destroy(c);
        snprintf(path, sizeof path, "%s/" PL_PAGE_CACHE_NAME, folder);
        const uint64_t bytes = size_of(PL_PAGE_CACHE_NAME);
        if (i % 4 == 0) {
            assert_int_equal(truncate(path, (off_t)scratch_next(&dice, bytes)), 0);
        } else {
            const int many = i % 4 == 1 ? 1 : 200;
            for (int k = 0; k < many; k++) scratch_damage(path, (long)scratch_next(&dice, i % 4 == 3 ? 4096 : bytes));
        }
        check_after_damage();
    }
}

static void test_no_cache_at_all(void **state)
{
    (void)state;
    NEEDS_MODULE();
    begin_empty();
    char path[160];
    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(path, sizeof path, "%s/" PL_PAGE_CACHE_NAME, folder);
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 1000; i++) fprintf(f, "no data base %d\n", i);
    fclose(f);
    pl_page_cache *c = new_cache(RECIPE);
    check_told(c, "made anew");
    fill(c, 0, 10);
    assert_true(find(c, 9));
    pl_page_cache_destroy(c);
    /* A file where its folder should be. */
    begin_empty();
    fclose(fopen(folder, "w"));
    c = new_cache(RECIPE);
    check_told(c, "this run draws all pages");
    fill(c, 0, 10);
    assert_false(find(c, 9));
    pl_page_cache_destroy(c);
}

static void test_removed_meanwhile(void **state)
{
    (void)state;
    NEEDS_MODULE();
    char command[160];
    begin_empty();
    pl_page_cache *c = new_cache(RECIPE);
    fill(c, 0, 100);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    fill(c, 50, 300);
    assert_true(find(c, 349));
    check_quiet(c);
    pl_page_cache_destroy(c);
    assert_int_equal(system(command), 0);
    c = new_cache(RECIPE);
    check_quiet(c);
    assert_false(find(c, 349));
    pl_page_cache_destroy(c);
}

/* The largest pages there are: those that are larger, packed, than a value may be are drawn each time, and counted; all
 * others are kept, however large. */
static void test_large_pages(void **state)
{
    (void)state;
    NEEDS_MODULE();
    enum { LARGE = 896, PAGES = 5, ROUNDS = 3 };
    uint8_t *page = malloc(LARGE * LARGE), *back = malloc(LARGE * LARGE),
            *room = malloc(pl_page_cache_scratch_bytes(LARGE, LARGE));
    uint64_t left_out = 0;
    begin_empty();
    pl_page_cache *c = cache_of(5 << 20, LARGE, RECIPE);
    for (uint32_t k = 0; k < PAGES; k++) {
        uint8_t remarks;
        make_page(page, LARGE, LARGE, 1 + (unsigned)scratch_next(&dice, 256), (unsigned)scratch_next(&dice, 101),
                  (unsigned)scratch_next(&dice, 101));
        if (k == 0) memset(page, 255, LARGE * LARGE); /* certainly kept */
        for (uint32_t i = 0; k == 1 && i < LARGE * LARGE; i++)
            page[i] = (uint8_t)(i * 2654435761u >> 24); /* too large */
        const uint64_t bytes = pl_pack(page, LARGE, LARGE, room) + 9;
        pl_page_cache_put(c, &k, sizeof k, true, room, page, 3);
        const bool found = pl_page_cache_get(c, &k, sizeof k, true, room, back, &remarks);
        assert_int_equal(found, bytes <= PL_CACHE_VALUE_BYTES_MAX);
        if (found) assert_memory_equal(page, back, LARGE * LARGE);
        left_out += !found;
    }
    /* The largest that there is room for: a byte and a bit for each pixel of its rows. */
    memset(page, 255, LARGE * LARGE);
    const uint32_t rows = (PL_CACHE_VALUE_BYTES_MAX - 9 - 256 - LARGE / 8 - 1) * 8 / (9 * LARGE);
    for (uint32_t i = 0; i < rows * LARGE; i++) page[i] = (uint8_t)(i * 2654435761u >> 24);
    assert_in_range(pl_pack(page, LARGE, LARGE, room) + 9, PL_CACHE_VALUE_BYTES_MAX * 9 / 10, PL_CACHE_VALUE_BYTES_MAX);
    memcpy(back, page, LARGE * LARGE);
    for (uint32_t k = 1000; k < 1000 + ROUNDS; k++) {
        uint8_t remarks;
        pl_page_cache_put(c, &k, sizeof k, true, room, back, 3);
        assert_true(pl_page_cache_get(c, &k, sizeof k, true, room, page, &remarks));
        assert_memory_equal(page, back, LARGE * LARGE);
    }
    check_quiet(c);
    pl_page_cache_count count;
    pl_page_cache_read_count(c, &count);
    assert_int_equal(count.left_out, left_out);
    assert_true(left_out > 0 && left_out < PAGES);
    assert_int_equal(count.facts.refused, 0);
    pl_page_cache_destroy(c);
    free(page), free(back), free(room);
}

/* Where it may have less from now on, the file has less. */
static void test_lowered_bound(void **state)
{
    (void)state;
    NEEDS_MODULE();
    for (int i = 0; i < 3; i++) {
        begin_empty();
        pl_page_cache *c = cache_of(4 * BOUND, SIZE, RECIPE);
        fill(c, 0, 100 + (uint32_t)scratch_next(&dice, 500));
        check_quiet(c);
        pl_page_cache_destroy(c);
        const bool is_larger = size_of(PL_PAGE_CACHE_NAME) > BOUND;
        c = new_cache(RECIPE);
        if (is_larger) check_told(c, "made anew");
        check_sizes();
        fill(c, 0, 300);
        assert_true(find(c, 299));
        check_quiet(c);
        check_sizes();
        pl_page_cache_destroy(c);
    }
}

/* A smaller bound by hand: the file has it, and what was used last is in it. */
static void test_shrunk(void **state)
{
    (void)state;
    NEEDS_MODULE();
    begin_empty();
    pl_page_cache *c = cache_of(4 * BOUND, SIZE, RECIPE);
    fill(c, 0, 600);
    for (uint32_t k = 100; k < 150; k++) assert_true(find(c, k));
    pl_page_cache_destroy(c);
    assert_true(size_of(PL_PAGE_CACHE_NAME) > 2 * BOUND);
    if (pl_page_cache_shrink(folder, BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    check_sizes();
    c = new_cache(RECIPE);
    check_quiet(c);
    for (uint32_t k = 100; k < 150; k++) assert_true(find(c, k));
    pl_page_cache_destroy(c);
    assert_int_equal(pl_page_cache_shrink(folder, BOUND / 2, &err), PL_E_USAGE);
    assert_int_equal(pl_page_cache_remove(folder, &err), PL_OK);
    assert_int_equal(pl_page_cache_remove(folder, &err), PL_OK); /* again */
    assert_int_equal(size_of(PL_PAGE_CACHE_NAME), 0);
}

/* Root may write everything but for this: without CAP_DAC_OVERRIDE it may what its bits say. Returns what it had. */
static uint32_t change_rights(uint32_t rights)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data) != 0) return 0;
    const uint32_t bit = 1u << CAP_DAC_OVERRIDE, had = data[0].effective & bit;
    data[0].effective = (data[0].effective & ~bit) | rights;
    (void)!syscall(SYS_capset, &head, data);
    return had;
}

/* That it cannot be written is no damage: it stays as it is. */
static void test_read_only(void **state)
{
    (void)state;
    NEEDS_MODULE();
    char path[160];
    begin_empty();
    pl_page_cache *c = new_cache(RECIPE);
    fill(c, 0, 100);
    pl_page_cache_destroy(c);
    snprintf(path, sizeof path, "%s/" PL_PAGE_CACHE_NAME, folder);
    const uint64_t bytes = size_of(PL_PAGE_CACHE_NAME);
    assert_int_equal(chmod(path, 0444), 0);
    const uint32_t rights = change_rights(0);
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0) { /* a system where they cannot be laid down */
        (void)change_rights(rights);
        skip();
    }
    c = new_cache(RECIPE);
    check_told(c, "its file cannot be written: Permission denied");
    assert_false(pl_page_cache_is_open(c));
    fill(c, 0, 10);
    pl_page_cache_destroy(c);
    (void)change_rights(rights);
    assert_int_equal(size_of(PL_PAGE_CACHE_NAME), bytes);
    assert_int_equal(chmod(path, 0644), 0);
    c = new_cache(RECIPE);
    check_quiet(c);
    assert_true(find(c, 0));
    pl_page_cache_destroy(c);
}

/* Uses pages until it is killed, and tells of each. */
static void use_for_ever(int to)
{
    pl_page_cache *c = new_cache(RECIPE);
    for (uint32_t k = 0;; k = (k + 1) % 600) {
        if (!find(c, k)) keep(c, k);
        if (write(to, "x", 1) != 1) _exit(1);
    }
}

static void kill_after(uint32_t uses)
{
    int ends[2];
    char one;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) use_for_ever(ends[1]);
    close(ends[1]);
    for (uint32_t i = 0; i < uses; i++) assert_int_equal(read(ends[0], &one, 1), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
}

/* Nothing is damaged: what was half done is undone. */
static void test_killed(void **state)
{
    (void)state;
    NEEDS_MODULE();
    begin_empty();
    for (int i = 0; i < 15; i++) {
        uint32_t found = 0;
        kill_after(i ? scratch_next(&dice, 700) : 400);
        pl_page_cache *c = new_cache(RECIPE);
        check_quiet(c);
        for (uint32_t k = 0; k < 600; k++) found += find(c, k);
        assert_true(found > 0); /* of the first, all but the last transaction's */
        check_quiet(c);
        pl_page_cache_destroy(c);
        check_sizes();
    }
}

static int open_module(void **state)
{
    pl_page_cache *c;
    const pl_page_cache_setup setup = {"nowhere", BOUND, SIZE, SIZE, &pl_page_cache_drawn};
    scratch = malloc(pl_page_cache_scratch_bytes(SIZE, SIZE));
    is_there = pl_page_cache_create(&setup, &c, &err) == PL_OK;
    if (is_there)
        pl_page_cache_destroy(c);
    else
        printf("skipped: %s\n", err.text);
    return scratch ? scratch_make(state) : -1;
}

static int close_module(void **state)
{
    free(scratch);
    return scratch_remove(state);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed_and_back),
                                       cmocka_unit_test(test_smallest_pages),
                                       cmocka_unit_test(test_keeps_what_is_used),
                                       cmocka_unit_test(test_pages_of_any_size),
                                       cmocka_unit_test(test_keys),
                                       cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_no_cache_at_all),
                                       cmocka_unit_test(test_removed_meanwhile),
                                       cmocka_unit_test(test_large_pages),
                                       cmocka_unit_test(test_lowered_bound),
                                       cmocka_unit_test(test_shrunk),
                                       cmocka_unit_test(test_read_only),
                                       cmocka_unit_test(test_a_link_stays),
                                       cmocka_unit_test(test_killed)};
    dice = (scratch_random){.key = pl_philox_init(test_seed_said(argc, argv), 23)};
    return cmocka_run_group_tests(tests, open_module, close_module);
}
