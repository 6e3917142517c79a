/* What the fuzz targets share. A target reads one input and holds the reader to its word:
 *   accepted   the value passes its validator, and print → parse → print gives the same text
 *   refused    a status, and one printable sentence that says where
 *   always     nothing is held afterwards that was not held before
 * A promise that is broken aborts: libFuzzer, ctest and a person see the same thing. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv); /* in support.c: makes jansson's tables the same in every run */

/* Prints the sentence with its place and aborts. */
_Noreturn void fuzz_broken(const char *file, int line, const char *fmt, ...) PL_PRINTF(3, 4);
#define FUZZ_CHECK(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) fuzz_broken(__FILE__, __LINE__, __VA_ARGS__);                                                \
    } while (0)

/* Where the sentence of a refusal must say that the mistake is. */
typedef enum fuzz_place { FUZZ_NAME, FUZZ_LINE_COLUMN } fuzz_place;

/* Holds a refusal to the rules; `name` is what the reader was told that the input is called. */
void fuzz_refused(pl_status status, const pl_error *err, const char *name, fuzz_place place);

/* Reads the input with the n-th request for memory refused, once or from then on, n drawn from the bytes: the reader
 * says that memory was refused, or could do without and says what it says otherwise. `read` gives back what it made. */
typedef pl_status (*fuzz_read)(const uint8_t *data, size_t size, pl_error *);
void fuzz_without_memory(fuzz_read read, const uint8_t *data, size_t size);

/* Fails unless the two texts are the same; both must be whole. Gives both back. */
void fuzz_same_text(pl_str *first, pl_str *second, const char *what);

/* The bytes as a file that only this process sees. Its path, which is valid until the next call for this slot. */
enum { FUZZ_FILE_SLOTS = 2 };
const char *fuzz_file(int slot, const void *data, size_t size);

/* A folder of this process, removed when it ends. */
const char *fuzz_folder(void);
void fuzz_write(const char *path, const void *data, size_t size);
void fuzz_remove_all(const char *path); /* the folder and what is in it */

#endif
