/* Texts that end a text: against a search of the whole text for the end that comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "jobs/stops.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t dice;

static uint32_t below(uint32_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % n;
}

/* What comes out of pieces of random sizes; *most: how many bytes waited at most. */
static size_t write(const pl_stops *s, const char *text, char *out, bool *stopped, size_t *most)
{
    char held[PL_STOPS_BYTES + 64];
    size_t used = 0, at = 0, all = strlen(text);
    pl_stops_window w = {.stops = s, .held = held};
    *most = 0;
    while (at < all && !w.stopped) {
        size_t bytes = 1 + below(5);
        if (bytes > all - at) bytes = all - at;
        const size_t n = pl_stops_put(&w, text + at, bytes);
        memcpy(out + used, held, n);
        pl_stops_drop(&w, n);
        used += n, at += bytes;
        if (w.bytes > *most) *most = w.bytes;
    }
    memcpy(out + used, held, w.bytes);
    *stopped = w.stopped;
    return used + w.bytes;
}

/* Where the text ends: at the byte that completes one first, before the longest of those. */
static size_t find_end(const char *text, char stop[][8], int stops, bool *stopped)
{
    for (size_t end = 1; end <= strlen(text); end++) {
        size_t longest = 0;
        for (int k = 0; k < stops; k++) {
            const size_t n = strlen(stop[k]);
            if (n && n <= end && memcmp(text + end - n, stop[k], n) == 0 && n > longest) longest = n;
        }
        *stopped = longest > 0;
        if (longest) return end - longest;
    }
    return strlen(text);
}

static void random_text(char *text, uint32_t most)
{
    const uint32_t n = below(most);
    for (uint32_t i = 0; i < n; i++) text[i] = "ab\n"[below(3)];
    text[n] = 0;
}

static void add_escaped(char *lines, const char *stop)
{
    size_t used = strlen(lines);
    for (; *stop; stop++) {
        if (*stop == '\n') lines[used++] = '\\';
        lines[used++] = *stop == '\n' ? 'n' : *stop;
    }
    lines[used++] = '\n', lines[used] = 0;
}

static void test_random_texts(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        char stop[4][8], lines[128] = "", text[64], out[64];
        pl_stops s;
        bool expected, stopped;
        size_t most;
        const int stops = 1 + (int)below(4);
        for (int k = 0; k < stops; k++) random_text(stop[k], 8), add_escaped(lines, stop[k]);
        pl_stops_read(&s, lines);
        random_text(text, 64);
        expected = false;
        const size_t end = find_end(text, stop, stops, &expected), n = write(&s, text, out, &stopped, &most);
        assert_int_equal(n, end);
        assert_memory_equal(out, text, n);
        assert_int_equal(stopped, expected);
        assert_true(most == 0 || most < s.longest); /* no more waits than could begin one */
    }
}

static void test_escapes(void **state)
{
    (void)state;
    pl_stops s;
    pl_stops_read(&s, "a\\tb\n\n\\\\n\nc\\d\\");
    const char expected[] = "a\tb\0\\n\0c\\d\\\0";
    assert_memory_equal(s.text, expected, sizeof expected);
    assert_int_equal(s.longest, 4);
    char all[PL_STOPS_BYTES];
    memset(all, 'x', sizeof all - 1), all[sizeof all - 1] = 0;
    pl_stops_read(&s, all);
    assert_int_equal(s.longest, PL_STOPS_BYTES - 1);
    pl_stops_read(&s, "\n\n");
    assert_int_equal(s.longest + (size_t)s.text[0], 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    dice = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_texts), cmocka_unit_test(test_escapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
