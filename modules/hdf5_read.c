/* Reading datasets of other people's files. What is not there is never a number: what of the caller's memory was not
 * read is NAN, or 0 where numbers are whole, and said to be missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5_impl.h"

typedef struct open_file {
    hid_t file;
} open_file;

static int result_of(int result, const hdf5_reason *r) { return result && r->is_memory ? PL_HDF5_NO_MEMORY : result; }

hid_t hdf5_open_file(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
    /* Who writes it has it locked, and is not read; a file system without locks has none to ask for. */
    if (access >= 0 && H5Pset_file_locking(access, 1, 1) >= 0) file = H5Fopen(path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

int hdf5_open(const char *path, void **opened, char *why, size_t room)
{
    hdf5_reason r = {why, room, 0};
    hdf5_begin(&r);
    hid_t file = hdf5_open_file(path);
    open_file *f = file >= 0 ? malloc(sizeof *f) : NULL;
    r.is_memory |= file >= 0;
    if (!f) return result_of(hdf5_end(file, -1, &r), &r);
    f->file = file;
    *opened = f;
    hdf5_note(NULL); /* the room is the caller's: each call brings its own */
    return 0;
}

void hdf5_close(void *opened)
{
    open_file *f = opened;
    char why[64];
    hdf5_reason r = {why, sizeof why, 0};
    hdf5_end(f->file, 0, &r);
    free(f);
}

int hdf5_leads(hid_t file, const char *name)
{
    char part[256];
    if (!name[0] || strlen(name) >= sizeof part) return 0;
    for (size_t i = 0; i <= strlen(name); i++) {
        if ((name[i] && name[i] != '/') || i == 0) continue;
        snprintf(part, sizeof part, "%.*s", (int)i, name);
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0 || H5Oexists_by_name(file, part, H5P_DEFAULT) <= 0) return 0;
    }
    return 1;
}

/* ---- what a dataset is ---- */

/* In either byte order. */
static int is_half(hid_t type)
{
    hid_t half = hdf5_make_half();
    int is =
        half >= 0 && (H5Tequal(type, half) > 0 || (H5Tset_order(half, H5T_ORDER_BE) >= 0 && H5Tequal(type, half) > 0));
    if (half >= 0) H5Tclose(half);
    return is;
}

static const char *real_that_holds(hid_t type, size_t bytes)
{
    if (bytes > 8) return "";
    if (is_half(type)) return "f16";
    return bytes > 4 || H5Tget_precision(type) > 32 ? "f64" : "f32";
}

static const char *integer_that_holds(hid_t type, size_t bytes)
{
    static const char *const without[] = {"u8", "u16", "u32", "i64"}, *const with[] = {"i8", "i16", "i32", "i64"};
    const int k = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : 3;
    if (bytes > 8) return "";
    return H5Tget_sign(type) == H5T_SGN_NONE ? without[k] : with[k];
}

static const char *dtype_that_holds(hid_t type, H5T_class_t kind)
{
    const size_t bytes = H5Tget_size(type);
    if (kind == H5T_FLOAT) return real_that_holds(type, bytes);
    return kind == H5T_INTEGER ? integer_that_holds(type, bytes) : "";
}

static int look_at_numbers(hid_t set, pl_hdf5_seen *seen)
{
    hdf5_packing packing;
    int lacks = hdf5_find_lack(set, seen->lack, sizeof seen->lack);
    if (lacks == 0) lacks = hdf5_find_packing(set, &packing, seen->lack, sizeof seen->lack);
    if (lacks == 0 && packing.is_scaled && seen->dtype[0]) snprintf(seen->dtype, sizeof seen->dtype, "f64");
    return lacks < 0 ? -1 : 0;
}

static int look_at(hid_t set, pl_hdf5_seen *seen)
{
    hsize_t shape[H5S_MAX_RANK] = {0};
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    const H5T_class_t kind = type >= 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    int result = rank < 0 || H5Sget_simple_extent_dims(space, shape, NULL) < 0 ? -1 : 0;
    seen->is_there = 1;
    seen->is_number = kind == H5T_INTEGER || kind == H5T_FLOAT;
    snprintf(seen->dtype, sizeof seen->dtype, "%s", type >= 0 ? dtype_that_holds(type, kind) : "");
    seen->rank = rank < 0 ? 0 : (uint32_t)rank;
    for (uint32_t i = 0; i < seen->rank && i < PL_HDF5_RANK_MAX; i++) seen->shape[i] = shape[i];
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return result == 0 && seen->is_number ? look_at_numbers(set, seen) : result;
}

int hdf5_look(void *opened, const char *name, pl_hdf5_seen *seen, char *why, size_t room)
{
    const open_file *f = opened;
    hdf5_reason r = {why, room, 0};
    snprintf(why, room, "%s", "");
    memset(seen, 0, sizeof *seen);
    if (!hdf5_leads(f->file, name)) return 0;
    hdf5_note(&r);
    hid_t object = H5Oopen(f->file, name, H5P_DEFAULT);
    int result = object < 0 ? -1 : H5Iget_type(object) == H5I_DATASET ? look_at(object, seen) : 0;
    if (object >= 0) H5Oclose(object);
    hdf5_note(NULL);
    return result_of(result, &r);
}

/* ---- its numbers ---- */

/* As this machine has it in memory; for H5Tclose. */
static hid_t native_type(const char *dtype)
{
    if (strcmp(dtype, "f16") == 0) return hdf5_make_half(); /* little endian, as Plimsoll's machines are */
    const struct {
        const char *name;
        hid_t type;
    } types[] = {{"f64", H5T_NATIVE_DOUBLE}, {"f32", H5T_NATIVE_FLOAT},  {"u8", H5T_NATIVE_UINT8},
                 {"i8", H5T_NATIVE_INT8},    {"u16", H5T_NATIVE_UINT16}, {"i16", H5T_NATIVE_INT16},
                 {"i32", H5T_NATIVE_INT32},  {"i64", H5T_NATIVE_INT64},  {"u32", H5T_NATIVE_UINT32}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(dtype, types[i].name) == 0) return H5Tcopy(types[i].type);
    return H5I_INVALID_HID;
}

int hdf5_read_part(hid_t set, const uint64_t *first, const uint64_t *count, hid_t type, void *to)
{
    hsize_t start[H5S_MAX_RANK], many[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set), memory = H5I_INVALID_HID;
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    int result = -1;
    for (int i = 0; i < rank; i++) start[i] = first[i], many[i] = count[i];
    if (rank > 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, many, NULL) >= 0)
        memory = H5Screate_simple(rank, many, NULL);
    if (memory >= 0 && H5Dread(set, type, memory, space, H5P_DEFAULT, to) >= 0) result = 0;
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    return result;
}

typedef struct target {
    const uint64_t *first, *count; /* of the region, which `to` is all of */
    int rank;
    size_t bytes; /* of a number */
    int blank;    /* bytes of what is missing: all ones are a NAN */
    char *to;
    pl_hdf5_missing *missing;
} target;

/* libhdf5 may have given its fill value there, which is a number like any other. */
static void blank_hole(void *context, const hsize_t *begin, const hsize_t *count)
{
    const target *t = context;
    const int last = t->rank - 1;
    hsize_t at[H5S_MAX_RANK] = {0};
    uint64_t rows = 1;
    for (int i = 0; i < last; i++) rows *= count[i];
    for (uint64_t n = 0; n < rows; n++) {
        uint64_t offset = 0;
        for (int i = 0; i < t->rank; i++) offset = offset * t->count[i] + begin[i] - t->first[i] + at[i];
        memset(t->to + offset * t->bytes, t->blank, (size_t)count[last] * t->bytes);
        for (int i = last - 1; i >= 0 && ++at[i] == count[i]; i--) at[i] = 0;
    }
    if (t->missing->unwritten == 0) t->missing->unwritten_row = begin[0]; /* they come in order */
    t->missing->unwritten += rows * count[last];
}

static int read_numbers(hid_t set, hid_t type, const target *t)
{
    char ignored[64];
    hdf5_packing packing;
    uint64_t numbers = 1;
    for (int i = 0; i < t->rank; i++) numbers *= t->count[i];
    memset(t->to, t->blank, (size_t)numbers * t->bytes);
    if (hdf5_find_packing(set, &packing, ignored, sizeof ignored) != 0) return -1;
    return packing.is_packed ? hdf5_read_packed(set, &packing, t->first, t->count, type, t->to, t->missing)
                             : hdf5_read_part(set, t->first, t->count, type, t->to);
}

static int rank_of(hid_t set)
{
    hid_t space = H5Dget_space(set);
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    if (space >= 0) H5Sclose(space);
    return rank;
}

static void count_hole(void *context, const hsize_t *begin, const hsize_t *count)
{
    (void)begin, (void)count;
    ++*(uint64_t *)context;
}

/* A chunk that was read lies in the dataset's cache, and libhdf5 says that it is there. So what is stored is asked of
 * the dataset as it is just opened. */
static int read_set(hid_t file, const char *name, const char *dtype, target *t)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = native_type(dtype);
    uint64_t holes = 0;
    int result = -1;
    if (set >= 0 && type >= 0) t->rank = rank_of(set), t->bytes = H5Tget_size(type);
    if (t->rank > 0) result = hdf5_each_hole(set, t->first, t->count, count_hole, &holes);
    if (result == 0) result = read_numbers(set, type, t);
    if (type >= 0) H5Tclose(type);
    if (set >= 0) H5Dclose(set);
    if (result || holes == 0) return result;
    set = H5Dopen2(file, name, H5P_DEFAULT);
    if (set < 0) return -1;
    result = hdf5_each_hole(set, t->first, t->count, blank_hole, t);
    H5Dclose(set);
    return result;
}

int hdf5_read(void *opened, const char *name, const uint64_t *first, const uint64_t *count, const char *dtype, void *to,
              pl_hdf5_missing *missing, char *why, size_t room)
{
    const open_file *f = opened;
    hdf5_reason r = {why, room, 0};
    target t = {.first = first, .count = count, .to = to, .blank = dtype[0] == 'f' ? 0xff : 0, .missing = missing};
    snprintf(why, room, "%s", "");
    *missing = (pl_hdf5_missing){0, 0, 0, 0};
    hdf5_note(&r);
    const int result = read_set(f->file, name, dtype, &t);
    if (result && !why[0]) snprintf(why, room, "libhdf5 gave no reason");
    hdf5_note(NULL);
    return result_of(result, &r);
}
