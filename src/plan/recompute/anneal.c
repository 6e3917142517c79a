/* Annealing on the retention matrix (Kirkpatrick et al. 1983): cost + price × bytes over the budget, summed over the
 * stages. The price rises and the temperature falls with the work done, not with the clock, so the answer is the same
 * on every machine. Several short rounds find more than a long one; each begins at the best schedule so far,
 * more or less hot. */
#include "moves.h"

#include <math.h>

enum { ACCEPTANCES = 1024, HALVINGS = 10, MOVES_PER_LOOK = 64, VISITS_PER_MOVE = 60 };

typedef struct round_state {
    const recompute_graph *g;
    recompute_run *run;
    matrix matrix;
    recompute_random random;
    double minus_log[ACCEPTANCES]; /* of the middle of each of so many equal parts of (0, 1) */
    double hottest, least_gain;
    double price_unit, temperature, price;
    recompute_sequence found; /* the best of this round */
    double found_cost;        /* infinite: none within the budget */
    bool unsaved;             /* the matrix is better than `found` */
} round_state;

/* ln((2k + 3) / (2k + 1)) = 2 artanh(1 / (2k + 2)), added up from the top; plain arithmetic, alike everywhere. */
static void fill_logs(double *minus_log)
{
    double sum = 0;
    for (uint32_t k = ACCEPTANCES; k-- > 0;) {
        double z = k + 1 == ACCEPTANCES ? 1 / (4.0 * ACCEPTANCES - 1) : 1 / (2.0 * k + 2), power = z, step = 0;
        for (uint32_t odd = 1; odd < 60; odd += 2, power *= z * z) step += power / odd;
        sum += 2 * step;
        minus_log[k] = sum;
    }
}

/* Falls by half HALVINGS times, straight in between. */
static double cooled(double share)
{
    double halvings = share * HALVINGS, whole = floor(halvings);
    return ldexp(1 - (halvings - whole) / 2, -(int)whole);
}

static pl_status save(round_state *s, pl_error *err)
{
    s->unsaved = false;
    s->found_cost = s->matrix.cost;
    return matrix_sequence(&s->matrix, &s->found, err);
}

/* A schedule better than all before is written down only when a move would leave it. */
static pl_status settle(round_state *s, const matrix_change *change, pl_error *err)
{
    matrix *m = &s->matrix;
    bool better = m->over == 0 && m->cost < s->found_cost - s->least_gain;
    if (s->unsaved && (m->over > 0 || m->cost > m->old_cost)) {
        matrix_undo(m, change);
        PL_TRY(save(s, err));
        PL_TRY(matrix_apply(m, change, err));
        if (m->cut) matrix_undo(m, change);
        return PL_OK;
    }
    s->unsaved |= better;
    return PL_OK;
}

static pl_status try_move(round_state *s, pl_error *err)
{
    matrix *m = &s->matrix;
    matrix_change change;
    if (!moves_pick(m, s->run->options, &s->random, &change)) return PL_OK;
    PL_TRY(matrix_apply(m, &change, err));
    if (m->cut) {
        matrix_undo(m, &change);
        return PL_OK;
    }
    double worse = m->cost - m->old_cost + s->price * (double)(m->over - m->old_over);
    uint32_t k = recompute_random_below(&s->random, ACCEPTANCES);
    if (worse <= 0 || worse < s->temperature * s->minus_log[k]) return settle(s, &change, err);
    matrix_undo(m, &change);
    return PL_OK;
}

static pl_status cool_down(round_state *s, uint64_t work, pl_error *err)
{
    uint64_t *visits = &s->matrix.visits, booked = 0;
    for (*visits = 0; *visits < work; booked = *visits) {
        double share = (double)*visits / (double)work;
        s->temperature = s->hottest * cooled(share);
        s->price = s->price_unit * (1 + 8 * share);
        for (int k = 0; k < MOVES_PER_LOOK && !s->matrix.cut; k++) {
            PL_TRY(try_move(s, err));
            *visits += VISITS_PER_MOVE;
        }
        bool spent = recompute_run_spend(s->run, *visits - booked) || s->matrix.cut;
        if (spent || (s->run->options->first_that_fits && (s->unsaved || s->found_cost < INFINITY))) break;
    }
    return PL_OK;
}

static pl_status run_round(round_state *s, const recompute_sequence *start, uint64_t work, recompute_best *best,
                           pl_error *err)
{
    matrix *m = &s->matrix;
    PL_TRY(matrix_load(m, start, err));
    if (m->cut) return PL_OK;
    s->found_cost = INFINITY;
    s->unsaved = m->over == 0;
    PL_TRY(cool_down(s, work, err));
    if (s->unsaved || s->found_cost == INFINITY) PL_TRY(save(s, err));
    return recompute_best_offer(best, s->g, s->run, &s->found, "annealing", err);
}

pl_status recompute_anneal(const recompute_graph *g, recompute_run *run, uint64_t work, uint64_t round,
                           recompute_best *best, pl_error *err)
{
    static const double heats[] = {1, 0.3, 0.1};
    round_state s = {.g = g, .run = run};
    pl_status status = PL_OK;
    if (g->count < 2 || g->count > RECOMPUTE_ANNEAL_NODES_MAX) return PL_OK;
    double unit = g->base_cost > 0 ? g->base_cost : 1;
    fill_logs(s.minus_log);
    s.least_gain = 1e-9 * unit;
    PL_TRY_DONE(matrix_init(&s.matrix, g, err));
    s.matrix.run = run;
    s.price_unit = unit / (double)(g->budget - g->fixed + 1);
    s.random = recompute_random_begin(run->options->seed, round);
    s.hottest = 0.01 * unit * heats[round % (sizeof heats / sizeof *heats)];
    status = run_round(&s, &best->sequence, work, best, err);
done:
    matrix_deinit(&s.matrix);
    recompute_sequence_deinit(&s.found);
    return status;
}
