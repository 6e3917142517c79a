#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5_impl.h"

/* 1: the attribute is one number, which lies in `to` then. 0: it is not there. -1: it is something else. */
static int read_attribute(hid_t set, const char *name, hid_t as, void *to)
{
    if (H5Aexists(set, name) <= 0) return 0;
    hid_t from = H5Aopen(set, name, H5P_DEFAULT), type = H5Aget_type(from), space = H5Aget_space(from);
    const H5T_class_t kind = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    int result = -1;
    if ((kind == H5T_INTEGER || kind == H5T_FLOAT) && space >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
        H5Aread(from, as, to) >= 0)
        result = 1;
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (from >= 0) H5Aclose(from);
    return result;
}

static int find_factor(hid_t set, const char *name, double *to, int may_be_0, hdf5_packing *p, char *text, size_t room)
{
    const int found = read_attribute(set, name, H5T_NATIVE_DOUBLE, to);
    if (found == 0) return 0;
    p->is_scaled = 1;
    if (found > 0 && isfinite(*to) && (may_be_0 || *to != 0)) return 0;
    snprintf(text, room, "its attribute %s is not one finite number%s", name, may_be_0 ? "" : " other than 0");
    return 1;
}

/* As the dataset has it, since the attribute may have more digits, or be beyond all that the dataset can hold: then no
 * number there is it. A fill of NAN needs no comparison. */
static int find_fill(hid_t set, hid_t type, const char *name, hdf5_packing *p, char *text, size_t room)
{
    char number[64];
    double said = 0;
    const int found = read_attribute(set, name, H5T_NATIVE_DOUBLE, &said);
    if (found < 0) snprintf(text, room, "its attribute %s is not one number", name);
    if (found < 0) return 1;
    if (found == 0 || isnan(said) || H5Tget_size(type) > sizeof number) return 0;
    if (read_attribute(set, name, type, number) < 0 ||
        H5Tconvert(type, p->is_real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, 1, number, NULL, H5P_DEFAULT) < 0)
        return -1;
    memcpy(&p->whole[p->fills], number, sizeof *p->whole);
    memcpy(&p->real[p->fills], number, sizeof *p->real);
    if (!p->is_real && said >= 0x1p63) {
        snprintf(text, room, "its attribute %s is %.0f; whole numbers are read up to 9223372036854775807", name, said);
        return 1;
    }
    p->fills += p->is_real || (double)p->whole[p->fills] == said;
    return 0;
}

static int find_all(hid_t set, hid_t type, hdf5_packing *p, char *text, size_t room)
{
    int result = find_fill(set, type, "_FillValue", p, text, room);
    if (result == 0) result = find_fill(set, type, "missing_value", p, text, room);
    if (result == 0) result = find_factor(set, "scale_factor", &p->scale, 0, p, text, room);
    if (result == 0) result = find_factor(set, "add_offset", &p->offset, 1, p, text, room);
    p->is_packed = p->fills || p->is_scaled;
    if (result || p->is_real || H5Tget_sign(type) == H5T_SGN_NONE || H5Aexists(set, "_Unsigned") <= 0) return result;
    snprintf(text, room,
             "its attribute _Unsigned says that its numbers have no sign, but its type has one; write it "
             "with a type that has none");
    return 1;
}

int hdf5_find_packing(hid_t set, hdf5_packing *p, char *text, size_t room)
{
    hid_t type = H5Dget_type(set);
    if (type < 0) return -1;
    *p = (hdf5_packing){.is_real = H5Tget_class(type) == H5T_FLOAT, .scale = 1};
    const int result = find_all(set, type, p, text, room);
    H5Tclose(type);
    return result;
}

typedef union number {
    int64_t whole;
    double real;
} number;

static int is_fill(const hdf5_packing *p, number n)
{
    for (uint32_t i = 0; i < p->fills; i++)
        if (p->is_real ? n.real == p->real[i] : n.whole == p->whole[i]) return 1;
    return 0;
}

/* Numbers as they are, of the largest kind, become those that are meant. */
static void unpack(const hdf5_packing *p, number *n, uint64_t numbers, int to_real, uint64_t row, uint64_t of_row,
                   pl_hdf5_missing *m)
{
    for (uint64_t i = 0; i < numbers; i++) {
        const int is_missing = is_fill(p, n[i]);
        if (is_missing && m->filled++ == 0) m->filled_row = row + i / of_row;
        if (!to_real) continue;
        const double is = p->is_real ? n[i].real : (double)n[i].whole;
        n[i].real = is_missing ? (double)NAN : p->is_scaled ? p->scale * is + p->offset : is;
    }
}

int hdf5_read_packed(hid_t set, const hdf5_packing *p, const uint64_t *first, const uint64_t *count, hid_t type,
                     void *to, pl_hdf5_missing *m)
{
    const int to_real = p->is_real || p->is_scaled || H5Tget_class(type) == H5T_FLOAT;
    hid_t space = H5Dget_space(set);
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : 0;
    uint64_t numbers = rank > 0;
    if (space >= 0) H5Sclose(space);
    for (int i = 0; i < rank; i++) numbers *= count[i];
    if (numbers == 0) return 0;
    number *n = calloc((size_t)numbers, sizeof *n);
    if (!n) return PL_HDF5_NO_MEMORY;
    int result = hdf5_read_part(set, first, count, p->is_real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, n);
    if (result == 0) unpack(p, n, numbers, to_real, first[0], numbers / count[0], m);
    if (result == 0 &&
        H5Tconvert(to_real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, type, (size_t)numbers, n, NULL, H5P_DEFAULT) < 0)
        result = -1;
    if (result == 0) memcpy(to, n, (size_t)numbers * H5Tget_size(type));
    free(n);
    return result;
}
