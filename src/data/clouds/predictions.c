#include "data/clouds/predictions.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/line_file.h"
#include "base/locale.h"

static const char header[] = "flight,frame,seconds,true_km,predicted_km,mean_km\n";
static const char header_of_items[] = "item,true,predicted,mean\n";
enum { FIELDS = 6 };

/* ---- writing ---- */

typedef struct told {
    bool of_flights;
    void (*at)(const void *, uint64_t, pl_prediction *);
    const void *context;
    uint64_t count;
} told;

static pl_status put_all(pl_line_file *l, const void *context, pl_error *err)
{
    const told *all = context;
    pl_line_put(l, "%s", all->of_flights ? header : header_of_items);
    for (uint64_t i = 0; i < all->count; i++) {
        pl_prediction p;
        all->at(all->context, i, &p);
        PL_TRY(pl_line_begin(l, err));
        if (all->of_flights) pl_line_put(l, "%s,%" PRIu64 ",%.17g", p.flight, p.frame, p.seconds);
        if (!all->of_flights) pl_line_put(l, "%" PRIu64, p.frame);
        pl_line_put(l, ",%.9g,%.9g,%.9g\n", p.truth, p.predicted, p.mean);
    }
    return PL_OK;
}

pl_status pl_predictions_write(const char *path, bool of_flights,
                               void (*at)(const void *context, uint64_t i, pl_prediction *), const void *context,
                               uint64_t count, pl_error *err)
{
    return pl_line_file_write(path, put_all, &(told){of_flights, at, context, count}, err);
}

/* ---- reading ---- */

static bool parse_number(const char *text, double *value)
{
    char *end;
    *value = pl_read_double(text, &end);
    return end != text && *end == 0;
}

/* Cuts the line at its commas. */
static bool split(char *line, char *field[FIELDS])
{
    int count = 0;
    for (char *next = line; next && count < FIELDS; count++) {
        field[count] = next;
        next = strchr(next, ',');
        if (next) *next++ = 0;
        if (count == FIELDS - 1 && next) return false;
    }
    return count == FIELDS;
}

static bool parse_line(char *line, pl_prediction *p)
{
    char *field[FIELDS];
    double frame;
    if (!split(line, field) || strlen(field[0]) >= sizeof p->flight || !field[0][0]) return false;
    snprintf(p->flight, sizeof p->flight, "%s", field[0]);
    if (!parse_number(field[1], &frame) || !(frame >= 0) || frame > 0x1p53) return false;
    p->frame = (uint64_t)frame;
    return parse_number(field[2], &p->seconds) && parse_number(field[3], &p->truth) &&
           parse_number(field[4], &p->predicted) && parse_number(field[5], &p->mean);
}

static uint64_t count_lines(const char *text)
{
    uint64_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static pl_status read_lines(pl_lines *l, pl_prediction *all, uint64_t *count, pl_error *err)
{
    for (char *line; (line = pl_lines_next(l)); ++*count)
        if (!parse_line(line, &all[*count])) return pl_lines_refuse(l, err);
    return PL_OK;
}

pl_status pl_predictions_read(const char *path, pl_prediction **all, uint64_t *count, pl_error *err)
{
    pl_lines l;
    *all = NULL, *count = 0;
    PL_TRY(pl_lines_open(&l, path, header, "prediction", err));
    *all = pl_alloc(count_lines(l.at) + 1, sizeof **all);
    pl_status status =
        *all ? read_lines(&l, *all, count, err) : pl_fail(err, PL_E_NOMEM, "no memory for the predictions of %s", path);
    pl_lines_close(&l);
    if (status == PL_OK) return PL_OK;
    pl_free(*all);
    *all = NULL;
    return status;
}
