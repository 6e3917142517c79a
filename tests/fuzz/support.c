#include "fuzz/fuzz.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "base/json.h"
#include "base/checksum.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    json_object_seed(1);
    return 0;
}

void fuzz_broken(const char *file, int line, const char *fmt, ...)
{
    va_list args;
    fprintf(stderr, "%s:%d: ", file, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

static bool has_line_and_column(const char *text)
{
    int line = -1, column = -1, used = 0;
    return sscanf(text, ":%d:%d: %n", &line, &column, &used) == 2 && used > 0 && line >= 0 && column >= 0;
}

void fuzz_refused(pl_status status, const pl_error *err, const char *name, fuzz_place place)
{
    size_t n = strlen(name);
    FUZZ_CHECK(status != PL_OK && status == err->status, "returned %s, the error says %s", pl_status_name(status),
               pl_status_name(err->status));
    FUZZ_CHECK(status != PL_E_NOMEM, "memory was refused: the input asked for too much: %s", err->text);
    FUZZ_CHECK(memchr(err->text, 0, sizeof err->text), "the sentence does not end");
    FUZZ_CHECK(strlen(err->text) > n + 10, "no sentence: \"%s\"", err->text);
    FUZZ_CHECK(strstr(err->text, name), "the sentence does not name %s: \"%s\"", name, err->text);
    FUZZ_CHECK(place == FUZZ_NAME || (strncmp(err->text, name, n) == 0 && has_line_and_column(err->text + n)),
               "no line and column behind the name in \"%s\"", err->text);
    for (size_t i = 0, left = strlen(err->text), bytes; left; i += bytes, left -= bytes) {
        const unsigned char *c = (const unsigned char *)err->text + i;
        bytes = pl_json_utf8_length(c, left);
        FUZZ_CHECK(bytes && *c >= 0x20 && *c != 0x7f, "byte 0x%02x at %zu of the sentence \"%s\" is not printable", *c,
                   i, err->text);
    }
}

void fuzz_without_memory(fuzz_read read, const uint8_t *data, size_t size)
{
    pl_error err = {0};
    uint64_t drawn = pl_checksum_of(data, size), before = pl_alloc_live_blocks(), requests = pl_alloc_request_count();
    pl_status usual = read(data, size, &err);
    requests = pl_alloc_request_count() - requests;
    if (requests == 0) return;
    pl_alloc_fail_at(1 + (drawn >> 1) % requests, drawn & 1);
    pl_status status = read(data, size, &err);
    pl_alloc_fail_at(0, 0);
    FUZZ_CHECK(status == usual || status == PL_E_NOMEM, "with memory refused %s in place of %s: %s",
               pl_status_name(status), pl_status_name(usual), err.text);
    FUZZ_CHECK(status == PL_OK || (err.status == status && err.text[0]), "memory refused without a sentence");
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still after memory was refused");
}

void fuzz_same_text(pl_str *first, pl_str *second, const char *what)
{
    FUZZ_CHECK(!first->failed && !second->failed, "%s: printing ran out of memory", what);
    size_t at = 0;
    while (at < first->bytes && at < second->bytes && first->data[at] == second->data[at]) at++;
    FUZZ_CHECK(first->bytes == second->bytes && at == first->bytes,
               "%s: the texts differ from byte %zu on:\n%.200s\n-- and --\n%.200s", what, at,
               pl_str_text(first) + (at < 40 ? 0 : at - 40), pl_str_text(second) + (at < 40 ? 0 : at - 40));
    pl_str_deinit(first);
    pl_str_deinit(second);
}

/* ---- files ---- */

const char *fuzz_file(int slot, const void *data, size_t size)
{
    static int files[FUZZ_FILE_SLOTS]; /* descriptor + 1; 0: none yet */
    static char paths[FUZZ_FILE_SLOTS][64];
    if (files[slot] == 0) {
        int fd = memfd_create("input", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0, "no file in memory");
        files[slot] = fd + 1;
        snprintf(paths[slot], sizeof paths[slot], "/proc/self/fd/%d", fd);
    }
    int fd = files[slot] - 1;
    FUZZ_CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size, "no room for a file in memory");
    return paths[slot];
}

static char folder[64];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

void fuzz_remove_all(const char *path) { (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

static void remove_folder(void) { fuzz_remove_all(folder); }

const char *fuzz_folder(void)
{
    if (folder[0]) return folder;
    snprintf(folder, sizeof folder, "%s/plimsoll-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    FUZZ_CHECK(mkdtemp(folder), "no folder of our own in %s", folder);
    atexit(remove_folder);
    return folder;
}

void fuzz_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    FUZZ_CHECK(f && fwrite(data, 1, size, f) == size && fclose(f) == 0, "%s cannot be written", path);
}
