#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/pages/font.h"

/* Debian, Fedora and openSUSE, Arch, others; by hand. */
static const char *const places[] = {
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf", "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono.ttf",
    "/usr/share/fonts/dejavu/DejaVuSansMono.ttf",          "/usr/share/fonts/TTF/DejaVuSansMono.ttf",
    "/usr/share/fonts/ttf-dejavu/DejaVuSansMono.ttf",      "/usr/local/share/fonts/DejaVuSansMono.ttf"};
static const uint64_t bytes_max = UINT64_C(64) << 20;

/* Where it can be read; else where it may be, so that opening it says what is wrong. */
static const char *find_place(void)
{
    const char *hidden = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (access(places[i], R_OK) == 0) return places[i];
        if (errno != ENOENT && errno != ENOTDIR && !hidden) hidden = places[i];
    }
    return hidden;
}

static pl_status measure(pl_font_file *f, pl_error *err)
{
    int fd;
    PL_TRY(pl_file_open(f->path, &fd, &f->bytes, err));
    close(fd);
    if (f->bytes > 0 && f->bytes <= bytes_max) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: has %" PRIu64 " bytes, but a font to draw with has 1 to %" PRIu64, f->path,
                   f->bytes, bytes_max);
}

pl_status pl_font_find(const char *path, pl_font_file *f, pl_error *err)
{
    if (!path) path = find_place();
    if (!path)
        return pl_fail(err, PL_E_DATA,
                       "the font %s is not there; install it (Debian: fonts-dejavu-core) or name the file of a font",
                       PL_FONT_NAME);
    if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
        return pl_fail(err, PL_E_USAGE, "the path of the font is longer than %zu bytes", sizeof f->path - 1);
    return measure(f, err);
}

pl_status pl_font_read(const pl_font_file *f, void *memory, pl_font *font, pl_error *err)
{
    int fd;
    uint64_t bytes;
    PL_TRY(pl_file_open(f->path, &fd, &bytes, err));
    pl_status status = pl_file_read_at(fd, f->path, 0, memory, f->bytes, err);
    close(fd);
    if (status == PL_OK) *font = (pl_font){memory, f->bytes, XXH64(memory, f->bytes, 0)};
    return status;
}

pl_status pl_font_load(const char *path, pl_font *font, pl_error *err)
{
    pl_font_file file;
    *font = (pl_font){0};
    PL_TRY(pl_font_find(path && path[0] ? path : NULL, &file, err));
    void *memory = pl_alloc(1, file.bytes);
    if (!memory) return pl_fail(err, PL_E_NOMEM, "no memory for the font %s", file.path);
    pl_status status = pl_font_read(&file, memory, font, err);
    if (status != PL_OK) pl_free(memory);
    return status;
}
