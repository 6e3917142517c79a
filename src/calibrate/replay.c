/* Measuring by replay. The graph's programs are run in their order on scratch memory, a few trips of each region
 * instead of all, and each node is timed where it stands: its weights were last touched a whole trip ago, what it reads
 * from its predecessor is still warm, and the team has just left another parallel region. A kernel timed alone in a
 * loop is up to twice as fast as in a step, which is why that is not done here.
 *
 * Samples of different keys are interleaved (one pass after the other), so a disturbance of a second spoils a few
 * samples of each key and not all of one. What the kernel says it took away from us (involuntary context switches) is
 * left out, with the nodes right after it, because a team waits for its last thread. The figures will be added up, and
 * a sum has the mean of its terms: of the rest counts the mean, slow samples included, for a run meets them as well (a
 * twentieth of a step, where the middle half says nothing of them). One sample counts no more than TAIL_TIMES the
 * median: what is slower was no matter of the kernel. Of FEW samples most may have met something: there it counts no
 * more than FEW_TAIL the lower median, and a key whose figure is far above its own quickest run, or above what other
 * sizes say of it, is run some more times; what is far off on a busy machine all the same is noted as none, and the
 * next look measures it again. The sites of a key (layers) have different usual times, so the figure of a key is the
 * mean of its sites' figures.
 *
 * Layers repeat: a key is sampled at SITES_MAX places of the graph at most, and in a deep model the others are left
 * out; of long kernels at fewer, so that a trip through the sites of one takes some SITES_SECONDS. What is run once in
 * a while (evaluation, first values, an update for which memory must be filled anew) gets one site, and a pass in four;
 * when the time that is meant for a graph is over, what has run often enough is left out. What a node would find cold
 * in the run is taken out of the caches before it (warmth.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrate/scratch.h"
#include "calibrate/table.h"
#include "calibrate/warmth.h"
#include "ir/op.h"
#include "ir/properties.h"

enum {
    SAMPLES_MAX = 64,
    SITES_MAX = 8,
    TRIPS_FIRST = 2,
    TRIPS_MAX = 16,
    RUNS_MIN = 3, /* of a key, however long it takes: one alone may have met anything */
    RARE_EVERY = 4,
    OFTEN_PASSES = 2,
    REFILL_EVERY = 8,
    KEYS_OF_A_GRAPH = 16,
    TAIL_TIMES = 4,
    FEW = 16,
    AGAIN_MAX = 2 /* so often a key is run RUNS_MIN times more */
};
enum { DISTURBED_NODES = 3, ENOUGH_SAMPLES = 4 * SAMPLES_MAX };
#define SEGMENT_SECONDS       0.03 /* repeat a region until about this long */
#define SITES_SECONDS         0.03 /* of a key and what is run for its sake, by their work */
#define FEW_TAIL              1.5
#define DISAGREE_TIMES        2.0  /* the quickest run: then its runs disagree */
#define FAR_TIMES             4.0  /* what follows from other sizes */
#define SLOW_TIMES            16.0 /* its work (pl_node_work), which is expected where there are no other sizes */
#define DISTURBED_SHARE       0.05 /* of the runs: from so many on the machine is looked at */
#define SLOW_FLOPS_PER_SECOND 5e9  /* of a thread: less than any kernel but the reference does */

typedef struct site {
    double seconds[SAMPLES_MAX]; /* the newest; older ones are overwritten */
    uint64_t count;              /* undisturbed, after the first execution */
    double least;                /* of all, disturbed or not: used when there is nothing better */
    double all_seconds;          /* of all after the first execution, */
    uint64_t all_count;          /* disturbed or not: what a step would meet */
    bool seen;
} site;

typedef struct sampled {
    char *key;
    double work;
    double trip; /* work of a trip through its sites */
    site *sites; /* SITES_MAX of them */
    uint32_t site_count;
    uint32_t runs; /* of all sites; counted up to RUNS_MIN */
    uint64_t all_runs;
    uint32_t again; /* how often it was asked for once more */
    bool wanted;    /* a site has room */
} sampled;

typedef struct replay {
    pl_calibration *c;
    const pl_graph *g;
    bool *run;        /* [nodes] */
    uint32_t *key_of; /* [nodes] index of sampled, or PL_NONE */
    uint8_t *site_of; /* [nodes] which of its sites */
    sampled *keys;
    size_t key_count, key_capacity;
    bool again;          /* only keys that lack runs are run, and what stands before them */
    size_t unseen, rare; /* sites that never ran; keys that ran less than RUNS_MIN times */
    uint32_t *trips;     /* [nodes] of the segment that begins here */
    bool *frequent;      /* [regions] a program with a backward pass or an update */
    uint64_t *offset;    /* [values] */
    pl_layout layout;
    pl_scratch scratch;
    pl_warmth warmth;
    pl_area_kind shared_holds; /* what the numbers in the shared area are: activations or moments */
    uint64_t pass, turn;
    long switches; /* involuntary, of all threads, when the last node ended */
    int disturbed; /* so many nodes to come are not trusted */
    uint64_t runs, disturbed_runs;
    pl_load load;
    double begin;
} replay;

static double now_seconds(void) { return pl_seconds_of(CLOCK_MONOTONIC); }

static void deinit(replay *r)
{
    for (size_t i = 0; i < r->key_count; i++) {
        pl_free(r->keys[i].key);
        pl_free(r->keys[i].sites);
    }
    pl_free(r->keys);
    pl_free(r->run);
    pl_free(r->key_of);
    pl_free(r->site_of);
    pl_free(r->trips);
    pl_free(r->frequent);
    pl_free(r->offset);
    pl_layout_deinit(&r->layout);
    pl_scratch_deinit(&r->scratch);
    pl_warmth_deinit(&r->warmth);
}

/* ---- which nodes ---- */

static pl_status refuse(const replay *r, pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM, "no memory to measure the kernels of a graph of %zu nodes", r->g->node_count);
}

/* One execution could take longer than all measuring may: attention over a million tokens in a few megabytes. */
static bool is_endless(const replay *r, const pl_node *n)
{
    const pl_calibration_options *o = &r->c->options;
    double flops = pl_op_rule_of(n->op)->cost(r->g, n).flops;
    return flops / (SLOW_FLOPS_PER_SECOND * o->team.threads) > o->total_seconds_max;
}

/* The node before leaves the caches as they will be, so it is run as well. */
static bool runs_before(const replay *r, size_t node)
{
    return node > 0 && !r->g->node[node - 1].dead && !pl_op_is_outside(r->g->node[node - 1].op) &&
           !is_endless(r, &r->g->node[node - 1]);
}

static bool has_enough_sites(const replay *r, const sampled *k, size_t node)
{
    const pl_id program = pl_region_program(r->g, r->g->node[node].region);
    const uint32_t most = r->c->options.near_distance > 0 || !r->frequent[program] ? 1 : SITES_MAX;
    return k->site_count >= most || (k->site_count && k->trip >= SITES_SECONDS);
}

static pl_status add_site(replay *r, size_t node, const char *key, pl_error *err)
{
    size_t k = 0;
    while (k < r->key_count && strcmp(r->keys[k].key, key) != 0) k++;
    if (k == r->key_count) {
        if (pl_grow(&r->keys, &r->key_capacity, k, sizeof *r->keys)) return refuse(r, err);
        memset(&r->keys[k], 0, sizeof r->keys[k]);
        r->key_count++;
        r->keys[k].key = pl_strdup(key);
        r->keys[k].work = pl_node_work(r->g, &r->g->node[node]);
        r->keys[k].sites = pl_alloc(SITES_MAX, sizeof *r->keys[k].sites);
        if (!r->keys[k].key || !r->keys[k].sites) return refuse(r, err);
    }
    if (has_enough_sites(r, &r->keys[k], node)) return PL_OK;
    r->keys[k].trip += r->keys[k].work;
    if (runs_before(r, node) && !r->run[node - 1]) r->keys[k].trip += pl_node_work(r->g, &r->g->node[node - 1]);
    r->site_of[node] = (uint8_t)r->keys[k].site_count++;
    r->key_of[node] = (uint32_t)k;
    r->run[node] = true;
    return PL_OK;
}

static bool is_near(const replay *r, const pl_node *n)
{
    const double near = r->c->options.near_distance;
    return near > 0 && pl_calibration_distance(r->c, r->g, n) <= near;
}

/* Nodes whose key is missing, and the node before each, which leaves the caches as they will be. */
static pl_status choose_nodes(replay *r, pl_error *err)
{
    const pl_graph *g = r->g;
    char memory[PL_CALIBRATION_KEY_BYTES];
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        r->key_of[i] = PL_NONE;
        if (n->dead || pl_op_is_outside(n->op) || is_endless(r, n)) continue;
        pl_str key = pl_str_fixed(memory, sizeof memory);
        pl_calibration_key(g, n, &r->c->options, &key);
        if (key.failed || pl_calibration_is_known(r->c, pl_calibration_touch(r->c, memory)) || is_near(r, n)) continue;
        PL_TRY(add_site(r, i, memory, err));
    }
    for (size_t i = 1; i < g->node_count; i++)
        if (r->key_of[i] != PL_NONE) r->run[i - 1] |= runs_before(r, i);
    return PL_OK;
}

static pl_status prepare(replay *r, pl_error *err)
{
    const pl_graph *g = r->g;
    r->run = pl_alloc(g->node_count + 1, sizeof *r->run);
    r->key_of = pl_alloc(g->node_count + 1, sizeof *r->key_of);
    r->site_of = pl_alloc(g->node_count + 1, sizeof *r->site_of);
    r->trips = pl_alloc(g->node_count + 1, sizeof *r->trips);
    r->frequent = pl_alloc(g->region_count + 1, sizeof *r->frequent);
    r->offset = pl_alloc(g->value_count + 1, sizeof *r->offset);
    if (!r->run || !r->key_of || !r->site_of || !r->trips || !r->frequent || !r->offset) return refuse(r, err);
    for (size_t i = 0; i < g->node_count; i++) {
        r->trips[i] = TRIPS_FIRST;
        if (g->node[i].phase != PL_PHASE_FORWARD) r->frequent[pl_region_program(g, g->node[i].region)] = true;
    }
    return choose_nodes(r, err);
}

static bool has_room_for_all(const replay *r)
{
    for (size_t i = 0; i < r->g->node_count; i++)
        if (r->key_of[i] != PL_NONE && !r->run[i]) return false;
    return true;
}

/* Where there is no room nothing can be measured; the others are to be waited for. */
static void count_unseen(replay *r)
{
    for (size_t i = 0; i < r->g->node_count; i++) {
        if (!r->run[i]) r->key_of[i] = PL_NONE;
        if (r->key_of[i] == PL_NONE) continue;
        sampled *k = &r->keys[r->key_of[i]];
        r->unseen++;
        r->rare += !k->wanted;
        k->wanted = true;
    }
}

static pl_status lay_out(replay *r, pl_error *err)
{
    const pl_calibration_options *o = &r->c->options;
    bool *wanted = pl_alloc(r->g->node_count + 1, sizeof *wanted);
    if (!wanted) return refuse(r, err);
    memcpy(wanted, r->run, r->g->node_count * sizeof *wanted);
    pl_status status = pl_layout_init(&r->layout, r->g, r->run, o->team, o->bytes_max, err);
    for (uint64_t bytes = o->bytes_max; status == PL_OK && bytes < o->bytes_more && !has_room_for_all(r);) {
        bytes = bytes < o->bytes_more / 2 ? 2 * bytes : o->bytes_more;
        pl_layout_deinit(&r->layout);
        memcpy(r->run, wanted, r->g->node_count * sizeof *wanted);
        status = pl_layout_init(&r->layout, r->g, r->run, o->team, bytes, err);
    }
    pl_free(wanted);
    if (status == PL_OK) count_unseen(r);
    return status;
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

static bool touches(const replay *r, const pl_node *n, pl_area_kind kind)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && r->layout.kind[pl_value_root(r->g, n->in[k])] == kind) return true;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE && r->layout.kind[pl_value_root(r->g, n->out[k])] == kind) return true;
    return false;
}

/* Where moments and activations share memory, its numbers are made anew for whoever comes. */
static void fill_shared(replay *r, const pl_node *n)
{
    pl_area_kind wanted = r->shared_holds;
    if (touches(r, n, PL_AREA_ACTIVATION)) wanted = PL_AREA_ACTIVATION;
    if (touches(r, n, PL_AREA_MOMENT)) wanted = PL_AREA_MOMENT;
    if (!r->layout.moments_shared || wanted == r->shared_holds) return;
    pl_scratch_fill(&r->scratch, &r->layout, wanted);
    r->shared_holds = wanted;
}

/* Was the team whole from the end of the node before to the end of this one, and some nodes before? */
static bool was_undisturbed(replay *r)
{
    long switches = pl_load_switches();
    if (switches != r->switches)
        r->disturbed = DISTURBED_NODES;
    else if (r->disturbed > 0)
        r->disturbed--;
    r->switches = switches;
    return r->disturbed == 0;
}

/* ---- caches ---- */

/* The bytes of its root that a value is, and where in the run: a tile moves on with the trips, here it stays. */
typedef struct stretch {
    pl_id root;
    uint64_t begin, end, moved_bytes;
} stretch;

static stretch stretch_of(const replay *r, pl_id value)
{
    const pl_value *v = &r->g->value[value];
    stretch s = {.root = pl_value_root(r->g, value)};
    uint64_t whole = pl_value_bytes(r->g, s.root), bytes = pl_value_bytes(r->g, value);
    s.end = whole;
    if (!pl_value_is_contiguous(v) || bytes == 0) return s;
    s.begin = (uint64_t)pl_value_root_offset(r->g, value) * pl_dtype_bytes(v->dtype);
    s.end = s.begin + bytes;
    if (v->tile && whole / bytes) s.moved_bytes = r->turn % (whole / bytes) * bytes;
    return s;
}

typedef void stretch_user(replay *r, const stretch *s);

static void each_stretch(replay *r, const pl_node *n, stretch_user *use)
{
    for (int k = 0; k < PL_NODE_IN_MAX + PL_NODE_OUT_MAX; k++) {
        pl_id value = k < PL_NODE_IN_MAX ? n->in[k] : n->out[k - PL_NODE_IN_MAX];
        if (value == PL_NONE) continue;
        stretch s = stretch_of(r, value);
        use(r, &s);
    }
}

typedef struct chilled {
    const replay *r;
    uint64_t moved_bytes;
} chilled;

static void evict(void *context, pl_id root, uint64_t begin, uint64_t end)
{
    const chilled *c = context;
    pl_scratch_evict(c->r->scratch.base + c->r->offset[root] + begin - c->moved_bytes, end - begin);
}

static void chill(replay *r, const stretch *s)
{
    chilled c = {r, s->moved_bytes};
    pl_warmth_find_cold(&r->warmth, s->root, s->begin + s->moved_bytes, s->end + s->moved_bytes, evict, &c);
}

static void touch(replay *r, const stretch *s)
{
    pl_warmth_touch(&r->warmth, s->root, s->begin + s->moved_bytes, s->end + s->moved_bytes);
}

static void pass_by(replay *r, const stretch *s) { pl_warmth_pass(&r->warmth, s->end - s->begin); }

static void sample(replay *r, size_t node, double seconds)
{
    bool undisturbed = was_undisturbed(r);
    r->runs++;
    r->disturbed_runs += !undisturbed;
    if (r->key_of[node] == PL_NONE) return;
    sampled *k = &r->keys[r->key_of[node]];
    site *s = &k->sites[r->site_of[node]];
    k->all_runs++;
    if (k->runs < RUNS_MIN && ++k->runs == RUNS_MIN) r->rare--;
    if (s->seen && undisturbed) s->seconds[s->count++ % SAMPLES_MAX] = seconds;
    if (s->seen) s->all_seconds += seconds, s->all_count++;
    if (!s->seen || seconds < s->least) s->least = seconds;
    r->unseen -= !s->seen;
    s->seen = true;
}

static pl_status run_node(replay *r, size_t node, pl_error *err)
{
    const pl_node *n = &r->g->node[node];
    locate(r, n->in, PL_NODE_IN_MAX);
    locate(r, n->out, PL_NODE_OUT_MAX);
    locate(r, &n->predicate, 1);
    fill_shared(r, n);
    pl_call call;
    pl_addresses addresses = {.offset = r->offset};
    for (int k = 0; k < PL_SPACES_MAX; k++) addresses.base[k] = r->scratch.base;
    void *workspace =
        r->layout.workspace_bytes[node] ? r->scratch.base + r->layout.area[PL_AREA_WORKSPACE].begin : NULL;
    PL_TRY(pl_backend_bind(r->g, n, &addresses, workspace, &call, err));
    call.predicate = NULL; /* measured as if it ran */
    /* made-up gradients overflow, and the count rises */
    if (pl_op_rule_of(n->op)->optimizer) call.u.adamw.skipped_steps = NULL;
    if (r->key_of[node] != PL_NONE) each_stretch(r, n, chill);
    double begin = now_seconds();
    pl_backend_exec(&call, r->c->options.team);
    double seconds = now_seconds() - begin;
    each_stretch(r, n, touch);
    sample(r, node, seconds);
    return PL_OK;
}

static bool is_exhausted(const replay *r, double seconds)
{
    return r->c->measured_seconds + seconds > r->c->options.total_seconds_max;
}

/* Few keys need little time: the whole of it is meant for a graph of which nothing is known. */
static bool is_late(const replay *r, double seconds)
{
    double share = r->key_count < KEYS_OF_A_GRAPH ? (double)r->key_count / KEYS_OF_A_GRAPH : 1;
    return seconds > share * r->c->options.seconds_max;
}

static bool is_over(const replay *r)
{
    double seconds = now_seconds() - r->begin;
    return is_exhausted(r, seconds) || (r->unseen == 0 && r->rare == 0 && is_late(r, seconds));
}

static bool takes_rare(const replay *r) { return r->again || r->pass < OFTEN_PASSES || r->pass % RARE_EVERY == 0; }

static bool is_asked_for(const replay *r, size_t node)
{
    return node < r->g->node_count && r->key_of[node] != PL_NONE && r->keys[r->key_of[node]].runs < RUNS_MIN;
}

/* Where moments share memory it is filled for them, which takes longer than all else of a pass. */
static bool is_due(const replay *r, size_t node)
{
    if (r->again && !is_asked_for(r, node) && !is_asked_for(r, node + 1)) return false;
    bool rare = r->layout.moments_shared && touches(r, &r->g->node[node], PL_AREA_MOMENT);
    return r->run[node] && (!rare || takes_rare(r));
}

static pl_status run_trip(replay *r, size_t begin, size_t end, pl_error *err)
{
    for (size_t i = begin; i < end && !is_over(r); i++)
        if (is_due(r, i))
            PL_TRY(run_node(r, i, err));
        else if (!r->g->node[i].dead)
            each_stretch(r, &r->g->node[i], pass_by);
    r->turn++;
    return PL_OK;
}

static uint64_t trips_of_region(const pl_graph *g, pl_id region)
{
    uint64_t trips = 1;
    for (; region != PL_NONE; region = g->region[region].parent)
        trips *= g->region[region].trip ? g->region[region].trip : 1;
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
        for (end = begin; end < g->node_count && g->node[end].region == region; end++) {
        }
        bool due = takes_rare(r) || r->frequent[pl_region_program(g, region)];
        if (due) PL_TRY(run_segment(r, begin, end, err));
    }
    if (++r->pass % REFILL_EVERY == 0)
        for (int k = 0; k < PL_AREA_COUNT; k++)
            if (k != PL_AREA_WORKSPACE && (k != PL_AREA_MOMENT || !r->layout.moments_shared))
                pl_scratch_fill(&r->scratch, &r->layout, (pl_area_kind)k);
    r->shared_holds = r->pass % REFILL_EVERY == 0 ? PL_AREA_ACTIVATION : r->shared_holds;
    return PL_OK;
}

static uint64_t count_samples(const sampled *k)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < k->site_count; i++) count += k->sites[i].count;
    return count;
}

static bool all_sampled(const replay *r)
{
    for (size_t i = 0; i < r->g->node_count; i++)
        if (r->key_of[i] != PL_NONE && count_samples(&r->keys[r->key_of[i]]) < ENOUGH_SAMPLES) return false;
    return true;
}

static void report(const replay *r)
{
    size_t done = 0;
    for (size_t k = 0; k < r->key_count; k++) done += count_samples(&r->keys[k]) > 0;
    const pl_calibration_options *o = &r->c->options;
    if (o->progress) o->progress(o->progress_context, done, r->key_count, now_seconds() - r->begin);
}

/* ---- results ---- */

/* Mean, without what is no matter of the kernel, and half the distance of the quartiles. */
static void summarise_site(site *s, double *seconds, double *spread)
{
    size_t n = s->count < SAMPLES_MAX ? (size_t)s->count : SAMPLES_MAX;
    *seconds = s->least;
    *spread = 0;
    if (n == 0) return;
    qsort(s->seconds, n, sizeof *s->seconds, pl_seconds_compare);
    double sum = 0, most = n < FEW ? FEW_TAIL * s->seconds[(n - 1) / 2] : TAIL_TIMES * s->seconds[n / 2];
    for (size_t i = 0; i < n; i++) sum += fmin(s->seconds[i], most);
    *seconds = sum / (double)n;
    *spread = (s->seconds[n - n / 4 - 1] - s->seconds[n / 4]) / 2;
}

static uint32_t summarise(sampled *k, double *seconds, double *spread)
{
    uint32_t seen = 0;
    double sum = 0, sum_spread = 0, one, one_spread;
    for (uint32_t i = 0; i < k->site_count; i++) {
        if (!k->sites[i].seen) continue;
        summarise_site(&k->sites[i], &one, &one_spread);
        sum += one;
        sum_spread += one_spread;
        seen++;
    }
    *seconds = seen ? sum / seen : 0;
    *spread = seen ? sum_spread / seen : 0;
    return seen;
}

/* The mean over its sites of the quickest run. */
static double quickest(const sampled *k)
{
    double sum = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < k->site_count; i++)
        if (k->sites[i].seen) sum += k->sites[i].least, seen++;
    return seen ? sum / seen : 0;
}

/* How often what follows from other sizes, or where there are none from its work, lies in the seconds. */
static double times_expected(const replay *r, const sampled *k, double seconds)
{
    const double expected = pl_calibration_estimate_key(r->c, k->key, k->work);
    return seconds / (expected > 0 ? expected : SLOW_TIMES * k->work);
}

static bool is_doubtful(const replay *r, sampled *k)
{
    double seconds, spread;
    const uint64_t samples = count_samples(k);
    if (samples >= FEW || summarise(k, &seconds, &spread) == 0) return false;
    return samples == 0 || seconds > DISAGREE_TIMES * quickest(k) || times_expected(r, k, seconds) > FAR_TIMES;
}

/* Are there keys that are to be run some more times? */
static bool ask_again(replay *r)
{
    r->again = false;
    for (size_t i = 0; i < r->key_count; i++) {
        sampled *k = &r->keys[i];
        if (k->runs < RUNS_MIN || k->again == AGAIN_MAX || !is_doubtful(r, k)) continue;
        k->again++;
        k->runs = 0;
        r->rare++;
        r->again = true;
    }
    return r->again;
}

/* Most of its runs were disturbed: whatever it was that took so long, it was not the kernel. */
static bool is_absurd(const replay *r, const sampled *k, double seconds)
{
    return 2 * count_samples(k) < k->all_runs && times_expected(r, k, seconds) > FAR_TIMES;
}

/* How many times as long the runs took as what their figures say: both over all runs of all keys. What was disturbed is
 * in no figure, but a run that goes on under the same load meets it. */
static double slowed_by_runs(const replay *r)
{
    double all = 0, figures = 0, seconds, spread;
    for (size_t i = 0; i < r->key_count; i++)
        for (uint32_t k = 0; k < r->keys[i].site_count; k++) {
            site *s = &r->keys[i].sites[k];
            summarise_site(s, &seconds, &spread);
            all += s->all_seconds;
            figures += seconds * (double)s->all_count;
        }
    return figures > 0 && all > figures ? all / figures : 1;
}

/* This thread waits for the others, and whether it sleeps then is not ours to say: its own time tells of others alone
 * where the kernel took the processor away, too. */
static double find_busy(const replay *r)
{
    double busy = fmax(slowed_by_runs(r), pl_load_stolen(&r->load));
    if ((double)r->disturbed_runs > DISTURBED_SHARE * (double)r->runs) busy = fmax(busy, pl_load_slowed(&r->load));
    return busy;
}

static pl_status keep_results(replay *r, pl_error *err)
{
    const double busy = find_busy(r);
    for (size_t i = 0; i < r->key_count; i++) {
        double seconds, spread;
        uint64_t samples = count_samples(&r->keys[i]);
        if (summarise(&r->keys[i], &seconds, &spread) == 0) continue;
        samples = is_absurd(r, &r->keys[i], seconds) ? 0 : samples ? samples : 1;
        const pl_calibration_entry figures = {.seconds = seconds,
                                              .spread = spread,
                                              .work = r->keys[i].work,
                                              .busy = busy,
                                              .samples = samples,
                                              .brief = r->c->options.brief,
                                              .fresh = true};
        PL_TRY(pl_calibration_put(r->c, r->keys[i].key, &figures, err));
        (void)pl_calibration_touch(r->c, r->keys[i].key);
        r->c->changed = r->c->has_measured = true;
    }
    return PL_OK;
}

static pl_status run_passes(replay *r, pl_error *err)
{
    while (!is_over(r) && !all_sampled(r)) {
        r->again |= r->pass > 0 && is_late(r, now_seconds() - r->begin);
        PL_TRY(run_pass(r, err));
        report(r);
    }
    return PL_OK;
}

static pl_status measure(replay *r, pl_error *err)
{
    PL_TRY(lay_out(r, err));
    if (r->unseen == 0) return PL_OK;
    PL_TRY(pl_scratch_init(&r->scratch, &r->layout, r->c->options.huge_pages, err));
    PL_TRY(pl_warmth_init(&r->warmth, &r->layout, r->c->machine.cache_bytes, err));
    r->shared_holds = PL_AREA_ACTIVATION;
    if (r->layout.moments_shared) pl_scratch_fill(&r->scratch, &r->layout, PL_AREA_ACTIVATION);
    pl_load_begin(&r->load);
    do {
        PL_TRY(run_passes(r, err));
    } while (!is_exhausted(r, now_seconds() - r->begin) && ask_again(r));
    return keep_results(r, err);
}

pl_status pl_calibration_measure(pl_calibration *c, const pl_graph *g, pl_error *err)
{
    pl_status status;
    replay r = {.c = c, .g = g, .begin = now_seconds()};
    if (is_exhausted(&r, 0)) return PL_OK;
    PL_TRY_DONE(prepare(&r, err));
    if (r.key_count) PL_TRY_DONE(measure(&r, err));
done:
    deinit(&r);
    c->measured_seconds += now_seconds() - r.begin;
    return status;
}

pl_status pl_calibration_bytes(pl_calibration *c, const pl_graph *g, uint64_t *bytes, pl_error *err)
{
    pl_status status;
    replay r = {.c = c, .g = g};
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

pl_status pl_calibration_count_missing(pl_calibration *c, const pl_graph *g, size_t *count, pl_error *err)
{
    replay r = {.c = c, .g = g};
    pl_status status = prepare(&r, err);
    *count = r.key_count;
    deinit(&r);
    return status;
}
