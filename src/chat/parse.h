/* What the two halves of the parser share: statements (parse.c) and expressions (parse_expression.c). */
#ifndef PL_CHAT_PARSE_H
#define PL_CHAT_PARSE_H

#include "chat/lex.h"

typedef struct pl_chat_parser {
    pl_chat_lexer lexer;
    pl_chat_token now, then; /* the token to be read, and the one behind it */
    pl_chat_node *node;
    uint64_t nodes, nodes_max;
    int depth, loops; /* loops that `break` may end */
    bool has_generation;
    pl_error *err;
} pl_chat_parser;

pl_status pl_chat_parse_fail(pl_chat_parser *, pl_status, const char *fmt, ...) PL_PRINTF(3, 4);
pl_status pl_chat_advance(pl_chat_parser *);
pl_status pl_chat_deeper(pl_chat_parser *);
bool pl_chat_is_word(const pl_chat_token *, const char *word);
bool pl_chat_is_sign(const pl_chat_token *, unsigned sign);
pl_status pl_chat_take_sign(pl_chat_parser *, unsigned sign, bool *taken); /* if it is the next */
pl_status pl_chat_take_word(pl_chat_parser *, const char *word, bool *taken);
pl_status pl_chat_need_sign(pl_chat_parser *, unsigned sign);
pl_status pl_chat_make_node(pl_chat_parser *, pl_chat_node_kind, pl_chat_node **);
/* A node whose value is the name that comes next. */
pl_status pl_chat_parse_name(pl_chat_parser *, pl_chat_node_kind, pl_chat_node **);

pl_status pl_chat_parse_expression(pl_chat_parser *, bool with_condition, pl_chat_node **);
/* An expression, or several with commas between them: a tuple. */
pl_status pl_chat_parse_tuple(pl_chat_parser *, bool with_condition, pl_chat_node **);
pl_status pl_chat_parse_filters(pl_chat_parser *, pl_chat_node **);
/* What is assigned to: names, with commas and parentheses, and members of namespaces. */
pl_status pl_chat_parse_targets(pl_chat_parser *, pl_chat_node **);

#endif
