/* Seconds of a node that was never measured, from measured ones that differ from it in sizes alone. A key without its
 * sizes is the name of a family; within it a key is a point, the logarithms of its sizes (and one). Seconds are
 * the work (pl_node_work) times a pace that changes little from one size to the next, so the pace is taken from the
 * nearest points, the nearer the more (Shepard, 1968).
 *
 * Where no key of the family was measured, the pace is that of all keys of the same operator; and where there is none
 * of it, seconds follow from the machine's rates: what its products take at their peak and its bytes from memory, times
 * what kernels usually lack of that. So every node has a time, and the farther it is fetched the wider its interval.
 *
 * Kernels work on whole vectors of channels: what the last dimension lacks to the next LANES costs as if it were there,
 * and is counted as work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "calibrate/table.h"
#include "ir/op.h"
#include "ir/properties.h"

enum { SIZES_MAX = 40, NEAREST = 4, LANES = 16 };
#define NEAREST_SQUARE 1e-4 /* a distance below which all points are as good */

/* How far off a prediction may be, as a factor: a measured one, where the machine is as quiet as it was (the same
 * kernels are faster or slower by so much from one day to the next); one from other sizes, and how that grows with the
 * distance; both at least so much in a virtual machine, which its host may move onto cores shared with strangers; one
 * from the same operator; and one from the machine's rates, of which kernels reach the share. */
#define MEASURED_FACTOR 1.15
#define FAMILY_FACTOR   1.3
#define VIRTUAL_FACTOR  1.7
#define DISTANCE_MAX    4.0
#define DISTANCE_GROWTH 0.2
#define OPERATOR_FACTOR 2.5
#define RATES_FACTOR    4.0
#define REACHED_SHARE   0.4
#define CALL_SECONDS    3e-6
#define UNALONE_FACTOR  3.0 /* of a figure that others are in, at most: what is farther off is no figure (replay.c) */

typedef struct pl_calibration_relative {
    uint64_t family, op;
    double pace; /* seconds of a second's work */
    uint32_t entry, sizes;
    float size[SIZES_MAX]; /* logarithms */
} relative;

typedef struct neighbours {
    double square[NEAREST]; /* of distances, rising */
    double pace[NEAREST];
    double busy; /* the most of all of them */
    size_t count;
} neighbours;

/* ---- points ---- */

/* How much wider the last dimension of what is made is for whoever works on whole vectors. */
static double padding_of(int64_t last) { return (double)((last + LANES - 1) / LANES * LANES) / (double)last; }

/* Of "groups=64" the digits: an attribute that is a size, too. NULL: the text does not begin with one. */
static const char *find_size(const char *at)
{
    static const char *const names[] = {
        " groups=", " heads=", " height=", " width=", " rows=", " channels=", " first=", " modes=", " chunk_rows="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(at, names[i], strlen(names[i])) == 0) return at + strlen(names[i]);
    return NULL;
}

/* At a number: into the point, and behind it. NULL: it is none of a size, or there is no room. */
static const char *take_size(const char *at, relative *r, long long *size)
{
    char *end;
    *size = strtoll(at, &end, 10);
    if (end == at || *size < 0 || r->sizes == SIZES_MAX) return NULL;
    r->size[r->sizes++] = (float)log1p((double)*size);
    return end;
}

/* Sizes stand in brackets, one behind the other: "f32[1,128,256]", and among the attributes. What is made stands behind
 * the sign `>`. */
static bool read_point(const char *key, relative *r, double *padding)
{
    char name[PL_CALIBRATION_KEY_BYTES];
    size_t used = 0;
    long long size;
    bool inside = false, made = false;
    *padding = 0;
    r->sizes = 0;
    for (const char *at = key; *at;) {
        const char *number = inside && *at >= '0' && *at <= '9' ? at : made ? find_size(at) : NULL;
        while (number && at < number) name[used++] = *at++;
        if (number && !(at = take_size(number, r, &size))) return false;
        if (number && *at == ']' && made && *padding == 0) *padding = padding_of(size > 0 ? size : 1);
        if (number) continue;
        inside = *at == '[' || (inside && *at != ']');
        made |= *at == '>';
        name[used++] = *at++;
    }
    name[used] = 0;
    if (*padding == 0) *padding = 1;
    r->family = pl_stream_id(name);
    name[strcspn(name, " ")] = 0;
    r->op = pl_stream_id(name);
    return true;
}

static int by_family(const void *a, const void *b)
{
    const relative *p = a, *q = b;
    if (p->family != q->family) return p->family < q->family ? -1 : 1;
    return p->entry < q->entry ? -1 : p->entry > q->entry;
}

static pl_status find_kin(pl_calibration *c, pl_error *err)
{
    pl_calibration_kin *kin = &c->kin;
    if (kin->relative) return PL_OK;
    kin->relative = pl_alloc(c->count + 1, sizeof *kin->relative);
    if (!kin->relative) return pl_fail(err, PL_E_NOMEM, "no memory for the times of %zu kernels", c->count);
    kin->count = 0;
    for (size_t i = 0; i < c->count; i++) {
        relative *r = &kin->relative[kin->count];
        const pl_calibration_entry *e = &c->entry[i];
        double padding;
        if (e->samples == 0 || e->work <= 0 || e->seconds <= 0 || !read_point(e->key, r, &padding)) continue;
        r->entry = (uint32_t)i;
        r->pace = e->seconds / (e->work * padding);
        kin->count++;
    }
    qsort(kin->relative, kin->count, sizeof *kin->relative, by_family);
    return PL_OK;
}

void pl_calibration_kin_clear(pl_calibration_kin *kin)
{
    pl_free(kin->relative);
    kin->relative = NULL;
    kin->count = 0;
}

/* ---- the nearest ---- */

static void take_neighbour(neighbours *n, double square, double pace)
{
    if (n->count == NEAREST && square >= n->square[NEAREST - 1]) return;
    size_t at = n->count < NEAREST ? n->count++ : NEAREST - 1;
    for (; at > 0 && n->square[at - 1] > square; at--) {
        n->square[at] = n->square[at - 1];
        n->pace[at] = n->pace[at - 1];
    }
    n->square[at] = square;
    n->pace[at] = pace;
}

static double square_of(const relative *a, const relative *b)
{
    double sum = 0;
    for (uint32_t i = 0; i < a->sizes; i++) sum += (double)(a->size[i] - b->size[i]) * (a->size[i] - b->size[i]);
    return sum;
}

static size_t first_of_family(const pl_calibration_kin *kin, uint64_t family)
{
    size_t low = 0, high = kin->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (kin->relative[middle].family < family)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* But for the entry that is left out. */
static neighbours find_neighbours(const pl_calibration *c, const relative *r, uint32_t without)
{
    const pl_calibration_kin *kin = &c->kin;
    neighbours n = {.busy = 1};
    for (size_t i = first_of_family(kin, r->family); i < kin->count && kin->relative[i].family == r->family; i++) {
        const relative *other = &kin->relative[i];
        if (other->entry == without || other->sizes != r->sizes) continue;
        take_neighbour(&n, square_of(r, other), other->pace);
        n.busy = fmax(n.busy, c->entry[other->entry].busy);
    }
    return n;
}

static double mean_pace(const neighbours *n)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < n->count; i++) {
        const double square = n->square[i] + NEAREST_SQUARE, weight = 1 / (square * square);
        sum += weight * log(n->pace[i]);
        weights += weight;
    }
    return exp(sum / weights);
}

/* ---- what is asked ---- */

static bool point_of(pl_calibration *c, const pl_graph *g, const pl_node *n, relative *r, double *padding)
{
    char memory[PL_CALIBRATION_KEY_BYTES];
    pl_str key = pl_str_fixed(memory, sizeof memory);
    pl_calibration_key(g, n, &c->options, &key);
    return !key.failed && read_point(memory, r, padding);
}

static const pl_calibration_entry *own_entry(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    return pl_op_is_outside(n->op) ? NULL : pl_calibration_recall_entry(c, g, n);
}

/* An interval around what was predicted, a factor to either side. What others took lengthens runs, and few figures:
 * those of kernels that were never left alone. */
static pl_duration within(double seconds, double factor, double busy, bool estimated)
{
    if (!(busy > 1)) busy = 1;
    return (pl_duration){seconds, seconds / (factor * fmin(busy, UNALONE_FACTOR)), seconds * factor * busy, busy,
                         estimated};
}

static double doubt(const pl_calibration *c, double factor)
{
    return c->machine.is_virtual ? fmax(factor, VIRTUAL_FACTOR) : factor;
}

/* What was measured scatters besides. */
static pl_duration measured(const pl_calibration *c, const pl_calibration_entry *e)
{
    pl_duration p = within(e->seconds, doubt(c, MEASURED_FACTOR), e->busy, false);
    p.low = fmin(p.low, fmax(e->seconds - e->spread, 0));
    p.high = fmax(p.high, e->seconds + e->spread);
    return p;
}

static pl_duration from_family(const pl_calibration *c, const pl_graph *g, const pl_node *n, const neighbours *near,
                               double padding)
{
    const double distance = fmin(sqrt(near->square[0]), DISTANCE_MAX);
    return within(pl_node_work(g, n) * padding * mean_pace(near),
                  doubt(c, FAMILY_FACTOR) * exp(DISTANCE_GROWTH * distance), near->busy, true);
}

/* The mean pace of all that is known of the operator; negative: nothing. */
static double pace_of_operator(const pl_calibration *c, uint64_t op, double *busy)
{
    double sum = 0;
    size_t count = 0;
    *busy = 1;
    for (size_t i = 0; i < c->kin.count; i++) {
        const relative *r = &c->kin.relative[i];
        if (r->op != op) continue;
        sum += log(r->pace);
        *busy = fmax(*busy, c->entry[r->entry].busy);
        count++;
    }
    return count ? exp(sum / (double)count) : -1;
}

static pl_duration from_rates(const pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    const pl_rates *rates = &c->rates;
    const double own = rates->operations[pl_node_arithmetic(g, n)];
    const double rate = own > 0 ? own : rates->operations[PL_ARITHMETIC_F32];
    const pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    if (!(rate > 0) || !(rates->bytes > 0)) return within(pl_node_work(g, n), RATES_FACTOR, 1, true);
    return within((cost.flops / rate + cost.bytes / rates->bytes) / REACHED_SHARE + CALL_SECONDS, RATES_FACTOR, 1,
                  true);
}

/* What goes in and out is a copy of a few kilobytes that no kernel makes. */
pl_duration pl_calibration_predict_anew(pl_calibration *c, const pl_graph *g, const pl_node *n,
                                        const pl_calibration_entry *own)
{
    relative r;
    double padding, busy;
    if (pl_op_is_outside(n->op)) return (pl_duration){.busy = 1};
    if (own && own->samples) return measured(c, own);
    if (find_kin(c, NULL) != PL_OK || !point_of(c, g, n, &r, &padding)) return from_rates(c, g, n);
    const neighbours near = find_neighbours(c, &r, UINT32_MAX);
    if (near.count) return from_family(c, g, n, &near, padding);
    const double pace = pace_of_operator(c, r.op, &busy);
    return pace > 0 ? within(pl_node_work(g, n) * padding * pace, OPERATOR_FACTOR, busy, true) : from_rates(c, g, n);
}

pl_duration pl_calibration_predict(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    return pl_op_is_outside(n->op) ? (pl_duration){.busy = 1} : pl_calibration_recall_prediction(c, g, n);
}

double pl_calibration_estimate_key(pl_calibration *c, const char *key, double work)
{
    relative r;
    double padding;
    if (find_kin(c, NULL) != PL_OK || !read_point(key, &r, &padding)) return -1;
    const pl_calibration_entry *own = pl_calibration_find(c, key);
    const neighbours near = find_neighbours(c, &r, own ? (uint32_t)(own - c->entry) : UINT32_MAX);
    return near.count ? work * padding * mean_pace(&near) : -1;
}

double pl_calibration_distance(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    relative r;
    double padding;
    const pl_calibration_entry *own = own_entry(c, g, n);
    if (pl_op_is_outside(n->op) || pl_calibration_is_known(c, own)) return 0;
    if (own) return INFINITY;
    if (find_kin(c, NULL) != PL_OK || !point_of(c, g, n, &r, &padding)) return INFINITY;
    const neighbours near = find_neighbours(c, &r, UINT32_MAX);
    return near.count ? sqrt(near.square[0]) : INFINITY;
}

double pl_calibration_error(pl_calibration *c)
{
    double off = 0, all = 0;
    if (find_kin(c, NULL) != PL_OK) return -1;
    for (size_t i = 0; i < c->kin.count; i++) {
        const relative *r = &c->kin.relative[i];
        const pl_calibration_entry *e = &c->entry[r->entry];
        const neighbours near = find_neighbours(c, r, r->entry);
        if (!e->used || near.count == 0) continue;
        off += fabs(mean_pace(&near) / r->pace - 1) * e->seconds;
        all += e->seconds;
    }
    return all > 0 ? off / all : -1;
}
