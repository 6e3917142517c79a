/* libyaml asks malloc itself, so what it takes is a figure of ours: held against what glibc says is in use at each
 * event of texts that make its buffers grow. Between events a buffer that doubles is there one and a half times. */
#include <malloc.h>
#include <yaml.h>

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

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_parser_takes_no_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
