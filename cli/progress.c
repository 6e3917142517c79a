/* The bar and the plain lines.
 *
 *   [#######-------------]  step 120/300  loss 4.213  ppl 67.6  lr 9.2e-04  6.4k tok/s  104 MB  eta 2 min 10 s
 */
#include "progress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "out.h"

enum { LINE_BYTES = 1024, BAR_CELLS_MAX = 24 };

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
    return !(no && no[0]) && term && strcmp(term, "dumb") != 0 && pl_is_terminal(fd);
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
}

/* ---- one step ---- */

static double seconds_left(const pl_view *v, const pl_event *e)
{
    uint64_t made = e->step - v->first_step;
    return made ? e->seconds / (double)made * (double)(e->steps - e->step) : -1;
}

static void add_numbers(const pl_view *v, const pl_event *e, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    int width = snprintf(NULL, 0, "%" PRIu64, e->steps);
    pl_line_add(line, "step %*" PRIu64 "/%" PRIu64 "  ", width, e->step, e->steps);
    paint(v, line, "1");
    pl_line_add(line, "loss %.3f", e->loss);
    paint(v, line, "0");
    pl_line_add(line, "  ppl %.*f  lr %.1e", exp(e->loss) < 9999 ? 1 : 0, exp(fmin(e->loss, 60)), e->lr);
    pl_line_add(line, "  %s tok/s", pl_show_rate(e->tokens_per_second, text));
    uint64_t resident = pl_resident_now();
    if (resident) pl_line_add(line, "  %s", pl_show_bytes(resident, text));
    double left = seconds_left(v, e);
    if (left >= 0 && e->step < e->steps) pl_line_add(line, "  eta %s", pl_show_seconds(left, text));
}

/* What the numbers leave of the terminal's width; no bar when that is too little. */
static void add_bar(const pl_view *v, const pl_event *e, int cells, pl_line *line)
{
    int full = e->steps ? (int)((double)cells * (double)e->step / (double)e->steps) : cells;
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

static void draw_bar(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES], numbers_text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0}, numbers = {numbers_text, sizeof numbers_text, 0};
    add_numbers(v, e, &numbers);
    int columns = (int)pl_terminal_columns(STDERR_FILENO) - 1, cells = columns - visible(&numbers) - 3;
    if (cells > BAR_CELLS_MAX) cells = BAR_CELLS_MAX;
    pl_line_add(&line, "\r\033[K");
    size_t head = line.bytes;
    if (cells >= 6) add_bar(v, e, cells, &line);
    pl_line_bytes(&line, numbers.text, numbers.bytes);
    pl_line shown = {text + head, sizeof text - head, line.bytes - head};
    cut_columns(&shown, columns);
    pl_say_bytes(text, head + shown.bytes);
    if (v->color) pl_say("\033[0m");
    v->bar_drawn = true;
}

static void print_plain(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    bool due = v->shown_at < 0 || e->seconds - v->shown_at >= 1 || e->step == e->steps;
    if (!due) return;
    v->shown_at = e->seconds;
    add_numbers(v, e, &line);
    pl_say("%s\n", line.text);
}

/* ---- the other events ---- */

static void show_evaluated(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    pl_view_clear(v);
    paint(v, &line, "32");
    pl_line_add(&line, "validation  step %" PRIu64 "  loss %.4f  ppl %.2f", e->step, e->loss, exp(fmin(e->loss, 60)));
    if (e->bytes_per_token > 0) pl_line_add(&line, "  bits/byte %.3f", e->loss / log(2) / e->bytes_per_token);
    if (e->loss <= e->best_loss) pl_line_add(&line, "  (best)");
    paint(v, &line, "0");
    pl_say("%s\n", line.text);
}

static void show_committed(pl_view *v, const pl_event *e)
{
    char resident[PL_FORMAT_BYTES];
    if (v->text_to_stdout) return;
    pl_say("committed: %s in hand, none will be asked for again", pl_show_bytes(pl_resident_now(), resident));
    if (e->step) pl_say("; going on from step %" PRIu64, e->step);
    pl_say("\n");
}

static void show_stopped(pl_view *v, const pl_event *e)
{
    pl_view_clear(v);
    pl_say("stopped at step %" PRIu64 " of %" PRIu64 "; the state is saved\n", e->step, e->steps);
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
    if (v->bar_drawn) pl_say("\n");
    v->bar_drawn = false;
    uint64_t made = e->step - v->first_step;
    if (!made) return;
    double per_step = e->seconds / (double)made;
    pl_say("done: %" PRIu64 " steps in %s, %s each with all that came between\n", made,
           pl_show_seconds(e->seconds, seconds), pl_show_seconds(per_step, rate));
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
    case PL_EVENT_SAVED:
    case PL_EVENT_WARNING:
        break;
    }
}

void pl_view_event(pl_view *v, const pl_event *e)
{
    if (e->kind == PL_EVENT_COMMITTED) v->first_step = e->step, v->shown_at = -1;
    if (e->bytes_per_token > 0) v->bytes_per_token = e->bytes_per_token;
    v->step = e->step;
    bool text = e->kind == PL_EVENT_TEXT || e->kind == PL_EVENT_TEXT_END;
    if (e->kind == PL_EVENT_WARNING && v->quiet < 2 && v->show != PL_SHOW_JSON) show_warning(v, e);
    if (v->show == PL_SHOW_JSON && !v->text_to_stdout)
        pl_view_json(v, e);
    else if (!v->quiet || (text && v->text_to_stdout))
        show(v, e);
}
