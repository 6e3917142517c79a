/* The tokens of a template, one by one. White space around tags is taken away here, as Jinja does with trim_blocks and
 * lstrip_blocks. Escapes in strings are decoded in place, so the text has to be a copy. */
#ifndef PL_CHAT_LEX_H
#define PL_CHAT_LEX_H

#include "chat/tree.h"

typedef enum pl_chat_token_kind {
    PL_CHAT_TOKEN_END,
    PL_CHAT_TOKEN_DATA,
    PL_CHAT_TOKEN_OPEN, /* bytes: '{' of "{{", '%' of "{%" in op */
    PL_CHAT_TOKEN_CLOSE,
    PL_CHAT_TOKEN_NAME,
    PL_CHAT_TOKEN_STRING,
    PL_CHAT_TOKEN_NUMBER, /* value */
    PL_CHAT_TOKEN_SIGN,   /* op: one of pl_chat_sign */
} pl_chat_token_kind;

/* Signs of two characters; those of one are the character itself. */
enum {
    PL_CHAT_POW_SIGN = 128,
    PL_CHAT_FLOOR_DIV_SIGN,
    PL_CHAT_EQ_SIGN,
    PL_CHAT_NE_SIGN,
    PL_CHAT_LE_SIGN,
    PL_CHAT_GE_SIGN
};

typedef struct pl_chat_token {
    pl_chat_token_kind kind;
    unsigned op;
    uint32_t line;
    char *text; /* as written; of a string what is between its quotes, decoded */
    size_t bytes;
    pl_chat_value value;
} pl_chat_token;

typedef struct pl_chat_lexer {
    char *start, *at, *end;
    uint32_t line;
    char tag;      /* the kind of tag that `at` is in: '{', '%', or 0: in text */
    bool has_open; /* the text before a tag was given, the tag comes next */
    int brackets;  /* that are open: "}}" ends no tag then */
    pl_error *err;
} pl_chat_lexer;

/* Line ends become \n, and the last one goes. Returns the bytes. */
size_t pl_chat_normalize(const char *text, size_t bytes, char *to);
pl_status pl_chat_lex(pl_chat_lexer *, pl_chat_token *);

#endif
