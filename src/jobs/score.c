/* How well a pretrained model foretells texts, and which of several choices it finds likely after a prompt. Tokens go
 * through the cache of keys and values in pieces: those of which nothing is judged by the program "prefill", which
 * makes no logits, the others by "score", which takes fewer at a time. Texts by one of two protocols:
 *
 *   chunks    all ids, one after the other, in chunks of c (the rest is dropped); of each the places c/2+1 … c−1 are
 *             judged, and a chunk begins with bos where the tokenizer puts one before a text. As llama-perplexity.
 *   windows   of c, each `stride` after the one before; of each what no earlier one had is judged, but no window's
 *             first token. As transformers' guide to perplexity; each text has windows of its own. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/causal_lm.h"
#include "base/json.h"
#include "base/locale.h"
#include "base/size.h"
#include "data/text/judged.h"
#include "ir/properties.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"

#define STAGING "staging.score"

enum { LINE_BYTES = 64 * PL_JUDGED_CHOICES_MAX };

typedef struct choice {
    double loss; /* of all its tokens */
    uint32_t tokens, characters;
} choice;

typedef struct scoring {
    pl_session *s;
    pl_id score, prefill;
    int32_t *tokens, *targets;    /* of "score", [piece] */
    const float *losses;          /* [piece] */
    int32_t *ahead;               /* of "prefill", [step] */
    uint64_t piece, step, window; /* tokens */
    int32_t *id, *held;           /* [window] what goes through the model, and what the cache has of it */
    uint64_t held_count, reach;   /* reach: since place 0 was written last, all places before it were */
    bool has_rings;               /* some caches hold only what a window sees */
    uint64_t count, fresh;        /* of a text: ids in the window, and the first that was not judged yet */
    double sum, squares;          /* of the losses so far */
    uint64_t passed;              /* tokens that went through the model */
    pl_text_score found;
    bool is_done;
    choice of[PL_JUDGED_CHOICES_MAX];
    char line[LINE_BYTES];
    pl_judged file;
} scoring;

/* ---- through the model ---- */

/* Targets of the piece from `start` on: the tokens at the places from `judged` on, each predicted from those before it.
 * Places before `from` were there before: the last piece of a full window begins earlier, and writes them again. */
static void set_targets(scoring *g, uint64_t start, uint64_t from, uint64_t judged, uint64_t count)
{
    for (uint64_t i = 0; i < g->piece; i++) {
        const uint64_t place = start + i + 1;
        g->targets[i] = place > from && place >= judged && place < count ? g->id[place] : -1;
    }
}

static pl_status take_losses(scoring *g, pl_error *err)
{
    for (uint64_t i = 0; i < g->piece; i++) {
        if (g->targets[i] < 0) continue;
        const double loss = (double)g->losses[i];
        if (!isfinite(loss)) {
            char what[64];
            snprintf(what, sizeof what, "the loss of token %" PRIu64 " that is judged", g->found.judged + 1);
            return pl_fail_not_finite(g->s, what, err);
        }
        g->sum += loss, g->squares += loss * loss;
        g->found.judged++;
    }
    return PL_OK;
}

/* Places beyond `count` are filled up: they are written again before anything sees them. */
static pl_status run_piece(scoring *g, pl_id program, int32_t *to, uint64_t size, uint64_t start, uint64_t count,
                           pl_error *err)
{
    if (pl_session_should_stop(g->s)) return pl_fail(err, PL_E_STOPPED, "stopped before all was judged");
    for (uint64_t i = 0; i < size; i++) to[i] = start + i < count ? g->id[start + i] : 0;
    if (start == 0) g->reach = 0;
    if (start + size > g->reach) g->reach = start + size;
    pl_session_set_integer(g->s, PL_INPUT_POSITION, (int64_t)start);
    g->s->part++;
    return pl_session_run_program(g->s, program, false, err);
}

/* id[from … count): what comes before is in the cache. The last token is only a target. */
static pl_status pass(scoring *g, uint64_t from, uint64_t judged, uint64_t count, pl_error *err)
{
    uint64_t at = from;
    for (; at + g->step < judged; at += g->step) PL_TRY(run_piece(g, g->prefill, g->ahead, g->step, at, count, err));
    for (; at + 1 < count; at += g->piece) {
        const uint64_t start = at + g->piece > g->window ? g->window - g->piece : at;
        set_targets(g, start, at, judged, count);
        PL_TRY(run_piece(g, g->score, g->tokens, g->piece, start, count, err));
        PL_TRY(take_losses(g, err));
    }
    g->passed += count - from;
    return PL_OK;
}

/* ---- texts ---- */

static pl_status pass_chunk(scoring *g, pl_error *err)
{
    const uint64_t count = g->count;
    if (g->file.head.bos != PL_TOKEN_NONE) g->id[0] = (int32_t)g->file.head.bos;
    g->count = 0;
    return pass(g, 0, count / 2 + 1, count, err);
}

static pl_status pass_window(scoring *g, pl_error *err)
{
    const uint64_t judged = g->fresh ? g->fresh : 1;
    return g->count > judged ? pass(g, 0, judged, g->count, err) : PL_OK;
}

static pl_status pass_full(scoring *g, pl_error *err)
{
    const uint64_t stride = g->file.head.stride;
    if (stride == 0) return pass_chunk(g, err);
    PL_TRY(pass_window(g, err));
    g->count -= stride, g->fresh = g->count;
    memmove(g->id, g->id + stride, g->count * sizeof *g->id);
    return PL_OK;
}

/* A full window waits: it is the last one, unless a further token comes. */
static pl_status take_token(scoring *g, uint32_t id, pl_error *err)
{
    const bool in_chunks = g->file.head.stride == 0;
    if (g->count == g->window) PL_TRY(pass_full(g, err));
    g->id[g->count++] = (int32_t)id;
    return in_chunks && g->count == g->window ? pass_full(g, err) : PL_OK;
}

static pl_status end_text(scoring *g, pl_error *err)
{
    if (g->file.head.stride == 0) return PL_OK;
    PL_TRY(pass_window(g, err));
    g->count = g->fresh = 0;
    return PL_OK;
}

static pl_status judge_texts(scoring *g, pl_error *err)
{
    uint32_t id;
    for (bool more = true;;) {
        PL_TRY(pl_judged_next(&g->file, &id, &more, err));
        if (!more) return PL_OK;
        PL_TRY(id == PL_TOKEN_NONE ? end_text(g, err) : take_token(g, id, err));
    }
}

/* ---- prompts with choices ---- */

static pl_status next(scoring *g, uint32_t *number, pl_error *err)
{
    bool more;
    PL_TRY(pl_judged_next(&g->file, number, &more, err));
    return more ? PL_OK : pl_fail(err, PL_E_DATA, "the file of the tokens to judge ends too early; start again");
}

/* What the cache has of the choice before is not computed again. */
static pl_status judge_choice(scoring *g, choice *c, pl_error *err)
{
    uint32_t judged, count, id;
    uint64_t same = 0;
    PL_TRY(next(g, &judged, err));
    PL_TRY(next(g, &count, err));
    PL_TRY(next(g, &c->characters, err));
    if (judged == 0 || judged >= count || count > g->window)
        return pl_fail(err, PL_E_DATA, "the file of the tokens to judge is damaged; start again");
    for (uint32_t i = 0; i < count; i++) {
        PL_TRY(next(g, &id, err));
        g->id[i] = (int32_t)id;
    }
    while (same < judged - 1 && same < g->held_count && g->held[same] == g->id[same]) same++;
    if (g->has_rings && g->reach > same + g->step) same = 0; /* what a window before it saw is written over */
    const double before = g->sum;
    PL_TRY(pass(g, same, judged, count, err));
    memcpy(g->held, g->id, (count - 1) * sizeof *g->held);
    g->held_count = count - 1;
    c->loss = g->sum - before;
    c->tokens = count - judged;
    return PL_OK;
}

/* The likeliest; of two alike the first. */
static uint32_t find_likeliest(const scoring *g, uint32_t count, bool normalized)
{
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const choice *c = &g->of[i];
        const double loss = normalized ? c->loss / (c->characters ? c->characters : 1) : c->loss;
        if (loss < least) best = i, least = loss;
    }
    return best;
}

static void say_item(scoring *g, uint32_t count, uint32_t answer, const uint32_t best[2])
{
    pl_str s = pl_str_fixed(g->line, sizeof g->line);
    pl_json j = pl_json_begin(&s, true);
    pl_json_object(&j);
    pl_json_kv_uint(&j, "item", g->found.items);
    pl_json_key(&j, "log_likelihoods");
    pl_json_array(&j);
    for (uint32_t i = 0; i < count; i++) pl_json_double(&j, (double)(float)-g->of[i].loss);
    pl_json_array_end(&j);
    pl_json_key(&j, "tokens");
    pl_json_array(&j);
    for (uint32_t i = 0; i < count; i++) pl_json_uint(&j, g->of[i].tokens);
    pl_json_array_end(&j);
    pl_json_kv_uint(&j, "likeliest", best[0]);
    pl_json_kv_uint(&j, "likeliest_normalized", best[1]);
    if (answer != PL_TOKEN_NONE) pl_json_kv_uint(&j, "answer", answer);
    pl_json_object_end(&j);
    pl_str_printf(&s, "\n");
    pl_session_tell(g->s, (pl_event){.kind = PL_EVENT_TEXT, .text = g->line, .text_bytes = s.bytes});
}

static pl_status judge_item(scoring *g, pl_error *err)
{
    uint32_t count, answer;
    PL_TRY(next(g, &count, err));
    PL_TRY(next(g, &answer, err));
    if (count == 0 || count > PL_JUDGED_CHOICES_MAX)
        return pl_fail(err, PL_E_DATA, "the file of the tokens to judge is damaged; start again");
    for (uint32_t i = 0; i < count; i++) PL_TRY(judge_choice(g, &g->of[i], err));
    const uint32_t best[] = {find_likeliest(g, count, false), find_likeliest(g, count, true)};
    const locale_t before = pl_locale_enter();
    say_item(g, count, answer, best);
    pl_locale_leave(before);
    g->found.items++;
    g->found.choices += count;
    if (answer == PL_TOKEN_NONE) return PL_OK;
    g->found.answers++;
    g->found.right += best[0] == answer, g->found.right_normalized += best[1] == answer;
    return PL_OK;
}

static pl_status judge_items(scoring *g, pl_error *err)
{
    for (uint64_t i = 0; i < g->file.head.items; i++) PL_TRY(judge_item(g, err));
    return PL_OK;
}

/* ---- what was found ---- */

static void sum_up(scoring *g, double seconds)
{
    pl_text_score *f = &g->found;
    const pl_judged_head *h = &g->file.head;
    const double n = (double)f->judged, mean = g->sum / n, variance = g->squares / n - mean * mean;
    f->window = g->window, f->stride = h->stride;
    f->loss = mean, f->perplexity = exp(mean);
    f->error = variance > 0 && n > 1 ? sqrt(variance / (n - 1)) * f->perplexity : 0;
    f->has_choices = h->has_choices;
    f->texts = h->has_choices ? 0 : h->items, f->text_tokens = h->tokens;
    f->bits_per_byte = h->bytes ? mean / log(2) * (double)h->tokens / (double)h->bytes : 0;
    f->seconds = seconds, f->tokens_per_second = seconds > 0 ? (double)g->passed / seconds : 0;
    g->is_done = true;
}

static pl_status run_score(pl_session *s, void *state, pl_error *err)
{
    scoring *g = state;
    const double began = pl_run_now();
    PL_TRY(pl_judged_begin(&g->file, s->o.data->held, err));
    g->found = (pl_text_score){0};
    g->sum = g->squares = 0;
    g->passed = g->held_count = g->reach = g->count = g->fresh = 0;
    s->part = s->parts = 0;
    PL_TRY(g->file.head.has_choices ? judge_items(g, err) : judge_texts(g, err));
    if (g->found.judged == 0) return pl_fail(err, PL_E_DATA, "there was no token to judge; give a longer text");
    sum_up(g, pl_run_now() - began);
    return PL_OK;
}

pl_status pl_score_find(const pl_session *s, pl_text_score *to, pl_error *err)
{
    const scoring *g = pl_session_job_state(s, &pl_job_score);
    if (!g || !g->is_done) return pl_fail(err, PL_E_USAGE, "this run has judged nothing");
    *to = g->found;
    return PL_OK;
}

/* ---- opening ---- */

static uint64_t window_of(const pl_data *data) { return pl_facts_value(&data->extents, PL_FACT_CONTEXT, 0); }

static uint64_t staging_bytes(const pl_graph *graph, const pl_run_settings *r, const pl_data *data)
{
    (void)graph, (void)r;
    return 2 * window_of(data) * sizeof(int32_t);
}

static pl_status open_score(pl_session *s, void *state, pl_error *err)
{
    scoring *g = state;
    const pl_graph *graph = s->o.plan->graph;
    const pl_id tokens = pl_graph_find_value(graph, "score.tokens"), staging = pl_graph_find_value(graph, STAGING),
                ahead = pl_graph_find_value(graph, "prefill.tokens");
    g->s = s;
    PL_TRY(pl_session_find_program(s, "score", &g->score, err));
    PL_TRY(pl_session_find_program(s, "prefill", &g->prefill, err));
    if (tokens == PL_NONE || ahead == PL_NONE || staging == PL_NONE ||
        pl_value_bytes(graph, staging) < staging_bytes(graph, s->settings, s->o.data))
        return pl_fail(err, PL_E_DATA, "this program did not make the plan; plan again");
    g->window = window_of(s->o.data), g->has_rings = pl_graph_has_rings(graph);
    g->piece = pl_shape_elems(&graph->value[tokens].shape), g->step = pl_shape_elems(&graph->value[ahead].shape);
    g->tokens = pl_session_value(s, "score.tokens"), g->targets = pl_session_value(s, "score.targets");
    g->ahead = pl_session_value(s, "prefill.tokens"), g->losses = pl_session_value(s, "score.losses");
    g->id = pl_session_value(s, STAGING), g->held = g->id + g->window;
    return PL_OK;
}

const pl_job pl_job_score = {.program = {"score", "prefill"},
                             .staging = STAGING,
                             .staging_bytes = staging_bytes,
                             .state_bytes = sizeof(scoring),
                             .open = open_score,
                             .run = run_score};
