#include "report/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html.h"
#include "report/table.h"

enum { TEXT = 48 };

static const char *rate_text(double per_second, char text[TEXT])
{
    if (per_second < 0)
        snprintf(text, TEXT, "unknown");
    else if (per_second >= 1000)
        pl_format_count((uint64_t)per_second, text, TEXT);
    else
        pl_print(text, TEXT, "%.3g", per_second);
    return text;
}

static const char *effect_text(pl_advice_effect effect)
{
    static const char *const texts[] = {[PL_ADVICE_SAME] = "the same results",
                                        [PL_ADVICE_BITS] = "rounded differently: other bits",
                                        [PL_ADVICE_OTHER] = "another model: other results"};
    return texts[effect];
}

static const char *effect_word(pl_advice_effect effect)
{
    static const char *const words[] = {
        [PL_ADVICE_SAME] = "same", [PL_ADVICE_BITS] = "bits", [PL_ADVICE_OTHER] = "other"};
    return words[effect];
}

static const char *bound_name(const pl_advice *a)
{
    return a->bound < 0 ? NULL : a->bound == PL_ADVICE_CORES ? "cores" : a->stage[a->bound].name;
}

/* ---- text ---- */

static void print_together(const pl_advice *a, const pl_words *words, pl_str *out)
{
    char rate[TEXT], time[TEXT];
    if (a->bound == PL_ADVICE_CORES)
        pl_str_printf(out,
                      "Together they take more than this machine's %g core%s, which bounds it: %s %s/s, %s in all.\n",
                      a->cores, a->cores == 1 ? "" : "s", rate_text(a->per_second, rate), words->samples,
                      pl_format_seconds(a->seconds, time, sizeof time));
}

static void print_cache(const pl_advice *a, pl_str *out)
{
    if (a->cache_key && a->cache_share >= 0)
        pl_str_printf(out, "A cache (%s) could save at most %.2g %% of the time.\n", a->cache_key,
                      100 * a->cache_share);
}

void pl_report_stages(const pl_advice *a, const pl_words *words, pl_str *out)
{
    for (pl_table t = pl_table_begin(out, "lrrrl"); pl_table_pass(&t);) {
        char text[TEXT];
        pl_table_cell(&t, "%s", "");
        pl_table_cell(&t, "threads");
        pl_table_cell(&t, "%s/s", words->samples);
        pl_table_cell(&t, "busy");
        pl_table_end_row(&t);
        for (int i = 0; i < PL_ADVICE_STAGES; i++) {
            const pl_advice_stage *s = &a->stage[i];
            if (!s->name[0]) continue;
            t.strong = i == a->bound;
            pl_table_cell(&t, "%s", s->name);
            pl_table_cell(&t, "%" PRIu32, s->threads);
            pl_table_cell(&t, "%s", rate_text(s->per_second, text));
            if (a->bound < 0 || a->share[i] < 0)
                pl_table_cell(&t, "-");
            else
                pl_table_cell(&t, "%.*f %%", a->share[i] < 0.01 ? 3 : 0, 100 * a->share[i]);
            pl_table_cell(&t, "%s%s", i == a->bound ? "bounds it; " : "", s->basis);
            pl_table_end_row(&t);
        }
    }
    const size_t from = out->bytes;
    print_together(a, words, out);
    print_cache(a, out);
    pl_str_fold(out, from, PL_TEXT_COLUMNS);
}

static bool is_estimated(const pl_advice_change *c) { return c->per_second >= 0 && !c->at_best && !c->measured; }

/* Notes on the table of changes. */
static void print_notes(const pl_advice *a, pl_str *out)
{
    bool estimated = false;
    for (size_t i = 0; i < a->changes; i++) estimated |= is_estimated(&a->change[i]);
    if (a->is_too_deep) pl_str_append(out, "nothing was tried: to plan a model this deep again takes too long\n");
    if (estimated) pl_str_append(out, "* from kernels of other sizes: about so\n");
    if (a->of_largest) pl_str_append(out, "of the largest shape, which this plan is of\n");
}

/* What is one thread more here is one more than there are cores elsewhere. */
static const char *cores_text(const pl_advice *a, const pl_advice_change *c, char text[TEXT])
{
    if (c->cores)
        pl_print(text, TEXT, "; on %" PRIu32 " cores, this machine has %g", c->cores, a->cores);
    else
        text[0] = 0;
    return text;
}

static void change_row(pl_table *t, const pl_advice *a, const pl_advice_change *c)
{
    char text[TEXT], bound[TEXT], cores[TEXT];
    const bool known = c->per_second >= 0 && a->per_second > 0;
    pl_table_cell(t, "%s", c->options);
    pl_table_cell(t, "%s%s", c->at_best && known ? "at most " : "", rate_text(c->per_second, text));
    pl_print(bound, sizeof bound, "x %.2f", known ? c->per_second / a->per_second : 0);
    pl_table_cell(t, "%s", known ? bound : "-");
    pl_table_megabytes(t, c->charged_bytes);
    pl_table_cell(t, "%s%s%s%s", effect_text(c->effect), cores_text(a, c, cores),
                  c->fits ? "" : "; does not fit the budget", is_estimated(c) ? " *" : "");
    pl_table_end_row(t);
}

void pl_report_changes(const pl_plan *p, pl_str *out)
{
    const pl_advice *a = p->advice;
    const pl_words *words = pl_plan_words_of(p);
    for (pl_table t = pl_table_begin(out, "lrrrl"); pl_table_pass(&t);) {
        char text[TEXT];
        pl_table_cell(&t, "%s", "");
        pl_table_cell(&t, "%s/s", words->samples);
        pl_table_cell(&t, "%s", "");
        pl_table_cell(&t, "charged, MB");
        pl_table_end_row(&t);
        pl_table_cell(&t, "as it is");
        pl_table_cell(&t, "%s", rate_text(a->per_second, text));
        pl_table_cell(&t, "%s", "");
        pl_table_megabytes(&t, pl_plan_charged_bytes(p));
        pl_table_end_row(&t);
        for (size_t i = 0; i < a->changes; i++) change_row(&t, a, &a->change[i]);
    }
    print_notes(a, out);
}

static void print_safe(const pl_advice *a, pl_str *out)
{
    char charged[TEXT], disk[TEXT], time[TEXT];
    if (!a->has_safe) {
        pl_str_append(out, "Not safe as it is, and no option that was tried mends what is marked above.\n");
        return;
    }
    if (!a->safe_options[0]) {
        pl_str_append(out, "Safe: as it is.\n");
        return;
    }
    pl_str_printf(out, "Safe: %s (%s charged, %s of disk", a->safe_options,
                  pl_format_bytes(a->safe_charged_bytes, charged, sizeof charged),
                  pl_format_bytes(a->safe_disk_bytes, disk, sizeof disk));
    if (a->safe_seconds >= 0) pl_str_printf(out, ", %s", pl_format_seconds(a->safe_seconds, time, sizeof time));
    pl_str_append(out, ")");
    if (a->safe_parts > 1)
        pl_str_printf(out, "; it does one of %" PRIu64 " parts, and the others need as much disk each, elsewhere",
                      a->safe_parts);
    pl_str_append(out, ".\n");
}

void pl_report_risks(const pl_advice *a, pl_str *out)
{
    for (size_t i = 0; i < a->risks; i++) {
        const size_t from = out->bytes;
        pl_str_printf(out, "%s %s: %s.\n", a->risk[i].is_bad ? "!" : "-", a->risk[i].name, a->risk[i].text);
        pl_str_fold(out, from, PL_TEXT_COLUMNS);
    }
    const size_t from = out->bytes;
    print_safe(a, out);
    pl_str_fold(out, from, PL_TEXT_COLUMNS);
}

/* ---- the page ---- */

static void html_cell(pl_str *out, const char *kind, const char *text)
{
    pl_str_printf(out, "<td%s>", kind);
    pl_html_text(out, text);
    pl_str_append(out, "</td>");
}

static void html_stages(const pl_advice *a, const pl_words *words, pl_str *out)
{
    char text[TEXT];
    pl_str_printf(out,
                  "<section><h2>What bounds it</h2>\n<table><tr><th>stage</th><th class='n'>threads</th>"
                  "<th class='n'>%s/s</th><th>known</th></tr>\n",
                  words->samples);
    for (int i = 0; i < PL_ADVICE_STAGES; i++) {
        const pl_advice_stage *s = &a->stage[i];
        if (!s->name[0]) continue;
        pl_str_append(out, "<tr>");
        html_cell(out, "", s->name);
        pl_str_printf(out, "<td class='n'>%" PRIu32 "</td>", s->threads);
        html_cell(out, " class='n'", rate_text(s->per_second, text));
        pl_str_append(out, i == a->bound ? "<td>bounds it; " : "<td>");
        pl_html_text(out, s->basis);
        pl_str_append(out, "</td></tr>\n");
    }
    pl_str_append(out, "</table><p>");
    print_together(a, words, out);
    print_cache(a, out);
    pl_str_append(out, "</p></section>\n");
}

static void html_changes(const pl_plan *p, pl_str *out)
{
    const pl_advice *a = p->advice;
    char text[TEXT], cores[TEXT];
    pl_str_printf(out,
                  "<section><h2>What would change it</h2>\n<table><tr><th>option</th><th class='n'>%s/s</th>"
                  "<th class='n'>charged</th><th>results</th></tr>\n",
                  pl_plan_words_of(p)->samples);
    for (size_t i = 0; i < a->changes; i++) {
        const pl_advice_change *c = &a->change[i];
        pl_str_append(out, "<tr>");
        html_cell(out, "", c->options);
        pl_str_printf(out, "<td class='n'>%s%s</td>", c->at_best ? "at most " : "", rate_text(c->per_second, text));
        html_cell(out, " class='n'", c->charged_bytes ? pl_format_bytes(c->charged_bytes, text, sizeof text) : "-");
        pl_str_printf(out, "<td>%s%s%s%s</td></tr>\n", effect_text(c->effect), cores_text(a, c, cores),
                      c->fits ? "" : "; does not fit the budget", is_estimated(c) ? " *" : "");
    }
    pl_str_append(out, "</table><p>");
    print_notes(a, out);
    pl_str_append(out, "</p></section>\n");
}

void pl_report_advice_html(const pl_plan *p, pl_str *out)
{
    const pl_advice *a = p->advice;
    char safe[400] = "";
    pl_str s = pl_str_fixed(safe, sizeof safe);
    html_stages(a, pl_plan_words_of(p), out);
    html_changes(p, out);
    pl_str_append(out, "<section><h2>Risks</h2>\n<table>");
    for (size_t i = 0; i < a->risks; i++) {
        pl_str_printf(out, "<tr><td>%s%s</td>", a->risk[i].is_bad ? "! " : "", a->risk[i].name);
        html_cell(out, "", a->risk[i].text);
        pl_str_append(out, "</tr>\n");
    }
    print_safe(a, &s);
    pl_str_append(out, "</table><p>");
    pl_html_text(out, pl_str_text(&s));
    pl_str_append(out, "</p></section>\n");
}

/* ---- JSON ---- */

static void json_stages(const pl_advice *a, pl_json *j)
{
    pl_json_key(j, "stages");
    pl_json_array(j);
    for (int i = 0; i < PL_ADVICE_STAGES; i++) {
        const pl_advice_stage *s = &a->stage[i];
        if (!s->name[0]) continue;
        pl_json_object(j);
        pl_json_kv_string(j, "stage", s->name);
        pl_json_kv_uint(j, "threads", s->threads);
        pl_json_kv_double_if(j, s->per_second >= 0, "per_second", s->per_second);
        pl_json_kv_double(j, "cores", s->cores);
        pl_json_kv_string(j, "basis", s->basis);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_kv_string(j, "bound", bound_name(a));
}

static void json_changes(const pl_advice *a, pl_json *j)
{
    pl_json_key(j, "changes");
    pl_json_array(j);
    for (size_t i = 0; i < a->changes; i++) {
        const pl_advice_change *c = &a->change[i];
        pl_json_object(j);
        pl_json_kv_string(j, "options", c->options);
        pl_json_kv_string(j, "results", effect_word(c->effect));
        pl_json_kv_bool(j, "fits", c->fits);
        pl_json_kv_bool(j, "at_best", c->at_best);
        pl_json_kv_bool(j, "measured", c->measured);
        if (c->cores) pl_json_kv_uint(j, "cores", c->cores);
        pl_json_kv_double_if(j, c->per_second >= 0, "per_second", c->per_second);
        pl_json_kv_uint_if(j, c->charged_bytes, "charged_bytes", c->charged_bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void json_risks(const pl_advice *a, pl_json *j)
{
    pl_json_key(j, "risks");
    pl_json_array(j);
    for (size_t i = 0; i < a->risks; i++) {
        pl_json_object(j);
        pl_json_kv_string(j, "risk", a->risk[i].name);
        pl_json_kv_bool(j, "bad", a->risk[i].is_bad);
        pl_json_kv_string(j, "text", a->risk[i].text);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void json_safe(const pl_advice *a, pl_json *j)
{
    pl_json_key(j, "safe");
    if (!a->has_safe) {
        pl_json_null(j);
        return;
    }
    pl_json_object(j);
    pl_json_kv_string(j, "options", a->safe_options);
    pl_json_kv_uint(j, "charged_bytes", a->safe_charged_bytes);
    pl_json_kv_uint(j, "disk_bytes", a->safe_disk_bytes);
    pl_json_kv_uint(j, "parts", a->safe_parts);
    pl_json_kv_double_if(j, a->safe_seconds >= 0, "seconds", a->safe_seconds);
    pl_json_object_end(j);
}

void pl_report_advice_json(const pl_advice *a, pl_json *j)
{
    pl_json_object(j);
    pl_json_kv_uint(j, "samples", a->samples);
    pl_json_kv_uint(j, "done", a->done);
    pl_json_kv_double_if(j, a->seconds >= 0, "seconds", a->seconds);
    pl_json_kv_double_if(j, a->per_second >= 0, "per_second", a->per_second);
    pl_json_kv_double(j, "cores", a->cores);
    json_stages(a, j);
    if (a->cache_key) pl_json_kv_double_if(j, a->cache_share >= 0, "cache_saves_at_most", a->cache_share);
    json_changes(a, j);
    json_risks(a, j);
    json_safe(a, j);
    pl_json_object_end(j);
}
