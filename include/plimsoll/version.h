/* The version, in the one place where it is written. CMake reads it here for the libraries, the pkg-config file, the
 * CMake package and the man page. PL_VERSION is its text. Versions go major.minor.patch; while major is 0, a new minor
 * may change any interface. */
#ifndef PLIMSOLL_VERSION_H
#define PLIMSOLL_VERSION_H

#include <stddef.h>

#include "plimsoll/status.h"

#define PL_VERSION_MAJOR 0
#define PL_VERSION_MINOR 1
#define PL_VERSION_PATCH 0

#define PL_VERSION_QUOTE(a, b, c)  #a "." #b "." #c
#define PL_VERSION_EXPAND(a, b, c) PL_VERSION_QUOTE(a, b, c)
#define PL_VERSION                 PL_VERSION_EXPAND(PL_VERSION_MAJOR, PL_VERSION_MINOR, PL_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the running library, "0.1.0"; PL_VERSION is that of the headers a program was compiled with. */
PL_API const char *pl_version(void);

typedef enum pl_version_form { PL_VERSION_TEXT, PL_VERSION_JSON /* schema plimsoll.version/1 */ } pl_version_form;
/* What this build is and what it finds here: version, commit, build type, compiler, the instruction set that kernels
 * take, and which modules load, or why not. In a block for pl_text_free. PL_E_NOMEM. */
PL_API PL_MUST_USE pl_status pl_version_text(pl_version_form, char **text, size_t *bytes, pl_error *);

#ifdef __cplusplus
}
#endif

#endif
