/* Modules: shared objects beside the program (modules/) that link what the program itself shall not. Each offers one
 * table of functions, which begins with its version. */
#ifndef PL_BASE_MODULE_H
#define PL_BASE_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct pl_module_wanted {
    const char *file, *symbol; /* "plimsoll-hdf5.so" and the name of its table */
    uint32_t version;          /* what the first number of the table must be */
    bool own_first;            /* it and the libraries that come with it take the module's own functions (its malloc)
                                  before the program's; sanitizers, which need theirs, do not allow that */
    const char *what;          /* "reading flights": what needs it */
    const char *install;       /* "; install libhdf5 …": what is missing where it cannot be loaded */
    const char *instead;       /* ", or choose …", or "" */
} pl_module_wanted;

typedef struct pl_module {
    void *handle;          /* NULL: it is not loaded */
    const void *functions; /* its table */
} pl_module;

/* True where own_first has its effect. */
bool pl_module_can_own_first(void);

/* PL_E_UNSUPPORTED: "WHAT needs FILE, which …; install …INSTEAD". One that is loaded already is found, and counted. */
pl_status pl_module_load(const pl_module_wanted *, pl_module *, pl_error *);
/* Is a module of this file there, and can it be loaded? It is unloaded again. PL_E_UNSUPPORTED with the reason,
 * PL_E_NOMEM. */
pl_status pl_module_try(const char *file, pl_error *);
void pl_module_unload(pl_module *); /* also one that is not loaded */

#endif
