/* What a search found, as the public header gives it out. */
#include <string.h>

#include "api/api.h"
#include "api/compile.h"
#include "report/fit.h"

struct pl_fit_answer {
    pl_fit_result result;
    pl_plan *plan;
    uint64_t steps;
    char *title; /* the config file's name; NULL: it has none */
};

static const char *title_of(const pl_config *c)
{
    const char *slash = strrchr(c->file, '/');
    return slash ? slash + 1 : c->file;
}

static pl_status search(const pl_config *config, pl_compile_options o, pl_fit_answer *a, bool *certified, pl_error *err)
{
    pl_status status = pl_compile_largest(config, &o, &a->result, &a->plan, err);
    *certified = status == PL_E_BUDGET && a->result.least != PL_FIT_NONE;
    if (*certified) {
        pl_error why = {0};
        pl_status tried = pl_certify(config, &o, &a->result, &why);
        if (tried != PL_OK) *certified = false, status = pl_fail(err, tried, "%s", why.text);
    }
    return status == PL_OK && !a->result.trained ? pl_try_numbers(config, &o, &a->result, err) : status;
}

static void forget(pl_fit_answer *a)
{
    pl_fit_result_deinit(&a->result);
    pl_plan_destroy(a->plan);
    a->plan = NULL;
}

pl_status pl_fit_make(const pl_config *config, const char *cache_folder, pl_progress progress, void *context,
                      pl_fit_answer **answer, pl_error *err)
{
    pl_fit_answer *a = pl_alloc(1, sizeof *a);
    const pl_command command = pl_command_of(config);
    *answer = NULL;
    if (!a) return pl_fail(err, PL_E_NOMEM, "no memory for a search");
    if (!pl_command_does(command, PL_USES_UPDATE) && !pl_task_of(config)->job[command]->count_runs)
        return pl_fit_destroy(a), pl_fail(err, PL_E_USAGE,
                                          "fit looks for the fastest training or the fastest work on many samples, and "
                                          "this config has neither; `plimsoll plan` shows what it takes");
    if (config->file[0]) {
        a->title = pl_strdup(title_of(config));
        if (!a->title) return pl_fit_destroy(a), pl_fail(err, PL_E_NOMEM, "no memory for a search");
    }
    pl_compile_options o = {.command = command,
                            .cache_folder = cache_folder,
                            .progress = progress,
                            .context = context,
                            .everything = true,
                            .steps = &a->steps};
    bool certified, news = false;
    o.news = &news;
    pl_status status = search(config, o, a, &certified, err);
    if (news) { /* as settle_plan of compile.c */
        forget(a);
        o.measured = true;
        *err = (pl_error){0};
        status = search(config, o, a, &certified, err);
    }
    if (status == PL_OK || certified)
        *answer = a;
    else
        pl_fit_destroy(a);
    return status;
}

void pl_fit_destroy(pl_fit_answer *a)
{
    if (!a) return;
    forget(a);
    pl_free(a->title);
    pl_free(a);
}

const pl_plan *pl_fit_plan(const pl_fit_answer *a) { return a->plan; }

pl_status pl_fit_text(const pl_fit_answer *a, pl_fit_form form, unsigned columns, bool color, char **text,
                      size_t *bytes, pl_error *err)
{
    static const pl_doc_form forms[] = {
        [PL_FIT_REPORT] = PL_FORM_TEXT, [PL_FIT_JSON] = PL_FORM_JSON, [PL_FIT_HTML] = PL_FORM_PAGE};
    pl_report_fit_options o = {.title = a->title, .width = columns ? columns : 80, .color = color, .steps = a->steps};
    pl_str s = {0};
    pl_status status = pl_report_fit(&a->result, a->plan, &o, forms[form], &s, err);
    if (status == PL_OK) return pl_give_text(&s, text, bytes, err);
    pl_str_deinit(&s);
    return status;
}
