/* A picture in PNG or JPEG: one item. It is made ready as the model wants it, its shorter side as long as that of the
 * model and of the longer one the middle (data/infer/picture_fit.h), in bytes from 0 (black) to 255. */
#include <string.h>

#include "base/alloc.h"
#include "data/infer/staging.h"

static bool begins(const char *head, size_t bytes, const char *with, size_t of)
{
    return bytes >= of && memcmp(head, with, of) == 0;
}

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    (void)port;
    return begins(head, bytes, "\x89PNG\r\n\x1a\n", 8) || begins(head, bytes, "\xff\xd8\xff", 3);
}

static bool suits(const pl_infer_port *p)
{
    return p->picture && p->rank == 3 && (p->dim[0] == 1 || p->dim[0] == 3) && p->dim[1] == p->dim[2] &&
           p->dim[1] <= UINT32_MAX;
}

static pl_status check_port(const pl_rows *r, pl_error *err)
{
    const pl_infer_port *p = r->port;
    char form[160];
    if (suits(p)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.300s: is a picture, but %s takes %s; give it a NumPy array", r->path, p->name,
                   pl_infer_port_text(p, form, sizeof form));
}

static pl_status read_into(pl_stager *s, const pl_rows *r, uint8_t *numbers, uint64_t bytes, pl_error *err)
{
    const pl_infer_port *p = r->port;
    PL_TRY(pl_picture_read(s->pictures.functions, r->path, (uint32_t)p->dim[1], (uint32_t)p->dim[0], numbers, err));
    return pl_stager_put(s, numbers, bytes, err);
}

static pl_status stage(pl_stager *s, const pl_rows *r, pl_error *err)
{
    const pl_infer_port *p = r->port;
    const uint64_t bytes = pl_infer_port_elems(p);
    PL_TRY(check_port(r, err));
    if (!s->pictures.handle) PL_TRY(pl_pictures_load(&s->pictures, err));
    PL_TRY(pl_stager_reserve(s, r->path, bytes, err));
    uint8_t *numbers = pl_alloc(bytes, 1);
    if (!numbers) return pl_fail(err, PL_E_NOMEM, "%.300s: no memory for the picture", r->path);
    pl_status status = read_into(s, r, numbers, bytes, err);
    pl_free(numbers);
    s->array = (pl_npy_array){.number = PL_NPY_U8, .rank = 4, .dim = {1, p->dim[0], p->dim[1], p->dim[2]}};
    return status;
}

const pl_rows_kind pl_rows_picture = {.what = "pictures in PNG or JPEG",
                                      .is_mine = is_mine,
                                      .suits = suits,
                                      .stage = stage,
                                      .ends = {"png", "jpg", "jpeg", "jpe", "jfif"}};
