/* Items of a .npy file, or of an array that was made ready. Its first dimension counts them, the others are those of
 * the port; an array of one dimension less is one item, or, where the port's first dimension is 1, items without it.
 * Pictures may be bytes (0 … 255) or real numbers (0 … 1), in planes, or with their colours last, or grey: then all
 * colours are the same. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/narrow.h"
#include "base/str.h"
#include "data/infer/npy.h"
#include "data/infer/rows.h"

typedef enum layout {
    AS_IT_IS,
    COLOURS_LAST,
    GREY,
} layout;

typedef struct own {
    uint64_t at, elems; /* where the array begins; numbers of an item */
    pl_npy_number number;
    layout layout;
} own;
_Static_assert(sizeof(own) <= PL_ROWS_OWN_BYTES, "room for it");

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    static const char magic[] = "\x93NUMPY";
    (void)port;
    return bytes >= sizeof magic - 1 && memcmp(head, magic, sizeof magic - 1) == 0;
}

/* ---- does it fit? ---- */

static bool is_real(pl_npy_number n) { return n <= PL_NPY_F16; }

static void print_shape(const pl_npy_array *a, char *text, size_t room)
{
    pl_str s = pl_str_fixed(text, room);
    pl_str_printf(&s, "%s [", pl_npy_number_name(a->number));
    for (uint32_t i = 0; i < a->rank; i++) pl_str_printf(&s, "%s%" PRIu64, i ? ", " : "", a->dim[i]);
    pl_str_append(&s, "]");
}

static pl_status refuse(const pl_rows *r, const pl_npy_array *a, pl_error *err)
{
    char is[200], wanted[160], more[160] = "";
    const pl_infer_port *p = r->port;
    pl_str s = pl_str_fixed(more, sizeof more);
    print_shape(a, is, sizeof is);
    if (p->picture)
        pl_str_printf(&s,
                      " (or with colours last, or grey: [count, %" PRIu64 ", %" PRIu64 "]; u1 from 0 to 255 or reals",
                      p->dim[1], p->dim[2]);
    if (p->picture) pl_str_append(&s, " from 0 to 1)");
    if (p->bytes) pl_str_append(&s, " (or u1 from 0 to 255)");
    return pl_fail(err, PL_E_DATA, "%.300s: is %s, but %s takes %s%s", r->path, is, p->name,
                   pl_infer_port_text(p, wanted, sizeof wanted), more);
}

/* Bytes can be numbers of pictures, and of ports that say so; ids are integers. */
static bool is_number_of(const pl_infer_port *p, pl_npy_number n)
{
    if (p->dtype == PL_DTYPE_I32) return !is_real(n);
    return is_real(n) || ((p->picture || p->bytes) && n == PL_NPY_U8);
}

static bool dims_are(const uint64_t *dim, uint32_t count, const uint64_t *wanted)
{
    for (uint32_t i = 0; i < count; i++)
        if (dim[i] != wanted[i] && wanted[i] != PL_INFER_DIM_ANY) return false;
    return true;
}

/* Are the dimensions from `from` on an item's? */
static bool fits(const pl_infer_port *p, const pl_npy_array *a, uint32_t from, layout *how)
{
    const uint64_t *dim = a->dim + from;
    const uint32_t rank = a->rank - from;
    const uint64_t last[] = {p->dim[1], p->dim[2], p->dim[0]};
    *how = AS_IT_IS;
    if (rank == p->rank && dims_are(dim, rank, p->dim)) return true;
    *how = COLOURS_LAST;
    if (p->picture && rank == 3 && dims_are(dim, 3, last)) return true;
    *how = GREY;
    return p->picture && rank == 2 && dims_are(dim, 2, last);
}

/* Three dimensions for pictures always mean many grey ones, never one in colour. */
static bool find_items(const pl_infer_port *p, const pl_npy_array *a, uint64_t *count, layout *how)
{
    *count = a->rank ? a->dim[0] : 0;
    if (a->rank > 0 && fits(p, a, 1, how)) return true;
    *how = AS_IT_IS;
    if (!p->picture && p->dim[0] == 1 && a->rank == p->rank && dims_are(a->dim + 1, p->rank - 1, p->dim + 1))
        return true;
    *count = 1;
    return fits(p, a, 0, how) && (!p->picture || *how == GREY);
}

pl_status pl_rows_fit_array(pl_rows *r, const pl_npy_array *a, pl_error *err)
{
    own *o = (own *)(void *)r->own;
    if (!is_number_of(r->port, a->number) || !find_items(r->port, a, &r->count, &o->layout)) return refuse(r, a, err);
    if (r->count == 0) return pl_fail(err, PL_E_DATA, "%.300s: has no items", r->path);
    o->number = a->number;
    o->at = a->at;
    o->elems = pl_infer_port_elems(r->port);
    if (o->layout == GREY) o->elems /= r->port->dim[0];
    return PL_OK;
}

static pl_status open_npy(pl_rows *r, pl_error *err)
{
    pl_npy_array a;
    PL_TRY(pl_npy_look(r->path, &a, err));
    return pl_rows_fit_array(r, &a, err);
}

/* ---- reading ---- */

static double real_at(pl_npy_number number, const char *at)
{
    union {
        double f64;
        float f32;
        uint16_t f16;
    } v;
    memcpy(&v, at, pl_npy_number_bytes(number));
    if (number == PL_NPY_F64) return v.f64;
    return number == PL_NPY_F32 ? (double)v.f32 : (double)pl_f32_of_f16(v.f16);
}

static int64_t whole_at(pl_npy_number number, const char *at)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        int64_t i64;
    } v;
    memcpy(&v, at, pl_npy_number_bytes(number));
    switch (number) {
    case PL_NPY_U8:
        return v.u8;
    case PL_NPY_I8:
        return v.i8;
    case PL_NPY_U16:
        return v.u16;
    case PL_NPY_I16:
        return v.i16;
    case PL_NPY_U32:
        return v.u32;
    case PL_NPY_I32:
        return v.i32;
    default:
        return v.i64;
    }
}

static pl_status refuse_real(const pl_rows *r, uint64_t row, double x, pl_error *err)
{
    if (isfinite(x) && r->port->picture)
        return pl_fail(err, PL_E_DATA, "%.300s: item %" PRIu64 " has a brightness of %g; %s are from 0 to 1", r->path,
                       row, x, r->port->name);
    return pl_fail(err, PL_E_DATA,
                   "%.300s: item %" PRIu64 " has a number that is infinite or NaN, or too large for f32; all must be "
                   "finite",
                   r->path, row);
}

static pl_status refuse_id(const pl_rows *r, uint64_t row, int64_t id, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%.300s: item %" PRIu64 " has the number %" PRId64 " in %s, where -1 to %" PRId64 " were expected",
                   r->path, row, id, r->port->name, r->port->below ? r->port->below - 1 : INT32_MAX);
}

static void put_real(const pl_rows *r, const own *o, uint64_t elem, float x, float *to)
{
    const uint64_t *dim = r->port->dim, plane = r->port->picture ? dim[1] * dim[2] : 0;
    if (o->layout == AS_IT_IS) to[elem] = x;
    if (o->layout == COLOURS_LAST) to[elem % dim[0] * plane + elem / dim[0]] = x;
    for (uint64_t c = 0; o->layout == GREY && c < dim[0]; c++) to[c * plane + elem] = x;
}

/* Elements first … first + count − 1 of an item. */
static pl_status take_reals(const pl_rows *r, uint64_t row, uint64_t first, uint64_t count, const char *from, float *to,
                            pl_error *err)
{
    const own *o = (const own *)(const void *)r->own;
    const uint64_t bytes = pl_npy_number_bytes(o->number);
    for (uint64_t i = 0; i < count; i++, from += bytes) {
        if (o->number == PL_NPY_U8) {
            put_real(r, o, first + i, (float)(uint8_t)*from / 255.0f, to);
            continue;
        }
        const double x = real_at(o->number, from);
        if (!isfinite((float)x) || (r->port->picture && !(x >= 0 && x <= 1))) return refuse_real(r, row, x, err);
        put_real(r, o, first + i, (float)x, to);
    }
    return PL_OK;
}

static pl_status take_ids(const pl_rows *r, uint64_t row, uint64_t first, uint64_t count, const char *from, int32_t *to,
                          pl_error *err)
{
    const own *o = (const own *)(const void *)r->own;
    const int64_t below = r->port->below ? r->port->below : INT32_MAX;
    for (uint64_t i = 0; i < count; i++) {
        const int64_t id = whole_at(o->number, from + i * pl_npy_number_bytes(o->number));
        if (id < -1 || id >= below) return refuse_id(r, row, id, err);
        to[first + i] = (int32_t)id;
    }
    return PL_OK;
}

static pl_status read_item(const pl_rows *r, int fd, uint64_t row, void *to, char *scratch, pl_error *err)
{
    const own *o = (const own *)(const void *)r->own;
    const uint64_t bytes = pl_npy_number_bytes(o->number), most = PL_ROWS_SCRATCH_BYTES / bytes;
    for (uint64_t first = 0, count; first < o->elems; first += count) {
        count = o->elems - first < most ? o->elems - first : most;
        PL_TRY(pl_file_read_at(fd, r->path, o->at + (row * o->elems + first) * bytes, scratch, (size_t)(count * bytes),
                               err));
        PL_TRY(r->port->dtype == PL_DTYPE_I32 ? take_ids(r, row, first, count, scratch, to, err)
                                              : take_reals(r, row, first, count, scratch, to, err));
    }
    return PL_OK;
}

/* Opened each time: no descriptors are held for thousands of files. */
static pl_status read_npy(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    int fd;
    PL_TRY(pl_rows_reopen(r, &fd, err));
    const pl_status status = read_item(r, fd, row, to, scratch, err);
    close(fd);
    return status;
}

const pl_rows_kind pl_rows_npy = {
    .what = "NumPy arrays, .npy", .is_mine = is_mine, .open = open_npy, .read = read_npy, .ends = {"npy", "npz"}};

/* ---- made ready ---- */

static pl_status read_staged(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    return read_item(r, r->fd, row, to, scratch, err);
}

static const pl_rows_kind staged = {.what = "made ready", .read = read_staged};

pl_status pl_rows_open_staged(const char *path, const pl_infer_port *port, int fd, const pl_npy_array *a,
                              uint64_t bytes, pl_rows *r, pl_error *err)
{
    *r = (pl_rows){.kind = &staged, .path = path, .port = port, .fd = fd, .bytes = bytes};
    return pl_rows_fit_array(r, a, err);
}
