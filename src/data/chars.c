#include "data/chars.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer_impl.h"
#include "data/unicode.h"

enum { CODE_POINTS = 0x110000 };

typedef struct counted {
    uint64_t count;
    uint32_t code_point;
} counted;

typedef struct chars {
    uint64_t *count; /* [CODE_POINTS] */
    counted *found;  /* [CODE_POINTS]; only as much is touched as there are different characters */
    uint32_t *kept;  /* [PL_VOCAB_MAX] */
    uint8_t *block;  /* [PL_TEXT_BLOCK_BYTES + 4] */
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
    pl_free(c->count);
    pl_free(c->found);
    pl_free(c->kept);
    pl_free(c->block);
}

static pl_status chars_init(chars *c, pl_error *err)
{
    *c = (chars){.count = pl_alloc(CODE_POINTS, sizeof *c->count),
                 .found = pl_alloc(CODE_POINTS, sizeof *c->found),
                 .kept = pl_alloc(PL_VOCAB_MAX, sizeof *c->kept),
                 .block = pl_alloc(PL_TEXT_BLOCK_BYTES + 4, 1)};
    if (c->count && c->found && c->kept && c->block) return PL_OK;
    chars_deinit(c);
    return pl_fail(err, PL_E_NOMEM, "no memory for counting characters");
}

static void count_block(chars *c, int final)
{
    size_t at = 0;
    while (at < c->held) {
        uint32_t code_point;
        size_t bytes = pl_utf8_read(c->block + at, c->held - at, &code_point);
        if (bytes == 0 && !final) break;
        if (bytes && code_point != PL_NOT_UTF8) c->count[code_point]++;
        at += bytes ? bytes : 1;
    }
    c->held -= at;
    memmove(c->block, c->block + at, c->held);
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

/* The code points that stay, rising, into kept; returns how many. */
static size_t choose(chars *c, size_t limit)
{
    size_t n = 0;
    for (uint32_t p = 0; p < CODE_POINTS; p++)
        if (c->count[p]) c->found[n++] = (counted){c->count[p], p};
    if (n > limit) {
        qsort(c->found, n, sizeof *c->found, most_frequent_first);
        n = limit;
    }
    for (size_t i = 0; i < n; i++) c->kept[i] = c->found[i].code_point;
    qsort(c->kept, n, sizeof *c->kept, lowest_first);
    return n;
}

static pl_status count_file(chars *c, pl_text_file *file, pl_text_progress progress, void *context, pl_error *err)
{
    size_t got = 1;
    while (got) {
        PL_TRY(pl_text_read(file, c->block + c->held, PL_TEXT_BLOCK_BYTES, &got, err));
        c->held += got;
        count_block(c, got == 0);
        PL_TRY(pl_text_tell(file, progress, context, "collecting the characters", err));
    }
    return PL_OK;
}

pl_status pl_chars_train_file(pl_text_file *file, uint32_t vocab, pl_text_progress progress, void *context,
                              pl_tokenizer **out, pl_error *err)
{
    chars c;
    *out = NULL;
    if (vocab < 2 || vocab > PL_VOCAB_MAX)
        return pl_fail(err, PL_E_CONFIG, "vocab_size is %u; 2 to %d were expected for characters", vocab, PL_VOCAB_MAX);
    PL_TRY(chars_init(&c, err));
    pl_status status = count_file(&c, file, progress, context, err);
    if (status == PL_OK) status = pl_tokenizer_create_chars(c.kept, choose(&c, vocab - 1), out, err);
    chars_deinit(&c);
    pl_text_rewind(file);
    return status;
}
