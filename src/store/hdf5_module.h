/* What the module plimsoll-hdf5.so offers: files in HDF5 form, made and read by libhdf5. It is loaded by who makes a
 * file of results or reads data of others, and by nothing else, so no page of libhdf5 is in a process that runs. Plain
 * values: the module is compiled from modules/hdf5.c alone and links nothing of src/. */
#ifndef PL_STORE_HDF5_MODULE_H
#define PL_STORE_HDF5_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define PL_HDF5_FILE   "plimsoll-hdf5.so"
#define PL_HDF5_SYMBOL "pl_hdf5_functions"
enum {
    PL_HDF5_VERSION = 5,
    PL_HDF5_RANK_MAX = 8,
    PL_HDF5_ALIGN = 4096,
    PL_HDF5_NO_MEMORY = -2,
    PL_HDF5_LACK_BYTES = 640
};

typedef struct pl_hdf5_array {
    const char *name;    /* "metrics/energy": groups are made as they are needed */
    const char *dtype;   /* "f32": pl_dtype_name */
    uint64_t text_bytes; /* not 0: texts of so many bytes, and shape is that of the texts */
    uint32_t rank;
    uint64_t shape[PL_HDF5_RANK_MAX];
    uint64_t offset; /* in the file: told by create */
} pl_hdf5_array;

typedef struct pl_hdf5_attribute {
    const char *group, *name;
    const char *text; /* NULL: the number */
    int64_t number;
} pl_hdf5_attribute;

/* A file of which a joined one shows its part: the whole of each array, beginning at `first` of the whole's first
 * dimension. */
typedef struct pl_hdf5_part {
    const char *path; /* as the joined file is to name it */
    uint64_t first, count;
} pl_hdf5_part;

/* One array of the joined file. Without `is_split` it is that of the first part. */
typedef struct pl_hdf5_joined {
    pl_hdf5_array of; /* its shape in the joined file */
    int is_split;
} pl_hdf5_joined;

/* What a dataset of another's file is. */
typedef struct pl_hdf5_seen {
    int is_there;  /* as a dataset */
    int is_number; /* integers or floating point */
    uint32_t rank;
    uint64_t shape[PL_HDF5_RANK_MAX];
    /* Of a number the smallest of f16, f32, f64, u8, i8, u16, i16, u32, i32, i64 that holds all of them (of those of 64
     * bits without a sign: which are below 2^63); "": there is none. f64 where an attribute scales the numbers. */
    char dtype[8];
    /* Of a number: what it takes from other files and is not there, or an attribute that cannot be followed; then it is
     * not to be read. "": nothing. */
    char lack[PL_HDF5_LACK_BYTES];
} pl_hdf5_seen;

/* What of a part that was read is not there: chunks that were never written, and numbers that an attribute
 * (_FillValue, missing_value) says are none. As real numbers these are NAN, as whole ones 0. */
typedef struct pl_hdf5_missing {
    uint64_t unwritten, filled;         /* numbers, of the one kind and the other */
    uint64_t unwritten_row, filled_row; /* where the first is, in the first dimension */
} pl_hdf5_missing;

/* Functions give 0, or -1 with a reason in `why`; those that read, PL_HDF5_NO_MEMORY where that is the reason. */
typedef struct pl_hdf5_module {
    uint32_t version;
    /* A file with these arrays, contiguous and allocated, their bytes not written; tells their offsets. */
    int (*create)(const char *path, pl_hdf5_array *, size_t arrays, const pl_hdf5_attribute *, size_t attributes,
                  char *why, size_t room);
    /* A file of virtual datasets over the parts, with the attributes of /metadata of the file at `like`. */
    int (*join)(const char *path, const pl_hdf5_joined *, size_t arrays, const pl_hdf5_part *, size_t parts,
                const char *like, char *why, size_t room);
    /* A file to be read; close it before another is opened or made, and before the module is unloaded. */
    int (*open)(const char *path, void **file, char *why, size_t room);
    void (*close)(void *file);
    int (*look)(void *file, const char *name, pl_hdf5_seen *, char *why, size_t room);
    /* The part that begins at `first`, so many of each dimension, as one of those dtypes, row-major; scaled where
     * attributes say so (scale_factor, add_offset). The part must lie in the dataset, which must be there, of numbers,
     * of rank 1 or more and without a lack. */
    int (*read)(void *file, const char *name, const uint64_t *first, const uint64_t *count, const char *dtype, void *to,
                pl_hdf5_missing *, char *why, size_t room);
} pl_hdf5_module;

#endif
