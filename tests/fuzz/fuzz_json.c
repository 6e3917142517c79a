/* The writers of quoted text: any bytes as a JSON string, read back by jansson; any text as a field of a plan, read
 * back by our own reader. And the two readers of UTF-8 agree. */
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "base/lex.h"
#include "data/text/unicode.h"
#include "fuzz/fuzz.h"

/* What the text is when every byte that is no UTF-8 is replaced. */
static pl_str repaired(const uint8_t *data, size_t size)
{
    pl_str out = {0};
    for (size_t i = 0; i < size;) {
        uint32_t point;
        size_t n = pl_json_utf8_length(data + i, size - i), m = pl_utf8_read(data + i, size - i, &point);
        FUZZ_CHECK((n != 0) == (m != 0 && point != PL_NOT_UTF8) && (n == 0 || n == m),
                   "byte %zu: one reader of UTF-8 sees %zu bytes, the other %zu", i, n, m);
        pl_str_append_bytes(&out, n ? (const char *)data + i : "\xef\xbf\xbd", n ? n : 3);
        i += n ? n : 1;
    }
    return out;
}

static void check_json(const uint8_t *data, size_t size, bool compact)
{
    pl_str out = {0}, expected = repaired(data, size);
    pl_json j = pl_json_begin(&out, compact);
    pl_json_array(&j);
    pl_json_string_bytes(&j, (const char *)data, size);
    pl_json_array_end(&j);
    json_t *root = json_loadb(pl_str_text(&out), out.bytes, JSON_ALLOW_NUL, NULL);
    const json_t *text = json_array_get(root, 0);
    FUZZ_CHECK(text, "no JSON: %s", pl_str_text(&out));
    FUZZ_CHECK(json_string_length(text) == expected.bytes &&
                   memcmp(json_string_value(text), pl_str_text(&expected), expected.bytes) == 0,
               "another text came back from %s", pl_str_text(&out));
    json_decref(root);
    pl_str_deinit(&out);
    pl_str_deinit(&expected);
}

static void check_field(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    pl_str text = {0}, line = {0};
    pl_str_append_bytes(&text, data, size);
    if (strlen(pl_str_text(&text)) == size && size < sizeof((pl_lex){0}).value) {
        pl_str_append(&line, "key=");
        pl_lex_quote(&line, pl_str_text(&text));
        pl_lex l = pl_lex_begin("line", pl_str_text(&line), line.bytes);
        FUZZ_CHECK(pl_lex_line(&l) && pl_lex_expect(&l, "key", &err) == PL_OK, "%s: %s", pl_str_text(&line), err.text);
        FUZZ_CHECK(strcmp(l.value, pl_str_text(&text)) == 0, "another text came back from %s", pl_str_text(&line));
        FUZZ_CHECK(pl_lex_end(&l, &err) == PL_OK, "%s: %s", pl_str_text(&line), err.text);
    }
    pl_str_deinit(&text);
    pl_str_deinit(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    check_json(data, size, true);
    check_json(data, size, false);
    check_field(data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
