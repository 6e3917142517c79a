#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/hdf5_load.h"

/* From the folder of the program, or of libplimsoll.so: beside it, above it (a build's tests), or where it is
 * installed. */
static const char *const places[] = {PL_HDF5_FILE, "../" PL_HDF5_FILE, "plimsoll/" PL_HDF5_FILE,
                                     PL_MODULES_FROM_BIN "/" PL_HDF5_FILE};

static bool find_beside(const char *program, char path[PL_FILE_PATH_MAX])
{
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, PL_FILE_PATH_MAX, "%.*s/%s", (int)(slash - program), program, places[i]);
        if (n < PL_FILE_PATH_MAX && access(path, R_OK) == 0) return true;
    }
    return false;
}

static bool find_module(char path[PL_FILE_PATH_MAX])
{
    char program[PL_FILE_PATH_MAX];
    Dl_info here;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0) {
        program[n] = 0;
        if (find_beside(program, path)) return true;
    }
    return dladdr(places, &here) && here.dli_fname && find_beside(here.dli_fname, path);
}

pl_status pl_hdf5_load(const char *what, const char *instead, void **handle, const pl_hdf5_module **module,
                       pl_error *err)
{
    static const char wanted[] = "; install libhdf5 (Debian: libhdf5-dev, and build Plimsoll with it there)";
    char path[PL_FILE_PATH_MAX];
    if (!find_module(path))
        return pl_fail(err, PL_E_UNSUPPORTED, "%s needs %s, which is not beside Plimsoll%s%s", what, PL_HDF5_FILE,
                       wanted, instead);
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*handle) {
        const char *why = dlerror();
        return pl_fail(err, PL_E_UNSUPPORTED, "%s needs %s, which cannot be loaded: %.300s%s%s", what, PL_HDF5_FILE,
                       why ? why : "no reason is known", wanted, instead);
    }
    *module = dlsym(*handle, PL_HDF5_SYMBOL);
    if (*module && (*module)->version == PL_HDF5_VERSION) return PL_OK;
    dlclose(*handle);
    return pl_fail(err, PL_E_UNSUPPORTED, "%s: is of another version of Plimsoll; install both anew", path);
}

void pl_hdf5_unload(void *handle) { dlclose(handle); }
