/* The token file: a text as ids, made once, read by position. Little-endian.
 *
 *      0  "PLMTOKEN"                       64  u64 xxh64 of the source text
 *      8  u32 version (1)                  72  u64 recipe (what the tokenizer was made from; 0 = it was given)
 *     12  u32 header bytes (128)           80  u64 where the table of checksums begins
 *     16  u32 vocabulary size              88  u64 xxh64 of that table
 *     20  u32 bytes of an id (2 or 4)      96  u32 tokens of a block (16384)
 *     24  u64 number of tokens            100  u32 version of the reader
 *     32  u64 hash of the tokenizer       104  u64 inode of the source text; 0: not known
 *     40  u64 bytes of the source text    120  u64 xxh64 of bytes 0 … 119
 *     48  i64 when it was changed (ns)    128  ids, u16 when the vocabulary has at most 65536, else u32
 *     56  i64 when anything about it           then, from a multiple of 8, one u64 xxh64 for each block of ids
 *             was; 0: not known
 *
 * For texts that are not one plain file the times are 0, and the inode is a hash of all files' paths, sizes, inodes and
 * times.
 *
 * Opening checks header, length and table; the checksum of a block is checked when a reader touches it first, so damage
 * is found where it is and a large file opens at once. (In numpy: memmap(path, "<u2", offset=128, shape=count).) */
#ifndef PL_DATA_TOKENS_H
#define PL_DATA_TOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/origin.h"

#define PL_TOKENS_MAGIC "PLMTOKEN"
enum { PL_TOKENS_HEADER_BYTES = 128, PL_TOKENS_BLOCK = 16384, PL_TOKENS_CACHE_BYTES = 256 << 10 };
/* Raise it when texts are read in another way: what was made from them before is then made again. */
enum { PL_TOKENS_READER = 0 };

typedef struct pl_tokens_info {
    uint32_t vocab, id_bytes;
    uint64_t count;
    uint64_t tokenizer_hash, recipe;
    pl_origin source; /* the text */
    uint32_t reader;  /* version of the reader of texts */
    uint64_t table_offset, table_hash;
} pl_tokens_info;

/* Do tokens mark the end of each text? In sources of several (texts/corpus.h): those have no time, not being a plain
 * file. */
static inline bool pl_tokens_have_ends(const pl_tokens_info *i) { return i->source.inode && !i->source.ctime_ns; }
uint64_t pl_tokens_block_count(const pl_tokens_info *);
uint64_t pl_tokens_file_bytes(const pl_tokens_info *);

/* ---- tokens_write.c ---- */
typedef struct pl_tokens_writer pl_tokens_writer;
uint64_t pl_tokens_writer_bytes(uint64_t tokens); /* heap it holds while writing so many tokens */
pl_status pl_tokens_create(const char *path, uint32_t vocab, pl_tokens_writer **, pl_error *);
/* PL_E_INTERNAL when an id is not below vocab. */
pl_status pl_tokens_append(pl_tokens_writer *, const uint32_t *ids, size_t count, pl_error *);
/* Completes the file under its name and destroys the writer, also when it fails. Of the info, only hash, recipe and
 * source are used. */
pl_status pl_tokens_commit(pl_tokens_writer *, const pl_tokens_info *, pl_error *);
void pl_tokens_abandon(pl_tokens_writer *); /* NULL is fine */

/* ---- tokens_read.c ---- */
typedef struct pl_tokens {
    int fd;
    pl_tokens_info info;
    char path[PL_FILE_PATH_MAX];
} pl_tokens;

pl_status pl_tokens_open(pl_tokens *, const char *path, pl_error *);
void pl_tokens_close(pl_tokens *); /* nothing of the file stays in the page cache */
/* The header alone, from memory; file_bytes is the length the file has. */
pl_status pl_tokens_parse_header(const char *name, const uint8_t header[PL_TOKENS_HEADER_BYTES], uint64_t file_bytes,
                                 pl_tokens_info *, pl_error *);
/* Notes in the file at `path` the new origin of its text with the same contents. Where it cannot be written, the text
 * is read again the next time. */
void pl_tokens_note_source(const char *path, const pl_origin *);
/* Reads and checks every block (`plimsoll verify`). Allocates one block. */
pl_status pl_tokens_verify(const pl_tokens *, pl_error *);

/* Reads ranges, each block checked at its first touch. Lives in the caller's memory and allocates nothing; one thread.
 */
typedef struct pl_tokens_reader {
    const pl_tokens *tokens;
    uint8_t *checked; /* a bit for each block */
    uint8_t *block;   /* PL_TOKENS_BLOCK ids as they are in the file */
    uint64_t cached;  /* at most so many bytes are left in the page cache by reading */
} pl_tokens_reader;

uint64_t pl_tokens_reader_bytes(const pl_tokens_info *);
/* memory: that many bytes, aligned to 16. */
void pl_tokens_reader_init(pl_tokens_reader *, const pl_tokens *, void *memory);
/* Tokens [begin, end) to out. */
pl_status pl_tokens_read(pl_tokens_reader *, uint64_t begin, uint64_t end, int32_t *out, pl_error *);
/* Between two reads: empties the page cache where it may hold more than PL_TOKENS_CACHE_BYTES of the file. */
void pl_tokens_trim_cache(pl_tokens_reader *);

#endif
