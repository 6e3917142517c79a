/* The index of a block file as it lies on the disk, and an open file. Only block_*.c include this.
 *
 *   head, kinds, datasets      fixed records, then the text; zeros up to a multiple of 4096; the head has the checksum
 *   marks                      one a block, and one of what lies beside all this (block_structure.c); zeros up to a
 *                              multiple of 4096
 *   carry                      for each slot two places, each a carry's head and its bytes, a multiple of 4096
 *
 * In a native file and in one of its own the index begins at byte 0; in an HDF5 file at a multiple of 4096 in the first
 * MiB, where it is looked for: it knows its own place, so a copy that was moved (h5repack) is not taken for one. */
#ifndef PL_STORE_BLOCK_INDEX_H
#define PL_STORE_BLOCK_INDEX_H

#include "store/block_file.h"
#include "store/npy.h"

enum { PL_BLOCK_ALIGN = 4096, PL_BLOCK_SEARCH_BYTES = 1 << 20, PL_BLOCK_VERSION = 1 };

typedef struct pl_block_head {
    char magic[8];
    uint32_t version, form;
    uint64_t at; /* of the index in its file */
    uint64_t header_bytes, index_bytes;
    uint64_t file_bytes; /* of the file that holds the index */
    uint64_t blocks;
    uint32_t kinds, datasets;
    uint64_t text_bytes, first, whole;
    uint32_t carry_slots, zero;
    uint64_t carry_bytes, zeros[2];
    uint64_t checksum; /* of the header with this field 0: also what the marks are sealed with */
} pl_block_head;

typedef struct pl_block_kind_record {
    char name[PL_BLOCK_WORD_BYTES];
    uint32_t axes, zero;
    struct {
        char name[PL_BLOCK_WORD_BYTES];
        uint64_t extent, step;
    } axis[PL_BLOCK_AXES_MAX];
} pl_block_kind_record;

enum { PL_BLOCK_FLAG_TEXT = 1, PL_BLOCK_FLAG_CONSTANT = 2 };

typedef struct pl_block_dataset_record {
    char name[PL_BLOCK_NAME_BYTES];
    char dtype[8];
    uint32_t rank, kind, flags, zero;
    uint64_t shape[PL_BLOCK_RANK_MAX];
    uint64_t offset, bytes; /* in its file */
    uint64_t constant_hash; /* of a constant */
} pl_block_dataset_record;

typedef struct pl_block_mark {
    uint64_t hash; /* xxh64 over the xxh64 of the pieces, in the order of the datasets */
    uint64_t seal; /* xxh64 of hash, number of the block, checksum of the header */
} pl_block_mark;

typedef struct pl_block_carry_head {
    uint64_t after, next, hash, seal; /* hash: of the bytes; seal: of the three and the checksum of the header */
    uint64_t zeros[4];
} pl_block_carry_head;

_Static_assert(sizeof(pl_block_head) == 128 && sizeof(pl_block_kind_record) == 192 &&
                   sizeof(pl_block_dataset_record) == 176 && sizeof(pl_block_mark) == 16 &&
                   sizeof(pl_block_carry_head) == 64,
               "these lie on disks");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers in block files are little endian");

/* A file that is open, with the layout that it says it has. */
typedef struct pl_block_index {
    const char *path; /* as it was given */
    pl_block_head head;
    pl_block_kind_record kind_record[PL_BLOCK_KINDS_MAX];
    pl_block_dataset_record record[PL_BLOCK_DATASETS_MAX];
    pl_block_kind kind[PL_BLOCK_KINDS_MAX];
    pl_block_dataset dataset[PL_BLOCK_DATASETS_MAX];
    pl_block_layout layout; /* its text is NULL */
    int fd;                 /* of the index; -1: closed */
    int data_fd[PL_BLOCK_DATASETS_MAX];
    uint32_t short_files; /* that end before they should */
} pl_block_index;

/* ---- block_index.c ---- */

/* Offsets, sizes and places of a header of so many records; all were checked. */
uint64_t pl_block_header_bytes(uint32_t kinds, uint32_t datasets, uint64_t text_bytes);
uint64_t pl_block_marks_bytes(uint64_t blocks);
uint64_t pl_block_carry_stride(uint64_t carry_bytes); /* of one place */
static inline uint64_t pl_block_marks_at(const pl_block_head *h) { return h->at + h->header_bytes; }
uint64_t pl_block_carry_at(const pl_block_head *, uint32_t slot, uint32_t place);

/* The records of a layout, but for head.at, file_bytes, the datasets' offsets and the checksum. */
void pl_block_index_fill(pl_block_index *, const pl_block_layout *, pl_block_form);
/* The checksum of these records with this text behind them. */
uint64_t pl_block_index_checksum(const pl_block_index *, const char *text);
pl_status pl_block_index_write(pl_block_index *, const char *text, pl_error *); /* makes the checksum, writes all */

void pl_block_index_init(pl_block_index *, const char *path); /* nothing is open */
/* Opens a block file of any form and reads its header; PL_E_DATA when it is none or damaged. `is_there` (or NULL): a
 * file that is not there is no error then. Close it in any case. */
pl_status pl_block_index_open(pl_block_index *, const char *path, bool writable, bool *is_there, pl_error *);
/* The same without its datasets: of a folder whose files are gone but for the index. */
pl_status pl_block_index_open_head(pl_block_index *, const char *path, bool writable, bool *is_there, pl_error *);
void pl_block_index_close(pl_block_index *);
/* Has the job of this process that file (pl_block_file_hold)? 1, 0, or -1 with errno when that cannot be told. */
int pl_block_is_held(int fd);
/* For one process, or job, at a time; PL_E_STORAGE when another has it, or when that cannot be told. */
pl_status pl_block_index_lock(const pl_block_index *, pl_error *);
/* Does the file system know such locks? */
bool pl_block_index_has_locks(const pl_block_index *);
/* The same where it does; where not, writing goes on all the same. */
pl_status pl_block_index_lock_to_write(const pl_block_index *, pl_error *);

/* PL_E_CONFIG with the first difference between what the file is of and what it should be of. */
pl_status pl_block_index_match_text(const pl_block_index *, const char *text, pl_error *);
pl_status pl_block_index_match(const pl_block_index *, const pl_block_layout *, pl_error *);

/* PATH/index, PATH/metrics.energy.npy; another form: the path itself. */
pl_status pl_block_path_of(const char *path, pl_block_form, const char *dataset, char room[PL_FILE_PATH_MAX],
                           pl_error *);

/* Where the file of a dataset must end, and whether it does. */
uint64_t pl_block_file_end(const pl_block_index *, uint32_t dataset);

/* ---- block_make.c ---- */

/* What is complete gets its name, never over a file that came meanwhile: another maker's, or a person's. */
pl_status pl_block_give_name(const char *temporary, const char *path, pl_error *);

/* ---- block_file.c: what a runner takes ---- */

uint64_t pl_block_memory_bytes(const pl_block_layout *, const pl_block_use *);
uint64_t pl_block_cache_bytes(const pl_block_layout *, const pl_block_use *);

/* ---- block_hdf5.c ---- */

enum { PL_BLOCK_ATTRIBUTE_MAX = 60000 }; /* bytes of an attribute's text: an HDF5 object's header holds 64 KB */

/* Has libhdf5 make the file at this path, which is empty and open as ix->fd; fills in where index and datasets lie. */
pl_status pl_block_hdf5_create(pl_block_index *, const pl_block_layout *, const char *path, pl_error *);

/* ---- block_marks.c ---- */

uint64_t pl_block_seal(const pl_block_index *, uint64_t block, uint64_t hash);
/* One bit a block into bitmap ((blocks + 63) / 64 words); counts those done and those that are damaged. */
pl_status pl_block_marks_read(const pl_block_index *, uint64_t *bitmap, uint64_t *done, uint64_t *bad, pl_error *);
pl_status pl_block_mark_read(const pl_block_index *, uint64_t block, pl_block_mark *, pl_error *);
pl_status pl_block_mark_write(const pl_block_index *, uint64_t block, const pl_block_mark *, pl_error *);
/* Clears marks that are neither empty nor whole, and those of blocks with a piece behind the end of their file. */
pl_status pl_block_marks_mend(const pl_block_index *, uint64_t *cleared, pl_error *);
/* A file that is whole holds nothing to go on from: what was left there depends on when it was killed. */
pl_status pl_block_carry_look(const pl_block_index *, bool empty_it, bool *was_empty, pl_error *);
/* Writes zeros. */
pl_status pl_block_write_zeros(int fd, const char *path, uint64_t offset, uint64_t bytes, pl_error *);

/* ---- block_structure.c ---- */

size_t pl_block_npy_header(const pl_block_dataset *, char header[PL_NPY_HEADER_MAX]);
/* Writes the mark of what lies beside index and datasets, as it is now; tells whether it still is so. */
pl_status pl_block_structure_note(const pl_block_index *, pl_error *);
pl_status pl_block_structure_check(const pl_block_index *, bool *is_sound, pl_error *);
/* Makes it what it was; the layout is that of the file. */
pl_status pl_block_structure_mend(const pl_block_index *, const pl_block_layout *, pl_error *);

#endif
