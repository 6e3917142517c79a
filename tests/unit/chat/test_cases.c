/* Templates rendered as jinja2 renders them. Without an argument the cases kept in this folder; else those of a file:
 *
 * unit_chat test_cases FILE.jsonl
 *
 * A case has what jinja2 made of it in `expected` (null: an error, which it must be here, too), or the sentence's
 * part in `refused`, or with `may_refuse` may be refused as unsupported or too large. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "unit/chat/chat_case.h"

typedef struct tally {
    json_t *shared; /* what the cases have in common, in a line of its own */
    size_t same, refused, failed_both, wrong;
} tally;

static void show(const char *what, const char *text, size_t bytes)
{
    printf("  %s: ", what);
    fwrite(text, 1, bytes, stdout);
    printf("|\n");
}

static void report(const char *place, const json_t *c, const chat_rendered *got, const char *why)
{
    const json_t *expected = json_object_get(c, "expected"), *template = json_object_get(c, "template");
    printf("%s: %s\n", place, why);
    if (json_string_length(template) < 2000)
        show("template", json_string_value(template), json_string_length(template));
    if (json_is_string(expected)) show("expected", json_string_value(expected), json_string_length(expected));
    if (got->status == PL_OK)
        show("rendered", got->text, got->bytes);
    else
        printf("  %s: %s\n", pl_status_name(got->status), got->err.text);
}

static bool same_spans(const json_t *spans, const chat_rendered *got)
{
    if (!spans) return true;
    if (json_array_size(spans) != got->spans) return false;
    for (size_t i = 0; i < got->spans; i++) {
        const json_t *span = json_array_get(spans, i);
        if ((uint64_t)json_integer_value(json_array_get(span, 0)) != got->span[i].begin ||
            (uint64_t)json_integer_value(json_array_get(span, 1)) != got->span[i].end)
            return false;
    }
    return true;
}

/* Why it is wrong; NULL: it is not. */
static const char *judge(const json_t *c, const chat_rendered *got, tally *t)
{
    const json_t *expected = json_object_get(c, "expected"), *refused = json_object_get(c, "refused");
    bool may_refuse = json_is_true(json_object_get(c, "may_refuse")) &&
                      (got->status == PL_E_UNSUPPORTED || got->status == PL_E_BUDGET);
    if (refused) {
        t->refused++;
        return strstr(got->err.text, json_string_value(refused)) ? NULL : "another refusal was expected";
    }
    if (!json_is_string(expected)) {
        t->failed_both++;
        return got->status != PL_OK ? NULL : "jinja2 refuses this";
    }
    if (may_refuse) {
        t->refused++;
        return NULL;
    }
    if (got->status != PL_OK) return "refused";
    if (got->bytes != json_string_length(expected) || memcmp(got->text, json_string_value(expected), got->bytes) != 0)
        return "another text";
    if (!same_spans(json_object_get(c, "spans"), got)) return "other spans of what is generated";
    t->same++;
    return NULL;
}

static void try_line(const char *path, size_t number, const char *line, size_t bytes, tally *t)
{
    char place[600];
    json_error_t why;
    json_t *c = json_loadb(line, bytes, JSON_ALLOW_NUL, &why);
    if (json_is_true(json_object_get(c, "shared"))) {
        json_decref(t->shared);
        t->shared = c;
        return;
    }
    if (t->shared) json_object_update_missing(c, t->shared);
    pl_pool *pool = pl_pool_create();
    if (!c) {
        printf("%s:%zu: %s\n", path, number, why.text);
        t->wrong++;
    } else {
        snprintf(place, sizeof place, "%s:%zu: %s", path, number, json_string_value(json_object_get(c, "name")));
        chat_rendered got = chat_render_case(pool, c, 1 << 20, 1 << 19);
        const char *wrong = judge(c, &got, t);
        if (wrong) report(place, c, &got, wrong);
        t->wrong += wrong != NULL;
    }
    pl_pool_destroy(pool);
    json_decref(c);
}

PL_TEST_PROGRAM(argc, argv)
{
    const char *path = argc > 1 ? argv[1] : PL_CHAT_CASES_DIR "/cases.jsonl";
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t n;
    tally t = {0};
    if (!f) {
        printf("%s cannot be read\n", path);
        return 1;
    }
    while ((n = getline(&line, &room, f)) > 0) try_line(path, ++number, line, (size_t)n, &t);
    free(line);
    json_decref(t.shared);
    fclose(f);
    printf("%zu cases: %zu the same text, %zu errors in both, %zu refused, %zu wrong\n", number, t.same, t.failed_both,
           t.refused, t.wrong);
    return t.wrong != 0 || number == 0;
}
