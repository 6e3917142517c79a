/* The version, in the one place where it is written. CMake reads it here for the libraries, the pkg-config file, the
 * CMake package and the man page. PL_VERSION is its text. Versions go major.minor.patch; while major is 0, a new minor
 * may change any interface. */
#ifndef PLIMSOLL_VERSION_H
#define PLIMSOLL_VERSION_H

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

#ifdef __cplusplus
}
#endif

#endif
