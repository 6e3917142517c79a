#include "report/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/machine_file.h"
#include "base/units.h"

enum { TEXT = 48 };

static const char *effect_text(pl_advice_effect effect)
{
    static const char *const texts[] = {[PL_ADVICE_SAME] = "the same results",
                                        [PL_ADVICE_BITS] = "rounded differently: not the same bits",
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

/* ---- what bounds it ---- */

static void say_together(const pl_advice *a, const pl_words *words, pl_doc *d)
{
    char rate[TEXT], time[TEXT];
    if (a->bound == PL_ADVICE_CORES)
        pl_doc_say(d, 0, "Together they take more than %s's %g core%s, which bounds it: %s %s/s, %s in all.",
                   pl_machine_words(), a->cores, a->cores == 1 ? "" : "s",
                   pl_format_rate(a->per_second, rate, sizeof rate), words->samples,
                   pl_format_seconds(a->seconds, time, sizeof time));
    if (a->cache_key && a->cache_share >= 0)
        pl_doc_say(d, 0, "A cache (%s) could save at most %.2g %% of the time.", a->cache_key, 100 * a->cache_share);
}

static void add_rate(pl_doc *d, double per_second) { per_second < 0 ? pl_doc_unknown(d) : pl_doc_real(d, per_second); }

static void add_stage(const pl_advice *a, int i, pl_doc *d)
{
    const pl_advice_stage *s = &a->stage[i];
    pl_doc_row(d, i == a->bound ? PL_DOC_STRONG : 0);
    pl_doc_words(d, "%s", s->name);
    pl_doc_count(d, s->threads);
    add_rate(d, s->per_second);
    pl_doc_key_real(d, "cores", s->cores);
    a->bound < 0 || a->share[i] < 0 ? pl_doc_unknown(d) : pl_doc_real(d, a->share[i]);
    pl_doc_key_words(d, "basis", s->basis);
    pl_doc_words(d, "%s%s", i == a->bound ? "bounds it; " : "", s->basis);
    pl_doc_row_end(d);
}

static void add_stages(const pl_advice *a, const pl_words *words, pl_doc *d)
{
    const pl_doc_column columns[] = {{"stage", ""},
                                     {"threads", "threads", PL_DOC_COUNT},
                                     {"per_second", "per second", PL_DOC_RATE},
                                     {NULL, "busy", PL_DOC_PERCENT},
                                     {NULL, "", .is_remark = true}};
    pl_doc_section_long(d, "What limits it");
    pl_doc_table(d, "stages", columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < PL_ADVICE_STAGES; i++)
        if (a->stage[i].name[0]) add_stage(a, i, d);
    pl_doc_table_end(d);
    say_together(a, words, d);
    pl_doc_section_end(d);
    pl_doc_key_words(d, "bound", bound_name(a));
    if (a->cache_key) pl_doc_key_real_if(d, a->cache_share >= 0, "cache_saves_at_most", a->cache_share);
}

/* ---- what would change it ---- */

static bool is_estimated(const pl_advice_change *c) { return c->per_second >= 0 && !c->at_best && !c->measured; }

static void say_notes(const pl_advice *a, pl_doc *d)
{
    bool estimated = false;
    for (size_t i = 0; i < a->changes; i++) estimated |= is_estimated(&a->change[i]);
    if (a->is_too_deep) pl_doc_say(d, 0, "nothing was tried: to plan a model this deep again takes too long");
    if (estimated) pl_doc_say(d, 0, "* estimated from kernels of other sizes");
    if (a->of_largest) pl_doc_say(d, 0, "of the largest shape, which this plan is of");
}

/* What is one thread more here is one more than there are cores elsewhere. */
static const char *cores_text(const pl_advice *a, const pl_advice_change *c, char text[TEXT])
{
    if (c->cores)
        pl_print(text, TEXT, "; on %" PRIu32 " cores, %s has %g", c->cores, pl_machine_words(), a->cores);
    else
        text[0] = 0;
    return text;
}

static void add_change(const pl_advice *a, const pl_advice_change *c, pl_doc *d)
{
    char cores[TEXT];
    const bool known = c->per_second >= 0 && a->per_second > 0;
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", c->options);
    pl_doc_key_words(d, "results", effect_word(c->effect));
    pl_doc_key_bool(d, "fits", c->fits);
    pl_doc_key_bool(d, "at_best", c->at_best);
    pl_doc_key_bool(d, "measured", c->measured);
    if (c->cores) pl_doc_key_count(d, "cores", c->cores);
    add_rate(d, c->per_second);
    known ? pl_doc_real(d, c->per_second / a->per_second) : pl_doc_unknown(d);
    pl_doc_key_count_if(d, c->charged_bytes, "charged_bytes", c->charged_bytes);
    pl_doc_count(d, c->charged_bytes);
    pl_doc_words(d, "%s%s%s%s%s", c->at_best && known ? "at most; " : "", effect_text(c->effect),
                 cores_text(a, c, cores), c->fits ? "" : "; does not fit the budget", is_estimated(c) ? " *" : "");
    pl_doc_row_end(d);
}

static void add_changes(const pl_plan *p, pl_doc *d)
{
    static const pl_doc_column columns[] = {{"options", ""},
                                            {"per_second", "per second", PL_DOC_RATE},
                                            {NULL, "times", PL_DOC_FIXED, 2},
                                            {NULL, "charged, MB", PL_DOC_MEGABYTES},
                                            {NULL, "", .is_remark = true}};
    const pl_advice *a = p->advice;
    pl_doc_section_long(d, "What would change it");
    pl_doc_table(d, "changes", columns, sizeof columns / sizeof *columns);
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "as it is");
    add_rate(d, a->per_second);
    pl_doc_blank(d);
    pl_doc_count(d, pl_plan_charged_bytes(p));
    pl_doc_row_end(d);
    for (size_t i = 0; i < a->changes; i++) add_change(a, &a->change[i], d);
    pl_doc_table_end(d);
    say_notes(a, d);
    pl_doc_section_end(d);
}

/* ---- risks ---- */

static void add_risks(const pl_advice *a, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {"text", "", .is_remark = true}};
    pl_doc_table(d, "risks", columns, 2);
    for (size_t i = 0; i < a->risks; i++) {
        pl_doc_row(d, a->risk[i].is_bad ? PL_DOC_BAD : 0);
        pl_doc_key_words(d, "risk", a->risk[i].name);
        pl_doc_key_bool(d, "bad", a->risk[i].is_bad);
        pl_doc_words(d, "%s %s", a->risk[i].is_bad ? "!" : "-", a->risk[i].name);
        pl_doc_words(d, "%s", a->risk[i].text);
        pl_doc_row_end(d);
    }
    pl_doc_table_end(d);
}

static void say_safe(const pl_advice *a, pl_doc *d)
{
    char charged[TEXT], disk[TEXT], time[TEXT];
    if (!a->has_safe) {
        pl_doc_say(d, PL_DOC_BAD, "Not safe as it is, and no option that was tried mends what is marked above.");
        return;
    }
    if (!a->safe_options[0]) {
        pl_doc_say(d, 0, "Safe as it is.");
        return;
    }
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_printf(out, "Safe: %s (%s charged, %s of disk", a->safe_options,
                  pl_format_bytes(a->safe_charged_bytes, charged, sizeof charged),
                  pl_format_bytes(a->safe_disk_bytes, disk, sizeof disk));
    if (a->safe_seconds >= 0) pl_str_printf(out, ", %s", pl_format_seconds(a->safe_seconds, time, sizeof time));
    pl_str_append(out, ")");
    if (a->safe_parts > 1)
        pl_str_printf(out, "; it does one of %" PRIu64 " parts, and the others need as much disk each, elsewhere",
                      a->safe_parts);
    pl_str_append(out, ".");
    pl_doc_paragraph_end(d);
}

static void add_safe(const pl_advice *a, pl_doc *d)
{
    if (!a->has_safe) {
        pl_doc_key_null(d, "safe");
        return;
    }
    pl_doc_object(d, "safe");
    pl_doc_key_words(d, "options", a->safe_options);
    pl_doc_key_count(d, "charged_bytes", a->safe_charged_bytes);
    pl_doc_key_count(d, "disk_bytes", a->safe_disk_bytes);
    pl_doc_key_count(d, "parts", a->safe_parts);
    pl_doc_key_real_if(d, a->safe_seconds >= 0, "seconds", a->safe_seconds);
    pl_doc_object_end(d);
}

void pl_report_add_advice(const pl_plan *p, pl_doc *d)
{
    const pl_advice *a = p->advice;
    pl_doc_object(d, "advice");
    pl_doc_key_count(d, "samples", a->samples);
    pl_doc_key_count(d, "done", a->done);
    pl_doc_key_real_if(d, a->seconds >= 0, "seconds", a->seconds);
    pl_doc_key_real_if(d, a->per_second >= 0, "per_second", a->per_second);
    pl_doc_key_real(d, "cores", a->cores);
    add_stages(a, pl_plan_words_of(p), d);
    add_changes(p, d);
    pl_doc_section(d, "Risks");
    add_risks(a, d);
    add_safe(a, d);
    say_safe(a, d);
    pl_doc_section_end(d);
    pl_doc_object_end(d);
}
