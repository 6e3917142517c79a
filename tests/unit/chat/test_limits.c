/* What a template may cost: memory of given sizes, to the byte, and bounds on depth and steps; nothing is asked of the
 * heap. And the sentences of refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/program.h"
#include "unit/chat/chat_case.h"

enum { SCRATCH = 1 << 20, TEXT = 1 << 16 };

static const pl_chat_value message[] = {
    {.kind = PL_CHAT_STRING, .count = 4, .text = "role"},
    {.kind = PL_CHAT_STRING, .count = 4, .text = "user"},
    {.kind = PL_CHAT_STRING, .count = 7, .text = "content"},
    {.kind = PL_CHAT_STRING, .count = 9, .text = " a</s> b "},
};
static const pl_chat_value messages = {.kind = PL_CHAT_MAP, .count = 2, .item = message};

typedef struct room {
    uint64_t block, scratch, text;
    uint64_t used_block, used_scratch, used_text; /* by a rendering that went well */
} room;

/* Renders a chat of one message with blocks of exactly these sizes. */
static pl_status render(const char *text, room *size, pl_error *err)
{
    static const pl_chat_special specials[] = {{"</s>", 4}};
    const pl_chat_specials s = {specials, 1};
    const pl_chat_variable bos = {"bos_token", pl_chat_string("<s>", 3), true};
    const pl_chat_input in = {.messages = pl_chat_list(&messages, 1), .variable = &bos, .variables = 1, .specials = &s};
    pl_chat_output out = {.scratch_bytes = size->scratch, .text_bytes = size->text};
    pl_chat_template *t;
    void *block = pl_alloc(1, size->block);
    out.scratch = pl_alloc(1, size->scratch);
    out.text = pl_alloc(1, size->text);
    uint64_t before = pl_alloc_request_count();
    pl_status status = pl_chat_template_parse(text, strlen(text), block, size->block, &t, err);
    if (status == PL_OK) {
        size->used_block = pl_chat_template_used_bytes(t);
        status = pl_chat_render(t, &in, &out, err);
    }
    assert_true(pl_alloc_request_count() == before);
    size->used_scratch = out.scratch_used_bytes;
    size->used_text = out.rendered_bytes;
    pl_free(block);
    pl_free(out.scratch);
    pl_free(out.text);
    return status;
}

static room room_for(const char *text)
{
    return (room){.block = pl_chat_template_bytes(strlen(text)), .scratch = SCRATCH, .text = TEXT};
}

static void every_size_is_enough_or_refused(void **state)
{
    (void)state;
    static const char text[] = "{{ bos_token }}{% macro f(x) %}{{ x ~ x }}{% endmacro %}{% for m in messages %}"
                               "{{ f(m.content.strip()) + (m|tojson) }}{% endfor %}";
    pl_error err = {0};
    room whole = room_for(text);
    assert_int_equal(render(text, &whole, &err), PL_OK);
    room exact = {whole.used_block, whole.used_scratch, TEXT};
    assert_int_equal(render(text, &exact, &err), PL_OK);
    assert_true(exact.used_text > 0 && exact.used_text < 200);
    for (uint64_t n = 0; n < exact.block; n += 16)
        assert_int_equal(render(text, &(room){n, exact.scratch, TEXT}, &err), PL_E_BUDGET);
    for (uint64_t n = 0; n < exact.scratch; n++)
        assert_int_equal(render(text, &(room){exact.block, n, TEXT}, &err), PL_E_BUDGET);
    for (uint64_t n = 0; n < exact.used_text; n++)
        assert_int_equal(render(text, &(room){exact.block, exact.scratch, n}, &err), PL_E_BUDGET);
    assert_non_null(strstr(err.text, "longer than"));
}

/* Scratch memory is used again, so that a long loop takes no more than a short one. */
static void loops_take_no_memory(void **state)
{
    (void)state;
    static const char few[] =
        "{% for i in range(90000)[:10] %}{% set x = 'a' ~ i %}{% if x == 'a1' %}{{ x }}{% endif %}{% endfor %}";
    static const char many[] =
        "{% for i in range(90000) %}{% set x = 'a' ~ i %}{% if x == 'a1' %}{{ x }}{% endif %}{% endfor %}";
    pl_error err = {0};
    room one = room_for(few), all = room_for(many);
    one.scratch = all.scratch = 2 * SCRATCH;
    assert_int_equal(render(few, &one, &err), PL_OK);
    assert_int_equal(render(many, &all, &err), PL_OK);
    assert_true(all.used_scratch < one.used_scratch + 64);
}

/* Refused with a sentence that contains \"why\". */
static void is_refused(const char *text, pl_status status, const char *why)
{
    pl_error err = {0};
    room r = room_for(text);
    pl_status got = render(text, &r, &err);
    if (got != status || !strstr(err.text, why)) fail_msg("%.200s: %s: %s", text, pl_status_name(got), err.text);
}

static void steps_and_depth_are_bounded(void **state)
{
    (void)state;
    is_refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", PL_E_DATA, "deep inside of each other");
    is_refused("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}", PL_E_DATA,
               "deep");
    is_refused("{% for a in range(9999) %}{% for b in range(9999) %}{{ '' }}{% endfor %}{% endfor %}", PL_E_DATA,
               "steps");
    is_refused("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", PL_E_DATA, "steps");
    is_refused("{% set l = range(30000) %}{% for a in l %}{{ (l|join)[:0] }}{% endfor %}", PL_E_DATA, "steps");
    is_refused("{% for a in range(50000) %}{% set x = 'a' in ('b' * 9999) %}{% endfor %}", PL_E_DATA, "steps");
    is_refused(
        "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x == [n.x] }}",
        PL_E_DATA, "deep");
    is_refused(
        "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x|tojson }}",
        PL_E_DATA, "deep");
    is_refused("{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
               PL_E_BUDGET, "needs more than the 1048576 bytes");
    is_refused("{{ 'a' * 9223372036854775807 }}", PL_E_BUDGET, "memory");
    is_refused("{{ [1] * 9223372036854775807 }}", PL_E_BUDGET, "memory");
    is_refused("{% for i in range(99) %}{{ 'abcdefgh' * 99 }}{% endfor %}", PL_E_BUDGET, "longer than the 65536 bytes");
}

static void writing_is_bounded(void **state)
{
    (void)state;
    static char text[1 << 16];
    static const struct {
        const char *begin, *again;
        pl_status status;
    } rows[] = {{"{{ ", "(", PL_E_UNSUPPORTED},
                {"{{ ", "[", PL_E_UNSUPPORTED},
                {"{{ ", "- ", PL_E_UNSUPPORTED},
                {"{{ ", "not ", PL_E_UNSUPPORTED},
                {"", "{% if 1 %}", PL_E_UNSUPPORTED},
                {"{{ 1", "+1", PL_E_DATA},
                {"{{ a", ".a", PL_E_DATA},
                {"{{ 1", "|int", PL_E_DATA},
                {"{{ 1", " if 1 else 1", PL_E_UNSUPPORTED},
                {"{% for ", "(", PL_E_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].begin), step = strlen(rows[i].again);
        memcpy(text, rows[i].begin, n);
        for (; n + step + 8 < sizeof text; n += step) memcpy(text + n, rows[i].again, step);
        strcpy(text + n, rows[i].begin[0] == '{' && strchr("+.|", rows[i].again[0]) ? " }}" : "");
        is_refused(text, rows[i].status, "inside of each other");
    }
}

static void sentences_say_where(void **state)
{
    (void)state;
    is_refused("a\n\n{{ x.y }}", PL_E_DATA, "chat template, line 3: an attribute of an undefined value (\"x\")");
    is_refused("{% if 1 %}\n{{ 'a\nb' | wordwrap }}{% endif %}", PL_E_UNSUPPORTED,
               "line 3: the filter \"wordwrap\" is not");
    is_refused("\n{% if %}", PL_E_DATA, "line 2: an expression is missing");
    is_refused("{% for x in 'ab' %}", PL_E_DATA, "line 1: \"endfor\" is missing");
    is_refused("\n\n{{ 'a }}", PL_E_DATA, "line 3: a string has no end");
    is_refused("{{ strftime_now('%Y') }}", PL_E_UNSUPPORTED, "asks for the time");
    is_refused("{{ raise_exception('no\nway') }}", PL_E_DATA, "the template refuses this chat: no?way");
    is_refused("\xff", PL_E_DATA, "no UTF-8 text: byte 0");
    is_refused("{{ messages.append(1) }}", PL_E_UNSUPPORTED, "\"append\" is not supported");
    is_refused("{{ ''.__class__ }}", PL_E_UNSUPPORTED, "\"__class__\" is not supported");
}

static void chats_are_checked(void **state)
{
    (void)state;
    static const pl_chat_value broken = {.kind = PL_CHAT_STRING, .count = 1, .text = "\xf3"},
                               one = {.kind = PL_CHAT_INT};
    char block[4096] __attribute__((aligned(16))), scratch[4096] __attribute__((aligned(16))), text[16];
    pl_chat_output out = {.scratch = scratch, .scratch_bytes = sizeof scratch, .text = text, .text_bytes = sizeof text};
    pl_error err = {0};
    pl_chat_template *t;
    assert_int_equal(pl_chat_template_parse("a", 1, block, sizeof block, &t, &err), PL_OK);
    assert_false(pl_chat_template_marks_generation(t));
    assert_int_equal(pl_chat_render(t, &(pl_chat_input){.messages = one}, &out, &err), PL_E_DATA);
    assert_int_equal(pl_chat_render(t, &(pl_chat_input){.messages = pl_chat_list(&one, 1)}, &out, &err), PL_E_DATA);
    const pl_chat_variable v = {"v", broken, false};
    const pl_chat_input in = {.messages = pl_chat_list(NULL, 0), .variable = &v, .variables = 1};
    assert_int_equal(pl_chat_render(t, &in, &out, &err), PL_E_DATA);
    assert_true(pl_chat_template_bytes(UINT64_MAX) == UINT64_MAX);
    assert_null(pl_chat_built_in("nobody"));
    assert_string_equal(pl_chat_built_in_name(0), "chatml");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_enough_or_refused),
        cmocka_unit_test(loops_take_no_memory),
        cmocka_unit_test(steps_and_depth_are_bounded),
        cmocka_unit_test(writing_is_bounded),
        cmocka_unit_test(sentences_say_where),
        cmocka_unit_test(chats_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
