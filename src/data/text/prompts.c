#include "data/text/prompts.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json_read.h"

#define FORM "{\"prompt\": \"...\"}"

typedef struct reading {
    const char *path;
    pl_encoder *encoder;
    pl_prompts *to;
    pl_prompt_check check;
    const void *context;
    uint64_t number; /* of the line */
} reading;

static pl_status take_ids(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    pl_prompts *to = ((reading *)context)->to;
    for (size_t i = 0; i < count; i++) {
        if (pl_grow(&to->id, &to->id_capacity, to->ids, sizeof *ids))
            return pl_fail(err, PL_E_NOMEM, "no memory for the tokens of the prompts");
        to->id[to->ids++] = ids[i];
    }
    return PL_OK;
}

static pl_status take_prompt(reading *r, const char *text, size_t bytes, pl_error *err)
{
    pl_prompts *to = r->to;
    const size_t begin = to->ids;
    if (bytes == 0) text = "\n", bytes = 1;
    PL_TRY(pl_encoder_feed(r->encoder, text, bytes, err));
    PL_TRY(pl_encoder_finish(r->encoder, err));
    PL_TRY(r->check(r->context, to->id + begin, to->ids - begin, err));
    if (pl_grow(&to->end, &to->end_capacity, to->count, sizeof *to->end))
        return pl_fail(err, PL_E_NOMEM, "no memory for the list of prompts");
    to->end[to->count++] = to->ids;
    return PL_OK;
}

static pl_status take_line(reading *r, const char *line, size_t bytes, pl_error *err)
{
    json_t *tree;
    json_error_t why;
    pl_status status = pl_json_read(line, bytes, JSON_REJECT_DUPLICATES, &tree, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory to read the line");
    if (status != PL_OK)
        return pl_fail(err, PL_E_DATA, "is not valid JSON: %s; each line must be an object " FORM, why.text);
    const json_t *prompt = json_object_get(tree, "prompt");
    status = json_is_string(prompt)
                 ? take_prompt(r, json_string_value(prompt), json_string_length(prompt), err)
                 : pl_fail(err, PL_E_DATA, "has no text \"prompt\"; each line must be an object " FORM);
    json_decref(tree);
    return status;
}

/* The bytes of the line at text, without its end. */
static size_t line_bytes(const char *text, const char *end, const char **next)
{
    const char *at = memchr(text, '\n', (size_t)(end - text));
    *next = at ? at + 1 : end;
    return (size_t)((at ? at : end) - text);
}

static bool is_blank(const char *line, size_t bytes)
{
    while (bytes > 0 && strchr(" \t\r", line[bytes - 1])) bytes--;
    return bytes == 0;
}

static pl_status take_lines(reading *r, const char *text, size_t bytes, pl_error *err)
{
    const char *end = text + bytes, *next;
    for (; text < end; text = next) {
        const size_t count = line_bytes(text, end, &next);
        r->number++;
        if (is_blank(text, count)) continue;
        const pl_status status = take_line(r, text, count, err);
        if (status != PL_OK) return pl_fail_prefix(err, status, "%s:%" PRIu64, r->path, r->number);
    }
    return r->to->count ? PL_OK : pl_fail(err, PL_E_DATA, "%s: has no prompts; give a line " FORM " for each", r->path);
}

static size_t longest_line(const char *text, size_t bytes)
{
    const char *end = text + bytes, *next;
    size_t most = 0;
    for (; text < end; text = next) {
        const size_t count = line_bytes(text, end, &next);
        if (count > most) most = count;
    }
    return most;
}

pl_status pl_prompts_read(const char *path, const pl_tokenizer *tokenizer, pl_encode_options options,
                          pl_prompt_check check, const void *context, pl_prompts *to, pl_error *err)
{
    reading r = {.path = path, .to = to, .check = check, .context = context};
    char *text;
    size_t bytes;
    *to = (pl_prompts){0};
    PL_TRY(pl_file_read_all(path, PL_PROMPTS_BYTES_MAX, &text, &bytes, err));
    pl_status status = pl_encoder_create_for(tokenizer, longest_line(text, bytes), take_ids, &r, &r.encoder, err);
    if (status == PL_OK) {
        pl_json_count(true); /* what a plan foresees of the heap has it, too */
        pl_encoder_set_options(r.encoder, options);
        status = take_lines(&r, text, bytes, err);
        pl_json_count(false);
    }
    pl_encoder_destroy(r.encoder);
    pl_free(text);
    return status;
}

void pl_prompts_deinit(pl_prompts *p)
{
    pl_free(p->id);
    pl_free(p->end);
    *p = (pl_prompts){0};
}
