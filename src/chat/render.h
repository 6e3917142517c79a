/* One rendering: its memory, its output, and what the files that evaluate share.
 *
 * Scratch memory is a stack. What an expression made is dropped after the statement that it was in, and what a loop's
 * body made after the iteration, unless something that lives longer was given a value meanwhile (`stores`). */
#ifndef PL_CHAT_RENDER_H
#define PL_CHAT_RENDER_H

#include "chat/tree.h"

typedef struct pl_chat_cell pl_chat_cell;
struct pl_chat_cell {
    pl_chat_value name, value;
    pl_chat_cell *next;
};

/* Names and their values: of a body of statements, and of a namespace. */
typedef struct pl_chat_scope pl_chat_scope;
struct pl_chat_scope {
    pl_chat_cell *cells;
    uint32_t count;
    pl_chat_scope *outer;
    const pl_chat_node *body;
};

typedef struct pl_chat_render_state {
    const pl_chat_input *in;
    pl_chat_output *out;
    const pl_chat_scope *names; /* the caller's */
    char *scratch;
    uint64_t used, stores, steps;
    int depth;
    uint32_t line; /* of what is evaluated: for errors */
    enum { PL_CHAT_GO_ON, PL_CHAT_LEAVE_LOOP, PL_CHAT_NEXT_ITEM } flow;
    int captures, generations; /* that the statements are in: texts that are being made, parts that are marked */
    pl_error *err;
} pl_chat_run;

typedef struct pl_chat_generator {
    pl_chat_value list;
    uint32_t at;
} pl_chat_generator;

typedef struct pl_chat_macro {
    const pl_chat_node *node;
    pl_chat_scope *scope; /* that it was defined in */
} pl_chat_macro;

typedef struct pl_chat_loop {
    const pl_chat_node *node;
    pl_chat_scope *scope;       /* outside of it */
    const pl_chat_node *filter; /* what its items are held to still */
    const pl_chat_value *item;
    uint32_t count, at;
    bool has_next, has_before;
    pl_chat_value next, now, before;
    int64_t index, length; /* length: −1 until somebody asks */
} pl_chat_loop;

enum {
    PL_CHAT_PARAMETERS_MAX = 5,
    PL_CHAT_RANGE_MAX = 100000, /* jinja2's sandbox has this limit, too */
    PL_CHAT_STEPS_MAX = 1 << 22,
    PL_CHAT_CALLS_MAX = 250, /* evaluations within evaluations */
};

/* A filter, test, function or method. value[0] is what it is applied to, the others are its arguments in the order of
 * `parameters`, names with blanks between. Where that is "**", they are a list of those without and a map of those with
 * a name. */
typedef struct pl_chat_row {
    const char *name, *parameters;
    int required;
    pl_status (*call)(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out);
} pl_chat_row;

typedef struct pl_chat_callable {
    const pl_chat_row *row;
    pl_chat_value self;
} pl_chat_callable;

typedef struct pl_chat_arguments {
    pl_chat_value *value, *name; /* names: UNDEFINED where there is none */
    uint32_t count;
} pl_chat_arguments;

/* run.c: failures, memory, limits */
pl_status pl_chat_fail(pl_chat_run *, pl_status, const char *fmt, ...) PL_PRINTF(3, 4);
pl_status pl_chat_fail_kind(pl_chat_run *, const char *what, const pl_chat_value *); /* "what" cannot be done with it */
pl_status pl_chat_step(pl_chat_run *, uint64_t work);
pl_status pl_chat_enter(pl_chat_run *); /* one evaluation deeper; `depth--` afterwards */
pl_status pl_chat_take(pl_chat_run *, uint64_t count, uint64_t size, void *pointer_to_pointer);
pl_status pl_chat_take_values(pl_chat_run *, uint64_t count, pl_chat_value **);
/* Puts bytes behind a string, in place where it ends at the top of the memory. */
pl_status pl_chat_append(pl_chat_run *, pl_chat_value *string, const void *text, uint64_t bytes);
pl_status pl_chat_put(pl_chat_run *, const char *text, uint64_t bytes); /* into the output */
pl_status pl_chat_set_cell(pl_chat_run *, pl_chat_scope *, const pl_chat_value *name, const pl_chat_value *);
const pl_chat_value *pl_chat_cell_of(pl_chat_run *, const pl_chat_scope *, const pl_chat_value *name);

/* compare.c */
bool pl_chat_truth(const pl_chat_value *);
bool pl_chat_is_number(const pl_chat_value *);
bool pl_chat_is_whole(const pl_chat_value *, int64_t *); /* a truth value is a whole number, too */
bool pl_chat_says(const pl_chat_value *string, const char *word);
bool pl_chat_is_listed(const char *words, const pl_chat_value *word); /* among words with blanks between */
pl_status pl_chat_equal(pl_chat_run *, const pl_chat_value *, const pl_chat_value *, bool *);
pl_status pl_chat_order(pl_chat_run *, const pl_chat_value *, const pl_chat_value *, int *sign);
pl_status pl_chat_contains(pl_chat_run *, const pl_chat_value *whole, const pl_chat_value *part, bool *);
/* The value of a key, NULL: it has none. */
pl_status pl_chat_find(pl_chat_run *, const pl_chat_value *map, const pl_chat_value *key, const pl_chat_value **);

/* print.c */
size_t pl_chat_real_text(double, char text[40]);
pl_status pl_chat_append_value(pl_chat_run *, pl_chat_value *string, const pl_chat_value *); /* as str() has it */
pl_status pl_chat_text_of(pl_chat_run *, const pl_chat_value *, pl_chat_value *string);
pl_status pl_chat_to_json(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out); /* the filter tojson */

/* access.c */
pl_status pl_chat_attribute(pl_chat_run *, const pl_chat_value *, const pl_chat_value *name, pl_chat_value *out);
pl_status pl_chat_subscript(pl_chat_run *, const pl_chat_value *, const pl_chat_value *key, pl_chat_value *out);
pl_status pl_chat_slice(pl_chat_run *, const pl_chat_value *, const pl_chat_value bound[3], pl_chat_value *out);
pl_status pl_chat_items(pl_chat_run *, const pl_chat_value *, pl_chat_value *list); /* as a loop goes through it */
pl_status pl_chat_characters(pl_chat_run *, const pl_chat_value *string, pl_chat_value *list);
pl_status pl_chat_pairs(pl_chat_run *, const pl_chat_value *map, pl_chat_value *list); /* of tuples (key, value) */
pl_status pl_chat_generator_of(pl_chat_run *, const pl_chat_value *list, pl_chat_value *out);

/* operators.c */
pl_status pl_chat_operate(pl_chat_run *, pl_chat_operator, const pl_chat_value *, const pl_chat_value *,
                          pl_chat_value *out);
pl_status pl_chat_negate(pl_chat_run *, const pl_chat_value *, bool minus, pl_chat_value *out);

/* filters.c, tests.c, methods.c, functions.c: NULL: there is none of this name */
const pl_chat_row *pl_chat_filter(const pl_chat_value *name);
const pl_chat_row *pl_chat_test(const pl_chat_value *name);
const pl_chat_row *pl_chat_string_method(const pl_chat_value *name);
const pl_chat_row *pl_chat_map_method(const pl_chat_value *name);
const pl_chat_row *pl_chat_function(const pl_chat_value *name);
pl_status pl_chat_replace(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out);
pl_status pl_chat_strip(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out);
pl_status pl_chat_lower(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out);
pl_status pl_chat_upper(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out);
pl_status pl_chat_capitalize(pl_chat_run *, const pl_chat_value *value, pl_chat_value *out);

/* evaluate.c */
pl_status pl_chat_evaluate(pl_chat_run *, pl_chat_scope *, const pl_chat_node *, pl_chat_value *out);
pl_status pl_chat_call_row(pl_chat_run *, const pl_chat_row *, const char *kind, const pl_chat_value *self,
                           const pl_chat_arguments *, pl_chat_value *out);

/* scope.c */
pl_status pl_chat_make_scope(pl_chat_run *, pl_chat_scope *outer, pl_chat_scope **);
/* The statements that the scope is for. */
pl_status pl_chat_execute_body(pl_chat_run *, pl_chat_scope *, const pl_chat_node *list);

/* statements.c, loop.c */
pl_status pl_chat_execute(pl_chat_run *, pl_chat_scope *, const pl_chat_node *list);
/* What the statements print, in a scope of their own. */
pl_status pl_chat_capture(pl_chat_run *, pl_chat_scope *, const pl_chat_node *list, pl_chat_value *out);
pl_status pl_chat_assign(pl_chat_run *, pl_chat_scope *, const pl_chat_node *target, const pl_chat_value *);
pl_status pl_chat_execute_for(pl_chat_run *, pl_chat_scope *, const pl_chat_node *);
pl_status pl_chat_loop_attribute(pl_chat_run *, pl_chat_loop *, const pl_chat_value *name, pl_chat_value *out);

#endif
