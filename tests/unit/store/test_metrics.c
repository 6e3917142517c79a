/* metrics.jsonl: the lines, cutting back at a resume, torn ends, a full disk. */
#include "unit/store/scratch_folder.h"

#include <errno.h>
#include <math.h>

#include "base/alloc.h"
#include "store/metrics.h"
#include "support/program.h"

static pl_metrics m;
static pl_error err;

static const char *text_of(const char *path)
{
    static char text[1 << 16];
    text[read_bytes(path, text, sizeof text - 1)] = 0;
    return text;
}

static void write_line(uint64_t step)
{
    pl_metric values[] = {{"epoch", (double)(step / 10)}, {"loss", 1.0 / (double)(step + 1)}};
    assert_int_equal(pl_metrics_write(&m, step, values, 2, &err), PL_OK);
}

static void write_steps(const char *path, uint64_t keep, uint64_t begin, uint64_t end)
{
    assert_int_equal(pl_metrics_open(&m, path, keep, &err), PL_OK);
    for (uint64_t step = begin; step < end; step++) write_line(step);
    pl_metrics_close(&m);
}

static void test_lines(void **state)
{
    pl_metric values[] = {{"tokens", 1e5}, {"loss", 3.25}, {"lr", 1e-3}, {"bad", NAN}, {"huge", 1e300}, {"minus", -7}};
    (void)state;
    assert_int_equal(pl_metrics_open(&m, in_folder("lines"), PL_METRICS_NONE, &err), PL_OK);
    pl_alloc_seal(1);
    assert_int_equal(pl_metrics_write(&m, 7, values, 6, &err), PL_OK);
    assert_int_equal(pl_metrics_write(&m, 8, NULL, 0, &err), PL_OK);
    assert_int_equal(pl_metrics_sync(&m, &err), PL_OK);
    pl_alloc_seal(0);
    assert_int_equal(pl_metrics_write(&m, 6, values, 1, &err), PL_E_INTERNAL);
    pl_metrics_close(&m);
    pl_metrics_close(&m);
    assert_string_equal(
        text_of(in_folder("lines")),
        "{\"step\":7,\"tokens\":100000,\"loss\":3.25,\"lr\":0.001,\"bad\":null,\"huge\":1e+300,\"minus\":-7}\n"
        "{\"step\":8}\n");
}

/* A text in pieces: escaped, whole characters, cut where a line ends; one that is dropped leaves no trace. */
static void test_texts(void **state)
{
    static char much[2 * PL_METRICS_LINE_BYTES];
    (void)state;
    assert_int_equal(pl_metrics_open(&m, in_folder("texts"), PL_METRICS_NONE, &err), PL_OK);
    pl_alloc_seal(1);
    assert_int_equal(pl_metrics_text_end(&m, &err), PL_OK); /* of no text: no line */
    assert_int_equal(pl_metrics_text(&m, 3, "a \"b\"\n", 6, &err), PL_OK);
    assert_int_equal(pl_metrics_text(&m, 3, "\xc3\xa9\x01\xff", 4, &err), PL_OK);
    assert_int_equal(pl_metrics_text_end(&m, &err), PL_OK);
    assert_int_equal(pl_metrics_text(&m, 4, "half", 4, &err), PL_OK);
    pl_metrics_text_drop(&m);
    write_line(4);
    memset(much, 1, sizeof much); /* each takes six bytes */
    assert_int_equal(pl_metrics_text(&m, 5, much, sizeof much, &err), PL_OK);
    assert_int_equal(pl_metrics_text(&m, 5, "no room", 7, &err), PL_OK);
    assert_int_equal(pl_metrics_text_end(&m, &err), PL_OK);
    pl_alloc_seal(0);
    assert_int_equal(pl_metrics_text(&m, 4, "late", 4, &err), PL_E_INTERNAL);
    pl_metrics_close(&m);
    const char *text = text_of(in_folder("texts"));
    static const char begins[] = "{\"step\":3,\"sample\":\"a \\\"b\\\"\\n\xc3\xa9\\u0001\\ufffd\"}\n"
                                 "{\"step\":4,\"epoch\":0,\"loss\":0.2}\n{\"step\":5,\"sample\":\"\\u0001";
    assert_memory_equal(text, begins, sizeof begins - 1);
    const char *last = strrchr(text, '{');
    assert_in_range(strlen(last), PL_METRICS_LINE_BYTES - 12, PL_METRICS_LINE_BYTES);
    assert_string_equal(last + strlen(last) - 9, "\\u0001\"}\n");
    assert_int_equal(pl_metrics_open(&m, in_folder("texts"), 5, &err), PL_OK); /* nothing of it is torn */
    pl_metrics_close(&m);
    assert_int_equal(strlen(text_of(in_folder("texts"))),
                     sizeof begins - 1 + strlen(last) - strlen("{\"step\":5,\"sample\":\"\\u0001"));
}

/* Killed anywhere, with any torn end, and resumed at any step not after it: the same file as never killed. */
static void test_killed_and_resumed(void **state)
{
    static char whole[1 << 16], torn[1 << 16];
    (void)state;
    write_steps(in_folder("whole"), PL_METRICS_NONE, 0, 200);
    size_t bytes = read_bytes(in_folder("whole"), whole, sizeof whole);
    assert_true(bytes > PL_METRICS_LINE_BYTES); /* lines cross the blocks in which it is read */
    for (uint64_t resumed = 0; resumed < 200; resumed += 13) {
        const char *end = whole;
        for (uint64_t line = 0; line <= resumed; line++) end = strchr(end, '\n') + 1;
        for (size_t cut = (size_t)(end - whole); cut <= bytes; cut += 97) {
            memcpy(torn, whole, cut);
            memset(torn + cut, 0, 5); /* what a power cut may leave */
            write_bytes(in_folder("torn"), torn, cut + (cut % 2 ? 5 : 0));
            write_steps(in_folder("torn"), resumed, resumed + 1, 200);
            assert_int_equal(read_bytes(in_folder("torn"), torn, sizeof torn), bytes);
            assert_memory_equal(torn, whole, bytes);
        }
    }
}

static void test_lines_of_others_are_left_alone(void **state)
{
    static const char *const bad[] = {"hello\n",         "hello", "{\"step\":1}\n{\"loss\":2}\n",      "{\"step\":x}\n",
                                      "{\"step\":1} \n", "\n",    "{\"step\":99999999999999999999}\n", "{\"step\":1\n"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_bytes(in_folder("other"), bad[i], strlen(bad[i]));
        assert_int_equal(pl_metrics_open(&m, in_folder("other"), 5, &err), PL_E_DATA);
        assert_says(err.text, i == 2 ? "other:2:1:" : "other:1:1:");
        assert_string_equal(text_of(in_folder("other")), bad[i]);
        if (i == 2) continue; /* at a fresh start the first line tells */
        assert_int_equal(pl_metrics_open(&m, in_folder("other"), PL_METRICS_NONE, &err), PL_E_DATA);
        assert_string_equal(text_of(in_folder("other")), bad[i]);
    }
    assert_int_equal(symlink("lines", in_folder("link")), 0);
    assert_int_equal(pl_metrics_open(&m, in_folder("link"), PL_METRICS_NONE, &err), PL_E_STORAGE);
    assert_says(err.text, "it is a link, which is not followed here");
    static char long_line[PL_METRICS_LINE_BYTES + 64] = "{\"step\":1,\"loss\":";
    memset(long_line + 17, '1', sizeof long_line - 19);
    memcpy(long_line + sizeof long_line - 2, "}\n", 2);
    write_bytes(in_folder("other"), long_line, sizeof long_line);
    assert_int_equal(pl_metrics_open(&m, in_folder("other"), 5, &err), PL_E_DATA);
    write_bytes(in_folder("other"), "hello\0\n", 7); /* zeros end a line of ours only */
    assert_int_equal(pl_metrics_open(&m, in_folder("other"), 5, &err), PL_E_DATA);
    assert_int_equal(pl_metrics_open(&m, test_folder, 5, &err), PL_E_STORAGE);
}

static void test_failing_disk(void **state)
{
    static char key[PL_METRICS_LINE_BYTES];
    pl_metric value = {key, 1};
    (void)state;
    assert_int_equal(pl_metrics_open(&m, in_folder("full"), PL_METRICS_NONE, &err), PL_OK);
    write_line(1);
    pl_io_fail_at(PL_IO_WRITE, 1, ENOSPC, 0);
    assert_int_equal(pl_metrics_write(&m, 2, NULL, 0, &err), PL_E_STORAGE);
    assert_says(err.text, "No space left");
    memset(key, 'k', sizeof key - 1);
    assert_int_equal(pl_metrics_write(&m, 2, &value, 1, &err), PL_E_USAGE);
    write_line(2);
    pl_io_fail_at(PL_IO_FSYNC, 1, EIO, 0);
    assert_int_equal(pl_metrics_sync(&m, &err), PL_E_STORAGE);
    pl_metrics_close(&m);
    assert_string_equal(
        text_of(in_folder("full")),
        "{\"step\":1,\"epoch\":0,\"loss\":0.5}\n{\"step\":2,\"epoch\":0,\"loss\":0.3333333333333333}\n");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_killed_and_resumed),
        cmocka_unit_test(test_lines_of_others_are_left_alone),
        cmocka_unit_test(test_failing_disk),
    };
    return cmocka_run_group_tests_name("metrics", tests, make_test_folder, remove_test_folder);
}
