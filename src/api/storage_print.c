/* The storage of a folder as tables and as JSON. */
#include <string.h>

#include "api/api.h"
#include "api/storage.h"
#include "base/json.h"
#include "base/units.h"
#include "report/table.h"

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

static void print_sum(pl_table *t, const char *name, const sum *of)
{
    pl_table_cell(t, "%s", name);
    pl_table_count(t, of->count);
    pl_table_count(t, of->bytes);
    pl_table_count(t, of->gain);
    pl_table_end_row(t);
}

static void print_sums(pl_str *out, const pl_storage *s)
{
    static const char *const heads[] = {"kind", "things", "bytes", "clean gains"};
    for (pl_table t = pl_table_begin(out, "lrrr"); pl_table_pass(&t);) {
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) pl_table_cell(&t, "%s", heads[i]);
        pl_table_end_row(&t);
        for (int k = 0; k < PL_STORAGE_KINDS; k++) {
            const sum one = add_up(s, (pl_storage_kind)k);
            if (one.count) print_sum(&t, kinds[k], &one);
        }
        const sum all = add_up(s, PL_STORAGE_KINDS);
        print_sum(&t, "all", &all);
    }
}

/* Records are many and never go; of what is unknown some are named. */
static bool is_shown(const pl_storage_item *m, size_t *unknown)
{
    if (m->kind == PL_STORAGE_RUN) return false;
    return (m->kind != PL_STORAGE_UNKNOWN && m->kind != PL_STORAGE_LINK) || ++*unknown <= UNKNOWN_SHOWN;
}

static size_t print_items(pl_str *out, const pl_storage *s)
{
    static const char *const heads[] = {"path", "kind", "bytes", "age", "", "why"};
    size_t unknown = 0;
    for (pl_table t = pl_table_begin(out, "llrrll"); pl_table_pass(&t);) {
        unknown = 0;
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) pl_table_cell(&t, "%s", heads[i]);
        pl_table_end_row(&t);
        for (size_t i = 0; i < s->entries; i++) {
            const pl_storage_item *m = &s->entry[i].item;
            char age[32];
            if (!is_shown(m, &unknown)) continue;
            pl_table_cell(&t, "%s", m->path);
            pl_table_cell(&t, "%s", kinds[m->kind]);
            pl_table_count(&t, m->bytes);
            pl_table_cell(&t, "%s", m->age_seconds < 1 ? "now" : pl_format_seconds(m->age_seconds, age, sizeof age));
            pl_table_cell(&t, "%s", fates[m->fate]);
            pl_table_cell(&t, "%s", m->why);
            pl_table_end_row(&t);
        }
    }
    return unknown;
}

static void print_text(pl_str *out, const pl_storage *s)
{
    const sum all = add_up(s, PL_STORAGE_KINDS);
    char here[32], free[32], limit[32], over[32];
    size_t unknown = 0;
    if (s->entries) {
        unknown = print_items(out, s);
        pl_str_append(out, "\n");
    }
    if (unknown > UNKNOWN_SHOWN)
        pl_str_printf(out, "and %zu more that are links or unknown; --json names all\n\n", unknown - UNKNOWN_SHOWN);
    print_sums(out, s);
    pl_str_printf(out, "\n%s here, %s free on the disk\n", pl_format_bytes(all.bytes, here, sizeof here),
                  pl_format_bytes(s->disk_free, free, sizeof free));
    if (!s->rules.limit_bytes) return;
    pl_format_bytes(s->rules.limit_bytes, limit, sizeof limit);
    if (all.bytes <= s->rules.limit_bytes)
        pl_str_printf(out, "within the limit of %s\n", limit);
    else
        pl_str_printf(out, "%s more than the limit of %s\n",
                      pl_format_bytes(all.bytes - s->rules.limit_bytes, over, sizeof over), limit);
}

static void write_item(pl_json *j, const pl_storage_item *m)
{
    pl_json_object(j);
    pl_json_kv_string(j, "path", m->path);
    pl_json_kv_string(j, "kind", kinds[m->kind]);
    pl_json_kv_uint(j, "bytes", m->bytes);
    pl_json_kv_double(j, "age_seconds", m->age_seconds);
    pl_json_kv_string(j, "fate", fates[m->fate]);
    pl_json_kv_uint(j, "gain", m->gain);
    pl_json_kv_string(j, "why", m->why);
    pl_json_object_end(j);
}

static void write_json(pl_str *out, const pl_storage *s)
{
    const sum all = add_up(s, PL_STORAGE_KINDS);
    pl_json j = pl_json_document(out, false, "plimsoll.storage/1");
    pl_json_kv_string(&j, "folder", s->root);
    pl_json_kv_uint(&j, "bytes", all.bytes);
    pl_json_kv_uint(&j, "gain", all.gain);
    pl_json_kv_uint(&j, "disk_free_bytes", s->disk_free);
    pl_json_kv_uint_if(&j, s->rules.limit_bytes > 0, "limit_bytes", s->rules.limit_bytes);
    pl_json_key(&j, "items");
    pl_json_array(&j);
    for (size_t i = 0; i < s->entries; i++) write_item(&j, &s->entry[i].item);
    pl_json_array_end(&j);
    pl_json_document_end(&j);
}

pl_status pl_storage_print(const pl_storage *s, pl_storage_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str out = {0};
    *text = NULL;
    if (form == PL_STORAGE_JSON)
        write_json(&out, s);
    else
        print_text(&out, s);
    if (out.failed) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to print what lies there", s->root);
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}
