/* Block files: results on disk, in blocks at known places (block_layout.h).
 *
 * Every block has a mark: 16 bytes, the xxh64 of its data and a seal over that, its number and the file's identity. A
 * mark that is whole says that the block is done; nothing else does. Data reach the disk before their mark is written
 * (commit), so whatever is killed, and wherever: what has no mark is made again, what has one is right. A mark lies in
 * one sector, and a torn one does not verify.
 *
 * Three forms, one mechanism: all data are written by pwrite at offsets that the index tells.
 *
 *   native   FILE: the index, then the datasets, each at a multiple of 4096
 *   hdf5     FILE, made by libhdf5 with contiguous datasets; the index is one of them, /plimsoll/index. It is a valid
 *            HDF5 file at every instant. libhdf5 lies in a module of its own, which only the maker loads
 *   npy      FOLDER: index, and one NAME.npy a dataset ("/" in a name becomes ".")
 *
 * The index: a header (identity, kinds, datasets and their offsets, the text; a checksum over it), the marks, and the
 * slots of the carry. All numbers are little endian.
 *
 * Two users. The maker (the planner) makes the file, or finds it and checks that it is the same. The runner opens it in
 * memory of the caller and asks for no more. */
#ifndef PL_STORE_BLOCK_FILE_H
#define PL_STORE_BLOCK_FILE_H

#include "base/file.h"
#include "store/block_layout.h"

typedef enum pl_block_form { PL_BLOCK_NATIVE, PL_BLOCK_HDF5, PL_BLOCK_NPY, PL_BLOCK_FORMS } pl_block_form;

const char *pl_block_form_name(pl_block_form);              /* "native", "hdf5", "npy" */
int pl_block_form_parse(const char *text, pl_block_form *); /* 0 on success */

/* ---- the maker: block_make.c ---- */

/* How much a runner has in hand. */
typedef struct pl_block_use {
    uint32_t open_max;     /* blocks that are begun and not finished, at once */
    uint32_t finished_max; /* blocks that are finished and not committed; finish commits when there are so many */
} pl_block_use;

typedef struct pl_block_sizes {
    uint64_t data_bytes;       /* of all datasets */
    uint64_t index_bytes;      /* header, marks, carry */
    uint64_t disk_bytes;       /* at most, of all files */
    uint64_t memory_bytes;     /* the block for open */
    uint64_t page_cache_bytes; /* at most, of what is being written */
    uint32_t files;            /* open at once */
} pl_block_sizes;

/* Checks the layout and tells every size; makes nothing. */
pl_status pl_block_file_measure(const pl_block_layout *, pl_block_form, const pl_block_use *, pl_block_sizes *,
                                pl_error *);

typedef struct pl_block_found {
    bool is_new;
    uint64_t blocks, done; /* as the marks say */
    uint64_t done_bytes;
    uint64_t lost; /* marks that were cleared: of blocks behind the end of a file that was cut off, or damaged marks */
    bool needs_mending; /* look: a file was cut off, and `done` counts what is gone; check found damage beside the
                         * blocks, with repair; or the last run was killed when all was done. make mends that */
    uint32_t carry_slots;
} pl_block_found;

/* Makes the file, all of its disk space reserved; or finds it there. PL_E_STORAGE with both figures when the disk has
 * no room, and nothing is left behind. PL_E_CONFIG with the first difference when the file is of another layout or
 * text; PL_E_DATA when it is none, or its header is damaged. A file that was cut off is made whole, and what was lost
 * is no longer marked. PL_E_UNSUPPORTED, with the package, when the HDF5 form is wanted and libhdf5 is not there. */
pl_status pl_block_file_make(const char *path, pl_block_form, const pl_block_layout *, pl_block_found *, pl_error *);

/* The same, and no disk space is reserved: for who frees as much as it writes. */
pl_status pl_block_file_make_sparse(const char *path, pl_block_form, const pl_block_layout *, pl_block_found *,
                                    pl_error *);

/* The same, but nothing is made or mended: is_new says that there is none, and room on the disk is looked for. */
pl_status pl_block_file_look(const char *path, pl_block_form, const pl_block_layout *, pl_block_found *, pl_error *);

/* ---- the runner: block_file.c ---- */

typedef struct pl_block_file pl_block_file;

/* Opens what make has made, locks it and reads the marks. Verified are the header, that it is of this layout and text,
 * that each file is as long as it must be, and each mark's seal; not the data (check does that). `memory` has the bytes
 * that measure told, aligned to 64, and stays the caller's; so do path and layout. PL_E_STORAGE when another process
 * has it open. */
pl_status pl_block_file_open(const char *path, const pl_block_layout *, const pl_block_use *, void *memory,
                             uint64_t memory_bytes, pl_block_file **, pl_error *);

bool pl_block_file_is_done(const pl_block_file *, uint64_t block);
uint64_t pl_block_file_done(const pl_block_file *);          /* how many are */
uint64_t pl_block_file_written_bytes(const pl_block_file *); /* by this process, of data */
bool pl_block_file_has_locks(const pl_block_file *);       /* else nothing keeps another process from writing it, too */
uint64_t pl_block_file_there_bytes(const pl_block_file *); /* and of what was done when it was opened */
uint64_t pl_block_file_data_bytes(const pl_block_file *);  /* when all is done */

/* One thread at a time. Bytes of the block's piece of a dataset, from `offset` within the piece on: of each dataset in
 * order and without gaps. The first begins the block. */
pl_status pl_block_file_put(pl_block_file *, uint64_t block, uint32_t dataset, uint64_t offset, const void *data,
                            uint64_t bytes, pl_error *);
/* PL_E_INTERNAL when a piece is not whole. */
pl_status pl_block_file_finish(pl_block_file *, uint64_t block, pl_error *);
/* What was begun is left; it can be begun again. */
void pl_block_file_abandon(pl_block_file *, uint64_t block);

/* `data`, carry_bytes of the layout, are what block `next` goes on from, as `after` leaves them. Called just before the
 * finish of `after`, since that may commit. Valid when `after` is done; until then the slot still holds what the block
 * before left: it has two places. Slots are as many as the file has (pl_block_file_slots). After a kill no sequence
 * whose blocks are made in order begins anew where one was done; after a failure of power one may. */
pl_status pl_block_file_carry(pl_block_file *, uint32_t slot, uint64_t after, uint64_t next, const void *data,
                              pl_error *);
/* What block `next` goes on from; *found is false when no slot has it whole: then its sequence begins anew. */
pl_status pl_block_file_recall(pl_block_file *, uint64_t next, void *data, bool *found, pl_error *);
uint32_t pl_block_file_slots(const pl_block_file *);

/* What is finished becomes durable, and is done then: data to the disk, their marks, marks to the disk. After an error
 * of the disk the file takes no more, and says the same again. When the last block is done the carry is emptied: the
 * file has the bytes of one that nothing ever happened to. */
pl_status pl_block_file_commit(pl_block_file *, pl_error *);

/* Commits, and closes however that ends. NULL is fine. */
pl_status pl_block_file_close(pl_block_file *, pl_error *);

/* ---- a look from outside: block_read.c. Uses the heap ---- */

typedef struct pl_block_reader pl_block_reader;

/* Any block file, by itself: its layout is in it. With `repair` it can be written, and is locked. */
pl_status pl_block_reader_open(const char *path, bool repair, pl_block_reader **, pl_error *);
void pl_block_reader_close(pl_block_reader *); /* NULL is fine */

/* Datasets' constants are not in it: `constant` is any address but NULL where the dataset is one. No attributes. */
const pl_block_layout *pl_block_reader_layout(const pl_block_reader *);
pl_block_form pl_block_reader_form(const pl_block_reader *);
bool pl_block_reader_is_done(const pl_block_reader *, uint64_t block);
uint64_t pl_block_reader_done(const pl_block_reader *);
uint64_t pl_block_reader_bad_marks(const pl_block_reader *); /* neither empty nor whole */

/* Bytes of a dataset, as they lie there, whether done or not. */
pl_status pl_block_reader_read(const pl_block_reader *, uint32_t dataset, uint64_t offset, void *data, uint64_t bytes,
                               pl_error *);

/* Where the dataset's bytes lie in memory, as the file has them, until the reader is closed: mapped when it is first
 * asked for. The file is long enough each time that this is called, PL_E_DATA; PL_E_NOMEM when there are no addresses
 * for it. */
pl_status pl_block_reader_map(pl_block_reader *, uint32_t dataset, const void **data, pl_error *);

/* Is what lies there what was written? Of a finished block, and of a constant. */
pl_status pl_block_reader_verify(pl_block_reader *, uint64_t block, bool *is_sound, pl_error *);
pl_status pl_block_reader_verify_constant(pl_block_reader *, uint32_t dataset, bool *is_sound, pl_error *);

typedef struct pl_block_checked {
    uint64_t checked, damaged; /* blocks */
    uint64_t bytes;
    uint64_t not_finite;        /* infinities and NaN in blocks that are sound: they were made so */
    uint32_t constants_damaged; /* and what lies beside the datasets: made whole when the run is planned again */
} pl_block_checked;

/* Reads every finished block and constant and compares its hash. `tell` (or NULL) hears of each that is damaged: block
 * PL_BLOCK_NONE for a constant, and its name as a sentence would have it. With repair the marks of damaged blocks are
 * cleared, that a run makes them again; so is that of the rest where a constant or what lies around the data is. */
pl_status pl_block_reader_check(pl_block_reader *, void (*tell)(void *context, uint64_t block, const char *name),
                                void *context, pl_block_checked *, pl_error *);

/* ---- block_join.c ---- */

/* Complete parts of one form, in any order, which together must be the whole of one job, as one. In HDF5 form: a new
 * file with virtual datasets over them. In the others: the file that one run of all would have made, to the byte, each
 * block of the parts compared with its checksum before it is copied; PL_E_STORAGE when the disk has no room for it,
 * PL_E_DATA when a block is damaged. What was begun before is gone on with. `moves`: what is on the disk in its new
 * place is freed in the parts, so that there is hardly more than one copy at any time, and the parts are gone at the
 * end. */
pl_status pl_block_join(const char *path, const char *const *parts, size_t count, bool moves, pl_error *);

/* ---- block_hold.c ---- */
/* Keeps all other jobs from the file, also between two processes of this one: exec hands the descriptor on, and what is
 * begun by it adopts it. Until the last of them ends. */
pl_status pl_block_file_hold(const char *path, int *fd, pl_error *);
void pl_block_file_adopt(int fd);

#endif
