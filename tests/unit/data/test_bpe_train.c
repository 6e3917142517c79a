/* Training: a case worked out by hand, the bounded table of words, the options, long pieces, memory. */
#include "unit/data/scratch.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "data/text/bpe_train.h"
#include "data/text/chars.h"
#include "data/text/encoder.h"
#include "data/text/words.h"
#include "support/program.h"

static pl_error err;

static pl_tokenizer *train(const pl_bpe_options *o, const char *text)
{
    pl_bpe_trainer *trainer;
    pl_tokenizer *t;
    assert_int_equal(pl_bpe_trainer_create(o, &trainer, &err), PL_OK);
    pl_bpe_trainer_feed(trainer, text, strlen(text));
    assert_int_equal(pl_bpe_trainer_finish(trainer, &t, &err), PL_OK);
    pl_bpe_trainer_destroy(trainer);
    return t;
}

static void assert_token(const pl_tokenizer *t, uint32_t id, const char *expected)
{
    size_t bytes;
    const uint8_t *text = pl_tokenizer_token(t, id, &bytes);
    if (bytes != strlen(expected) || memcmp(text, expected, bytes))
        fail_msg("token %u is \"%.*s\", not \"%s\"", id, (int)bytes, text, expected);
}

/* Words: low ×5, " lower" ×2, " newest" ×6 , " widest" ×3 (the example of Sennrich et al., with byte-level blanks).
 * Pairs: es 9, st 9, " n" 6, ew 6, ne 6, we 8 = 2 + 6, …; e < s < w as ids, so of es and st (both 9) es comes first;
 * then es+t 9; we 8 is now 2, w+est 6; lo 7, ow 7: lo first, then lo+w 7. Then 6: " n", n e, e w, w est: the lowest
 * ids. */
static void test_by_hand(void **state)
{
    (void)state;
    pl_bpe_options o = pl_bpe_options_default(257 + 5);
    pl_tokenizer *t =
        train(&o, "low low low low low lower lower newest newest newest newest newest newest widest widest widest");
    assert_token(t, 0, PL_END_OF_TEXT);
    assert_token(t, 1, "!");
    assert_token(t, 257, "es");
    assert_token(t, 258, "est");
    assert_token(t, 259, "lo");
    assert_token(t, 260, "low");
    assert_int_equal(pl_tokenizer_vocab_size(t), 262);
    pl_tokenizer_destroy(t);
}

static void test_runs(void **state)
{
    (void)state;
    pl_bpe_options o = pl_bpe_options_default(260);
    o.special = NULL;
    o.min_count = 1;
    pl_tokenizer *t = train(&o, "aaaaaaa");
    assert_token(t, 256, "aa");
    assert_token(t, 257, "aaaa"); /* aa aa aa a: (aa,aa) twice */
    pl_tokenizer_destroy(t);
}

static void test_text_without_pairs(void **state)
{
    (void)state;
    pl_bpe_options o = pl_bpe_options_default(500);
    pl_tokenizer *t = train(&o, "a");
    assert_int_equal(pl_tokenizer_vocab_size(t), 257);
    pl_tokenizer_destroy(t);
}

static void test_words_leave_in_a_fixed_order(void **state)
{
    (void)state;
    pl_words w;
    assert_int_equal(pl_words_init(&w, 16, 1 << 10, &err), PL_OK);
    for (int round = 0; round < 3; round++) pl_words_add(&w, (const uint8_t *)"often", 5);
    for (int i = 0; i < 15; i++) pl_words_add(&w, (const uint8_t *)"abcdefghijklmno" + i, 1);
    pl_words_add(&w, (const uint8_t *)"c", 1);
    assert_int_equal(w.count, 16);
    pl_words_add(&w, (const uint8_t *)"new", 3); /* 8 leave: the last seen of those with count 1 */
    assert_int_equal(w.count, 9);
    assert_int_equal(w.evicted, 8);
    static const char *const stay[] = {"often", "a", "b", "c", "d", "e", "f", "g", "new"};
    for (uint32_t i = 0; i < 9; i++) assert_memory_equal(w.text + w.word[i].offset, stay[i], w.word[i].bytes);
    assert_int_equal(w.word[3].count, 2);
    pl_words_add(&w, (const uint8_t *)"often", 5);
    assert_int_equal(w.word[0].count, 4);
    pl_words_deinit(&w);
}

static uint32_t number_text(uint32_t i, char text[16]) { return (uint32_t)snprintf(text, 16, "%u", i * 7919u); }

/* It grows as words come, to its bounds; where it began makes no difference to what is in it. */
static void test_words_grow(void **state)
{
    (void)state;
    enum { WORDS = 20000, LIMIT = 1 << 15 };
    pl_words w;
    char text[16];
    assert_int_equal(pl_words_init(&w, LIMIT, 1 << 20, &err), PL_OK);
    assert_true(w.word_room < WORDS);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = round; i < WORDS; i += 1 + round)
            pl_words_add(&w, (const uint8_t *)text, number_text(i, text));
    assert_true(w.count == WORDS && w.word_room >= WORDS && w.word_room <= LIMIT && w.evicted == 0 && !w.refused);
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_int_equal(w.word[i].bytes, number_text(i, text));
        assert_memory_equal(w.text + w.word[i].offset, text, w.word[i].bytes);
        assert_int_equal(w.word[i].count, 1 + i % 2);
    }
    pl_words_deinit(&w);
}

/* Memory that is refused while it grows is told at the end; nothing is learned from half of the words. */
static void test_words_that_cannot_grow(void **state)
{
    (void)state;
    char text[24];
    for (uint64_t n = 1; n <= 4; n++) {
        pl_bpe_options o = pl_bpe_options_default(300);
        pl_bpe_trainer *trainer;
        pl_tokenizer *t = NULL;
        uint64_t before = pl_alloc_live_blocks();
        assert_int_equal(pl_bpe_trainer_create(&o, &trainer, &err), PL_OK);
        pl_alloc_fail_at(n, 0);
        for (uint32_t i = 0; i < 20000; i++) {
            text[0] = ' ';
            pl_bpe_trainer_feed(trainer, text, 1 + number_text(i, text + 1));
        }
        pl_alloc_fail_at(0, 0);
        assert_int_equal(pl_bpe_trainer_finish(trainer, &t, &err), PL_E_NOMEM);
        assert_non_null(strstr(err.text, "no memory for the table of words"));
        pl_bpe_trainer_destroy(trainer);
        assert_int_equal(pl_alloc_live_blocks(), before);
    }
}

static void test_words_run_out_of_text(void **state)
{
    (void)state;
    pl_words w;
    uint8_t word[64];
    assert_int_equal(pl_words_init(&w, 1000, 256, &err), PL_OK);
    for (unsigned i = 0; i < 5000; i++) {
        memset(word, (int)('a' + i % 26), sizeof word);
        memcpy(word, &i, sizeof i);
        pl_words_add(&w, word, 1 + i % 64);
        assert_true(w.text_bytes <= 256);
    }
    pl_words_deinit(&w);
}

/* A table far too small still gives a tokenizer, the same each time. */
static void test_small_table(void **state)
{
    (void)state;
    pl_bpe_options o = pl_bpe_options_default(300);
    o.word_limit = 16, o.word_text_limit = 16 * o.word_bytes;
    pl_bpe_trainer *trainer;
    pl_tokenizer *t[2];
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pl_bpe_trainer_create(&o, &trainer, &err), PL_OK);
        for (unsigned i = 0; i < 3000; i++) {
            char word[32];
            pl_bpe_trainer_feed(trainer, word, (size_t)snprintf(word, sizeof word, " the w%u", i * 7919u % 1000));
        }
        assert_int_equal(pl_bpe_trainer_finish(trainer, &t[k], &err), PL_OK);
        assert_true(pl_bpe_trainer_evicted(trainer) > 0);
        pl_bpe_trainer_destroy(trainer);
    }
    assert_int_equal(pl_tokenizer_hash(t[0]), pl_tokenizer_hash(t[1]));
    pl_tokenizer_destroy(t[0]), pl_tokenizer_destroy(t[1]);
}

static void test_options(void **state)
{
    (void)state;
    pl_bpe_options o = pl_bpe_options_default(788);
    assert_int_equal(pl_bpe_options_check(&o, &err), PL_OK);
    assert_true(pl_bpe_train_bytes(&o) < 40000000);
    o.vocab = 256;
    assert_int_equal(pl_bpe_options_check(&o, &err), PL_E_CONFIG);
    assert_says(&err, "vocab_size is 256");
    o.vocab = 65536;
    assert_int_equal(pl_bpe_options_check(&o, &err), PL_E_CONFIG);
    o = pl_bpe_options_default(788), o.word_bytes = 300;
    assert_int_equal(pl_bpe_options_check(&o, &err), PL_E_CONFIG);
    o = pl_bpe_options_default(788), o.special = "";
    assert_int_equal(pl_bpe_options_check(&o, &err), PL_E_CONFIG);
    o = pl_bpe_options_default(788), o.word_limit = 0;
    assert_int_equal(pl_bpe_options_check(&o, &err), PL_E_CONFIG);
}

/* A piece longer than the encoder's limit is encoded in bounded memory and comes back. */
static void test_endless_piece(void **state)
{
    (void)state;
    pl_bpe_options o = pl_bpe_options_default(300);
    pl_tokenizer *t = train(&o, "aaaa aaaa aaaa");
    size_t n = 200001, count, bytes, total = 0;
    char *text = pl_alloc(n, 1);
    uint32_t *ids;
    memset(text, 'a', n);
    assert_int_equal(pl_encode(t, text, n, &ids, &count, &err), PL_OK);
    for (size_t i = 0; i < count; i++) pl_tokenizer_token(t, ids[i], &bytes), total += bytes;
    assert_int_equal(total, n);
    pl_free(ids), pl_free(text), pl_tokenizer_destroy(t);
}

static void test_memory_refused(void **state)
{
    (void)state;
    const char *path = scratch_file("text", "the cat sat on the mat", 22);
    uint64_t live = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    for (int kind = 0; kind < 2; kind++, status = PL_E_NOMEM)
        for (uint64_t n = 1; status != PL_OK; n++) {
            pl_bpe_options o = pl_bpe_options_default(260);
            pl_corpus corpus;
            pl_tokenizer *t;
            assert_int_equal(pl_corpus_open(&corpus, &(pl_corpus_wish){.names = path, .form = PL_TEXTS_WHOLE}, &err),
                             PL_OK);
            pl_alloc_fail_at(n, n % 2);
            status = kind ? pl_chars_train(&corpus, 50, &t, &err) : pl_bpe_train(&corpus, &o, NULL, &t, &err);
            pl_alloc_fail_at(0, 0);
            if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
            pl_tokenizer_destroy(t);
            assert_int_equal(pl_alloc_live_blocks(), live);
        }
}

typedef struct heard {
    int merges, stop_after; /* tellings of the second phase; 0: never */
    uint64_t first, last, total;
} heard;

static bool hear(void *context, const char *phase, uint64_t done, uint64_t total)
{
    heard *h = context;
    if (strcmp(phase, "merging pairs into tokens") != 0) return true;
    if (h->merges++ == 0) h->first = done;
    h->last = done;
    h->total = total;
    return h->merges != h->stop_after;
}

static pl_status train_heard(heard *h, pl_tokenizer **t)
{
    static const char text[] = "low low low low low lower lower newest newest newest newest newest newest widest";
    pl_bpe_options o = pl_bpe_options_default(264);
    pl_corpus corpus;
    assert_int_equal(
        pl_corpus_open(&corpus,
                       &(pl_corpus_wish){.names = scratch_file("text", text, sizeof text - 1), .form = PL_TEXTS_WHOLE},
                       &err),
        PL_OK);
    corpus.progress = hear, corpus.context = h;
    pl_status status = pl_bpe_train(&corpus, &o, NULL, t, &err);
    return status;
}

/* 257 ids are there before the first merge; seven are added, and each is told. */
static void test_merges_are_told(void **state)
{
    (void)state;
    uint64_t live = pl_alloc_live_blocks();
    pl_tokenizer *t = NULL;
    heard all = {0}, some = {.stop_after = 3};
    assert_int_equal(train_heard(&all, &t), PL_OK);
    assert_int_equal(pl_tokenizer_vocab_size(t), 264);
    assert_true(all.merges >= 7 && all.first == 257 && all.last == 264 && all.total == 264);
    pl_tokenizer_destroy(t);
    assert_int_equal(train_heard(&some, &t), PL_E_STOPPED);
    assert_true(some.merges == 3 && some.last < 264 && t == NULL);
    assert_non_null(strstr(err.text, "text: stopped while merging pairs into tokens"));
    assert_int_equal(pl_alloc_live_blocks(), live);
}

/* In the child, with room for so many bytes more than it has: 0 when training succeeds, 1 when memory is refused. The
 * text is the worst there is: nothing but different words, so that every table fills. */
static int train_within(const pl_bpe_options *o, uint64_t bytes)
{
    pl_bpe_trainer *trainer;
    pl_tokenizer *t = NULL;
    char word[32];
    long pages = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %*d %*d %*d %*d %ld", &pages) != 1) return 2;
    fclose(f);
    uint64_t limit = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes;
    if (setrlimit(RLIMIT_DATA, &(struct rlimit){limit, limit})) return 2;
    if (pl_bpe_trainer_create(o, &trainer, &err) != PL_OK) return 1;
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t mixed = i * 0x9e3779b97f4a7c15u;
        int n =
            snprintf(word, sizeof word, " %c%c%c%c%c%c%c", (int)('a' + mixed % 26), (int)('a' + (mixed >> 8) % 26),
                     (int)('a' + (mixed >> 16) % 26), (int)('a' + (mixed >> 24) % 26), (int)('a' + (mixed >> 32) % 26),
                     (int)('a' + (mixed >> 40) % 26), (int)('a' + (mixed >> 48) % 26));
        pl_bpe_trainer_feed(trainer, word, (size_t)n);
    }
    return pl_bpe_trainer_finish(trainer, &t, &err) == PL_OK ? 0 : 1;
}

static int train_in_child(const pl_bpe_options *o, uint64_t bytes)
{
    int status;
    pid_t child = fork();
    if (child == 0) _exit(train_within(o, bytes));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The bytes that are announced are enough for any text, and not more than twice what is needed. */
static void test_announced_bytes_are_enough(void **state)
{
    (void)state;
    if (scratch_instrumented()) skip();
    static const uint32_t vocabs[] = {300, 788, 4000};
    for (size_t i = 0; i < 3; i++) {
        pl_bpe_options o = pl_bpe_options_default(vocabs[i]);
        o.word_limit = 1 << 17, o.word_text_limit = 1 << 20;
        uint64_t heap_slack = 400 << 10; /* what malloc takes beyond what it is asked for: headers, growing in steps */
        assert_int_equal(train_in_child(&o, pl_bpe_train_bytes(&o) + heap_slack), 0);
        assert_int_equal(train_in_child(&o, pl_bpe_train_bytes(&o) / 2), 1);
    }
}

static void test_chars(void **state)
{
    (void)state;
    pl_corpus corpus;
    pl_tokenizer *t;
    const char *path = scratch_file("chars",
                                    "bbb\xc3\xa9\xff"
                                    "aa\xc3\xa9zy",
                                    12);
    assert_int_equal(pl_corpus_open(&corpus, &(pl_corpus_wish){.names = path, .form = PL_TEXTS_WHOLE}, &err), PL_OK);
    assert_int_equal(pl_chars_train(&corpus, 100, &t, &err), PL_OK);
    assert_int_equal(pl_tokenizer_vocab_size(t), 6);
    assert_token(t, 1, "a"), assert_token(t, 2, "b"), assert_token(t, 3, "y"), assert_token(t, 4, "z"),
        assert_token(t, 5, "é");
    pl_tokenizer_destroy(t);
    assert_int_equal(pl_chars_train(&corpus, 5, &t, &err), PL_OK); /* b 3, a 2, é 2, then y before z */
    assert_token(t, 1, "a"), assert_token(t, 2, "b"), assert_token(t, 3, "y"), assert_token(t, 4, "é");
    pl_tokenizer_destroy(t);
    assert_int_equal(pl_chars_train(&corpus, 1, &t, &err), PL_E_CONFIG);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_text_without_pairs),
        cmocka_unit_test(test_words_leave_in_a_fixed_order),
        cmocka_unit_test(test_words_run_out_of_text),
        cmocka_unit_test(test_words_grow),
        cmocka_unit_test(test_words_that_cannot_grow),
        cmocka_unit_test(test_small_table),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_endless_piece),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_merges_are_told),
        cmocka_unit_test(test_announced_bytes_are_enough),
        cmocka_unit_test(test_chars),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
