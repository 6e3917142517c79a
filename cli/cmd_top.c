/* plimsoll top: a training, watched from another terminal. */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"
#include "format.h"
#include "out.h"
#include "progress.h"
#include "signals.h"

enum { JSON, ONCE };
static const pl_cli_option own_options[] = {
    [JSON] = {"--json", NULL, "print it once, as JSON (schema plimsoll.top/1)"},
    [ONCE] = {"--once", NULL, "print it once, as where the output is no terminal"},
};

static const char about[] =
    "Shows a training while it runs, or where it ended: steps, loss with its curve, validation, rate, learning rate, "
    "memory as planned and as the kernel counts it now, the time that is left, the last checkpoint. RUN is the folder "
    "of the training; of a folder that holds several trainings, the one at work is shown. It is drawn anew each "
    "second; "
    "q or Ctrl-C ends that, and so does the end of the training. The files of the run and /proc are read, and nothing "
    "is written.\n";

enum { TEXT_BYTES = 16384, CURVE_COLUMNS_MAX = 60, INDENT = 11, BAR_CELLS_MAX = 40 };

/* ---- a line each ---- */

static void add_state(const pl_watched *w, bool color, pl_line *line)
{
    static const char *const said[] = {[PL_WATCH_RUNS] = "running, process ",
                                       [PL_WATCH_FINISHED] = "finished",
                                       [PL_WATCH_ENDED] = "not running: stopped, killed, or ended early"};
    static const char *const colors[] = {[PL_WATCH_RUNS] = "36", [PL_WATCH_FINISHED] = "32", [PL_WATCH_ENDED] = "33"};
    char shown[PL_SHOWN_BYTES];
    pl_line_add(line, "%s  ", pl_show_plainly(w->folder, shown));
    if (color) pl_line_add(line, "\033[%sm", colors[w->state]);
    pl_line_add(line, "%s", said[w->state]);
    if (w->process) pl_line_add(line, "%ld", w->process);
    if (color) pl_line_add(line, "\033[0m");
    pl_line_add(line, "\n\n");
}

static void add_steps(const pl_watched *w, pl_line *line)
{
    char made[PL_FORMAT_BYTES], all[PL_FORMAT_BYTES], left[PL_FORMAT_BYTES];
    pl_line_add(line, "step       %s", pl_show_count(w->step, made));
    if (w->steps)
        pl_line_add(line, " of %s  %.0f %%", pl_show_count(w->steps, all),
                    floor(100.0 * (double)w->step / (double)w->steps));
    if (isfinite(w->epoch)) pl_line_add(line, "  epoch %.2f", w->epoch);
    if (isfinite(w->seconds_left)) pl_line_add(line, "  left %s", pl_show_seconds(w->seconds_left, left));
    pl_line_add(line, "\n");
}

static void add_bar(const pl_watched *w, unsigned columns, bool color, pl_line *line)
{
    int cells = (int)columns - INDENT - 2;
    if (!w->steps || cells < 4) return;
    if (cells > BAR_CELLS_MAX) cells = BAR_CELLS_MAX;
    const double share = fmin((double)w->step / (double)w->steps, 1);
    const int full = (int)(share * cells);
    pl_line_add(line, "%*s[%s", INDENT, "", color ? "\033[36m" : "");
    for (int i = 0; i < cells; i++) {
        if (i == full && color) pl_line_add(line, "\033[0m");
        pl_line_add(line, "%c", i < full ? '#' : '.');
    }
    pl_line_add(line, "%s]\n", color ? "\033[0m" : "");
}

/* Each column is the mean of as many points as another, give or take one. */
static double column_of(const pl_watched *w, size_t column, size_t columns)
{
    const size_t begin = column * w->points / columns, end = (column + 1) * w->points / columns;
    double sum = 0;
    for (size_t i = begin; i < end; i++) sum += w->point[i];
    return sum / (double)(end - begin);
}

static void add_curve(const pl_watched *w, unsigned columns, pl_line *line)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    enum { BARS = sizeof bars / sizeof *bars };
    size_t count = columns > INDENT + 4 ? columns - INDENT : 4;
    double least = INFINITY, largest = -INFINITY;
    if (count > CURVE_COLUMNS_MAX) count = CURVE_COLUMNS_MAX;
    if (count > w->points) count = w->points;
    for (size_t i = 0; i < count; i++) {
        const double value = column_of(w, i, count);
        least = fmin(least, value), largest = fmax(largest, value);
    }
    if (count < 2) return;
    pl_line_add(line, "%*s", INDENT, "");
    for (size_t i = 0; i < count; i++) {
        const double height = largest > least ? (column_of(w, i, count) - least) / (largest - least) : 0;
        pl_line_add(line, "%s", bars[(int)fmin(height * BARS, BARS - 1)]);
    }
    pl_line_add(line, "\n%*sfrom %.3f, least %.3f\n", INDENT, "", w->point[0], least);
}

static void add_loss(const pl_watched *w, unsigned columns, pl_line *line)
{
    if (!isfinite(w->loss)) return;
    pl_line_add(line, "loss       %.4f\n", w->loss);
    add_curve(w, columns, line);
    if (!isfinite(w->validation_loss)) return;
    char step[PL_FORMAT_BYTES];
    pl_line_add(line, "validated  %.4f at step %s", w->validation_loss, pl_show_count(w->validation_step, step));
    if (isfinite(w->best_validation_loss)) pl_line_add(line, ", best %.4f", w->best_validation_loss);
    pl_line_add(line, "\n");
}

static void add_rate(const pl_watched *w, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    if (!isfinite(w->lr)) return;
    pl_line_add(line, "rate       ");
    if (isfinite(w->items_per_second))
        pl_line_add(line, "%s %s/s, ", pl_show_rate(w->items_per_second, text), w->items);
    pl_line_add(line, "learning rate %.3g\n", w->lr);
}

static void add_memory(const pl_watched *w, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    const char *between = "";
    if (!w->planned_bytes && !w->resident_bytes) return;
    pl_line_add(line, "memory     ");
    if (w->planned_bytes) pl_line_add(line, "%s planned", pl_show_bytes(w->planned_bytes, text)), between = ", ";
    if (w->resident_bytes) pl_line_add(line, "%s%s now", between, pl_show_bytes(w->resident_bytes, text));
    if (w->peak_bytes) pl_line_add(line, ", at most %s", pl_show_bytes(w->peak_bytes, text));
    pl_line_add(line, "\n");
}

static void add_age(double seconds, pl_line *line)
{
    char text[PL_FORMAT_BYTES];
    if (isfinite(seconds)) pl_line_add(line, " %s ago", pl_show_seconds(fmax(floor(seconds), 1), text));
}

static void add_end(const pl_watched *w, pl_line *line)
{
    char shown[PL_SHOWN_BYTES], text[PL_FORMAT_BYTES];
    pl_line_add(line, "saved      %s", w->checkpoint[0] ? pl_show_plainly(w->checkpoint, shown) : "nothing yet");
    if (w->checkpoint[0]) pl_line_add(line, ",");
    if (w->checkpoint[0]) add_age(w->checkpoint_age_seconds, line);
    pl_line_add(line, "\n");
    if (isfinite(w->seconds)) {
        pl_line_add(line, "time       %s, last line", pl_show_seconds(w->seconds, text));
        add_age(w->line_age_seconds, line);
        pl_line_add(line, "\n");
    }
    if (w->state == PL_WATCH_ENDED && w->checkpoint[0])
        pl_line_add(line, "\ngo on with: plimsoll train %s --resume\n", pl_show_plainly(w->folder, shown));
    if (w->state == PL_WATCH_FINISHED)
        pl_line_add(line, "\nwhere its time went: plimsoll report %s\n", pl_show_plainly(w->folder, shown));
}

static void draw(const pl_watched *w, unsigned columns, bool color, pl_line *line)
{
    add_state(w, color, line);
    add_steps(w, line);
    add_bar(w, columns, color, line);
    add_loss(w, columns, line);
    add_rate(w, line);
    add_memory(w, line);
    add_end(w, line);
}

/* ---- for a program ---- */

static void add_number(pl_line *line, const char *key, double value)
{
    if (isfinite(value))
        pl_line_add(line, ",\"%s\":%.17g", key, value);
    else
        pl_line_add(line, ",\"%s\":null", key);
}

static void add_count(pl_line *line, const char *key, uint64_t value)
{
    pl_line_add(line, value ? ",\"%s\":%" PRIu64 : ",\"%s\":null", key, value);
}

static void add_text(pl_line *line, const char *key, const char *value)
{
    pl_line_add(line, ",\"%s\":\"", key);
    pl_line_json(line, value, strlen(value));
    pl_line_add(line, "\"");
}

static void write_json(const pl_watched *w, pl_line *line)
{
    static const char *const states[] = {
        [PL_WATCH_RUNS] = "running", [PL_WATCH_FINISHED] = "finished", [PL_WATCH_ENDED] = "ended"};
    pl_line_add(line, "{\"schema\":\"plimsoll.top/1\"");
    add_text(line, "folder", w->folder);
    add_text(line, "state", states[w->state]);
    add_count(line, "process", (uint64_t)w->process);
    pl_line_add(line, ",\"step\":%" PRIu64, w->step);
    add_count(line, "steps", w->steps);
    add_number(line, "epoch", w->epoch);
    add_number(line, "loss", w->loss);
    pl_line_add(line, ",\"losses\":[");
    for (size_t i = 0; i < w->points; i++) pl_line_add(line, "%s%.9g", i ? "," : "", w->point[i]);
    pl_line_add(line, "]");
    add_number(line, "validation_loss", w->validation_loss);
    add_count(line, "validation_step", w->validation_step);
    add_number(line, "best_validation_loss", w->best_validation_loss);
    add_number(line, "lr", w->lr);
    add_text(line, "items", w->items);
    add_number(line, "items_per_second", w->items_per_second);
    add_number(line, "seconds", w->seconds);
    add_number(line, "seconds_left", w->seconds_left);
    add_count(line, "planned_bytes", w->planned_bytes);
    add_count(line, "resident_bytes", w->resident_bytes);
    add_count(line, "peak_bytes", w->peak_bytes);
    add_text(line, "checkpoint", w->checkpoint);
    add_number(line, "checkpoint_age_seconds", w->checkpoint_age_seconds);
    pl_line_add(line, "}\n");
}

/* ---- once, or each second ---- */

static pl_status print_once(pl_watch *watch, bool json, pl_error *err)
{
    char text[TEXT_BYTES];
    pl_line line = {text, sizeof text, 0};
    pl_watched seen;
    pl_status status = pl_watch_look(watch, &seen, err);
    if (status != PL_OK) return status;
    if (json)
        write_json(&seen, &line);
    else
        draw(&seen, pl_terminal_columns(STDOUT_FILENO), pl_color_wanted(STDOUT_FILENO), &line);
    return pl_put(line.text, line.bytes, err);
}

/* Each line is written over what stood there, and what is left of that goes: nothing flickers. */
static pl_status show(const pl_line *drawn, pl_error *err)
{
    pl_status status = pl_put_text("\033[H", err);
    const char *from = drawn->text;
    for (const char *end; status == PL_OK && (end = strchr(from, '\n')); from = end + 1) {
        status = pl_put(from, (size_t)(end - from), err);
        if (status == PL_OK) status = pl_put_text("\033[K\r\n", err);
    }
    return status == PL_OK ? pl_put_text("\033[J\033[K\r\nq ends watching\033[K", err) : status;
}

/* A second, or until q is pressed, or a signal comes. */
static bool wants_end(void)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char key = 0;
    if (poll(&keys, 1, 1000) > 0) {
        if (read(STDIN_FILENO, &key, 1) != 1) return true; /* the terminal is gone */
    }
    return pl_signal_stop || key == 'q' || key == 'Q';
}

static pl_status watch_it(pl_watch *watch, pl_error *err)
{
    char text[TEXT_BYTES];
    pl_watched seen;
    pl_status status;
    do {
        pl_line line = {text, sizeof text, 0};
        status = pl_watch_look(watch, &seen, err);
        if (status != PL_OK || seen.state != PL_WATCH_RUNS) break;
        draw(&seen, pl_terminal_columns(STDOUT_FILENO), pl_color_wanted(STDOUT_FILENO), &line);
        status = show(&line, err);
    } while (status == PL_OK && !wants_end());
    return status;
}

/* On a screen of its own; what was seen last then stays on the one before. */
static pl_status watch_on_screen(pl_watch *watch, pl_error *err)
{
    struct termios before, keys;
    pl_error unsaid = {0};
    if (tcgetattr(STDIN_FILENO, &before) != 0) return print_once(watch, false, err);
    pl_signals_note();
    keys = before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    pl_status status = pl_put_text("\033[?1049h\033[?25l", err);
    if (status == PL_OK) status = watch_it(watch, err);
    pl_status left = pl_put_text("\033[?25h\033[?1049l", &unsaid);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    if (status == PL_OK && left != PL_OK) *err = unsaid, status = left;
    return status == PL_OK ? print_once(watch, false, err) : status;
}

static pl_status top(const pl_cli_arguments *a, pl_error *err)
{
    const bool screen =
        !a->value[JSON] && !a->value[ONCE] && pl_is_terminal(STDIN_FILENO) && pl_terminal_redraws(STDOUT_FILENO);
    pl_watch *watch;
    pl_status status = pl_watch_begin(a->operand[0], &watch, err);
    if (status != PL_OK) return status;
    status = screen ? watch_on_screen(watch, err) : print_once(watch, a->value[JSON] != NULL, err);
    pl_watch_end(watch);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &a, &err) != PL_OK) return pl_cli_complain("top", err.status, &err);
    if (a.operand_count != 1) return pl_cli_usage("top", "the folder of one training is expected", "");
    pl_status status = top(&a, &err);
    return status == PL_OK ? 0 : pl_cli_complain("top", status, &err);
}

const pl_cli_body pl_cli_top = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
