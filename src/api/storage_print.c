/* The storage of a folder, as text or as JSON (schema plimsoll.storage/1). */
#include "api/api.h"
#include "api/storage.h"
#include "base/units.h"
#include "show/render.h"

static const char *const kinds[PL_STORAGE_KINDS] = {
    [PL_STORAGE_RUN] = "records",         [PL_STORAGE_CHECKPOINT] = "checkpoint", [PL_STORAGE_RESULTS] = "results",
    [PL_STORAGE_PART] = "part",           [PL_STORAGE_DATA] = "prepared data",    [PL_STORAGE_CACHE] = "cache",
    [PL_STORAGE_TEMPORARY] = "temporary", [PL_STORAGE_OUTPUT] = "output",         [PL_STORAGE_LINK] = "link",
    [PL_STORAGE_UNKNOWN] = "unknown"};
static const char *const fates[PL_STORAGE_FATES] = {[PL_STORAGE_STAYS] = "stays",
                                                    [PL_STORAGE_GOES] = "goes",
                                                    [PL_STORAGE_SHRINKS] = "shrinks",
                                                    [PL_STORAGE_JOINS] = "joins",
                                                    [PL_STORAGE_IN_USE] = "in use"};

enum { UNKNOWN_SHOWN = 10 };

typedef struct sum {
    uint64_t count, bytes, gain;
} sum;

static sum add_up(const pl_storage *s, pl_storage_kind kind)
{
    sum all = {0};
    for (size_t i = 0; i < s->entries; i++) {
        const pl_storage_item *m = &s->entry[i].item;
        if (kind != PL_STORAGE_KINDS && m->kind != kind) continue;
        all.count++;
        all.bytes += m->bytes;
        all.gain += m->gain;
    }
    return all;
}

/* ---- what lies there ---- */

/* Records are many and never go; of what is unknown some are named. */
static bool is_shown(const pl_storage_item *m, size_t *unknown)
{
    if (m->kind == PL_STORAGE_RUN) return false;
    return (m->kind != PL_STORAGE_UNKNOWN && m->kind != PL_STORAGE_LINK) || ++*unknown <= UNKNOWN_SHOWN;
}

static void add_item(const pl_storage_item *m, bool shown, pl_doc *d)
{
    pl_doc_row(d, shown ? 0 : PL_DOC_HIDDEN);
    pl_doc_words(d, "%s", m->path);
    pl_doc_words(d, "%s", kinds[m->kind]);
    pl_doc_count(d, m->bytes);
    pl_doc_real(d, m->age_seconds);
    pl_doc_words(d, "%s", fates[m->fate]);
    pl_doc_key_count(d, "gain", m->gain);
    pl_doc_words(d, "%s", m->why);
    pl_doc_row_end(d);
}

static void add_items(const pl_storage *s, pl_doc *d)
{
    static const pl_doc_column columns[] = {{"path", "path"},
                                            {"kind", "kind"},
                                            {"bytes", "bytes", PL_DOC_EXACT},
                                            {"age_seconds", "age", PL_DOC_SECONDS},
                                            {"fate", ""},
                                            {"why", "why", .is_remark = true}};
    size_t unknown = 0;
    pl_doc_table(d, "items", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->entries; i++) add_item(&s->entry[i].item, is_shown(&s->entry[i].item, &unknown), d);
    pl_doc_table_end(d);
    if (unknown > UNKNOWN_SHOWN)
        pl_doc_say(d, 0, "and %zu more that are links or unknown; --json names all", unknown - UNKNOWN_SHOWN);
}

/* ---- how much of each kind ---- */

static void add_sum(const char *name, const sum *of, unsigned flags, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_SHOWN | flags);
    pl_doc_words(d, "%s", name);
    pl_doc_count(d, of->count);
    pl_doc_count(d, of->bytes);
    pl_doc_count(d, of->gain);
    pl_doc_row_end(d);
}

static void add_sums(const pl_storage *s, const sum *all, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, "kind"},
                                            {NULL, "things", PL_DOC_COUNT},
                                            {NULL, "bytes", PL_DOC_EXACT},
                                            {NULL, "clean gains", PL_DOC_EXACT}};
    pl_doc_section(d, "In all");
    pl_doc_table(d, NULL, columns, sizeof columns / sizeof *columns);
    for (int k = 0; k < PL_STORAGE_KINDS; k++) {
        const sum one = add_up(s, (pl_storage_kind)k);
        if (one.count) add_sum(kinds[k], &one, 0, d);
    }
    add_sum("all", all, PL_DOC_TOTAL, d);
    pl_doc_table_end(d);
}

static void say_room(const pl_storage *s, uint64_t here, pl_doc *d)
{
    const uint64_t limit = s->rules.limit_bytes;
    char bytes[32], rest[32];
    pl_doc_say(d, 0, "%s here, %s free on the disk", pl_format_bytes(here, bytes, sizeof bytes),
               pl_format_bytes(s->disk_free, rest, sizeof rest));
    if (!limit) return;
    pl_format_bytes(limit, bytes, sizeof bytes);
    if (here <= limit)
        pl_doc_say(d, PL_DOC_GOOD, "within the limit of %s", bytes);
    else
        pl_doc_say(d, PL_DOC_BAD, "%s more than the limit of %s", pl_format_bytes(here - limit, rest, sizeof rest),
                   bytes);
}

static void add_all(const pl_storage *s, pl_doc *d)
{
    const sum all = add_up(s, PL_STORAGE_KINDS);
    pl_doc_key_words(d, "schema", "plimsoll.storage/1");
    pl_doc_key_words(d, "folder", s->root);
    pl_doc_key_count(d, "bytes", all.bytes);
    pl_doc_key_count(d, "gain", all.gain);
    pl_doc_key_count(d, "disk_free_bytes", s->disk_free);
    pl_doc_key_count_if(d, s->rules.limit_bytes, "limit_bytes", s->rules.limit_bytes);
    add_items(s, d);
    add_sums(s, &all, d);
    say_room(s, all.bytes, d);
    pl_doc_section_end(d);
}

pl_status pl_storage_print(const pl_storage *s, pl_storage_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str out = {0};
    pl_doc d = pl_doc_begin();
    *text = NULL;
    add_all(s, &d);
    pl_doc_write(&d, form == PL_STORAGE_JSON ? PL_FORM_JSON : PL_FORM_TEXT, NULL, &out);
    pl_doc_deinit(&d);
    if (out.failed) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to print what lies there", s->root);
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}
