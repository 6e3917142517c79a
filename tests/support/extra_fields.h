/* For readers of text by lines (graph, plan): a field too many is an error at its place, whatever the line. */
#ifndef TESTS_SUPPORT_EXTRA_FIELDS_H
#define TESTS_SUPPORT_EXTRA_FIELDS_H

#include "base/error.h"
#include "base/str.h"

/* The reader; it must call the text "t" in its errors. */
typedef pl_status parse_text_fn(const char *text, size_t bytes, pl_error *err);

/* Adds a word, a pair and a quoted field to each line of `text` in turn; each must be refused at its place. */
void refuse_extra_fields(const pl_str *text, parse_text_fn *);

#endif
