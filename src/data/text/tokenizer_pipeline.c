/* The parts of a tokenizer.json around its model. What they do, in these orders, is what pl_pipeline can say; any other
 * part, order or setting would give other ids and is refused. */
#include <string.h>

#include "data/text/nfc.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

#define BLANK "\xe2\x96\x81"

typedef struct reader {
    const char *name;
    pl_pipeline *p;
    pl_error *err;
    bool has_prepend, decodes_blanks, is_fused;
} reader;

#define BAD(...) pl_fail(r->err, PL_E_DATA, __VA_ARGS__)

static bool absent(const json_t *value) { return !value || json_is_null(value); }

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const char *type_of(const json_t *object)
{
    const char *type = text_of(object, "type");
    return *type ? type : "(without a type)";
}

pl_status pl_tokenizer_read_bool(const char *name, const json_t *object, const char *key, int otherwise, int *value,
                                 pl_error *err)
{
    const json_t *v = json_object_get(object, key);
    *value = absent(v) ? otherwise : json_is_true(v);
    if (absent(v) || json_is_boolean(v)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: \"%s\" must be true or false", name, key);
}

static pl_status read_bool(const reader *r, const json_t *object, const char *key, int otherwise, int *value)
{
    return pl_tokenizer_read_bool(r->name, object, key, otherwise, value, r->err);
}

/* The parts of a Sequence one by one, in their order; the one part where it is none. */
typedef pl_status (*part_reader)(reader *, const json_t *part);

static pl_status each_part(reader *r, const json_t *part, const char *list, const char *what, part_reader read)
{
    if (absent(part)) return PL_OK;
    if (strcmp(type_of(part), "Sequence") != 0) return read(r, part);
    const json_t *parts = json_object_get(part, list), *item;
    size_t i;
    if (!json_is_array(parts)) return BAD("%s: the %s Sequence needs a list \"%s\"", r->name, what, list);
    json_array_foreach(parts, i, item) PL_TRY(each_part(r, item, list, what, read));
    return PL_OK;
}

/* ---- normalizer ---- */

/* {"pattern": {"String": from}, "content": to} */
static bool replaces(const json_t *part, const char *from, const char *to)
{
    return strcmp(text_of(json_object_get(part, "pattern"), "String"), from) == 0 &&
           strcmp(text_of(part, "content"), to) == 0;
}

static pl_status refuse_replace(const reader *r, const char *what, const json_t *part)
{
    const json_t *pattern = json_object_get(part, "pattern");
    const char *from = text_of(pattern, "String");
    return BAD("%s: the %s Replace of \"%.80s\" by \"%.40s\" is not supported; that of a blank and U+2581 was expected",
               r->name, what, *from ? from : text_of(pattern, "Regex"), text_of(part, "content"));
}

static pl_status read_normalizer(reader *r, const json_t *part)
{
    const char *type = type_of(part);
    if (strcmp(type, "NFC") == 0) {
        r->p->has_nfc = 1;
    } else if (strcmp(type, "Prepend") == 0) {
        if (strcmp(text_of(part, "prepend"), BLANK) != 0)
            return BAD("%s: the normalizer Prepend of \"%.40s\" is not supported; U+2581 was expected", r->name,
                       text_of(part, "prepend"));
        r->p->prefix = PL_PREFIX_ALWAYS;
    } else if (strcmp(type, "Replace") == 0) {
        if (!replaces(part, " ", BLANK)) return refuse_replace(r, "normalizer", part);
        r->p->has_blanks = 1;
    } else {
        return BAD("%s: the normalizer %.60s is not supported; NFC, Prepend, Replace, a Sequence of these or null was "
                   "expected",
                   r->name, type);
    }
    return PL_OK;
}

/* ---- pre-tokenizer ---- */

static pl_status refuse_order(const reader *r, const char *type)
{
    return BAD("%s: the pre_tokenizer %s is not supported together with those before it", r->name, type);
}

/* Each piece that the pattern matches, and as it matches everything, nothing else: two ways to say it. */
static pl_status read_pattern(reader *r, const json_t *part, const char *regex, int invert)
{
    static const char *const known[PL_SCANNERS] = {NULL, PL_PATTERN_GPT2, PL_PATTERN_LLAMA3, PL_PATTERN_QWEN2};
    const char *behavior = text_of(part, "behavior");
    if (strcmp(behavior, invert ? "Removed" : "Isolated") != 0)
        return BAD("%s: the pre_tokenizer Split with the behavior \"%.40s\"%s is not supported; Isolated was expected",
                   r->name, behavior, invert ? " and \"invert\"" : "");
    for (int i = 1; i < PL_SCANNERS; i++) {
        if (strcmp(regex, known[i]) != 0) continue;
        if (r->p->pretoken.scanner != PL_SCANNER_NONE || r->p->is_bytes) return refuse_order(r, "Split");
        r->p->pretoken.scanner = (pl_scanner)i;
        return PL_OK;
    }
    return BAD("%s: the pre_tokenizer Split with the pattern %.300s is not supported; that of GPT-2, Llama 3 or Qwen 2 "
               "was expected",
               r->name, regex);
}

static pl_status read_split(reader *r, const json_t *part)
{
    const json_t *pattern = json_object_get(part, "pattern");
    int invert;
    PL_TRY(read_bool(r, part, "invert", 0, &invert));
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    if (regex) return read_pattern(r, part, regex, invert);
    /* Gemma's: its normalizer leaves no blank. */
    if (r->p->has_blanks && !invert && strcmp(text_of(pattern, "String"), " ") == 0 &&
        strcmp(text_of(part, "behavior"), "MergedWithPrevious") == 0)
        return PL_OK;
    return BAD("%s: the pre_tokenizer Split at \"%.80s\" (%.40s) is not supported", r->name, text_of(pattern, "String"),
               text_of(part, "behavior"));
}

static pl_status read_byte_level(reader *r, const json_t *part)
{
    int use_regex, add_prefix_space;
    PL_TRY(read_bool(r, part, "use_regex", 1, &use_regex));
    PL_TRY(read_bool(r, part, "add_prefix_space", 1, &add_prefix_space));
    pl_pretoken *rule = &r->p->pretoken;
    if (r->p->is_bytes || r->p->has_blanks || (use_regex && rule->scanner != PL_SCANNER_NONE))
        return refuse_order(r, "ByteLevel");
    if (add_prefix_space && (rule->scanner != PL_SCANNER_NONE || rule->precut != PL_PRECUT_NONE))
        return BAD("%s: the pre_tokenizer ByteLevel with \"add_prefix_space\" puts a blank before each piece of those "
                   "before it, which is not supported",
                   r->name);
    if (!use_regex && rule->scanner == PL_SCANNER_NONE)
        return BAD(
            "%s: the pre_tokenizer ByteLevel with \"use_regex\" false is not supported without a Split before it",
            r->name);
    if (use_regex) rule->scanner = PL_SCANNER_GPT2;
    if (add_prefix_space) r->p->prefix = PL_PREFIX_MISSING;
    r->p->is_bytes = 1;
    return PL_OK;
}

static pl_status read_digits(reader *r, const json_t *part)
{
    int individual;
    PL_TRY(read_bool(r, part, "individual_digits", 0, &individual));
    pl_pretoken *rule = &r->p->pretoken;
    if (r->p->is_bytes || rule->scanner != PL_SCANNER_NONE || rule->precut != PL_PRECUT_NONE)
        return refuse_order(r, "Digits");
    rule->precut = individual ? PL_PRECUT_EACH_DIGIT : PL_PRECUT_DIGITS;
    return PL_OK;
}

static pl_status read_metaspace(reader *r, const json_t *part)
{
    int old_prefix, split;
    const char *replacement = text_of(part, "replacement"), *scheme = text_of(part, "prepend_scheme");
    PL_TRY(read_bool(r, part, "add_prefix_space", 1, &old_prefix));
    PL_TRY(read_bool(r, part, "split", 1, &split));
    if (strcmp(replacement, BLANK) != 0)
        return BAD(
            "%s: the pre_tokenizer Metaspace with the replacement \"%.40s\" is not supported; U+2581 was expected",
            r->name, replacement);
    if (r->p->is_bytes || r->p->prefix != PL_PREFIX_NONE || r->p->pretoken.scanner != PL_SCANNER_NONE ||
        r->p->pretoken.precut != PL_PRECUT_NONE)
        return refuse_order(r, "Metaspace");
    if (!*scheme) scheme = old_prefix ? "always" : "never";
    if (strcmp(scheme, "always") == 0)
        r->p->prefix = PL_PREFIX_MISSING;
    else if (strcmp(scheme, "first") == 0)
        r->p->prefix = PL_PREFIX_FIRST;
    else if (strcmp(scheme, "never") != 0)
        return BAD("%s: the pre_tokenizer Metaspace with the prepend_scheme \"%.40s\" is not supported", r->name,
                   scheme);
    r->p->has_blanks = 1;
    r->p->cuts_blanks = split;
    return PL_OK;
}

static pl_status read_pre_tokenizer(reader *r, const json_t *part)
{
    static const struct {
        const char *type;
        part_reader read;
    } known[] = {
        {"ByteLevel", read_byte_level}, {"Digits", read_digits}, {"Split", read_split}, {"Metaspace", read_metaspace}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(type_of(part), known[i].type) == 0) return known[i].read(r, part);
    return BAD(
        "%s: the pre_tokenizer %.60s is not supported; ByteLevel, Digits, Split, Metaspace or a Sequence of these "
        "was expected",
        r->name, type_of(part));
}

/* ---- post-processor ---- */

/* Puts `count` ids at the front of a list or, where `end`, behind it. */
static pl_status add_ids(reader *r, const json_t *ids, bool end, uint32_t *list, uint32_t *count)
{
    size_t i, n = json_array_size(ids);
    const json_t *item;
    if (!n || *count + n > PL_TEMPLATE_IDS_MAX)
        return BAD("%s: the post_processor needs 1 to %d ids of special tokens", r->name, PL_TEMPLATE_IDS_MAX);
    if (!end) memmove(list + n, list, *count * sizeof *list);
    json_array_foreach(ids, i, item)
    {
        const json_int_t id = json_is_integer(item) ? json_integer_value(item) : -1;
        if (id < 0 || id >= PL_VOCAB_MAX)
            return BAD("%s: an id in the post_processor must be a whole number below %d", r->name, PL_VOCAB_MAX);
        list[(end ? *count : 0) + i] = (uint32_t)id;
    }
    *count += (uint32_t)n;
    return PL_OK;
}

/* A template around what there is: the ids before $A in their order, so from the last to the first. */
static pl_status read_template(reader *r, const json_t *part)
{
    const json_t *single = json_object_get(part, "single"), *special = json_object_get(part, "special_tokens");
    const size_t count = json_array_size(single);
    size_t text = count, seen = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *sequence = json_object_get(json_array_get(single, i), "Sequence");
        if (sequence && strcmp(text_of(sequence, "id"), "A") == 0) text = i, seen++;
    }
    if (seen != 1) return BAD("%s: the post_processor TemplateProcessing needs a \"single\" with one $A", r->name);
    for (size_t k = 0; k < count; k++) {
        const size_t i = k < text ? text - 1 - k : k;
        if (i == text) continue;
        const json_t *item = json_object_get(json_array_get(single, i), "SpecialToken");
        const json_t *token = json_object_get(special, text_of(item, "id"));
        if (k < text)
            PL_TRY(add_ids(r, json_object_get(token, "ids"), false, r->p->before, &r->p->before_count));
        else
            PL_TRY(add_ids(r, json_object_get(token, "ids"), true, r->p->after, &r->p->after_count));
    }
    return PL_OK;
}

static pl_status read_post_processor(reader *r, const json_t *part)
{
    if (strcmp(type_of(part), "ByteLevel") == 0) return PL_OK;
    if (strcmp(type_of(part), "TemplateProcessing") == 0) return read_template(r, part);
    return BAD(
        "%s: the post_processor %.60s is not supported; ByteLevel, TemplateProcessing, a Sequence of these or null "
        "was expected",
        r->name, type_of(part));
}

/* ---- decoder ---- */

static pl_status read_strip(reader *r, const json_t *part)
{
    const json_int_t start = json_integer_value(json_object_get(part, "start"));
    if (!r->is_fused || strcmp(text_of(part, "content"), " ") != 0 || start < 0 || start > 1 ||
        json_integer_value(json_object_get(part, "stop")) != 0)
        return BAD("%s: the decoder Strip is only supported after Fuse, for one blank at the start", r->name);
    r->p->strips_blank = start == 1;
    return PL_OK;
}

static pl_status read_decoder(reader *r, const json_t *part)
{
    const char *type = type_of(part);
    if (strcmp(type, "ByteLevel") == 0 && r->p->is_bytes) return PL_OK;
    if (r->p->is_bytes || r->p->strips_blank) {
    } else if (strcmp(type, "Replace") == 0 && !r->is_fused) {
        if (!r->p->has_blanks || !replaces(part, BLANK, " ")) return refuse_replace(r, "decoder", part);
        r->decodes_blanks = true;
        return PL_OK;
    } else if (strcmp(type, "ByteFallback") == 0 && !r->is_fused) {
        r->p->joins_bytes = 1;
        return PL_OK;
    } else if (strcmp(type, "Fuse") == 0) {
        r->is_fused = true;
        return PL_OK;
    } else if (strcmp(type, "Strip") == 0) {
        return read_strip(r, part);
    }
    return BAD("%s: the decoder %.60s is not supported here; %s was expected", r->name, type,
               r->p->is_bytes ? "ByteLevel or null" : "a Sequence of Replace, ByteFallback, Fuse and Strip");
}

/* ---- all ---- */

pl_status pl_pipeline_read(const char *name, const json_t *root, pl_pipeline *p, pl_error *err)
{
    reader the_reader = {.name = name, .p = p, .err = err}, *r = &the_reader;
    *p = (pl_pipeline){0};
    PL_TRY(each_part(r, json_object_get(root, "normalizer"), "normalizers", "normalizer", read_normalizer));
    if (p->prefix == PL_PREFIX_ALWAYS && !p->has_blanks)
        return BAD("%s: the normalizer Prepend is not supported without a Replace of blanks", name);
    PL_TRY(each_part(r, json_object_get(root, "pre_tokenizer"), "pretokenizers", "pre_tokenizer", read_pre_tokenizer));
    if (!p->is_bytes && (p->pretoken.scanner != PL_SCANNER_NONE || p->pretoken.precut != PL_PRECUT_NONE))
        return BAD("%s: the pre_tokenizer is not supported without ByteLevel at its end", name);
    PL_TRY(each_part(r, json_object_get(root, "post_processor"), "processors", "post_processor", read_post_processor));
    PL_TRY(each_part(r, json_object_get(root, "decoder"), "decoders", "decoder", read_decoder));
    if (!p->is_bytes && absent(json_object_get(root, "decoder")))
        return BAD("%s: without a ByteLevel pre_tokenizer a decoder was expected", name);
    if (p->has_blanks && !r->decodes_blanks)
        return BAD("%s: the decoder does not replace U+2581 by a blank, which is not supported", name);
    const pl_pipeline plain = pl_pipeline_gpt2(p->prefix == PL_PREFIX_MISSING);
    p->is_utf8 = memcmp(&p->pretoken, &plain.pretoken, sizeof plain.pretoken) != 0 || p->has_nfc;
    return PL_OK;
}

size_t pl_pipeline_normalize(const pl_pipeline *p, const uint8_t *text, size_t bytes, uint8_t *out)
{
    uint8_t folded[PL_TOKEN_BYTES_MAX];
    uint32_t points[PL_TOKEN_BYTES_MAX], normal[PL_NFC_EXPANSION_MAX * PL_TOKEN_BYTES_MAX];
    size_t made = 0, count = 0;
    if (p->prefix == PL_PREFIX_ALWAYS) out[made++] = ' ';
    if (p->has_blanks)
        bytes = pl_fold_blanks(text, bytes, folded);
    else
        memcpy(folded, text, bytes);
    if (!p->has_nfc) {
        memcpy(out + made, folded, bytes);
        return made + bytes;
    }
    for (size_t at = 0; at < bytes; count++) {
        const size_t length = pl_utf8_read(folded + at, bytes - at, &points[count]);
        at += length ? length : 1;
    }
    count = pl_nfc_compose(points, count, normal);
    for (size_t i = 0; i < count; i++) made += pl_utf8_write(normal[i], out + made);
    return made;
}
