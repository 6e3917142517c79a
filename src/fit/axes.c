/* The functions of the axes (axes.def), and the list of choices that they make. A spread_… takes a choice to the values
 * of its axis, the established one first; it sees what the axes above it chose. A say_… is a phrase that differs where
 * the choices do, a brief_… a word or two.
 *
 * The list must not depend on the budget (fit.h says why), nor on a clock. */
#include "fit/fit.h"

#include <string.h>

#include "base/units.h"
#include "fit/recompute.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

enum {
    ROWS_ENOUGH = 512,  /* beyond which a product gains nothing (bench_gemm) */
    ROWS_FORWARD = 256, /* and without gradients as few do as well */
    MICRO_BATCHES_MAX = 16,
    LARGER_MAX = 2,    /* and so many larger micro-batches, where there are */
    VALUES_MAX = 32,   /* of an axis */
    POINTS_MAX = 8192, /* of the list; what makes more is refused, and the sentence names a key to decide */
    CHUNK_ROWS_MIN = 16,
    NODES_MAX = 20000, /* of a graph that is looked at in more ways than micro-batches: planning takes seconds */
};

/* What a step's activations may be stored in, and by whose leave. */
static const struct {
    pl_dtype dtype;
    uint32_t leave;
    const char *brief, *words;
} precisions[] = {
    {PL_DTYPE_F32, 0, "f32", "f32"},
    {PL_DTYPE_BF16, PL_FIT_ALLOW_BF16, "bf16", "bf16: activations and their gradients with 16 bits"},
    {PL_DTYPE_F16, PL_FIT_ALLOW_FP16, "fp16", "fp16: activations and their gradients with 16 bits, the loss scaled"}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* The graph in one precision, for the passes that come behind to be asked whether they are possible there. */
typedef struct axis_form {
    pl_graph *graph; /* NULL: nothing is to be chosen in it */
    bool layer_major, chunks;
    int64_t convolution[VALUES_MAX]; /* numbers a sample of outputs that may be made again, falling, each once */
    size_t convolutions;
} axis_form;

typedef struct axis_view {
    const pl_fit_options *options;
    axis_form form[PRECISIONS];
    pl_id train;
    int64_t rows;                          /* of a sample */
    bool trains, repeats;                  /* has it a program of training; or else one that runs again and again */
    bool small;                            /* is planning it quick */
    bool mixes;                            /* that program must see the whole batch at once */
    const pl_recompute_frontier *frontier; /* whose decisions are to be listed; NULL: what follows from rules */
} axis_view;

typedef struct axis {
    const char *name;
    size_t (*spread)(const axis_view *, const pl_choice *from, pl_choice to[VALUES_MAX]);
    void (*say)(const pl_fit_result *, const pl_choice *, pl_str *);   /* a phrase; differs where the choices do */
    void (*brief)(const pl_fit_result *, const pl_choice *, pl_str *); /* a word or two */
    bool always;  /* said in brief, too, where it is as established */
    bool trained; /* of what is trained alone */
} axis;

static int64_t most_established(const axis_view *v)
{
    int64_t most = v->rows < ROWS_ENOUGH ? ROWS_ENOUGH / v->rows : 1;
    return most < v->options->batch ? most : v->options->batch;
}

/* Divisors of the batch: from the size at which larger ones gain nothing down to 1; then a few that are larger. */
static size_t spread_micro_batch(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    const pl_fit_options *o = v->options;
    size_t count = 0, larger = 0;
    to[0] = *from;
    if (v->mixes && !from->micro_batch) to[0].micro_batch = o->batch;
    if (to[0].micro_batch) return 1;
    int64_t most = most_established(v);
    for (int64_t m = most; m >= 1; m--) {
        if (o->batch % m || (m > 1 && count == MICRO_BATCHES_MAX - 1)) continue;
        to[count] = *from;
        to[count++].micro_batch = m;
    }
    const int64_t largest = v->repeats ? o->batch : 4 * most;
    const size_t larger_max = v->repeats ? MICRO_BATCHES_MAX : v->trains ? LARGER_MAX : 0;
    for (int64_t m = most + 1; v->small && m <= o->batch && m <= largest && larger < larger_max; m++) {
        if (o->batch % m) continue;
        to[count] = *from;
        to[count++].micro_batch = m;
        larger++;
    }
    return count;
}

static void say_micro_batch(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    int64_t times = (r->batch + c->micro_batch - 1) / c->micro_batch;
    pl_str_printf(out, "%lld %s at once, %lld time%s a step", (long long)c->micro_batch,
                  c->micro_batch == 1 ? r->words->sample : r->words->samples, (long long)times,
                  pl_plural((uint64_t)times));
}

static void brief_micro_batch(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_printf(out, "%lld", (long long)c->micro_batch);
}

static size_t precision_index(const pl_choice *c)
{
    size_t k = 0;
    while (k + 1 < PRECISIONS && precisions[k].dtype != c->precision) k++;
    return k;
}

static const axis_form *form_of(const axis_view *v, const pl_choice *c) { return &v->form[precision_index(c)]; }

static bool may_update_early(const axis_view *v, const pl_choice *c)
{
    const char *why;
    uint64_t trips = (uint64_t)((v->options->batch + c->micro_batch - 1) / c->micro_batch);
    return pl_rewrite_update_early_possible(form_of(v, c)->graph, v->train, trips, &why);
}

/* Can what is decided already be done in the choice's precision? */
static bool can_do(const axis_view *v, const pl_choice *c)
{
    const axis_form *f = form_of(v, c);
    return f->graph && !(c->layer_major && !f->layer_major) && !(c->feed_forward_rows && !f->chunks) &&
           !(c->convolution_limit && !f->convolutions) &&
           !(c->update_early && !c->layer_major && !may_update_early(v, c));
}

/* Of a frontier: the graph that its decisions are made for. */
static const pl_choice *frontier_form(const axis_view *v) { return pl_recompute_frontier_given(v->frontier); }

/* Of a frontier the precision whose nodes its decisions name. */
static size_t spread_precision(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 1;
    to[0] = *from;
    if (v->frontier) to[0].precision = frontier_form(v)->precision;
    if (v->frontier || !v->trains || !v->small) return 1;
    for (size_t k = 0; k < PRECISIONS; k++) {
        to[count] = *from;
        to[count].precision = precisions[k].dtype;
        count += (precisions[k].leave & pl_fit_leave(v->options, PL_CHOICE_PRECISION)) && can_do(v, &to[count]);
    }
    return count;
}

static void say_precision(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, precisions[precision_index(c)].words);
}

static void brief_precision(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, precisions[precision_index(c)].brief);
}

/* It changes numbers: only by leave of the user. */
static size_t spread_moments(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 1;
    uint32_t leave = v->trains ? pl_fit_leave(v->options, PL_CHOICE_MOMENTS) : 0;
    to[0] = to[1] = to[2] = *from;
    if (leave & PL_FIT_ALLOW_OPTIMIZER_BF16) to[count++].moments = PL_DTYPE_BF16;
    if (leave & PL_FIT_ALLOW_OPTIMIZER_8BIT) to[count++].moments = PL_DTYPE_U8;
    return count;
}

static void brief_moments(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, pl_choice_say(c, PL_CHOICE_MOMENTS));
}

static void say_moments(const pl_fit_result *r, const pl_choice *c, pl_str *out) { brief_moments(r, c, out); }

/* It changes the last bits: only by leave of the user. */
static size_t spread_shared_sums(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    to[0] = to[1] = *from;
    if (v->frontier) {
        to[0].shared_sums = frontier_form(v)->shared_sums;
        return 1;
    }
    const bool allowed = pl_fit_leave(v->options, PL_CHOICE_SHARED_SUMS) & PL_FIT_ALLOW_SHARED_SUMS;
    if (!allowed || !v->trains || !v->small) return 1;
    to[1].shared_sums = true;
    return pl_rewrite_share_sums_possible(form_of(v, from)->graph, v->train) ? 2 : 1;
}

static void say_shared_sums(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, c->shared_sums ? "one for a weight, however many nodes read it"
                                      : "one for each node that reads a weight");
}

static void brief_shared_sums(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, c->shared_sums ? "shared" : "apart");
}

/* Likewise. */
static size_t spread_frozen(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 1;
    const uint32_t leave = v->trains ? pl_fit_leave(v->options, PL_CHOICE_FROZEN) : 0;
    to[0] = to[1] = to[2] = *from;
    if (v->frontier) to[0].frozen = frontier_form(v)->frozen;
    if (v->frontier || !v->small) return 1;
    if (leave & PL_FIT_ALLOW_FROZEN_BF16) to[count++].frozen = PL_DTYPE_BF16;
    if (leave & PL_FIT_ALLOW_FROZEN_FP16) to[count++].frozen = PL_DTYPE_F16;
    return count;
}

static void brief_frozen(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, pl_choice_say(c, PL_CHOICE_FROZEN));
}

static void say_frozen(const pl_fit_result *r, const pl_choice *c, pl_str *out) { brief_frozen(r, c, out); }

/* Where no input is kept the forward nodes of a deep model are there once for each group. */
static bool is_small_tiled(const axis_view *v, const pl_choice *from, int64_t blocks, int64_t keep)
{
    const pl_graph *g = form_of(v, from)->graph;
    pl_layer_major tiled = {.blocks = blocks, .keep_every = keep};
    return g->node_count + pl_rewrite_layer_major_nodes(g, v->train, &tiled) <= NODES_MAX;
}

/* It updates each weight early, so a key that forbids that forbids this, too. */
static bool may_choose_blocks(const pl_fit_options *o)
{
    bool early = o->given.update_early || pl_fit_is_open(o, PL_CHOICE_UPDATE);
    return early && pl_fit_is_open(o, PL_CHOICE_LAYER_MAJOR);
}

/* Groups of a few blocks; the input of each kept, of some, or of none: less memory, more of the forward pass again. A
 * number that was given stands, and the other one is looked for beside it. */
static size_t spread_layer_major(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    static const struct {
        int64_t blocks, keep;
    } values[] = {{1, 1}, {1, 2}, {1, 3}, {1, 0}, {2, 1}, {2, 0}, {3, 1}, {3, 0}};
    const bool choose_blocks = may_choose_blocks(v->options),
               choose_keep = pl_fit_is_open(v->options, PL_CHOICE_LAYER_MAJOR_KEEP);
    size_t count = 1;
    to[0] = *from;
    if (v->frontier) {
        to[0].layer_major = frontier_form(v)->layer_major;
        to[0].layer_major_keep = frontier_form(v)->layer_major_keep;
        return 1;
    }
    bool open = choose_blocks || (from->layer_major && choose_keep);
    if (!open || !v->trains || !v->small) return 1;
    if (!form_of(v, from)->layer_major) return 1;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int64_t blocks = choose_blocks ? values[i].blocks : from->layer_major;
        int64_t keep = choose_keep ? values[i].keep : from->layer_major_keep;
        bool again = choose_keep ? !choose_blocks && values[i].blocks > 1 : values[i].keep != 1;
        if (again || (blocks == from->layer_major && keep == from->layer_major_keep)) continue;
        if (!is_small_tiled(v, from, blocks, keep)) continue;
        to[count] = *from;
        to[count].layer_major = blocks;
        to[count++].layer_major_keep = keep;
    }
    return count;
}

static void say_layer_major(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    if (c->layer_major == 0) {
        pl_str_append(out, "micro-batch by micro-batch, all blocks");
        return;
    }
    pl_str_printf(out, "%lld block%s at a time, over the whole batch; ", (long long)c->layer_major,
                  pl_plural((uint64_t)c->layer_major));
    if (c->layer_major_keep == 0)
        pl_str_append(out, "no input kept");
    else if (c->layer_major_keep == 1)
        pl_str_append(out, "the input of each kept");
    else
        pl_str_printf(out, "the input of one in %lld kept", (long long)c->layer_major_keep);
}

static void brief_layer_major(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    if (c->layer_major)
        pl_str_printf(out, "%lld, keep %lld", (long long)c->layer_major, (long long)c->layer_major_keep);
    else
        pl_str_append(out, "no");
}

/* Chunks of a quarter of the micro-batch's rows. */
static size_t spread_chunks(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    int64_t rows = from->micro_batch * v->rows / 4;
    to[0] = to[1] = *from;
    if (!pl_fit_is_open(v->options, PL_CHOICE_CHUNKS) || !v->trains || !v->small) return 1;
    to[1].feed_forward_rows = rows;
    if (!v->frontier) return rows >= CHUNK_ROWS_MIN && form_of(v, from)->chunks ? 2 : 1;
    if (!frontier_form(v)->feed_forward_rows) return 1;
    to[0] = to[1];
    return rows >= CHUNK_ROWS_MIN ? 1 : 0;
}

static void brief_chunks(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    if (c->feed_forward_rows)
        pl_str_printf(out, "%lld rows", (long long)c->feed_forward_rows);
    else
        pl_str_append(out, "whole");
}

static void say_chunks(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    brief_chunks(r, c, out);
    if (c->feed_forward_rows) pl_str_append(out, " at once; its inner values are made again in the backward pass");
}

/* The largest outputs, then those of the next size too, and so on to all. */
static size_t spread_convolutions(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 1;
    to[0] = *from;
    if (!pl_fit_is_open(v->options, PL_CHOICE_CONVOLUTIONS) || !v->trains || !v->small) return 1;
    if (v->frontier) {
        to[0].convolution_limit = frontier_form(v)->convolution_limit;
        return 1;
    }
    const axis_form *f = form_of(v, from);
    for (size_t i = 0; i < f->convolutions && count < VALUES_MAX; i++) {
        to[count] = *from;
        to[count++].convolution_limit = i + 1 < f->convolutions ? f->convolution[i + 1] : 1;
    }
    return count;
}

static void brief_convolutions(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    if (c->convolution_limit)
        pl_str_printf(out, "over %lld numbers again", (long long)c->convolution_limit);
    else
        pl_str_append(out, "whole");
}

static void say_convolutions(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    if (c->convolution_limit == 0)
        pl_str_append(out, "outputs whole");
    else
        pl_str_printf(out,
                      "outputs of more than %lld numbers a sample some samples at a time, and again in the backward "
                      "pass",
                      (long long)c->convolution_limit);
}

/* Of a frontier all but its first point, which costs nothing. */
static size_t spread_frontier(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 0;
    for (size_t i = 1; i < pl_recompute_frontier_count(v->frontier) && count < VALUES_MAX; i++) {
        to[count] = *from;
        to[count].recompute = PL_RECOMPUTE_LISTED;
        to[count++].decision = pl_recompute_frontier_point(v->frontier, i)->decision;
    }
    return count;
}

static size_t spread_recompute(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 0;
    if (v->frontier) return spread_frontier(v, from, to);
    to[count++] = *from;
    if (!pl_fit_is_open(v->options, PL_CHOICE_RECOMPUTE) || !v->trains || !v->small) return 1;
    to[count] = *from;
    to[count++].recompute = PL_RECOMPUTE_NOTHING;
    return count;
}

static void say_recompute(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    switch (c->recompute) {
    case PL_RECOMPUTE_NOTHING:
        pl_str_append(out, "nothing: what the backward pass reads is kept");
        break;
    case PL_RECOMPUTE_CHEAP:
        pl_str_append(out, "norms, activations and dropout are made again in the backward pass");
        break;
    case PL_RECOMPUTE_FULL:
        pl_str_append(out, "of each block only its output is kept, the rest is made again");
        break;
    case PL_RECOMPUTE_LISTED:
        pl_str_printf(out, "node by node: %zu node%s again in the backward pass", c->decision->count,
                      c->decision->count == 1 ? " runs" : "s run");
        break;
    }
}

static void brief_recompute(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    static const char *const words[] = {[PL_RECOMPUTE_NOTHING] = "nothing",
                                        [PL_RECOMPUTE_CHEAP] = "norms and activations",
                                        [PL_RECOMPUTE_FULL] = "blocks"};
    (void)r;
    if (c->recompute == PL_RECOMPUTE_LISTED)
        pl_str_printf(out, "%zu node%s", c->decision->count, pl_plural(c->decision->count));
    else
        pl_str_append(out, words[c->recompute]);
}

static size_t spread_update(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    to[0] = to[1] = *from;
    if (!pl_fit_is_open(v->options, PL_CHOICE_UPDATE) || !v->trains || !v->small || from->layer_major) return 1;
    to[1].update_early = true;
    return may_update_early(v, from) ? 2 : 1;
}

static void say_update(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, c->update_early || c->layer_major ? "each weight as soon as its gradient is whole"
                                                         : "after the backward pass");
}

static void brief_update(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    (void)r;
    pl_str_append(out, c->update_early || c->layer_major ? "early" : "at the end");
}

/* Each thread has a stack and workspaces. With fewer a step takes longer, so it is the last resort: only beside the
 * smallest micro-batch. */
static size_t spread_threads(const axis_view *v, const pl_choice *from, pl_choice to[VALUES_MAX])
{
    size_t count = 1;
    to[0] = *from;
    bool smallest = v->options->given.micro_batch || from->micro_batch == 1;
    if (from->threads || !(v->trains || v->repeats) || !v->small || !smallest) return 1;
    for (int n = v->options->plan.team.threads / 2; n >= 1 && count < VALUES_MAX; n /= 2) {
        to[count] = *from;
        to[count++].threads = n;
    }
    return count;
}

static void brief_threads(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    pl_str_printf(out, "%d", c->threads ? c->threads : r->threads);
}

static void say_threads(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    brief_threads(r, c, out);
    if (c->threads && c->threads != r->threads) pl_str_printf(out, " of %d", r->threads);
}

static const axis axes[] = {
#define PL_AXIS_ROW(name, title, always, trained) {title, spread_##name, say_##name, brief_##name, always, trained},
#include "fit/axes.def"
};
enum { AXES = sizeof axes / sizeof *axes };

size_t pl_fit_axis_count(void) { return AXES; }
const char *pl_fit_axis_name(size_t k) { return axes[k].name; }
bool pl_fit_axis_applies(size_t k, const pl_fit_result *r) { return r->trained || !axes[k].trained; }

void pl_fit_axis_say(size_t k, const pl_fit_result *r, const pl_choice *c, pl_str *out) { axes[k].say(r, c, out); }
void pl_fit_axis_short(size_t k, const pl_fit_result *r, const pl_choice *c, pl_str *out) { axes[k].brief(r, c, out); }

bool pl_fit_axis_same(size_t k, const pl_fit_result *r, const pl_choice *a, const pl_choice *b)
{
    char words[2][PL_FIT_WORDS_BYTES];
    const pl_choice *const of[] = {a, b};
    for (int i = 0; i < 2; i++) {
        pl_str text = pl_str_fixed(words[i], sizeof words[i]);
        axes[k].say(r, of[i], &text);
    }
    return strcmp(words[0], words[1]) == 0;
}

void pl_fit_choice_say(const pl_fit_result *r, const pl_choice *c, pl_str *out)
{
    size_t begin = out->bytes;
    for (size_t k = 0; k < AXES; k++) {
        if (!axes[k].always && pl_fit_axis_same(k, r, c, &r->point[0].choice)) continue;
        pl_str_printf(out, "%s%s ", out->bytes > begin ? ", " : "", axes[k].name);
        axes[k].brief(r, c, out);
    }
}

/* The micro-batches in the order in which they come. */
static void rank(pl_fit_point *point, size_t count)
{
    for (size_t i = 1; i < count; i++)
        point[i].rank = point[i - 1].rank + (point[i].choice.micro_batch != point[i - 1].choice.micro_batch);
}

static pl_status spread(const axis *a, const axis_view *v, pl_fit_point **point, size_t *count, pl_error *err)
{
    pl_choice to[VALUES_MAX];
    size_t made = 0;
    pl_fit_point *next = pl_alloc(*count * VALUES_MAX + 1, sizeof *next);
    if (!next) return pl_fail(err, PL_E_NOMEM, "no memory for %zu choices", *count);
    for (size_t i = 0; i < *count; i++) {
        size_t n = a->spread(v, &(*point)[i].choice, to);
        for (size_t k = 0; k < n && made <= POINTS_MAX; k++)
            next[made++] = (pl_fit_point){.choice = to[k], .seconds = -1, .low = -1, .high = -1};
    }
    pl_free(*point);
    *point = next;
    *count = made;
    if (made <= POINTS_MAX) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "the search has more than %d choices; decide one of them, such as train.micro_batch", POINTS_MAX);
}

/* Behind what is there. */
static pl_status append(pl_fit_result *r, const pl_fit_point *point, size_t count, pl_error *err)
{
    pl_fit_point *all = pl_realloc(r->point, r->count + count + 1, sizeof *all);
    if (!all) return pl_fail(err, PL_E_NOMEM, "no memory for %zu choices", count);
    if (count) memcpy(all + r->count, point, count * sizeof *all);
    r->point = all;
    r->count += count;
    return PL_OK;
}

/* Asked by doing it: a layer that was taken apart is one node. */
static pl_status find_chunks(axis_form *f, pl_id train, pl_error *err)
{
    pl_graph *g = pl_graph_copy(f->graph);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph");
    pl_status status = pl_rewrite_chunk_feed_forward(g, train, CHUNK_ROWS_MIN, err);
    for (size_t i = 0; i < g->node_count; i++) f->chunks |= g->node[i].op == PL_OP_FEED_FORWARD;
    pl_graph_destroy(g);
    return status;
}

/* In the order of their sizes, each size once. */
static void note_convolution(axis_form *f, int64_t numbers)
{
    size_t at = 0;
    while (at < f->convolutions && f->convolution[at] > numbers) at++;
    if (f->convolutions == VALUES_MAX || (at < f->convolutions && f->convolution[at] == numbers)) return;
    memmove(f->convolution + at + 1, f->convolution + at, (f->convolutions - at) * sizeof *f->convolution);
    f->convolution[at] = numbers;
    f->convolutions++;
}

/* Asked by doing it: those that are left whole where there is no limit, and are not with the least one. Forward nodes
 * stay where they are. */
static pl_status find_convolutions(axis_form *f, pl_id train, pl_error *err)
{
    pl_status status = PL_OK;
    pl_graph *without = pl_graph_copy(f->graph), *with = pl_graph_copy(f->graph);
    if (!without || !with) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph"));
    PL_TRY_DONE(pl_rewrite_chunk_convolutions(without, train, 0, err));
    PL_TRY_DONE(pl_rewrite_chunk_convolutions(with, train, 1, err));
    for (size_t i = 0; i < without->node_count; i++) {
        const pl_node *n = &without->node[i];
        if (n->op != PL_OP_CONV2D_POOL || n->conv2d_pool.y == PL_NONE) continue;
        const pl_id maker = with->value[n->conv2d_pool.pooled].producer;
        const int64_t *dim = without->value[n->conv2d_pool.y].shape.dim;
        if (maker != PL_NONE && with->node[maker].conv2d_pool.y == PL_NONE)
            note_convolution(f, dim[1] * dim[2] * dim[3]);
    }
done:
    pl_graph_destroy(without);
    pl_graph_destroy(with);
    return status;
}

static pl_status make_form(axis_view *v, const pl_graph *graph, size_t k, pl_error *err)
{
    const char *why;
    axis_form *f = &v->form[k];
    bool wanted = precisions[k].dtype == v->options->given.precision ||
                  (precisions[k].leave & pl_fit_leave(v->options, PL_CHOICE_PRECISION));
    if (!v->trains || !v->small || !wanted) return PL_OK;
    f->graph = pl_graph_copy(graph);
    if (!f->graph) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph");
    PL_TRY(pl_rewrite_precision(f->graph, v->train, precisions[k].dtype, err));
    f->layer_major = pl_rewrite_layer_major_possible(f->graph, v->train, &why);
    PL_TRY(find_convolutions(f, v->train, err));
    return find_chunks(f, v->train, err);
}

static axis_view view_of(const pl_graph *graph, const pl_fit_options *o, const pl_recompute_frontier *frontier)
{
    axis_view v = {.options = o, .train = pl_graph_find_trained(graph), .frontier = frontier};
    v.trains = v.train != PL_NONE;
    v.repeats = !v.trains && pl_fit_find_searched(graph, o) != PL_NONE;
    v.mixes = v.trains && pl_graph_find_mixer(graph, v.train) != PL_NONE;
    v.rows = pl_fit_rows(graph);
    v.small = graph->node_count <= NODES_MAX;
    return v;
}

bool pl_fit_plans_recompute(const pl_graph *graph, const pl_fit_options *o)
{
    axis_view v = view_of(graph, o, NULL);
    bool searches = o->budget_bytes != PL_FIT_NO_BUDGET || o->everything;
    return pl_fit_is_open(o, PL_CHOICE_RECOMPUTE) && searches && v.trains && v.small;
}

/* In layer-major order only for groups of more than one block, in chunks, without kept inputs: there the activations of
 * a group are what is left to save. Elsewhere it was measured to bring next to nothing (docs/fit.md). */
bool pl_fit_plans_form(const pl_fit_options *o, const pl_choice *c)
{
    bool searched = c->layer_major && !o->given.layer_major;
    return !searched || (c->layer_major > 1 && c->layer_major_keep == 0 && c->feed_forward_rows);
}

/* Without gradients a few samples are as fast as many. Early updates need gradients that are whole: those of one
 * micro-batch, or of layer-major order. */
int64_t pl_fit_given_micro_batch(const pl_graph *graph, const pl_fit_options *o)
{
    axis_view v = view_of(graph, o, NULL);
    if (o->given.micro_batch) return o->given.micro_batch;
    if (v.trains) return o->given.update_early && !o->given.layer_major ? o->batch : 0;
    if (v.repeats && pl_fit_is_open(o, PL_CHOICE_MICRO_BATCH)) return 0;
    int64_t m = 1;
    while (o->batch % m || (m * v.rows < ROWS_FORWARD && m < o->batch)) m++;
    return m;
}

pl_status pl_fit_list(const pl_graph *graph, const pl_fit_options *o, const pl_recompute_frontier *frontier,
                      pl_fit_result *r, pl_error *err)
{
    axis_view view = view_of(graph, o, frontier);
    pl_status status = PL_OK;
    size_t count = 1;
    pl_fit_point *point = pl_alloc(1, sizeof *point);
    if (!point) return pl_fail(err, PL_E_NOMEM, "no memory for a choice");
    point->choice = o->given;
    for (size_t k = 0; k < PRECISIONS; k++) PL_TRY_DONE(make_form(&view, graph, k, err));
    for (size_t i = 0; i < AXES; i++) PL_TRY_DONE(spread(&axes[i], &view, &point, &count, err));
    rank(point, count);
    if (o->budget_bytes == PL_FIT_NO_BUDGET && !o->everything) count = 1;
    status = append(r, point, count, err);
done:
    for (size_t k = 0; k < PRECISIONS; k++) pl_graph_destroy(view.form[k].graph);
    pl_free(point);
    return status;
}
