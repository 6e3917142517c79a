/* Status codes and error text.
 *
 * Every function of the library that can fail returns a pl_status and takes, as its last argument, a pl_error that the
 * caller owns. On failure the error holds one sentence: what is wrong, where, what was expected, what to do. The
 * library never prints, never exits and never aborts on bad input. */
#ifndef PLIMSOLL_STATUS_H
#define PLIMSOLL_STATUS_H

#if defined(__GNUC__)
#define PL_API                __attribute__((visibility("default")))
#define PL_MUST_USE           __attribute__((warn_unused_result))
#define PL_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define PL_API
#define PL_MUST_USE
#define PL_PRINTF(fmt, first)
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_status {
    PL_OK = 0,
    PL_E_INTERNAL,    /* a broken invariant of the library itself: please report it */
    PL_E_NOMEM,       /* memory was refused while planning (never after "committed") */
    PL_E_USAGE,       /* wrong arguments */
    PL_E_CONFIG,      /* wrong configuration: file:line:col and key are in the text */
    PL_E_BUDGET,      /* does not fit: the text says by how many bytes, and what would make it fit */
    PL_E_DATA,        /* input data missing, damaged or too short */
    PL_E_STORAGE,     /* reading or writing a file failed: disk full, read-only, damaged */
    PL_E_MISMATCH,    /* measured memory differs from the plan, or an update from that of the plain plan (verify) */
    PL_E_STOPPED,     /* stopped early on request; can be resumed */
    PL_E_DIVERGED,    /* the loss, or what a model computes, is no longer finite */
    PL_E_UNSUPPORTED, /* this build or machine cannot do it */
} pl_status;

#define PL_ERROR_TEXT_BYTES 1024

typedef struct pl_error {
    pl_status status;
    char text[PL_ERROR_TEXT_BYTES]; /* one sentence, printable UTF-8, always terminated; empty while status is PL_OK */
} pl_error;

/* A short constant name of the status ("PL_E_CONFIG"), never NULL. */
PL_API const char *pl_status_name(pl_status status);

/* The exit code the command uses for this status: 0 ok, 1 failure, 2 usage or config, 3 does not fit, 4 data,
 * 5 storage, 6 measured differs from planned, 75 stopped early and resumable. */
PL_API int pl_status_exit_code(pl_status status);

#ifdef __cplusplus
}
#endif
#endif
