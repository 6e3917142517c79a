/* The index of texts: where each lies in its source, made once, read by number. Little-endian.
 *
 *      0  "PLMTEXTS"                        56  i64 its time of change (ns)
 *      8  u32 version (1)                   64  u64 xxh64 of the source, see pl_texts_info
 *     12  u32 header bytes (128)            72  u64 folder: the hash of paths, sizes and times
 *     16  u32 form                          80  u64 folder: bytes of the files' part
 *     20  u32 bytes of an entry (16)        88  u64 bytes of the longest text
 *     24  u64 recipe: form, key, column     96  u64 xxh64 of what follows the header
 *     32  u64 number of texts              104  i64 when anything about it changed (ns)
 *     40  u64 bytes of gathered texts      112  u64 its inode
 *     48  u64 bytes of the source          120  u64 xxh64 of bytes 0 … 119
 *
 *    128  folder: of each file i64 time of change (ns), u32 bytes of its path, its path below the folder;
 *         zeros up to a multiple of 16
 *         entries: u64 offset, and u64 bytes with the encoding in the two highest bits. A file's offset is that of its
 *         record in the part above. */
#ifndef PL_DATA_TEXTS_INDEX_H
#define PL_DATA_TEXTS_INDEX_H

#include "texts/corpus.h"
#include "texts/scan.h"
#include "data/pages/texts.h"

#define PL_TEXTS_MAGIC "PLMTEXTS"
enum { PL_TEXTS_HEADER_BYTES = 128, PL_TEXTS_ENTRY_BYTES = 16, PL_TEXTS_FILE_BYTES = 12 };

/* ---- texts_gather.c ---- */
/* Are these texts gathered, or read where they lie? */
pl_status pl_texts_find_gathers(const pl_texts_setup *, bool *gathers, pl_error *);
pl_corpus_wish pl_texts_corpus(const pl_texts_setup *, const char *index_path);
uint64_t pl_texts_gather_bytes(void); /* heap it holds, without the reader's */
struct pl_texts_writer;
/* Writes the file of gathered texts, and puts their places; fills content, listing and gathered_bytes of the info. */
pl_status pl_texts_gather(pl_corpus *, const char *index_path, struct pl_texts_writer *, pl_texts_info *, pl_error *);

uint64_t pl_texts_recipe(const pl_texts_setup *);
uint64_t pl_texts_entries_at(const pl_texts_info *); /* offset */

/* ---- texts_write.c ---- */
typedef struct pl_texts_writer pl_texts_writer;
uint64_t pl_texts_writer_bytes(void); /* heap it holds */
pl_status pl_texts_writer_create(const char *path, pl_texts_writer **, pl_error *);
/* All files of a folder, and then all entries. */
pl_status pl_texts_put_file(pl_texts_writer *, const char *path, int64_t mtime_ns, pl_error *);
pl_status pl_texts_put(pl_texts_writer *, const pl_text_place *, pl_error *);
uint64_t pl_texts_put_count(const pl_texts_writer *); /* number of entries */
/* Completes the index under its name and destroys the writer, also when it fails. Of the info, only the recipe and what
 * is known about the source are used. */
pl_status pl_texts_commit(pl_texts_writer *, pl_texts_form, const pl_texts_info *, pl_error *);
void pl_texts_abandon(pl_texts_writer *); /* NULL is fine */
/* Notes in the index at `path`, where it can be written, the new origin of its source with the same contents. */
void pl_texts_note_source(const char *path, const pl_origin *);

/* ---- texts_read.c ---- */
/* Where texts that are gathered lie. */
pl_status pl_texts_gathered_path(char path[PL_FILE_PATH_MAX], const char *index_path, pl_error *);
/* The header alone, from memory; file_bytes is the length the file has. */
pl_status pl_texts_parse_header(const char *name, const uint8_t header[PL_TEXTS_HEADER_BYTES], uint64_t file_bytes,
                                pl_texts_form *, pl_texts_info *, pl_error *);
/* Opens an index and checks all of it, but not whether its source has changed. */
pl_status pl_texts_open_index(const char *path, int *fd, pl_texts_form *, pl_texts_info *, pl_error *);
pl_status pl_texts_read_place(int fd, const char *path, const pl_texts_info *, pl_texts_form, uint64_t number,
                              pl_text_place *, pl_error *);
/* The record of a file, at the offset that the place gives. */
pl_status pl_texts_read_file(int fd, const char *path, const pl_texts_info *, uint64_t offset,
                             char name[PL_FILE_PATH_MAX], int64_t *mtime_ns, pl_error *);

#endif
