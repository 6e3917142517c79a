/* The table of times: what is predicted of a real plan adds up to what the plan says by other ways (its operators, its
 * program), the least time is one, JSON comes back as it was, text and page show it, and what is no table is
 * refused. */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ir/properties.h"
#include "report/account.h"
#include "report/times.h"
#include "show/render.h"
#include "support/program.h"
#include "unit/report/pipeline.h"

static const char *const words[] = {"model.layers",   "2",  "model.width", "64", "model.heads", "2",
                                    "model.sequence", "32", NULL};
static pl_report_times table, again; /* large */

static pl_plan *make(bool timed)
{
    pipeline_request r = {
        .set = words, .vocab = 300, .micro_batch = 4, .accumulation = 8, .threads = 2, .timed = timed};
    pl_plan *p = NULL;
    pl_error err = {0};
    if (pipeline_plan(&r, &p, &err) != PL_OK) fail_msg("%s", err.text);
    if (timed) p->rates = (pl_rates){.operations = {100e9, 200e9}, .bytes = 20e9}; /* of the made-up machine */
    return p;
}

static void predict(const pl_plan *p, pl_report_times *t)
{
    pl_components c;
    pl_error err = {0};
    const pl_id train = pl_graph_find_trained(p->graph);
    assert_int_equal(pl_components_create(p->graph, train, &c, &err), PL_OK);
    pl_report_times_predict(p, train, &c, t);
    pl_components_deinit(&c);
}

/* As a session would fill it: row i takes i + 1 ms, and a millisecond is in none. */
static void measure(pl_report_times *t)
{
    snprintf(t->run, sizeof t->run, "step");
    t->runs = 30, t->first = 12;
    t->other_seconds = t->seconds = 1e-3;
    for (size_t i = 0; i < t->count; i++) t->seconds += t->row[i].seconds = 1e-3 * (double)(i + 1);
    t->besides_count = 1;
    t->besides[0] = (pl_report_besides){"evaluating", 1.5, 3};
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)); }

static void adds_up(void **state)
{
    (void)state;
    pl_plan *p = make(true);
    pl_report_kind kind[PL_OP_COUNT];
    double flops = 0, bytes = 0;
    const pl_id train = pl_graph_find_trained(p->graph);
    predict(p, &table);
    for (size_t i = 0, n = pl_report_kinds(p, train, kind); i < n; i++) flops += kind[i].flops, bytes += kind[i].bytes;
    const pl_report_time sum = pl_report_times_sum(&table);
    assert_true(near(sum.flops, flops) && near(sum.bytes, bytes) && flops > 0);
    assert_true(near(sum.predicted_seconds, pl_plan_program_seconds(p, train)));
    assert_true(near(sum.predicted_seconds, table.predicted_seconds));
    double least = 0, share = 0;
    for (size_t i = 0; i < table.count; i++) {
        const pl_report_time *r = &table.row[i];
        assert_true(r->least_seconds >= 0 && r->least_seconds <= r->predicted_seconds * (1 + 1e-9));
        least += r->least_seconds;
        if (r->predicted_seconds > 0 && r->flops / r->predicted_seconds > share)
            share = r->flops / r->predicted_seconds;
    }
    assert_true(least > 0.1 * sum.predicted_seconds && share <= table.flops_per_second);
    assert_true(table.flops_per_second == 100e9 && table.bytes_per_second == 20e9);
    pl_plan_destroy(p);
}

/* A machine that turns out to be faster than its rates say: they rise, and nothing takes less than its least time or
 * does more than they say, in no row and in no form. */
static void no_more_than_all(void **state)
{
    (void)state;
    pl_plan *p = make(true);
    for (double slow = 1; slow < 1e4; slow *= 10) {
        p->rates = (pl_rates){.operations = {100e9 / slow, 100e9 / slow}, .bytes = 20e9 / slow, .cache_bytes = 1e4};
        predict(p, &table);
        for (int runs = 0; runs < 2; runs++) {
            if (runs) {
                measure(&table);
                for (size_t i = 0; i < table.count; i++) table.row[i].seconds *= 1e-3;
                pl_report_times_raise(&table);
            }
            for (size_t i = 0; i < table.count; i++) {
                const pl_report_time *r = &table.row[i];
                const double seconds = runs ? r->seconds : r->predicted_seconds;
                assert_true(r->least_seconds <= seconds * (1 + 1e-9));
                assert_true(r->computing_seconds <= r->least_seconds * (1 + 1e-9) && r->computing_seconds >= 0);
            }
            const double rate = table.flops_per_second;
            assert_true(rate >= 100e9 / slow * (1 - 1e-9));
            pl_report_times_raise(&table); /* once is enough */
            assert_true(near(table.flops_per_second, rate));
        }
    }
    pl_plan_destroy(p);
}

/* What caches may hold before and after is charged to nobody. */
static void caches_cost_nothing(void **state)
{
    (void)state;
    pl_plan *p = make(true);
    const pl_rates none = {.operations = {100e9}, .bytes = 20e9},
                   all = {.operations = {100e9}, .bytes = 20e9, .cache_bytes = 1e9};
    bool differ = false;
    for (size_t i = 0; i < p->graph->node_count; i++) {
        const pl_node *n = &p->graph->node[i];
        assert_true(pl_node_moving_seconds(p->graph, n, &all) == 0);
        assert_true(pl_node_least_seconds(p->graph, n, &all) == pl_node_computing_seconds(p->graph, n, &all));
        assert_true(pl_node_least_seconds(p->graph, n, &none) <= p->seconds[i] * (1 + 1e-9));
        differ |= pl_node_moving_seconds(p->graph, n, &none) > pl_node_computing_seconds(p->graph, n, &none);
    }
    assert_true(differ);
    pl_plan_destroy(p);
}

static void names_are_the_models(void **state)
{
    (void)state;
    static const char *const expected[] = {"data", "embedding", "attention", "feed_forward", "head"};
    pl_plan *p = make(true);
    predict(p, &table);
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        bool there = false;
        for (size_t i = 0; i < table.count; i++) there |= strcmp(table.row[i].name, expected[k]) == 0;
        if (!there) fail_msg("no component %s", expected[k]);
    }
    assert_true(table.row[table.count - 1].phase == PL_PHASE_UPDATE);
    pl_plan_destroy(p);
}

static void unknown_times_are_unknown(void **state)
{
    (void)state;
    pl_plan *p = make(false);
    predict(p, &table);
    assert_true(table.predicted_seconds < 0 && table.flops_per_second == 0);
    for (size_t i = 0; i < table.count; i++)
        assert_true(table.row[i].predicted_seconds < 0 && table.row[i].least_seconds < 0 && table.row[i].flops >= 0);
    pl_plan_destroy(p);
}

static void write_json(const pl_report_times *t, pl_str *out)
{
    pl_doc d = pl_doc_begin();
    pl_report_times_add(t, &d);
    pl_doc_write_json(&d, false, out);
    pl_doc_deinit(&d);
}

static void json_comes_back(void **state)
{
    (void)state;
    for (int timed = 0; timed < 2; timed++)
        for (int measured = 0; measured < 2; measured++) {
            pl_plan *p = make(timed != 0);
            pl_str s = {0};
            pl_error err = {0};
            predict(p, &table);
            if (measured) measure(&table);
            write_json(&table, &s);
            assert_int_equal(pl_report_times_read("t", s.data, s.bytes, &again, &err), PL_OK);
            pl_str t = {0};
            write_json(&again, &t);
            assert_string_equal(s.data, t.data);
            assert_int_equal(again.count, table.count);
            for (size_t i = 0; i < table.count; i++) {
                assert_string_equal(again.row[i].name, table.row[i].name);
                assert_true(again.row[i].phase == table.row[i].phase && again.row[i].seconds == table.row[i].seconds);
                assert_true(again.row[i].predicted_seconds == table.row[i].predicted_seconds);
                assert_true(again.row[i].flops == table.row[i].flops);
            }
            pl_str_deinit(&s), pl_str_deinit(&t);
            pl_plan_destroy(p);
        }
}

static void text_and_page_show_it(void **state)
{
    (void)state;
    pl_plan *p = make(true);
    pl_str s = {0}, page = {0};
    predict(p, &table);
    measure(&table);
    table.row[1].predicted_seconds = 0.0123;
    strcpy(table.row[1].name, "<b>\033[1m");
    pl_doc d = pl_doc_begin();
    pl_doc_title(&d, NULL, "times", "a run & more");
    pl_report_times_add(&table, &d);
    pl_doc_print(&d, NULL, &s);
    static const char *const shown[] = {"Of a step, mean of 30 (13 to 42, since it resumed).",
                                        "attention, backward",
                                        "12.3 ms",
                                        "<b>?[1m",
                                        "other",
                                        "100.0 %",
                                        "Besides: evaluating 1.5 s in 3 times.",
                                        "GFLOP/s"};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (!strstr(s.data, shown[i])) fail_msg("\"%s\" is not in:\n%s", shown[i], s.data);
    for (const char *line = s.data, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 100) fail_msg("too wide: %.*s", (int)(end - line), line);
    pl_doc_page(&d, &page);
    pl_doc_deinit(&d);
    assert_non_null(strstr(page.data, "a run &#38; more"));
    assert_non_null(strstr(page.data, "&#60;b&#62;"));
    assert_null(strstr(page.data, "<b>"));
    assert_true(strstr(page.data, "<script") == NULL && strstr(page.data, "http") == NULL); /* nothing to explore */
    pl_str_deinit(&s), pl_str_deinit(&page);
    pl_plan_destroy(p);
}

/* Each member away, and each number a word: a sentence, never half a table. */
static void what_is_none_is_refused(void **state)
{
    (void)state;
    static const char good[] =
        "{\"schema\":\"plimsoll.times/1\",\"program\":\"p\",\"run\":\"step\",\"runs\":2,\"first\":0,\"seconds\":1,"
        "\"other_seconds\":0,\"predicted_seconds\":null,\"flops_per_second\":null,\"bytes_per_second\":null,"
        "\"components\":[{\"name\":\"a\",\"pass\":\"forward\",\"seconds\":1,\"predicted_seconds\":null,\"flops\":1,"
        "\"bytes\":1,\"least_seconds\":null}],\"besides\":[{\"name\":\"b\",\"seconds\":1,\"count\":1}]}";
    pl_error err = {0};
    assert_int_equal(pl_report_times_read("t", good, strlen(good), &again, &err), PL_OK);
    for (const char *key = good; (key = strstr(key, "\":")); key += 2) {
        char bad[sizeof good];
        memcpy(bad, good, sizeof good);
        bad[key - good - 1] ^= 1; /* another name */
        if (pl_report_times_read("t", bad, strlen(bad), &again, &err) != PL_E_DATA) fail_msg("%s", bad);
        memcpy(bad, good, sizeof good);
        bad[key - good + 2] = '!'; /* no value */
        if (pl_report_times_read("t", bad, strlen(bad), &again, &err) != PL_E_DATA) fail_msg("%s", bad);
    }
    for (size_t bytes = 0; bytes < strlen(good); bytes++)
        assert_int_equal(pl_report_times_read("t", good, bytes, &again, &err), PL_E_DATA);
    pl_str many = {0};
    pl_str_append_bytes(&many, good, (size_t)(strstr(good, "[{\"name\":\"a\"") + 1 - good));
    const char *row = strstr(good, "{\"name\":\"a\""), *end = strstr(row, "}]");
    for (int i = 0; i < PL_COMPONENTS_MAX; i++) pl_str_printf(&many, "%.*s,", (int)(end + 1 - row), row);
    pl_str_append(&many, row);
    assert_int_equal(pl_report_times_read("t", many.data, many.bytes, &again, &err), PL_E_DATA);
    pl_str_deinit(&many);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_up),
        cmocka_unit_test(no_more_than_all),
        cmocka_unit_test(caches_cost_nothing),
        cmocka_unit_test(names_are_the_models),
        cmocka_unit_test(unknown_times_are_unknown),
        cmocka_unit_test(json_comes_back),
        cmocka_unit_test(text_and_page_show_it),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
