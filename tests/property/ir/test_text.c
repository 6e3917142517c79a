/* The graph as text. For graphs of random models at each stage: print → parse → print is the identity. Damaged texts
 * (MUTATIONS of them, each from a printed seed): never a crash; an error is a sentence with line and column; what is
 * accepted prints as a text that reads back to the same text. Truncated texts are refused at every length.
 * `property_ir test_text SEED [LAST]` repeats one mutation, or many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grad/differentiate.h"
#include "models/model.h"
#include "support/extra_fields.h"
#include "reference/mutate.h"
#include "reference/tiny.h"
#include "support/program.h"

/* Under sanitizers one in four: all are in the plain tree's `make soak`, and there a fuzzer searches, too. */
#if defined(__SANITIZE_ADDRESS__)
enum { MUTATIONS = 7500 };
#else
enum { MUTATIONS = 30000 };
#endif
enum { MODELS = 40, TEXTS = 6 };
static uint64_t only_seed, last_seed;

static pl_str print(const pl_graph *g)
{
    pl_str s = {0};
    pl_graph_print(g, &s);
    assert_false(s.failed);
    return s;
}

/* The text of a graph that was accepted is a fixed point. */
static void check_reads_back(const pl_graph *g, uint64_t seed)
{
    pl_error err = {0};
    pl_graph *again = NULL;
    pl_str first = print(g);
    if (pl_graph_parse("again", pl_str_text(&first), first.bytes, &again, &err) != PL_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    pl_str second = print(again);
    if (strcmp(pl_str_text(&first), pl_str_text(&second)) != 0)
        fail_msg("seed %llu: printed, read and printed again it differs", (unsigned long long)seed);
    pl_str_deinit(&first);
    pl_str_deinit(&second);
    pl_graph_destroy(again);
}

static pl_graph *graph_of(uint64_t seed)
{
    tiny t;
    pl_error err = {0};
    pl_graph *g = NULL;
    tiny_random(&t, seed);
    t.frozen = seed % 2 ? 0 : 40;
    t.update = true;
    if (seed % 3 == 0) return tiny_compiled(&t);
    if (seed % 3 == 1) return tiny_forward(&t);
    assert_int_equal(pl_model_build(&t.config, PL_FACT("vocab", t.vocab), &g, &err), PL_OK);
    return g;
}

static void print_parse_print_is_the_identity(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        pl_graph *g = graph_of(seed);
        check_reads_back(g, seed);
        pl_graph_destroy(g);
    }
}

static void check_sentence(const pl_error *err, const char *name, uint64_t seed)
{
    int line = 0, column = 0;
    size_t n = strlen(name);
    bool place = strncmp(err->text, name, n) == 0 && sscanf(err->text + n, ":%d:%d: ", &line, &column) == 2;
    if (!place || line < 0 || column < 0 || err->status != PL_E_DATA)
        fail_msg("seed %llu: no place in \"%s\"", (unsigned long long)seed, err->text);
}

static void try_text(const char *text, size_t bytes, uint64_t seed)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    char *exact = malloc(bytes ? bytes : 1); /* so that a sanitizer sees a read behind the end */
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    if (pl_graph_parse("damaged", exact, bytes, &g, &err) != PL_OK)
        check_sentence(&err, "damaged", seed);
    else {
        check_reads_back(g, seed);
        for (int stage = PL_STAGE_MODEL; stage <= PL_STAGE_BOUND; stage++) /* legal or not, it is judged without harm */
            if (pl_graph_check(g, (pl_graph_stage)stage, &err) != PL_OK) assert_true(err.text[0]);
    }
    pl_graph_destroy(g);
    free(exact);
}

static void damaged_texts_are_refused_with_a_place(void **state)
{
    (void)state;
    pl_str text[TEXTS];
    for (uint64_t i = 0; i < TEXTS; i++) {
        pl_graph *g = graph_of(i + 100);
        text[i] = print(g);
        pl_graph_destroy(g);
    }
    uint64_t live = pl_alloc_live_blocks();
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? last_seed : MUTATIONS); seed++) {
        const pl_str *from = &text[seed % TEXTS];
        char *damaged = malloc(from->bytes + MUTATE_ROOM);
        assert_non_null(damaged);
        try_text(damaged, mutate(from->data, from->bytes, damaged, seed), seed);
        free(damaged);
    }
    assert_int_equal(pl_alloc_live_blocks(), live);
    for (int i = 0; i < TEXTS; i++) pl_str_deinit(&text[i]);
}

static void truncated_texts_are_refused(void **state)
{
    (void)state;
    pl_graph *g = graph_of(2);
    pl_str text = print(g);
    for (size_t bytes = 0; bytes + 1 < text.bytes; bytes++) { /* without its last newline it is whole */
        pl_error err = {0};
        pl_graph *read = NULL;
        if (pl_graph_parse("short", text.data, bytes, &read, &err) == PL_OK)
            fail_msg("%zu of %zu bytes were taken for a graph", bytes, text.bytes);
        check_sentence(&err, "short", bytes);
    }
    pl_graph_destroy(g);
    pl_str_deinit(&text);
}

static void ends_of_the_text_are_sentences(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "# nothing\n",
                                        "plan 1\n",
                                        "graph 3\nend graph\n",
                                        "graph 0\nend graph\n",
                                        "graph 1\nend plan\n",
                                        "graph 1\nend graph\nvalue\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pl_error err = {0};
        pl_graph *g = NULL;
        if (pl_graph_parse("t", texts[i], strlen(texts[i]), &g, &err) == PL_OK)
            fail_msg("\"%s\" was accepted", texts[i]);
        check_sentence(&err, "t", i);
    }
}

static pl_status parse_graph(const char *text, size_t bytes, pl_error *err)
{
    pl_graph *read = NULL;
    pl_status status = pl_graph_parse("t", text, bytes, &read, err);
    pl_graph_destroy(read);
    return status;
}

/* Every line with one field more: an error at that field. */
static void a_field_too_many_is_refused(void **state)
{
    (void)state;
    pl_graph *g = graph_of(2);
    pl_str text = print(g);
    refuse_extra_fields(&text, parse_graph);
    pl_graph_destroy(g);
    pl_str_deinit(&text);
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = last_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) last_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_parse_print_is_the_identity), cmocka_unit_test(damaged_texts_are_refused_with_a_place),
        cmocka_unit_test(truncated_texts_are_refused),       cmocka_unit_test(ends_of_the_text_are_sentences),
        cmocka_unit_test(a_field_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
