/* Values that a chat template works on: those of JSON, which the caller describes (a chat is a list of maps of
 * strings), and those that templates make. None is ever changed but a namespace; texts and items stay where they are,
 * so the caller's must outlive the rendering. */
#ifndef PL_CHAT_VALUE_H
#define PL_CHAT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pl_chat_kind {
    PL_CHAT_UNDEFINED, /* text: its name, for errors */
    PL_CHAT_NONE,
    PL_CHAT_BOOL,
    PL_CHAT_INT,
    PL_CHAT_REAL,
    PL_CHAT_STRING, /* count bytes of UTF-8 */
    PL_CHAT_LIST,   /* count items */
    PL_CHAT_MAP,    /* count pairs: item[2i] is a key and item[2i + 1] its value */
    /* made by templates only */
    PL_CHAT_NAMESPACE,
    PL_CHAT_GENERATOR, /* what selectattr, map and items give: gone through once */
    PL_CHAT_LOOP,
    PL_CHAT_MACRO,
    PL_CHAT_CALLABLE,
    PL_CHAT_ABSENT, /* an argument that was not given */
} pl_chat_kind;

/* Lists that differ in what may be done with them, and strings that HTML's escaping leaves alone. */
typedef enum pl_chat_form {
    PL_CHAT_PLAIN,
    PL_CHAT_TUPLE,
    PL_CHAT_RANGE, /* never joined or written as JSON */
    PL_CHAT_VIEW,  /* keys, values or items of a map: not indexed, either */
    PL_CHAT_SAFE,
} pl_chat_form;

typedef struct pl_chat_value {
    uint8_t kind, form;
    uint32_t count;
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text;
        const struct pl_chat_value *item;
        void *object;
    };
} pl_chat_value;

static inline pl_chat_value pl_chat_string(const char *text, size_t bytes)
{
    return (pl_chat_value){.kind = PL_CHAT_STRING, .count = (uint32_t)bytes, .text = text};
}
static inline pl_chat_value pl_chat_bool(bool truth) { return (pl_chat_value){.kind = PL_CHAT_BOOL, .truth = truth}; }
static inline pl_chat_value pl_chat_int(int64_t integer)
{
    return (pl_chat_value){.kind = PL_CHAT_INT, .integer = integer};
}
static inline pl_chat_value pl_chat_list(const pl_chat_value *item, size_t count)
{
    return (pl_chat_value){.kind = PL_CHAT_LIST, .count = (uint32_t)count, .item = item};
}
static inline pl_chat_value pl_chat_map(const pl_chat_value *item, size_t pairs)
{
    return (pl_chat_value){.kind = PL_CHAT_MAP, .count = (uint32_t)pairs, .item = item};
}

#endif
