/* The three forms of a document. No heap beyond the string that is written: with a fixed one they may run after
 * "committed". */
#ifndef PL_SHOW_RENDER_H
#define PL_SHOW_RENDER_H

#include "base/json.h"
#include "show/doc.h"

typedef struct pl_text_form {
    unsigned columns; /* of a line; 0: PL_TEXT_COLUMNS */
    bool color;       /* ANSI colours */
    bool is_short;    /* without the sections that are for the long form */
} pl_text_form;

enum { PL_TEXT_COLUMNS = 80 };
/* For a terminal that is so wide (0: not known): 40 to 200 columns are used. */
pl_text_form pl_text_form_of(unsigned columns, bool color);

/* A document in fixed memory, and the text that it is turned into: of `room` bytes (at least 2) three eighths are the
 * text's, which begins the memory. */
pl_doc pl_doc_begin_in(char *memory, size_t room, pl_str *text);

typedef enum pl_doc_form { PL_FORM_TEXT, PL_FORM_JSON, PL_FORM_PAGE } pl_doc_form;
/* In any of its forms; text NULL as below. */
void pl_doc_write(const pl_doc *, pl_doc_form, const pl_text_form *text, pl_str *out);

/* form NULL: 80 columns, no colour, all of it. */
void pl_doc_print(const pl_doc *, const pl_text_form *form, pl_str *out);
/* The members of the object that is open; and an object of its own. */
void pl_doc_json(const pl_doc *, pl_json *);
void pl_doc_write_json(const pl_doc *, bool compact, pl_str *out);
/* A page of its own, with the document's title. */
void pl_doc_page(const pl_doc *, pl_str *out);

#endif
