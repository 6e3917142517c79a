/* Documents: each renderer against text, JSON and HTML that were written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "show/cell.h"
#include "show/html.h"
#include "show/render.h"
#include "support/program.h"

static void check_text(const pl_doc *d, unsigned columns, const char *expected)
{
    pl_str s = {0};
    pl_doc_print(d, &(pl_text_form){.columns = columns}, &s);
    assert_int_equal(s.failed, 0);
    assert_string_equal(pl_str_text(&s), expected);
    pl_str_deinit(&s);
}

static void check_json(const pl_doc *d, const char *expected)
{
    pl_str s = {0};
    pl_doc_write_json(d, true, &s);
    assert_int_equal(s.failed, 0);
    assert_string_equal(pl_str_text(&s), expected);
    pl_str_deinit(&s);
}

/* What a page has between its heading and its end. */
static void check_body(const pl_doc *d, const char *expected)
{
    static const char end[] = "</main></body></html>\n";
    pl_str s = {0};
    pl_doc_page(d, &s);
    assert_int_equal(s.failed, 0);
    const char *body = strstr(pl_str_text(&s), "</h1>\n") + strlen("</h1>\n");
    const size_t bytes = strlen(body);
    assert_true(bytes == strlen(expected) + strlen(end) && strcmp(body + bytes - strlen(end), end) == 0);
    assert_memory_equal(body, expected, strlen(expected));
    pl_str_deinit(&s);
}

/* ---- one table, three forms ---- */

static const pl_doc_column memory_columns[] = {{"name", ""},
                                               {"bytes", "bytes", PL_DOC_BYTES},
                                               {NULL, "share", PL_DOC_PERCENT, 1},
                                               {"never", "never", PL_DOC_COUNT},
                                               {NULL, "", PL_DOC_BAR},
                                               {NULL, "why", .is_remark = true}};

static void add_memory_row(pl_doc *d, unsigned flags, const char *name, uint64_t bytes, double share, const char *why)
{
    pl_doc_row(d, flags);
    pl_doc_words(d, "%s", name);
    pl_doc_count(d, bytes);
    pl_doc_key_count(d, "blocks", 2);
    pl_doc_real(d, share);
    pl_doc_blank(d);
    if (share < 1) pl_doc_bar(d, "weight", share);
    pl_doc_bar_end(d);
    if (why) pl_doc_words(d, "%s", why);
    pl_doc_row_end(d);
}

static void add_memory(pl_doc *d)
{
    pl_doc_key_words(d, "schema", "test/1");
    pl_doc_section(d, "Memory");
    pl_doc_say(d, 0, "What is held.");
    pl_doc_table(d, "rows", memory_columns, 6);
    add_memory_row(d, PL_DOC_INDENT, "größe", 1234567, 0.25, NULL);
    add_memory_row(d, PL_DOC_INDENT, "漢字", 4999, 0.125, "always");
    add_memory_row(d, PL_DOC_HIDDEN, "nothing", 0, 0, NULL);
    add_memory_row(d, PL_DOC_SHOWN | PL_DOC_TOTAL, "sum", 1239566, 1, NULL);
    add_memory_row(d, PL_DOC_SHOWN | PL_DOC_BAD, "more", 5000, 0, "than <planned>");
    pl_doc_table_end(d);
    pl_doc_section_end(d);
    pl_doc_key_bool(d, "as_planned", false);
}

static void test_table_in_three_forms(void **state)
{
    (void)state;
    pl_doc d = pl_doc_begin();
    add_memory(&d);
    check_text(&d, 80,
               "Memory\n"
               "What is held.\n"
               "             bytes    MB    share  why\n"
               "  größe  1,234,567  1.23   25.0 %\n"
               "  漢字       4,999  0.00   12.5 %  always\n"
               "         ------------------------\n"
               "sum      1,239,566  1.24  100.0 %\n"
               "more         5,000  0.01    0.0 %  than <planned>\n");
    check_json(
        &d, "{\"schema\":\"test/1\",\"rows\":[{\"name\":\"größe\",\"bytes\":1234567,\"blocks\":2},{\"name\":\"漢字\","
            "\"bytes\":4999,\"blocks\":2},{\"name\":\"nothing\",\"bytes\":0,\"blocks\":2}],\"as_planned\":false}\n");
    check_body(
        &d,
        "<section><h2>Memory</h2>\n"
        "<p>What is held.</p>\n"
        "<table class='labels'><tr><th scope='col'></th><th scope='col' class='n'>bytes</th><th scope='col' "
        "class='n'>MB</th><th scope='col' class='n'>share</th><th scope='col'></th><th scope='col'>why</th></tr>\n"
        "<tr><td class='in'>größe</td><td class='n' data-l='bytes'>1,234,567</td><td class='n' data-l='MB'>1.23</td>"
        "<td class='n' data-l='share'>25.0 %</td><td class='bar'><i class='weight' style='width:25.00%'></i></td>"
        "<td class='w' data-l='why'></td></tr>\n"
        "<tr><td class='in'>漢字</td><td class='n' data-l='bytes'>4,999</td><td class='n' data-l='MB'>0.00</td>"
        "<td class='n' data-l='share'>12.5 %</td><td class='bar'><i class='weight' style='width:12.50%'></i></td>"
        "<td class='w' data-l='why'>always</td></tr>\n"
        "<tr class='total'><td>sum</td><td class='n' data-l='bytes'>1,239,566</td><td class='n' data-l='MB'>1.24</td>"
        "<td class='n' data-l='share'>100.0 %</td><td></td><td class='w' data-l='why'></td></tr>\n"
        "<tr class='bad'><td>more</td><td class='n' data-l='bytes'>5,000</td><td class='n' data-l='MB'>0.01</td>"
        "<td class='n' data-l='share'>0.0 %</td><td class='bar'></td>"
        "<td class='w' data-l='why'>than &#60;planned&#62;</td></tr>\n"
        "</table>\n"
        "</section>\n");
    pl_doc_deinit(&d);
}

/* Too wide for the line: a list. Numbers of a row stand next to each other while they fit. */
static void test_wide_table_becomes_a_list(void **state)
{
    (void)state;
    static const pl_doc_column columns[] = {{NULL, "name"},
                                            {NULL, "first", PL_DOC_COUNT},
                                            {NULL, "second", PL_DOC_COUNT},
                                            {NULL, "third", PL_DOC_COUNT},
                                            {NULL, ""}};
    pl_doc d = pl_doc_begin();
    pl_doc_table(&d, NULL, columns, 5);
    for (int i = 0; i < 2; i++) {
        pl_doc_row(&d, i ? PL_DOC_TOTAL : 0);
        pl_doc_words(&d, i ? "sum" : "a name of some length");
        for (int k = 0; k < 3; k++) pl_doc_count(&d, 1234567 + (uint64_t)i);
        pl_doc_words(&d, i ? "" : "words that are longer than a line of forty columns");
        pl_doc_row_end(&d);
    }
    pl_doc_table_end(&d);
    check_text(&d, 40,
               "a name of some length\n"
               "    first 1,234,567  second 1,234,567\n"
               "    third 1,234,567\n"
               "    words that are longer than a line of\n"
               "    forty columns\n"
               "sum\n"
               "    first 1,234,568  second 1,234,568\n"
               "    third 1,234,568\n");
    check_text(&d, 54,
               "name                       first     second      third\n"
               "a name of some length  1,234,567  1,234,567  1,234,567\n"
               "      words that are longer than a line of forty\n"
               "      columns\n"
               "                       -------------------------------\n"
               "sum                    1,234,568  1,234,568  1,234,568\n");
    pl_doc_deinit(&d);
}

/* Words of the last column go on where they began, however long they are, and wide letters count twice. */
static void test_words_are_wrapped(void **state)
{
    (void)state;
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, "", .is_remark = true}};
    char words[1200] = "";
    for (int i = 0; i < 200; i++) strcat(words, "word ");
    strcat(words, "end");
    pl_doc d = pl_doc_begin();
    pl_doc_table(&d, NULL, columns, 2);
    pl_doc_row(&d, PL_DOC_SHOWN);
    pl_doc_words(&d, "ab");
    pl_doc_words(&d, "漢字漢字 漢字漢字 x y %s", "a-word-that-is-longer-than-a-line z");
    pl_doc_row_end(&d);
    pl_doc_row(&d, PL_DOC_SHOWN);
    pl_doc_words(&d, "c");
    pl_doc_words(&d, "%s", words);
    pl_doc_row_end(&d);
    pl_doc_table_end(&d);
    pl_str s = {0};
    pl_doc_print(&d, &(pl_text_form){.columns = 24}, &s);
    static const char begin[] = "ab  漢字漢字 漢字漢字 x\n"
                                "    y\n"
                                "    a-word-that-is-longer-than-a-line\n"
                                "    z\n"
                                "c   word word word word\n"
                                "    word word word word\n";
    assert_memory_equal(pl_str_text(&s), begin, sizeof begin - 1);
    size_t count = 0;
    for (const char *at = pl_str_text(&s); (at = strstr(at, "word")); at++) count++;
    assert_int_equal(count, 200 + 1); /* none was cut, though a cell's text has 255 bytes */
    assert_memory_equal(pl_str_text(&s) + s.bytes - 4, "end\n", 4);
    pl_str_deinit(&s);
    pl_doc_deinit(&d);
}

static void test_paragraphs_and_cards(void **state)
{
    (void)state;
    pl_doc d = pl_doc_begin();
    pl_doc_title(&d, "The memory of ", "memory", "a<b>");
    pl_doc_card(&d, "128 MB", "charged, %s", "planned");
    pl_doc_card(&d, "7 ms", "a step");
    pl_str_append(pl_doc_paragraph(&d, 0), "First line.\nA second one that has to be broken.");
    pl_doc_paragraph_end(&d);
    pl_doc_paragraph(&d, 0);
    pl_doc_paragraph_end(&d); /* nothing: no paragraph */
    pl_doc_section_long(&d, "Long");
    pl_doc_say(&d, PL_DOC_GOOD, "Well.");
    pl_doc_say(&d, PL_DOC_HIDDEN, "Not for people.");
    pl_doc_section_end(&d);
    pl_doc_section(&d, "");
    pl_doc_say(&d, PL_DOC_BAD, "Not well.");
    pl_doc_section_end(&d);
    check_text(&d, 30,
               "The memory of a<b>\n"
               "  128 MB  charged, planned\n"
               "    7 ms  a step\n"
               "First line.\n"
               "A second one that has to be\n"
               "broken.\n"
               "\n"
               "Long\n"
               "Well.\n"
               "Not well.\n");
    pl_str s = {0};
    pl_doc_print(&d, &(pl_text_form){.columns = 80, .is_short = true, .color = true}, &s);
    assert_string_equal(pl_str_text(&s), "\033[1mThe memory of a<b>\033[0m\n"
                                         "  128 MB  charged, planned\n"
                                         "    7 ms  a step\n"
                                         "First line.\n"
                                         "A second one that has to be broken.\n"
                                         "\033[1;31mNot well.\033[0m\n");
    pl_str_clear(&s);
    pl_doc_page(&d, &s);
    assert_non_null(strstr(s.data, "<title>a&#60;b&#62; – memory</title>"));
    assert_non_null(strstr(s.data, "<h1>The memory of a&#60;b&#62;</h1>\n"
                                   "<div class='cards'>\n"
                                   "<div class='card'><b>128 MB</b><span>charged, planned</span></div>\n"
                                   "<div class='card'><b>7 ms</b><span>a step</span></div>\n"
                                   "</div>\n"
                                   "<p>First line.<br>A second one that has to be broken.</p>\n"
                                   "<section><h2>Long</h2>\n"
                                   "<p><span class='good'>Well.</span></p>\n"
                                   "</section>\n"
                                   "<section>\n"
                                   "<p><span class='bad'>Not well.</span></p>\n"
                                   "</section>\n"
                                   "</main></body></html>\n"));
    pl_str_deinit(&s);
    check_json(&d, "{}\n");
    pl_doc_deinit(&d);
}

/* ---- kinds of cells ---- */

typedef void add_cell(pl_doc *);

static void add_unknown(pl_doc *d) { pl_doc_unknown(d); }
static void add_blank(pl_doc *d) { pl_doc_blank(d); }
static void add_zero(pl_doc *d) { pl_doc_count(d, 0); }
static void add_count(pl_doc *d) { pl_doc_count(d, 115343360); }
static void add_half(pl_doc *d) { pl_doc_real(d, 0.5); }
static void add_no_time(pl_doc *d) { pl_doc_seconds(d, 0, false); }
static void add_unknown_time(pl_doc *d) { pl_doc_seconds(d, -1, true); }
static void add_about(pl_doc *d) { pl_doc_seconds(d, 0.34, true); }
static void add_less(pl_doc *d) { pl_doc_difference(d, -5000); }
static void add_even(pl_doc *d) { pl_doc_difference(d, 0); }
static void add_yes(pl_doc *d) { pl_doc_bool(d, true); }
static void add_rate(pl_doc *d) { pl_doc_real(d, 7104.3); }
static void add_huge(pl_doc *d) { pl_doc_real(d, 1.234e9); }
static void add_digits(pl_doc *d) { pl_doc_number(d, 0.123456, 2); }
static void add_pi(pl_doc *d) { pl_doc_real(d, 3.14159); }

static void test_cells(void **state)
{
    (void)state;
    static const struct {
        pl_doc_kind kind;
        add_cell *add;
        const char *text, *json; /* json NULL: no key */
    } cases[] = {{PL_DOC_COUNT, add_unknown, "-", "null"},
                 {PL_DOC_SECONDS, add_unknown, "unknown", "null"},
                 {PL_DOC_COUNT, add_blank, "", NULL},
                 {PL_DOC_COUNT, add_count, "115,343,360", "115343360"},
                 {PL_DOC_EXACT, add_zero, "0", "0"},
                 {PL_DOC_BYTES, add_count, "115,343,360  115.34", "115343360"},
                 {PL_DOC_MEGABYTES, add_count, "115.34", "115343360"},
                 {PL_DOC_MEGABYTES, add_zero, "-", "0"},
                 {PL_DOC_SIZE, add_count, "115.3 MB", "115343360"},
                 {PL_DOC_DIFFERENCE, add_less, "-5,000", "-5000"},
                 {PL_DOC_DIFFERENCE, add_even, "0", "0"},
                 {PL_DOC_SECONDS, add_half, "500 ms", "0.5"},
                 {PL_DOC_SECONDS, add_about, "~340 ms", "0.34"},
                 {PL_DOC_SECONDS, add_no_time, "-", "null"},
                 {PL_DOC_SECONDS, add_unknown_time, "unknown", "null"},
                 {PL_DOC_OPERATIONS, add_huge, "1.23 G", "1234000000"},
                 {PL_DOC_MOVED, add_huge, "1.23 GB", "1234000000"},
                 {PL_DOC_PERCENT, add_half, "50.000 %", "0.5"},
                 {PL_DOC_NUMBER, add_pi, "3.14", "3.14159"},
                 {PL_DOC_NUMBER, add_digits, "0.12", "0.123456"}, /* its own digits, not the column's */
                 {PL_DOC_FIXED, add_pi, "3.142", "3.14159"},
                 {PL_DOC_RATE, add_rate, "7,104", "7104.3"},
                 {PL_DOC_RATE, add_half, "0.5", "0.5"},
                 {PL_DOC_BOOL, add_yes, "yes", "true"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pl_doc_column columns[] = {{NULL, ""}, {"x", "", cases[i].kind, 3}};
        pl_str text = {0}, json = {0};
        pl_doc d = pl_doc_begin();
        pl_doc_table(&d, "rows", columns, 2);
        pl_doc_row(&d, 0);
        pl_doc_words(&d, "a");
        cases[i].add(&d);
        pl_doc_row_end(&d);
        pl_doc_table_end(&d);
        pl_str_printf(&text, "a%s%s\n", cases[i].text[0] ? "  " : "", cases[i].text);
        if (cases[i].json)
            pl_str_printf(&json, "{\"rows\":[{\"x\":%s}]}\n", cases[i].json);
        else
            pl_str_append(&json, "{\"rows\":[{}]}\n");
        check_text(&d, 80, pl_str_text(&text));
        check_json(&d, pl_str_text(&json));
        pl_str_deinit(&text);
        pl_str_deinit(&json);
        pl_doc_deinit(&d);
    }
}

/* ---- what comes from outside ---- */

static void test_control_characters(void **state)
{
    (void)state;
    static const char bad[] = "a\033[31m<b>\"&\xff\tc";
    static const pl_doc_column columns[] = {{"x", ""}, {NULL, "", .is_remark = true}};
    pl_doc d = pl_doc_begin();
    pl_doc_title(&d, NULL, "test", bad);
    pl_doc_card(&d, "1", "%s", bad);
    pl_doc_say(&d, 0, "%s", bad);
    pl_doc_table(&d, "rows", columns, 2);
    pl_doc_row(&d, 0);
    pl_doc_words(&d, "%s", bad);
    pl_doc_words(&d, "%s and\nmore than fits on this line", bad);
    pl_doc_row_end(&d);
    pl_doc_table_end(&d);
    check_text(&d, 40,
               "a?[31m<b>\"&??c\n"
               "  1  a?[31m<b>\"&??c\n"
               "a?[31m<b>\"&??c\n"
               "a?[31m<b>\"&??c  a?[31m<b>\"&??c and?more\n"
               "                than fits on this line\n");
    check_json(&d, "{\"rows\":[{\"x\":\"a\\u001b[31m<b>\\\"&\\ufffd\\tc\"}]}\n");
#define CLEAN "a\xef\xbf\xbd[31m&#60;b&#62;&#34;&#38;\xef\xbf\xbd\tc"
    check_body(&d, "<div class='cards'>\n<div class='card'><b>1</b><span>" CLEAN "</span></div>\n</div>\n<p>" CLEAN
                   "</p>\n<table class='facts'>\n<tr><td>" CLEAN "</td><td class='w'>" CLEAN
                   " and\nmore than fits on this line</td></tr>\n</table>\n");
    pl_doc_deinit(&d);
}

/* ---- for programs alone ---- */

static void test_nesting_for_programs(void **state)
{
    (void)state;
    static const pl_doc_column outer[] = {{"name", "name"}, {NULL, "nodes", PL_DOC_COUNT}};
    static const pl_doc_column inner[] = {{"op", "op"}, {"runs", "runs", PL_DOC_COUNT}};
    static const pl_doc_column sums[] = {{NULL, ""}, {NULL, "", PL_DOC_COUNT}};
    pl_doc d = pl_doc_begin();
    pl_doc_table(&d, "programs", outer, 2);
    pl_doc_row(&d, 0);
    pl_doc_words(&d, "train");
    pl_doc_table(&d, "operators", inner, 2);
    pl_doc_row(&d, 0);
    pl_doc_words(&d, "linear");
    pl_doc_count(&d, 12);
    pl_doc_row_end(&d);
    pl_doc_table_end(&d);
    pl_doc_array(&d, "shape");
    pl_doc_key_count(&d, "", 2);
    pl_doc_key_real(&d, "", 0.5);
    pl_doc_array_end(&d);
    pl_doc_count(&d, 7);
    pl_str_append(pl_doc_sentence(&d, "why"), "so");
    pl_doc_sentence_end(&d);
    pl_doc_row_end(&d);
    pl_doc_row(&d, PL_DOC_SHOWN);
    pl_doc_words(&d, "all");
    pl_doc_object(&d, "nothing of this row");
    pl_doc_key_null(&d, "x");
    pl_doc_object_end(&d);
    pl_doc_count(&d, 7);
    pl_doc_row_end(&d);
    pl_doc_table_end(&d);
    pl_doc_object(&d, "sums");
    pl_doc_table(&d, NULL, sums, 2);
    pl_doc_row_of(&d, "alive_bytes", 0);
    pl_doc_words(&d, "alive");
    pl_doc_count(&d, 5);
    pl_doc_row_end(&d);
    pl_doc_table_end(&d);
    pl_doc_key_count_if(&d, false, "unknown", 3);
    pl_doc_object_end(&d);
    pl_doc_shown(&d);
    pl_doc_key_count(&d, "for people", 1);
    pl_doc_shown_end(&d);
    check_text(&d, 80,
               "name   nodes\n"
               "train      7\n"
               "all        7\n"
               "alive  5\n");
    check_json(&d,
               "{\"programs\":[{\"name\":\"train\",\"operators\":[{\"op\":\"linear\",\"runs\":12}],\"shape\":[2,0.5],"
               "\"why\":\"so\"}],\"sums\":{\"alive_bytes\":5,\"unknown\":null}}\n");
    check_body(&d, "<table class='labels'><tr><th scope='col'>name</th><th scope='col' class='n'>nodes</th></tr>\n"
                   "<tr><td>train</td><td class='n' data-l='nodes'>7</td></tr>\n"
                   "<tr><td>all</td><td class='n' data-l='nodes'>7</td></tr>\n"
                   "</table>\n"
                   "<table class='facts'>\n"
                   "<tr><td>alive</td><td class='n'>5</td></tr>\n"
                   "</table>\n");
    pl_doc_deinit(&d);
}

static void test_table_without_rows(void **state)
{
    (void)state;
    static const pl_doc_column columns[] = {{"x", "title", PL_DOC_COUNT}};
    for (int hidden = 0; hidden < 2; hidden++) {
        pl_doc d = pl_doc_begin();
        pl_doc_table(&d, "rows", columns, 1);
        if (hidden) {
            pl_doc_row(&d, PL_DOC_HIDDEN);
            pl_doc_count(&d, 1);
            pl_doc_row_end(&d);
        }
        pl_doc_table_end(&d);
        check_text(&d, 80, "");
        check_body(&d, "");
        check_json(&d, hidden ? "{\"rows\":[{\"x\":1}]}\n" : "{\"rows\":[]}\n");
        pl_doc_deinit(&d);
    }
}

/* ---- figures ---- */

static void draw_text(const void *of, unsigned columns, bool color, pl_str *out)
{
    pl_str_printf(out, "%s in %u columns%s\n", (const char *)of, columns, color ? ", coloured" : "");
}

static void draw_page(const void *of, pl_str *out) { pl_str_printf(out, "<svg>%s</svg>\n", (const char *)of); }

static void test_figures(void **state)
{
    (void)state;
    pl_doc d = pl_doc_begin();
    pl_doc_draw(&d, &(pl_doc_figure){.text = draw_text, .page = draw_page, .of = "both"});
    pl_doc_draw(&d, &(pl_doc_figure){.text = draw_text, .of = "text"});
    pl_doc_draw(&d, &(pl_doc_figure){.page = draw_page, .of = "page"});
    check_text(&d, 50, "both in 50 columns\ntext in 50 columns\n");
    check_body(&d, "<svg>both</svg>\n<svg>page</svg>\n");
    check_json(&d, "{}\n");
    pl_doc_deinit(&d);
}

/* Of nothing that is finite nothing is drawn; else the same in a section of its own and in an open one. */
static void test_curves(void **state)
{
    (void)state;
    const pl_curve_point points[] = {{0, 1}, {1, 2}}, none[] = {{0, 0.0 / 0.0}};
    pl_html_curve curve = {points, 2, "train", "weight", "loss", false};
    const pl_html_chart chart = {
        .title = "Loss", .unit = "nats", .axis = "step", .least_tick = 1, .curve = &curve, .count = 1};
    pl_str own = {0}, open = {0};
    pl_html_curves(&chart, &own);
    pl_html_draw_curves(&chart, &open);
    pl_str expected = {0};
    pl_str_printf(&expected, "<section><h2>Loss</h2>%s</section>\n", pl_str_text(&open));
    assert_non_null(strstr(pl_str_text(&open), "<path class='train' d='M"));
    assert_string_equal(pl_str_text(&own), pl_str_text(&expected));
    pl_str_clear(&own);
    curve.point = none, curve.count = 1;
    pl_html_curves(&chart, &own);
    pl_html_draw_curves(&chart, &own);
    assert_string_equal(pl_str_text(&own), "");
    pl_str_deinit(&own);
    pl_str_deinit(&open);
    pl_str_deinit(&expected);
}

/* ---- memory ---- */

static void test_refused_memory_is_sticky(void **state)
{
    (void)state;
    const uint64_t blocks = pl_alloc_live_blocks();
    for (uint64_t n = 1; n < 50; n++) {
        pl_str out = {0};
        pl_doc d = pl_doc_begin();
        pl_alloc_fail_at(n, 1); /* later requests are granted */
        for (int i = 0; i < 20; i++) add_memory(&d);
        pl_alloc_fail_at(0, 0);
        const bool failed = d.body.failed;
        for (int form = PL_FORM_TEXT; form <= PL_FORM_PAGE; form++) {
            pl_doc_write(&d, (pl_doc_form)form, NULL, &out);
            assert_int_equal(out.failed, failed);
            pl_str_deinit(&out);
        }
        pl_doc_deinit(&d);
        assert_int_equal(pl_alloc_live_blocks(), blocks);
        if (!failed) return;
        assert_true(n < 49);
    }
}

/* In fixed memory nothing is asked for; what is too small says so, and nothing is written past its end. */
static void test_fixed_memory(void **state)
{
    (void)state;
    enum { ROOM = 8192, BYTE = 0x5a };
    static _Alignas(8) char memory[ROOM + 8];
    pl_doc grown = pl_doc_begin();
    pl_str expected = {0};
    add_memory(&grown);
    pl_doc_print(&grown, NULL, &expected);
    const uint64_t requests = pl_alloc_live_blocks();
    bool was_enough = false;
    for (size_t room = 8; room <= ROOM; room += 8) {
        pl_str text;
        memset(memory, BYTE, sizeof memory);
        pl_doc d = pl_doc_begin_in(memory, room, &text);
        add_memory(&d);
        pl_doc_print(&d, NULL, &text);
        for (size_t i = room; i < sizeof memory; i++) assert_int_equal(memory[i], BYTE);
        if (!text.failed) assert_string_equal(pl_str_text(&text), pl_str_text(&expected));
        assert_true(!was_enough || !text.failed); /* more is never too little */
        was_enough = !text.failed;
        pl_doc_deinit(&d);
    }
    assert_true(was_enough);
    assert_int_equal(pl_alloc_live_blocks(), requests);
    pl_str_deinit(&expected);
    pl_doc_deinit(&grown);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table_in_three_forms),
                                       cmocka_unit_test(test_wide_table_becomes_a_list),
                                       cmocka_unit_test(test_words_are_wrapped),
                                       cmocka_unit_test(test_paragraphs_and_cards),
                                       cmocka_unit_test(test_cells),
                                       cmocka_unit_test(test_control_characters),
                                       cmocka_unit_test(test_nesting_for_programs),
                                       cmocka_unit_test(test_table_without_rows),
                                       cmocka_unit_test(test_figures),
                                       cmocka_unit_test(test_curves),
                                       cmocka_unit_test(test_refused_memory_is_sticky),
                                       cmocka_unit_test(test_fixed_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
