#include "data/pages/pages_data.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/units.h"
#include "texts/corpus.h"

static const pl_pages_data *data_of(const pl_source *source)
{
    return (const pl_pages_data *)((const char *)source - offsetof(pl_pages_data, source));
}

/* ---- the source ---- */

/* More than the largest page can show (54 lines of 125 characters of 4 bytes), unless the text is mostly white
 * space. */
enum { TEXT_BYTES = 64 << 10, LINE_BYTES = 64 };
enum { PAGES_PORT, REMARKS_PORT };

/* The scratch of a thread that draws: this, then its drawer. */
typedef struct worker {
    pl_drawer *drawer; /* NULL: it could not be opened, as `error` says */
    pl_status status;
    pl_error error;
    uint8_t *packed; /* room for a page of the cache, where there is one */
    char text[TEXT_BYTES];
} worker;

static uint64_t worker_bytes(void) { return pl_align_up(sizeof(worker), LINE_BYTES); }
static uint64_t page_bytes(const pl_pages_data *d) { return (uint64_t)d->setup.image_size * d->setup.image_size; }

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_pages_data *d = data_of(source);
    uint64_t pages;
    if (pl_size_mul(page_bytes(d), micro_batch, &pages))
        return pl_fail(err, PL_E_CONFIG,
                       "%u pages of %u pixels either way at once are absurdly many; take fewer at once", micro_batch,
                       d->setup.image_size);
    *l = (pl_source_layout){
        .port = {{"pages", PL_DTYPE_U8, pages, 0, NULL}, {"remarks", PL_DTYPE_U8, micro_batch, 0, NULL}},
        .ports = 2,
        .scratch_bytes = worker_bytes() + pl_align_up(pl_drawer_bytes(&d->geometry), LINE_BYTES) +
                         (d->cache ? pl_page_cache_scratch_bytes(d->setup.image_size, d->setup.image_size) : 0)};
    return PL_OK;
}

/* A hash of what decides a page besides its text: the font, the sizes, and how this machine's libraries draw a page
 * with something of each kind. */
static uint64_t recipe_of(const pl_pages_data *d, worker *w)
{
    enum { FORM = 1 }; /* version of pages and of what is kept of them: a new number, and none is found */
    static const char probe[] =
        "Aa fi 1\tx\xcc\x81 \xd9\x84\xd8\xa7\xd9\x85 \xd7\xa9\xd7\x9c \xe4\xb8\xad \xf0\x9f\x98\x80 \xff {};";
    pl_page_remarks ignored;
    pl_draw_page(w->drawer, probe, sizeof probe - 1, w->packed, &ignored);
    const pl_page_geometry *g = &d->geometry;
    const uint64_t of[] = {FORM,          d->setup.font.hash, g->image_size,     g->font_px,
                           g->padding_px, g->pitch_px,        g->whole_advances, XXH64(w->packed, page_bytes(d), 0)};
    return XXH64(of, sizeof of, 0);
}

static void prepare(const pl_source *source, void *scratch)
{
    const pl_pages_data *d = data_of(source);
    worker *w = scratch;
    w->packed = (uint8_t *)scratch + worker_bytes() + pl_align_up(pl_drawer_bytes(&d->geometry), LINE_BYTES);
    w->status = pl_drawer_open(d->draw.functions, &d->geometry, &d->setup.font, (char *)scratch + worker_bytes(),
                               pl_drawer_bytes(&d->geometry), &w->drawer, &w->error);
    if (w->drawer && d->cache && d->setup.opens_cache) pl_page_cache_open(d->cache, recipe_of(d, w));
}

uint8_t pl_page_remark_bits(const pl_page_remarks *r, bool whole)
{
    return (uint8_t)((r->truncated_bytes > 0 || !whole) << PL_PAGE_PLACE_TRUNCATED |
                     (r->invalid_bytes > 0) << PL_PAGE_PLACE_INVALID |
                     (r->missing_glyphs > 0) << PL_PAGE_PLACE_MISSING |
                     (r->unshaped_lines > 0) << PL_PAGE_PLACE_UNSHAPED);
}

size_t pl_page_without_cut(const char *text, size_t bytes)
{
    size_t begin = bytes;
    while (begin > 0 && bytes - begin < 3 && ((unsigned char)text[begin - 1] & 0xc0) == 0x80) begin--;
    if (begin == 0) return bytes;
    const unsigned char lead = (unsigned char)text[begin - 1];
    const size_t wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return bytes - (begin - 1) < wanted ? begin - 1 : bytes;
}

static pl_status draw(const pl_pages_data *d, worker *w, uint64_t number, uint8_t *page, uint8_t *remarks,
                      pl_error *err)
{
    pl_page_remarks of;
    size_t bytes;
    bool whole;
    PL_TRY(pl_texts_read((pl_texts *)&d->setup.texts, number, w->text, sizeof w->text, &bytes, &whole, err));
    if (!whole) bytes = pl_page_without_cut(w->text, bytes);
    const bool cached = d->cache && d->setup.opens_cache;
    if (cached && pl_page_cache_get(d->cache, w->text, bytes, whole, w->packed, page, remarks)) return PL_OK;
    pl_draw_page(w->drawer, w->text, bytes, page, &of);
    *remarks = pl_page_remark_bits(&of, whole);
    if (cached) pl_page_cache_put(d->cache, w->text, bytes, whole, w->packed, page, *remarks);
    return PL_OK;
}

/* Rows past the last text, or the block's, are empty paper. */
static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_pages_data *d = data_of(source);
    worker *w = scratch;
    uint8_t *pages = slot->port[PAGES_PORT].at, *remarks = slot->port[REMARKS_PORT].at;
    slot->counted = 0;
    if (!w->drawer) return pl_fail(err, w->status, "%s", w->error.text);
    for (uint32_t i = 0; i < slot->rows; i++) {
        const uint64_t place = slot->micro * (uint64_t)slot->rows + i, at = slot->step * d->setup.block + place;
        uint8_t *page = pages + i * page_bytes(d);
        const bool is_text = place < d->setup.block && at < d->setup.count;
        remarks[i] = 0;
        slot->counted += is_text;
        if (is_text)
            PL_TRY(draw(d, w, d->setup.first + at, page, &remarks[i], err));
        else
            memset(page, 255, page_bytes(d));
    }
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    const pl_pages_data *d = data_of(source);
    const uint64_t left = d->setup.count - step * d->setup.block;
    (void)part;
    return left < d->setup.block ? left : d->setup.block;
}

static const char *const remark_texts[] = {
#define PL_PAGE_REMARK_TEXT(c, word, text) text,
    PL_PAGE_REMARKS(PL_PAGE_REMARK_TEXT) NULL};

static const pl_source_kind pages = {.name = "pages",
                                     .describe = describe,
                                     .prepare = prepare,
                                     .fill = fill,
                                     .count = count,
                                     .verb = "draw",
                                     .cache_key = "pipeline.cache_dir",
                                     .remarks = {REMARKS_PORT, remark_texts}};

/* ---- the layout of the results ---- */

static void add_dataset(pl_pages_data *d, const char *name, pl_dtype dtype, uint32_t rank, const uint64_t *rest)
{
    pl_block_dataset *to = &d->dataset[d->layout.datasets++];
    *to = (pl_block_dataset){.name = name, .dtype = dtype, .rank = rank, .shape = {d->setup.count}};
    memcpy(to->shape + 1, rest, (rank - 1) * sizeof *rest);
}

static void make_layout(pl_pages_data *d)
{
    const pl_pages_setup *o = &d->setup;
    d->kind = (pl_block_kind){.name = "texts", .axes = 1, .axis = {{"text", o->count, d->block}}};
    d->layout =
        (pl_block_layout){.text = o->text, .kind = &d->kind, .kinds = 1, .dataset = d->dataset, .first = o->first};
    if (o->count < o->texts.count) d->layout.whole = o->texts.count;
    add_dataset(d, "sketches", PL_DTYPE_F16, 3, (uint64_t[]){o->capsules, o->width});
    add_dataset(d, "checksums", PL_DTYPE_F16, 3, (uint64_t[]){o->capsules, o->checksum});
    add_dataset(d, "children", PL_DTYPE_F16, 4, (uint64_t[]){o->capsules, o->children, o->width});
    add_dataset(d, "remarks", PL_DTYPE_U8, 1, (uint64_t[]){0});
    if (o->entropy) add_dataset(d, "entropy", PL_DTYPE_F32, 2, (uint64_t[]){o->capsules});
    d->sink = (pl_block_sink){.path = o->path, .form = o->form, .layout = &d->layout, .open_max = 1};
    d->data.sink = &d->sink;
}

/* ---- the identity of the data ---- */

static void say_texts(pl_pages_data *d)
{
    static const char *const forms[] = {[PL_TEXTS_LINES] = "lines of ",           [PL_TEXTS_JSONL] = "JSON lines of ",
                                        [PL_TEXTS_CSV] = "CSV records of ",       [PL_TEXTS_FOLDER] = "files of ",
                                        [PL_TEXTS_SQUAD] = "SQuAD's strings of ", [PL_TEXTS_WHOLE] = "all of ",
                                        [PL_TEXTS_GATHERED] = "gathered from ",   [PL_TEXTS_GRAMMAR] = "of a grammar"};
    const pl_texts *t = &d->setup.texts;
    char count[32], other[32], names[PL_CORPUS_SAID_BYTES];
    pl_str s = pl_str_fixed(d->data.said, sizeof d->data.said);
    const bool is_made = t->form == PL_TEXTS_GRAMMAR, is_some = t->count < t->info.count && !is_made;
    (void)pl_format_count(t->count, count, sizeof count);
    if (is_some)
        pl_str_printf(&s, "the first %s of %s texts", count, pl_format_count(t->info.count, other, sizeof other));
    if (!is_some) pl_str_printf(&s, "%s text%s", count, pl_plural(t->count));
    const char *of = t->form == PL_TEXTS_GATHERED ? pl_corpus_said(d->setup.names, names) : is_made ? "" : t->path;
    pl_str_printf(&s, ": %s%.300s", forms[t->form], of);
    d->data.has_less = !is_made && t->wanted > t->info.count;
    if (d->data.has_less)
        pl_str_printf(&s, "; there are no more (texts.count %s)", pl_format_count(t->wanted, other, sizeof other));
    if (d->setup.weights_said && d->setup.weights_said[0]) pl_str_printf(&s, "; %s", d->setup.weights_said);
    d->data.has_less |= d->setup.weights_are_others;
    for (char *c = d->data.said; *c; c++) /* a name may be any bytes */
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
}

/* ---- data ---- */

static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    (void)data, (void)saved, (void)saved_path, (void)trains, (void)err;
    return PL_OK;
}

static void close_data(pl_data *data)
{
    pl_pages_data *d = (pl_pages_data *)data;
    pl_texts_close(&d->setup.texts);
    pl_free((void *)(uintptr_t)d->setup.font.data);
    pl_module_unload(&d->draw);
    pl_page_cache_destroy(d->cache);
    pl_free(d->path);
    pl_free(d->text);
    pl_free(d->weights);
    pl_free(d);
}

/* All texts have one shape, so one plan serves them all; taken as a group, all of the work is looked over. */
static pl_status choose(pl_data *data, uint32_t group, pl_error *err)
{
    (void)data;
    return group == 0 ? PL_OK
                      : pl_fail(err, PL_E_DATA, "the texts have one shape, number %u was planned; plan again", group);
}

static void say_group(const pl_data *data, pl_str *text)
{
    const pl_pages_data *d = (const pl_pages_data *)data;
    pl_str_printf(text, "pages of %u x %u", d->setup.image_size, d->setup.image_size);
}

static const pl_data_kind kind = {.match = match, .close = close_data, .choose = choose, .say_group = say_group};

static pl_status open_cache(pl_pages_data *d, pl_error *err)
{
    const pl_pages_setup *o = &d->setup;
    const pl_page_cache_setup setup = {o->cache, o->cache_bytes, o->image_size, o->image_size, &pl_page_cache_drawn};
    PL_TRY(pl_page_cache_create(&setup, &d->cache, err));
    d->data.file = "cache of pages, at most";
    d->data.file_bytes = pl_page_cache_disk_bytes(o->cache_bytes);
    d->data.kernel_cache_bytes = o->cache_is_memory ? d->data.file_bytes : PL_CACHE_PAGE_CACHE_BYTES;
    return PL_OK;
}

static pl_status copy_texts(pl_pages_data *d, pl_error *err)
{
    pl_pages_setup *o = &d->setup;
    d->path = pl_strdup(o->path), d->text = pl_strdup(o->text);
    if (o->weights) d->weights = pl_strdup(o->weights);
    if (!d->path || !d->text || (o->weights && !d->weights)) return pl_fail(err, PL_E_NOMEM, "no memory for the texts");
    o->path = d->path, o->text = d->text, o->weights = d->data.weights = d->weights;
    d->data.weights_part = o->weights_part;
    return PL_OK;
}

static pl_status fill_data(pl_pages_data *d, pl_error *err)
{
    pl_pages_setup *o = &d->setup;
    PL_TRY(copy_texts(d, err));
    d->block = o->block;
    if (o->count < o->block) o->block = (uint32_t)o->count;
    if (o->at_once > o->block) o->at_once = o->block;
    d->geometry = pl_page_geometry_of(o->image_size);
    PL_TRY(pl_page_geometry_check(&d->geometry, err));
    PL_TRY(pl_draw_load("encode", &d->draw, err));
    d->form = (pl_page_form){d->draw.functions, &d->geometry, &o->font};
    d->data.for_rows = &d->form;
    if (o->cache) PL_TRY(open_cache(d, err));
    d->source = (pl_source){.kind = &pages, .batch = o->block, .at_once = o->at_once, .threads = o->threads};
    d->source.steps_per_epoch[PL_PART_TRAIN] = (o->count - 1) / o->block + 1;
    d->data.source = &d->source;
    d->data.limit_seconds = o->limit_seconds;
    d->data.groups = 1;
    d->data.group_items = d->source.steps_per_epoch[PL_PART_TRAIN];
    d->data.group_samples = o->count;
    d->data.path = o->texts.path[0] ? o->texts.path : "the texts";
    pl_facts_add(&d->data.identity, "texts", pl_texts_identity(&o->texts));
    pl_facts_add(&d->data.identity, "font", o->font.hash);
    if (o->weights) pl_facts_add(&d->data.identity, PL_FACT_WEIGHTS, o->weights_hash);
    if (o->extent) pl_facts_add(&d->data.extents, o->extent, 1);
    say_texts(d);
    o->weights_said = o->names = NULL; /* the caller's */
    make_layout(d);
    return PL_OK;
}

pl_status pl_pages_data_open(pl_pages_setup *setup, pl_pages_data **data, pl_error *err)
{
    pl_pages_data *d = pl_alloc(1, sizeof *d);
    if (!d) {
        pl_texts_close(&setup->texts);
        pl_free((void *)(uintptr_t)setup->font.data);
        return pl_fail(err, PL_E_NOMEM, "no memory for the texts");
    }
    d->data.kind = &kind;
    d->setup = *setup;
    pl_status status = fill_data(d, err);
    if (status != PL_OK) return close_data(&d->data), status;
    *data = d;
    return PL_OK;
}

void pl_pages_data_calibrate(pl_pages_data *d)
{
    pl_pages_setup *o = &d->setup;
    o->block = 1;
    d->source.batch = d->source.at_once = 1;
    d->source.steps_per_epoch[PL_PART_TRAIN] = o->count;
    d->data.groups = 0;
    d->data.sink = NULL;
}

pl_status pl_pages_data_witness(pl_pages_data *d, uint64_t number, const char *fact, pl_error *err)
{
    pl_pages_setup *o = &d->setup;
    if (number < o->first || number - o->first >= o->count)
        return pl_fail(err, PL_E_CONFIG, "there is no text %" PRIu64 ": this job has %" PRIu64 ", from %" PRIu64 " on",
                       number, o->count, o->first);
    o->first = number;
    o->count = o->block = 1;
    d->source.batch = d->source.at_once = d->source.threads = 1;
    d->source.steps_per_epoch[PL_PART_TRAIN] = 1;
    d->data.groups = 0;
    d->data.sink = NULL;
    pl_facts_add(&d->data.identity, fact, number);
    pl_facts_add(&d->data.extents, "witness", 1);
    return PL_OK;
}
