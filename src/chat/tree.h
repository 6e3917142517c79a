/* A parsed template. Nodes lie in the block one behind the other, each made for at least one byte of the text: that
 * bounds their number. */
#ifndef PL_CHAT_TREE_H
#define PL_CHAT_TREE_H

#include "base/error.h"
#include "chat/template.h"

typedef enum pl_chat_node_kind {
    /* expressions */
    PL_CHAT_CONSTANT,  /* value */
    PL_CHAT_NAME,      /* value: the name */
    PL_CHAT_ITEMS,     /* a: the items; op: the form of the list */
    PL_CHAT_PAIRS,     /* a: key, value, key, value … */
    PL_CHAT_ATTRIBUTE, /* a.value */
    PL_CHAT_SUBSCRIPT, /* a[b] */
    PL_CHAT_SLICE,     /* a[b:c:d], each of which may be NULL */
    PL_CHAT_CALL,      /* a(b …) */
    PL_CHAT_KEYWORD,   /* an argument, value=a */
    PL_CHAT_FILTER,    /* a|value(b …) */
    PL_CHAT_TEST,      /* a is value(b …) */
    PL_CHAT_BINARY,    /* a op b */
    PL_CHAT_COMPARE,   /* a op b, and with c (another PL_CHAT_COMPARE, without a) b op c.b */
    PL_CHAT_AND,       /* a, b */
    PL_CHAT_OR,        /* a, b */
    PL_CHAT_NOT,       /* a */
    PL_CHAT_NEGATIVE,  /* a */
    PL_CHAT_POSITIVE,  /* a */
    PL_CHAT_CONDITION, /* b if a else c; c may be NULL */
    PL_CHAT_CAPTURE,   /* what the statements a print */
    /* statements */
    PL_CHAT_TEXT,       /* value */
    PL_CHAT_PRINT,      /* a */
    PL_CHAT_IF,         /* if a: b, else: c (of "elif": one PL_CHAT_IF) */
    PL_CHAT_FOR,        /* for a in b, if c: d; other: else */
    PL_CHAT_SET,        /* a = b */
    PL_CHAT_MEMBER,     /* a target: value.a, where a is a PL_CHAT_NAME */
    PL_CHAT_MACRO_NODE, /* value: its name; a: parameters, PL_CHAT_NAME with a default in a; b: body */
    PL_CHAT_GENERATION, /* a */
    PL_CHAT_BREAK,
    PL_CHAT_CONTINUE,
} pl_chat_node_kind;

typedef enum pl_chat_operator {
    PL_CHAT_NO_OPERATOR,
    PL_CHAT_ADD,
    PL_CHAT_SUB,
    PL_CHAT_JOIN, /* ~ */
    PL_CHAT_MUL,
    PL_CHAT_DIV,
    PL_CHAT_FLOOR_DIV,
    PL_CHAT_MOD,
    PL_CHAT_POW,
    PL_CHAT_EQ,
    PL_CHAT_NE,
    PL_CHAT_LT,
    PL_CHAT_GT,
    PL_CHAT_LE,
    PL_CHAT_GE,
    PL_CHAT_IN,
    PL_CHAT_NOT_IN,
} pl_chat_operator;

typedef struct pl_chat_node pl_chat_node;
struct pl_chat_node {
    uint8_t kind, op;
    uint32_t line;
    union {
        pl_chat_value value;
        pl_chat_node *other;
    };
    pl_chat_node *a, *b, *c, *d, *next; /* next: in a list of statements, items or arguments */
};

struct pl_chat_template {
    pl_chat_node *body;
    uint64_t used_bytes;
    bool has_generation;
};

enum {
    PL_CHAT_DEPTH_MAX = 100,        /* of what is written inside of each other */
    PL_CHAT_TEMPLATE_MAX = 1 << 24, /* bytes */
};

#endif
