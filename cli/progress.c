/* The bar and the plain lines.
 *
 *   [#######-------------]  step 120/300  loss 4.213  ppl 67.6  lr 9.2e-04  6.4k items/s  104 MB  eta 2 min 10 s
 */
#include "progress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "out.h"

#define DRAW_SECONDS    0.1 /* between two drawings of the bar */
#define SILENCE_SECONDS 5.0 /* of a log */
enum { LINE_BYTES = 1024, BAR_CELLS_MAX = 24, BAR_FRAME = 3 };

pl_show pl_show_choose(const char *word, bool terminal)
{
    if (strcmp(word, "json") == 0) return PL_SHOW_JSON;
    if (strcmp(word, "plain") == 0) return PL_SHOW_PLAIN;
    return strcmp(word, "bar") == 0 || terminal ? PL_SHOW_BAR : PL_SHOW_PLAIN;
}

const char *pl_show_name(pl_show show)
{
    return show == PL_SHOW_BAR ? "bar" : show == PL_SHOW_PLAIN ? "plain" : "json";
}

bool pl_color_wanted(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && no[0]) && term && term[0] && pl_terminal_redraws(fd);
}

uint64_t pl_resident_now(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    char *resident;
    (void)strtoull(text, &resident, 10);
    return strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void paint(const pl_view *v, pl_line *line, const char *code)
{
    if (v->color) pl_line_add(line, "\033[%sm", code);
}

void pl_view_clear(pl_view *v)
{
    if (v->bar_drawn) pl_say("\r\033[K");
    v->bar_drawn = false;
    if (v->in_text && !v->text_to_stdout) v->text_column = UINT_MAX; /* the text goes on in a new line */
}

/* ---- one step ---- */

/* The fields of the line, and in which order they go when the terminal is too narrow for all. */
enum {
    METRICS = 1 << 0,
    LR = 1 << 1,
    PART = 1 << 2,
    MEMORY = 1 << 3,
    RATE = 1 << 4,
    ETA = 1 << 5,
    WORD = 1 << 6, /* "step", and blanks that keep the columns */
    ALL = (1 << 7) - 1,
};

static double steps_made(const pl_view *v, const pl_event *e)
{
    double part = e->parts && !e->validating ? (double)e->part / (double)e->parts : 0;
    return (double)(e->step - v->first_step) + part;
}

/* The end as the work so far lets expect it; parts of what has no steps are parts of all of it. It stays while nothing
 * is completed: the time left counts down. */
static void expect_end(pl_view *v, const pl_event *e)
{
    double made = steps_made(v, e);
    if (e->validating || made <= 0 || made == v->made) return;
    v->made = made;
    v->end_at = e->seconds / made * (e->steps ? (double)(e->steps - v->first_step) : 1);
}

/* Of results that come item by item, what precedes the first one says nothing of the others. */
double pl_view_seconds_left(const pl_view *v, const pl_event *e)
{
    const bool began = v->made > 0 && (!e->result_bytes || e->items_per_second > 0);
    return began ? fmax(v->end_at - e->seconds, 0) : NAN;
}

/* A step that lasts shows how far it is. */
static bool shows_part(const pl_view *v, const pl_event *e)
{
    return e->parts > 1 && e->step < e->steps && (e->validating || e->seconds - v->step_at >= 1 || v->step_took >= 1);
}

static void add_metrics(const pl_event *e, pl_metric_use use, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    for (size_t i = 0; i < e->metrics; i++)
        if (e->metric[i].uses & use)
            pl_line_add(line, "  %s %s", e->metric[i].brief,
                        pl_show_metric(e->metric[i].value, e->metric[i].brief_decimals, text));
}

static void add_rate(const pl_event *e, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    pl_line_add(line, "  %s %s", pl_show_rate(e->items_per_second, text), e->words->rate);
}

static void add_bytes(const pl_event *e, pl_line *line)
{
    char there[PL_FORMAT_BYTES], all[PL_FORMAT_BYTES];
    pl_line_add(line, "  %s of %s", pl_show_bytes(e->there_bytes, there), pl_show_bytes(e->result_bytes, all));
}

static void add_loss(const pl_view *v, const pl_event *e, unsigned fields, pl_line *line)
{
    paint(v, line, "1");
    pl_line_add(line, "  loss %.3f", e->loss);
    paint(v, line, "0");
    if (fields & METRICS) add_metrics(e, PL_METRIC_AT_STEPS, line);
    if (fields & LR) pl_line_add(line, "  lr %.1e", e->lr);
    if (fields & RATE) add_rate(e, line);
}

static void add_numbers(const pl_view *v, const pl_event *e, unsigned fields, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    int width = fields & WORD ? snprintf(NULL, 0, "%" PRIu64, e->steps) : 0;
    if (fields & WORD) pl_line_add(line, e->result_bytes ? "%ss done " : "%s ", e->words->step);
    pl_line_add(line, "%*" PRIu64 "/%" PRIu64, width, e->step, e->steps);
    if ((fields & PART) && shows_part(v, e))
        pl_line_add(line, "  %s %" PRIu64 "/%" PRIu64, e->validating ? "validating" : e->words->part, e->part,
                    e->parts);
    if (isfinite(e->loss))
        add_loss(v, e, fields, line);
    else if (e->items_per_second > 0 && fields & RATE)
        add_rate(e, line);
    if (fields & METRICS && e->text_bytes) pl_line_add(line, "  %.*s", (int)e->text_bytes, e->text);
    if (fields & METRICS && e->result_bytes) add_bytes(e, line);
    if ((fields & MEMORY) && v->resident_bytes) pl_line_add(line, "  %s", pl_show_bytes(v->resident_bytes, text));
    const double left = pl_view_seconds_left(v, e);
    if ((fields & ETA) && left > 0 && e->step < e->steps) pl_line_add(line, "  eta %s", pl_show_seconds(left, text));
}

static void add_bar(const pl_view *v, double share, int cells, pl_line *line)
{
    int full = (int)((double)cells * share);
    pl_line_add(line, "[");
    paint(v, line, "36");
    for (int i = 0; i < full; i++) pl_line_add(line, "#");
    paint(v, line, "0");
    for (int i = full; i < cells; i++) pl_line_add(line, ".");
    pl_line_add(line, "] ");
}

/* Columns that the line takes: its bytes without colours (it is ASCII). */
static int visible(const pl_line *line)
{
    int count = 0;
    for (const char *p = line->text; *p; p++) {
        if (*p == '\033')
            p += strcspn(p, "m");
        else
            count++;
    }
    return count;
}

/* Cuts the line to so many columns; colours stay whole. */
static void cut_columns(pl_line *line, int columns)
{
    int count = 0;
    for (size_t i = 0; i < line->bytes; i++) {
        if (line->text[i] == '\033') {
            i += strcspn(line->text + i, "m");
            continue;
        }
        if (count++ < columns) continue;
        line->bytes = i;
        line->text[i] = 0;
    }
}

/* The numbers that the columns have room for; returns the cells that are left for the bar, 0: none. */
static int fit_numbers(const pl_view *v, const pl_event *e, int columns, pl_line *numbers)
{
    static const struct {
        unsigned fields;
        int cells; /* at least */
    } tries[] = {{ALL, 16},
                 {ALL & ~(unsigned)METRICS, 12},
                 {WORD | PART | MEMORY | RATE | ETA, 10},
                 {WORD | PART | RATE | ETA, 8},
                 {WORD | PART | ETA, 6},
                 {WORD | ETA, 6},
                 {WORD | ETA, 0},
                 {ETA, 0},
                 {0, 0}};
    int cells = 0;
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        numbers->bytes = 0;
        numbers->text[0] = 0;
        add_numbers(v, e, tries[i].fields, numbers);
        int left = columns - visible(numbers);
        cells = tries[i].cells ? left - BAR_FRAME : 0;
        if (left >= 0 && cells >= tries[i].cells) break;
    }
    return cells < 0 ? 0 : cells > BAR_CELLS_MAX ? BAR_CELLS_MAX : cells;
}

static void draw_line(pl_view *v, const pl_event *e, pl_line *numbers, int cells, double share)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line, "\r\033[K");
    if (cells) add_bar(v, share, cells, &line);
    cut_columns(numbers, (int)pl_terminal_columns(STDERR_FILENO) - 1);
    pl_line_bytes(&line, numbers->text, numbers->bytes);
    paint(v, &line, "0");
    pl_say_bytes(text, line.bytes);
    v->bar_drawn = true;
    v->drawn_at = e->seconds;
}

static void draw_bar(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line numbers = {text, sizeof text, 0};
    bool last = e->step == e->steps, first_loss = !isfinite(v->drawn_loss) && isfinite(e->loss);
    if (v->bar_drawn && !last && !first_loss && e->seconds - v->drawn_at < DRAW_SECONDS) return;
    v->drawn_loss = e->loss;
    v->resident_bytes = pl_resident_now();
    int cells = fit_numbers(v, e, (int)pl_terminal_columns(STDERR_FILENO) - 1, &numbers);
    double share = e->steps ? ((double)v->first_step + steps_made(v, e)) / (double)e->steps : 1;
    draw_line(v, e, &numbers, cells, share);
}

static void print_line(pl_view *v, const pl_event *e, unsigned fields)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    v->shown_at = e->seconds;
    v->shown_step = e->step;
    v->resident_bytes = pl_resident_now();
    add_numbers(v, e, fields, &line);
    pl_say("%s\n", line.text);
}

static void print_plain(pl_view *v, const pl_event *e)
{
    bool due = v->shown_at < 0 || e->seconds - v->shown_at >= 1 || e->step == e->steps;
    if (due && e->step != v->shown_step) print_line(v, e, ALL & ~(unsigned)PART);
}

bool pl_view_is_silent(const pl_view *v, const pl_event *e)
{
    return e->kind == PL_EVENT_TICK && e->parts && e->seconds - v->step_at >= SILENCE_SECONDS &&
           e->seconds - v->shown_at >= SILENCE_SECONDS;
}

/* Of what makes no steps: how much of its work is done. */
static double add_parts(const pl_view *v, const pl_event *e, pl_line *line)
{
    double share = e->parts ? (double)e->part / (double)e->parts : 0;
    pl_line_add(line, "%s %" PRIu64 "/%" PRIu64, e->validating ? "validating" : e->words->part, e->part, e->parts);
    if (share > 0 && share < 1 && (v->text_to_stdout || !e->validating)) {
        char left[PL_FORMAT_BYTES];
        pl_line_add(line, "  eta %s", pl_show_seconds(e->seconds / share * (1 - share), left));
    }
    return share;
}

static void print_parts(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    v->shown_at = e->seconds;
    (void)add_parts(v, e, &line);
    pl_say("%s\n", line.text);
}

static void draw_parts(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    const double share = add_parts(v, e, &line);
    int cells = (int)pl_terminal_columns(STDERR_FILENO) - 1 - visible(&line) - BAR_FRAME;
    draw_line(v, e, &line, cells < 6 ? 0 : cells > BAR_CELLS_MAX ? BAR_CELLS_MAX : cells, share);
}

/* A log gets the first step at once, then what is reported, and that a step lasts; a terminal every sign of life. */
static void show_tick(pl_view *v, const pl_event *e)
{
    bool first = v->shown_at < 0 && e->step > v->first_step;
    if (v->in_text) return;
    if (v->text_to_stdout || e->steps == 0) {
        if (v->show == PL_SHOW_BAR && e->parts)
            draw_parts(v, e);
        else if (!v->text_to_stdout && pl_view_is_silent(v, e))
            print_parts(v, e);
    } else if (v->show == PL_SHOW_BAR)
        draw_bar(v, e);
    else if (first)
        print_plain(v, e);
    else if (pl_view_is_silent(v, e))
        print_line(v, e, ALL);
}

/* ---- the other events ---- */

static void keep_best(pl_view *v, const pl_event *e)
{
    pl_line line = {v->best, sizeof v->best, 0};
    v->best[0] = 0;
    pl_line_add(&line, "loss %.4f at %s %" PRIu64, e->loss, e->words->step, e->step);
    add_metrics(e, PL_METRIC_VALIDATED, &line);
    v->bits_per_byte = 0;
    v->best_step = e->step;
    v->best_loss = e->loss;
    for (size_t i = 0; i < e->metrics; i++)
        if (strcmp(e->metric[i].key, "bits_per_byte") == 0) v->bits_per_byte = e->metric[i].value;
}

static void show_evaluated(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    pl_view_clear(v);
    paint(v, &line, "32");
    pl_line_add(&line, "validation  step %" PRIu64 "  loss %.4f", e->step, e->loss);
    add_metrics(e, PL_METRIC_VALIDATED, &line);
    v->last_loss = e->loss;
    if (e->loss <= e->best_loss) pl_line_add(&line, "  (best)"), keep_best(v, e);
    paint(v, &line, "0");
    pl_say("%s\n", line.text);
}

static void show_committed(pl_view *v, const pl_event *e)
{
    char resident[PL_FORMAT_BYTES];
    if (v->text_to_stdout || v->goes_on) return;
    pl_say("committed: %s allocated, and nothing more will be", pl_show_bytes(pl_resident_now(), resident));
    bool goes_on = e->is_saved && e->step < e->steps;
    if (goes_on) pl_say("; going on from step %" PRIu64, e->step);
    if (goes_on && e->text_bytes) pl_say(" with %.*s", (int)e->text_bytes, e->text);
    if (e->there_bytes) {
        char there[PL_FORMAT_BYTES], all[PL_FORMAT_BYTES];
        pl_say("; going on with %s of %s", pl_show_bytes(e->there_bytes, there), pl_show_bytes(e->result_bytes, all));
    }
    pl_say("\n");
}

static void show_stopped(pl_view *v, const pl_event *e)
{
    pl_view_clear(v);
    if (e->text_bytes) {
        pl_say("stopped with %" PRIu64 " of %" PRIu64
               " %s%s done; %.*s has what is whole, and the same command goes on\n",
               e->step, e->steps, e->words->step, pl_show_plural(e->steps), (int)e->text_bytes, e->text);
        return;
    }
    pl_say("stopped at %s %" PRIu64 " of %" PRIu64 "; the state is saved%s\n", e->words->step, e->step, e->steps,
           v->again[0] ? ". Resume with:" : "");
    if (v->again[0]) pl_say("  "), pl_say_bytes(v->again, strlen(v->again)), pl_say("\n");
}

static void show_step(pl_view *v, const pl_event *e)
{
    if (v->show == PL_SHOW_BAR)
        draw_bar(v, e);
    else
        print_plain(v, e);
}

static void show_warning(pl_view *v, const pl_event *e)
{
    pl_view_clear(v);
    pl_say("warning: %.*s\n", (int)e->text_bytes, e->text);
}

static void show_finished(pl_view *v, const pl_event *e)
{
    char seconds[PL_FORMAT_BYTES], rate[PL_FORMAT_BYTES];
    if (v->text_to_stdout) return;
    if (v->bar_drawn) pl_say("\n");
    v->bar_drawn = false;
    if (e->text_bytes) {
        pl_say("done: %" PRIu64 " of %" PRIu64 " %s%s; the results are in %.*s\n", e->step, e->steps, e->words->step,
               pl_show_plural(e->steps), (int)e->text_bytes, e->text);
        return;
    }
    uint64_t made = e->step - v->first_step;
    const bool is_early = e->step < e->steps; /* no further evaluation was better (train.early_stopping_patience) */
    if (!made && is_early) {
        pl_say("nothing was left to do: it ended early, at step %" PRIu64 " of %" PRIu64 "\n", e->step, e->steps);
        return;
    }
    if (!made) {
        pl_say("nothing was left to do: %s %" PRIu64 " step%s made before; --steps N or --epochs N makes more\n",
               e->steps == 1 ? "the" : "all", e->steps, e->steps == 1 ? " was" : "s were");
        return;
    }
    double per_step = e->seconds / (double)made;
    pl_say("done: %" PRIu64 " step%s in %s, %s each, including evaluation and saving\n", made, pl_show_plural(made),
           pl_show_seconds(e->seconds, seconds), pl_show_seconds(per_step, rate));
    if (is_early)
        pl_say("ended early, at step %" PRIu64 " of %" PRIu64 ": the validation loss no longer fell "
               "(early_stopping_patience)\n",
               e->step, e->steps);
}

static void show(pl_view *v, const pl_event *e)
{
    switch (e->kind) {
    case PL_EVENT_COMMITTED:
        show_committed(v, e);
        break;
    case PL_EVENT_STEP:
        show_step(v, e);
        break;
    case PL_EVENT_TICK:
        show_tick(v, e);
        break;
    case PL_EVENT_EVALUATED:
        show_evaluated(v, e);
        break;
    case PL_EVENT_TEXT:
        pl_view_text(v, e->text, e->text_bytes);
        break;
    case PL_EVENT_TEXT_END:
        pl_view_text_end(v);
        break;
    case PL_EVENT_STOPPED:
        show_stopped(v, e);
        break;
    case PL_EVENT_FINISHED:
        show_finished(v, e);
        break;
    case PL_EVENT_NOTE:
    case PL_EVENT_ROW:
        pl_view_clear(v);
        pl_say("%.*s\n", (int)e->text_bytes, e->text);
        break;
    case PL_EVENT_SAVED:
    case PL_EVENT_WARNING:
        break;
    }
}

static void begin(pl_view *v, const pl_event *e)
{
    v->first_step = v->shown_step = v->timed_step = e->step;
    v->shown_at = -1;
    v->drawn_loss = NAN;
}

/* How long steps take, and when the last of them will be done. */
static void follow(pl_view *v, const pl_event *e)
{
    if (e->step > v->timed_step) {
        v->step_took = (e->seconds - v->step_at) / (double)(e->step - v->timed_step);
        v->step_at = e->seconds;
        v->timed_step = e->step;
    }
    expect_end(v, e);
}

void pl_view_event(pl_view *v, const pl_event *e)
{
    if (e->kind == PL_EVENT_COMMITTED) begin(v, e);
    if (e->kind == PL_EVENT_STEP || e->kind == PL_EVENT_TICK) follow(v, e);
    v->step = e->step;
    if (!v->quiet && !v->text_to_stdout) pl_view_stopping(v, e);
    if (!v->text_to_stdout && (e->kind == PL_EVENT_COMMITTED || e->kind == PL_EVENT_SAVED)) pl_view_last_words(v, e);
    bool text = e->kind == PL_EVENT_TEXT || e->kind == PL_EVENT_TEXT_END;
    bool as_json = v->show == PL_SHOW_JSON && !v->text_to_stdout;
    if (e->kind == PL_EVENT_WARNING && v->quiet < 2 && !as_json) show_warning(v, e);
    if (as_json)
        pl_view_json(v, e);
    else if (!v->quiet || (text && v->text_to_stdout))
        show(v, e);
}
