/* A flight's HDF5 files, damaged at random: bytes changed, a part zeroed or moved, the end cut off, rubbish behind it.
 * Each time they are prepared in a child, as libhdf5 is another's code: it may not be killed, nor hang, and either
 * makes a frame file or ends with one sentence, an exit code from 1 to 5 and no file. Usage: program [seed] */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "plimsoll/synth.h"
#include "store/hdf5_load.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/seed.h"
#include "systems/clouds_prepare.h"

enum { CASES = 60, FILES = 3, FILE_BYTES_MAX = 1 << 19, HEAD = 3072, SECONDS = 120 };
enum { MADE, REFUSED, WRONG };

static uint64_t seed, turn;
static pl_error err;
static char folder[] = "/tmp/plimsoll-damaged-XXXXXX";
static uint8_t whole[FILES][FILE_BYTES_MAX], bytes[FILE_BYTES_MAX];
static size_t sizes[FILES];
static const pl_flight_files flight[] = {{"10Feb25", "a/10Feb25/SYNTHETIC_IRAI_L1B_Rev-_20250210.h5",
                                          "a/10Feb25/SYNTHETIC_CPL_L2_01kmLay_10feb25.hdf5",
                                          "a/10Feb25/SYNTHETIC_CRS_20250210_nav.hdf"}};

static uint32_t draw(size_t below)
{
    const pl_philox p = pl_philox_init(seed, 33);
    uint32_t out[4];
    pl_philox_block(&p, 0, turn++, 0, out);
    return out[0] % (uint32_t)below;
}

/* ---- damage ---- */

/* Half of the time where the format's own words are. */
static size_t draw_place(size_t size) { return draw(2) ? draw(size < HEAD ? size : HEAD) : draw(size); }

static void change_bytes(size_t size)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff};
    for (uint32_t n = 1 + draw(8); n > 0; n--) {
        uint8_t *at = &bytes[draw_place(size)];
        *at = draw(2) ? *at ^ (uint8_t)(1 << draw(8)) : odd[draw(sizeof odd)];
    }
}

static void move_part(size_t size)
{
    const size_t from = draw_place(size), to = draw_place(size), most = size - (from > to ? from : to);
    memmove(bytes + to, bytes + from, draw(most < 600 ? most : 600));
}

static void zero_part(size_t size)
{
    const size_t from = draw_place(size);
    memset(bytes + from, 0, draw(size - from < 600 ? size - from : 600));
}

/* Its new size. */
static size_t damage(size_t size)
{
    switch (draw(8)) {
    case 0:
        return draw(size);
    case 1:
        return size + draw(FILE_BYTES_MAX - size);
    case 2:
        return move_part(size), size;
    case 3:
        return zero_part(size), size;
    default:
        return change_bytes(size), size;
    }
}

static const char *path_of(int file)
{
    return file == 0 ? flight->camera : file == 1 ? flight->lidar : flight->navigation;
}

static void put(const char *path, const void *from, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(from, 1, size, f) == size && fclose(f) == 0);
}

/* ---- what comes of it ---- */

static int judge(pl_status status, const pl_clouds_result *r)
{
    const int code = pl_status_exit_code(status);
    if (status == PL_OK) return r->info.frames && access("frames", R_OK) == 0 ? MADE : WRONG;
    if (strstr(err.text, "was ended (signal")) return WRONG; /* it hung */
    if (code < 1 || code > 5 || !strstr(err.text, "10Feb25") || access("frames", F_OK) == 0) return WRONG;
    for (const char *c = err.text; *c; c++)
        if ((unsigned char)*c < ' ') return WRONG;
    return REFUSED;
}

/* As the command does, and in a child. What damage makes it ask for is not granted without bounds. */
static int prepare(void)
{
    const pl_clouds_options o = {.flight = flight,
                                 .flights = 1,
                                 .swath_begin = 2,
                                 .swath_end = 26,
                                 .clip_limit = 0.01,
                                 .flat_field = true,
                                 .filter = pl_label_filter_find("basic"),
                                 .file_max = 1 << 26,
                                 .path = "frames",
                                 .in_child = true};
    const struct rlimit no_core = {0, 0};
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    pl_clouds_result result;
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL); /* cmocka would go on */
    setrlimit(RLIMIT_CORE, &no_core);
#if !defined(__SANITIZE_ADDRESS__)
    const struct rlimit most = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    setrlimit(RLIMIT_AS, &most);
#endif
    setrlimit(RLIMIT_CPU, &(const struct rlimit){SECONDS, SECONDS}); /* that of who reads the files, too */
    alarm(2 * SECONDS);
    const uint64_t held = pl_alloc_live_blocks();
    const pl_status status = pl_clouds_prepare(&o, &result, &err);
    const int verdict = pl_alloc_live_blocks() == held ? judge(status, &result) : WRONG;
    if (verdict == WRONG) fprintf(stderr, "status %d: %s\n", (int)status, err.text);
    return verdict;
}

static void test_damaged(void **state)
{
    int made = 0;
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const int file = (int)draw(FILES);
        const uint64_t began = turn;
        int status;
        memset(bytes, (int)draw(256), sizeof bytes);
        memcpy(bytes, whole[file], sizes[file]);
        put(path_of(file), bytes, damage(sizes[file]));
        unlink("frames");
        const pid_t child = fork();
        if (child == 0) _exit(prepare());
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFSIGNALED(status))
            fail_msg("case %d (turn %" PRIu64 "), %s: killed by signal %d%s", i, began, path_of(file), WTERMSIG(status),
                     WTERMSIG(status) == SIGALRM ? ": it hangs" : "");
        if (WEXITSTATUS(status) == WRONG) fail_msg("case %d, %s: not one good sentence", i, path_of(file));
        made += WEXITSTATUS(status) == MADE;
        put(path_of(file), whole[file], sizes[file]);
    }
    print_message("%d of %d were refused\n", CASES - made, CASES);
    assert_true(made < CASES);
}

static void test_whole(void **state)
{
    (void)state;
    assert_int_equal(prepare(), MADE);
    alarm(0);
}

static int begin(void **state)
{
    pl_synth_clouds_options o = pl_synth_clouds_default();
    char *text;
    size_t length;
    (void)state;
    o.flights = 1, o.labels = 7, o.height = 24, o.width = 17, o.seed = seed;
    if (enter_folder(folder) != 0 || pl_synth_clouds("a", &o, &text, &length, &err) != PL_OK) return -1;
    pl_free(text);
    for (int i = 0; i < FILES; i++) {
        FILE *f = fopen(path_of(i), "rb");
        sizes[i] = f ? fread(whole[i], 1, FILE_BYTES_MAX, f) : 0;
        if (!f || fclose(f) != 0 || sizes[i] < HEAD / 2 || sizes[i] == FILE_BYTES_MAX) return -1;
    }
    return 0;
}

static int finish(void **state)
{
    (void)state;
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged), cmocka_unit_test(test_whole)};
    pl_module hdf5;
    seed = test_seed_said(argc, argv);
    if (pl_hdf5_load("this test", "", &hdf5, &err) != PL_OK) return printf("not without libhdf5: %s\n", err.text), 0;
    pl_module_unload(&hdf5);
    return cmocka_run_group_tests(tests, begin, finish);
}
