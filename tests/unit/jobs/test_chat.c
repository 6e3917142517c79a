/* A chat's messages as ids, and how many of them the model has seen: against strings, with a tokenizer whose ids are
 * bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "jobs/chat.h"
#include "support/program.h"
#include "support/seed.h"

enum { CONTEXT_MOST = 400, CHATS = 200 };

static uint64_t dice;
static pl_error err;
static char text[] = "{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('no') }}{% endif %}"
                     "[{{ m.role[0] }}]{{ m.content }}{% endfor %}[a]";

typedef struct chat {
    pl_text_data data;
    pl_conversation *c;
    void *memory;
    uint64_t context;
    char expected[2 * CONTEXT_MOST], seen[2 * CONTEXT_MOST]; /* the chat so far, and what the model was fed */
} chat;

static uint32_t below(uint32_t n)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % n;
}

static void begin(chat *t, uint64_t context, const char *system)
{
    *t = (chat){.data = {.chat = {.name = "test", .text = text, .bytes = strlen(text)}}, .context = context};
    assert_int_equal(pl_tokenizer_create_bytes(&t->data.tokenizer, &err), PL_OK);
    assert_int_equal(pl_conversation_create(&t->data, context, system, &t->c, &err), PL_OK);
    t->memory = pl_alloc(pl_conversation_bytes(&t->data, context), 1);
    pl_conversation_place(t->c, t->memory);
    if (system) snprintf(t->expected, sizeof t->expected, "[s]%s", system);
}

static void end(chat *t)
{
    pl_conversation_destroy(t->c);
    pl_tokenizer_destroy(t->data.tokenizer);
    pl_free(t->memory);
}

static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n]) n++;
    return n;
}

static void check_prompt(chat *t, const pl_conversation_prompt *p)
{
    assert_int_equal(p->count, strlen(t->expected));
    assert_true(p->count < t->context);
    for (size_t i = 0; i < p->count; i++) assert_int_equal(p->id[i], (unsigned char)t->expected[i]);
    assert_int_equal(p->cached, common(t->expected, t->seen));
}

/* The model reads the prompt, perhaps not all of it, and writes. */
static void answer(chat *t)
{
    const size_t left = t->context - strlen(t->expected), prompt = strlen(t->expected), told = below((uint32_t)left);
    char word[CONTEXT_MOST + 1] = "";
    for (size_t i = 0; i < told % 9; i++) word[i] = (char)('0' + below(10));
    const size_t fed = below(4) ? prompt : below((uint32_t)prompt + 1);
    pl_conversation_begin_feed(t->c);
    for (size_t i = 0; i < fed; i++) pl_conversation_feed(t->c, (unsigned char)t->expected[i]);
    snprintf(t->seen, sizeof t->seen, "%.*s", (int)fed, t->expected);
    for (const char *w = word; *w; w++) {
        if (fed == prompt) pl_conversation_feed(t->c, (unsigned char)*w);
        pl_conversation_hear(t->c, w, 1);
    }
    if (fed == prompt) strcat(t->seen, word);
    strcat(t->expected, word);
}

/* Refused messages leave no trace. */
static void refuse(chat *t)
{
    static const char *const refused[] = {"no", "\xff", "\xe2\x82"};
    pl_conversation_prompt p;
    char most[CONTEXT_MOST + 1];
    const size_t k = below(4);
    memset(most, 'x', t->context), most[t->context] = 0;
    const char *message = k < 3 ? refused[k] : most;
    assert_int_equal(pl_conversation_ask(t->c, message, strlen(message), &p, &err), k < 3 ? PL_E_DATA : PL_E_USAGE);
}

static void test_random_chats(void **state)
{
    (void)state;
    for (int i = 0; i < CHATS; i++) {
        chat t;
        pl_status status;
        begin(&t, 24 + below(CONTEXT_MOST - 24), below(2) ? "Be brief." : NULL);
        do {
            char message[16] = "";
            pl_conversation_prompt p;
            if (below(3) == 0) refuse(&t);
            for (uint32_t k = below(16); k > 0; k--) message[k - 1] = (char)('A' + below(26));
            const size_t bytes = strlen(message), before = strlen(t.expected);
            status = pl_conversation_ask(t.c, message, bytes, &p, &err);
            const size_t after = before + 3 + bytes + 3;
            assert_int_equal(status, after < t.context ? PL_OK : PL_E_USAGE);
            if (status != PL_OK) break;
            snprintf(t.expected + before, sizeof t.expected - before, "[u]%s[a]", message);
            check_prompt(&t, &p);
            answer(&t);
        } while (strlen(t.expected) < t.context);
        end(&t);
    }
}

/* Answers whose text is longer than what is kept: the chat is full, and nothing is written past its memory. */
static void test_long_answer(void **state)
{
    (void)state;
    chat t;
    pl_conversation_prompt p;
    char piece[4096];
    memset(piece, 'y', sizeof piece);
    begin(&t, 64, NULL);
    assert_int_equal(pl_conversation_ask(t.c, "a", 1, &p, &err), PL_OK);
    for (int i = 0; i < 64; i++) pl_conversation_hear(t.c, piece, sizeof piece);
    assert_int_equal(pl_conversation_ask(t.c, "b", 1, &p, &err), PL_E_USAGE);
    assert_non_null(strstr(err.text, "the chat fills its context"));
    end(&t);
}

static void test_broken_templates(void **state)
{
    (void)state;
    static char broken[][24] = {"{% if %}", "{{ 'x' ", "\xff"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        pl_text_data data = {.chat = {.name = "its.jinja", .text = broken[i], .bytes = strlen(broken[i])}};
        pl_conversation *c;
        assert_int_equal(pl_tokenizer_create_bytes(&data.tokenizer, &err), PL_OK);
        assert_int_equal(pl_conversation_create(&data, 64, NULL, &c, &err), PL_E_DATA);
        assert_non_null(strstr(err.text, "its.jinja: "));
        pl_conversation_destroy(c);
        pl_tokenizer_destroy(data.tokenizer);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    dice = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_chats), cmocka_unit_test(test_long_answer),
                                       cmocka_unit_test(test_broken_templates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
