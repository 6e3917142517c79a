/* A chat template, and behind a zero byte what a person wrote. Parsing takes no more than was said, the same text goes
 * into what the first took; rendered twice, the second time in exactly the memory that the first took, the text is the
 * same. Cut into pieces it is whole, and what the person wrote forges no special text. */
#include <stdlib.h>
#include <string.h>

#include "chat/template.h"
#include "fuzz/fuzz.h"

enum { SCRATCH = 1 << 20, TEXT = 1 << 18, SPANS = 16 };

static const pl_chat_special special[] = {{"<|e|>", 5}, {"<|s|>", 5}, {"<|s|>x", 6}};
static const pl_chat_specials specials = {special, 3};

typedef struct rendering {
    pl_status status;
    pl_error err;
    pl_chat_output out;
    pl_chat_span span[SPANS];
} rendering;

static pl_chat_value text_of(const char *text) { return pl_chat_string(text, strlen(text)); }

static void render(const pl_chat_template *t, pl_chat_value written, uint64_t scratch, uint64_t room, rendering *r)
{
    const pl_chat_value system[] = {text_of("role"), text_of("system"), text_of("content"), text_of(" Be <b>rief.\n")};
    const pl_chat_value user[] = {text_of("role"), text_of("user"), text_of("content"), written};
    const pl_chat_value answer[] = {text_of("role"),        text_of("assistant"), text_of("content"),
                                    {.kind = PL_CHAT_NONE}, text_of("thinking"),  text_of("x\ny"),
                                    text_of("n"),           pl_chat_int(-3)};
    const pl_chat_value messages[] = {pl_chat_map(system, 2), pl_chat_map(user, 2), pl_chat_map(answer, 4)};
    const pl_chat_variable variables[] = {{"bos_token", text_of("<|s|>"), true},
                                          {"v", pl_chat_list(messages, 2), false},
                                          {"f", {.kind = PL_CHAT_REAL, .real = 0.1}, false}};
    const struct tm now = {.tm_year = 124, .tm_mon = 4, .tm_mday = 3};
    const pl_chat_input in = {pl_chat_list(messages, 3), true, variables, 3, &specials, &now};
    r->out = (pl_chat_output){.scratch = malloc(scratch + 1),
                              .scratch_bytes = scratch,
                              .text = malloc(room + 1),
                              .text_bytes = room,
                              .span = r->span,
                              .spans_max = SPANS};
    FUZZ_CHECK(r->out.scratch && r->out.text, "no memory");
    r->status = pl_chat_render(t, &in, &r->out, &r->err);
}

static void release(rendering *r)
{
    free(r->out.scratch);
    free(r->out.text);
}

static bool is_special(const pl_chat_piece *p)
{
    for (size_t i = 0; i < specials.count; i++)
        if (p->bytes == special[i].bytes && memcmp(p->text, special[i].text, p->bytes) == 0) return true;
    return false;
}

static void check_text(const rendering *r)
{
    size_t at = 0, before = 0;
    pl_chat_piece piece;
    uint64_t end = 0;
    while (pl_chat_next_piece(&specials, r->out.text, r->out.rendered_bytes, &at, &piece)) {
        FUZZ_CHECK(piece.bytes > 0 && at > before && at <= r->out.rendered_bytes, "a piece is empty or beyond the end");
        FUZZ_CHECK(!memmem(piece.text, piece.bytes, "\xf3\xb0\x80\x80", 4) &&
                       !memmem(piece.text, piece.bytes, "\xf3\xb0\x80\x81", 4),
                   "a mark is left in a piece");
        FUZZ_CHECK(!piece.is_literal || is_special(&piece), "what no person wrote is marked");
        before = at;
    }
    for (size_t i = 0; i < r->out.spans; i++) {
        FUZZ_CHECK(r->span[i].begin >= end && r->span[i].begin < r->span[i].end, "spans lie over each other");
        end = r->span[i].end;
    }
    FUZZ_CHECK(end <= r->out.rendered_bytes, "a span goes beyond the text");
}

static void check_template(const pl_chat_template *t, pl_chat_value written)
{
    rendering first = {0}, again = {0};
    render(t, written, SCRATCH, TEXT, &first);
    if (first.status != PL_OK) fuzz_refused(first.status, &first.err, "chat template", FUZZ_NAME);
    if (first.status == PL_OK) {
        check_text(&first);
        render(t, written, first.out.scratch_used_bytes, TEXT, &again);
        FUZZ_CHECK(again.status == PL_OK, "the second time: %s", again.err.text);
        FUZZ_CHECK(first.out.rendered_bytes == again.out.rendered_bytes &&
                       memcmp(first.out.text, again.out.text, first.out.rendered_bytes) == 0,
                   "another text the second time");
        release(&again);
    }
    release(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    size_t bytes = end ? (size_t)(end - data) : size, left = end ? size - bytes - 1 : 0;
    uint64_t most = pl_chat_template_bytes(bytes), requests = pl_alloc_request_count();
    pl_chat_template *t;
    pl_error err = {0};
    void *block = malloc(most);
    FUZZ_CHECK(block, "no memory");
    pl_status status = pl_chat_template_parse((const char *)data, bytes, block, most, &t, &err);
    FUZZ_CHECK(status != PL_E_BUDGET, "parsing takes more than was said: %s", err.text);
    if (status != PL_OK) fuzz_refused(status, &err, "chat template", FUZZ_NAME);
    if (status == PL_OK) {
        uint64_t used = pl_chat_template_used_bytes(t);
        block = realloc(block, used);
        FUZZ_CHECK(block, "no memory");
        status = pl_chat_template_parse((const char *)data, bytes, block, used, &t, &err);
        FUZZ_CHECK(status == PL_OK, "the second time: %s", err.text);
        check_template(t, pl_chat_string((const char *)data + (size - left), left));
    }
    FUZZ_CHECK(pl_alloc_request_count() == requests, "the heap was asked");
    free(block);
    return 0;
}
