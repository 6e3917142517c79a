#include "data/text/words_train.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/word_split.h"
#include "data/text/words.h"

enum { WORD_LIMIT = 1 << 19, TEXT_LIMIT = 8 << 20 };

static const char *const special[PL_WORDS_SPECIAL] = {"<PAD>", "<UNK>", "<BOS>", "<EOS>", "<MASK>"};

typedef struct counting {
    pl_words words;
    pl_word_split split;
} counting;

/* What is sorted. */
typedef struct counted {
    const uint8_t *text;
    uint64_t count;
    uint32_t bytes;
} counted;

uint64_t pl_words_train_bytes(void)
{
    const uint64_t finished = PL_VOCAB_MAX * (sizeof(pl_vocab_entry) + 4 * sizeof(uint32_t)) + TEXT_LIMIT;
    return sizeof(counting) + pl_words_bytes(WORD_LIMIT, TEXT_LIMIT) + WORD_LIMIT * sizeof(counted) + finished;
}

/* A JSON key cannot contain a zero byte; such a word stays unknown. */
static pl_status count_word(void *context, const uint8_t *word, size_t bytes, pl_error *err)
{
    counting *c = context;
    (void)err;
    if (word && !memchr(word, 0, bytes)) pl_words_add(&c->words, word, (uint32_t)bytes);
    return PL_OK;
}

static pl_status take_piece(void *context, const void *data, size_t bytes, pl_error *err)
{
    counting *c = context;
    return pl_word_split_feed(&c->split, data, bytes, err);
}

static pl_status take_end(void *context, pl_error *err)
{
    counting *c = context;
    return pl_word_split_end(&c->split, err);
}

static pl_status count_words(pl_corpus *corpus, counting *c, pl_error *err)
{
    const pl_corpus_taker taker = {.piece = take_piece, .end = take_end, .context = c};
    PL_TRY(pl_corpus_read(corpus, "counting the words", &taker, err));
    PL_TRY(pl_word_split_end(&c->split, err));
    return c->words.refused ? pl_fail(err, PL_E_NOMEM, "no memory for the table of words") : PL_OK;
}

static int most_frequent_first(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    const int order = memcmp(x->text, y->text, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static counted *sorted(const pl_words *w)
{
    counted *all = pl_alloc(w->count ? w->count : 1, sizeof *all);
    for (uint32_t i = 0; all && i < w->count; i++)
        all[i] = (counted){w->text + w->word[i].offset, w->word[i].count, w->word[i].bytes};
    if (all) qsort(all, w->count, sizeof *all, most_frequent_first);
    return all;
}

static pl_status make_tokenizer(const counted *all, uint32_t count, pl_tokenizer **out, pl_error *err)
{
    pl_added_token added[PL_WORDS_SPECIAL];
    pl_vocab_entry *entry = pl_alloc(count + PL_WORDS_SPECIAL, sizeof *entry);
    if (!entry) return pl_fail(err, PL_E_NOMEM, "no memory for the tokenizer's vocabulary");
    for (uint32_t i = 0; i < PL_WORDS_SPECIAL; i++) {
        const uint32_t bytes = (uint32_t)strlen(special[i]);
        entry[i] = (pl_vocab_entry){(const uint8_t *)special[i], bytes, 1};
        added[i] = (pl_added_token){.id = i, .bytes = bytes, .special = 1, .in_model = 1};
    }
    for (uint32_t i = 0; i < count; i++) entry[PL_WORDS_SPECIAL + i] = (pl_vocab_entry){all[i].text, all[i].bytes, 1};
    pl_status status = pl_tokenizer_begin(PL_TOKENIZER_WORDS, entry, count + PL_WORDS_SPECIAL, out, err);
    pl_free(entry);
    PL_TRY(status);
    const pl_word_parts parts = {
        .added = added, .added_count = PL_WORDS_SPECIAL, .unknown = PL_WORDS_UNKNOWN, .lower = 1};
    status = pl_tokenizer_finish_words(*out, &parts, err);
    if (status != PL_OK) pl_tokenizer_destroy(*out), *out = NULL;
    return status;
}

static pl_status choose(const pl_words *w, uint32_t vocab, pl_tokenizer **out, pl_error *err)
{
    counted *all = sorted(w);
    if (!all) return pl_fail(err, PL_E_NOMEM, "no memory for choosing words");
    const uint32_t room = vocab - PL_WORDS_SPECIAL;
    const pl_status status = make_tokenizer(all, w->count < room ? w->count : room, out, err);
    pl_free(all);
    return status;
}

pl_status pl_words_train(pl_corpus *corpus, uint32_t vocab, uint64_t *evicted, pl_tokenizer **out, pl_error *err)
{
    *out = NULL;
    if (vocab <= PL_WORDS_SPECIAL || vocab > PL_VOCAB_MAX)
        return pl_fail(err, PL_E_CONFIG, "vocab_size is %u; %d to %d were expected for words", vocab,
                       PL_WORDS_SPECIAL + 1, PL_VOCAB_MAX);
    counting *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for counting words");
    pl_word_split_init(&c->split, true, count_word, c);
    pl_status status = pl_words_init(&c->words, WORD_LIMIT, TEXT_LIMIT, err);
    if (status == PL_OK) status = count_words(corpus, c, err);
    if (status == PL_OK) status = choose(&c->words, vocab, out, err);
    *evicted = c->words.evicted;
    pl_words_deinit(&c->words);
    pl_free(c);
    return status;
}
