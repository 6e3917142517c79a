/* Special texts in what people write, as transformers marks them and cuts rendered texts at the marks. Without an
 * argument the cases kept in this folder; else those of a file (tests/chat/jinja_cases.py specials). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/program.h"
#include "unit/chat/chat_case.h"

static bool marks(const pl_chat_specials *s, const json_t *c)
{
    const json_t *text = json_object_get(c, "text"), *marked = json_object_get(c, "marked");
    size_t bytes = json_string_length(text), whole = json_string_length(marked);
    char *to = pl_alloc(whole + 1, 1);
    bool same = pl_chat_mark(s, json_string_value(text), bytes, to, whole) == whole &&
                memcmp(to, json_string_value(marked), whole) == 0;
    /* The bytes are counted, too, where there is no room. */
    same &= pl_chat_mark(s, json_string_value(text), bytes, NULL, 0) == whole;
    pl_free(to);
    return same;
}

static bool cuts(const pl_chat_specials *s, const json_t *c)
{
    const json_t *text = json_object_get(c, "rendered"), *pieces = json_object_get(c, "pieces");
    pl_chat_piece piece;
    size_t at = 0, count = 0;
    for (; pl_chat_next_piece(s, json_string_value(text), json_string_length(text), &at, &piece); count++) {
        const json_t *expected = json_array_get(json_array_get(pieces, count), 0);
        if (!expected || json_string_length(expected) != piece.bytes ||
            memcmp(json_string_value(expected), piece.text, piece.bytes) != 0 ||
            json_is_true(json_array_get(json_array_get(pieces, count), 1)) != piece.is_literal ||
            piece.is_first != (count == 0))
            return false;
    }
    return count == json_array_size(pieces);
}

static bool try_line(const char *line, size_t bytes)
{
    json_t *c = json_loadb(line, bytes, 0, NULL);
    const json_t *list = json_object_get(c, "specials");
    size_t count = json_array_size(list);
    pl_chat_special *texts = pl_alloc(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(list, i);
        texts[i] = (pl_chat_special){json_string_value(text), json_string_length(text)};
    }
    pl_chat_specials s = pl_chat_specials_sort(texts, count);
    bool marked = marks(&s, c), cut = cuts(&s, c);
    if (!marked || !cut) printf("%s is wrong: %s\n", marked ? "cutting" : "marking", line);
    pl_free(texts);
    json_decref(c);
    return marked && cut;
}

PL_TEST_PROGRAM(argc, argv)
{
    const char *path = argc > 1 ? argv[1] : PL_CHAT_CASES_DIR "/specials.jsonl";
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0, count = 0, wrong = 0;
    ssize_t n;
    if (!f) {
        printf("%s cannot be read\n", path);
        return 1;
    }
    for (; (n = getline(&line, &room, f)) > 0; count++) wrong += !try_line(line, (size_t)n);
    free(line);
    fclose(f);
    printf("%zu cases, %zu wrong\n", count, wrong);
    return wrong != 0 || count == 0;
}
