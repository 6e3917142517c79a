#include "chat/render.h"

#include <stdarg.h>
#include <string.h>

#include "base/locale.h"
#include "base/size.h"

pl_status pl_chat_fail(pl_chat_run *r, pl_status status, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    pl_vprint(text, sizeof text, fmt, args);
    va_end(args);
    return pl_fail(r->err, status, "chat template, line %u: %s", r->line, text);
}

pl_status pl_chat_fail_kind(pl_chat_run *r, const char *what, const pl_chat_value *v)
{
    static const char *const kinds[] = {
        [PL_CHAT_NONE] = "none",     [PL_CHAT_BOOL] = "a truth value",    [PL_CHAT_INT] = "a number",
        [PL_CHAT_REAL] = "a number", [PL_CHAT_STRING] = "a string",       [PL_CHAT_LIST] = "a list",
        [PL_CHAT_MAP] = "a map",     [PL_CHAT_NAMESPACE] = "a namespace", [PL_CHAT_GENERATOR] = "a generator",
        [PL_CHAT_LOOP] = "a loop",   [PL_CHAT_MACRO] = "a macro",         [PL_CHAT_CALLABLE] = "a function"};
    if (v->kind == PL_CHAT_UNDEFINED)
        return pl_chat_fail(r, PL_E_DATA, "%s of an undefined value (\"%.*s\")", what,
                            (int)(v->count < 99 ? v->count : 99), v->text ? v->text : "");
    return pl_chat_fail(r, PL_E_DATA, "%s of %s", what, kinds[v->kind]);
}

pl_status pl_chat_step(pl_chat_run *r, uint64_t work)
{
    r->steps += work;
    if (r->steps > PL_CHAT_STEPS_MAX)
        return pl_chat_fail(r, PL_E_DATA, "the template takes more than %d steps for this chat", PL_CHAT_STEPS_MAX);
    return PL_OK;
}

pl_status pl_chat_enter(pl_chat_run *r)
{
    if (r->depth == PL_CHAT_CALLS_MAX)
        return pl_chat_fail(r, PL_E_DATA, "macros or values are more than %d deep inside of each other", r->depth);
    r->depth++;
    return PL_OK;
}

static pl_status take(pl_chat_run *r, uint64_t bytes, uint64_t alignment, void **out)
{
    uint64_t from = pl_align_up(r->used, alignment), end;
    if (pl_size_add(from, bytes, &end) || end > r->out->scratch_bytes)
        return pl_chat_fail(r, PL_E_BUDGET,
                            "rendering this chat needs more than the %llu bytes of memory planned for it",
                            (unsigned long long)r->out->scratch_bytes);
    *out = r->scratch + from;
    r->used = end;
    if (end > r->out->scratch_used_bytes) r->out->scratch_used_bytes = end;
    return pl_chat_step(r, bytes / 256);
}

pl_status pl_chat_take(pl_chat_run *r, uint64_t count, uint64_t size, void *pointer)
{
    uint64_t bytes;
    if (pl_size_mul(count, size, &bytes)) bytes = UINT64_MAX;
    return take(r, bytes, 16, pointer);
}

pl_status pl_chat_take_values(pl_chat_run *r, uint64_t count, pl_chat_value **out)
{
    return pl_chat_take(r, count, sizeof(pl_chat_value), out);
}

pl_status pl_chat_append(pl_chat_run *r, pl_chat_value *s, const void *text, uint64_t bytes)
{
    void *to;
    if (s->count + bytes > UINT32_MAX) return pl_chat_fail(r, PL_E_BUDGET, "a string has more than 4 GB");
    bool on_top = s->count > 0 && r->used > 0 && s->text + s->count == r->scratch + r->used;
    if (!on_top) {
        PL_TRY(take(r, s->count, 1, &to));
        if (s->count) memcpy(to, s->text, s->count);
        s->text = to;
    }
    PL_TRY(take(r, bytes, 1, &to));
    if (bytes) memmove(to, text, bytes);
    s->count += (uint32_t)bytes;
    return PL_OK;
}

pl_status pl_chat_put(pl_chat_run *r, const char *text, uint64_t bytes)
{
    pl_chat_output *o = r->out;
    if (bytes > o->text_bytes - o->rendered_bytes)
        return pl_chat_fail(r, PL_E_BUDGET, "the text of this chat is longer than the %llu bytes planned for it",
                            (unsigned long long)o->text_bytes);
    if (bytes) memcpy(o->text + o->rendered_bytes, text, bytes);
    o->rendered_bytes += bytes;
    return pl_chat_step(r, 1 + bytes / 256);
}

/* Few names are usual; many are paid for with steps. */
static pl_chat_cell *cell_of(pl_chat_run *r, const pl_chat_scope *s, const pl_chat_value *name)
{
    r->steps += s->count / 16;
    for (pl_chat_cell *c = s->cells; c; c = c->next)
        if (c->name.count == name->count && memcmp(c->name.text, name->text, name->count) == 0) return c;
    return NULL;
}

const pl_chat_value *pl_chat_cell_of(pl_chat_run *r, const pl_chat_scope *s, const pl_chat_value *name)
{
    pl_chat_cell *c = cell_of(r, s, name);
    return c ? &c->value : NULL;
}

pl_status pl_chat_set_cell(pl_chat_run *r, pl_chat_scope *s, const pl_chat_value *name, const pl_chat_value *v)
{
    pl_chat_cell *c = cell_of(r, s, name);
    if (!c) {
        PL_TRY(pl_chat_take(r, 1, sizeof *c, &c));
        *c = (pl_chat_cell){.name = *name, .next = s->cells};
        s->cells = c;
        s->count++;
    }
    c->value = *v;
    return PL_OK;
}
