/* The frame file: flights as a model reads them, made once from other files, read by position. Little-endian.
 *
 *      0  "PLMFRAME"                         48  u64 key: a hash of what it was made from
 *      8  u32 version (2)                    56  u64 xxh64 of flights and records
 *     12  u32 header bytes (128)             64  u64 xxh64 of the table of checksums
 *     16  u32 height, 20 u32 width           72  zeros
 *     24  u32 form (0: u8, 1: f16)          120  u64 xxh64 of bytes 0 … 119
 *     28  u32 flights
 *     32  u64 frames                       4096  pictures, each from a multiple of 64
 *     40  u64 pictures                           then the flights, the frames' records, one u64 xxh64 a picture, and
 *                                                for each flight its camera, lidar and navigation as they were: u64
 *                                                bytes, u64 inode, i64 times of contents and of anything (ns), u64
 *                                                xxh64 of the file, u64 xxh64 of these
 *
 * A picture is a frame that was flattened and equalised, in [0, 1]: bytes of 1/255, or f16. The reader makes z-scores,
 * since augmentation comes before them. Frames that no window around a label touches may have no picture; their records
 * are there, because the angles' scalers are fitted over all frames.
 *
 * Version 1, which is read, too, lacks the files: so it is not known what it was made from.
 *
 * Opening checks header, length, flights, records and table; a picture's checksum is checked when it is read. */
#ifndef PL_DATA_FRAMES_H
#define PL_DATA_FRAMES_H

#include "base/file.h"
#include "base/origin.h"

#define PL_FRAMES_MAGIC "PLMFRAME"
enum { PL_FRAMES_HEADER_BYTES = 128, PL_FRAMES_NAME_BYTES = 32, PL_FRAMES_FLIGHTS_MAX = 1024 };
enum { PL_FRAMES_SOURCES = 3, PL_FRAMES_SOURCE_BYTES = 48 }; /* files of a flight */
#define PL_FRAMES_NONE UINT64_MAX

typedef enum pl_frames_form { PL_FRAMES_U8, PL_FRAMES_F16 } pl_frames_form;

/* As in the file. */
typedef struct pl_frames_flight {
    char name[PL_FRAMES_NAME_BYTES]; /* ends with a zero */
    uint64_t first, frames;          /* records */
    uint64_t labels;
} pl_frames_flight;

typedef struct pl_frames_record {
    double seconds;          /* since 1970 */
    double zenith, azimuth;  /* degrees, mended */
    uint64_t picture;        /* PL_FRAMES_NONE: it has none */
    uint64_t profile;        /* number of the lidar's profile that gave the label; PL_FRAMES_NONE: no label */
    float label_km;          /* NAN: none */
    uint32_t damaged_pixels; /* in the picture */
} pl_frames_record;

typedef struct pl_frames_info {
    uint32_t version, height, width, flights;
    pl_frames_form form;
    uint64_t frames, pictures;
    uint64_t key, records_hash, table_hash;
} pl_frames_info;

uint64_t pl_frames_picture_bytes(const pl_frames_info *);  /* a multiple of 64 */
uint64_t pl_frames_records_offset(const pl_frames_info *); /* where the flights begin, which come first */
uint64_t pl_frames_sources_offset(const pl_frames_info *);
uint64_t pl_frames_file_bytes(const pl_frames_info *);
/* A hash of what it holds, not of how that was made: a copy made anew elsewhere from the same flights has the same.
 * Never 0. */
uint64_t pl_frames_identity(const pl_frames_info *);

/* ---- frames_write.c ---- */

typedef struct pl_frames_writer pl_frames_writer;
/* Of the info, only the sides and the form are used. */
pl_status pl_frames_create(const char *path, const pl_frames_info *, pl_frames_writer **, pl_error *);
/* The next picture, numbers in [0, 1]. */
pl_status pl_frames_append(pl_frames_writer *, const float *picture, pl_error *);
/* Everything in the file besides the pictures. */
typedef struct pl_frames_rest {
    const pl_frames_flight *flight;
    const pl_frames_record *record;
    const pl_origin *source; /* [flights][PL_FRAMES_SOURCES] */
    uint32_t flights;
    uint64_t frames, key;
    uint64_t identity; /* required, since the run in this folder was trained on it; 0: any */
    const char *run;
} pl_frames_rest;
/* Completes the file under its name and destroys the writer, also when it fails. PL_E_CONFIG: it would have another
 * identity, and is not made. */
pl_status pl_frames_commit(pl_frames_writer *, const pl_frames_rest *, pl_error *);
void pl_frames_abandon(pl_frames_writer *); /* NULL is fine */

/* ---- frames_read.c ---- */

typedef struct pl_frames {
    int fd;        /* -1: there is no file */
    bool is_noise; /* then pictures are noise; else none can be read */
    pl_frames_info info;
    char path[PL_FILE_PATH_MAX];
} pl_frames;

pl_status pl_frames_open(pl_frames *, const char *path, pl_error *);
void pl_frames_close(pl_frames *);
/* The header alone, from memory; file_bytes is the length the file has. */
pl_status pl_frames_parse_header(const char *name, const uint8_t header[PL_FRAMES_HEADER_BYTES], uint64_t file_bytes,
                                 pl_frames_info *, pl_error *);

/* One of the PL_FRAMES_SOURCES files of each flight; false: not known, or the note is damaged. */
bool pl_frames_read_source(const pl_frames *, uint32_t number, pl_origin *);
/* Notes in the file at `path`, where it can be written, the new origin of a flight's file with the same contents. */
void pl_frames_note_source(const char *path, const pl_frames_info *, uint32_t number, const pl_origin *);

/* What follows asks for no memory, and may be called by several threads at once. */
pl_status pl_frames_read_flights(const pl_frames *, pl_frames_flight *all, pl_error *);
/* Records [begin, end). */
pl_status pl_frames_read_records(const pl_frames *, uint64_t begin, uint64_t end, pl_frames_record *, pl_error *);
/* bytes: room of pl_frames_picture_bytes for the picture as in the file; out [height, width], or NULL. */
pl_status pl_frames_read_picture(const pl_frames *, uint64_t picture, void *bytes, float *out, pl_error *);
/* Drops a picture that was read from the page cache. */
void pl_frames_drop_picture(const pl_frames *, uint64_t picture);

#endif
