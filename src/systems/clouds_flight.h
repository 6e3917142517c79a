/* A flight's three HDF5 files, read in bounded memory: what is told of its frames at once, its pictures one by one. The
 * module of libhdf5 is the planner's; nothing of it is in a run. */
#ifndef PL_SYSTEMS_CLOUDS_FLIGHT_H
#define PL_SYSTEMS_CLOUDS_FLIGHT_H

#include "data/clouds/frames.h"
#include "data/clouds/lidar.h"
#include "store/hdf5_module.h"

/* Of a config: the caller's texts. */
typedef struct pl_flight_files {
    const char *name;
    const char *camera, *lidar, *navigation; /* iFileName, cFileName, nFileName, as they can be opened */
} pl_flight_files;

typedef struct pl_flight {
    const pl_flight_files *files;
    uint64_t frames, labels;
    uint32_t rows, columns;   /* of a frame in the file; for its camera: so many rows or more */
    pl_frames_record *record; /* [frames]: times, angles, labels; no pictures yet */
} pl_flight;

/* PL_E_DATA, naming the file and what is wrong with it; PL_E_STORAGE where the system does not give it or another
 * process holds it; a flight with fewer than two labels, or with equal ones, is refused: its error has no scale. */
pl_status pl_flight_read(const pl_hdf5_module *, const pl_flight_files *, const pl_label_filter *, pl_flight *,
                         pl_error *);
void pl_flight_deinit(pl_flight *); /* a zeroed one is fine */
/* The last of that again, when labels were taken away. */
pl_status pl_flight_check_labels(const pl_flight *, const pl_label_filter *, pl_error *);

/* The frames of its camera; one flight at a time. */
typedef struct pl_flight_camera {
    const pl_hdf5_module *module;
    const pl_flight *flight;
    void *file;
} pl_flight_camera;

pl_status pl_flight_camera_open(pl_flight_camera *, const pl_hdf5_module *, const pl_flight *, pl_error *);
void pl_flight_camera_close(pl_flight_camera *);
/* Rows [first, end) of a frame; NAN where they were never written, or are said to be missing. */
pl_status pl_flight_camera_read(const pl_flight_camera *, uint64_t frame, uint32_t first, uint32_t end, float *out,
                                pl_error *);

#endif
