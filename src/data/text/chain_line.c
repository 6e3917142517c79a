/* A line {"question": "…", "steps": ["…", …], "answer": "…"} as the record of a chain. Other keys are others' business.
 */
#include <inttypes.h>
#include <string.h>

#include "base/json_read.h"
#include "data/text/chains.h"

#define FORM "{\"question\": \"...\", \"steps\": [\"...\"], \"answer\": \"...\"}"

typedef struct ids {
    uint32_t *id;
    uint64_t room, used;
} ids;

/* What does not fit is counted all the same, for the sentence. */
static void put(ids *r, uint32_t id)
{
    if (r->used < r->room) r->id[r->used] = id;
    r->used++;
}

static void put_text(ids *r, const json_t *text)
{
    const char *bytes = json_string_value(text);
    for (size_t i = 0; i < json_string_length(text); i++) put(r, (unsigned char)bytes[i]);
}

static pl_status refuse(const pl_chain_line *l, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": %s; each line must be an object " FORM, l->path, l->number, what);
}

static pl_status read_tree(const pl_chain_line *l, json_t **tree, pl_error *err)
{
    json_error_t why;
    pl_status status = pl_json_read(l->text, l->bytes, JSON_REJECT_DUPLICATES, tree, &why);
    if (status == PL_OK) return PL_OK;
    if (status == PL_E_NOMEM)
        return pl_fail(err, status, "%s:%" PRIu64 ": no memory to read the line", l->path, l->number);
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ":%d: is not valid JSON: %s; each line must be an object " FORM,
                   l->path, l->number, why.column, why.text);
}

static pl_status check_tree(const pl_chain_line *l, const json_t *tree, pl_error *err)
{
    const json_t *question = json_object_get(tree, "question"), *steps = json_object_get(tree, "steps"),
                 *answer = json_object_get(tree, "answer");
    if (!json_is_object(tree)) return refuse(l, "is no object", err);
    if (!json_is_string(question) || json_string_length(question) == 0)
        return refuse(l, "\"question\" is no text, or an empty one", err);
    if (!json_is_array(steps)) return refuse(l, "\"steps\" is no list", err);
    for (size_t i = 0; i < json_array_size(steps); i++)
        if (!json_is_string(json_array_get(steps, i))) return refuse(l, "a step is no text", err);
    if (!json_is_string(answer) || json_string_length(answer) == 0)
        return refuse(l, "\"answer\" is no text, or an empty one", err);
    return PL_OK;
}

static pl_status put_question(const pl_chain_line *l, const pl_chain_layout *layout, const json_t *tree, uint32_t *to,
                              pl_error *err)
{
    const json_t *question = json_object_get(tree, "question");
    const size_t bytes = json_string_length(question);
    if (bytes > layout->question)
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": the question has %zu bytes and chain.question is %u; make that %zu at least, "
                       "or the question shorter",
                       l->path, l->number, bytes, layout->question, bytes);
    for (uint32_t i = 0; i < layout->question - bytes; i++) to[i] = PL_CHAIN_PAD;
    put_text(&(ids){to + (layout->question - bytes), bytes, 0}, question);
    return PL_OK;
}

static pl_status put_rest(const pl_chain_line *l, const pl_chain_layout *layout, const json_t *tree, uint32_t *to,
                          uint32_t *counted, pl_error *err)
{
    const json_t *steps = json_object_get(tree, "steps");
    const size_t count = json_array_size(steps);
    ids r = {to, (uint64_t)pl_chain_rest(layout), 0};
    for (size_t i = layout->answer_only ? count : layout->replaced; i < count; i++) {
        put_text(&r, json_array_get(steps, i));
        put(&r, '\n');
    }
    put(&r, PL_CHAIN_ANSWER);
    put_text(&r, json_object_get(tree, "answer"));
    put(&r, PL_CHAIN_END);
    if (r.used > r.room)
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": steps and answer take %" PRIu64 " tokens, and model.sequence %u leaves %" PRIu64
                       " behind the question and %u latents; make model.sequence %" PRIu64 " at least",
                       l->path, l->number, r.used, layout->sequence, r.room, layout->latents,
                       layout->sequence + (r.used - r.room));
    *counted = (uint32_t)r.used;
    while (r.used < r.room) put(&r, PL_CHAIN_PAD);
    return PL_OK;
}

pl_status pl_chain_line_parse(const pl_chain_line *l, const pl_chain_layout *layout, uint32_t *record,
                              uint32_t *counted, pl_error *err)
{
    json_t *tree = NULL;
    PL_TRY(read_tree(l, &tree, err));
    pl_status status = check_tree(l, tree, err);
    if (status == PL_OK) status = put_question(l, layout, tree, record, err);
    if (status == PL_OK) status = put_rest(l, layout, tree, record + layout->question, counted, err);
    json_decref(tree);
    return status;
}
