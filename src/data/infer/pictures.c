#include "data/infer/pictures.h"

#include <unistd.h>

#include "base/file.h"
#include "data/infer/picture_fit.h"

enum { WHY_BYTES = 200 };

pl_status pl_pictures_load(pl_module *m, pl_error *err)
{
    const pl_module_wanted wanted = {
        .file = PL_PICTURES_FILE,
        .symbol = PL_PICTURES_SYMBOL,
        .version = PL_PICTURES_VERSION,
        .what = "reading pictures",
        .install = "; install libpng and libjpeg (Debian: libpng-dev libjpeg62-turbo-dev, and build Plimsoll with them "
                   "there)",
        .instead = ", or give the pictures as an array in .npy"};
    return pl_module_load(&wanted, m, err);
}

/* ---- one ---- */

typedef struct reading {
    const char *path;
    int fd;
    uint64_t at, bytes; /* of the file */
    uint32_t size, channels;
    pl_picture_fit fit;
    pl_status status; /* of what the module asked for */
    pl_error *err;
} reading;

static size_t get(void *context, void *to, size_t bytes)
{
    reading *r = context;
    const size_t n = bytes < r->bytes - r->at ? bytes : (size_t)(r->bytes - r->at);
    r->status = pl_file_read_at(r->fd, r->path, r->at, to, n, r->err);
    if (r->status != PL_OK) return 0;
    r->at += n;
    return n;
}

static int again(void *context)
{
    ((reading *)context)->at = 0;
    return 0;
}

static int begin(void *context, uint32_t width, uint32_t height, uint32_t orientation)
{
    reading *r = context;
    pl_error why = {0};
    r->status = pl_picture_fit_begin(&r->fit, width, height, orientation, r->size, r->channels, &why);
    if (r->status != PL_OK) r->status = pl_fail(r->err, r->status, "%s: %s", r->path, why.text);
    return r->status != PL_OK;
}

static int row(void *context, const uint8_t *rgb)
{
    pl_picture_fit_row(&((reading *)context)->fit, rgb);
    return 0;
}

pl_status pl_picture_read(const pl_pictures_module *module, const char *path, uint32_t size, uint32_t channels,
                          uint8_t *to, pl_error *err)
{
    char why[WHY_BYTES] = "";
    reading r = {.path = path, .size = size, .channels = channels, .err = err};
    const pl_picture_reader o = {.context = &r,
                                 .get = get,
                                 .again = again,
                                 .begin = begin,
                                 .row = row,
                                 .pixels_max = PL_PICTURE_PIXELS_MAX,
                                 .bytes_max = PL_PICTURE_BYTES_MAX};
    PL_TRY(pl_file_open(path, &r.fd, &r.bytes, err));
    pl_status status = PL_OK;
    const int result = module->read(&o, why, sizeof why);
    if (result == PL_PICTURES_NO_MEMORY)
        status = pl_fail(err, PL_E_NOMEM, "%s: no memory to read the picture: %s", path, why);
    else if (result == PL_PICTURES_TOO_LARGE)
        status = pl_fail(err, PL_E_DATA, "%s: is too large a picture: %s", path, why);
    else if (result != 0)
        status = r.status != PL_OK ? r.status : pl_fail(err, PL_E_DATA, "%s: is no whole picture: %s", path, why);
    if (status == PL_OK) pl_picture_fit_take(&r.fit, to);
    pl_picture_fit_end(&r.fit);
    close(r.fd);
    return status;
}
