/* libyaml asks malloc itself, so what it takes is a figure of ours: held against what glibc says is in use at each
 * event of texts that make its buffers grow. Between events a buffer that doubles is there one and a half times. */
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yaml.h>

#include "base/procfile.h"

#include "support/program.h"
#include "unit/config/helpers.h"

enum { TEXT_MAX = 64 << 10 };
static char text[TEXT_MAX + 1];

static uint64_t in_use(void) { return mallinfo2().uordblks; }

/* The most that was in use at an event. */
static uint64_t parse(size_t bytes)
{
    yaml_parser_t parser;
    yaml_event_t event;
    const uint64_t before = in_use();
    uint64_t most = 0;
    bool ended = false;
    assert_true(yaml_parser_initialize(&parser));
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    while (!ended) {
        assert_true(yaml_parser_parse(&parser, &event));
        if (in_use() - before > most) most = in_use() - before;
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return most;
}

static void check(const char *what, size_t bytes)
{
    (void)parse(bytes); /* what malloc keeps for next time counts as used */
    const uint64_t held = parse(bytes), fixed = pl_config_parser_bytes(0), all = pl_config_parser_bytes(bytes);
    print_message("%s, %zu bytes: %llu in use\n", what, bytes, (unsigned long long)held);
    if (held > fixed + (all - fixed) * 2 / 3) fail_msg("%s: %llu are expected", what, (unsigned long long)all);
}

static void the_parser_takes_no_more(void **state)
{
    (void)state;
    if (mallinfo2().arena == 0) skip(); /* not glibc's malloc */
    check("nothing", 0);
    for (size_t n = 1000; n < TEXT_MAX; n *= 3) {
        size_t at = (size_t)snprintf(text, sizeof text, "generate:\n  prompt: \"");
        memset(text + at, 'x', n - at);
        memcpy(text + n - 2, "\"\n", 2);
        check("a long word", n);
        for (at = 0; at + 40 < n;)
            at += (size_t)snprintf(text + at, sizeof text - at, "section_%zu:\n  key: word\n", at);
        check("many keys", at);
    }
}

/* ---- what the system refuses it ---- */

static uint64_t told;
static void hear(uint64_t bytes) { told = bytes; }

enum { READ_THROUGH, REFUSED_AND_TOLD, WRONG };

/* In a child that may have so many bytes of data more: what is read there, or who is told of the refusal? */
static int read_within(size_t bytes, uint64_t more)
{
    static pl_config config;
    pl_error why = {0};
    uint64_t held = 0;
    if (!pl_procfile_find("/proc/self/status", "VmData", &held)) return WRONG;
    const struct rlimit limit = {held + more, RLIM_INFINITY};
    pl_alloc_tell_refusals(hear);
    (void)malloc_trim(0);
    const size_t spare = mallinfo2().keepcost; /* with huge pages some 2 MB at the top of the heap: taken, too */
    if (spare > 4096 && !malloc(spare - 4096)) return WRONG;
    if (setrlimit(RLIMIT_DATA, &limit) != 0) return WRONG;
    const pl_status status = pl_config_load_text(&config, "a text", text, bytes, &why);
    if (status != PL_E_NOMEM) return READ_THROUGH;
    return told && strstr(why.text, "no memory to read it") ? REFUSED_AND_TOLD : WRONG;
}

static int read_in_child(size_t bytes, uint64_t more)
{
    int status;
    const pid_t child = fork();
    if (child == 0) _exit(read_within(bytes, more));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Whoever asked for it, the parser or we: a planner must hear that its fence has struck. */
static void refusals_are_told(void **state)
{
    const char begin[] = "generate:\n  prompt: "; /* and a word that is far too long: buffers double */
    uint64_t more = 0, refused = 0;
    (void)state;
    if (mallinfo2().arena == 0) skip(); /* not glibc's malloc: a sanitizer's memory is data, too */
    memset(text, 'x', TEXT_MAX);
    memcpy(text, begin, sizeof begin - 1);
    for (int how = REFUSED_AND_TOLD; how != READ_THROUGH; more += 16 << 10, refused++) {
        assert_true(more < 64 << 20);
        how = read_in_child(TEXT_MAX - 1, more);
        if (how == WRONG) fail_msg("with %llu bytes more", (unsigned long long)more);
    }
    assert_true(refused > 1);
}

PL_TEST_PROGRAM(argc, argv)
{
    /* In this order: what the second one's texts leave in the heap would serve the first one's. */
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals_are_told), cmocka_unit_test(the_parser_takes_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
