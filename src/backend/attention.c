/* Attention over all heads with a team. Tasks are handed out one at a time by an atomic counter, which lies in the
 * workspace: a task's result depends on its place alone, so it does not matter who takes it. Forward: a task is a block
 * of queries of one head, the longest (latest under a causal mask) first; without a mask, where heads are many, a whole
 * head, whose keys and values so come from far but once. Backward: a task is a head; when the team has
 * at least twice as many threads as there are heads, it is a stretch of a head's queries (for dq) or keys (for dk, dv):
 * 7 products instead of 5, in many more tasks, and the same sums. The few queries of a generation step have a way of
 * their own.
 *
 *   workspace:  [ counter, 64 bytes ][ worker 0 ][ worker 1 ] …  each as the kernel asks, a multiple of 64 bytes
 *
 * Workers are the threads below min(threads, tasks); the others of the team find nothing to do. */
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/gemm.h"
#include "kernels/gemm_ahead.h"
#include "kernels/kernels.h"

enum { COUNTER_BYTES = 64 };

typedef _Atomic int64_t counter;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t workers_of(int64_t tasks, pl_team team)
{
    int64_t workers = smaller(tasks, team.threads);
    return workers > 1 ? workers : 1;
}

static uint64_t workspace_bytes(uint64_t each, int64_t tasks, pl_team team)
{
    return COUNTER_BYTES + each * (uint64_t)workers_of(tasks, team);
}

typedef struct work {
    void (*run)(const void *call, pl_team team, int64_t task, void *workspace);
    const void *call;
    pl_team team;
    int64_t tasks, workers;
    uint64_t each;
    void *workspace;
} work;

static void work_part(const void *context, int part, int parts)
{
    const work *w = context;
    (void)parts;
    if (part >= w->workers) return;
    counter *next = w->workspace;
    char *mine = (char *)w->workspace + COUNTER_BYTES + w->each * (uint64_t)part;
    for (int64_t t; (t = atomic_fetch_add_explicit(next, 1, memory_order_relaxed)) < w->tasks;)
        w->run(w->call, w->team, t, mine);
}

/* Runs run(call, task, worker's workspace) for every task in [0, tasks). A task is worth a thread. */
static void hand_out(void (*run)(const void *call, pl_team team, int64_t task, void *workspace), const void *call,
                     int64_t tasks, uint64_t each, void *workspace, pl_team team)
{
    work w = {run, call, team, tasks, workers_of(tasks, team), each, workspace};
    atomic_init((counter *)workspace, 0);
    pl_parallel(team, w.workers > 1 ? PL_SERIAL_BELOW_ELEMS : 0, work_part, &w);
}

/* As for the products of gemm.c. */
static int in_pairs(pl_real type, pl_team team) { return pl_gemm_kernels_of(team.isa, type, type)->step > 1; }

static int is_ring(const pl_attention_call *c) { return c->position && c->window; }

/* Forward: no bits depend on how a head is cut. */
static pl_attention_products products_of(const pl_attention_call *c, pl_team team)
{
    const pl_gemm_kernels *gemm = pl_gemm_kernels_by_rows(team.isa, c->type, c->type);
    if (c->key_type != c->type || c->key_encoding || is_ring(c)) return PL_ATTENTION_SINGLES;
    if (gemm->multiple > 1 && !c->window && !(c->cap > 0)) return PL_ATTENTION_TILES;
    return gemm->step > 1 ? PL_ATTENTION_PAIRS : PL_ATTENTION_SINGLES;
}

static int64_t key_heads_of(const pl_attention_call *c) { return c->key_heads ? c->key_heads : c->heads; }

/* Where sequence b's keys of head h begin in a row. */
static int64_t inside_keys(const pl_attention_call *c, int64_t h)
{
    return h * key_heads_of(c) / c->heads * c->head_width;
}

/* ---- the head that this worker will probably have next: its rows come from afar one by one. Forward the kernel asks
 * for them between its tiles. ---- */

enum { FETCH_AHEAD_BYTES = 1 << 20 }; /* of q, k and v; what is smaller is near */

typedef struct matrix {
    const void *at;
    pl_attention_strides stride;
} matrix;

static void fetch_head(const matrix *m, int count, pl_real type, int64_t heads, int64_t width, int64_t tokens,
                       int64_t pair)
{
    int64_t bytes = pl_real_bytes(type), b = pair / heads, h = pair % heads;
    for (int i = 0; i < count; i++)
        pl_gemm_ahead_tile(pl_real_at(type, m[i].at, b * m[i].stride.batch + h * width), m[i].stride.token * bytes,
                           tokens, width * bytes);
}

static int is_large(int64_t pairs, int64_t tokens, int64_t width, pl_real type)
{
    return 3 * pairs * tokens * width * pl_real_bytes(type) >= FETCH_AHEAD_BYTES;
}

enum { TASKS_PER_THREAD = 4, SHORT_BLOCK = 96 }; /* the last task is waited for */

static int64_t blocks_of(const pl_attention_call *c, int64_t block) { return (c->tq + block - 1) / block; }

/* Queries of a block: the kernel's, but long ones are halved where there would be few tasks. */
static int64_t block_of(const pl_attention_call *c, pl_team team)
{
    int64_t block = pl_kernels_get(team.isa)->attention_block_queries(products_of(c, team));
    while (block > SHORT_BLOCK && c->batch * c->heads * blocks_of(c, block) < TASKS_PER_THREAD * team.threads)
        block /= 2;
    return block;
}

static pl_attention_ahead rows_ahead(const pl_attention_call *c, const void *at, int64_t ld, int64_t begin, int64_t end)
{
    int64_t bytes = pl_real_bytes(c->type);
    return (pl_attention_ahead){pl_real_at(c->type, at, begin * ld), ld * bytes, end - begin, c->head_width * bytes};
}

/* While queries [begin, end) are under way: their rows of o, and of the next head the keys and values [first, end), and
 * the queries at the same places. */
static void fetch_ahead(const pl_attention_call *c, pl_attention_head *head, int64_t next, int64_t first, int64_t begin,
                        int64_t end)
{
    int64_t pairs = c->batch * c->heads, b = next / c->heads, inside = next % c->heads * c->head_width;
    int64_t keys = inside_keys(c, next % c->heads);
    if (c->tq != c->tk || c->position || c->key_type != c->type || !is_large(pairs, c->tk, c->head_width, c->type))
        return;
    head->ahead[0] = rows_ahead(c, head->o, c->so.token, begin, end);
    if (next >= pairs) return;
    head->ahead[1] = rows_ahead(c, pl_real_at(c->type, c->k, b * c->sk.batch + keys), c->sk.token, first, end);
    head->ahead[2] = rows_ahead(c, pl_real_at(c->type, c->v, b * c->sv.batch + keys), c->sv.token, first, end);
    head->ahead[3] = rows_ahead(c, pl_real_at(c->type, c->q, b * c->sq.batch + inside), c->sq.token, begin, end);
}

static int64_t tasks_of(const pl_attention_call *c, pl_team team)
{
    int64_t pairs = c->batch * c->heads;
    return !c->causal && pairs >= TASKS_PER_THREAD * team.threads ? pairs : pairs * blocks_of(c, block_of(c, team));
}

/* Of head `pair` of the call. */
static pl_attention_dropout dropout_of(const pl_attention_drops *d, int64_t heads, int64_t tq, int64_t tk, int64_t pair)
{
    const int64_t row_blocks = (tk + 3) / 4;
    if (d->probability == 0) return (pl_attention_dropout){0};
    return (pl_attention_dropout){.philox = pl_philox_init(d->seed, d->stream),
                                  .step = (uint32_t)*d->step,
                                  .sample =
                                      (uint64_t)(*d->first_sample * (d->sequences ? d->sequences : 1) + pair / heads),
                                  .block = (uint32_t)(pair % heads * tq * row_blocks),
                                  .row_blocks = (uint32_t)row_blocks,
                                  .probability = d->probability};
}

/* Of one worker. */
static uint64_t forward_bytes(const pl_attention_call *c, pl_team team)
{
    return pl_kernels_get(team.isa)->attention_workspace_bytes(c->head_width, products_of(c, team));
}

static const void *key_at(const pl_attention_call *c, const void *x, int64_t numbers)
{
    return pl_attention_key_at(c->key_type, c->key_encoding, x, numbers);
}

/* What the kernel is to know of heads h … h + group − 1 of sequence b, which read the same keys. */
static pl_attention_head head_of(const pl_attention_call *c, pl_team team, int64_t b, int64_t h, int64_t group)
{
    const int64_t inside = h * c->head_width, keys = inside_keys(c, h);
    const int64_t position = c->position ? pl_position_of(c->position, c->positions, b) : c->tk - c->tq;
    const int64_t known = position + c->tq, from = c->sequence ? *c->sequence : b;
    return (pl_attention_head){.tq = c->tq,
                               .tk = !c->position ? c->tk
                                     : is_ring(c) ? known
                                                  : smaller(known, c->tk),
                               .offset = position,
                               .head_width = c->head_width,
                               .causal = c->causal,
                               .window = c->window,
                               .scale = c->scale,
                               .cap = c->cap,
                               .type = c->type,
                               .key_type = c->key_type,
                               .key_encoding = c->key_encoding,
                               .ring = is_ring(c) ? c->tk : 0,
                               .products = products_of(c, team),
                               .group = group,
                               .q = pl_real_at(c->type, c->q, b * c->sq.batch + inside),
                               .k = key_at(c, c->k, from * c->sk.batch + keys),
                               .v = key_at(c, c->v, from * c->sv.batch + keys),
                               .ldq = c->sq.token,
                               .ldk = c->sk.token,
                               .ldv = c->sv.token,
                               .ldo = c->so.token,
                               .o = pl_real_at(c->type, c->o, b * c->so.batch + inside),
                               .lse = c->lse ? c->lse + (b * c->heads + h) * c->tq : NULL,
                               .dropout = dropout_of(&c->drops, c->heads, c->tq, c->tk, b * c->heads + h)};
}

static void run_task(const void *call, pl_team team, int64_t task, void *workspace)
{
    const pl_attention_call *c = call;
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    int64_t pairs = c->batch * c->heads, block = block_of(c, team), blocks = blocks_of(c, block);
    int64_t count = tasks_of(c, team) == pairs ? blocks : 1; /* of blocks */
    int64_t part = blocks - count - task / pairs, begin = part * block, end = begin + count * block;
    pl_attention_head head = head_of(c, team, task % pairs / c->heads, task % c->heads, 1);
    if (end > c->tq) end = c->tq;
    for (int64_t next = task % pairs + team.threads; begin < end; begin += block) {
        int64_t last = begin + block < end ? begin + block : end;
        fetch_ahead(c, &head, next, count > 1 ? begin : 0, begin, last);
        kernels->attention(&head, begin, last, workspace);
    }
}

/* ---- few queries: a task is a key head with all heads that read it ---- */

enum { FEW_QUERIES = 4 };

static int is_few(const pl_attention_call *c)
{
    return c->tq <= FEW_QUERIES && c->type == PL_REAL_F32 && c->drops.probability == 0;
}

/* Where key heads are fewer than heads, they may be fewer than threads, too: a long cache is cut into pieces, in the
 * same way for every team. Each piece leaves its own o and log-sum-exp in the workspace, after the workers, and o is
 * their mean, weighted by exp(log-sum-exp). */
enum { PIECE_KEYS = 256, PIECES_MAX = 64 };

/* Keys that the queries see together, at most. Pieces are cut by them, so a ring is cut as a whole cache is. */
static int64_t span_of(const pl_attention_call *c) { return c->window ? smaller(c->window + c->tq - 1, c->tk) : c->tk; }

static int64_t piece_keys_of(const pl_attention_call *c)
{
    const int64_t least = (span_of(c) + PIECES_MAX - 1) / PIECES_MAX;
    return (least + PIECE_KEYS - 1) / PIECE_KEYS * PIECE_KEYS;
}

/* A window may begin and end within a piece. */
static int64_t pieces_of(const pl_attention_call *c)
{
    const int64_t span = span_of(c), keys = piece_keys_of(c);
    if (span <= PIECE_KEYS || key_heads_of(c) == c->heads) return 1;
    return c->window ? (span + keys - 2) / keys + 1 : (span + keys - 1) / keys;
}

static int64_t few_tasks_of(const pl_attention_call *c) { return c->batch * key_heads_of(c) * pieces_of(c); }

/* Numbers of o, and of log-sum-exps, that a piece leaves: [tq, group·head_width] and [group, tq]. */
static int64_t piece_rows_of(const pl_attention_call *c) { return c->heads / key_heads_of(c) * c->tq; }

static uint64_t pieces_bytes(const pl_attention_call *c)
{
    const uint64_t rows = (uint64_t)(few_tasks_of(c) * piece_rows_of(c));
    return pieces_of(c) > 1 ? (rows * (uint64_t)(c->head_width + 1) * sizeof(float) + 63) / 64 * 64 : 0;
}

uint64_t pl_attention_workspace_bytes(const pl_attention_call *c, pl_team team)
{
    const uint64_t each = forward_bytes(c, team);
    if (!is_few(c)) return workspace_bytes(each, tasks_of(c, team), team);
    return workspace_bytes(each, few_tasks_of(c), team) + pieces_bytes(c);
}

typedef struct few {
    work tasks;
    const pl_attention_call *call;
    float *o, *lse; /* of the pieces */
} few;

/* The first key that a query sees. */
static int64_t first_seen(const pl_attention_head *h)
{
    const int64_t first = h->offset + 1 - h->window;
    return h->window && first > 0 ? first : 0;
}

static void run_few_task(const void *context, pl_team team, int64_t task, void *workspace)
{
    const few *f = context;
    const pl_attention_call *c = f->call;
    const int64_t pieces = pieces_of(c), keys = piece_keys_of(c);
    const int64_t key_heads = key_heads_of(c), group = c->heads / key_heads, pair = task / pieces;
    pl_attention_head head = head_of(c, team, pair / key_heads, pair % key_heads * group, group);
    const int64_t first = (first_seen(&head) / keys + task % pieces) * keys;
    if (pieces > 1) {
        head.turn = first;
        if (!head.ring) head.k = key_at(c, head.k, first * head.ldk), head.v = key_at(c, head.v, first * head.ldv);
        head.tk = head.tk < first ? 0 : smaller(head.tk - first, keys), head.offset -= first;
        head.o = f->o + task * piece_rows_of(c) * c->head_width, head.ldo = group * c->head_width;
        head.lse = f->lse + task * piece_rows_of(c);
    }
    pl_kernels_get(team.isa)->attention_few(&head, 0, c->tq, workspace);
}

/* Row `row` of head `pair` of all: o, whose pieces lie `piece` numbers apart, and its log-sum-exp. */
static void merge_row(const few *f, int64_t pair, int64_t row)
{
    const pl_attention_call *c = f->call;
    const int64_t group = c->heads / key_heads_of(c), rows = piece_rows_of(c), pieces = pieces_of(c);
    const int64_t b = pair / c->heads, h = pair % c->heads, width = c->head_width;
    const float *lse = f->lse + pair / group * pieces * rows + pair % group * c->tq + row;
    const float *part = f->o + pair / group * pieces * rows * width + (row * group + pair % group) * width;
    float *o = (float *)c->o + b * c->so.batch + row * c->so.token + h * width, top = -INFINITY, sum = 0;
    for (int64_t p = 0; p < pieces; p++) top = fmaxf(top, lse[p * rows]);
    for (int64_t p = 0; p < pieces; p++) sum += top > -INFINITY ? expf(lse[p * rows] - top) : 0;
    for (int64_t d = 0; d < width; d++) o[d] = 0;
    for (int64_t p = 0; p < pieces && sum != 0; p++) {
        const float weight = expf(lse[p * rows] - top) / sum;
        for (int64_t d = 0; d < width && weight != 0; d++) o[d] += weight * part[p * rows * width + d];
    }
    if (c->lse) c->lse[pair * c->tq + row] = sum != 0 ? top + logf(sum) : -INFINITY;
}

static void few_part(const void *context, int part, int parts)
{
    const few *f = context;
    work_part(&f->tasks, part, parts);
    if (pieces_of(f->call) == 1) return;
    pl_barrier();
    const pl_range rows = pl_range_of_part(f->call->batch * f->call->heads * f->call->tq, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) merge_row(f, r / f->call->tq, r % f->call->tq);
}

static void exec_few(const pl_attention_call *c, void *workspace, pl_team team)
{
    const int64_t tasks = few_tasks_of(c), workers = workers_of(tasks, team);
    const uint64_t each = forward_bytes(c, team);
    few f = {{run_few_task, &f, team, tasks, workers, each, workspace}, c, NULL, NULL};
    f.o = (float *)((char *)workspace + workspace_bytes(each, tasks, team));
    f.lse = f.o + tasks * piece_rows_of(c) * c->head_width;
    atomic_init((counter *)workspace, 0);
    pl_parallel(team, workers > 1 ? PL_SERIAL_BELOW_ELEMS : 0, few_part, &f);
}

void pl_attention_exec(const pl_attention_call *c, void *workspace, pl_team team)
{
    if (is_few(c))
        exec_few(c, workspace, team);
    else
        hand_out(run_task, c, tasks_of(c, team), forward_bytes(c, team), workspace, team);
}

/* How a head is cut: into `queries` stretches for dq and `keys` for dk, dv; or not at all when both are 0. */
typedef struct cut {
    int64_t queries, keys, per_head;
} cut;

static cut cut_of(const pl_attention_bwd_call *c, pl_team team)
{
    if (team.threads < 2 * c->batch * c->heads) return (cut){.per_head = 1};
    cut s = {.queries = (c->tq + PL_ATTENTION_PART_QUERIES - 1) / PL_ATTENTION_PART_QUERIES,
             .keys = (c->tk + PL_ATTENTION_PART_KEYS - 1) / PL_ATTENTION_PART_KEYS};
    s.per_head = s.queries + s.keys;
    return s;
}

static pl_attention_part part_of(const pl_attention_bwd_call *c, cut s, int64_t index)
{
    pl_attention_part part = {0, c->tq, 0, c->tk, 1, 1};
    if (s.per_head > 1 && index < s.queries) {
        part.want_dkv = 0;
        part.query_begin = index * PL_ATTENTION_PART_QUERIES;
        part.query_end = smaller(part.query_begin + PL_ATTENTION_PART_QUERIES, c->tq);
    } else if (s.per_head > 1) {
        part.want_dq = 0;
        part.key_begin = (index - s.queries) * PL_ATTENTION_PART_KEYS;
        part.key_end = smaller(part.key_begin + PL_ATTENTION_PART_KEYS, c->tk);
    }
    return part;
}

/* Of one worker. */
static uint64_t bwd_bytes(const pl_attention_bwd_call *c, pl_team team)
{
    int64_t keys = cut_of(c, team).per_head > 1 ? smaller(PL_ATTENTION_PART_KEYS, c->tk) : c->tk;
    return pl_kernels_get(team.isa)->attention_bwd_workspace_bytes(c->head_width, c->type, keys);
}

uint64_t pl_attention_bwd_workspace_bytes(const pl_attention_bwd_call *c, pl_team team)
{
    uint64_t each = bwd_bytes(c, team);
    return workspace_bytes(each, c->batch * c->heads * cut_of(c, team).per_head, team);
}

static void run_bwd_task(const void *call, pl_team team, int64_t task, void *workspace)
{
    const pl_attention_bwd_call *c = call;
    cut s = cut_of(c, team);
    pl_attention_part part = part_of(c, s, task % s.per_head);
    int64_t pair = task / s.per_head, b = pair / c->heads, h = pair % c->heads, inside = h * c->head_width;
    pl_attention_bwd_head head = {.tq = c->tq,
                                  .tk = c->tk,
                                  .head_width = c->head_width,
                                  .causal = c->causal,
                                  .scale = c->scale,
                                  .type = c->type,
                                  .pairs = in_pairs(c->type, team),
                                  .q = pl_real_at(c->type, c->q, b * c->sq.batch + inside),
                                  .k = pl_real_at(c->type, c->k, b * c->sk.batch + inside),
                                  .v = pl_real_at(c->type, c->v, b * c->sv.batch + inside),
                                  .o = pl_real_at(c->type, c->o, b * c->so.batch + inside),
                                  .d_o = pl_real_at(c->type, c->d_o, b * c->sdo.batch + inside),
                                  .lse = c->lse + pair * c->tq,
                                  .ldq = c->sq.token,
                                  .ldk = c->sk.token,
                                  .ldv = c->sv.token,
                                  .ldo = c->so.token,
                                  .lddo = c->sdo.token,
                                  .dq = pl_real_at(c->type, c->dq, b * c->sdq.batch + inside),
                                  .dk = pl_real_at(c->type, c->dk, b * c->sdk.batch + inside),
                                  .dv = pl_real_at(c->type, c->dv, b * c->sdv.batch + inside),
                                  .lddq = c->sdq.token,
                                  .lddk = c->sdk.token,
                                  .lddv = c->sdv.token,
                                  .dropout = dropout_of(&c->drops, c->heads, c->tq, c->tk, pair)};
    int64_t pairs = c->batch * c->heads, next = pair + team.threads;
    if (s.per_head == 1 && next < pairs && is_large(pairs, c->tk, c->head_width, c->type)) {
        const matrix of_queries[] = {{c->q, c->sq}, {c->o, c->so}, {c->d_o, c->sdo}};
        const matrix of_keys[] = {{c->k, c->sk}, {c->v, c->sv}};
        fetch_head(of_queries, 3, c->type, c->heads, c->head_width, c->tq, next);
        fetch_head(of_keys, 2, c->type, c->heads, c->head_width, c->tk, next);
    }
    pl_kernels_get(team.isa)->attention_bwd(&head, &part, workspace);
}

void pl_attention_bwd_exec(const pl_attention_bwd_call *c, void *workspace, pl_team team)
{
    uint64_t each = bwd_bytes(c, team);
    hand_out(run_bwd_task, c, c->batch * c->heads * cut_of(c, team).per_head, each, workspace, team);
}
