#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/module.h"

#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
enum { OWN_FIRST = 0 };
#else
enum { OWN_FIRST = RTLD_DEEPBIND };
#endif

/* From the folder of the program, or of libplimsoll.so: beside it, above it (a build's tests), or where it is
 * installed. */
static const char *const places[] = {"", "../", "../../", "plimsoll/", PL_MODULES_FROM_BIN "/"};

/* error: why one could not be looked for, which is not that it is not there. */
static bool find_beside(const char *program, const char *file, char path[PL_FILE_PATH_MAX], int *error)
{
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        int n = snprintf(path, PL_FILE_PATH_MAX, "%.*s/%s%s", (int)(slash - program), program, places[i], file);
        if (n >= PL_FILE_PATH_MAX) continue;
        if (access(path, R_OK) == 0) return true;
        if (errno != ENOENT && errno != ENOTDIR) *error = errno;
    }
    return false;
}

static bool find_file(const char *file, char path[PL_FILE_PATH_MAX], int *error)
{
    char program[PL_FILE_PATH_MAX];
    Dl_info here;
    *error = 0;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0) *error = errno;
    program[n > 0 ? n : 0] = 0;
    if (find_beside(program, file, path, error)) return true;
    return dladdr(places, &here) && here.dli_fname && find_beside(here.dli_fname, file, path, error);
}

static pl_status find_module(const pl_module_wanted *w, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    int error;
    if (find_file(w->file, path, &error)) return PL_OK;
    if (error)
        return pl_fail(err, PL_E_STORAGE, "%s needs %s, and it cannot be looked for beside Plimsoll: %s", w->what,
                       w->file, strerror(error));
    return pl_fail(err, PL_E_UNSUPPORTED, "%s needs %s, which is not beside Plimsoll%s%s", w->what, w->file, w->install,
                   w->instead);
}

bool pl_module_can_own_first(void) { return OWN_FIRST != 0; }

/* The loader says so in some of its sentences, and errno in the others. */
static bool lacks_memory(const char *why, int number)
{
    return !why || number == ENOMEM || strstr(why, strerror(ENOMEM)) || strstr(why, "out of memory");
}

static pl_status cannot_load(const pl_module_wanted *w, int number, pl_error *err)
{
    const char *why = dlerror();
    if (lacks_memory(why, number)) return pl_fail(err, PL_E_NOMEM, "no memory to load %s", w->file);
    return pl_fail(err, PL_E_UNSUPPORTED, "%s needs %s, which cannot be loaded: %.300s%s%s", w->what, w->file, why,
                   w->install, w->instead);
}

pl_status pl_module_load(const pl_module_wanted *w, pl_module *m, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    *m = (pl_module){0};
    PL_TRY(find_module(w, path, err));
    errno = 0;
    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | (w->own_first ? OWN_FIRST : 0));
    if (!m->handle) return cannot_load(w, errno, err);
    m->functions = dlsym(m->handle, w->symbol);
    if (m->functions && *(const uint32_t *)m->functions == w->version) return PL_OK;
    pl_module_unload(m);
    return pl_fail(err, PL_E_UNSUPPORTED, "%s: is of another version of Plimsoll; install both anew", path);
}

void pl_module_unload(pl_module *m)
{
    if (m->handle) dlclose(m->handle);
    *m = (pl_module){0};
}

pl_status pl_module_try(const char *file, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    int error;
    if (!find_file(file, path, &error))
        return pl_fail(err, PL_E_UNSUPPORTED, "there is no %s%s%s", file, error ? ": " : "",
                       error ? strerror(error) : "");
    errno = 0;
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    const int number = errno;
    const char *why = handle ? NULL : dlerror();
    if (!handle && lacks_memory(why, number)) return pl_fail(err, PL_E_NOMEM, "no memory to load %s", file);
    if (!handle) return pl_fail(err, PL_E_UNSUPPORTED, "%.900s", why);
    dlclose(handle);
    return PL_OK;
}
