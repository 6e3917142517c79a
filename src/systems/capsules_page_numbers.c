/* What sketches are like: norms, angles between them, entropies; and remarks. Of many texts a sample is read. */
#include <math.h>

#include "base/alloc.h"
#include "base/narrow.h"
#include "base/units.h"
#include "show/chart.h"
#include "systems/capsules_page.h"

enum { BINS = 50, FIRST = 5, ROW_MAX = 1 << 20, READ_BYTES = 64 << 10 };

/* ---- rows ---- */

static uint64_t row_elems(const pl_capsules_page *p) { return p->capsules * p->width; }

static pl_status read_row(const pl_capsules_page *p, uint64_t place, uint16_t *halves, float *row, pl_error *err)
{
    const uint64_t bytes = row_elems(p) * sizeof *halves;
    PL_TRY(pl_block_reader_read(p->wish->results, p->sketches, place * bytes, halves, bytes, err));
    for (uint64_t i = 0; i < row_elems(p); i++) row[i] = pl_f32_of_f16(halves[i]);
    return PL_OK;
}

static double dot(const float *a, const float *b, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ---- numbers of a sample ---- */

typedef struct numbers {
    float *value;
    uint64_t count, not_finite;
    double least, largest, sum;
} numbers;

static void add_number(numbers *n, float x)
{
    if (!isfinite(x)) {
        n->not_finite++;
        return;
    }
    if (n->count == 0 || (double)x < n->least) n->least = (double)x;
    if (n->count == 0 || (double)x > n->largest) n->largest = (double)x;
    n->sum += (double)x;
    n->value[n->count++] = x;
}

static void draw_counts(const numbers *n, const char *title, pl_str *out)
{
    uint64_t count[BINS] = {0};
    const double range = n->largest - n->least;
    for (uint64_t i = 0; i < n->count; i++) {
        const double share = range > 0 ? ((double)n->value[i] - n->least) / range : 0.5;
        count[share >= 1 ? BINS - 1 : (unsigned)(share * BINS)]++;
    }
    pl_chart_draw_histogram(&(pl_chart_counts){.name = title,
                                               .count = count,
                                               .bins = BINS,
                                               .low = range > 0 ? n->least : n->least - 0.5,
                                               .high = range > 0 ? n->largest : n->least + 0.5},
                            out);
}

static void add_histogram(const pl_capsules_page *p, const numbers *n, const char *title, const char *what)
{
    char count[32];
    if (n->count == 0) return;
    pl_doc_section(p->doc, title);
    pl_str *out = pl_doc_paragraph(p->doc, 0);
    pl_str_printf(out, "%s; %s, from %.4g to %.4g, mean %.4g", what, pl_format_count(n->count, count, sizeof count),
                  n->least, n->largest, n->sum / (double)n->count);
    if (n->not_finite) pl_str_printf(out, "; %s are not finite", pl_format_count(n->not_finite, count, sizeof count));
    pl_doc_paragraph_end(p->doc);
    draw_counts(n, title, pl_doc_drawing(p->doc));
    pl_doc_drawing_end(p->doc);
    pl_doc_section_end(p->doc);
}

/* ---- neighbours ---- */

typedef struct found {
    uint64_t place;
    double cosine;
} found;

typedef struct near_search {
    float *query[PL_CAPSULES_SHOWN]; /* rows of the texts that are shown */
    double length[PL_CAPSULES_SHOWN];
    found near[PL_CAPSULES_SHOWN][PL_CAPSULES_NEAR];
    uint32_t count[PL_CAPSULES_SHOWN];
} near_search;

/* Of equal ones the first comes first. */
static void keep_near(near_search *s, uint32_t q, uint64_t place, double cosine)
{
    uint32_t at = s->count[q];
    if (!isfinite(cosine)) return;
    while (at > 0 && s->near[q][at - 1].cosine < cosine) at--;
    if (at == PL_CAPSULES_NEAR) return;
    if (s->count[q] < PL_CAPSULES_NEAR) s->count[q]++;
    for (uint32_t i = s->count[q]; --i > at;) s->near[q][i] = s->near[q][i - 1];
    s->near[q][at] = (found){place, cosine};
}

static void compare(const pl_capsules_page *p, near_search *s, uint64_t place, const float *row)
{
    const double length = sqrt(dot(row, row, row_elems(p)));
    for (uint32_t q = 0; q < p->shown_count; q++)
        if (place != p->shown[q]) keep_near(s, q, place, dot(row, s->query[q], row_elems(p)) / (length * s->length[q]));
}

static pl_status search(const pl_capsules_page *p, near_search *s, uint16_t *halves, float *row, pl_error *err)
{
    for (uint32_t q = 0; q < p->shown_count; q++) {
        s->query[q] = pl_alloc(row_elems(p), sizeof **s->query);
        if (!s->query[q]) return pl_fail(err, PL_E_NOMEM, "no memory to look for neighbours");
        PL_TRY(read_row(p, p->shown[q], halves, s->query[q], err));
        s->length[q] = sqrt(dot(s->query[q], s->query[q], row_elems(p)));
    }
    for (uint64_t i = 0; i < p->samples; i++) {
        PL_TRY(read_row(p, p->sample[i], halves, row, err));
        compare(p, s, p->sample[i], row);
    }
    return PL_OK;
}

static void say_near(const pl_capsules_page *p)
{
    char count[32];
    if (pl_capsules_is_random(p))
        pl_doc_say(p->doc, PL_DOC_BAD,
                   "The weights are random: what is near here looks alike as a picture, and says nothing about what "
                   "texts mean.");
    pl_doc_say(p->doc, 0,
               "Of some texts the %d whose sketches point most nearly the same way, all capsules together: the cosine "
               "of the angle, among %s texts%s.",
               PL_CAPSULES_NEAR, pl_format_count(p->samples, count, sizeof count),
               p->samples < p->finished ? " evenly spread over all" : "");
}

/* cosine NULL: it is the text whose neighbours follow. */
static void add_text(pl_capsules_page *p, uint64_t place, const double *cosine)
{
    char text[PL_CAPSULES_SAID_ROOM];
    pl_doc_row(p->doc, cosine ? PL_DOC_INDENT : PL_DOC_STRONG);
    pl_doc_count(p->doc, pl_capsules_number(p, place));
    cosine ? pl_doc_real(p->doc, *cosine) : pl_doc_blank(p->doc);
    pl_doc_words(p->doc, "%s", pl_capsules_said(p, place, text));
    pl_doc_row_end(p->doc);
}

static void add_near(pl_capsules_page *p, const near_search *s)
{
    static const pl_doc_column columns[] = {
        {NULL, "text", PL_DOC_COUNT}, {NULL, "cosine", PL_DOC_FIXED, 6}, {NULL, "", .is_remark = true}};
    pl_doc_section(p->doc, "Nearest neighbours");
    say_near(p);
    pl_doc_table(p->doc, NULL, columns, sizeof columns / sizeof *columns);
    for (uint32_t q = 0; q < p->shown_count; q++) {
        add_text(p, p->shown[q], NULL);
        for (uint32_t i = 0; i < s->count[q]; i++) add_text(p, s->near[q][i].place, &s->near[q][i].cosine);
    }
    pl_doc_table_end(p->doc);
    pl_doc_section_end(p->doc);
}

static void say_too_long(const pl_capsules_page *p)
{
    char a[32], b[32];
    pl_doc_section(p->doc, "Nearest neighbours and numbers");
    pl_doc_say(p->doc, 0, "Sketches of a text have %s numbers together; those of more than %s are not read here.",
               pl_format_count(row_elems(p), a, sizeof a), pl_format_count(ROW_MAX, b, sizeof b));
    pl_doc_section_end(p->doc);
}

pl_status pl_capsules_page_near(pl_capsules_page *p, pl_error *err)
{
    if (p->shown_count == 0) return PL_OK;
    if (row_elems(p) > ROW_MAX) return say_too_long(p), PL_OK;
    near_search *s = pl_alloc(1, sizeof *s);
    uint16_t *halves = pl_alloc(row_elems(p), sizeof *halves);
    float *row = pl_alloc(row_elems(p), sizeof *row);
    pl_status status = s && halves && row ? search(p, s, halves, row, err)
                                          : pl_fail(err, PL_E_NOMEM, "no memory to look for neighbours");
    if (status == PL_OK) add_near(p, s);
    for (uint32_t q = 0; s && q < p->shown_count; q++) pl_free(s->query[q]);
    pl_free(row);
    pl_free(halves);
    pl_free(s);
    return status;
}

/* ---- norms and entropies ---- */

static pl_status add_norms(const pl_capsules_page *p, uint64_t place, void *buffer, float *row, numbers *n,
                           pl_error *err)
{
    PL_TRY(read_row(p, place, buffer, row, err));
    for (uint64_t k = 0; k < p->capsules; k++)
        add_number(n, (float)sqrt(dot(row + k * p->width, row + k * p->width, p->width)));
    return PL_OK;
}

static pl_status add_entropies(const pl_capsules_page *p, uint64_t place, float *row, numbers *n, pl_error *err)
{
    const uint64_t bytes = p->capsules * sizeof *row;
    PL_TRY(pl_block_reader_read(p->wish->results, p->entropy, place * bytes, row, bytes, err));
    for (uint64_t k = 0; k < p->capsules; k++) add_number(n, row[k]);
    return PL_OK;
}

static pl_status add_numbers(const pl_capsules_page *p, void *buffer, float *row, numbers *n, pl_error *err)
{
    for (uint64_t i = 0; i < p->samples; i++) PL_TRY(add_norms(p, p->sample[i], buffer, row, n, err));
    add_histogram(p, n, "Norms of the sketches", "Euclidean, of each capsule");
    if (p->entropy == PL_BLOCK_NO_KIND) return PL_OK;
    *n = (numbers){.value = n->value};
    for (uint64_t i = 0; i < p->samples; i++) PL_TRY(add_entropies(p, p->sample[i], row, n, err));
    add_histogram(p, n, "Entropy of the attention",
                  "nats, of each capsule: 0 where it looks at one patch, the logarithm of all where at all alike");
    return PL_OK;
}

pl_status pl_capsules_page_numbers(pl_capsules_page *p, pl_error *err)
{
    char count[32];
    if (p->samples == 0 || row_elems(p) > ROW_MAX) return PL_OK;
    pl_doc_section(p->doc, "Numbers");
    pl_doc_say(p->doc, 0, "Of %s texts%s.", pl_format_count(p->samples, count, sizeof count),
               p->samples < p->finished ? " evenly spread over all that are finished" : "");
    numbers n = {.value = pl_alloc(p->samples * p->capsules, sizeof *n.value)};
    void *halves = pl_alloc(row_elems(p), sizeof(uint16_t));
    float *row = pl_alloc(row_elems(p), sizeof *row);
    pl_status status = n.value && halves && row ? add_numbers(p, halves, row, &n, err)
                                                : pl_fail(err, PL_E_NOMEM, "no memory for the numbers of sketches");
    pl_free(row);
    pl_free(halves);
    pl_free(n.value);
    pl_doc_section_end(p->doc);
    return status;
}

/* ---- remarks ---- */

typedef struct remarks {
    uint64_t count[PL_PAGE_REMARK_COUNT], first[PL_PAGE_REMARK_COUNT][FIRST];
} remarks;

static void add_remarks(const pl_capsules_page *p, remarks *r, uint64_t place, uint8_t bits)
{
    for (int k = 0; k < PL_PAGE_REMARK_COUNT; k++) {
        if (!(bits >> k & 1)) continue;
        if (r->count[k] < FIRST) r->first[k][r->count[k]] = pl_capsules_number(p, place);
        r->count[k]++;
    }
}

static pl_status read_remarks(const pl_capsules_page *p, remarks *r, uint8_t *buffer, pl_error *err)
{
    for (uint64_t block = 0, blocks = pl_block_count(p->layout); block < blocks; block++) {
        uint64_t at, bytes;
        if (!pl_block_reader_is_done(p->wish->results, block)) continue;
        (void)pl_block_piece(p->layout, block, p->remarks, &at, &bytes);
        for (uint64_t done = 0, n; done < bytes; done += n) {
            n = bytes - done < READ_BYTES ? bytes - done : READ_BYTES;
            PL_TRY(pl_block_reader_read(p->wish->results, p->remarks, at + done, buffer, n, err));
            for (uint64_t i = 0; i < n; i++) add_remarks(p, r, at + done + i, buffer[i]);
        }
    }
    return PL_OK;
}

static void add_remark(const pl_capsules_page *p, const remarks *r, int k)
{
    static const char *const words[] = {
#define PL_PAGE_REMARK_TEXT(c, word, text) text,
        PL_PAGE_REMARKS(PL_PAGE_REMARK_TEXT)};
    char count[32];
    pl_str first = {0};
    for (uint64_t i = 0; i < r->count[k] && i < FIRST; i++)
        pl_str_printf(&first, "%s%s", i ? ", " : "", pl_format_count(r->first[k][i], count, sizeof count));
    if (r->count[k] > FIRST) pl_str_append(&first, ", …");
    pl_doc_row(p->doc, 0);
    pl_doc_words(p->doc, "%s", words[k]);
    pl_doc_count(p->doc, r->count[k]);
    pl_doc_real(p->doc, p->finished ? (double)r->count[k] / (double)p->finished : 0);
    pl_doc_text(p->doc, pl_str_text(&first), first.bytes);
    pl_doc_row_end(p->doc);
    p->doc->body.failed |= first.failed;
    pl_str_deinit(&first);
}

pl_status pl_capsules_page_remarks(pl_capsules_page *p, pl_error *err)
{
    static const pl_doc_column columns[] = {{NULL, "texts that"},
                                            {NULL, "number", PL_DOC_COUNT},
                                            {NULL, "share", PL_DOC_PERCENT, 2},
                                            {NULL, "the first", .is_remark = true}};
    remarks r = {0};
    uint8_t *buffer = pl_alloc(READ_BYTES, 1);
    pl_status status = buffer ? read_remarks(p, &r, buffer, err) : pl_fail(err, PL_E_NOMEM, "no memory for remarks");
    pl_free(buffer);
    if (status != PL_OK) return status;
    pl_doc_section(p->doc, "Remarks");
    pl_doc_say(p->doc, 0,
               "Texts whose page or capsules are not as they were meant; the dataset remarks has all of them.");
    pl_doc_table(p->doc, NULL, columns, sizeof columns / sizeof *columns);
    for (int k = 0; k < PL_PAGE_REMARK_COUNT; k++) add_remark(p, &r, k);
    pl_doc_table_end(p->doc);
    pl_doc_section_end(p->doc);
    return PL_OK;
}
