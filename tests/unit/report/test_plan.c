/* Reports of real plans: sums to the byte (the JSON, read by jansson, is added up again from its own values), a golden
 * text, the page, and refused memory.
 * The text of the golden plan is written anew by: build/tests/unit_report test_plan --write */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "report/account.h"
#include "report/report.h"
#include "show/cell.h"
#include "support/program.h"
#include "unit/report/pipeline.h"

static const char *const gpt_words[] = {
    "model.layers",    "2", "model.width",   "64",  "model.heads", "2", "model.sequence", "32",
    "train.grad_clip", "1", "model.dropout", "0.1", NULL};
static const char *const mlp_words[] = {"model.arch", "mlp", "model.layers", "2", "model.width", "32", "model.sequence",
                                        "16",         NULL};
static const char golden_folder[] = PL_GOLDEN_DIR "/report";

static void add_files(pl_plan *p)
{
    p->writer_cache_bytes = 8 << 20;
    p->disk_count = 2;
    p->disk[0] = (pl_plan_disk_row){"checkpoints kept", 4000000};
    p->disk[1] = (pl_plan_disk_row){"metrics", 12345};
}

static pl_plan *make(const char *const *words, bool timed, bool huge)
{
    pipeline_request r = {.set = words,
                          .vocab = 300,
                          .micro_batch = 4,
                          .accumulation = 8,
                          .threads = 2,
                          .huge_pages = huge,
                          .timed = timed};
    pl_plan *p = NULL;
    pl_error err = {0};
    if (pipeline_plan(&r, &p, &err) != PL_OK) fail_msg("%s", err.text);
    add_files(p);
    return p;
}

/* ---- JSON ---- */

static json_int_t number(const json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);
    if (!json_is_integer(v)) fail_msg("%s is no integer", key);
    return json_integer_value(v);
}

static json_int_t sum(const json_t *array, const char *key)
{
    json_int_t total = 0;
    for (size_t i = 0; i < json_array_size(array); i++) total += number(json_array_get(array, i), key);
    return total;
}

static bool alive_at(const json_t *value, json_int_t position)
{
    return json_is_integer(json_object_get(value, "offset")) && number(value, "first") <= position &&
           position < number(value, "last");
}

/* Adds the arena up from values and nodes alone. */
static void check_arena(const json_t *root)
{
    const json_t *arena = json_object_get(root, "arena"), *values = json_object_get(root, "values"),
                 *nodes = json_object_get(root, "nodes");
    json_int_t peak = number(arena, "peak_position"), alive = 0, aligned = 0, top = 0;
    for (size_t i = 0; i < json_array_size(values); i++) {
        const json_t *v = json_array_get(values, i);
        assert_int_equal(number(v, "id"), i);
        if (!json_is_integer(json_object_get(v, "offset"))) continue;
        assert_int_equal(number(v, "root"), i);
        assert_int_equal(number(v, "bytes"), number(v, "block_bytes"));
        json_int_t end = number(v, "offset") + (number(v, "bytes") + 63) / 64 * 64;
        if (end > top) top = end;
        if (alive_at(v, peak)) alive += number(v, "bytes"), aligned += (number(v, "bytes") + 63) / 64 * 64;
    }
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_int_t bytes = number(json_array_get(nodes, i), "workspace_bytes");
        if (bytes && number(json_array_get(nodes, i), "workspace_offset") + (bytes + 63) / 64 * 64 > top)
            top = number(json_array_get(nodes, i), "workspace_offset") + (bytes + 63) / 64 * 64;
        if ((json_int_t)i == peak) alive += bytes, aligned += (bytes + 63) / 64 * 64;
    }
    assert_int_equal(alive, number(arena, "alive_bytes"));
    assert_int_equal(aligned - alive, number(arena, "alignment_bytes"));
    assert_int_equal(top, number(arena, "bytes"));
    assert_int_equal(aligned + number(arena, "gap_bytes"), top);
    assert_int_equal(sum(json_object_get(arena, "roles"), "bytes"), alive);
    assert_int_equal(sum(json_object_get(root, "components"), "bytes"), alive);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(root, "alive_bytes"), (size_t)peak)), aligned);
    assert_int_equal(top + number(arena, "rounding_bytes"), number(arena, "resident_bytes"));
}

static void check_process(const json_t *root)
{
    const json_t *process = json_object_get(root, "process"), *disk = json_object_get(root, "disk"),
                 *rows = json_object_get(process, "rows");
    assert_int_equal(sum(rows, "resident_bytes"), number(process, "resident_bytes"));
    assert_int_equal(number(json_array_get(rows, 0), "resident_bytes"),
                     number(json_object_get(root, "arena"), "resident_bytes"));
    assert_int_equal(number(process, "resident_bytes") + number(process, "page_table_bytes") +
                         number(process, "kernel_bytes") + number(process, "writer_cache_bytes"),
                     number(process, "charged_bytes"));
    assert_int_equal(sum(json_object_get(disk, "rows"), "bytes"), number(disk, "bytes"));
    assert_int_equal(number(disk, "bytes"), 4012345);
}

/* Programs lie one behind the other, and each one's peak is the largest of its stretch of the curve. */
static void check_programs(const json_t *root)
{
    const json_t *programs = json_object_get(root, "programs"), *curve = json_object_get(root, "alive_bytes");
    json_int_t at = 0, nodes = 0;
    for (size_t i = 0; i < json_array_size(programs); i++) {
        const json_t *p = json_array_get(programs, i);
        json_int_t largest = 0;
        assert_int_equal(number(p, "first"), at);
        at = number(p, "last");
        for (json_int_t k = number(p, "first"); k < at; k++) {
            json_int_t alive = json_integer_value(json_array_get(curve, (size_t)k));
            if (alive > largest) largest = alive;
        }
        assert_int_equal(number(p, "peak_bytes"), largest);
        nodes += sum(json_object_get(p, "operators"), "nodes");
    }
    assert_int_equal(at, json_array_size(json_object_get(root, "nodes")));
    assert_int_equal(nodes, at);
}

static json_t *read_json(const pl_plan *p)
{
    pl_str s = {0};
    pl_error err = {0};
    pl_report_options o = pl_report_options_default();
    o.title = "a \"quoted\" \xff name";
    assert_int_equal(pl_report_plan_json(p, &o, &s, &err), PL_OK);
    json_error_t error;
    json_t *root = json_loads(pl_str_text(&s), JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("line %d: %s", error.line, error.text);
    pl_str_deinit(&s);
    return root;
}

static void check_json(const char *const *words, bool timed, bool huge)
{
    pl_plan *p = make(words, timed, huge);
    json_t *root = read_json(p);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "plimsoll.plan/1");
    check_arena(root);
    check_process(root);
    check_programs(root);
    assert_int_equal(json_is_null(json_object_get(root, "seconds_per_step")), !timed);
    json_decref(root);
    pl_plan_destroy(p);
}

static void test_json_adds_up(void **state)
{
    (void)state;
    check_json(gpt_words, true, true);
    check_json(gpt_words, false, false);
    check_json(mlp_words, false, true);
}

/* Parameters by the formula of the model, not by the graph. */
static void test_model_is_described(void **state)
{
    (void)state;
    pl_plan *p = make(gpt_words, false, false);
    pl_report_model m = pl_report_describe(p);
    uint64_t d = 64, block = 3 * d * d + d * d + 8 * d * d + 4 * d + d + 4 * d;
    assert_int_equal(m.parameters, 300 * d + 32 * d + 2 * block + 2 * d);
    assert_int_equal(m.layers, 2);
    assert_int_equal(m.micro_batch, 4);
    assert_int_equal(m.accumulation, 8);
    assert_int_equal(m.batch, 32);
    pl_plan_destroy(p);
}

/* A batch that the micro-batch does not divide, and a plan that trains nothing. */
static void test_batch_in_words(void **state)
{
    (void)state;
    pl_plan *p = make(gpt_words, false, false);
    pl_str text = {0};
    p->batch = 30;
    pl_report_model m = pl_report_describe(p);
    pl_report_batch(&m, &text);
    assert_string_equal(pl_str_text(&text), "batch 30 in 8 micro-batches of 4, the last with 2");
    pl_str_clear(&text);
    p->batch = 0;
    m = pl_report_describe(p);
    pl_report_batch(&m, &text);
    assert_string_equal(pl_str_text(&text), "");
    pl_str_deinit(&text);
    pl_plan_destroy(p);
}

/* One node whose time is not known makes every sum that it belongs to unknown, and leaves the others alone. */
static void test_a_missing_part_makes_a_sum_unknown(void **state)
{
    (void)state;
    pl_plan *p = make(gpt_words, true, false);
    pl_str text = {0};
    pl_error err = {0};
    pl_id train = pl_graph_find_program(p->graph, "train"), evaluate = pl_graph_find_program(p->graph, "evaluate");
    assert_true(pl_plan_program_seconds(p, train) > 0);
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (p->graph->node[i].op == PL_OP_LINEAR_DW) p->seconds[i] = -1;
    assert_true(pl_plan_program_seconds(p, train) < 0);
    assert_true(pl_plan_program_seconds(p, evaluate) > 0);
    assert_int_equal(pl_report_plan(p, NULL, &text, &err), PL_OK);
    assert_non_null(strstr(pl_str_text(&text), "unknown"));
    pl_str_clear(&text);
    assert_int_equal(pl_report_plan_json(p, NULL, &text, &err), PL_OK);
    assert_non_null(strstr(pl_str_text(&text), "\"seconds_per_step\": null"));
    pl_str_deinit(&text);
    pl_plan_destroy(p);
}

/* ---- text ---- */

/* The plan is kept as text beside its report: what kernels need for their work may change, and is no matter of this
 * test. */
static void print_golden(const char *plan_text, pl_str *s)
{
    pl_plan *p = NULL;
    pl_error err = {0};
    pl_report_options o = pl_report_options_default();
    o.title = "mlp.yaml";
    o.budget_bytes = 12000000;
    if (pl_plan_parse("mlp.plan", plan_text, strlen(plan_text), &p, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_report_plan(p, &o, s, &err) != PL_OK) fail_msg("%s", err.text);
    pl_plan_destroy(p);
}

static char *read_golden(const char *name, char *text, size_t room)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", golden_folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s cannot be read; write it with --write", path);
    text[fread(text, 1, room - 1, f)] = 0;
    fclose(f);
    return text;
}

static void test_golden_text(void **state)
{
    (void)state;
    static char plan_text[1 << 18], golden[65536];
    pl_str s = {0};
    print_golden(read_golden("mlp.plan", plan_text, sizeof plan_text), &s);
    const char *is = pl_str_text(&s), *was = read_golden("mlp.txt", golden, sizeof golden);
    while (*is && *is == *was) is++, was++;
    while (is > s.data && is[-1] != '\n') is--, was--;
    if (*is || *was)
        fail_msg("when this is right, record it with --write:\n  is  %.*s\n  was %.*s", (int)strcspn(is, "\n"), is,
                 (int)strcspn(was, "\n"), was);
    pl_str_deinit(&s);
}

/* No line of text is ragged at its end or wider than a terminal of 80 columns; colour adds no characters. */
static void test_text_is_tidy(void **state)
{
    (void)state;
    pl_plan *p = make(gpt_words, true, false);
    pl_error err = {0};
    pl_str plain = {0}, colored = {0};
    pl_report_options o = pl_report_options_default();
    assert_int_equal(pl_report_plan(p, &o, &plain, &err), PL_OK);
    o.color = true;
    assert_int_equal(pl_report_plan(p, &o, &colored, &err), PL_OK);
    size_t at = 0;
    for (const char *c = pl_str_text(&colored); *c; c++) {
        if (*c == '\033') {
            while (*c != 'm') c++;
            continue;
        }
        assert_true(at < plain.bytes && plain.data[at++] == *c);
    }
    assert_int_equal(at, plain.bytes);
    assert_null(strstr(plain.data, " \n"));
    for (const char *line = plain.data, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        if (pl_text_columns(line, (size_t)(end - line)) > 80) fail_msg("too wide: %.*s", (int)(end - line), line);
    }
    pl_str_deinit(&plain);
    pl_str_deinit(&colored);
    pl_plan_destroy(p);
}

/* ---- HTML ---- */

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word)) n++;
    return n;
}

static void test_page_is_whole_and_alone(void **state)
{
    (void)state;
    static const char *const tags[] = {"table", "section", "svg",  "g",    "tr",  "td",
                                       "title", "p",       "main", "body", "html"};
    pl_plan *p = make(gpt_words, true, false);
    pl_error err = {0};
    pl_str s = {0};
    pl_memory_measured measured = {.row_count = p->ledger.row_count, .peak_bytes = p->ledger.resident_bytes};
    memcpy(measured.row, p->ledger.row, sizeof p->ledger.row);
    measured.explained_bytes = p->ledger.resident_bytes;
    pl_curve_point loss[] = {{1, 5.6}, {2, 5.1}, {3, (double)NAN}, {4, 4.2}};
    pl_report_run run = {.measured = &measured,
                         .training = loss,
                         .training_count = 4,
                         .steps = 4,
                         .seconds = 1,
                         .verdict = "ended <well>"};
    pl_report_options o = pl_report_options_default();
    o.title = "<script>alert('x')</script>";
    assert_int_equal(pl_report_html(p, &run, &o, &s, &err), PL_OK);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        char open[16], open_with[16], close[16];
        snprintf(open, sizeof open, "<%s>", tags[i]);
        snprintf(open_with, sizeof open_with, "<%s ", tags[i]);
        snprintf(close, sizeof close, "</%s>", tags[i]);
        assert_int_equal(count_of(s.data, open) + count_of(s.data, open_with), count_of(s.data, close));
    }
    assert_null(strstr(s.data, "<script>alert"));
    assert_int_equal(count_of(s.data, "<script"), 1); /* ours */
    assert_null(strstr(s.data, "http"));
    assert_null(strstr(s.data, "nan"));
    assert_null(strstr(s.data, "<well>"));
    assert_non_null(strstr(s.data, "As planned"));
    pl_str_deinit(&s);
    pl_plan_destroy(p);
}

/* ---- words ---- */

/* A graph of text names its values so; those of the report are meant here. */
static void rename_values(pl_graph *g, char (*name)[16])
{
    for (size_t i = 0; i < g->value_count; i++) {
        if (!strstr(g->value[i].name, "token")) continue;
        snprintf(name[i], sizeof name[i], "renamed.%zu", i);
        g->value[i].name = name[i];
    }
}

static void check_words(const char *text)
{
    static const char *const others[] = {"token", "sequence", "tok/s"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strstr(text, others[i])) fail_msg("\"%s\" of another system: %s", others[i], text);
}

/* Of another system: none of a text's words. */
static void test_words_are_those_of_the_system(void **state)
{
    (void)state;
    static const pl_words words = {"voxel", "voxels", "scan",           "scans",   "voxels/s", "scans",
                                   "step",  "part",   "nats per voxel", "at_once", "edge",     "edge"};
    pl_plan *p = make(mlp_words, true, false);
    char(*name)[16] = calloc(p->graph->value_count, sizeof *name);
    pl_str text = {0}, json = {0}, html = {0};
    pl_error err = {0};
    pl_curve_point loss[] = {{1, 5.6}, {2, 5.1}};
    pl_report_run run = {.training = loss, .training_count = 2, .steps = 2, .seconds = 1};
    assert_non_null(name);
    rename_values(p->graph, name);
    p->words = words;
    assert_int_equal(pl_report_plan(p, NULL, &text, &err), PL_OK);
    assert_int_equal(pl_report_plan_json(p, NULL, &json, &err), PL_OK);
    assert_int_equal(pl_report_html(p, &run, NULL, &html, &err), PL_OK);
    check_words(pl_str_text(&text));
    check_words(pl_str_text(&json));
    check_words(pl_str_text(&html));
    assert_non_null(strstr(pl_str_text(&html), "nats per voxel"));
    pl_str_deinit(&text);
    pl_str_deinit(&json);
    pl_str_deinit(&html);
    pl_plan_destroy(p);
    free(name);
}

/* ---- hardship ---- */

static void test_empty_plan(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    pl_plan_options options = {.team = {1, PL_ISA_REF}, .process = pl_process_options_default()};
    pl_plan *p = NULL;
    pl_str s = {0};
    assert_int_equal(pl_process_start(&err), PL_OK);
    if (pl_plan_create(g, &options, &p, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(pl_report_plan(p, NULL, &s, &err), PL_OK);
    assert_int_equal(pl_report_html(p, NULL, NULL, &s, &err), PL_OK);
    pl_str_clear(&s);
    assert_int_equal(pl_report_plan_json(p, NULL, &s, &err), PL_OK);
    pl_str_deinit(&s);
    pl_plan_destroy(p);
}

typedef pl_status (*reporter)(const pl_plan *, const pl_report_options *, pl_str *, pl_error *);

static pl_status page(const pl_plan *p, const pl_report_options *o, pl_str *out, pl_error *err)
{
    return pl_report_html(p, NULL, o, out, err);
}

/* The n-th request for memory fails, for every n until all succeed: a clean status each time, nothing lost. */
static void test_refused_memory(void **state)
{
    (void)state;
    static const reporter reporters[] = {pl_report_plan, pl_report_plan_json, page};
    pl_plan *p = make(mlp_words, true, false);
    pl_error err = {0};
    for (size_t i = 0; i < sizeof reporters / sizeof reporters[0]; i++) {
        uint64_t before = pl_alloc_live_blocks(), n = 1;
        for (pl_status status = PL_E_NOMEM; status != PL_OK; n++) {
            pl_str s = {0};
            assert_true(n < 1000);
            pl_alloc_fail_at(n, n % 2 == 0);
            status = reporters[i](p, NULL, &s, &err);
            pl_alloc_fail_at(0, 0);
            assert_true(status == PL_OK || status == PL_E_NOMEM);
            pl_str_deinit(&s);
            assert_int_equal(pl_alloc_live_blocks(), before);
        }
        assert_true(n > 4);
    }
    pl_plan_destroy(p);
}

static int write_file(const char *name, const pl_str *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", golden_folder, name);
    FILE *f = fopen(path, "wb");
    int failed = !f || fwrite(text->data, 1, text->bytes, f) != text->bytes;
    if (f && fclose(f)) failed = 1;
    return failed;
}

/* The text of the plan that is kept there: the plan itself is of an earlier build, and stays. */
static int write_golden(void)
{
    static char plan_text[1 << 18];
    pl_str text = {0};
    print_golden(read_golden("mlp.plan", plan_text, sizeof plan_text), &text);
    int failed = write_file("mlp.txt", &text);
    pl_str_deinit(&text);
    return failed;
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc == 2 && strcmp(argv[1], "--write") == 0) return write_golden();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_adds_up),
        cmocka_unit_test(test_model_is_described),
        cmocka_unit_test(test_batch_in_words),
        cmocka_unit_test(test_a_missing_part_makes_a_sum_unknown),
        cmocka_unit_test(test_golden_text),
        cmocka_unit_test(test_text_is_tidy),
        cmocka_unit_test(test_page_is_whole_and_alone),
        cmocka_unit_test(test_words_are_those_of_the_system),
        cmocka_unit_test(test_empty_plan),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
