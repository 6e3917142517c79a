/* What a person who asked a training to stop hears when that takes longer than about a second: the step (or the
 * validation) under way is finished first, and how long that will be. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "again.h"
#include "format.h"
#include "out.h"
#include "progress.h"
#include "signals.h"

#define SOON_SECONDS 1.0

/* When the step or the validation under way began: at the last event of what came before. */
static void follow_work(pl_view *v, const pl_event *e)
{
    if (e->step != v->work_step || e->validating != v->work_validates) v->work_at = v->heard_at;
    v->work_step = e->step;
    v->work_validates = e->validating;
    v->heard_at = e->seconds;
}

/* Seconds until what is under way is done; NAN: not known. */
static double seconds_left(const pl_view *v, const pl_event *e)
{
    double gone = e->seconds - v->work_at;
    if (v->keeps_results) return NAN; /* stops between parts */
    if (e->parts > 1 && e->part > 0) return gone / (double)e->part * (double)(e->parts - e->part);
    return !e->validating && v->step_took > 0 ? fmax(v->step_took - gone, 0) : NAN;
}

void pl_view_stopping(pl_view *v, const pl_event *e)
{
    char left[PL_FORMAT_BYTES], about[PL_FORMAT_BYTES + 16] = "";
    follow_work(v, e);
    if (!pl_signal_stop || v->stop_said || e->kind != PL_EVENT_TICK) return;
    if (!v->stop_heard) v->stop_heard_at = e->seconds;
    v->stop_heard = true;
    double seconds = seconds_left(v, e);
    bool long_left = seconds >= SOON_SECONDS;
    if (!long_left && e->seconds - v->stop_heard_at < SOON_SECONDS) return;
    if (long_left) snprintf(about, sizeof about, " (about %s)", pl_show_seconds(seconds, left));
    pl_view_clear(v);
    pl_say("stopping: finishing this %s first%s; a second signal exits at once\n",
           e->validating      ? "validation"
           : v->keeps_results ? "state"
                              : "step",
           about);
    v->stop_said = true;
}

/* Two texts, taken in turns: a signal may come while one is made. */
void pl_view_last_words(const pl_view *v, const pl_event *e)
{
    static char texts[2][PL_AGAIN_BYTES + 256];
    static int turn;
    turn = !turn;
    pl_line line = {texts[turn], sizeof texts[turn], 0};
    line.text[0] = 0;
    if (v->quiet < 2 && v->keeps_results)
        pl_line_add(&line, "exited at once; the results have what is whole, and the same command goes on\n");
    else if (v->quiet < 2 && !e->is_saved)
        pl_line_add(&line, "exited at once: nothing was saved yet, so there is nothing to resume; start again\n");
    else if (v->quiet < 2) {
        pl_line_add(&line, "exited at once: what came after the checkpoint of step %" PRIu64 " is lost%s\n",
                    e->saved_step, v->again[0] ? ". Resume with:" : "");
        if (v->again[0]) {
            pl_line_add(&line, "  ");
            pl_line_bytes(&line, v->again, strlen(v->again));
            pl_line_add(&line, "\n");
        }
    }
    pl_signals_last_words(line.text, line.bytes, e->is_saved || v->keeps_results);
}
