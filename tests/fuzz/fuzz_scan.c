/* Texts in the bytes of a file: the first byte says which form, the others are the file. Brought at once or in
 * portions, the same texts are found at the same places, one behind the other; what they decode to is what another
 * reader says: jansson of a line of JSON, and a field that is quoted anew of CSV. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "texts/scan.h"
#include "fuzz/fuzz.h"

enum { TEXTS_MAX = 4096 };

typedef struct found {
    pl_text_place place[TEXTS_MAX];
    size_t count; /* also of those beyond */
    uint64_t end; /* of the last one */
    size_t size;
} found;

static pl_texts_setup setup_of(uint8_t form)
{
    static const pl_texts_form forms[] = {PL_TEXTS_LINES, PL_TEXTS_JSONL, PL_TEXTS_CSV};
    return (pl_texts_setup){.form = forms[form % 3],
                            .path = "texts",
                            .key = form & 16 ? "a\"" : NULL,
                            .column = form & 16 ? "2" : NULL,
                            .headless = form % 3 == 2 && (form & 16) && (form & 32)};
}

static pl_status note(void *context, const pl_text_place *p, pl_error *err)
{
    found *f = context;
    (void)err;
    FUZZ_CHECK(p->offset <= f->size && p->bytes <= f->size - p->offset, "a text outside of the file");
    FUZZ_CHECK(p->offset >= f->end, "texts lie over each other");
    f->end = p->offset + p->bytes;
    if (f->count < TEXTS_MAX) f->place[f->count] = *p;
    f->count++;
    return PL_OK;
}

/* `portion` bytes at a time; the first has the mark whole. */
static pl_status scan(const pl_texts_setup *s, const uint8_t *file, size_t size, size_t portion, found *f,
                      pl_error *err)
{
    pl_scanner *scanner;
    f->count = 0, f->end = 0, f->size = size;
    pl_status status = pl_scanner_create(s, note, f, &scanner, err);
    for (size_t at = 0, n; status == PL_OK && at < size; at += n) {
        n = at == 0 && portion < 3 ? 3 : portion;
        if (n > size - at) n = size - at;
        status = pl_scanner_feed(scanner, file + at, n, err);
    }
    if (status == PL_OK) status = pl_scanner_finish(scanner, err);
    pl_scanner_destroy(scanner);
    return status;
}

/* The text, in a block for free. */
static uint8_t *decode(const uint8_t *file, const pl_text_place *p, size_t portion, size_t *bytes)
{
    uint8_t *text = malloc(p->bytes + 1);
    FUZZ_CHECK(text, "no memory");
    pl_unescape u = pl_unescape_begin(p->encoding, text, p->bytes + 1);
    for (size_t at = 0; at < p->bytes; at += portion)
        (void)pl_unescape_feed(&u, file + p->offset + at, p->bytes - at < portion ? p->bytes - at : portion);
    pl_unescape_end(&u);
    FUZZ_CHECK(u.whole && u.bytes <= p->bytes, "decoded it is longer");
    *bytes = u.bytes;
    return text;
}

/* The line around the text, as jansson reads it, if it does. */
static void check_json(const uint8_t *file, size_t size, const pl_texts_setup *s, const pl_text_place *p,
                       const uint8_t *text, size_t bytes)
{
    size_t begin = (size_t)p->offset, end = begin;
    while (begin > 0 && file[begin - 1] != '\n') begin--;
    while (end < size && file[end] != '\n') end++;
    if (begin == 0 && size >= 3 && memcmp(file, "\xef\xbb\xbf", 3) == 0) begin = 3;
    const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    json_t *root = json_loadb((const char *)file + begin, end - begin, flags, NULL);
    const json_t *value = json_object_get(root, s->key ? s->key : "text");
    FUZZ_CHECK(!root || json_is_string(value), "jansson finds no string");
    FUZZ_CHECK(!root || (json_string_length(value) == bytes && memcmp(json_string_value(value), text, bytes) == 0),
               "jansson reads another text");
    json_decref(root);
}

/* Written as one field with quotes it is found again as it was. */
static void check_csv(const uint8_t *text, size_t bytes)
{
    static found again;
    static const char head[] = "text\n\"";
    const pl_texts_setup s = {.form = PL_TEXTS_CSV, .path = "again"};
    pl_error err = {0};
    size_t n = sizeof head - 1, back;
    uint8_t *file = malloc(2 * bytes + sizeof head + 1);
    FUZZ_CHECK(file, "no memory");
    memcpy(file, head, n);
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"') file[n++] = '"';
        file[n++] = text[i];
    }
    file[n++] = '"';
    FUZZ_CHECK(scan(&s, file, n, n, &again, &err) == PL_OK && again.count == 1, "%s", err.text);
    uint8_t *same = decode(file, &again.place[0], 7, &back);
    FUZZ_CHECK(back == bytes && memcmp(same, text, bytes) == 0, "written and found it is another text");
    free(same);
    free(file);
}

static void check_texts(const uint8_t *file, size_t size, const pl_texts_setup *s, const found *f)
{
    for (size_t i = 0; i < f->count && i < TEXTS_MAX; i++) {
        size_t bytes, again;
        uint8_t *text = decode(file, &f->place[i], SIZE_MAX / 2, &bytes),
                *other = decode(file, &f->place[i], 1, &again);
        FUZZ_CHECK(bytes == again && memcmp(text, other, bytes) == 0, "in portions it is another text");
        if (s->form == PL_TEXTS_JSONL) check_json(file, size, s, &f->place[i], text, bytes);
        if (s->form == PL_TEXTS_CSV) check_csv(text, bytes);
        if (s->form == PL_TEXTS_LINES) FUZZ_CHECK(!memchr(text, '\n', bytes), "a line of two lines");
        free(other);
        free(text);
    }
}

static pl_status read(const uint8_t *data, size_t size, pl_error *err)
{
    static found f;
    const pl_texts_setup s = setup_of(data[0]);
    return scan(&s, data + 1, size - 1, 1 + (size - 1) / 2, &f, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static found whole, parts;
    const uint64_t before = pl_alloc_live_blocks();
    pl_error err = {0}, why = {0};
    if (size < 2) return 0;
    const pl_texts_setup s = setup_of(data[0]);
    const pl_status status = scan(&s, data + 1, size - 1, size, &whole, &err);
    for (size_t portion = 1; portion < 12; portion += 5) {
        const pl_status again = scan(&s, data + 1, size - 1, portion, &parts, &why);
        FUZZ_CHECK(again == status && parts.count == whole.count && strcmp(why.text, err.text) == 0,
                   "in portions %zu texts, at once %zu; %s; %s", parts.count, whole.count, why.text, err.text);
        const size_t n = whole.count < TEXTS_MAX ? whole.count : TEXTS_MAX;
        for (size_t i = 0; i < n; i++)
            FUZZ_CHECK(parts.place[i].offset == whole.place[i].offset && parts.place[i].bytes == whole.place[i].bytes &&
                           parts.place[i].encoding == whole.place[i].encoding,
                       "text %zu lies elsewhere", i);
    }
    if (status != PL_OK) fuzz_refused(status, &err, "texts:", FUZZ_NAME);
    check_texts(data + 1, size - 1, &s, &whole);
    fuzz_without_memory(read, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
