/* Measuring by replay. The graph's programs are run in their order on scratch memory, a few trips of each region instead
 * of all, and each node is timed where it stands: its weights were last touched a whole trip ago, what it reads from its
 * predecessor is still warm, and the team has just left another parallel region. A kernel timed alone in a loop is up to
 * twice as fast as in a step, which is why that is not done here.
 *
 * Samples of different keys are interleaved (one pass after the other), so a disturbance of a second spoils a few samples
 * of each key and not all of one; the mean of the middle half of the samples leaves them out. The middle half and not the
 * median alone, because these figures are added up: nodes of one key at several places have several usual times.
 *
 * Layers repeat: a key is sampled at SITES_MAX places of the graph at most, and in a deep model the others are left out.
 * Programs that are run once in a while (evaluation, first values) get a pass in four. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrate/scratch.h"
#include "calibrate/table.h"

enum { SAMPLES_MAX = 256, SITES_MAX = 8, TRIPS_FIRST = 2, TRIPS_MAX = 16, RARE_EVERY = 4, OFTEN_PASSES = 2, REFILL_EVERY = 8 };
#define SEGMENT_SECONDS 0.03 /* repeat a region until about this long */

typedef struct sampled {
    char *key;
    double seconds[SAMPLES_MAX]; /* the newest; older ones are overwritten */
    double first;                /* the first execution: faults, cold code; used only when it stays alone */
    uint64_t count;              /* including the first */
    uint32_t sites;
} sampled;

typedef struct replay {
    pl_calibration *c;
    const pl_graph *g;
    bool *run;        /* [nodes] */
    uint32_t *key_of; /* [nodes] index of sampled, or PL_NONE */
    sampled *keys;
    size_t key_count, key_capacity, unseen;
    uint32_t *trips;  /* [nodes] of the segment that begins here */
    bool *frequent;   /* [regions] a program with a backward pass or an update */
    uint64_t *offset; /* [values] */
    pl_layout layout;
    pl_scratch scratch;
    pl_area_kind shared_holds; /* what the numbers in the shared area are: activations or moments */
    uint64_t pass, turn;
    double begin;
} replay;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void deinit(replay *r)
{
    for (size_t i = 0; i < r->key_count; i++) pl_free(r->keys[i].key);
    pl_free(r->keys);
    pl_free(r->run);
    pl_free(r->key_of);
    pl_free(r->trips);
    pl_free(r->frequent);
    pl_free(r->offset);
    pl_layout_deinit(&r->layout);
    pl_scratch_deinit(&r->scratch);
}

/* ---- which nodes ---- */

static pl_status refuse(const replay *r, pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM, "no memory to measure the kernels of a graph of %zu nodes", r->g->node_count);
}

static pl_status add_site(replay *r, size_t node, const char *key, pl_error *err)
{
    size_t k = 0;
    while (k < r->key_count && strcmp(r->keys[k].key, key) != 0) k++;
    if (k == r->key_count) {
        if (pl_grow(&r->keys, &r->key_capacity, k, sizeof *r->keys)) return refuse(r, err);
        memset(&r->keys[k], 0, sizeof r->keys[k]);
        r->keys[k].key = pl_strdup(key);
        if (!r->keys[k].key) return refuse(r, err);
        r->key_count++;
    }
    if (r->keys[k].sites >= SITES_MAX) return PL_OK;
    r->keys[k].sites++;
    r->key_of[node] = (uint32_t)k;
    r->run[node] = true;
    return PL_OK;
}

/* Nodes whose key is missing, and the node before each, which leaves the caches as they will be. */
static pl_status choose_nodes(replay *r, pl_error *err)
{
    const pl_graph *g = r->g;
    char memory[PL_CALIBRATION_KEY_BYTES];
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        r->key_of[i] = PL_NONE;
        if (n->dead || n->op == PL_OP_LOAD) continue;
        pl_str key = pl_str_fixed(memory, sizeof memory);
        pl_calibration_key(g, n, &r->c->options, &key);
        if (key.failed || pl_calibration_find(r->c, memory)) continue;
        PL_TRY(add_site(r, i, memory, err));
    }
    for (size_t i = 1; i < g->node_count; i++)
        if (r->key_of[i] != PL_NONE && !g->node[i - 1].dead && g->node[i - 1].op != PL_OP_LOAD) r->run[i - 1] = true;
    return PL_OK;
}

static pl_status prepare(replay *r, pl_error *err)
{
    const pl_graph *g = r->g;
    r->run = pl_alloc(g->node_count + 1, sizeof *r->run);
    r->key_of = pl_alloc(g->node_count + 1, sizeof *r->key_of);
    r->trips = pl_alloc(g->node_count + 1, sizeof *r->trips);
    r->frequent = pl_alloc(g->region_count + 1, sizeof *r->frequent);
    r->offset = pl_alloc(g->value_count + 1, sizeof *r->offset);
    if (!r->run || !r->key_of || !r->trips || !r->frequent || !r->offset) return refuse(r, err);
    for (size_t i = 0; i < g->node_count; i++) {
        r->trips[i] = TRIPS_FIRST;
        if (g->node[i].phase != PL_PHASE_FORWARD) r->frequent[pl_region_program(g, g->node[i].region)] = true;
    }
    return choose_nodes(r, err);
}

/* Where nothing can be measured for want of room, the key is not counted as one to wait for. */
static void drop_keys_without_sites(replay *r)
{
    for (size_t k = 0; k < r->key_count; k++) r->keys[k].sites = 0;
    for (size_t i = 0; i < r->g->node_count; i++) {
        if (!r->run[i]) r->key_of[i] = PL_NONE;
        if (r->key_of[i] != PL_NONE) r->keys[r->key_of[i]].sites++;
    }
    for (size_t k = 0; k < r->key_count; k++) r->unseen += r->keys[k].sites > 0;
}

static pl_status lay_out(replay *r, pl_error *err)
{
    PL_TRY(pl_layout_init(&r->layout, r->g, r->run, r->c->options.team, r->c->options.bytes_max, err));
    drop_keys_without_sites(r);
    return PL_OK;
}

/* ---- running ---- */

static void locate(replay *r, const pl_id *values, int count)
{
    for (int k = 0; k < count; k++) {
        if (values[k] == PL_NONE) continue;
        pl_id root = pl_value_root(r->g, values[k]);
        r->offset[root] = pl_layout_offset(&r->layout, root, r->turn);
    }
}

static bool touches_moments(const replay *r, const pl_node *n)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && r->layout.kind[pl_value_root(r->g, n->in[k])] == PL_AREA_MOMENT) return true;
    return false;
}

static void sample(sampled *s, double seconds)
{
    if (s->count == 0) s->first = seconds;
    else s->seconds[(s->count - 1) % SAMPLES_MAX] = seconds;
    s->count++;
}

static pl_status run_node(replay *r, size_t node, pl_error *err)
{
    const pl_node *n = &r->g->node[node];
    locate(r, n->in, PL_NODE_IN_MAX);
    locate(r, n->out, PL_NODE_OUT_MAX);
    locate(r, &n->predicate, 1);
    pl_area_kind wanted = r->layout.moments_shared && touches_moments(r, n) ? PL_AREA_MOMENT : PL_AREA_ACTIVATION;
    if (r->layout.moments_shared && wanted != r->shared_holds) {
        pl_scratch_fill(&r->scratch, &r->layout, wanted);
        r->shared_holds = wanted;
    }
    pl_call call;
    pl_addresses addresses = {r->scratch.base, r->offset};
    void *workspace = r->layout.workspace_bytes[node] ? r->scratch.base + pl_layout_workspace_offset(&r->layout, (pl_id)node) : NULL;
    PL_TRY(pl_backend_bind(r->g, n, &addresses, workspace, &call, err));
    call.predicate = NULL; /* measured as if it ran */
    double begin = now_seconds();
    pl_backend_exec(&call, r->c->options.team);
    double seconds = now_seconds() - begin;
    if (r->key_of[node] == PL_NONE) return PL_OK;
    sampled *s = &r->keys[r->key_of[node]];
    r->unseen -= s->count == 0;
    sample(s, seconds);
    return PL_OK;
}

static bool is_over(const replay *r) { return r->unseen == 0 && now_seconds() - r->begin > r->c->options.seconds_max; }

static pl_status run_trip(replay *r, size_t begin, size_t end, pl_error *err)
{
    for (size_t i = begin; i < end && !is_over(r); i++)
        if (r->run[i]) PL_TRY(run_node(r, i, err));
    r->turn++;
    return PL_OK;
}

static uint64_t trips_of_region(const pl_graph *g, pl_id region)
{
    uint64_t trips = 1;
    for (; region != PL_NONE; region = g->region[region].parent) trips *= g->region[region].trip ? g->region[region].trip : 1;
    return trips;
}

/* A stretch of nodes of one region, as often as in the run or until enough was seen. */
static pl_status run_segment(replay *r, size_t begin, size_t end, pl_error *err)
{
    uint64_t trips = trips_of_region(r->g, r->g->node[begin].region);
    if (trips > r->trips[begin]) trips = r->trips[begin];
    double before = now_seconds();
    for (uint64_t t = 0; t < trips; t++) PL_TRY(run_trip(r, begin, end, err));
    double one = (now_seconds() - before) / (double)(trips ? trips : 1);
    double wanted = SEGMENT_SECONDS / (one > 1e-9 ? one : 1e-9);
    r->trips[begin] = wanted > TRIPS_MAX ? TRIPS_MAX : wanted < TRIPS_FIRST ? TRIPS_FIRST : (uint32_t)wanted;
    return PL_OK;
}

static pl_status run_pass(replay *r, pl_error *err)
{
    const pl_graph *g = r->g;
    for (size_t begin = 0, end; begin < g->node_count && !is_over(r); begin = end) {
        pl_id region = g->node[begin].region;
        for (end = begin; end < g->node_count && g->node[end].region == region; end++) {}
        bool due = r->pass < OFTEN_PASSES || r->pass % RARE_EVERY == 0 || r->frequent[pl_region_program(g, region)];
        if (due) PL_TRY(run_segment(r, begin, end, err));
    }
    if (++r->pass % REFILL_EVERY == 0)
        for (int k = 0; k < PL_AREA_COUNT; k++)
            if (k != PL_AREA_MOMENT || !r->layout.moments_shared) pl_scratch_fill(&r->scratch, &r->layout, (pl_area_kind)k);
    r->shared_holds = r->pass % REFILL_EVERY == 0 ? PL_AREA_ACTIVATION : r->shared_holds;
    return PL_OK;
}

static bool all_sampled(const replay *r)
{
    for (size_t k = 0; k < r->key_count; k++)
        if (r->keys[k].sites && r->keys[k].count <= SAMPLES_MAX) return false;
    return true;
}

static void report(const replay *r)
{
    size_t done = 0;
    for (size_t k = 0; k < r->key_count; k++) done += r->keys[k].count > 0;
    const pl_calibration_options *o = &r->c->options;
    if (o->progress) o->progress(o->progress_context, done, r->key_count, now_seconds() - r->begin);
}

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Mean of the middle half, and half the distance of the quartiles. */
static void summarise(sampled *s, double *seconds, double *spread)
{
    size_t n = s->count - 1 < SAMPLES_MAX ? (size_t)s->count - 1 : SAMPLES_MAX;
    *seconds = s->first;
    *spread = 0;
    if (n == 0) return;
    qsort(s->seconds, n, sizeof *s->seconds, by_value);
    size_t begin = n / 4, end = n - n / 4;
    double sum = 0;
    for (size_t i = begin; i < end; i++) sum += s->seconds[i];
    *seconds = sum / (double)(end - begin);
    *spread = (s->seconds[end - 1] - s->seconds[begin]) / 2;
}

static pl_status keep_results(replay *r, pl_error *err)
{
    for (size_t k = 0; k < r->key_count; k++) {
        sampled *s = &r->keys[k];
        double seconds, spread;
        if (s->count == 0) continue;
        summarise(s, &seconds, &spread);
        PL_TRY(pl_calibration_put(r->c, s->key, seconds, spread, s->count, err));
        r->c->changed = true;
    }
    return PL_OK;
}

static pl_status measure(replay *r, pl_error *err)
{
    PL_TRY(lay_out(r, err));
    if (r->unseen == 0) return PL_OK;
    PL_TRY(pl_scratch_init(&r->scratch, &r->layout, r->c->options.huge_pages, err));
    r->shared_holds = PL_AREA_ACTIVATION;
    if (r->layout.moments_shared) pl_scratch_fill(&r->scratch, &r->layout, PL_AREA_ACTIVATION);
    while (!is_over(r) && !all_sampled(r)) {
        PL_TRY(run_pass(r, err));
        report(r);
    }
    return keep_results(r, err);
}

pl_status pl_calibration_measure(pl_calibration *c, const pl_graph *g, pl_error *err)
{
    pl_status status;
    replay r = {.c = c, .g = g, .begin = now_seconds()};
    PL_TRY_DONE(prepare(&r, err));
    if (r.key_count) PL_TRY_DONE(measure(&r, err));
done:
    deinit(&r);
    c->measured_seconds += now_seconds() - r.begin;
    return status;
}

pl_status pl_calibration_bytes(const pl_calibration *c, const pl_graph *g, uint64_t *bytes, pl_error *err)
{
    pl_status status;
    replay r = {.c = (pl_calibration *)c, .g = g}; /* only asked here */
    *bytes = 0;
    PL_TRY_DONE(prepare(&r, err));
    if (r.key_count) {
        PL_TRY_DONE(lay_out(&r, err));
        *bytes = r.unseen ? r.layout.bytes : 0;
    }
done:
    deinit(&r);
    return status;
}

pl_status pl_calibration_count_missing(const pl_calibration *c, const pl_graph *g, size_t *count, pl_error *err)
{
    replay r = {.c = (pl_calibration *)c, .g = g};
    pl_status status = prepare(&r, err);
    *count = r.key_count;
    deinit(&r);
    return status;
}
