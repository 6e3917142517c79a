/* What quantize says of what it has found. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/str.h"
#include "jobs/quantize_impl.h"

enum { SHOWN = 300 };

/* A row for programs: the name of its table, and what stands in it. */
typedef struct row {
    const char *table;
    const pl_cell *cell;
    size_t cells;
} row;
#define ROW(table, cell) ((row){table, cell, sizeof(cell) / sizeof *(cell)})
static const row head = {.cells = 0};

/* A line of a table: a column of names, then what the format says. */
static void tell_row(pl_session *s, row r, int width, const char *name, const char *format, ...) PL_PRINTF(5, 6);
static void tell_row(pl_session *s, row r, int width, const char *name, const char *format, ...)
{
    char cells[128], text[SHOWN + sizeof cells];
    va_list args;
    va_start(args, format);
    (void)pl_vprint(cells, sizeof cells, format, args);
    va_end(args);
    snprintf(text, sizeof text, "%-*s %s", width, name, cells);
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_ROW,
                                  .text = text,
                                  .text_bytes = strlen(text),
                                  .table = r.table,
                                  .cell = r.cell,
                                  .cells = r.cells});
}

/* Without ".weight", which all have, and which would make lines too long; and without what a state's name ends with. */
static const char *shown(const char *name, const char *end, char text[SHOWN])
{
    static const char weight[] = ".weight";
    const size_t bytes = strlen(name) - (pl_ends_with(name, end) ? strlen(end) : 0);
    const char *at = strstr(name, weight);
    const size_t before = at ? (size_t)(at - name) : bytes, after = at ? before + sizeof weight - 1 : bytes;
    snprintf(text, SHOWN, "%.*s%.*s", (int)before, name, (int)(bytes - after), name + after);
    return text;
}

static int wider(int width, const char *name) { return (int)strlen(name) > width ? (int)strlen(name) : width; }

/* Of the column of names: room for the longest. */
static int width_of(const pl_quantizing *q)
{
    char name[SHOWN];
    int width = 0;
    for (size_t i = 0; i < q->layers; i++) width = wider(width, shown(q->layer[i].name, "", name));
    for (size_t i = 0; i < q->sites; i++) width = wider(width, shown(q->site[i].name, PL_QUANTIZE_SEEN, name));
    return width;
}

static double share_beyond(const pl_quantize_site *of)
{
    return of->count ? (double)of->clipped / (double)of->count : 0;
}

/* By entropy, few samples can have one of which hardly anything lies within: the little that does is told best. */
void pl_quantize_warn_of_ranges(pl_session *s, const pl_quantizing *q)
{
    static const double much = 0.1;
    char text[SHOWN + 300], name[SHOWN];
    size_t count = 0, worst = 0;
    for (size_t i = 0; i < q->sites && q->how->method == PL_SPAN_ENTROPY; i++) {
        count += share_beyond(&q->site[i]) > much;
        if (share_beyond(&q->site[i]) > share_beyond(&q->site[worst])) worst = i;
    }
    if (count == 0) return;
    (void)pl_print(
        text, sizeof text,
        "%zu of %zu ranges leave out more than a tenth of what comes to them, that of %s %.3g %%: look at the "
        "errors, and give more samples, or --method minmax",
        count, q->sites, shown(q->site[worst].name, PL_QUANTIZE_SEEN, name), 100 * share_beyond(&q->site[worst]));
    pl_session_warn(s, text);
}

static void tell_layers(pl_session *s, const pl_quantizing *q, int width)
{
    char name[SHOWN], shape[48];
    tell_row(s, head, width, "layer", "%11s  %8s", "shape", "error");
    for (size_t i = 0; i < q->layers; i++) {
        const pl_quantize_layer *l = q->worst[i];
        snprintf(shape, sizeof shape, "%lld x %lld", (long long)l->rows, (long long)l->width);
        const pl_cell cell[] = {{"layer", l->name, 0, false},
                                {"rows", NULL, (double)l->rows, false},
                                {"width", NULL, (double)l->width, false},
                                {"error", NULL, pl_quantize_loss(l), false},
                                {"stays_in_f32", NULL, l->kept, true}};
        tell_row(s, ROW("layers", cell), width, shown(l->name, "", name), "%11s  %6.3f %%%s", shape,
                 100 * pl_quantize_loss(l), l->kept ? "  stays in f32" : "");
    }
}

static void tell_sites(pl_session *s, const pl_quantizing *q, int width)
{
    char name[SHOWN], range[SHOWN];
    tell_row(s, head, width, "what comes to it", "%9s %9s  %9s", "least", "largest", "beyond");
    for (size_t i = 0; i < q->sites; i++) {
        const pl_quantize_site *of = &q->site[i];
        const double share = share_beyond(of);
        const double least = (double)of->range[0], largest = (double)of->range[1];
        snprintf(range, sizeof range, "%.*s", (int)(strlen(of->name) - strlen(PL_QUANTIZE_SEEN)), of->name);
        const pl_cell cell[] = {{"range", range, 0, false},
                                {"least", NULL, least, false},
                                {"largest", NULL, largest, false},
                                {"share_beyond", NULL, share, false}};
        tell_row(s, ROW("ranges", cell), width, shown(of->name, PL_QUANTIZE_SEEN, name), "%9.4g %9.4g  %7.4f %%", least,
                 largest, 100 * share);
    }
}

void pl_quantize_tell(pl_session *s, const pl_quantizing *q)
{
    const int width = width_of(q);
    tell_layers(s, q, width);
    tell_sites(s, q, width);
}

/* ---- the model as a whole ---- */

static void tell_measure(pl_session *s, int width, const char *key, const char *name, int decimals, double wide,
                         double narrow)
{
    const pl_cell cell[] = {
        {"measure", key, 0, false}, {"in_f32", NULL, wide, false}, {"in_8_bits", NULL, narrow, false}};
    tell_row(s, ROW("held_out", cell), width, name, "%11.*f %11.*f", decimals, wide, decimals, narrow);
}

void pl_quantize_tell_judged(pl_session *s, const pl_quantizing *q)
{
    char loss[SHOWN];
    const pl_quantize_judged *wide = &q->wide, *narrow = &q->narrow;
    const int width = width_of(q);
    tell_row(s, head, width, "of what is held out", "%11s %11s", "in f32", "in 8 bits");
    snprintf(loss, sizeof loss, "loss, %s", s->words->loss);
    tell_measure(s, width, "loss", loss, 5, wide->loss, narrow->loss);
    for (size_t i = 0; i < wide->metrics; i++) {
        const pl_loss_metric *m = &wide->metric[i];
        tell_measure(s, width, m->key, m->words, m->decimals, m->value, narrow->metric[i].value);
    }
}

static void tell_output(pl_session *s, int width, const pl_quantize_output *o)
{
    const pl_difference *d = &o->difference;
    const double error = pl_difference_share(d), mean = pl_difference_mean_cosine(d),
                 least = pl_difference_least_cosine(d);
    const pl_cell cell[] = {{"output", o->name, 0, false},
                            {"error", NULL, error, false},
                            {"least_cosine", NULL, least, false},
                            {"mean_cosine", NULL, mean, false}};
    const row r = {"outputs", cell, d->rows ? 4 : 2};
    if (d->rows)
        tell_row(s, r, width, o->name, "%9.3f %%  %12.6f %12.6f", 100 * error, least, mean);
    else
        tell_row(s, r, width, o->name, "%9.3f %%", 100 * error);
}

/* What cannot be read as it is meant is a sample all the same. */
static void tell_remarks(pl_session *s, const pl_quantizing *q)
{
    char text[PL_ERROR_TEXT_BYTES];
    pl_str out = pl_str_fixed(text, sizeof text);
    pl_infer_remarked_print(&q->remarked, &out);
    if (out.bytes == 0) return;
    pl_str_printf(&out, " (of %llu items), and the calibration has seen them",
                  (unsigned long long)s->o.data->calibration.samples);
    pl_session_warn(s, text);
}

void pl_quantize_tell_outputs(pl_session *s, const pl_quantizing *q)
{
    const int width = width_of(q);
    tell_row(s, head, width, "what comes out, in 8 bits and in f32", "%11s  %12s %12s", "error", "least cosine",
             "mean cosine");
    for (size_t k = 0; k < q->outputs; k++) tell_output(s, width, &q->output[k]);
    tell_remarks(s, q);
}

void pl_quantize_tell_file(pl_session *s, const pl_quantizing *q)
{
    char text[PL_FILE_PATH_MAX + 100];
    size_t kept = 0;
    for (size_t i = 0; i < q->layers; i++) kept += q->layer[i].kept;
    snprintf(text, sizeof text, "%s: %zu layers in 8 bits, %zu in f32", q->how->path, q->layers - kept, kept);
    pl_quantize_note(s, text);
}
