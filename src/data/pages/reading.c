#include "data/pages/reading.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/permutation.h"
#include "base/policy.h"
#include "base/rollout.h"
#include "base/size.h"
#include "base/units.h"
#include "data/pages/reading_kept.h"
#include "data/pages/trigrams.h"

enum { CAPSULES_MAX = 64, TEXT_BYTES = CAPSULES_MAX * PL_LEXICON_WORD_BYTES, LINE_BYTES = 64 };

static void *port_of(const pl_reading *r, const pl_slot *slot, pl_reading_port which)
{
    return slot->port[r->port[which]].at;
}

/* Are pages drawn in all sizes? */
static bool in_sizes(const pl_reading *r) { return r->setup.chooses || r->setup.places; }

/* A step's data are few values, so where a page is read its noise parameters follow its feature. */
static bool noise_is_behind(const pl_reading *r) { return r->setup.places && r->setup.makes_noisy; }
static uint32_t feature_columns(const pl_reading *r)
{
    return PL_POLICY_FEATURES + 1 + (noise_is_behind(r) ? PL_ROLLOUT_COLUMNS : 0);
}

static const pl_reading *reading_of(const pl_source *source)
{
    return (const pl_reading *)((const char *)source - offsetof(pl_reading, source));
}

/* ---- a page's words ---- */

/* How far a text, broken into lines (layout.h), has got. */
typedef struct place {
    uint32_t row, column;
} place;

static bool takes(const pl_reading *r, place *at, uint32_t letters)
{
    if (at->column > 0 && at->column + 1 + letters > r->columns) at->row++, at->column = 0;
    at->column += (at->column > 0) + letters;
    return at->row < r->rows;
}

uint32_t pl_reading_words(const pl_reading *r, uint64_t number, uint32_t *word)
{
    const pl_lexicon *l = &r->setup.lexicon;
    const pl_philox random = pl_philox_init(r->setup.seed, pl_stream_id("data/reading"));
    place at = {0};
    uint32_t bits[4], count = 0;
    for (; count < r->setup.capsules; count++) {
        if (count % 4 == 0) pl_philox_block(&random, 0, number, count / 4, bits);
        word[count] = (uint32_t)((uint64_t)bits[count % 4] * l->count >> 32);
        if (!takes(r, &at, l->bytes[word[count]])) break;
    }
    return count;
}

static size_t text_of(const pl_reading *r, const uint32_t *word, uint32_t count, char text[TEXT_BYTES])
{
    const pl_lexicon *l = &r->setup.lexicon;
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i) text[bytes++] = ' ';
        memcpy(text + bytes, l->word[word[i]], l->bytes[word[i]]);
        bytes += l->bytes[word[i]];
    }
    return bytes;
}

/* ---- the source ---- */

/* The scratch of the thread that draws: this, then its drawers. */
typedef struct worker {
    pl_drawer *drawer[PL_POLICY_SIZES]; /* one for each size */
    pl_status status;                   /* of opening them; `error` says why it failed */
    pl_error error;
    char text[TEXT_BYTES];
} worker;

static uint64_t worker_bytes(void) { return pl_align_up(sizeof(worker), LINE_BYTES); }
static uint64_t page_bytes(const pl_reading *r) { return (uint64_t)r->setup.image_size * r->setup.image_size; }

/* The sizes in which each page is drawn, and the form of one: lines are 4 pixels farther apart than the font's size. */
static uint32_t sizes_of(const pl_reading *r) { return in_sizes(r) ? PL_POLICY_SIZES : 1; }

static pl_page_geometry geometry_of(const pl_reading *r, uint32_t size)
{
    pl_page_geometry g = r->geometry;
    if (!in_sizes(r)) return g;
    g.font_px = g.font_px + size - PL_POLICY_SIZE_AS_IS;
    g.pitch_px = g.pitch_px + size - PL_POLICY_SIZE_AS_IS;
    return g;
}

static uint64_t drawer_bytes(const pl_reading *r, uint32_t size)
{
    const pl_page_geometry g = geometry_of(r, size);
    return pl_align_up(pl_drawer_bytes(&g), LINE_BYTES);
}

static uint64_t drawers_bytes(const pl_reading *r)
{
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < sizes_of(r); k++) bytes += drawer_bytes(r, k);
    return bytes;
}

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_reading *r = reading_of(source);
    const uint64_t labels = (uint64_t)micro_batch * r->setup.capsules * sizeof(int32_t),
                   feature = (uint64_t)micro_batch * feature_columns(r) * sizeof(float);
    uint64_t pages;
    if (pl_size_mul(sizes_of(r) * page_bytes(r), micro_batch, &pages) || pages > INT64_MAX)
        return pl_fail(err, PL_E_CONFIG, "a micro-batch of %u pages of %u pixels either way is absurdly large",
                       micro_batch, r->setup.image_size);
    const pl_port all[PL_READING_PORTS] = {
        [PL_READING_PAGES] = {"pages", PL_DTYPE_U8, pages, 0, NULL},
        [PL_READING_LABELS] = {"labels", PL_DTYPE_I32, labels, r->setup.lexicon.count, NULL},
        [PL_READING_FEATURE] = {"feature", PL_DTYPE_F32, feature, 0, NULL},
        [PL_READING_NOISE] = {"noise", PL_DTYPE_F32, micro_batch * PL_ROLLOUT_COLUMNS * sizeof(float), 0, NULL},
        [PL_READING_NUMBERS] = {"numbers", PL_DTYPE_I64, micro_batch * PL_ROLLOUT_IDS * sizeof(int64_t), 0, NULL}};
    *l = (pl_source_layout){.scratch_bytes = worker_bytes() + drawers_bytes(r)};
    for (int i = 0; i < PL_READING_KEPT; i++)
        if (r->port[i] != UINT32_MAX) l->port[l->ports++] = all[i];
    return pl_reading_describe_kept(r, micro_batch, l, err);
}

static void prepare(const pl_source *source, void *scratch)
{
    const pl_reading *r = reading_of(source);
    worker *w = scratch;
    char *at = (char *)scratch + worker_bytes();
    w->status = PL_OK;
    for (uint32_t k = 0; k < sizes_of(r) && w->status == PL_OK; at += drawer_bytes(r, k), k++) {
        const pl_page_geometry g = geometry_of(r, k);
        w->status =
            pl_drawer_open(r->draw.functions, &g, &r->setup.font, at, drawer_bytes(r, k), &w->drawer[k], &w->error);
    }
}

/* Which page sample `number` of a part is; false: there is none. Each epoch has an order of its own. */
static bool find_page(const pl_reading *r, pl_part part, uint64_t number, uint64_t *page)
{
    const uint64_t all = r->count[part];
    if (part == PL_PART_TRAIN) {
        const pl_permutation order =
            pl_permutation_init(all, pl_philox_init(r->setup.seed, pl_stream_id("data/reading/order")));
        number = pl_permutation_at(&order, number / all, number % all);
    }
    if (number >= all) return false;
    *page = r->page[part][number];
    return true;
}

static bool find_sample(const pl_reading *r, pl_part part, uint64_t step, uint64_t in_step, uint64_t *page)
{
    return in_step < r->source.batch && find_page(r, part, step * r->source.batch + in_step, page);
}

bool pl_reading_find_row(const pl_reading *r, const pl_slot *slot, uint32_t i, uint64_t *page)
{
    return find_sample(r, slot->part, slot->step, (uint64_t)slot->micro * slot->rows + i, page);
}

/* ---- noise ---- */

/* A page has new noise each time it is seen: in evaluation always that of epoch 0. */
static void describe_noise(const pl_reading *r, pl_part part, uint64_t number, uint64_t page, float *row, int64_t *id)
{
    const pl_philox random = pl_philox_init(r->setup.seed, pl_stream_id("data/reading/noise"));
    const uint64_t epoch = part == PL_PART_TRAIN ? number / r->count[part] : 0;
    uint32_t bits[4];
    pl_philox_block(&random, (uint32_t)epoch, page, 0, bits);
    memset(row, 0, PL_ROLLOUT_COLUMNS * sizeof *row);
    row[PL_ROLLOUT_NOISE_KIND] = PL_NOISE_GAUSSIAN;
    row[PL_ROLLOUT_NOISE_SCALE] = (float)(r->setup.noise * ldexp(bits[0], -32));
    row[PL_ROLLOUT_NOISE_SCHEDULE] = PL_NOISE_SCHEDULE_CONSTANT;
    id[PL_ROLLOUT_OPERATOR] = (int64_t)page;
    id[PL_ROLLOUT_REALISATION] = (int64_t)(uint32_t)epoch;
}

static void fill_noise(const pl_reading *r, pl_slot *slot)
{
    const bool behind = noise_is_behind(r);
    float *row = behind ? (float *)port_of(r, slot, PL_READING_FEATURE) + PL_POLICY_FEATURES + 1
                        : port_of(r, slot, PL_READING_NOISE);
    const uint32_t columns = behind ? feature_columns(r) : PL_ROLLOUT_COLUMNS;
    int64_t *id = port_of(r, slot, PL_READING_NUMBERS);
    for (uint32_t i = 0; i < slot->rows; i++, row += columns, id += PL_ROLLOUT_IDS) {
        const uint64_t in_step = (uint64_t)slot->micro * slot->rows + i,
                       number = slot->step * r->source.batch + in_step;
        uint64_t page = 0;
        (void)pl_reading_find_row(r, slot, i, &page); /* a row without a page gets a page's noise */
        describe_noise(r, slot->part, number, page, row, id);
    }
}

/* Items of a page with so many words. Every page has at least one. */
static uint64_t items_of(const pl_reading *r, uint32_t words) { return r->setup.counts_pages ? words > 0 : words; }

static void draw_sizes(const pl_reading *r, worker *w, size_t bytes, uint8_t *paper)
{
    pl_page_remarks ignored;
    for (uint32_t k = 0; k < sizes_of(r); k++, paper += page_bytes(r))
        pl_draw_page(w->drawer[k], w->text, bytes, paper, &ignored);
}

/* Fills what goes with a row's pictures: the text's feature, and the words of a page that is read. */
static void fill_row(const pl_reading *r, const worker *w, pl_slot *slot, uint32_t i, const uint32_t *word,
                     uint32_t words, size_t bytes)
{
    const uint32_t width = PL_POLICY_FEATURES, capsules = r->setup.capsules;
    if (in_sizes(r)) {
        float *feature = (float *)port_of(r, slot, PL_READING_FEATURE) + (size_t)i * feature_columns(r);
        pl_trigram_feature(r->setup.seed, w->text, bytes, width, feature);
        feature[width] = words > 0;
    }
    if (r->setup.chooses) return;
    int32_t *label = (int32_t *)port_of(r, slot, PL_READING_LABELS) + (size_t)i * capsules;
    for (uint32_t k = 0; k < capsules; k++) label[k] = k < words ? (int32_t)word[k] : -1;
}

/* Rows past the last page are empty paper. */
static void draw_row(const pl_reading *r, worker *w, uint32_t words, size_t bytes, uint8_t *paper)
{
    if (words)
        draw_sizes(r, w, bytes, paper);
    else
        memset(paper, 255, sizes_of(r) * page_bytes(r));
}

static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_reading *r = reading_of(source);
    worker *w = scratch;
    uint8_t *paper = port_of(r, slot, PL_READING_PAGES);
    slot->counted = 0;
    if (w->status != PL_OK) return pl_fail(err, w->status, "%s", w->error.text);
    const bool is_known = pl_reading_fill_kept(r, (char *)scratch + worker_bytes() + drawers_bytes(r), slot),
               draws = !is_known || !pl_reading_is_in_place(r);
    for (uint32_t i = 0; i < slot->rows; i++, paper += sizes_of(r) * page_bytes(r)) {
        uint32_t word[CAPSULES_MAX], words = 0;
        size_t bytes = 0;
        uint64_t page;
        if (pl_reading_find_row(r, slot, i, &page)) {
            words = pl_reading_words(r, page, word);
            bytes = text_of(r, word, words, w->text);
        }
        if (draws) draw_row(r, w, words, bytes, paper);
        fill_row(r, w, slot, i, word, words, bytes);
        slot->counted += items_of(r, words);
    }
    if (r->setup.makes_noisy) fill_noise(r, slot);
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    const pl_reading *r = reading_of(source);
    uint64_t items = 0, page;
    uint32_t word[CAPSULES_MAX];
    for (uint64_t i = 0; i < source->batch; i++)
        if (find_sample(r, part, step, i, &page)) items += items_of(r, pl_reading_words(r, page, word));
    return items;
}

static const pl_source_kind pages = {.name = "reading",
                                     .describe = describe,
                                     .prepare = prepare,
                                     .fill = fill,
                                     .count = count,
                                     .known = pl_reading_make_known,
                                     .keep = pl_reading_keep,
                                     .tell = pl_reading_tell,
                                     .verb = "draw"};

/* ---- the parts ---- */

static bool is_held_out(const pl_reading *r, uint64_t number)
{
    char text[TEXT_BYTES];
    uint32_t word[CAPSULES_MAX];
    const size_t bytes = text_of(r, word, pl_reading_words(r, number, word), text);
    return (double)XXH64(text, bytes, r->setup.seed) < ldexp(r->setup.held_out, 64);
}

static pl_status part_pages(pl_reading *r, pl_error *err)
{
    const uint64_t all = r->setup.pages;
    for (int part = 0; part < 2; part++)
        if (!(r->page[part] = pl_alloc(all, sizeof *r->page[part])))
            return pl_fail(err, PL_E_NOMEM,
                           "no memory for the numbers of %" PRIu64 " pages; make reading.pages smaller", all);
    for (uint64_t i = 0; i < all; i++) {
        const int part = is_held_out(r, i) ? PL_PART_VALIDATION : PL_PART_TRAIN;
        r->page[part][r->count[part]++] = (uint32_t)i;
    }
    const bool wants = r->setup.held_out > 0;
    if (r->count[PL_PART_TRAIN] && (!wants || r->count[PL_PART_VALIDATION])) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "of %" PRIu64 " pages, reading.held_out %g leaves none %s; make reading.pages larger", all,
                   r->setup.held_out, r->count[PL_PART_TRAIN] ? "to evaluate" : "to train with");
}

static pl_status measure_size(pl_reading *r, uint32_t size, void *memory, pl_error *err)
{
    pl_drawer *drawer = NULL;
    const pl_page_geometry g = geometry_of(r, size);
    void *at = (void *)pl_align_up((uintptr_t)memory, LINE_BYTES);
    PL_TRY(pl_drawer_open(r->draw.functions, &g, &r->setup.font, at, drawer_bytes(r, size), &drawer, err));
    if (!in_sizes(r) || size == PL_POLICY_SIZE_AS_IS)
        r->columns = pl_drawer_columns(drawer), r->rows = pl_drawer_rows(drawer);
    pl_drawer_close(drawer);
    return PL_OK;
}

/* The font works as it is, but not in this size: small letters give a large page too many per line, and too many
 * lines. */
static pl_status refuse_size(const pl_reading *r, uint32_t size, pl_error *err)
{
    const pl_error why = *err;
    return pl_fail(
        err, PL_E_CONFIG,
        "vision_encoder.image_size %u: the policy draws its pages in %d sizes, and with letters of %u pixels "
        "%.*s; make vision_encoder.image_size %s",
        r->setup.image_size, PL_POLICY_SIZES, geometry_of(r, size).font_px, (int)strcspn(why.text, ";"), why.text,
        size < PL_POLICY_SIZE_AS_IS ? "smaller" : "larger");
}

static pl_status measure_sizes(pl_reading *r, void *memory, pl_error *err)
{
    PL_TRY(measure_size(r, in_sizes(r) ? PL_POLICY_SIZE_AS_IS : 0, memory, err));
    for (uint32_t k = 0; k < sizes_of(r); k++) {
        const pl_status status = measure_size(r, k, memory, err);
        if (status != PL_OK) return status == PL_E_DATA ? refuse_size(r, k, err) : status;
    }
    return PL_OK;
}

/* The font decides how many letters a line has, and how many lines a page. */
static pl_status measure_page(pl_reading *r, pl_error *err)
{
    void *memory = pl_alloc(1, drawers_bytes(r) + LINE_BYTES);
    if (!memory) return pl_fail(err, PL_E_NOMEM, "no memory to try the font");
    pl_status status = measure_sizes(r, memory, err);
    pl_free(memory);
    return status;
}

static pl_status check_words(const pl_reading *r, pl_error *err)
{
    const pl_lexicon *l = &r->setup.lexicon;
    for (uint32_t w = 0; w < l->count; w++)
        if (l->bytes[w] > r->columns)
            return pl_fail(err, PL_E_CONFIG,
                           "the word %s is longer than a line, which has %u letters on a page of %u pixels; make "
                           "vision_encoder.image_size larger, or give shorter words",
                           l->word[w], r->columns, r->setup.image_size);
    return PL_OK;
}

/* ---- data ---- */

static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    const pl_facts *now = &data->identity;
    if (trains && pl_facts_value(saved, "font", 0) != pl_facts_value(now, "font", 0))
        return pl_fail(err, PL_E_CONFIG,
                       "%.300s: was trained on pages of another font; give reading.font the one that it began with",
                       saved_path);
    if (trains && pl_facts_value(saved, PL_FACT_WEIGHTS, 0) != pl_facts_value(now, PL_FACT_WEIGHTS, 0))
        return pl_fail(
            err, PL_E_CONFIG,
            "%.300s: was trained behind another frozen tower; give vision_encoder.pretrained_weights the file "
            "that it began with",
            saved_path);
    if (pl_facts_value(saved, "lexicon", 0) == pl_facts_value(now, "lexicon", 0)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%.300s: was trained to read other words; give the lexicon, its seed and the number of words that "
                   "it was trained with",
                   saved_path);
}

static void close_data(pl_data *data)
{
    pl_reading *r = (pl_reading *)data;
    pl_lexicon_deinit(&r->setup.lexicon);
    pl_free((void *)(uintptr_t)r->setup.font.data);
    pl_module_unload(&r->draw);
    pl_free(r->weights);
    pl_reading_deinit_kept(r);
    for (int part = 0; part < 2; part++) pl_free(r->page[part]);
    pl_free(r);
}

static const pl_data_kind kind = {.match = match, .close = close_data};

static uint64_t hash_pages(const pl_reading *r)
{
    const uint64_t of[] = {r->setup.pages, r->setup.seed,     r->columns,
                           r->rows,        r->setup.capsules, r->count[PL_PART_TRAIN]};
    return XXH64(of, sizeof of, 0);
}

static void describe_data(pl_reading *r)
{
    const pl_reading_setup *s = &r->setup;
    char train[32], held_out[32];
    pl_str said = pl_str_fixed(r->data.said, sizeof r->data.said);
    r->source = (pl_source){.kind = &pages, .batch = s->batch};
    for (int part = 0; part < 2; part++) {
        r->source.steps_per_epoch[part] = (r->count[part] + s->batch - 1) / s->batch;
        r->source.samples[part] = r->count[part];
    }
    r->data.source = &r->source;
    r->data.path = "the pages";
    pl_facts_add(&r->data.identity, "lexicon", s->lexicon.hash);
    pl_facts_add(&r->data.identity, "font", s->font.hash);
    pl_facts_add(&r->data.identity, "pages", hash_pages(r));
    if (s->weights_hash) pl_facts_add(&r->data.identity, PL_FACT_WEIGHTS, s->weights_hash);
    pl_facts_add(&r->data.validation, "samples", r->count[PL_PART_VALIDATION]);
    pl_str_printf(&said, "%s pages of words, %s of them held out; %u letters a line, %u lines",
                  pl_format_count(s->pages, train, sizeof train),
                  pl_format_count(r->count[PL_PART_VALIDATION], held_out, sizeof held_out), r->columns, r->rows);
    if (s->weights_said) pl_str_printf(&said, "; %s", s->weights_said);
    pl_reading_say_kept(r, &said);
}

/* After opening, the setup's texts are the caller's again. */
static pl_status keep_weights(pl_reading *r, pl_error *err)
{
    if (!r->setup.weights) return PL_OK;
    r->weights = pl_strdup(r->setup.weights);
    if (!r->weights) return pl_fail(err, PL_E_NOMEM, "no memory for the pages");
    r->data.weights = r->weights;
    r->data.weights_part = r->setup.weights_part;
    r->data.weights_exceed_f16 = r->setup.weights_exceed_f16;
    return PL_OK;
}

static pl_status check_sizes(const pl_reading *r, pl_error *err)
{
    PL_TRY(pl_page_geometry_check(&r->geometry, err));
    for (uint32_t k = 0; k < sizes_of(r); k++) {
        const pl_page_geometry g = geometry_of(r, k);
        if (pl_page_geometry_check(&g, err) != PL_OK) return refuse_size(r, k, err);
    }
    return PL_OK;
}

static void set_ports(pl_reading *r)
{
    const pl_reading_setup *s = &r->setup;
    const bool keeps = s->features || s->keeps_images;
    const bool has[PL_READING_PORTS] = {[PL_READING_PAGES] = true,
                                        [PL_READING_LABELS] = !s->chooses,
                                        [PL_READING_FEATURE] = in_sizes(r),
                                        [PL_READING_NOISE] = s->makes_noisy && !noise_is_behind(r),
                                        [PL_READING_NUMBERS] = s->makes_noisy,
                                        [PL_READING_KEPT] = keeps && !pl_reading_is_in_place(r),
                                        [PL_READING_MISSING] = keeps};
    uint32_t ports = 0;
    for (int i = 0; i < PL_READING_PORTS; i++) r->port[i] = has[i] ? ports++ : UINT32_MAX;
}

static pl_status fill_data(pl_reading *r, pl_error *err)
{
    set_ports(r);
    r->geometry = pl_page_geometry_of(r->setup.image_size);
    PL_TRY(check_sizes(r, err));
    PL_TRY(pl_draw_load("arch hybrid", &r->draw, err));
    r->form = (pl_page_form){r->draw.functions, &r->geometry, &r->setup.font};
    r->data.for_rows = &r->form;
    PL_TRY(measure_page(r, err));
    PL_TRY(check_words(r, err));
    PL_TRY(part_pages(r, err));
    PL_TRY(keep_weights(r, err));
    PL_TRY(pl_reading_init_kept(r, err));
    describe_data(r);
    return PL_OK;
}

pl_status pl_reading_open(pl_reading_setup *setup, pl_reading **reading, pl_error *err)
{
    pl_reading *r = pl_alloc(1, sizeof *r);
    if (!r) {
        pl_lexicon_deinit(&setup->lexicon);
        pl_free((void *)(uintptr_t)setup->font.data);
        return pl_fail(err, PL_E_NOMEM, "no memory for the pages");
    }
    r->data.kind = &kind;
    r->setup = *setup;
    const pl_status status = fill_data(r, err);
    if (status != PL_OK) return close_data(&r->data), status;
    *reading = r;
    return PL_OK;
}
