/* The page about encoded texts: what was done, some pages, whose sketches are near whose, and the remarks. Texts are
 * not in the results: they are read where they lie, if they are still the ones that were encoded. */
#include "systems/capsules_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/units.h"
#include "config/schema.h"
#include "plimsoll/draw.h"
#include "show/chart.h"

enum { TEXT = 160, DRAWN_BYTES = 8 << 10 };

/* ---- the texts ---- */

/* The index lies next to the results, even if both were moved, or else where the run made it. */
static pl_status find_index(const pl_capsules_page *p, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    const char *slash = strrchr(p->wish->path, '/');
    const int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - p->wish->path) + 1 : 1,
                           slash ? p->wish->path : ".");
    if (n < 0 || n >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "%s: the path is too long", p->wish->path);
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, folder, PL_CAPSULES_INDEX, err));
    if (access(path, R_OK) == 0) return PL_OK;
    return pl_config_run_path(p->wish->given, PL_CAPSULES_INDEX, path, err);
}

static pl_status open_known(pl_capsules_page *p, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_texts_setup s;
    PL_TRY(pl_capsules_texts(p->encoding, p->wish->given, &s, err));
    if (!s.path && s.form != PL_TEXTS_GRAMMAR) return pl_fail(err, PL_E_DATA, "the config names no texts");
    if (s.form != PL_TEXTS_GRAMMAR) PL_TRY(find_index(p, path, err));
    return pl_texts_open(&p->source, &s, path, err);
}

/* A grammar's texts need only the seed, which is among the keys that decide the numbers. */
static pl_status open_grammar(pl_capsules_page *p, pl_error *err)
{
    const pl_texts_setup s = {
        .form = PL_TEXTS_GRAMMAR, .seed = p->encoding->facts(p->config).seed, .count = p->layout->first + p->texts};
    return pl_texts_open(&p->source, &s, NULL, err);
}

static bool are_these(const pl_capsules_page *p)
{
    return pl_texts_identity(&p->source) == pl_facts_value(&p->wish->made, "texts", 0) &&
           p->source.count >= p->layout->first + p->texts;
}

static void open_texts(pl_capsules_page *p)
{
    p->source.fd = p->source.index_fd = -1;
    if (open_grammar(p, &p->why) == PL_OK && are_these(p)) {
        p->is_known = true;
        return;
    }
    pl_texts_close(&p->source);
    if (!p->wish->given) {
        (void)pl_fail(&p->why, PL_E_DATA, "the config that made the results is not known: %.300s", p->wish->why);
        return;
    }
    if (open_known(p, &p->why) != PL_OK) return;
    p->is_known = are_these(p);
    if (p->is_known) return;
    pl_texts_close(&p->source);
    (void)pl_fail(&p->why, PL_E_DATA, "%.300s: these are not the texts that were encoded", p->source.path);
}

/* Without a character that is cut off at the end. */
static size_t whole_characters(const char *text, size_t bytes)
{
    size_t begin = bytes;
    while (begin > 0 && bytes - begin < 3 && ((unsigned char)text[begin - 1] & 0xc0) == 0x80) begin--;
    return begin > 0 && ((unsigned char)text[begin - 1] & 0xc0) == 0xc0 ? begin - 1 : bytes;
}

const char *pl_capsules_said(pl_capsules_page *p, uint64_t place, char text[PL_CAPSULES_SAID_ROOM])
{
    size_t bytes = 0;
    bool whole = true;
    pl_error ignored;
    if (!p->is_known ||
        pl_texts_read(&p->source, pl_capsules_number(p, place), text, PL_CAPSULES_SAID_BYTES, &bytes, &whole, &ignored))
        return "(text not known)";
    if (whole && bytes == 0) return "(empty)";
    if (!whole) bytes = whole_characters(text, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == 0) text[i] = 1; /* shown as an invalid character, too */
    strcpy(text + bytes, whole ? "" : " …");
    return text;
}

/* ---- which of them ---- */

/* Finds the finished places number target, target + 1 … in order: each call continues from the last. */
typedef struct walk {
    uint64_t block, before; /* finished places in earlier blocks */
} walk;

static uint64_t place_of(const pl_capsules_page *p, walk *w, uint64_t target)
{
    uint64_t begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX];
    for (;; w->block++) {
        if (!pl_block_reader_is_done(p->wish->results, w->block)) continue;
        (void)pl_block_ranges(p->layout, w->block, begin, end);
        if (target < w->before + (end[0] - begin[0])) return begin[0] + (target - w->before);
        w->before += end[0] - begin[0];
    }
}

static void count_finished(pl_capsules_page *p)
{
    uint64_t begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX];
    for (uint64_t block = 0, blocks = pl_block_count(p->layout); block < blocks; block++) {
        if (!pl_block_reader_is_done(p->wish->results, block)) continue;
        (void)pl_block_ranges(p->layout, block, begin, end);
        p->finished += end[0] - begin[0];
    }
}

static pl_status take_sample(pl_capsules_page *p, pl_error *err)
{
    walk w = {0};
    p->samples = p->finished < PL_CAPSULES_SAMPLE_MAX ? p->finished : PL_CAPSULES_SAMPLE_MAX;
    p->sample = pl_alloc(p->samples + 1, sizeof *p->sample);
    if (!p->sample) return pl_fail(err, PL_E_NOMEM, "no memory for a page about %" PRIu64 " texts", p->texts);
    for (uint64_t i = 0; i < p->samples; i++)
        p->sample[i] = place_of(p, &w, (uint64_t)((double)i * (double)p->finished / (double)p->samples));
    return PL_OK;
}

static pl_status show_one(pl_capsules_page *p, pl_error *err)
{
    const uint64_t only = p->wish->only, first = p->layout->first;
    if (only < first || only - first >= p->texts)
        return pl_fail(err, PL_E_USAGE, "%s: there is no text %" PRIu64 "; it holds %" PRIu64 " to %" PRIu64,
                       p->wish->path, only, first, first + p->texts - 1);
    p->shown[0] = only - first, p->shown_count = 1;
    if (pl_block_reader_is_done(p->wish->results, pl_block_at(p->layout, 0, p->shown))) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: text %" PRIu64 " is not finished", p->wish->path, only);
}

static pl_status choose_shown(pl_capsules_page *p, pl_error *err)
{
    if (p->wish->only != PL_PAGE_EVERY) return show_one(p, err);
    p->shown_count = p->samples < PL_CAPSULES_SHOWN ? (uint32_t)p->samples : PL_CAPSULES_SHOWN;
    for (uint32_t i = 0; i < p->shown_count; i++) p->shown[i] = p->sample[i * p->samples / p->shown_count];
    return PL_OK;
}

/* ---- pages ---- */

static void say_remarks(const pl_draw_said *said, char words[TEXT])
{
    const struct {
        uint64_t count;
        const char *words;
    } all[] = {{said->truncated_bytes, "bytes do not fit"},
               {said->invalid_bytes, "bytes are no UTF-8"},
               {said->missing_glyphs, "characters that the font lacks"},
               {said->unshaped_lines, "lines could not be shaped"}};
    size_t used = 0;
    words[0] = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].count && used < TEXT)
            used += (size_t)snprintf(words + used, TEXT - used, "%s%" PRIu64 " %s", used ? "; " : "", all[i].count,
                                     all[i].words);
}

static pl_status draw_one(pl_capsules_page *p, uint64_t place, char *room, pl_str *out, pl_error *err)
{
    char text[PL_CAPSULES_SAID_ROOM], name[TEXT], number[32], words[TEXT], *png = NULL;
    pl_draw_options o = pl_draw_default();
    pl_draw_said said;
    size_t bytes = 0, png_bytes = 0;
    bool whole = true;
    o.image_size = p->encoding->facts(p->config).image_size;
    const char *font = p->wish->given ? p->encoding->facts(p->wish->given).font : "";
    if (font[0]) o.font = font;
    PL_TRY(pl_texts_read(&p->source, pl_capsules_number(p, place), room, DRAWN_BYTES, &bytes, &whole, err));
    if (!whole) bytes = whole_characters(room, bytes);
    PL_TRY(pl_draw_text(room, bytes, &o, &png, &png_bytes, &said, err));
    say_remarks(&said, words);
    snprintf(name, sizeof name, "page of text %" PRIu64, pl_capsules_number(p, place));
    pl_chart_draw_picture(
        &(pl_chart_picture){.name = name,
                            .png = png,
                            .png_bytes = png_bytes,
                            .title = pl_format_count(pl_capsules_number(p, place), number, sizeof number),
                            .text = pl_capsules_said(p, place, text),
                            .remark = words},
        out);
    pl_free(png);
    return PL_OK;
}

static pl_status draw_all(pl_capsules_page *p, pl_str *out, pl_error *err)
{
    char *room = pl_alloc(DRAWN_BYTES, 1);
    pl_status status = room ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to draw a page");
    pl_chart_pictures_begin(out);
    for (uint32_t i = 0; i < p->shown_count && status == PL_OK; i++) status = draw_one(p, p->shown[i], room, out, err);
    pl_chart_pictures_end(out);
    pl_free(room);
    return status;
}

/* A page without pictures is allowed; it says why. */
static pl_status add_pages(pl_capsules_page *p, pl_error *err)
{
    pl_error why = p->why;
    pl_status status = PL_E_DATA;
    pl_doc_section_drawn(p->doc, "Pages");
    pl_doc_say(p->doc, 0, "Some texts as the encoder sees them, drawn anew from the texts.");
    if (p->is_known) {
        status = draw_all(p, pl_doc_drawing(p->doc), &why);
        pl_doc_drawing_end(p->doc);
    }
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK) pl_doc_say(p->doc, PL_DOC_BAD, "They are not drawn: %s", why.text);
    pl_doc_section_end(p->doc);
    return PL_OK;
}

/* ---- what it is ---- */

static void add_hash(const pl_capsules_page *p, const char *name, const char *fact)
{
    const uint64_t hash = pl_facts_value(&p->wish->made, fact, 0);
    if (hash) pl_system_show_fact(p->doc, name, "xxh64 %016" PRIx64, hash);
}

static void show_used(const pl_capsules_page *p, const char *name, const char *path)
{
    if (pl_config_is_used(p->config, pl_config_find(path))) pl_system_show_key(p->doc, p->config, name, path);
}

static void add_facts(const pl_capsules_page *p)
{
    char a[32], b[32];
    pl_doc *d = p->doc;
    pl_doc_section(d, "What it is");
    pl_system_show_facts(d);
    pl_system_show_fact(d, "results", "%s", p->wish->path);
    pl_system_show_fact(d, "texts", "%s of %s finished%s", pl_format_count(p->finished, a, sizeof a),
                        pl_format_count(p->texts, b, sizeof b), p->layout->whole ? " (a part of a job)" : "");
    if (p->wish->given && p->wish->given->texts.path[0]) pl_system_show_key(d, p->wish->given, "from", "texts.path");
    if (p->is_known && p->source.form == PL_TEXTS_GRAMMAR)
        pl_system_show_fact(d, "from", "a grammar, made by the seed");
    add_hash(p, "texts by their contents", "texts");
    add_hash(p, "weights of a file", "weights");
    if (pl_capsules_is_random(p)) pl_system_show_fact(d, "weights", "random: a draw of the seed, not trained");
    pl_system_show_fact(d, "sketches", "%" PRIu64 " capsules of %" PRIu64 " numbers", p->capsules, p->width);
    show_used(p, "precision", "encoder.precision");
    show_used(p, "recursion", "encoder.recursion");
    show_used(p, "pooling", "encoder.pooling_method");
    pl_system_show_fact(d, "finished blocks", "%s of %s, form %s",
                        pl_format_count(pl_block_reader_done(p->wish->results), a, sizeof a),
                        pl_format_count(pl_block_count(p->layout), b, sizeof b),
                        pl_block_form_name(pl_block_reader_form(p->wish->results)));
    pl_doc_table_end(d);
    pl_system_show_keys(d, p->config, PL_CONFIG_BY_ENCODE);
    pl_doc_section_end(d);
}

/* ---- planned and measured ---- */

static void add_bytes(const pl_capsules_page *p, const char *name, uint64_t bytes)
{
    char a[32], b[32];
    pl_system_show_fact(p->doc, name, "%s (%s bytes)", pl_format_bytes(bytes, a, sizeof a),
                        pl_format_count(bytes, b, sizeof b));
}

static void add_told(const pl_capsules_page *p)
{
    char a[32], b[32];
    const pl_process_told *last = p->wish->told + p->wish->told_count - 1;
    uint64_t items = 0, planned = 0;
    double seconds = 0;
    for (size_t i = 0; i < p->wish->told_count; i++) {
        items += p->wish->told[i].items, seconds += p->wish->told[i].seconds;
        planned += p->wish->told[i].as_planned;
    }
    pl_system_show_facts(p->doc);
    add_bytes(p, "resident, planned by the last", last->planned_bytes);
    add_bytes(p, "resident, measured", last->measured_bytes);
    add_bytes(p, "peak, the kernel's mark", last->peak_bytes);
    pl_system_show_fact(p->doc, "processes as planned, to the byte", "%s of %s", pl_format_count(planned, a, sizeof a),
                        pl_format_count(p->wish->told_count, b, sizeof b));
    pl_system_show_fact(p->doc, "texts made by these", "%s in %s", pl_format_count(items, a, sizeof a),
                        pl_format_seconds(seconds, b, sizeof b));
    pl_system_show_fact(p->doc, "texts a second", "%s",
                        pl_format_rate(seconds > 0 ? (double)items / seconds : 0, a, sizeof a));
    pl_doc_table_end(p->doc);
}

static void add_processes(const pl_capsules_page *p)
{
    pl_doc_section(p->doc, "Planned and measured");
    pl_doc_say(p->doc, 0,
               "Of the processes that came to their end, or were stopped; those that were killed have not told.");
    if (p->wish->told_count)
        add_told(p);
    else
        pl_doc_say(p->doc, 0, "No process has told.");
    pl_doc_section_end(p->doc);
}

/* ---- the head ---- */

static uint64_t bytes_of_text(const pl_capsules_page *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->layout->datasets; i++) bytes += pl_block_dataset_bytes(&p->layout->dataset[i]);
    return bytes / p->texts;
}

static void add_head(const pl_capsules_page *p)
{
    char title[TEXT], a[32], b[32];
    pl_doc *d = p->doc;
    pl_format_count(p->texts, b, sizeof b);
    snprintf(title, sizeof title, "Capsules of %s text%s", b, pl_plural(p->texts));
    pl_doc_title(d, NULL, "results", title);
    pl_format_count(p->finished, a, sizeof a);
    if (p->finished < p->texts)
        pl_doc_say(d, PL_DOC_BAD, "Not all is finished: %s of %s texts. What is not finished is not shown.", a, b);
    else
        pl_doc_say(d, 0, "All texts are finished.");
    pl_doc_card(d, a, "of %s text%s finished", b, pl_plural(p->texts));
    pl_doc_card(d, pl_format_bytes(p->finished * bytes_of_text(p), a, sizeof a), "of %s of results",
                pl_format_bytes(p->texts * bytes_of_text(p), b, sizeof b));
    pl_doc_card(d, pl_format_count(p->capsules, a, sizeof a), "capsules of each, of %" PRIu64 " numbers", p->width);
}

/* ---- all of it ---- */

static bool is_of(const pl_block_dataset *d, pl_dtype dtype, uint32_t rank)
{
    return d->dtype == dtype && d->rank == rank && d->kind == 0 && !d->constant && !d->is_text;
}

/* What is read below relies on this. */
static pl_status find_datasets(pl_capsules_page *p, pl_error *err)
{
    const pl_block_layout *l = p->layout;
    p->sketches = pl_block_find(l, "sketches"), p->remarks = pl_block_find(l, "remarks");
    p->entropy = pl_block_find(l, "entropy");
    const bool sound = p->sketches != PL_BLOCK_NO_KIND && p->remarks != PL_BLOCK_NO_KIND && l->kinds == 1 &&
                       l->kind[0].axes == 1 && is_of(&l->dataset[p->sketches], PL_DTYPE_F16, 3) &&
                       is_of(&l->dataset[p->remarks], PL_DTYPE_U8, 1) &&
                       (p->entropy == PL_BLOCK_NO_KIND || is_of(&l->dataset[p->entropy], PL_DTYPE_F32, 2));
    if (!sound)
        return pl_fail(err, PL_E_DATA, "%s: what it holds is not what its config says; another version made it",
                       p->wish->path);
    p->texts = l->kind[0].axis[0].extent;
    p->capsules = l->dataset[p->sketches].shape[1], p->width = l->dataset[p->sketches].shape[2];
    return PL_OK;
}

static pl_status write_parts(pl_capsules_page *p, pl_error *err)
{
    PL_TRY(take_sample(p, err));
    PL_TRY(choose_shown(p, err));
    open_texts(p);
    add_head(p);
    add_facts(p);
    add_processes(p);
    PL_TRY(add_pages(p, err));
    PL_TRY(pl_capsules_page_near(p, err));
    PL_TRY(pl_capsules_page_numbers(p, err));
    return pl_capsules_page_remarks(p, err);
}

pl_status pl_capsules_page_write(const pl_capsules_encoding *e, const pl_config *c, const pl_page_wish *wish,
                                 pl_doc *doc, pl_error *err)
{
    pl_capsules_page *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory for a page");
    p->encoding = e, p->config = c, p->wish = wish, p->doc = doc;
    p->layout = pl_block_reader_layout(wish->results);
    p->source.fd = p->source.index_fd = -1;
    pl_status status = find_datasets(p, err);
    if (status == PL_OK) count_finished(p);
    if (status == PL_OK) status = write_parts(p, err);
    pl_texts_close(&p->source);
    pl_free(p->sample);
    pl_free(p);
    return status;
}
