/* Byte-level BPE against slow readings of the definition: training by counting all pairs of all words again before
 * every merge, encoding by searching the whole piece for its best merge again and again. Texts are random, over few
 * letters so that ties, runs and repeats are frequent. Usage: program [seed] */
#include "unit/data/scratch.h"

#include "data/text/alphabet.h"
#include "data/text/bpe_train.h"
#include "data/text/encoder.h"
#include "data/text/pretoken.h"
#include "support/program.h"
#include "support/seed.h"

enum { TEXT_MAX = 3000, WORDS_MAX = TEXT_MAX, WORD = 64, VOCAB_MAX = 400 };

static const pl_pretoken gpt2 = {PL_SCANNER_GPT2, PL_PRECUT_NONE};
static uint64_t seed;
static pl_error err;

/* ---- the slow trainer ---- */

typedef struct slow_word {
    uint32_t id[WORD], n;
} slow_word;

typedef struct slow {
    slow_word word[WORDS_MAX];
    size_t words;
    uint8_t text[VOCAB_MAX][WORD];
    uint32_t length[VOCAB_MAX], vocab;
    uint32_t left[VOCAB_MAX], right[VOCAB_MAX], made[VOCAB_MAX], merges;
} slow;

static slow s;

static void slow_cut(const uint8_t *text, size_t n)
{
    uint8_t order[256], id[256];
    pl_alphabet_order(order);
    s.vocab = 256, s.words = s.merges = 0;
    for (unsigned i = 0; i < 256; i++) id[order[i]] = (uint8_t)i, s.text[i][0] = order[i], s.length[i] = 1;
    for (size_t at = 0; at < n;) {
        size_t bytes = pl_pretoken_length(gpt2, text + at, n - at, 1, WORD);
        slow_word *w = &s.word[s.words++];
        w->n = (uint32_t)bytes;
        for (size_t i = 0; i < bytes; i++) w->id[i] = id[text[at + i]];
        at += bytes;
    }
}

/* The most frequent pair, the lowest ids among equals; its count. */
static uint32_t slow_best(uint32_t *left, uint32_t *right)
{
    static uint32_t count[VOCAB_MAX][VOCAB_MAX];
    uint32_t best = 0;
    memset(count, 0, sizeof count);
    for (size_t w = 0; w < s.words; w++)
        for (uint32_t i = 0; i + 1 < s.word[w].n; i++) count[s.word[w].id[i]][s.word[w].id[i + 1]]++;
    for (uint32_t a = 0; a < s.vocab; a++)
        for (uint32_t b = 0; b < s.vocab; b++)
            if (count[a][b] > best) best = count[a][b], *left = a, *right = b;
    return best;
}

static uint32_t slow_token(uint32_t a, uint32_t b)
{
    uint8_t joined[2 * WORD];
    uint32_t n = s.length[a] + s.length[b];
    memcpy(joined, s.text[a], s.length[a]);
    memcpy(joined + s.length[a], s.text[b], s.length[b]);
    for (uint32_t id = 0; id < s.vocab; id++)
        if (s.length[id] == n && memcmp(s.text[id], joined, n) == 0) return id;
    memcpy(s.text[s.vocab], joined, n);
    s.length[s.vocab] = n;
    return s.vocab++;
}

static void slow_apply(slow_word *w, uint32_t a, uint32_t b, uint32_t id)
{
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        if (w->id[i] != a || w->id[i + 1] != b) continue;
        w->id[i] = id;
        memmove(&w->id[i + 1], &w->id[i + 2], (w->n - i - 2) * sizeof w->id[0]);
        w->n--;
    }
}

static void slow_train(const uint8_t *text, size_t n, uint32_t vocab, uint32_t least)
{
    uint32_t a = 0, b = 0;
    slow_cut(text, n);
    while (s.vocab < vocab && slow_best(&a, &b) >= least) {
        uint32_t id = slow_token(a, b), m = s.merges++;
        s.left[m] = a, s.right[m] = b, s.made[m] = id;
        for (size_t w = 0; w < s.words; w++) slow_apply(&s.word[w], a, b, id);
    }
}

/* The best merge is the first in the list that applies, at its first place. */
static void slow_encode_piece(slow_word *w)
{
    for (uint32_t m = 0; m < s.merges;) {
        uint32_t i = 0;
        while (i + 1 < w->n && (w->id[i] != s.left[m] || w->id[i + 1] != s.right[m])) i++;
        if (i + 1 >= w->n) {
            m++;
            continue;
        }
        w->id[i] = s.made[m];
        memmove(&w->id[i + 1], &w->id[i + 2], (w->n - i - 2) * sizeof w->id[0]);
        w->n--;
        m = 0;
    }
}

/* ---- texts ---- */

static size_t random_text(scratch_random *r, uint8_t *text, size_t max)
{
    static const char *const sets[] = {"ab ", "abc d\n", "aaab'st 1", "the and ing \n\t",
                                       "\xc3\xa9\xe6\x97\xa5 a\xff\x80"};
    const char *set = sets[scratch_next(r, 5)];
    size_t n = 1 + scratch_next(r, (uint32_t)max);
    for (size_t i = 0; i < n; i++) text[i] = (uint8_t)set[scratch_next(r, (uint32_t)strlen(set))];
    return n;
}

static pl_tokenizer *train(const uint8_t *text, size_t n, uint32_t vocab, uint32_t least, scratch_random *r)
{
    pl_bpe_options o = pl_bpe_options_default(vocab);
    pl_bpe_trainer *trainer;
    pl_tokenizer *t;
    o.special = NULL;
    o.word_bytes = WORD;
    o.min_count = least;
    assert_int_equal(pl_bpe_trainer_create(&o, &trainer, &err), PL_OK);
    for (size_t at = 0; at < n;) {
        size_t portion = 1 + scratch_next(r, 500);
        if (portion > n - at) portion = n - at;
        pl_bpe_trainer_feed(trainer, text + at, portion);
        at += portion;
    }
    assert_int_equal(pl_bpe_trainer_finish(trainer, &t, &err), PL_OK);
    pl_bpe_trainer_destroy(trainer);
    return t;
}

static void check_training(const pl_tokenizer *t)
{
    if (pl_tokenizer_vocab_size(t) != s.vocab)
        fail_msg("%u tokens, %u were expected; repeat with seed %llu", pl_tokenizer_vocab_size(t), s.vocab,
                 (unsigned long long)seed);
    for (uint32_t id = 0; id < s.vocab; id++) {
        size_t bytes;
        const uint8_t *text = pl_tokenizer_token(t, id, &bytes);
        if (bytes != s.length[id] || memcmp(text, s.text[id], bytes))
            fail_msg("token %u differs; repeat with seed %llu", id, (unsigned long long)seed);
    }
}

static void check_encoding(const pl_tokenizer *t, const uint8_t *text, size_t n)
{
    uint32_t *ids;
    size_t count, at = 0;
    slow_word w;
    assert_int_equal(pl_encode(t, text, n, &ids, &count, &err), PL_OK);
    uint32_t merges = s.merges, vocab = s.vocab;
    slow_cut(text, n);
    s.merges = merges, s.vocab = vocab;
    for (size_t i = 0; i < s.words; i++) {
        w = s.word[i];
        slow_encode_piece(&w);
        for (uint32_t j = 0; j < w.n; j++, at++)
            if (at >= count || ids[at] != w.id[j])
                fail_msg("id %zu differs; repeat with seed %llu", at, (unsigned long long)seed);
    }
    assert_int_equal(at, count);
    pl_free(ids);
}

static void test_training_and_encoding(void **state)
{
    (void)state;
    static uint8_t text[TEXT_MAX], other[TEXT_MAX];
    scratch_random r = {pl_philox_init(seed, 1), 0};
    for (int i = 0; i < 60; i++) {
        size_t n = random_text(&r, text, TEXT_MAX), m = random_text(&r, other, WORD);
        uint32_t vocab = 256 + scratch_next(&r, 100), least = 1 + scratch_next(&r, 3);
        slow_train(text, n, vocab, least);
        pl_tokenizer *t = train(text, n, vocab, least, &r);
        check_training(t);
        check_encoding(t, other, m);
        pl_tokenizer_destroy(t);
    }
}

/* ---- any bytes come back; portions have no influence ---- */

typedef struct collected {
    uint32_t id[TEXT_MAX];
    size_t count;
} collected;

static pl_status collect(void *context, const uint32_t *ids, size_t count, pl_error *e)
{
    collected *c = context;
    (void)e;
    memcpy(c->id + c->count, ids, count * sizeof *ids);
    c->count += count;
    return PL_OK;
}

static void encode_in_portions(const pl_tokenizer *t, const uint8_t *text, size_t n, uint32_t largest,
                               scratch_random *r, collected *c)
{
    pl_encoder *e;
    c->count = 0;
    assert_int_equal(pl_encoder_create(t, collect, c, &e, &err), PL_OK);
    for (size_t at = 0; at < n;) {
        size_t portion = 1 + scratch_next(r, largest);
        if (portion > n - at) portion = n - at;
        assert_int_equal(pl_encoder_feed(e, text + at, portion, &err), PL_OK);
        at += portion;
    }
    assert_int_equal(pl_encoder_finish(e, &err), PL_OK);
    pl_encoder_destroy(e);
}

static void check_decoding(const pl_tokenizer *t, const collected *c, const uint8_t *text, size_t n)
{
    pl_decoder d = {0};
    uint8_t out[TEXT_MAX + 64];
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) at += pl_decoder_push(&d, t, c->id[i], out + at);
    at += pl_decoder_finish(&d, out + at);
    assert_int_equal(at, n);
    assert_memory_equal(out, text, n);
}

static void test_any_bytes_come_back(void **state)
{
    (void)state;
    static uint8_t text[TEXT_MAX];
    static collected whole, parts;
    scratch_random r = {pl_philox_init(seed, 2), 0};
    memcpy(text, "the then there <|endoftext|> don't 123 123 \xc3\xa9\xc3\xa9\xc3\xa9", 47);
    pl_bpe_options o = pl_bpe_options_default(300);
    pl_bpe_trainer *trainer;
    pl_tokenizer *t;
    assert_int_equal(pl_bpe_trainer_create(&o, &trainer, &err), PL_OK);
    pl_bpe_trainer_feed(trainer, text, 47);
    assert_int_equal(pl_bpe_trainer_finish(trainer, &t, &err), PL_OK);
    pl_bpe_trainer_destroy(trainer);
    for (int i = 0; i < 300; i++) {
        size_t n = 1 + scratch_next(&r, TEXT_MAX);
        for (size_t j = 0; j < n; j++)
            text[j] = i % 2 ? (uint8_t)scratch_next(&r, 256) : (uint8_t) " th\xc3\xa9\n'1e"[scratch_next(&r, 9)];
        if (n > 50) memcpy(text + scratch_next(&r, (uint32_t)n - 20), PL_END_OF_TEXT, 13);
        encode_in_portions(t, text, n, TEXT_MAX, &r, &whole);
        encode_in_portions(t, text, n, 1 + scratch_next(&r, 20), &r, &parts);
        assert_int_equal(whole.count, parts.count);
        assert_memory_equal(whole.id, parts.id, whole.count * sizeof whole.id[0]);
        check_decoding(t, &whole, text, n);
    }
    pl_tokenizer_destroy(t);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_training_and_encoding),
                                       cmocka_unit_test(test_any_bytes_come_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
