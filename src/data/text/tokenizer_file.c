#include "data/text/tokenizer_file.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/text/tokenizer_impl.h"

enum { VALUE_BYTES = 160 };

static int is_word(const pl_tree_size *t, const char *word)
{
    return t->word_bytes == strlen(word) && memcmp(t->word, word, t->word_bytes) == 0;
}

/* The part that begins with a bracket which makes this depth. */
static pl_file_part part_at(const pl_tree_size *t)
{
    if (!t->splits || !t->after_colon) return PL_PART_TREE;
    if (t->depth == 2 && is_word(t, "added_tokens")) return PL_PART_ADDED;
    if (t->depth != 3 || !t->in_model) return PL_PART_TREE;
    return is_word(t, "vocab") ? PL_PART_VOCAB : is_word(t, "merges") ? PL_PART_MERGES : PL_PART_TREE;
}

static void open_bracket(pl_tree_size *t)
{
    t->depth++;
    if (t->depth == 2) t->in_model = t->after_colon && is_word(t, "model");
    if (t->part != PL_PART_TREE) return;
    t->part = part_at(t);
    t->part_depth = t->depth;
}

static void close_bracket(pl_tree_size *t)
{
    if (t->part != PL_PART_TREE && t->depth == t->part_depth) t->part = PL_PART_TREE;
    t->depth -= t->depth > 0;
}

static void count_char(pl_tree_size *t, char c)
{
    t->part_bytes[t->part]++;
    if (c >= '0' && c <= '9') {
        if (t->number < UINT32_MAX) t->number = t->number * 10 + (uint64_t)(c - '0');
        if (t->part == PL_PART_VOCAB && t->number > t->largest) t->largest = t->number;
        return;
    }
    t->number = 0;
    if (c == '{' || c == '[') open_bracket(t);
    t->part_values[t->part] += c == ',' || c == ':' || c == '[' || c == '{';
    if (c == '}' || c == ']') close_bracket(t);
    if (c == '"') t->in_string = 1, t->word_bytes = 0;
    if (!strchr(" \t\r\n", c)) t->after_colon = c == ':';
}

static void count_in_string(pl_tree_size *t, char c)
{
    t->part_bytes[t->part]++;
    if (t->escaped)
        t->escaped = 0;
    else if (c == '\\')
        t->escaped = 1;
    else if (c == '"')
        t->in_string = 0;
    if (t->in_string && t->word_bytes < sizeof t->word) t->word[t->word_bytes++] = c;
}

void pl_tree_count(pl_tree_size *t, const char *json, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) t->in_string ? count_in_string(t, json[i]) : count_char(t, json[i]);
    t->values = t->part_values[PL_PART_TREE];
    t->bytes = t->part_bytes[PL_PART_TREE];
}

uint64_t pl_tree_bytes(const pl_tree_size *t) { return (t->values + 1) * VALUE_BYTES + 2 * t->bytes; }

pl_status pl_tokenizer_load(const char *path, pl_tokenizer **out, pl_error *err)
{
    char *text;
    size_t bytes;
    *out = NULL;
    PL_TRY(pl_file_read_text(path, PL_TOKENIZER_FILE_MAX, &text, &bytes, err));
    pl_status status = pl_tokenizer_parse(path, text, bytes, out, err);
    pl_free(text);
    return status;
}

/* The reader's tables, then the tokenizer's. Tables of slots are at most four times as long as what they index. */
static uint64_t tables_bytes(const pl_tree_size *t)
{
    const uint64_t *values = t->part_values, *bytes = t->part_bytes;
    const uint64_t tokens = values[PL_PART_VOCAB] + 1, added = values[PL_PART_ADDED] + 1;
    const uint64_t merges = values[PL_PART_MERGES] + 1, largest = t->largest < PL_VOCAB_MAX ? t->largest : PL_VOCAB_MAX;
    const uint64_t ids = (largest > tokens ? largest : tokens) + added + 2, slot = 4 * sizeof(uint32_t);
    const uint64_t texts = bytes[PL_PART_VOCAB] + bytes[PL_PART_ADDED] + 64;
    const uint64_t read = ids * sizeof(pl_vocab_entry) + tokens * slot + texts + added * sizeof(pl_added_token) +
                          PL_NFC_BYTES_GROW * bytes[PL_PART_ADDED] + added + merges * sizeof(pl_merge);
    const uint64_t made = 2 * texts + ids * (sizeof(uint32_t) + slot + 1) + merges * (sizeof(pl_merge) + slot) +
                          added * (sizeof(pl_added_token) + 2 * sizeof(void *)) +
                          PL_NFC_BYTES_GROW * bytes[PL_PART_ADDED] + sizeof(pl_tokenizer);
    return read + made + 32 * (64 + PL_ALLOC_HEADER_BYTES);
}

uint64_t pl_tokenizer_load_bytes(const char *path)
{
    char part[4096];
    pl_tree_size t = {.splits = 1};
    pl_tree_size item = {.values = PL_ADDED_TEXT_MAX, .bytes = PL_ADDED_TEXT_MAX};
    int fd;
    uint64_t size;
    if (pl_file_open(path, &fd, &size, NULL) != PL_OK) return 0;
    for (uint64_t at = 0; at < size && size <= PL_TOKENIZER_FILE_MAX; at += sizeof part) {
        size_t bytes = size - at < sizeof part ? (size_t)(size - at) : sizeof part;
        if (pl_file_read_at(fd, path, at, part, bytes, NULL) != PL_OK) break;
        pl_tree_count(&t, part, bytes);
    }
    close(fd);
    /* a list of characters is in the tree, and each of them in the tokenizer */
    const uint64_t chars = t.values * (sizeof(pl_vocab_entry) + 4 * sizeof(uint32_t));
    return size + 2 * t.bytes + 64 + pl_tree_bytes(&t) + pl_tree_bytes(&item) + chars + tables_bytes(&t);
}
