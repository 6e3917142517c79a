/* Any bytes as a picture, read by the module where it is there: a whole picture, or a reason. */
#include <stdio.h>
#include <string.h>

#include "base/module.h"
#include "data/infer/picture_fit.h"
#include "data/infer/pictures.h"
#include "fuzz/fuzz.h"

enum { SIZE = 24 };

typedef struct reading {
    const uint8_t *data, *all;
    size_t left, size;
    uint32_t width, height, rows;
    pl_picture_fit fit;
} reading;

static size_t get(void *context, void *to, size_t bytes)
{
    reading *r = context;
    const size_t n = bytes < r->left ? bytes : r->left;
    if (n) memcpy(to, r->data, n);
    r->data += n;
    r->left -= n;
    return n;
}

static int again(void *context)
{
    reading *r = context;
    r->data = r->all, r->left = r->size;
    return 0;
}

static int begin(void *context, uint32_t width, uint32_t height, uint32_t orientation)
{
    reading *r = context;
    pl_error err = {0};
    r->width = width, r->height = height;
    return pl_picture_fit_begin(&r->fit, width, height, orientation, SIZE, 3, &err) != PL_OK;
}

static int row(void *context, const uint8_t *rgb)
{
    reading *r = context;
    pl_picture_fit_row(&r->fit, rgb);
    r->rows++;
    return 0;
}

static const pl_pictures_module *module(void)
{
    static bool is_tried;
    static pl_module pictures;
    pl_error err = {0};
    if (!is_tried && pl_pictures_load(&pictures, &err) != PL_OK) fprintf(stderr, "nothing is read: %s\n", err.text);
    is_tried = true;
    return pictures.functions;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t made[3 * SIZE * SIZE];
    char why[200];
    reading r = {.data = data, .left = size, .all = data, .size = size};
    const pl_picture_reader o = {.context = &r,
                                 .get = get,
                                 .again = again,
                                 .begin = begin,
                                 .row = row,
                                 .pixels_max = 1 << 16,
                                 .bytes_max = 1 << 18};
    if (!module()) return 0;
    const int result = module()->read(&o, why, sizeof why);
    FUZZ_CHECK((result == 0) == (why[0] == 0), "%d, and says \"%s\"", result, why);
    FUZZ_CHECK(result || r.rows == r.height, "%u rows of %u", r.rows, r.height);
    FUZZ_CHECK((uint64_t)r.width * r.height <= 1 << 16, "%u x %u pixels were begun", r.width, r.height);
    if (result == 0) pl_picture_fit_take(&r.fit, made);
    pl_picture_fit_end(&r.fit);
    return 0;
}
