#include "report/training.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/report.h"

/* ---- figures ---- */

static const pl_curve_point *last_of(const pl_report_series *s) { return s->count ? &s->point[s->count - 1] : NULL; }

static const pl_curve_point *least_of(const pl_report_series *s)
{
    const pl_curve_point *best = NULL;
    for (size_t i = 0; i < s->count; i++)
        if (!best || s->point[i].value < best->value) best = &s->point[i];
    return best;
}

static const pl_curve_point *best_of(const pl_report_training *t)
{
    const pl_curve_point *validated = least_of(&t->metrics.validation);
    return validated ? validated : least_of(&t->metrics.loss);
}

/* A damaged file may say anything. */
static uint64_t whole(double x) { return x > 0 ? (uint64_t)fmin(x, 1e18) : 0; }

static uint64_t steps_of(const pl_report_training *t)
{
    const pl_curve_point *trained = last_of(&t->metrics.loss), *validated = last_of(&t->metrics.validation);
    return whole(fmax(trained ? trained->step : 0, validated ? validated->step : 0));
}

/* The mean of its later reports: the first ones warm up. */
static double rate_of(const pl_report_training *t)
{
    const pl_report_series *s = &t->metrics.rate;
    const size_t from = s->count > 10 ? s->count / 2 : 0;
    double sum = 0;
    for (size_t i = from; i < s->count; i++) sum += s->point[i].value;
    return s->count ? sum / (double)(s->count - from) : 0;
}

static void add_cards(const pl_report_training *t, pl_doc *d)
{
    char text[32], other[32];
    const pl_curve_point *best = best_of(t);
    pl_format_count(steps_of(t), text, sizeof text);
    if (t->steps > steps_of(t))
        pl_doc_card(d, text, "steps of %s", pl_format_count(t->steps, other, sizeof other));
    else
        pl_doc_card(d, text, "step%s", pl_plural(steps_of(t)));
    if (best) {
        pl_print(text, sizeof text, "%.4f", best->value);
        pl_doc_card(d, text, "%s loss, the best, at step %.0f", t->metrics.validation.count ? "validation" : "training",
                    best->step);
    }
    if (t->memory)
        pl_doc_card(d, pl_format_bytes(t->memory->measured.peak_bytes, text, sizeof text), "peak, measured; %s planned",
                    pl_format_bytes(t->memory->planned.resident_bytes, other, sizeof other));
    if (t->times && t->times->runs)
        pl_doc_card(d, pl_format_seconds(t->times->seconds, text, sizeof text), "a %s, measured", t->times->run);
    if (rate_of(t) > 0)
        pl_doc_card(d, pl_format_count(whole(rate_of(t)), text, sizeof text), "%s per second", t->metrics.rate_name);
}

/* ---- curves ---- */

static void draw_one(const pl_report_series *s, const char *title, const char *unit, pl_str *out)
{
    const pl_html_curve curve = {s->point, s->count, "train", "weight", "", false};
    pl_html_curves(
        &(pl_html_chart){.title = title, .unit = unit, .axis = "step", .least_tick = 1, .curve = &curve, .count = 1},
        out);
}

static void draw_curves(const void *of, pl_str *out)
{
    const pl_report_training *t = of;
    const pl_report_metrics *m = &t->metrics;
    char rate[64];
    const pl_html_curve losses[] = {
        {m->loss.point, m->loss.count, "train", "weight", "training", false},
        {m->validation.point, m->validation.count, "valid", "gradient", "validation", true}};
    pl_html_curves(&(pl_html_chart){.title = "Loss",
                                    .unit = "training and validation",
                                    .axis = "step",
                                    .least_tick = 1,
                                    .curve = losses,
                                    .count = 2},
                   out);
    snprintf(rate, sizeof rate, "%s per second", m->rate_name);
    draw_one(&m->rate, "Rate", rate, out);
    draw_one(&m->learning_rate, "Learning rate", "", out);
}

/* A line of eighths: the curve of a text. */
static void print_curve(const void *of, unsigned columns, bool color, pl_str *out)
{
    static const char *const eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { CELLS = 40 };
    const pl_report_training *t = of;
    const pl_report_series *s = t->metrics.validation.count > 1 ? &t->metrics.validation : &t->metrics.loss;
    double low = INFINITY, high = -INFINITY;
    (void)color;
    if (s->count < 2 || columns < CELLS) return;
    for (size_t i = 0; i < s->count; i++) low = fmin(low, s->point[i].value), high = fmax(high, s->point[i].value);
    const size_t cells = s->count < CELLS ? s->count : CELLS;
    pl_str_append(out, "\n");
    for (size_t k = 0; k < cells; k++) {
        const double value = s->point[k * (s->count - 1) / (cells - 1 ? cells - 1 : 1)].value;
        const double share = high > low ? (value - low) / (high - low) : 0;
        pl_str_append(out, eighths[(int)fmin(7, 8 * share)]);
    }
    pl_str_printf(out, "  %s loss, %.4f to %.4f\n", t->metrics.validation.count > 1 ? "validation" : "training",
                  s->point[0].value, s->point[s->count - 1].value);
}

/* ---- tables ---- */

static void add_settings(const pl_report_training *t, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, "setting"}, {NULL, "default"}, {NULL, "value"}};
    if (!t->settings) return;
    pl_doc_section(d, "Settings that differ from their defaults");
    pl_doc_table(d, NULL, columns, 3);
    for (size_t i = 0; i < t->settings; i++) {
        pl_doc_row(d, PL_DOC_SHOWN);
        pl_doc_words(d, "%s", t->setting[i].key);
        pl_doc_words(d, "%s", t->setting[i].usual);
        pl_doc_words(d, "%s", t->setting[i].value); /* may be a long path */
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

/* The first, the last, and some that lie evenly between them. */
static void add_samples(const pl_report_training *t, pl_doc *d)
{
    enum { SHOWN = 8 };
    const pl_report_metrics *m = &t->metrics;
    const size_t shown = m->samples < SHOWN ? m->samples : SHOWN;
    if (!shown) return;
    pl_doc_section(d, "Samples");
    if (t->prompt[0]) pl_doc_say(d, 0, "What the model wrote after “%s”:", t->prompt);
    for (size_t i = 0; i < shown; i++) {
        const pl_report_sample *sample = &m->sample[shown > 1 ? i * (m->samples - 1) / (shown - 1) : 0];
        pl_doc_say(d, 0, "Step %.0f: %s", sample->step, sample->text);
    }
    pl_doc_section_end(d);
}

static void add_starts(const pl_report_training *t, pl_doc *d)
{
    static const pl_doc_column columns[] = {
        {NULL, "time"}, {NULL, "command"}, {NULL, "version"}, {NULL, "machine", .is_remark = true}};
    if (!t->starts.count && !t->starts.trouble[0]) return;
    pl_doc_section(d, "How it was started");
    if (t->starts.trouble[0]) pl_doc_say(d, PL_DOC_BAD, "%s", t->starts.trouble);
    pl_doc_table(d, NULL, columns, 4);
    for (size_t i = 0; i < t->starts.count; i++) {
        const pl_report_start *s = &t->starts.start[i];
        pl_doc_row(d, PL_DOC_SHOWN);
        pl_doc_words(d, "%s", s->time);
        pl_doc_words(d, "%s", s->command);
        pl_doc_words(d, "%s", s->version);
        pl_doc_words(d, "%s", s->machine);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

static void add_files(const pl_report_training *t, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, "file"}, {NULL, "bytes", PL_DOC_BYTES}};
    uint64_t sum = 0;
    if (!t->files) return;
    pl_doc_section(d, "Files");
    pl_doc_table(d, NULL, columns, 2);
    for (size_t i = 0; i < t->files; i++) {
        pl_doc_row(d, PL_DOC_SHOWN);
        pl_doc_words(d, "%s", t->file[i].name);
        pl_doc_count(d, t->file[i].bytes);
        pl_doc_row_end(d);
        sum += t->file[i].bytes;
    }
    pl_doc_row(d, PL_DOC_SHOWN | PL_DOC_TOTAL);
    pl_doc_words(d, "all");
    pl_doc_count(d, sum);
    pl_doc_row_end(d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

static void say_what(const pl_report_training *t, pl_doc *d)
{
    pl_doc_say(d, 0, "A training of %s in %s%s%s.", t->arch, t->path, t->ended[0] ? "; last written " : "", t->ended);
}

void pl_report_add_training(const pl_report_training *t, pl_doc *d)
{
    pl_doc_title(d, NULL, "run", t->name);
    say_what(t, d);
    pl_doc_say(d, 0, "What would make it faster or smaller, and where each byte goes: plimsoll plan RUN --long");
    add_cards(t, d);
    pl_doc_draw(d, &(pl_doc_figure){.text = print_curve, .page = draw_curves, .of = t});
    add_samples(t, d);
    add_settings(t, d);
    if (t->memory) {
        pl_doc_section(d, "Memory, planned and measured");
        pl_report_ledger(&t->memory->planned, &t->memory->measured, d);
        pl_doc_section_end(d);
    }
    if (t->times) pl_report_times_add(t->times, d);
    add_starts(t, d);
    add_files(t, d);
}

/* ---- several ---- */

static void draw_losses(const void *of, pl_str *out)
{
    const pl_report_comparison *c = of;
    static const char *const lines[PL_REPORT_TRAININGS_MAX] = {"train", "valid", "most", "least",
                                                               "c5",    "c6",    "c7",   "c8"},
                             *const marks[PL_REPORT_TRAININGS_MAX] = {"weight", "gradient",  "saved",  "optimizer",
                                                                      "state",  "temporary", "output", "staging"};
    pl_html_curve curve[PL_REPORT_TRAININGS_MAX];
    for (size_t i = 0; i < c->count; i++) {
        const pl_report_metrics *m = &c->training[i].metrics;
        const pl_report_series *s = m->validation.count ? &m->validation : &m->loss;
        curve[i] = (pl_html_curve){s->point, s->count, lines[i], marks[i], c->training[i].name, false};
    }
    pl_html_curves(&(pl_html_chart){.title = "Loss",
                                    .unit = "validation; of a run without one, training",
                                    .axis = "step",
                                    .least_tick = 1,
                                    .curve = curve,
                                    .count = c->count},
                   out);
}

static void add_run(const pl_report_training *t, pl_doc *d)
{
    const pl_curve_point *best = best_of(t);
    const bool timed = t->times && t->times->runs;
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", t->path);
    pl_doc_count(d, steps_of(t));
    best ? pl_doc_real(d, best->value) : pl_doc_unknown(d);
    best ? pl_doc_count(d, whole(best->step)) : pl_doc_unknown(d);
    timed ? pl_doc_real(d, t->times->seconds) : pl_doc_unknown(d);
    rate_of(t) > 0 ? pl_doc_real(d, rate_of(t)) : pl_doc_unknown(d);
    t->memory ? pl_doc_count(d, t->memory->planned.resident_bytes) : pl_doc_unknown(d);
    t->memory ? pl_doc_count(d, t->memory->measured.peak_bytes) : pl_doc_unknown(d);
    pl_doc_row_end(d);
}

static const pl_report_setting *setting_of(const pl_report_training *t, const char *key)
{
    for (size_t i = 0; i < t->settings; i++)
        if (strcmp(t->setting[i].key, key) == 0) return &t->setting[i];
    return NULL;
}

/* What it has, also where that is the default. */
static const char *value_of(const pl_report_training *t, const pl_report_setting *known)
{
    const pl_report_setting *own = setting_of(t, known->key);
    return own ? own->value : known->usual;
}

static bool differs(const pl_report_comparison *c, const pl_report_setting *known)
{
    for (size_t i = 1; i < c->count; i++)
        if (strcmp(value_of(&c->training[i], known), value_of(&c->training[0], known)) != 0) return true;
    return false;
}

static bool was_told(const pl_report_comparison *c, size_t training, const char *key)
{
    for (size_t i = 0; i < training; i++)
        if (setting_of(&c->training[i], key)) return true;
    return false;
}

/* A row for each key, a column for each run. */
static void add_differences(const pl_report_comparison *c, pl_doc *d)
{
    pl_doc_column columns[PL_REPORT_TRAININGS_MAX + 1] = {{"setting", "setting"}};
    for (size_t i = 0; i < c->count; i++) columns[i + 1] = (pl_doc_column){NULL, c->training[i].name};
    bool all_same = true;
    pl_doc_section(d, "Settings that differ");
    pl_doc_table(d, "settings", columns, (int)c->count + 1);
    for (size_t i = 0; i < c->count; i++)
        for (size_t k = 0; k < c->training[i].settings; k++) {
            const pl_report_setting *known = &c->training[i].setting[k];
            if (was_told(c, i, known->key) || !differs(c, known)) continue;
            all_same = false;
            pl_doc_row(d, 0);
            pl_doc_words(d, "%s", known->key);
            for (size_t j = 0; j < c->count; j++) pl_doc_words(d, "%s", value_of(&c->training[j], known));
            pl_doc_array(d, "values");
            for (size_t j = 0; j < c->count; j++) pl_doc_key_words(d, "", value_of(&c->training[j], known));
            pl_doc_array_end(d);
            pl_doc_row_end(d);
        }
    pl_doc_table_end(d);
    if (all_same) pl_doc_say(d, 0, "none: the configs are the same but for their folders");
    pl_doc_section_end(d);
}

void pl_report_add_comparison(const pl_report_comparison *c, pl_doc *d)
{
    static const pl_doc_column columns[] = {{"run", "run"},
                                            {"steps", "steps", PL_DOC_COUNT},
                                            {"loss", "best loss", PL_DOC_FIXED, 4},
                                            {"loss_step", "at step", PL_DOC_COUNT},
                                            {"step_seconds", "a step", PL_DOC_SECONDS},
                                            {"items_per_second", "per second", PL_DOC_RATE},
                                            {"planned_bytes", "planned", PL_DOC_SIZE},
                                            {"peak_bytes", "peak", PL_DOC_SIZE}};
    pl_doc_title(d, NULL, "runs", "Runs compared");
    pl_doc_key_words(d, "schema", "plimsoll.runs/1");
    pl_doc_draw(d, &(pl_doc_figure){.page = draw_losses, .of = c});
    pl_doc_section(d, "Results");
    pl_doc_table(d, "runs", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < c->count; i++) add_run(&c->training[i], d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    add_differences(c, d);
}
