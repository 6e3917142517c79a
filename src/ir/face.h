/* How the inference program of a model looks from outside: which program it is, and what its inputs and outputs are
 * called. Every family of models has one (models/model.h); export, rewrite and whatever runs a model on files hard-code
 * no names. */
#ifndef PL_IR_FACE_H
#define PL_IR_FACE_H

#include <stddef.h>

enum { PL_FACE_IN_MAX = 4, PL_FACE_STORED_MAX = 9, PL_FACE_SCORED_MAX = 4 };

typedef struct pl_face_port {
    const char *name;    /* NULL: not an input or output of the exported model */
    const char *meaning; /* for a reader of the file */
} pl_face_port;

typedef struct pl_face {
    const char *program;
    struct { /* persistent between its programs, and written by whoever runs this one */
        const char *value;
        pl_face_port as;
    } given;
    pl_face_port in[PL_FACE_IN_MAX];         /* the ports of its data, in their order */
    pl_face_port stored[PL_FACE_STORED_MAX]; /* what it stores, in the order of STORE's inputs */
    pl_face_port scored[PL_FACE_SCORED_MAX]; /* what its losses judge, loss by loss: mostly logits */
} pl_face;

#endif
