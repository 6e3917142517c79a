#include "data/text/chars.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

/* Counters lie in blocks, each made when one of its characters first occurs: a text uses few of them, and a planner
 * with little room (base/process.h, the fence) pays for no more. */
enum { CODE_POINTS = 0x110000, BLOCK_CODE_POINTS = 256, BLOCKS = CODE_POINTS / BLOCK_CODE_POINTS };

typedef struct counted {
    uint64_t count;
    uint32_t code_point;
} counted;

typedef struct chars {
    uint64_t **count; /* [BLOCKS] of [BLOCK_CODE_POINTS], or NULL */
    size_t different; /* characters seen */
    uint32_t *kept;   /* as many as were chosen, rising */
    uint8_t *block;   /* [PL_TEXT_BLOCK_BYTES + 4] */
    size_t held;
} chars;

uint64_t pl_chars_train_bytes(void)
{
    uint64_t tables = CODE_POINTS * (sizeof(uint64_t) + sizeof(counted)) + PL_VOCAB_MAX * sizeof(uint32_t);
    uint64_t finished = PL_VOCAB_MAX * (sizeof(pl_vocab_entry) + 4 + 4 + 4 + 4);
    return tables + finished + PL_TEXT_BLOCK_BYTES + 4 + sizeof(pl_tokenizer);
}

static void chars_deinit(chars *c)
{
    for (size_t i = 0; c->count && i < BLOCKS; i++) pl_free(c->count[i]);
    pl_free(c->count);
    pl_free(c->kept);
    pl_free(c->block);
}

static pl_status chars_init(chars *c, pl_error *err)
{
    *c = (chars){.count = pl_alloc(BLOCKS, sizeof *c->count), .block = pl_alloc(PL_TEXT_BLOCK_BYTES + 4, 1)};
    if (c->count && c->block) return PL_OK;
    chars_deinit(c);
    return pl_fail(err, PL_E_NOMEM, "no memory for counting characters");
}

static pl_status count_one(chars *c, uint32_t code_point, pl_error *err)
{
    uint64_t **block = &c->count[code_point / BLOCK_CODE_POINTS];
    if (!*block) *block = pl_alloc(BLOCK_CODE_POINTS, sizeof **block);
    if (!*block) return pl_fail(err, PL_E_NOMEM, "no memory for counting characters");
    c->different += (*block)[code_point % BLOCK_CODE_POINTS]++ == 0;
    return PL_OK;
}

static pl_status count_block(chars *c, int final, pl_error *err)
{
    size_t at = 0;
    while (at < c->held) {
        uint32_t code_point;
        size_t bytes = pl_utf8_read(c->block + at, c->held - at, &code_point);
        if (bytes == 0 && !final) break;
        if (bytes && code_point != PL_NOT_UTF8) PL_TRY(count_one(c, code_point, err));
        at += bytes ? bytes : 1;
    }
    c->held -= at;
    memmove(c->block, c->block + at, c->held);
    return PL_OK;
}

static int most_frequent_first(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->code_point < y->code_point ? -1 : x->code_point > y->code_point;
}

static int lowest_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void list_found(const chars *c, counted *found)
{
    size_t n = 0;
    for (uint32_t p = 0; p < CODE_POINTS; p++) {
        const uint64_t *block = c->count[p / BLOCK_CODE_POINTS];
        if (block && block[p % BLOCK_CODE_POINTS]) found[n++] = (counted){block[p % BLOCK_CODE_POINTS], p};
    }
}

/* The code points that stay, rising, into kept; *chosen is how many. */
static pl_status choose(chars *c, size_t limit, size_t *chosen, pl_error *err)
{
    size_t n = *chosen = c->different < limit ? c->different : limit;
    counted *found = pl_alloc(c->different, sizeof *found);
    c->kept = pl_alloc(n, sizeof *c->kept);
    if (found && c->kept) {
        list_found(c, found);
        if (c->different > limit) qsort(found, c->different, sizeof *found, most_frequent_first);
        for (size_t i = 0; i < n; i++) c->kept[i] = found[i].code_point;
        qsort(c->kept, n, sizeof *c->kept, lowest_first);
    }
    bool made = found && c->kept;
    pl_free(found);
    return made ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for choosing characters");
}

static pl_status take_piece(void *context, const void *data, size_t bytes, pl_error *err)
{
    chars *c = context;
    for (const uint8_t *from = data; bytes;) {
        const size_t n = bytes < PL_TEXT_BLOCK_BYTES ? bytes : PL_TEXT_BLOCK_BYTES;
        memcpy(c->block + c->held, from, n);
        c->held += n, from += n, bytes -= n;
        PL_TRY(count_block(c, 0, err));
    }
    return PL_OK;
}

/* In the token file it ends with a line feed. */
static pl_status take_end(void *context, pl_error *err)
{
    PL_TRY(count_block(context, 1, err));
    return count_one(context, '\n', err);
}

pl_status pl_chars_train(pl_corpus *corpus, uint32_t vocab, pl_tokenizer **out, pl_error *err)
{
    chars c;
    *out = NULL;
    if (vocab < 2 || vocab > PL_VOCAB_MAX)
        return pl_fail(err, PL_E_CONFIG, "vocab_size is %u; 2 to %d were expected for characters", vocab, PL_VOCAB_MAX);
    PL_TRY(chars_init(&c, err));
    size_t chosen = 0;
    const pl_corpus_taker taker = {.piece = take_piece, .end = take_end, .context = &c};
    pl_status status = pl_corpus_read(corpus, "collecting the characters", &taker, err);
    if (status == PL_OK) status = count_block(&c, 1, err);
    if (status == PL_OK) status = choose(&c, vocab - 1, &chosen, err);
    if (status == PL_OK) status = pl_tokenizer_create_chars(c.kept, chosen, out, err);
    chars_deinit(&c);
    return status;
}
