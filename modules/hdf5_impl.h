/* What the files of plimsoll-hdf5.so share. */
#ifndef PL_MODULES_HDF5_IMPL_H
#define PL_MODULES_HDF5_IMPL_H

#include <hdf5.h>

#include "store/hdf5_module.h"

/* ---- hdf5.c ---- */

typedef struct hdf5_reason {
    char *text;
    size_t room;
    int is_memory; /* that there was none of */
} hdf5_reason;

/* Opens the library; its first failure becomes the reason. */
void hdf5_begin(hdf5_reason *);
/* Closes the file and the library; result, or -1 where closing failed. */
int hdf5_end(hid_t file, int result, hdf5_reason *);
/* Between the two: what fails becomes the reason; NULL: nothing is noted. */
void hdf5_note(hdf5_reason *);
/* IEEE half precision, which libhdf5 has no name for. For H5Tclose. */
hid_t hdf5_make_half(void);

/* ---- hdf5_read.c ---- */

int hdf5_open(const char *path, void **file, char *why, size_t room);
void hdf5_close(void *file);
int hdf5_look(void *file, const char *name, pl_hdf5_seen *, char *why, size_t room);
int hdf5_read(void *file, const char *name, const uint64_t *first, const uint64_t *count, const char *dtype, void *to,
              pl_hdf5_missing *, char *why, size_t room);
hid_t hdf5_open_file(const char *path); /* to be read */
/* Whether each group on the way and the last link are there and lead somewhere. */
int hdf5_leads(hid_t file, const char *name);
/* Into `to`, and nothing is said of what is missing. */
int hdf5_read_part(hid_t set, const uint64_t *first, const uint64_t *count, hid_t type, void *to);

/* ---- hdf5_stored.c ---- */

/* Of each part [begin, begin + count) of the region that was never written. */
typedef void hdf5_hole(void *context, const hsize_t *begin, const hsize_t *count);
int hdf5_each_hole(hid_t set, const uint64_t *first, const uint64_t *count, hdf5_hole *, void *context);
/* 1, and a sentence: something that the dataset takes from other files is not there. 0: all is. -1: libhdf5 failed. */
int hdf5_find_lack(hid_t set, char *text, size_t room);

/* ---- hdf5_packed.c: what attributes say of the numbers (the CF conventions) ---- */

enum { HDF5_FILLS = 2 };

typedef struct hdf5_packing {
    int is_packed;  /* there is anything of what follows */
    int is_real;    /* the dataset holds real numbers, so a fill is one too */
    uint32_t fills; /* _FillValue, missing_value */
    int64_t whole[HDF5_FILLS];
    double real[HDF5_FILLS];
    int is_scaled;
    double scale, offset; /* the number that is meant is scale · number + offset */
} hdf5_packing;

/* As hdf5_find_lack: 1 for an attribute that cannot be followed. */
int hdf5_find_packing(hid_t set, hdf5_packing *, char *text, size_t room);
/* The numbers that are meant, as `type`; those that are missing NAN, where it is one of real numbers. */
int hdf5_read_packed(hid_t set, const hdf5_packing *, const uint64_t *first, const uint64_t *count, hid_t type,
                     void *to, pl_hdf5_missing *);

#endif
