/* plimsoll-hdf5.so: makes and reads files in HDF5 form (src/store/hdf5_module.h). In what it makes, all that could
 * differ from one time to the next (times, alignment, order) is set, so that the same request gives the same bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5_impl.h"

/* ---- errors ---- */

/* The innermost of a stack of errors: it names what failed, the others where. */
static herr_t note_innermost(unsigned n, const H5E_error2_t *e, void *context)
{
    hdf5_reason *r = context;
    if (n == 0 && e->desc) snprintf(r->text, r->room, "libhdf5: %s", e->desc);
    if (n == 0) r->is_memory = e->maj_num == H5E_RESOURCE && e->min_num == H5E_NOSPACE;
    return 0;
}

/* Called by libhdf5 at each failure, in place of printing. The first one is the cause. */
static herr_t note_reason(hid_t stack, void *context)
{
    hdf5_reason *r = context;
    return r->text[0] ? 0 : H5Ewalk2(stack, H5E_WALK_UPWARD, note_innermost, r);
}

void hdf5_note(hdf5_reason *r) { H5Eset_auto2(H5E_DEFAULT, r ? note_reason : NULL, r); }

void hdf5_begin(hdf5_reason *r)
{
    snprintf(r->text, r->room, "%s", "");
    H5dont_atexit(); /* the module is unloaded after each use */
    H5open();
    hdf5_note(r);
}

int hdf5_end(hid_t file, int result, hdf5_reason *r)
{
    if (file >= 0 && H5Fclose(file) < 0) result = -1;
    if (result && !r->text[0]) snprintf(r->text, r->room, "libhdf5 gave no reason");
    hdf5_note(NULL);
    H5close();
    return result;
}

hid_t hdf5_make_half(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    if (type < 0) return type;
    if (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_size(type, 2) < 0 || H5Tset_ebias(type, 15) < 0)
        return H5Tclose(type), H5I_INVALID_HID;
    return type;
}

static hid_t make_text(size_t bytes)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0) return type;
    if (H5Tset_size(type, bytes) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 ||
        H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        return H5Tclose(type), H5I_INVALID_HID;
    return type;
}

/* bf16 has no type in HDF5: its 16 bits as they are. */
static hid_t make_type(const pl_hdf5_array *a)
{
    if (a->text_bytes) return make_text(a->text_bytes);
    if (strcmp(a->dtype, "f16") == 0) return hdf5_make_half();
    const struct {
        const char *name;
        hid_t type;
    } types[] = {{"f32", H5T_IEEE_F32LE}, {"f64", H5T_IEEE_F64LE}, {"bf16", H5T_STD_U16LE},
                 {"u16", H5T_STD_U16LE},  {"u8", H5T_STD_U8LE},    {"i8", H5T_STD_I8LE},
                 {"i16", H5T_STD_I16LE},  {"i32", H5T_STD_I32LE},  {"i64", H5T_STD_I64LE}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(a->dtype, types[i].name) == 0) return H5Tcopy(types[i].type);
    return H5I_INVALID_HID;
}

/* ---- the file ---- */

static hid_t create_file(const char *path)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE), file = H5I_INVALID_HID;
    if (access >= 0 && creation >= 0 && H5Pset_alignment(access, 2048, PL_HDF5_ALIGN) >= 0 &&
        H5Pset_file_locking(access, 0, 1) >= 0 && H5Pset_obj_track_times(creation, 0) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    H5Pclose(access);
    H5Pclose(creation);
    return file;
}

static hid_t create_dataset(hid_t file, const pl_hdf5_array *a, hid_t properties)
{
    hsize_t shape[PL_HDF5_RANK_MAX];
    for (uint32_t i = 0; i < a->rank; i++) shape[i] = a->shape[i];
    hid_t links = H5Pcreate(H5P_LINK_CREATE), type = make_type(a), set = H5I_INVALID_HID;
    hid_t space = a->rank ? H5Screate_simple((int)a->rank, shape, NULL) : H5Screate(H5S_SCALAR);
    if (links >= 0 && type >= 0 && space >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0 &&
        H5Pset_obj_track_times(properties, 0) >= 0)
        set = H5Dcreate2(file, a->name, type, space, links, properties, H5P_DEFAULT);
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(links);
    return set;
}

/* ---- create ---- */

/* Contiguous, given its place now, and never filled: what is reserved beforehand is written once, by the run. */
static int create_array(hid_t file, pl_hdf5_array *a)
{
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), set = H5I_INVALID_HID;
    if (H5Pset_layout(properties, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER) >= 0)
        set = create_dataset(file, a, properties);
    haddr_t offset = set >= 0 ? H5Dget_offset(set) : HADDR_UNDEF;
    a->offset = offset;
    H5Pclose(properties);
    if (set >= 0) H5Dclose(set);
    return offset == HADDR_UNDEF ? -1 : 0;
}

static hid_t open_group(hid_t file, const char *name)
{
    hid_t links, group;
    if (!*name) return H5Gopen2(file, "/", H5P_DEFAULT);
    if (H5Lexists(file, name, H5P_DEFAULT) > 0) return H5Gopen2(file, name, H5P_DEFAULT);
    links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(creation, 0);
    group = H5Gcreate2(file, name, links, creation, H5P_DEFAULT);
    H5Pclose(creation);
    H5Pclose(links);
    return group;
}

static int create_attribute(hid_t file, const pl_hdf5_attribute *a)
{
    size_t bytes = a->text ? strlen(a->text) : 0;
    hid_t group = open_group(file, a->group), space = H5Screate(H5S_SCALAR), set = H5I_INVALID_HID;
    hid_t type = a->text ? make_text(bytes ? bytes : 1) : H5Tcopy(H5T_STD_I64LE);
    int ok = -1;
    if (group >= 0 && space >= 0 && type >= 0) set = H5Acreate2(group, a->name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (set >= 0) ok = H5Awrite(set, type, a->text ? (const void *)a->text : &a->number) >= 0 ? 0 : -1;
    if (set >= 0) H5Aclose(set);
    H5Tclose(type);
    H5Sclose(space);
    if (group >= 0) H5Gclose(group);
    return ok;
}

static int create(const char *path, pl_hdf5_array *arrays, size_t array_count, const pl_hdf5_attribute *attributes,
                  size_t attribute_count, char *why, size_t room)
{
    hdf5_reason r = {why, room, 0};
    hdf5_begin(&r);
    hid_t file = create_file(path);
    int result = file < 0 ? -1 : 0;
    for (size_t i = 0; i < array_count && result == 0; i++) result = create_array(file, &arrays[i]);
    for (size_t i = 0; i < attribute_count && result == 0; i++) result = create_attribute(file, &attributes[i]);
    return hdf5_end(file, result, &r);
}

/* ---- join ---- */

static int map_part(hid_t properties, hid_t space, const pl_hdf5_array *a, const pl_hdf5_part *part)
{
    hsize_t start[PL_HDF5_RANK_MAX] = {part->first}, count[PL_HDF5_RANK_MAX];
    for (uint32_t i = 0; i < a->rank; i++) count[i] = i ? a->shape[i] : part->count;
    hid_t source = H5Screate_simple((int)a->rank, count, NULL);
    int ok = source >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
             H5Pset_virtual(properties, space, part->path, a->name, source) >= 0;
    H5Sclose(source);
    return ok ? 0 : -1;
}

static int join_array(hid_t file, const pl_hdf5_joined *j, const pl_hdf5_part *parts, size_t part_count)
{
    const pl_hdf5_array *a = &j->of;
    const pl_hdf5_part all = {parts[0].path, 0, a->rank ? a->shape[0] : 1};
    hsize_t shape[PL_HDF5_RANK_MAX];
    for (uint32_t i = 0; i < a->rank; i++) shape[i] = a->shape[i];
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple((int)a->rank, shape, NULL);
    hid_t set = H5I_INVALID_HID;
    int result = properties < 0 || space < 0 ? -1 : 0;
    for (size_t i = 0; i < (j->is_split ? part_count : 1) && result == 0; i++)
        result = map_part(properties, space, a, j->is_split ? &parts[i] : &all);
    if (result == 0) set = create_dataset(file, a, properties);
    if (set < 0) result = -1;
    if (set >= 0) H5Dclose(set);
    H5Sclose(space);
    H5Pclose(properties);
    return result;
}

static herr_t copy_attribute(hid_t from, const char *name, const H5A_info_t *info, void *context)
{
    char bytes[1 << 16];
    const hid_t to = *(const hid_t *)context, old = H5Aopen(from, name, H5P_DEFAULT);
    (void)info;
    hid_t type = H5Aget_type(old), space = H5Aget_space(old), set = H5I_INVALID_HID;
    herr_t result = -1;
    if (type >= 0 && space >= 0 && H5Aget_storage_size(old) <= sizeof bytes && H5Aread(old, type, bytes) >= 0)
        set = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (set >= 0) result = H5Awrite(set, type, bytes);
    if (set >= 0) H5Aclose(set);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(old);
    return result < 0 ? -1 : 0;
}

/* /metadata says what made the parts; what is the same in all of them stands in the joined file. */
static int copy_metadata(hid_t file, const char *like)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), from, old, group;
    H5Pset_file_locking(access, 0, 1);
    from = H5Fopen(like, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (from < 0) return -1;
    int result = 0;
    if (H5Lexists(from, "metadata", H5P_DEFAULT) > 0) {
        hsize_t at = 0;
        old = H5Gopen2(from, "metadata", H5P_DEFAULT);
        group = open_group(file, "metadata");
        result =
            old >= 0 && group >= 0 && H5Aiterate2(old, H5_INDEX_NAME, H5_ITER_INC, &at, copy_attribute, &group) >= 0
                ? 0
                : -1;
        if (group >= 0) H5Gclose(group);
        if (old >= 0) H5Gclose(old);
    }
    H5Fclose(from);
    return result;
}

static int join(const char *path, const pl_hdf5_joined *arrays, size_t array_count, const pl_hdf5_part *parts,
                size_t part_count, const char *like, char *why, size_t room)
{
    hdf5_reason r = {why, room, 0};
    hdf5_begin(&r);
    hid_t file = create_file(path);
    int result = file < 0 ? -1 : copy_metadata(file, like);
    for (size_t i = 0; i < array_count && result == 0; i++) result = join_array(file, &arrays[i], parts, part_count);
    return hdf5_end(file, result, &r);
}

extern __attribute__((visibility("default"))) const pl_hdf5_module pl_hdf5_functions; /* PL_HDF5_SYMBOL */
const pl_hdf5_module pl_hdf5_functions = {PL_HDF5_VERSION, create, join, hdf5_open, hdf5_close, hdf5_look, hdf5_read};
