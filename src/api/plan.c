/* Plans as files and texts, and questions about them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "api/choice.h"
#include "base/process.h"
#include "config/schema.h"
#include "ir/properties.h"
#include "report/report.h"
#include "systems/files.h"

#define LOCK_BYTES_MAX (UINT64_C(4) << 30) /* some 30 kB a layer: 100,000 layers */

pl_status pl_plan_save(const pl_plan *plan, const char *path, pl_error *err)
{
    pl_str s = {0};
    pl_plan_print(plan, &s);
    pl_status status = s.failed ? pl_fail(err, PL_E_NOMEM, "no memory to print the plan")
                                : pl_file_write_all(path, s.data, s.bytes, err);
    pl_str_deinit(&s);
    return status;
}

static pl_status load(pl_config *c, const char *name, const char *text, pl_error *err)
{
    return pl_config_load_text(c, name, text, strlen(text), err);
}

/* The words of its config's system; where that cannot be read, as in a plan of a graph alone, the plain ones. */
static pl_status find_words(pl_plan *p, pl_error *err)
{
    pl_error why = {0};
    pl_config *c = p->config ? pl_config_create() : NULL;
    if (!p->config) return PL_OK;
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the plan's config");
    pl_status status = load(c, "the plan's config", p->config, &why);
    if (status == PL_OK) p->words = *pl_config_words(c);
    pl_config_destroy(c);
    return status == PL_E_NOMEM ? pl_fail(err, status, "%s", why.text) : PL_OK;
}

pl_status pl_plan_load(const char *path, pl_plan **plan, pl_error *err)
{
    char *text;
    size_t bytes;
    struct stat st;
    void *below = stat(path, &st) == 0 ? pl_process_take_below((size_t)st.st_size + 1) : NULL;
    pl_status status = pl_file_read_all(path, LOCK_BYTES_MAX, &text, &bytes, err);
    pl_free(below);
    if (status != PL_OK) return status;
    status = pl_plan_parse(path, text, bytes, plan, err);
    pl_free(text);
    if (status != PL_OK) return status;
    status = find_words(*plan, err);
    if (status == PL_OK) status = pl_plan_check(*plan, err);
    if (status == PL_OK) return PL_OK;
    pl_plan_destroy(*plan);
    *plan = NULL;
    return pl_fail_prefix(err, status == PL_E_NOMEM ? status : PL_E_DATA, "%s", path);
}

/* ---- a plan that was made earlier ---- */

static bool is(const pl_config_key *key, const char *path) { return strcmp(key->path, path) == 0; }

/* Progress and log, and whether the run begins or resumes: the plan is the same either way. */
static bool is_no_matter(const pl_config_key *key)
{
    return is(key, "run.progress") || is(key, "run.log") || is(key, "run.resume");
}

/* Is it the file that the run keeps in its folder, whatever the plan was made with? */
static bool is_kept_copy(const pl_config *now, const pl_config_key *key, const char *asked)
{
    pl_error ignored;
    pl_config *kept = pl_config_create();
    if (!kept) return false;
    *kept = *now;
    bool is = key->type == PL_CONFIG_NAME_OR_PATH && pl_dataset_of_run(now)->keep &&
              pl_dataset_of_run(now)->keep(kept, &ignored) == PL_OK &&
              pl_files_are_one(pl_config_path_at(kept, key), asked);
    pl_config_destroy(kept);
    return is;
}

/* The folder of a run has a config of its own, which says the same in other words: where its files are seen from the
 * root, that a file of it is the copy there (its hash is compared later), and which micro-batch was chosen. */
static bool means_same(const pl_plan *plan, const pl_config *planned, const pl_config *now, const pl_config_key *key)
{
    const char *was = pl_config_path_at(planned, key), *asked = pl_config_path_at(now, key);
    if (is(key, "train.micro_batch"))
        return planned->train.micro_batch == PL_CONFIG_AUTO &&
               (uint64_t)now->train.micro_batch == pl_plan_micro_batch(plan);
    if (!was || !asked || !was[0] || !asked[0]) return false;
    return pl_files_are_one(was, asked) || is_kept_copy(now, key, asked);
}

static pl_status take_key(const pl_plan *plan, const pl_config *planned, const pl_config *wanted, pl_config *now,
                          const pl_config_key *key, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_str was = {0}, is = {0};
    bool decides = key->flags & (PL_CONFIG_FLAG_MODEL | PL_CONFIG_FLAG_NUMERICS);
    if (is_no_matter(key) || pl_config_value_equal(planned, wanted, key)) return PL_OK;
    /* a choice left open changes numbers, and yet the plan decides it: the config permits that */
    if (pl_choice_is_left(now, key->path) || means_same(plan, planned, now, key) ||
        (!decides && !pl_config_is_set(now, key->path))) {
        memcpy((char *)now + key->offset, (const char *)planned + key->offset, key->bytes);
        return PL_OK;
    }
    pl_config_print_value(key, pl_config_value_of(planned, key), &was);
    pl_config_print_value(key, pl_config_value_of(now, key), &is);
    pl_status status = pl_fail(
        err, PL_E_CONFIG, "%s: %s is %.200s, but the plan was made for %.200s; leave it as it was, or plan anew",
        pl_config_where(now, key->path, where, sizeof where), key->path, pl_str_text(&is), pl_str_text(&was));
    pl_str_deinit(&was);
    pl_str_deinit(&is);
    return status;
}

/* Compares what the configs print, which leaves out what means nothing under their other values. */
pl_status pl_plan_take_config(const pl_plan *plan, pl_config *now, pl_error *err)
{
    pl_config *planned = pl_config_create();
    pl_config *wanted = pl_config_create();
    pl_str printed = {0};
    pl_status status = PL_OK;
    if (!planned || !wanted) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the plan's config"));
    PL_TRY_DONE(load(planned, "the plan's config", plan->config ? plan->config : "", err));
    pl_config_print_yaml(now, &printed);
    if (printed.failed) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the config"));
    PL_TRY_DONE(load(wanted, "the config", pl_str_text(&printed), err));
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        PL_TRY_DONE(take_key(plan, planned, wanted, now, key, err));
done:
    pl_str_deinit(&printed);
    pl_config_destroy(wanted);
    pl_config_destroy(planned);
    return status;
}

/* What a plan is called: "gpt, train"; without the system where the config is not one of ours. PL_E_NOMEM. */
static pl_status find_title(const pl_plan *plan, char *text, size_t room, pl_error *err)
{
    pl_error why = {0};
    pl_config *c = pl_config_create();
    const pl_config_key *key = pl_config_find("model.arch");
    const pl_status status = c ? load(c, "the plan's config", plan->config ? plan->config : "", &why) : PL_E_NOMEM;
    const bool is_read = status == PL_OK;
    snprintf(text, room, "%s%s%s", is_read ? key->names[c->model.arch] : "", is_read ? ", " : "",
             pl_command_name(plan->command));
    pl_config_destroy(c);
    return status == PL_E_NOMEM ? pl_fail(err, status, "no memory to read the plan's config") : PL_OK;
}

pl_status pl_plan_text(const pl_plan *plan, pl_plan_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    char title[64];
    pl_report_options o = pl_report_options_default();
    pl_status status = PL_OK;
    if (form == PL_PLAN_HTML || form == PL_PLAN_REPORT) PL_TRY(find_title(plan, title, sizeof title, err));
    o.title = form == PL_PLAN_HTML || form == PL_PLAN_REPORT ? title : NULL;
    switch (form) {
    case PL_PLAN_REPORT:
        status = pl_report_plan(plan, &o, &s, err);
        break;
    case PL_PLAN_JSON:
        status = pl_report_plan_json(plan, NULL, &s, err);
        break;
    case PL_PLAN_HTML:
        status = pl_report_html(plan, NULL, &o, &s, err);
        break;
    case PL_PLAN_LOCK:
        pl_plan_print(plan, &s);
        break;
    case PL_PLAN_GRAPH:
        pl_graph_print(plan->graph, &s);
        break;
    }
    if (status == PL_OK) return pl_give_text(&s, text, bytes, err);
    pl_str_deinit(&s);
    return status;
}

pl_status pl_plan_report(const pl_plan *plan, const pl_plan_look *look, char **text, size_t *bytes, pl_error *err)
{
    pl_str s = {0};
    char title[64];
    pl_report_options o = pl_report_options_default();
    o.width = pl_text_form_of(look->columns, look->color).columns;
    o.color = look->color;
    o.is_short = look->is_short;
    PL_TRY(find_title(plan, title, sizeof title, err));
    o.title = title;
    const pl_status status = pl_report_plan(plan, &o, &s, err);
    if (status == PL_OK) return pl_give_text(&s, text, bytes, err);
    pl_str_deinit(&s);
    return status;
}

static pl_id train_of(const pl_plan *p) { return pl_graph_find_trained(p->graph); }

uint64_t pl_plan_arena_bytes(const pl_plan *p) { return p->arena->bytes; }
int pl_plan_threads(const pl_plan *p) { return p->team.threads; }

const char *pl_plan_budget_text(const pl_plan *p) { return p->budget; }

double pl_plan_step_seconds(const pl_plan *p)
{
    pl_id train = train_of(p);
    double seconds = train == PL_NONE ? 0 : pl_plan_program_seconds(p, train);
    return seconds > 0 ? seconds : 0;
}

uint64_t pl_plan_batch(const pl_plan *p) { return p->batch; }

uint64_t pl_plan_micro_batch(const pl_plan *p) { return p->batch ? (uint64_t)p->graph->region[train_of(p)].batch : 0; }

uint32_t pl_plan_lowered_chunk(const pl_plan *p) { return p->chunk; }
uint32_t pl_plan_lowered_sequences(const pl_plan *p) { return p->sequences; }

uint64_t pl_plan_accumulation(const pl_plan *p)
{
    pl_id train = train_of(p);
    for (size_t i = 0; i < p->graph->region_count; i++)
        if (p->batch && p->graph->region[i].parent == train) return p->graph->region[i].trip;
    return 1;
}

const pl_words *pl_plan_words(const pl_plan *p) { return pl_plan_words_of(p); }

uint64_t pl_plan_parameters(const pl_plan *p)
{
    uint64_t count = 0;
    for (size_t i = 0; i < p->graph->value_count; i++) {
        const pl_value *v = &p->graph->value[i];
        if (v->role == PL_ROLE_WEIGHT && v->program == PL_NONE && pl_value_root(p->graph, (pl_id)i) == i)
            count += pl_shape_elems(&v->shape);
    }
    return count;
}
