#include "data/infer/npy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/size.h"

static const struct {
    const char *name;
    uint64_t bytes;
} numbers[PL_NPY_NUMBERS] = {
    [PL_NPY_F64] = {"f8", 8}, [PL_NPY_F32] = {"f4", 4}, [PL_NPY_F16] = {"f2", 2}, [PL_NPY_U8] = {"u1", 1},
    [PL_NPY_I8] = {"i1", 1},  [PL_NPY_U16] = {"u2", 2}, [PL_NPY_I16] = {"i2", 2}, [PL_NPY_U32] = {"u4", 4},
    [PL_NPY_I32] = {"i4", 4}, [PL_NPY_I64] = {"i8", 8}};

const char *pl_npy_number_name(pl_npy_number n) { return numbers[n].name; }
uint64_t pl_npy_number_bytes(pl_npy_number n) { return numbers[n].bytes; }

/* The header is a dictionary as Python writes it: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
typedef struct reading {
    const char *name, *at, *end;
    pl_error *err;
} reading;

static pl_status refuse(const reading *r, const char *what)
{
    return pl_fail(r->err, PL_E_DATA, "%.300s: %s; an array as numpy.save writes it was expected", r->name, what);
}

static void skip(reading *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t')) r->at++;
}

static bool take(reading *r, char c)
{
    skip(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

/* A text in quotes of either kind, without any in it. */
static bool take_text(reading *r, char *text, size_t room)
{
    skip(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return false;
    const char quote = *r->at++;
    const char *begin = r->at;
    while (r->at < r->end && *r->at != quote) r->at++;
    const size_t bytes = (size_t)(r->at - begin);
    if (r->at == r->end || bytes >= room) return false;
    memcpy(text, begin, bytes);
    text[bytes] = 0;
    r->at++;
    return true;
}

static bool take_word(reading *r, const char *word)
{
    const size_t bytes = strlen(word);
    skip(r);
    if ((size_t)(r->end - r->at) < bytes || memcmp(r->at, word, bytes) != 0) return false;
    r->at += bytes;
    return true;
}

static bool take_number(reading *r, uint64_t *number)
{
    skip(r);
    if (r->at == r->end || *r->at < '0' || *r->at > '9') return false;
    for (*number = 0; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        uint64_t tenfold;
        if (pl_size_mul(*number, 10, &tenfold) || pl_size_add(tenfold, (uint64_t)(*r->at - '0'), number)) return false;
    }
    (void)take(r, 'L'); /* as Python 2 wrote it */
    return true;
}

static pl_status take_descr(reading *r, pl_npy_array *a)
{
    char text[24];
    if (!take_text(r, text, sizeof text)) return refuse(r, "its dtype is no plain one");
    const bool swapped = text[0] == '>';
    const char *name = strchr("<>|=", text[0]) && text[0] ? text + 1 : text;
    int n = 0;
    while (n < PL_NPY_NUMBERS && strcmp(name, numbers[n].name) != 0) n++;
    if (n == PL_NPY_NUMBERS)
        return pl_fail(r->err, PL_E_DATA,
                       "%.300s: its dtype is \"%s\"; f4, f8, f2, u1, i4 or i8 were expected: convert it with astype",
                       r->name, text);
    if (swapped && numbers[n].bytes > 1)
        return pl_fail(r->err, PL_E_DATA,
                       "%.300s: its numbers are big endian (\"%s\"); convert it with .astype(\"<%s\")", r->name, text,
                       name);
    a->number = (pl_npy_number)n;
    return PL_OK;
}

static pl_status take_order(reading *r)
{
    if (take_word(r, "False")) return PL_OK;
    if (!take_word(r, "True")) return refuse(r, "its fortran_order is neither True nor False");
    return pl_fail(r->err, PL_E_DATA,
                   "%.300s: lies in Fortran's order, column after column; save numpy.ascontiguousarray(…) of it",
                   r->name);
}

static pl_status take_shape(reading *r, pl_npy_array *a)
{
    if (!take(r, '(')) return refuse(r, "its shape is no tuple");
    a->rank = 0;
    while (!take(r, ')')) {
        if (a->rank == PL_NPY_DIMS_MAX) return refuse(r, "it has more than 8 dimensions");
        if (!take_number(r, &a->dim[a->rank++])) return refuse(r, "its shape is no tuple of whole numbers");
        if (take(r, ',')) continue;
        if (!take(r, ')')) return refuse(r, "its shape is no tuple of whole numbers");
        break;
    }
    return PL_OK;
}

enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

static pl_status take_pair(reading *r, pl_npy_array *a, int *seen)
{
    char key[24];
    if (!take_text(r, key, sizeof key) || !take(r, ':')) return refuse(r, "its header is damaged");
    const int which = strcmp(key, "descr") == 0           ? DESCR
                      : strcmp(key, "fortran_order") == 0 ? ORDER
                      : strcmp(key, "shape") == 0         ? SHAPE
                                                          : 0;
    if (!which || (*seen & which)) return refuse(r, "its header has a key that is none, or one twice");
    *seen |= which;
    return which == DESCR ? take_descr(r, a) : which == ORDER ? take_order(r) : take_shape(r, a);
}

static pl_status take_header(reading *r, pl_npy_array *a)
{
    int seen = 0;
    if (!take(r, '{')) return refuse(r, "its header is damaged");
    while (!take(r, '}')) {
        PL_TRY(take_pair(r, a, &seen));
        if (take(r, ',')) continue;
        if (!take(r, '}')) return refuse(r, "its header is damaged");
        break;
    }
    return seen == ALL ? PL_OK : refuse(r, "its header lacks descr, fortran_order or shape");
}

static pl_status check_bytes(const reading *r, const pl_npy_array *a, uint64_t file_bytes)
{
    uint64_t bytes = numbers[a->number].bytes;
    for (uint32_t i = 0; i < a->rank; i++)
        if (pl_size_mul(bytes, a->dim[i], &bytes)) return refuse(r, "its shape multiplies to more than a file holds");
    if (file_bytes - a->at == bytes) return PL_OK;
    return pl_fail(r->err, PL_E_DATA,
                   "%.300s: its shape needs %" PRIu64 " bytes behind the header, and there are %" PRIu64
                   "; the file is damaged or was not written to its end",
                   r->name, bytes, file_bytes - a->at);
}

/* Where its text begins, and how long it is. */
static pl_status find_text(const reading *r, const char *head, size_t bytes, size_t *begin, uint64_t *length)
{
    static const char magic[] = "\x93NUMPY";
    enum { FIXED = 10, FIXED_LONG = 12 };
    if (bytes < FIXED_LONG || memcmp(head, magic, sizeof magic - 1) != 0) return refuse(r, "is no .npy file");
    const uint8_t *h = (const uint8_t *)head;
    if (h[6] < 1 || h[6] > 3) return refuse(r, "is a .npy file of a version that is not known");
    *begin = h[6] == 1 ? FIXED : FIXED_LONG;
    *length = h[6] == 1 ? (uint64_t)h[8] | (uint64_t)h[9] << 8 : pl_get_u32(h, 8);
    return PL_OK;
}

pl_status pl_npy_parse(const char *name, const char *head, size_t bytes, uint64_t file_bytes, pl_npy_array *a,
                       pl_error *err)
{
    reading r = {.name = name, .err = err};
    size_t begin = 0;
    uint64_t length = 0;
    *a = (pl_npy_array){0};
    PL_TRY(find_text(&r, head, bytes, &begin, &length));
    if (length > bytes - begin) return refuse(&r, "its header is longer than 4 kB, or than the file");
    r.at = head + begin, r.end = r.at + length;
    a->at = begin + length;
    PL_TRY(take_header(&r, a));
    return check_bytes(&r, a, file_bytes);
}

pl_status pl_npy_look(const char *path, pl_npy_array *a, pl_error *err)
{
    char head[PL_NPY_TEXT_MAX];
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    const size_t some = bytes < sizeof head ? (size_t)bytes : sizeof head;
    pl_status status = pl_file_read_at(fd, path, 0, head, some, err);
    close(fd);
    return status == PL_OK ? pl_npy_parse(path, head, some, bytes, a, err) : status;
}
