/* From flights in HDF5 to a frame file, once: it is kept and used again while the files and the wish are the same.
 * Frames are read one by one, so several gigabytes take the memory of a small flight (and 48 bytes for each frame). */
#ifndef PL_SYSTEMS_CLOUDS_PREPARE_H
#define PL_SYSTEMS_CLOUDS_PREPARE_H

#include "systems/clouds_flight.h"

typedef struct pl_clouds_options {
    const pl_flight_files *flight;
    uint32_t flights;
    uint32_t swath_begin, swath_end; /* rows of the camera's frames */
    double clip_limit;               /* of CLAHE */
    bool flat_field;
    const pl_label_filter *filter;
    uint32_t window;     /* frames around a label that get a picture; 0: every frame gets one */
    pl_frames_form form; /* of the pictures */
    uint64_t file_max;   /* bytes that the frame file may have */
    const char *path;    /* where it is, or is to be */
    bool in_child;       /* a child reads the flights (clouds_child.h) */
    uint64_t identity;   /* that a frame file which is made is to have: that of the run in this folder; 0: any */
    const char *run;
    /* Told of each picture; false stops the work. May be NULL. */
    bool (*progress)(void *, const char *flight, uint64_t done, uint64_t all);
    void *context;
    /* Called once before the file is written, never when it is used again: makes the folders, keeps others out. May be
     * NULL. */
    pl_status (*before_writing)(void *, pl_error *);
    void *writing;
} pl_clouds_options;

typedef struct pl_clouds_result {
    bool reused;
    char reason[256]; /* why it was made again although there was one; empty otherwise */
    pl_frames_info info;
} pl_clouds_result;

/* Was the frame file made of these flights, in this way? */
pl_status pl_clouds_match(const pl_clouds_options *, const pl_frames *, bool *same, pl_error *);
/* On success the frame file is complete. PL_E_STOPPED when progress said so; PL_E_CONFIG for flights without or with
 * the same name, a swath that the frames do not have, a file larger than file_max. */
pl_status pl_clouds_prepare(const pl_clouds_options *, pl_clouds_result *, pl_error *);

#endif
