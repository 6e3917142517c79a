/* What of a dataset is stored at all. Where a chunk was never written, the source of a virtual dataset is gone or an
 * external file is cut short, libhdf5 gives its fill value or nothing, and says nothing. So it is asked beforehand. */
#define _GNU_SOURCE /* realpath */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hdf5_impl.h"

enum { DEPTH_MAX = 16, PATH_BYTES = 4096 }; /* of virtual datasets over virtual datasets */

typedef struct answer {
    char *text;
    size_t room;
} answer;

static __attribute__((format(printf, 2, 3))) int lacks(const answer *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(a->text, a->room, format, arguments);
    va_end(arguments);
    return 1;
}

/* ---- chunks ---- */

/* 1: it is; -1: libhdf5 failed. The first question finds a chunk in its index, and fails for one that is not there as
 * for any other reason; the second, which looks at all chunks, tells the two apart. */
static int is_stored(hid_t set, const hsize_t *offset)
{
    hsize_t bytes = 0;
    unsigned mask;
    haddr_t at = HADDR_UNDEF;
    herr_t found;
    H5E_BEGIN_TRY { found = H5Dget_chunk_storage_size(set, offset, &bytes); }
    H5E_END_TRY;
    if (found >= 0 && bytes) return 1;
    if (H5Dget_chunk_info_by_coord(set, offset, &mask, &at, &bytes) < 0) return -1;
    return at != HADDR_UNDEF;
}

typedef struct region {
    const uint64_t *first, *count;
    int rank;
    hsize_t chunk[H5S_MAX_RANK];
} region;

static void tell_hole(const region *r, const hsize_t *offset, hdf5_hole *hole, void *context)
{
    hsize_t begin[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    for (int i = 0; i < r->rank; i++) {
        const hsize_t end = offset[i] + r->chunk[i], last = r->first[i] + r->count[i];
        begin[i] = offset[i] > r->first[i] ? offset[i] : r->first[i];
        count[i] = (end < last ? end : last) - begin[i];
    }
    hole(context, begin, count);
}

static int each_chunk(hid_t set, const region *r, hdf5_hole *hole, void *context)
{
    hsize_t offset[H5S_MAX_RANK], low[H5S_MAX_RANK];
    for (int i = 0; i < r->rank; i++) offset[i] = low[i] = r->first[i] / r->chunk[i] * r->chunk[i];
    for (;;) {
        const int there = is_stored(set, offset);
        if (there < 0) return -1;
        if (!there) tell_hole(r, offset, hole, context);
        int i = r->rank - 1;
        for (; i >= 0 && (offset[i] += r->chunk[i]) >= r->first[i] + r->count[i]; i--) offset[i] = low[i];
        if (i < 0) return 0;
    }
}

static int is_whole(hid_t set, hid_t properties)
{
    return H5Pget_layout(properties) != H5D_CONTIGUOUS || H5Pget_external_count(properties) != 0 ||
           H5Dget_storage_size(set) > 0;
}

int hdf5_each_hole(hid_t set, const uint64_t *first, const uint64_t *count, hdf5_hole *hole, void *context)
{
    hid_t space = H5Dget_space(set), properties = H5Dget_create_plist(set);
    region r = {.first = first, .count = count, .rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1};
    int result = r.rank < 0 || properties < 0 ? -1 : 0, is_empty = 0;
    for (int i = 0; i < r.rank; i++) is_empty |= count[i] == 0;
    const int is_chunked = result == 0 && H5Pget_layout(properties) == H5D_CHUNKED;
    for (int i = 0; i < r.rank && !is_chunked; i++) r.chunk[i] = first[i] + count[i]; /* as if it were one */
    if (is_chunked && H5Pget_chunk(properties, H5S_MAX_RANK, r.chunk) != r.rank) result = -1;
    if (result == 0 && !is_empty && is_chunked) result = each_chunk(set, &r, hole, context);
    if (result == 0 && !is_empty && !is_chunked && !is_whole(set, properties))
        tell_hole(&r, (const hsize_t[H5S_MAX_RANK]){0}, hole, context);
    if (properties >= 0) H5Pclose(properties);
    if (space >= 0) H5Sclose(space);
    return result;
}

/* ---- where other files are ---- */

/* The folder of a path, with its slash; "": none. */
static void find_folder(const char *path, char folder[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_BYTES, "%.*s", slash ? (int)(slash - path) + 1 : 0, path);
}

static hid_t open_in(const char *folder, size_t bytes, const char *name)
{
    char path[2 * PATH_BYTES];
    hid_t file;
    snprintf(path, sizeof path, "%.*s%s%s", (int)bytes, folder, bytes && folder[bytes - 1] != '/' ? "/" : "", name);
    H5E_BEGIN_TRY { file = hdf5_open_file(path); }
    H5E_END_TRY;
    return file;
}

static hid_t open_by_environment(const char *name)
{
    hid_t file = H5I_INVALID_HID;
    const char *list = getenv("HDF5_VDS_PREFIX");
    while (list && *list && file < 0) {
        const size_t bytes = strcspn(list, ":");
        if (bytes) file = open_in(list, bytes, name);
        list += bytes + (list[bytes] == ':');
    }
    return file;
}

/* In the order in which libhdf5 looks for it. */
static hid_t open_source(hid_t set, const char *name)
{
    char path[PATH_BYTES], folder[PATH_BYTES], real[PATH_BYTES];
    hid_t file = H5I_INVALID_HID;
    if (strcmp(name, ".") == 0) return H5Iget_file_id(set);
    if (H5Fget_name(set, path, sizeof path) < 0) return file;
    if (name[0] == '/') file = open_in("", 0, name), name = strrchr(name, '/') + 1;
    if (file < 0) file = open_by_environment(name);
    find_folder(path, folder);
    if (file < 0) file = open_in(folder, strlen(folder), name);
    if (file < 0) file = open_in("", 0, name);
    if (file >= 0 || !realpath(path, real)) return file;
    find_folder(real, folder);
    return open_in(folder, strlen(folder), name);
}

/* Likewise, of an external file. */
static void find_external(hid_t set, const char *name, char path[2 * PATH_BYTES])
{
    static const char origin[] = "${ORIGIN}";
    char own[PATH_BYTES], folder[PATH_BYTES] = "";
    const char *prefix = getenv("HDF5_EXTFILE_PREFIX");
    const int is_relative = name[0] != '/' && prefix && prefix[0];
    if (is_relative && strncmp(prefix, origin, sizeof origin - 1) == 0) {
        if (H5Fget_name(set, own, sizeof own) >= 0) find_folder(own, folder);
        prefix += sizeof origin - 1;
        if (folder[0] && prefix[0] == '/') prefix++;
    }
    snprintf(path, 2 * PATH_BYTES, "%s%s%s%s", folder, is_relative ? prefix : "", is_relative ? "/" : "", name);
}

/* ---- external files ---- */

static int check_external(hid_t set, hid_t properties, uint64_t bytes, const answer *a)
{
    char name[PATH_BYTES], path[2 * PATH_BYTES];
    struct stat st;
    const int files = H5Pget_external_count(properties);
    for (int i = 0; i < files && bytes; i++) {
        off_t offset = 0;
        hsize_t size = 0;
        if (H5Pget_external(properties, (unsigned)i, sizeof name, name, &offset, &size) < 0) return -1;
        name[sizeof name - 1] = 0;
        const uint64_t part = size == H5F_UNLIMITED || size > bytes ? bytes : size;
        find_external(set, name, path);
        if (stat(path, &st) != 0) return lacks(a, "its external file %.300s is not there; copy it here as well", name);
        if ((uint64_t)st.st_size < (uint64_t)offset + part)
            return lacks(a, "its external file %.300s has %llu bytes, and %llu are needed; copy the whole file again",
                         name, (unsigned long long)st.st_size, (unsigned long long)((uint64_t)offset + part));
        bytes -= part;
    }
    return 0;
}

static int look_at_external(hid_t set, hid_t properties, const answer *a)
{
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    const hssize_t numbers = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    const int result = numbers < 0 || type < 0
                           ? -1
                           : check_external(set, properties, (uint64_t)numbers * (uint64_t)H5Tget_size(type), a);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return result;
}

/* ---- virtual datasets ---- */

static int find_lack(hid_t set, int depth, const answer *a);

typedef struct source {
    char name[PATH_BYTES], set[1024];
    hid_t taken; /* of the source */
    hssize_t numbers;
} source;

static void note_row(void *context, const hsize_t *begin, const hsize_t *count)
{
    uint64_t *row = context;
    (void)count;
    if (begin[0] < *row) *row = begin[0];
}

/* What is taken of the source must be in it, and stored. */
static int check_region(const source *s, hid_t from, const answer *a)
{
    hid_t space = H5Dget_space(from);
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    hsize_t begin[H5S_MAX_RANK] = {0}, last[H5S_MAX_RANK], shape[H5S_MAX_RANK] = {0};
    uint64_t first[H5S_MAX_RANK], count[H5S_MAX_RANK], row = UINT64_MAX;
    const int takes_all = H5Sget_select_type(s->taken) == H5S_SEL_ALL;
    int result = rank < 0 || H5Sget_simple_extent_dims(space, shape, NULL) < 0 ? -1 : 0;
    int fits = rank == H5Sget_simple_extent_ndims(s->taken);
    for (int i = 0; i < rank; i++) last[i] = shape[i] - 1;
    if (takes_all) fits = space >= 0 && H5Sget_simple_extent_npoints(space) == s->numbers;
    if (fits && !takes_all && H5Sget_select_bounds(s->taken, begin, last) < 0) result = -1;
    for (int i = 0; i < rank; i++) fits &= last[i] < shape[i], first[i] = begin[i], count[i] = last[i] - begin[i] + 1;
    if (space >= 0) H5Sclose(space);
    if (result) return result;
    if (!fits) return lacks(a, "its source %.300s has less of %.100s than is taken from it", s->name, s->set);
    if (hdf5_each_hole(from, first, count, note_row, &row) < 0) return -1;
    return row == UINT64_MAX ? 0
                             : lacks(a, "of its source %.300s, dataset %.100s, row %llu was never written", s->name,
                                     s->set, (unsigned long long)row);
}

static int check_source(hid_t set, const source *s, int depth, const answer *a)
{
    char inner[256] = "";
    hid_t file = open_source(set, s->name), from = H5I_INVALID_HID;
    if (file < 0) return lacks(a, "its source %.300s is not there, or is no HDF5 file; copy it here as well", s->name);
    if (hdf5_leads(file, s->set)) from = H5Oopen(file, s->set, H5P_DEFAULT);
    int result = from >= 0 && H5Iget_type(from) == H5I_DATASET
                     ? find_lack(from, depth + 1, &(answer){inner, sizeof inner})
                     : lacks(a, "its source %.300s has no dataset %.100s", s->name, s->set);
    if (result == 0)
        result = check_region(s, from, a);
    else if (result > 0 && inner[0])
        (void)lacks(a, "its source %.300s, dataset %.100s: %s", s->name, s->set, inner);
    if (from >= 0) H5Oclose(from);
    H5Fclose(file);
    return result;
}

/* Takes it away from what no source was found for yet. 1: it has no end. */
static int take_away(hid_t rest, hid_t taken)
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    const int rank = H5Sget_simple_extent_ndims(rest);
    if (H5Sget_select_type(taken) == H5S_SEL_ALL) return H5Sselect_none(rest) < 0 ? -1 : 0;
    if (H5Sis_regular_hyperslab(taken) > 0) {
        if (H5Sget_regular_hyperslab(taken, start, stride, count, block) < 0) return -1;
        for (int i = 0; i < rank; i++)
            if (count[i] == H5S_UNLIMITED || block[i] == H5S_UNLIMITED) return 1;
        return H5Sselect_hyperslab(rest, H5S_SELECT_NOTB, start, stride, count, block) < 0 ? -1 : 0;
    }
    const hssize_t blocks = H5Sget_select_hyper_nblocks(taken);
    hsize_t corner[2 * H5S_MAX_RANK];
    if (blocks < 0) return -1;
    for (hssize_t n = 0; n < blocks; n++) {
        if (H5Sget_select_hyper_blocklist(taken, (hsize_t)n, 1, corner) < 0) return -1;
        for (int i = 0; i < rank; i++) count[i] = 1, block[i] = corner[rank + i] - corner[i] + 1;
        if (H5Sselect_hyperslab(rest, H5S_SELECT_NOTB, corner, NULL, count, block) < 0) return -1;
    }
    return 0;
}

static int check_mapping(hid_t set, hid_t properties, size_t number, hid_t rest, int depth, const answer *a)
{
    source s = {.taken = H5Pget_virtual_srcspace(properties, number)};
    hid_t to = H5Pget_virtual_vspace(properties, number);
    int result = s.taken < 0 || to < 0 || H5Pget_virtual_filename(properties, number, s.name, sizeof s.name) < 0 ||
                         H5Pget_virtual_dsetname(properties, number, s.set, sizeof s.set) < 0
                     ? -1
                     : take_away(rest, to);
    if (result > 0)
        (void)lacks(a, "its sources are taken without an end, so what is missing of them is not known; copy it "
                       "into one dataset (h5repack)");
    if (result == 0) s.numbers = H5Sget_select_npoints(to), result = check_source(set, &s, depth, a);
    if (to >= 0) H5Sclose(to);
    if (s.taken >= 0) H5Sclose(s.taken);
    return result;
}

static int look_at_sources(hid_t set, hid_t properties, int depth, const answer *a)
{
    size_t mappings = 0;
    hsize_t begin[H5S_MAX_RANK], last[H5S_MAX_RANK];
    hid_t rest = H5Dget_space(set);
    int result = rest < 0 || H5Pget_virtual_count(properties, &mappings) < 0 ? -1 : 0;
    if (result == 0 && depth >= DEPTH_MAX) result = lacks(a, "its sources lead back to it");
    for (size_t i = 0; i < mappings && result == 0; i++) result = check_mapping(set, properties, i, rest, depth, a);
    if (result == 0 && H5Sget_select_npoints(rest) > 0) {
        result = H5Sget_select_bounds(rest, begin, last) < 0 ? -1 : 1;
        if (result > 0) (void)lacks(a, "no source is named for its item %llu", (unsigned long long)begin[0]);
    }
    if (rest >= 0) H5Sclose(rest);
    return result;
}

static int find_lack(hid_t set, int depth, const answer *a)
{
    hid_t properties = H5Dget_create_plist(set);
    int result = properties < 0 ? -1 : 0;
    a->text[0] = 0;
    if (result == 0 && H5Pget_layout(properties) == H5D_VIRTUAL) result = look_at_sources(set, properties, depth, a);
    if (result == 0 && H5Pget_external_count(properties) > 0) result = look_at_external(set, properties, a);
    if (properties >= 0) H5Pclose(properties);
    return result;
}

int hdf5_find_lack(hid_t set, char *text, size_t room) { return find_lack(set, 0, &(answer){text, room}); }
