/* Progress for programs: one object a line on stdout, schema "plimsoll.progress/1" (docs/formats.md). step comes every
 * train.log_every steps; of the signs of life between (PL_EVENT_TICK), which are for people, one now and then, while a
 * step lasts. A number that is none, or too large for its type, is null. Fields may be added; a changed meaning raises
 * the number in the schema. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "again.h"
#include "out.h"
#include "progress.h"

enum { LINE_BYTES = 4096 + 2 * PL_AGAIN_BYTES };

static const char *const names[] = {
    [PL_EVENT_COMMITTED] = "committed", [PL_EVENT_STEP] = "step",       [PL_EVENT_EVALUATED] = "evaluated",
    [PL_EVENT_SAVED] = "saved",         [PL_EVENT_TEXT] = "text",       [PL_EVENT_TEXT_END] = "text_end",
    [PL_EVENT_WARNING] = "warning",     [PL_EVENT_STOPPED] = "stopped", [PL_EVENT_FINISHED] = "finished",
    [PL_EVENT_TICK] = "part",           [PL_EVENT_NOTE] = "note",       [PL_EVENT_ROW] = "row",
};

static void add_real(pl_line *line, const char *key, double value)
{
    if (isfinite(value))
        pl_line_add(line, ",\"%s\":%.9g", key, value);
    else
        pl_line_add(line, ",\"%s\":null", key);
}

static void add_count(pl_line *line, const char *key, uint64_t value)
{
    pl_line_add(line, ",\"%s\":%" PRIu64, key, value);
}

static void add_string(pl_line *line, const char *key, const char *text, size_t bytes)
{
    pl_line_add(line, ",\"%s\":\"", key);
    pl_line_json(line, text, bytes);
    pl_line_add(line, "\"");
}

static void add_text(pl_line *line, const char *key, const pl_event *e)
{
    add_string(line, key, e->text, e->text_bytes < 512 ? e->text_bytes : 512);
}

/* Of a command that keeps some. */
static void add_results(pl_line *line, const pl_event *e)
{
    if (!e->result_bytes) return;
    add_count(line, "result_bytes", e->there_bytes);
    add_count(line, "planned_result_bytes", e->result_bytes);
}

static void add_rate(pl_line *line, const pl_view *v, const pl_event *e)
{
    char rate[48];
    snprintf(rate, sizeof rate, "%.30s_per_second", e->words->items);
    add_count(line, e->words->items, e->items);
    add_real(line, rate, e->items_per_second);
    add_real(line, "seconds", e->seconds);
    add_real(line, "seconds_left", pl_view_seconds_left(v, e));
    add_count(line, "resident_bytes", pl_resident_now());
    add_results(line, e);
}

static void add_step(pl_line *line, const pl_view *v, const pl_event *e)
{
    add_real(line, "epoch", e->epoch);
    add_real(line, "loss", e->loss);
    add_real(line, "lr", e->lr);
    add_rate(line, v, e);
}

static void add_part(pl_line *line, const pl_view *v, const pl_event *e)
{
    add_count(line, "part", e->part);
    add_count(line, "parts", e->parts);
    pl_line_add(line, ",\"validating\":%s", e->validating ? "true" : "false");
    add_rate(line, v, e);
}

static void add_row(pl_line *line, const pl_event *e)
{
    add_string(line, "table", e->table, strlen(e->table));
    for (size_t i = 0; i < e->cells; i++) {
        const pl_cell *c = &e->cell[i];
        if (c->text)
            add_string(line, c->key, c->text, strlen(c->text));
        else if (c->is_truth)
            pl_line_add(line, ",\"%s\":%s", c->key, c->number != 0 ? "true" : "false");
        else
            add_real(line, c->key, c->number);
    }
}

static void add_evaluated(pl_line *line, const pl_event *e)
{
    add_real(line, "loss", e->loss);
    for (size_t i = 0; i < e->metrics; i++)
        if (e->metric[i].uses & PL_METRIC_VALIDATED) add_real(line, e->metric[i].key, e->metric[i].value);
    add_real(line, "best_loss", e->best_loss);
}

/* Lost lines do not end a run. That a reader left (EPIPE) is its own affair; any other reason is told at the end. */
static void put_line(pl_view *v, const char *text, size_t bytes)
{
    pl_error err = {0};
    if (v->status != PL_OK || v->reader_left) return;
    pl_status status = pl_put(text, bytes, &err);
    if (status == PL_OK) return;
    v->reader_left = errno == EPIPE;
    if (v->reader_left) return;
    v->status = status;
    v->error = err;
}

void pl_view_json(pl_view *v, const pl_event *e)
{
    char text[LINE_BYTES];
    pl_line line = {text, sizeof text, 0};
    if (e->kind == PL_EVENT_TICK && !pl_view_is_silent(v, e)) return;
    if (e->kind == PL_EVENT_ROW && e->cells == 0) return; /* keys say what a head says */
    v->shown_at = e->seconds;
    pl_line_add(&line, "{\"schema\":\"plimsoll.progress/1\",\"event\":\"%s\"", names[e->kind]);
    add_count(&line, "step", e->step);
    add_count(&line, "steps", e->steps);
    switch (e->kind) {
    case PL_EVENT_COMMITTED:
        add_count(&line, "resident_bytes", pl_resident_now());
        if (e->text_bytes) add_string(&line, "changed", e->text, e->text_bytes);
        add_results(&line, e);
        break;
    case PL_EVENT_STEP:
        add_step(&line, v, e);
        break;
    case PL_EVENT_EVALUATED:
        add_evaluated(&line, e);
        break;
    case PL_EVENT_SAVED:
        add_text(&line, "checkpoint", e);
        break;
    case PL_EVENT_TEXT:
    case PL_EVENT_WARNING:
    case PL_EVENT_NOTE:
        add_text(&line, "text", e);
        break;
    case PL_EVENT_STOPPED:
    case PL_EVENT_FINISHED:
        add_real(&line, "seconds", e->seconds);
        add_results(&line, e);
        if (e->kind == PL_EVENT_STOPPED && v->again[0]) add_string(&line, "go_on", v->again, strlen(v->again));
        break;
    case PL_EVENT_TICK:
        add_part(&line, v, e);
        break;
    case PL_EVENT_ROW:
        add_row(&line, e);
        break;
    case PL_EVENT_TEXT_END:
        break;
    }
    pl_line_add(&line, "}\n");
    put_line(v, text, line.bytes);
}
