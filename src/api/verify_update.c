/* The update, computed apart: AdamW (Loshchilov & Hutter 2019) or Adam-atan2 (Everett et al. 2024) by its definition,
 * in double, from what the plan's own update reads, and compared with what that leaves.
 *
 *   g = scale·gradient;  m' = β1·m + (1 − β1)·g;  v' = β2·v + (1 − β2)·g²
 *   w' = w − lr·decay·w − lr/(1 − β1ᵗ)·m' / (√v'/√(1 − β2ᵗ) + ε)          decay: matrices only, latent ones not
 *   w' = w − lr·decay·w − lr·atan2(m'/(1 − β1ᵗ), √v'/√(1 − β2ᵗ))
 *   of a latent weight w' is then the next number in [−1, 1]
 *   average' = average + (1 − rate)·(w' − average), where averages are kept; only where w' was made
 *   scale = min(1, c/(norm + 1e-6))/S of the norm of all gradients/S; S: the loss scale. Where that norm is not finite,
 *   nothing changes and the step does not count in t.
 *
 * Coefficients are the config's (as f32, which kernels take), lr and the step are the inputs of the program.
 *
 * The bounds are those of the roundings and nothing else: plans compute in f32, in which no number goes through more
 * than ROUNDINGS roundings before it is used or stored. What is then stored in fewer bits is rounded by random bits
 * that follow from seed, name and step (kernels/adamw.h), so there is no second bound: each stored number must be what
 * rounding one within the first makes of it. Copies of weights in 16 bits are rounded to nearest, to the bit.
 *
 * Plans only differ where and when a node runs, so each weight is copied right before its own update: what is held is
 * three times the largest, not a second model. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/verify.h"
#include "base/block8.h"
#include "base/narrow.h"
#include "base/philox.h"
#include "ir/inputs.h"
#include "ir/op.h"

#define ROUNDINGS 8
#define UNIT      (ROUNDINGS * 0x1p-24)  /* of numbers in f32, relative */
#define LAST_UNIT 0x1p-24                /* of the sum that is the new weight */
#define SMALLEST  (ROUNDINGS * 0x1p-149) /* where f32 has no smaller numbers */
enum { BLOCK = PL_BLOCK8_ELEMS };

typedef struct expected {
    double value, bound;
} expected;

typedef struct rates {
    double beta1, beta2, eps, decay, rate, root_scale, scale, limit;
    bool angle; /* atan2(m, root_scale·√v), in which a common factor of both does not count */
} rates;

/* What one node's update reads and writes. */
typedef struct update {
    const char *name; /* of the weight */
    uint64_t count;
    pl_dtype state; /* U8: in 8 bits */
    rates rates;
    pl_philox random;
    uint32_t step;
    const float *gradient, *w;
    const unsigned char *m, *v;
} update;

struct pl_verify_update {
    const pl_config *config;
    const pl_graph *g;
    pl_session *session;
    unsigned *times;          /* [values] how often the weight was updated in this step */
    unsigned char *before[3]; /* w, m, v of the node that runs next */
    int32_t skipped;          /* steps so far */
    double loss_scale;        /* of this step */
    double squares;           /* of the gradients that its updates have read so far */
    double scale;             /* that they were multiplied with */
    bool ran, stood;          /* some update was made, some was not */
    expected block_w[BLOCK], block_m[BLOCK], block_v[BLOCK];
    double share;
    char name[PL_VERIFY_NAME_BYTES];
};

/* ---- verdicts ---- */

/* share: of its bound. Not a number is as wrong as can be. */
static void note(pl_verify_update *u, double share, const char *of, const char *name)
{
    if (share <= u->share) return;
    u->share = isnan(share) ? INFINITY : share;
    snprintf(u->name, sizeof u->name, "%s%.80s", of, name);
}

static void note_distance(pl_verify_update *u, double distance, double bound, const char *of, const char *name)
{
    note(u, distance > 0 ? distance / bound : distance == 0 ? 0 : NAN, of, name);
}

/* ---- the definition ---- */

/* As the product holds it. volatile: of two roundings side by side gcc 12 makes a vector, and then drops them. */
static double in_f32(double x)
{
    const volatile float rounded = (float)x;
    return (double)rounded;
}

static rates rates_of(const pl_verify_update *u, const pl_value *w, double scale)
{
    const pl_config *c = u->config;
    const double beta1 = in_f32(c->train.beta1), beta2 = in_f32(c->train.beta2);
    double lr = *(const float *)pl_session_value(u->session, pl_input_name(PL_INPUT_LR));
    double t = (double)(*(const int64_t *)pl_session_value(u->session, pl_input_name(PL_INPUT_STEP)) - u->skipped);
    bool angle = c->train.optimizer == PL_OPTIMIZER_ADAM_ATAN2;
    double correction1 = 1 - pow(beta1, t), correction2 = 1 - pow(beta2, t);
    return (rates){.beta1 = beta1,
                   .beta2 = beta2,
                   .eps = angle ? 0 : c->train.epsilon,
                   .decay = w->shape.rank >= 2 && !w->latent ? lr * c->train.weight_decay : 0,
                   .rate = angle ? lr : lr / correction1,
                   .root_scale = (angle ? correction1 : 1) / sqrt(correction2),
                   .scale = scale,
                   .limit = w->latent ? 1 : INFINITY,
                   .angle = angle};
}

/* size: |m|; by: √v·root_scale + eps. */
static double direction(const rates *r, double size, double by) { return r->angle ? atan2(size, by) : size / by; }

static void expect(const rates *r, double w, double m, double v, double gradient, expected *new_w, expected *new_m,
                   expected *new_v)
{
    double g = gradient * r->scale, kept = r->beta1 * m, added = (1 - r->beta1) * g;
    double squares = r->beta2 * v + (1 - r->beta2) * g * g;
    *new_m = (expected){kept + added, UNIT * (fabs(kept) + fabs(added)) + (kept != 0 || added != 0 ? SMALLEST : 0)};
    *new_v = (expected){squares, UNIT * squares + (squares > 0 ? SMALLEST : 0)};
    double least = (1 - UNIT) * (sqrt(fmax(squares - new_v->bound, 0)) * r->root_scale + r->eps);
    double most = (1 + UNIT) * (sqrt(squares + new_v->bound) * r->root_scale + r->eps);
    double size = fabs(new_m->value), step = r->rate * direction(r, size, sqrt(squares) * r->root_scale + r->eps);
    double longest = r->rate * direction(r, size + new_m->bound, least);
    double shortest = r->rate * direction(r, fmax(size - new_m->bound, 0), most);
    const double free_w = w - r->decay * w - copysign(step, new_m->value);
    new_w->value = fabs(free_w) > r->limit ? copysign(r->limit, free_w) : free_w;
    new_w->bound = LAST_UNIT * fabs(free_w) + fmax(longest - step, step - shortest) + UNIT * longest +
                   UNIT * fabs(r->decay * w) + SMALLEST;
}

/* ---- what is stored ---- */

static float scale_of(const unsigned char *codes)
{
    float scale;
    memcpy(&scale, codes + BLOCK, sizeof scale);
    return scale;
}

static double moment(pl_dtype dtype, const unsigned char *data, uint64_t block, int i)
{
    if (dtype == PL_DTYPE_F32) return ((const float *)(const void *)data)[block * BLOCK + (uint64_t)i];
    if (dtype == PL_DTYPE_BF16)
        return (double)pl_f32_of_bf16(((const uint16_t *)(const void *)data)[block * BLOCK + (uint64_t)i]);
    const unsigned char *codes = data + block * PL_BLOCK8_BYTES;
    double size = pl_block8_value(codes[i] & 0x7f, PL_BLOCK8_SIGNED_BITS) * (double)scale_of(codes);
    return codes[i] & 0x80 ? -size : size;
}

/* Of v 8 bits keep the root. */
static double second_moment(pl_dtype dtype, const unsigned char *data, uint64_t block, int i)
{
    if (dtype != PL_DTYPE_U8) return moment(dtype, data, block, i);
    const unsigned char *codes = data + block * PL_BLOCK8_BYTES;
    return pow(pl_block8_value(codes[i], PL_BLOCK8_UNSIGNED_BITS) * (double)scale_of(codes), 2);
}

static uint32_t random_of(const update *a, uint64_t element)
{
    uint32_t word[4];
    pl_philox_block(&a->random, a->step, element / 8 >> 32, (uint32_t)(element / 8), word);
    return word[element / 2 % 4] >> element % 2 * 16 & 0xffff;
}

/* A number that these random bits round to `stored` is at least `low` and below `high` in size. */
static void check_bf16(pl_verify_update *u, const update *a, const char *of, uint64_t element, expected e,
                       uint16_t stored)
{
    uint32_t random = random_of(a, element), size = (uint32_t)(stored & 0x7fff) << 16;
    double low = (double)pl_f32_of_bits(size > random ? size - random : 0);
    double high = (double)pl_f32_of_bits(size + 0xffff - random), x = stored & 0x8000 ? -e.value : e.value;
    if (size == 0x7f800000) high = INFINITY;
    note_distance(u, fmax(fmax(low - x, x - high), 0), e.bound, of, a->name);
}

/* The codes that a number within its bound may have. */
static void check_code(pl_verify_update *u, const update *a, const char *of, uint32_t random, expected e,
                       unsigned char stored, float scale, int bits)
{
    bool is_signed = bits == PL_BLOCK8_SIGNED_BITS;
    unsigned code = is_signed ? stored & 0x7f : stored;
    double size = fabs(e.value), least = fmax(size - e.bound, 0) / (double)scale,
           most = (size + e.bound) / (double)scale;
    unsigned first = pl_block8_round(pl_block8_place(least * (1 - UNIT), bits) * (1 - UNIT), bits, random);
    unsigned last = pl_block8_round(pl_block8_place(most * (1 + UNIT), bits) * (1 + UNIT), bits, random);
    if (!is_signed && least > 0 && first == 0) first = 1; /* what a step divides by stays above 0 */
    if (!is_signed && most > 0 && last == 0) last = 1;
    bool turned = is_signed && size > e.bound && ((stored & 0x80) != 0) != (e.value < 0);
    note(u, turned ? INFINITY : code < first ? 1.0 + first - code : code > last ? 1.0 + code - last : 0, of, a->name);
}

/* A block's scale makes its largest number the largest code. */
static void check_codes(pl_verify_update *u, const update *a, const char *of, uint64_t block, int count,
                        const expected *e, const unsigned char *codes, int bits)
{
    float scale = scale_of(codes);
    double least = 0, most = 0, largest = (double)scale * pl_block8_top(bits);
    for (int i = 0; i < count; i++) {
        least = fmax(least, fabs(e[i].value) - e[i].bound);
        most = fmax(most, fabs(e[i].value) + e[i].bound);
    }
    bool nothing = scale == 0;
    if (nothing && least >= (double)PL_BLOCK8_SCALE_MIN) note(u, INFINITY, of, a->name);
    if (!nothing && most < (double)PL_BLOCK8_SCALE_MIN) note(u, INFINITY, of, a->name);
    if (!nothing) note_distance(u, fmax(fmax(least - largest, largest - most), 0), UNIT * largest, of, a->name);
    for (int i = 0; i < count; i++) {
        if (nothing)
            note(u, (bits == PL_BLOCK8_SIGNED_BITS ? codes[i] & 0x7f : codes[i]) ? INFINITY : 0, of, a->name);
        else
            check_code(u, a, of, random_of(a, block * BLOCK + (uint64_t)i), e[i], codes[i], scale, bits);
    }
}

static expected root_of(expected v)
{
    double root = sqrt(v.value), most = sqrt(v.value + v.bound), least = sqrt(fmax(v.value - v.bound, 0));
    return (expected){root, fmax(most - root, root - least) + UNIT * root};
}

static void check_moments(pl_verify_update *u, const update *a, const char *of, uint64_t block, int count,
                          const expected *e, const unsigned char *data)
{
    if (a->state == PL_DTYPE_U8) {
        int bits = of[0] == 'm' ? PL_BLOCK8_SIGNED_BITS : PL_BLOCK8_UNSIGNED_BITS;
        check_codes(u, a, of, block, count, e, data + block * PL_BLOCK8_BYTES, bits);
        return;
    }
    for (int i = 0; i < count; i++) {
        uint64_t at = block * BLOCK + (uint64_t)i;
        if (a->state == PL_DTYPE_BF16)
            check_bf16(u, a, of, at, e[i], ((const uint16_t *)(const void *)data)[at]);
        else
            note_distance(u, fabs(((const float *)(const void *)data)[at] - e[i].value), e[i].bound, of, a->name);
    }
}

/* Elements whose gradients are none are left to the loss, which tells of them. */
static void check_block(pl_verify_update *u, const update *a, uint64_t block, int count)
{
    const float *w = (const float *)(const void *)u->before[0];
    for (int i = 0; i < count; i++) {
        uint64_t at = block * BLOCK + (uint64_t)i;
        double m = moment(a->state, u->before[1], block, i), v = second_moment(a->state, u->before[2], block, i);
        expect(&a->rates, (double)w[at], m, v, (double)a->gradient[at], &u->block_w[i], &u->block_m[i], &u->block_v[i]);
        if (!isfinite(u->block_w[i].value + u->block_m[i].value + u->block_v[i].value)) return;
        note_distance(u, fabs((double)a->w[at] - u->block_w[i].value), u->block_w[i].bound, "", a->name);
        if (a->state == PL_DTYPE_U8) u->block_v[i] = root_of(u->block_v[i]);
    }
    check_moments(u, a, "m.", block, count, u->block_m, a->m);
    check_moments(u, a, "v.", block, count, u->block_v, a->v);
}

/* ---- nodes ---- */

static void *at(const pl_verify_update *u, pl_id value) { return pl_session_address(u->session, value); }

/* What an optimizer's node changes; all such are read by one row, as ir/op.h has it. */
static void find_changed(const pl_node *n, pl_id changed[3])
{
    const pl_adamw_args *a = &n->adamw;
    changed[0] = a->weight, changed[1] = a->m, changed[2] = a->v;
}

static void copy_before(pl_verify_update *u, const pl_node *n)
{
    pl_id changed[3];
    find_changed(n, changed);
    for (int k = 0; k < 3; k++) memcpy(u->before[k], at(u, changed[k]), pl_value_bytes(u->g, changed[k]));
}

static void check_unchanged(pl_verify_update *u, const pl_node *n, const char *name)
{
    static const char *const of[3] = {"", "m.", "v."};
    pl_id changed[3];
    find_changed(n, changed);
    for (int k = 0; k < 3; k++)
        if (memcmp(u->before[k], at(u, changed[k]), pl_value_bytes(u->g, changed[k]))) note(u, INFINITY, of[k], name);
}

static void check_update(pl_verify_update *u, const pl_node *n)
{
    const pl_adamw_args *args = &n->adamw;
    pl_id weight = pl_value_root(u->g, args->weight);
    const pl_value *w = &u->g->value[weight];
    char stream[PL_VERIFY_NAME_BYTES];
    update a = {.name = w->name,
                .count = pl_shape_elems(&w->shape),
                .state = u->g->value[args->m].encoding ? PL_DTYPE_U8 : u->g->value[args->m].dtype,
                .gradient = at(u, args->gradient),
                .w = at(u, args->weight),
                .m = at(u, args->m),
                .v = at(u, args->v)};
    snprintf(stream, sizeof stream, "m.%s", w->name);
    a.random = pl_philox_init((uint64_t)u->config->train.seed, pl_stream_id(stream));
    const int64_t *step = pl_session_value(u->session, pl_input_name(PL_INPUT_STEP));
    a.step = (uint32_t)*step;
    bool runs = n->predicate == PL_NONE || *(const int32_t *)at(u, n->predicate) != 0;
    u->times[weight]++;
    *(runs ? &u->ran : &u->stood) = true;
    for (uint64_t i = 0; i < a.count; i++) u->squares += (double)a.gradient[i] * (double)a.gradient[i];
    if (!runs) {
        check_unchanged(u, n, w->name);
        return;
    }
    u->scale = args->scale == PL_NONE ? 1 : (double)*(const float *)at(u, args->scale);
    a.rates = rates_of(u, w, u->scale);
    for (uint64_t block = 0; block * BLOCK < a.count; block++) {
        uint64_t left = a.count - block * BLOCK;
        check_block(u, &a, block, left < BLOCK ? (int)left : BLOCK);
    }
}

static void check_average(pl_verify_update *u, const pl_node *n)
{
    const pl_ema_args *a = &n->ema;
    const pl_value *average = &u->g->value[pl_value_root(u->g, a->average)];
    const float *before = (const float *)(const void *)u->before[0], *w = at(u, a->weight), *now = at(u, a->average);
    const uint64_t count = pl_shape_elems(&average->shape);
    bool runs = n->predicate == PL_NONE || *(const int32_t *)at(u, n->predicate) != 0;
    const double rest = runs ? 1 - in_f32(u->config->train.ema_rate) : 0;
    for (uint64_t i = 0; i < count; i++) {
        double old = (double)before[i], far = rest * ((double)w[i] - old), wanted = old + far;
        double bound = LAST_UNIT * fabs(wanted) + UNIT * fabs(far) + SMALLEST;
        if (isfinite(wanted)) note_distance(u, fabs((double)now[i] - wanted), runs ? bound : 0, "", average->name);
    }
}

/* Of a window the samples lie apart. */
static void check_cast(pl_verify_update *u, const pl_cast_args *a)
{
    const pl_value *from = &u->g->value[a->x], *to = &u->g->value[a->y];
    const float *x = at(u, a->x);
    const uint16_t *y = at(u, a->y);
    const uint64_t count = pl_shape_elems(&to->shape);
    const bool whole = pl_value_is_contiguous(from);
    const uint64_t sample = whole ? count : count / (uint64_t)from->shape.dim[0];
    if (from->dtype != PL_DTYPE_F32 || to->dtype == PL_DTYPE_F32) return;
    for (uint64_t i = 0; i < count; i++) {
        const float given = whole ? x[i] : x[i / sample * (uint64_t)from->stride[0] + i % sample];
        const uint16_t wanted = to->dtype == PL_DTYPE_BF16 ? pl_bf16_of_f32(given) : pl_f16_of_f32(given);
        note(u, y[i] == wanted ? 0 : INFINITY, "", to->name);
    }
}

void pl_verify_update_see(pl_verify_update *u, uint32_t node, bool done)
{
    const pl_node *n = &u->g->node[node];
    const pl_id loss_scale = n->op == PL_OP_CLIP_SCALE ? n->clip_scale.loss_scale : PL_NONE;
    if (loss_scale != PL_NONE && !done) u->loss_scale = (double)*(const float *)at(u, loss_scale);
    bool is_optimizer = pl_op_rule_of(n->op)->optimizer;
    if (is_optimizer && !done) copy_before(u, n);
    if (is_optimizer && done) check_update(u, n);
    if (n->op == PL_OP_EMA && !done) memcpy(u->before[0], at(u, n->ema.average), pl_value_bytes(u->g, n->ema.average));
    if (n->op == PL_OP_EMA && done) check_average(u, n);
    if (n->op == PL_OP_CAST && done) check_cast(u, &n->cast);
}

/* ---- steps ---- */

void pl_verify_update_begin(pl_verify_update *u)
{
    memset(u->times, 0, (u->g->value_count + 1) * sizeof *u->times);
    u->squares = 0;
    u->loss_scale = u->scale = 1;
    u->ran = u->stood = false;
}

/* What only all gradients together tell: the factor on them, and whether there was to be an update at all. */
static void check_factor(pl_verify_update *u)
{
    double most = (double)(float)u->config->train.grad_clip, norm = sqrt(u->squares) / u->loss_scale;
    bool guarded = most > 0 || pl_graph_find_value(u->g, "loss_scale") != PL_NONE;
    bool runs = !guarded || isfinite(u->squares);
    if (runs ? u->stood : u->ran) note(u, INFINITY, "", "updates at an overflow");
    u->skipped += !runs;
    if (!runs || !isfinite(u->squares)) return;
    double scale = (most > 0 ? fmin(1, most / (norm + 1e-6)) : 1) / u->loss_scale;
    note_distance(u, fabs(u->scale - scale), UNIT * scale, "", "the factor that clips and unscales");
}

void pl_verify_update_end(pl_verify_update *u)
{
    for (size_t i = 0; i < u->g->value_count; i++) {
        const pl_value *v = &u->g->value[i];
        bool weight = v->role == PL_ROLE_WEIGHT && v->program == PL_NONE && pl_value_root(u->g, (pl_id)i) == i;
        if (weight && u->times[i] != !v->frozen) note(u, INFINITY, "", v->name);
    }
    check_factor(u);
}

double pl_verify_update_share(const pl_verify_update *u, const char **name)
{
    *name = u->name;
    return u->share;
}

/* The most that a weight and each of its moments take. */
static void find_most(const pl_graph *g, uint64_t most[3])
{
    for (size_t i = 0; i < g->node_count; i++) {
        pl_id changed[3];
        if (!pl_op_rule_of(g->node[i].op)->optimizer) continue;
        find_changed(&g->node[i], changed);
        for (int k = 0; k < 3; k++) {
            uint64_t bytes = pl_value_bytes(g, changed[k]);
            if (bytes > most[k]) most[k] = bytes;
        }
    }
}

uint64_t pl_verify_update_bytes(const pl_plan *plan)
{
    uint64_t most[3] = {0};
    find_most(plan->graph, most);
    return sizeof(pl_verify_update) + plan->graph->value_count * sizeof(unsigned) + most[0] + most[1] + most[2];
}

static pl_status make_room(pl_verify_update *u, pl_error *err)
{
    uint64_t most[3] = {0};
    find_most(u->g, most);
    u->times = pl_alloc(u->g->value_count + 1, sizeof *u->times);
    for (int k = 0; k < 3; k++) u->before[k] = pl_alloc(1, most[k] + 1);
    if (u->times && u->before[0] && u->before[1] && u->before[2]) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to compute the update of the largest weight apart");
}

pl_status pl_verify_update_create(const pl_config *config, const pl_plan *plan, pl_session *session,
                                  pl_verify_update **apart, pl_error *err)
{
    const int32_t *skipped = pl_session_value(session, PL_SKIPPED_STEPS);
    pl_verify_update *u = pl_alloc(1, sizeof *u);
    if (!u) return pl_fail(err, PL_E_NOMEM, "no memory to compute updates apart");
    u->config = config;
    u->g = plan->graph;
    u->session = session;
    u->skipped = skipped ? *skipped : 0;
    pl_status status = make_room(u, err);
    if (status == PL_OK)
        *apart = u;
    else
        pl_verify_update_destroy(u);
    return status;
}

void pl_verify_update_destroy(pl_verify_update *u)
{
    if (!u) return;
    for (int k = 0; k < 3; k++) pl_free(u->before[k]);
    pl_free(u->times);
    pl_free(u);
}
