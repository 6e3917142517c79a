/* How the inference program of a system looks from outside: which program it is, and what its inputs and outputs are
 * called. A row of a system (systems/system.h) has one; the lowering knows no name by itself. */
#ifndef PL_EXPORT_FACE_H
#define PL_EXPORT_FACE_H

#include <stddef.h>

enum { PL_FACE_IN_MAX = 4, PL_FACE_STORED_MAX = 9, PL_FACE_SCORED_MAX = 4 };

typedef struct pl_export_port {
    const char *name;    /* NULL: no input or output of the exported model */
    const char *meaning; /* for a reader of the file */
} pl_export_port;

typedef struct pl_export_face {
    const char *program;
    struct { /* what lasts between its programs, and whoever runs this one writes */
        const char *value;
        pl_export_port as;
    } given;
    pl_export_port in[PL_FACE_IN_MAX];         /* the ports of its data, in their order */
    pl_export_port stored[PL_FACE_STORED_MAX]; /* what it stores, in the order of STORE's inputs */
    pl_export_port scored[PL_FACE_SCORED_MAX]; /* what its losses judge, loss by loss: logits, mostly */
} pl_export_face;

#endif
