/* Nodes that were asked about before. A search asks for the same few kinds of node hundreds of thousands of times, and
 * to print a key takes longer than everything else about an answer. So what a key is printed from (key.c) is kept in
 * words, with the answer: nodes with the same words have the same key.
 *
 * Invariant: an answer is what the table says, for nothing is kept from before a key was added to it. It is a help:
 * where memory is refused, the table is asked. */
#include <string.h>

#include "calibrate/table.h"
#include "ir/op.h"

enum {
    WORDS_MAX = 2 + (PL_NODE_IN_MAX + PL_NODE_OUT_MAX) * (2 + 2 * PL_RANK_MAX) + PL_ATTR_MAX,
    SLOTS_MIN = 256,
    QUESTIONS_MAX = 1 << 16, /* of a few hundred bytes */
};

typedef struct question {
    uint64_t words[WORDS_MAX];
    size_t count;
} question;

static void add(question *q, uint64_t word) { q->words[q->count++] = word; }

static void add_value(const pl_graph *g, pl_id id, uint64_t place, question *q)
{
    if (id == PL_NONE) {
        add(q, UINT64_MAX);
        return;
    }
    const pl_value *v = &g->value[id];
    bool window = !pl_value_is_contiguous(v);
    add(q, place << 32 | (uint64_t)v->dtype << 16 | (uint64_t)v->shape.rank << 8 | window);
    add(q, v->shape.symbolic);
    for (uint32_t i = 0; i < v->shape.rank; i++) add(q, (uint64_t)v->shape.dim[i]);
    for (uint32_t i = 0; i < v->shape.rank && window; i++) add(q, (uint64_t)v->stride[i]);
}

/* As in key.c: of a real number only whether it is zero. */
static void add_attributes(const pl_calibration *c, const pl_node *n, question *q)
{
    const char *kind = c->recall.attr_kind[n->op];
    for (int k = 0; k < PL_ATTR_MAX && kind[k]; k++)
        if (kind[k] != PL_CALIBRATION_NO_MATTER) add(q, kind[k] == 'f' ? n->attr[k].f != 0 : (uint64_t)n->attr[k].i);
}

static void ask(const pl_calibration *c, const pl_graph *g, const pl_node *n, question *q)
{
    const pl_signature *s = pl_signature_of(n->op);
    q->count = 0;
    add(q, (uint64_t)n->op << 8 | (uint64_t)n->phase);
    for (int k = 0; k < s->ins; k++) add_value(g, n->in[k], 0, q);
    for (int k = 0; k < s->outs; k++)
        add_value(g, n->out[k], n->out[k] == PL_NONE ? 0 : (uint64_t)(pl_calibration_input_below(g, n, k) + 1), q);
    add_attributes(c, n, q);
}

static uint64_t hash_of(const question *q)
{
    uint64_t hash = q->count;
    for (size_t i = 0; i < q->count; i++) {
        hash = (hash ^ q->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

void pl_calibration_recall_init(pl_calibration_recall *r)
{
    for (int op = 0; op < PL_OP_COUNT; op++)
        for (const pl_operand *first = pl_signature_of((pl_op)op)->attr, *a = first; a->name[0]; a++)
            r->attr_kind[op][a - first] = pl_calibration_attr_matters(a->name) ? a->kind : PL_CALIBRATION_NO_MATTER;
}

void pl_calibration_recall_clear(pl_calibration_recall *r)
{
    pl_free(r->answer);
    pl_free(r->words);
    pl_free(r->slot);
    r->answer = NULL;
    r->words = NULL;
    r->slot = NULL;
    r->count = r->capacity = r->word_count = r->word_capacity = r->slot_count = 0;
}

static uint32_t *slot_of(const pl_calibration_recall *r, const question *q, uint64_t hash)
{
    size_t at = (size_t)hash & (r->slot_count - 1);
    for (; r->slot[at] != PL_NONE; at = (at + 1) & (r->slot_count - 1)) {
        const pl_calibration_answer *a = &r->answer[r->slot[at]];
        if (a->hash == hash && a->count == q->count &&
            memcmp(r->words + a->begin, q->words, q->count * sizeof *q->words) == 0)
            break;
    }
    return &r->slot[at];
}

/* At most half of the slots are taken, so that a search always ends. */
static int make_slots(pl_calibration_recall *r)
{
    if ((r->count + 1) * 2 <= r->slot_count) return 0;
    size_t count = r->slot_count ? r->slot_count * 2 : SLOTS_MIN;
    uint32_t *slot = pl_alloc(count, sizeof *slot);
    if (!slot) return -1;
    for (size_t i = 0; i < count; i++) slot[i] = PL_NONE;
    for (size_t i = 0; i < r->count; i++) {
        size_t at = (size_t)r->answer[i].hash & (count - 1);
        while (slot[at] != PL_NONE) at = (at + 1) & (count - 1);
        slot[at] = (uint32_t)i;
    }
    pl_free(r->slot);
    r->slot = slot;
    r->slot_count = count;
    return 0;
}

static int make_words(pl_calibration_recall *r, size_t more)
{
    if (r->word_capacity - r->word_count >= more) return 0;
    size_t wanted = r->word_capacity * 2 + WORDS_MAX;
    uint64_t *words = pl_realloc(r->words, wanted, sizeof *words);
    if (!words) return -1;
    r->words = words;
    r->word_capacity = wanted;
    return 0;
}

static void remember(pl_calibration_recall *r, const question *q, const pl_calibration_answer *answer)
{
    if (r->count == QUESTIONS_MAX || make_slots(r) || make_words(r, q->count) ||
        pl_grow(&r->answer, &r->capacity, r->count, sizeof *r->answer))
        return;
    memcpy(r->words + r->word_count, q->words, q->count * sizeof *q->words);
    r->answer[r->count] = *answer;
    r->answer[r->count].begin = r->word_count;
    r->answer[r->count].count = q->count;
    r->word_count += q->count;
    *slot_of(r, q, answer->hash) = (uint32_t)r->count;
    r->count++;
}

static pl_calibration_answer answer_of(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    question q;
    ask(c, g, n, &q);
    const uint64_t hash = hash_of(&q);
    const uint32_t known = c->recall.slot_count ? *slot_of(&c->recall, &q, hash) : PL_NONE;
    if (known != PL_NONE) return c->recall.answer[known];
    const pl_calibration_entry *e = pl_calibration_entry_of(c, g, n);
    const pl_calibration_answer answer = {.hash = hash,
                                          .entry = e ? (pl_id)(e - c->entry) : PL_NONE,
                                          .prediction = pl_calibration_predict_anew(c, g, n, e)};
    remember(&c->recall, &q, &answer);
    return answer;
}

const pl_calibration_entry *pl_calibration_recall_entry(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    const pl_calibration_answer answer = answer_of(c, g, n);
    return answer.entry == PL_NONE ? NULL : &c->entry[answer.entry];
}

pl_duration pl_calibration_recall_prediction(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    return answer_of(c, g, n).prediction;
}
