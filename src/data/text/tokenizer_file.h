/* How large the parts of a tokenizer.json are, seen from its characters alone. */
#ifndef PL_DATA_TOKENIZER_FILE_H
#define PL_DATA_TOKENIZER_FILE_H

#include <stddef.h>
#include <stdint.h>

enum {
    PL_ADDED_MAX = 1 << 16,       /* added tokens of a file */
    PL_ADDED_TEXT_MAX = 16 << 10, /* bytes of one as it stands there */
    PL_MERGES_MAX = 1 << 22,
    PL_NFC_BYTES_GROW = 3, /* a normal form has at most so many times the bytes */
};

/* The large parts, which are scanned where they stand, and the rest, of which a tree is built. */
typedef enum pl_file_part { PL_PART_TREE, PL_PART_VOCAB, PL_PART_MERGES, PL_PART_ADDED, PL_FILE_PARTS } pl_file_part;

/* Values and bytes seen so far in a text that comes in portions. Starts zeroed; without `splits` all is tree. */
typedef struct pl_tree_size {
    int splits;
    uint64_t values, bytes; /* of the tree */
    uint64_t part_values[PL_FILE_PARTS], part_bytes[PL_FILE_PARTS];
    uint64_t largest; /* whole number of the vocabulary */
    /* private */
    pl_file_part part;
    int in_string, escaped, after_colon, in_model;
    uint32_t depth, part_depth, word_bytes;
    uint64_t number;
    char word[16]; /* the beginning of the last string */
} pl_tree_size;

void pl_tree_count(pl_tree_size *, const char *json, size_t bytes);
/* Heap that jansson's tree takes at most. */
uint64_t pl_tree_bytes(const pl_tree_size *);

#endif
