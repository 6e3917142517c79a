/* The plan as text. Plans of random models: print → parse → print is the identity, and the plan that was read runs to
 * the same bits. Damaged texts: never a crash; an error is a sentence with line and column; what the parser and the
 * judge both accept is run, in exactly the memory that it asks for, so that a sanitizer sees a judge that is too kind.
 * Truncated texts are refused. `property_plan test_text SEED [LAST]` repeats one mutation, or many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/extra_fields.h"
#include "reference/mutate.h"
#include "reference/tiny.h"
#include "support/flip.h"
#include "support/load.h"
#include "support/program.h"

/* Under sanitizers one in four: all are in the plain tree's `make soak`, and there a fuzzer searches, too. */
#if defined(__SANITIZE_ADDRESS__)
enum { MUTATIONS = 5000 };
#else
enum { MUTATIONS = 20000 };
#endif
enum { MODELS = 12, TEXTS = 4, RUN_BYTES_MAX = 1 << 20 };
static uint64_t only_seed, last_seed;

static pl_str print(const pl_plan *p)
{
    pl_str s = {0};
    pl_plan_print(p, &s);
    assert_false(s.failed);
    return s;
}

static void tiny_of(tiny *t, uint64_t seed)
{
    tiny_random(t, seed);
    t->frozen = seed % 2 ? 0 : 40;
    t->update = true;
    t->config.model.layers = 1;
}

static pl_plan *parse(const pl_str *text)
{
    pl_error err = {0};
    pl_plan *p = NULL;
    if (pl_plan_parse("plan", pl_str_text(text), text->bytes, &p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

/* A copy "as read" holds as many bytes and blocks of the heap as what was read, and prints the same. */
static void check_copy(const pl_plan *p, const pl_str *text)
{
    pl_error err = {0};
    pl_plan *copy;
    uint64_t bytes = pl_alloc_live_bytes(), blocks = pl_alloc_live_blocks();
    pl_plan *read = parse(text);
    uint64_t read_bytes = pl_alloc_live_bytes() - bytes, read_blocks = pl_alloc_live_blocks() - blocks;
    pl_str expected = print(read);
    pl_plan_destroy(read);
    bytes = pl_alloc_live_bytes(), blocks = pl_alloc_live_blocks();
    assert_int_equal(pl_plan_copy_as_read(p, &copy, &err), PL_OK);
    assert_int_equal(pl_alloc_live_bytes() - bytes, read_bytes);
    assert_int_equal(pl_alloc_live_blocks() - blocks, read_blocks);
    pl_str found = print(copy);
    assert_string_equal(pl_str_text(&found), pl_str_text(&expected));
    pl_plan_destroy(copy);
    pl_str_deinit(&found);
    pl_str_deinit(&expected);
}

static void print_parse_print_is_the_identity(void **state)
{
    (void)state;
    static tiny t;
    static const char *const configs[] = {NULL, "", "model:\n  width: 4\n",
                                          "a: \"b\\\\c\"\n\n\tlast line without an end"};
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        tiny_of(&t, seed);
        pl_plan *p = tiny_plan(&t, (pl_team){2, PL_ISA_BASELINE});
        p->seconds[seed] = 1.0 / 3;
        p->numerics_hash = UINT64_MAX;
        if (seed % 2) p->identity = (pl_facts){{{"text", UINT64_MAX - seed}, {"tokenizer", seed}}, 2};
        if (seed % 3) p->validation = (pl_facts){{{"tokens", seed}, {"bytes", UINT64_MAX - seed}}, 2};
        if (configs[seed % 4]) p->config = pl_strdup(configs[seed % 4]);
        p->disk_count = seed % 3;
        for (size_t i = 0; i < p->disk_count; i++) p->disk[i] = (pl_plan_disk_row){"checkpoints \"x\"", 1000 + i};
        pl_str first = print(p);
        check_copy(p, &first);
        pl_plan *again = parse(&first);
        assert_true(pl_facts_equal(&again->identity, &p->identity));
        assert_true(pl_facts_equal(&again->validation, &p->validation));
        pl_str second = print(again);
        if (seed % 4 != 3) assert_string_equal(pl_str_text(&first), pl_str_text(&second));
        pl_plan *third = parse(&second); /* a last line without an end gets one, once */
        pl_str end = print(third);
        assert_string_equal(pl_str_text(&second), pl_str_text(&end));
        for (int i = 0; i < 3; i++) pl_str_deinit((pl_str *[]){&first, &second, &end}[i]);
        for (int i = 0; i < 3; i++) pl_plan_destroy((pl_plan *[]){p, again, third}[i]);
    }
}

/* The planner of a runner's heap leaves the judge out: what it asks for fits where the text was. */
static void a_check_needs_less_than_the_text(void **state)
{
    (void)state;
    static tiny t;
    pl_error err = {0};
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        tiny_of(&t, seed);
        t.config.model.layers = (int64_t)(seed % 4 + 1);
        pl_plan *p = tiny_plan(&t, (pl_team){2, PL_ISA_BASELINE});
        pl_str text = print(p);
        pl_alloc_meter m = {0};
        (void)pl_alloc_set_meter(&m);
        assert_int_equal(pl_plan_check(p, &err), PL_OK);
        (void)pl_alloc_set_meter(NULL);
        if (m.peak_bytes > text.bytes)
            fail_msg("seed %llu: %llu bytes, the text has %llu", (unsigned long long)seed,
                     (unsigned long long)m.peak_bytes, (unsigned long long)text.bytes);
        pl_str_deinit(&text);
        pl_plan_destroy(p);
    }
}

static void a_plan_that_was_read_runs_to_the_same_bits(void **state)
{
    (void)state;
    static tiny t;
    pl_error err = {0};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        tiny_of(&t, seed);
        tiny_run a = tiny_run_begin(&t, (pl_team){2, PL_ISA_BASELINE});
        pl_str text = print(a.plan);
        tiny_run b = {.plan = parse(&text), .memory = aligned_alloc(64, (a.plan->arena->bytes + 63) / 64 * 64)};
        assert_non_null(b.memory);
        memset(b.memory, 0xFF, a.plan->arena->bytes);
        assert_int_equal(pl_plan_check(b.plan, &err), PL_OK);
        assert_int_equal(pl_program_create(b.plan, b.memory, b.plan->arena->bytes, &b.program, &err), PL_OK);
        for (int i = 0; i < 2; i++) {
            tiny_run_weights(&t, i ? &b : &a);
            tiny_run_step(&t, i ? &b : &a, "train", 1);
            tiny_run_step(&t, i ? &b : &a, "train", 2);
        }
        uint64_t persistent = 0;
        for (size_t i = 0; i < a.plan->graph->value_count; i++)
            if (a.plan->value[i].bytes && a.plan->graph->value[i].program == PL_NONE)
                assert_memory_equal(a.memory + a.plan->value[i].offset, b.memory + a.plan->value[i].offset,
                                    a.plan->value[i].bytes),
                    persistent++;
        assert_true(persistent > 5);
        tiny_run_end(&a);
        tiny_run_end(&b);
        pl_str_deinit(&text);
    }
}

/* ---- damage ---- */

static void check_sentence(const pl_error *err, const char *name, uint64_t seed)
{
    int line = -1, column = -1;
    size_t n = strlen(name);
    bool place = strncmp(err->text, name, n) == 0 && sscanf(err->text + n, ":%d:%d: ", &line, &column) == 2;
    if (!place || line < 0 || column < 0 || err->status != PL_E_DATA)
        fail_msg("seed %llu: no place in \"%s\"", (unsigned long long)seed, err->text);
}

static pl_status load_zeros(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)context, (void)trips, (void)err;
    memset(load_tokens(call), 0, (size_t)load_count(call) * sizeof *load_tokens(call));
    memset(load_targets(call), 0, (size_t)load_count(call) * sizeof *load_targets(call));
    return PL_OK;
}

/* A step, a sample and a place are 1, tokens are 0. */
static void set_inputs(const pl_plan *p, pl_program *program)
{
    for (size_t i = 0; i < p->graph->value_count; i++) {
        const pl_value *v = &p->graph->value[i];
        void *x = pl_program_address(program, (pl_id)i);
        if (v->role != PL_ROLE_INPUT || !p->value[i].bytes) continue;
        memset(x, 0, p->value[i].bytes);
        if (v->dtype == PL_DTYPE_I64) *(int64_t *)x = 1;
    }
}

/* Every region runs once. */
static void run_all(const pl_plan *p)
{
    pl_error err = {0};
    pl_program *program = NULL;
    pl_program_hooks hooks = {.load = load_zeros, .single_trip = true};
    unsigned char *memory = aligned_alloc(64, (p->arena->bytes + 63) / 64 * 64 + 64);
    assert_non_null(memory);
    memset(memory, 0, p->arena->bytes);
    if (pl_program_create(p, memory, p->arena->bytes, &program, &err) == PL_OK) {
        for (pl_id r = 0; r < p->graph->region_count; r++) {
            if (p->graph->region[r].parent != PL_NONE || strcmp(p->graph->region[r].name, "generate") == 0) continue;
            set_inputs(p, program);
            assert_int_equal(pl_program_run(program, r, &hooks, &err), PL_OK);
        }
    }
    pl_program_destroy(program);
    free(memory);
}

static int try_text(const char *text, size_t bytes, uint64_t seed)
{
    pl_error err = {0};
    pl_plan *p = NULL;
    int ran = 0;
    char *exact = malloc(bytes ? bytes : 1);
    assert_non_null(exact);
    memcpy(exact, text, bytes);
    if (pl_plan_parse("damaged", exact, bytes, &p, &err) != PL_OK)
        check_sentence(&err, "damaged", seed);
    else if (pl_plan_check(p, &err) != PL_OK)
        assert_true(err.text[0]);
    else if (p->arena->bytes <= RUN_BYTES_MAX && p->team.threads <= 4)
        run_all(p), ran = 1;
    pl_plan_destroy(p);
    free(exact);
    return ran;
}

/* As builds before the checksum wrote it: damage gets to the parser and the judge. */
static void make_old(pl_str *text)
{
    text->data[sizeof "plan " - 1] = '1';
    text->bytes = (size_t)(strstr(text->data, "checksum ") - text->data);
    text->data[text->bytes] = 0;
}

static void damaged_texts_do_no_harm(void **state)
{
    (void)state;
    static tiny t;
    pl_str text[TEXTS];
    for (uint64_t i = 0; i < TEXTS; i++) {
        tiny_of(&t, i + 200);
        t.micro = 1;
        pl_plan *p = tiny_plan(&t, (pl_team){1, i % 2 ? PL_ISA_REF : pl_isa_of_machine()});
        text[i] = print(p);
        make_old(&text[i]);
        pl_plan_destroy(p);
    }
    uint64_t live = pl_alloc_live_blocks(), ran = 0;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? last_seed : MUTATIONS); seed++) {
        const pl_str *from = &text[seed % TEXTS];
        char *damaged = malloc(from->bytes + MUTATE_ROOM);
        assert_non_null(damaged);
        ran += (uint64_t)try_text(damaged, mutate(from->data, from->bytes, damaged, seed), seed);
        free(damaged);
    }
    if (!only_seed) assert_true(ran > 100); /* some damage is harmless: a time, a name */
    assert_int_equal(pl_alloc_live_blocks(), live);
    for (int i = 0; i < TEXTS; i++) pl_str_deinit(&text[i]);
}

/* The same plan, whatever the spaces in its text. */
static bool is_refused_or_same(void *context, const char *text, size_t bytes)
{
    pl_error err = {0};
    pl_plan *read = NULL;
    const pl_status status = pl_plan_parse("flipped", text, bytes, &read, &err);
    if (status != PL_OK) return status == PL_E_DATA;
    pl_str again = print(read);
    const bool is_same = strcmp(pl_str_text(&again), context) == 0;
    pl_plan_destroy(read);
    pl_str_deinit(&again);
    return is_same;
}

static void a_flipped_bit_is_no_other_plan(void **state)
{
    (void)state;
    static tiny t;
    tiny_of(&t, 6);
    pl_plan *p = tiny_plan(&t, (pl_team){1, PL_ISA_REF});
    p->config = pl_strdup("model:\n  width: 4\n");
    pl_str text = print(p);
    flip_bits(text.data, text.bytes, sizeof "plan 2", sizeof "end plan\nchecksum 0123456789abcdef", 20000,
              is_refused_or_same, text.data);
    pl_plan_destroy(p);
    pl_str_deinit(&text);
}

/* What a build before the checksum wrote; and a version that is damaged until it reads so has a line too many. */
static void an_older_text_is_read(void **state)
{
    (void)state;
    static tiny t;
    pl_error err = {0};
    pl_plan *read = NULL;
    tiny_of(&t, 4);
    pl_plan *p = tiny_plan(&t, (pl_team){1, PL_ISA_REF});
    pl_str text = print(p);
    text.data[sizeof "plan " - 1] = '1';
    assert_int_equal(pl_plan_parse("old", text.data, text.bytes, &read, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "text after the end of the plan"));
    make_old(&text);
    assert_int_equal(pl_plan_parse("old", text.data, text.bytes, &read, &err), PL_OK);
    pl_str again = print(read);
    pl_str first = print(p);
    assert_string_equal(pl_str_text(&again), pl_str_text(&first));
    pl_plan_destroy(read);
    text.data[sizeof "plan " - 1] = '2';
    assert_int_equal(pl_plan_parse("cut", text.data, text.bytes, &read, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "before its checksum"));
    pl_plan_destroy(p);
    pl_str_deinit(&text);
    pl_str_deinit(&again);
    pl_str_deinit(&first);
}

static void truncated_texts_are_refused(void **state)
{
    (void)state;
    static tiny t;
    tiny_of(&t, 4);
    t.config.model.arch = PL_ARCH_MLP;
    pl_plan *p = tiny_plan(&t, (pl_team){1, PL_ISA_REF});
    pl_str text = print(p);
    for (size_t bytes = 0; bytes + 1 < text.bytes; bytes += bytes + 300 < text.bytes ? 7 : 1) {
        pl_error err = {0};
        pl_plan *read = NULL;
        if (pl_plan_parse("short", text.data, bytes, &read, &err) == PL_OK)
            fail_msg("%zu of %zu bytes were taken for a plan", bytes, text.bytes);
        check_sentence(&err, "short", bytes);
    }
    pl_plan_destroy(p);
    pl_str_deinit(&text);
}

static pl_status parse_plan(const char *text, size_t bytes, pl_error *err)
{
    pl_plan *read = NULL;
    pl_status status = pl_plan_parse("t", text, bytes, &read, err);
    pl_plan_destroy(read);
    return status;
}

/* Every line with one field more: an error at that field. */
static void a_field_too_many_is_refused(void **state)
{
    (void)state;
    static tiny t;
    tiny_of(&t, 4);
    t.config.model.arch = PL_ARCH_MLP;
    pl_plan *p = tiny_plan(&t, (pl_team){1, PL_ISA_REF});
    p->config = pl_strdup("model:\n  width: 4\n");
    for (int k = 0; k < PL_FACTS_MAX; k++) pl_facts_add(&p->identity, (const char[]){(char)('a' + k), 0}, 1);
    p->disk_count = 1;
    p->disk[0] = (pl_plan_disk_row){"checkpoints", 1000};
    pl_str text = print(p);
    refuse_extra_fields(&text, parse_plan);
    pl_plan_destroy(p);
    pl_str_deinit(&text);
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = last_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2) last_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print_parse_print_is_the_identity),
        cmocka_unit_test(a_check_needs_less_than_the_text),
        cmocka_unit_test(a_plan_that_was_read_runs_to_the_same_bits),
        cmocka_unit_test(damaged_texts_do_no_harm),
        cmocka_unit_test(a_flipped_bit_is_no_other_plan),
        cmocka_unit_test(an_older_text_is_read),
        cmocka_unit_test(truncated_texts_are_refused),
        cmocka_unit_test(a_field_too_many_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
