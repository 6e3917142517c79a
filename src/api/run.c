/* Runs: the session of src/run with its plan's config, and the process around it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/choice.h"
#include "api/resume.h"
#include "base/alloc.h"
#include "base/json_read.h"
#include "base/machine.h"
#include "report/report.h"
#include "show/render.h"
#include "store/block_sink.h"
#include "store/beside.h"
#include "store/sum_file.h"

/* One process has one set of owned addresses. Static: it must be there before anything else is. */
static pl_memory_owners owners;

struct pl_run {
    const pl_plan *plan;
    pl_config *config;
    pl_settings settings;
    char changes[PL_ERROR_TEXT_BYTES]; /* for a resume */
    char *kept_config;
    pl_data *data;
    pl_session *session;
    bool host;
};

/* ---- the process ---- */

/* The plan's first lines say what the process is to be; they are read without the heap, which does not exist yet. */
static pl_status peek_process(const char *path, pl_process_options *o, int *threads, pl_error *err)
{
    char head[1024];
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    size_t n = bytes < sizeof head - 1 ? (size_t)bytes : sizeof head - 1;
    pl_status status = pl_file_read_at(fd, path, 0, head, n, err);
    close(fd);
    if (status != PL_OK) return status;
    head[n] = 0;
    const char *team = strstr(head, "\nteam threads="), *process = strstr(head, "\nprocess heap=");
    unsigned long long heap, main_stack, reserved, touched;
    char parts[PL_PARTS_NAMES_BYTES];
    _Static_assert(sizeof parts == 160, "the width below");
    const int found = !process ? 0
                               : sscanf(process,
                                        "\nprocess heap=%llu main_stack=%llu stack_reserved=%llu stack_touched=%llu "
                                        "parts=%159[a-z0-9_,]",
                                        &heap, &main_stack, &reserved, &touched, parts);
    if (!team || sscanf(team, "\nteam threads=%d", threads) != 1 || found < 4)
        return pl_fail(err, PL_E_DATA, "%s: is not a plan; plan again", path);
    *o = (pl_process_options){.heap_bytes = heap,
                              .main_stack_bytes = main_stack,
                              .thread_stack_reserved_bytes = reserved,
                              .thread_stack_touched_bytes = touched,
                              .parts = PL_PARTS_ALL};
    if (found == 5 && pl_parts_parse(parts, &o->parts))
        return pl_fail(err, PL_E_DATA, "%s: names parts of the program that it does not have; plan again", path);
    return PL_OK;
}

pl_status pl_runner_hand_on(const pl_plan *plan, pl_error *err)
{
    if (!plan->held || fcntl(plan->held, F_SETFD, 0) == 0) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "what was made ready cannot be handed to the runner: %s", strerror(errno));
}

pl_status pl_runner_exec(const char *lock_path, char *const *argv, char *const *envp, pl_error *err)
{
    pl_process_options o;
    pl_machine machine;
    int threads;
    PL_TRY(peek_process(lock_path, &o, &threads, err));
    PL_TRY(pl_machine_read("", &machine, err));
    pl_process_fence_open();
    pl_process_exec e = {.argv = argv, .envp = envp, .threads = threads, .cores = machine.cores, .options = &o};
    return pl_process_exec_self(&e, err);
}

pl_status pl_runner_prepare(const char *lock_path, pl_error *err)
{
    pl_process_options o;
    int threads;
    PL_TRY(peek_process(lock_path, &o, &threads, err));
    return pl_process_prepare(&o, &owners, err);
}

/* ---- the run ---- */

/* That of the programs that read data: all take the same number of samples at once. */
static int64_t micro_batch_of(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LOAD) return g->region[pl_region_program(g, g->node[i].region)].batch;
    return 0;
}

static void decide_resume(pl_config *c, pl_resume asked)
{
    static const pl_config_switch switches[] = {
        [PL_RESUME_NO] = PL_SWITCH_OFF, [PL_RESUME_YES] = PL_SWITCH_ON, [PL_RESUME_AUTO] = PL_SWITCH_AUTO};
    if (asked != PL_RESUME_AS_PLANNED) c->run.resume = switches[asked];
}

static pl_status read_config(pl_run *r, const char *config, pl_resume resume, pl_error *err)
{
    r->config = pl_config_create();
    if (!r->config) return pl_fail(err, PL_E_NOMEM, "no memory for the run");
    PL_TRY(pl_config_load_text(r->config, "the plan's config", config, strlen(config), err));
    decide_resume(r->config, resume);
    return PL_OK;
}

static pl_status find_settings(pl_run *r, pl_command command, const pl_facts *planned, pl_error *err)
{
    PL_TRY(pl_open_data(r->config, command, PL_DATA_FOR_RUN, planned, &r->data, err));
    return pl_settings_fill(r->config, command, r->data, &r->settings, err);
}

/* The session asks this about the checkpoint that it takes, which need not be the latest: that one may be damaged. */
static pl_status goes_on(void *context, const pl_saved *saved, const char **changes, pl_error *err)
{
    pl_run *r = context;
    *changes = r->changes;
    PL_TRY(pl_resume_check(r->config, r->settings.out, saved, err));
    return pl_resume_changes(r->config, saved, r->changes, sizeof r->changes, err);
}

/* It says what was chosen, so that a resumed run adds up its sums in the same order: bit for bit. */
static pl_status print_kept_config(pl_run *r, pl_error *err)
{
    if (pl_choice_is_used(r->config, PL_CHOICE_MICRO_BATCH)) r->config->train.micro_batch = r->settings.run.micro_batch;
    r->config->run.resume = PL_SWITCH_OFF;
    PL_TRY(pl_config_text(r->config, PL_CONFIG_KEPT, &r->kept_config, NULL, err));
    r->settings.run.kept_config = r->kept_config;
    return PL_OK;
}

static pl_status open_run(const pl_plan *plan, const pl_run_options *options, bool apart, pl_run **run, pl_error *err)
{
    pl_status status = PL_OK;
    pl_lockdown_mode lockdown;
    PL_TRY(pl_lockdown_parse(options->test_seccomp, &lockdown, err));
    pl_run *r = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "no memory for the run");
    r->plan = plan;
    r->host = options->host;
    const pl_command command = plan->command;
    PL_TRY_DONE(read_config(r, plan->config, options->resume, err));
    PL_TRY_DONE(find_settings(r, command, &plan->identity, err));
    if (r->data->source) r->settings.run.micro_batch = (uint32_t)micro_batch_of(plan->graph);
    if (pl_command_does(command, PL_USES_UPDATE) && !apart) {
        PL_TRY_DONE(print_kept_config(r, err));
        r->settings.run.goes_on = goes_on;
        r->settings.run.goes_on_context = r;
    }
    r->settings.run.checkpoint = options->checkpoint;
    if (apart) r->settings.run.keep_last = 0, r->settings.run.trace_path = NULL;
    pl_session_options so = {.plan = plan,
                             .settings = &r->settings.run,
                             .data = r->data,
                             .jobs = r->settings.jobs,
                             .metrics = pl_task_of(r->config)->metrics,
                             .measure = pl_task_of(r->config)->measure,
                             .keep_predictions = pl_task_of(r->config)->keep_predictions,
                             .owners = options->host ? NULL : &owners,
                             .lockdown = lockdown,
                             .listener = options->listener,
                             .context = options->context,
                             .stop = options->stop};
    PL_TRY_DONE(pl_session_open(&so, &r->session, err));
    PL_TRY_DONE(pl_session_commit(r->session, err));
    *run = r;
    return PL_OK;
done:
    pl_run_close(r);
    return status;
}

pl_status pl_run_open(const pl_plan *plan, const pl_run_options *options, pl_run **run, pl_error *err)
{
    return open_run(plan, options, false, run, err);
}

pl_status pl_run_open_apart(const pl_plan *plan, const char *checkpoint, const volatile int *stop, pl_run **run,
                            pl_error *err)
{
    pl_run_options options = {.host = true, .checkpoint = checkpoint, .stop = stop};
    return open_run(plan, &options, true, run, err);
}

pl_session *pl_run_session(pl_run *r) { return r->session; }
const pl_session *pl_run_session_of(const pl_run *r) { return r->session; }
const pl_plan *pl_run_plan(const pl_run *r) { return r->plan; }
const char *pl_run_folder(const pl_run *r) { return r->settings.run.keep_last ? r->settings.run.out : NULL; }

/* ---- what a runner will ask the heap for ---- */

static pl_status rehearse_goes_on(void *context, const pl_saved *saved, pl_error *err)
{
    const pl_run *r = context;
    return pl_resume_rehearse(r->config, saved, err);
}

static pl_status rehearse_load(pl_run *r, const pl_plan *plan, pl_error *err)
{
    pl_session_options so = {.plan = plan, .settings = &r->settings.run, .data = r->data, .jobs = r->settings.jobs};
    bool trains = pl_command_does(plan->command, PL_USES_UPDATE);
    return pl_session_rehearse_load(&so, trains ? rehearse_goes_on : NULL, r, err);
}

static pl_status rehearse(pl_run *r, const pl_run_rehearsal *o, pl_alloc_meter *meter, pl_run_heap *heap, pl_error *err)
{
    PL_TRY(read_config(r, o->config, PL_RESUME_AS_PLANNED, err));
    const uint64_t read = meter->peak_bytes;
    meter->peak_bytes = meter->held_bytes;
    PL_TRY(find_settings(r, o->command, o->planned, err));
    const uint64_t opened = meter->peak_bytes, left = opened - meter->held_bytes;
    if (pl_command_does(o->command, PL_USES_UPDATE)) PL_TRY(print_kept_config(r, err));
    heap->held_bytes = meter->held_bytes + left;
    heap->peak_bytes = read > meter->peak_bytes + left ? read : meter->peak_bytes + left;
    meter->peak_bytes = meter->held_bytes;
    if (o->plan) PL_TRY(rehearse_load(r, o->plan, err));
    heap->load_bytes = meter->peak_bytes - meter->held_bytes;
    return PL_OK;
}

pl_status pl_run_rehearse(const pl_run_rehearsal *o, pl_run_heap *heap, pl_error *err)
{
    pl_alloc_meter meter = {0};
    pl_alloc_set_meter(&meter);
    pl_json_count(true);
    pl_run *r = pl_alloc(1, sizeof *r);
    pl_status status =
        r ? rehearse(r, o, &meter, heap, err) : pl_fail(err, PL_E_NOMEM, "no memory to rehearse the run");
    pl_run_close(r);
    pl_json_count(false);
    pl_alloc_set_meter(NULL);
    return status;
}

/* ---- the work ---- */

pl_status pl_run_work(pl_run *r, pl_error *err) { return pl_session_run_job(r->session, r->settings.jobs.job[0], err); }

pl_status pl_run_train(pl_run *r, pl_error *err) { return pl_session_run_job(r->session, &pl_job_train, err); }

bool pl_run_scores(const pl_run *r) { return r->settings.jobs.job[0] == &pl_job_score; }

pl_status pl_run_scored(const pl_run *r, pl_text_score *to, pl_error *err)
{
    return pl_score_find(r->session, to, err);
}

static pl_status score(pl_run *r, double *loss, uint64_t *items, pl_error *err)
{
    pl_text_score scored;
    PL_TRY(pl_session_run_job(r->session, &pl_job_score, err));
    PL_TRY(pl_run_scored(r, &scored, err));
    *loss = scored.loss, *items = scored.judged;
    return PL_OK;
}

pl_status pl_run_evaluate(pl_run *r, double *loss, uint64_t *items, pl_error *err)
{
    return pl_run_scores(r) ? score(r, loss, items, err) : pl_evaluate(r->session, 0, loss, items, err);
}

bool pl_run_judges_all(const pl_run *r) { return pl_facts_value(&r->data->identity, PL_FACT_WHOLE, 0) != 0; }

pl_status pl_run_generate(pl_run *r, pl_error *err) { return pl_session_run_job(r->session, &pl_job_generate, err); }

pl_status pl_run_answer(pl_run *r, const char *prompt, size_t bytes, pl_error *err)
{
    PL_TRY(pl_generate_answer(r->session, prompt, bytes, err));
    return pl_session_check_files(r->session, err);
}

pl_status pl_run_infer(pl_run *r, pl_inferred *to, pl_error *err)
{
    pl_infer_summary s;
    PL_TRY(pl_session_run_job(r->session, &pl_job_infer, err));
    PL_TRY(pl_infer_find_summary(r->session, &s, err));
    *to = (pl_inferred){.items = s.items,
                        .not_finite = s.not_finite,
                        .seconds = s.seconds,
                        .run_seconds = s.run_seconds,
                        .median_seconds = s.median_seconds,
                        .p95_seconds = s.p95_seconds,
                        .most_seconds = s.most_seconds};
    return PL_OK;
}

pl_status pl_run_write_gradients(pl_run *r, const char *path, pl_error *err)
{
    r->settings.run.to = path;
    return pl_session_run_job(r->session, &pl_job_gradients, err);
}

pl_status pl_run_write_witness(pl_run *r, uint64_t steps, const char *folder, pl_error *err)
{
    r->settings.run.to = folder;
    r->settings.run.steps = steps;
    return pl_session_run_job(r->session, r->settings.jobs.job[0], err);
}

pl_status pl_run_write_predictions(pl_run *r, const char *path, pl_error *err)
{
    char kept[PL_FILE_PATH_MAX];
    PL_TRY(pl_keep_predictions(r->session, path, err));
    PL_TRY(pl_path_join(kept, sizeof kept, r->settings.out, PL_STAGE_PREDICTIONS, err));
    return strcmp(path, kept) == 0 ? pl_sum_file_write(path, err) : PL_OK; /* they say that a stage is done */
}

size_t pl_run_metrics(const pl_run *r, double loss, pl_loss_metric *to)
{
    return pl_session_find_metrics(r->session, loss, to);
}

uint64_t pl_run_results_left(const pl_run *r) { return pl_session_results_left(r->session); }

const char *pl_run_results_path(const pl_run *r) { return r->data->sink ? r->data->sink->path : NULL; }

pl_status pl_config_take_sampling(pl_config *c, char *said, size_t room, pl_error *err)
{
    said[0] = 0;
    return pl_task_of(c)->take_sampling ? pl_task_of(c)->take_sampling(c, said, room, err) : PL_OK;
}

bool pl_config_has_page(const pl_config *c) { return pl_task_of(c)->page != NULL; }
bool pl_run_has_page(const pl_run *r) { return pl_config_has_page(r->config); }

const pl_words *pl_run_words(const pl_run *r) { return r->settings.run.words; }

pl_status pl_run_ledger(pl_run *r, pl_ledger_form form, char *text, size_t room, pl_run_verdict *verdict, pl_error *err)
{
    static pl_memory_measured measured; /* large, and this may run on a small stack */
    if (r->host)
        return pl_fail(err, PL_E_USAGE, "a ledger needs a process of its own; this run is inside a host program");
    PL_TRY(pl_memory_measure(&owners, &measured, err));
    measured.committed = pl_session_faults(r->session);
    pl_report_verdict v = pl_report_judge(&r->plan->ledger, &measured);
    if (verdict)
        *verdict = (pl_run_verdict){.as_planned = v.as_planned && v.peak_as_planned,
                                    .planned_bytes = v.planned_bytes,
                                    .measured_bytes = v.measured_bytes,
                                    .peak_bytes = measured.peak_bytes,
                                    .mapped_files_bytes = measured.files_bytes,
                                    .mapped_files_faults = measured.committed.minor + measured.committed.major,
                                    .mapped_files_disk_faults = measured.committed.major,
                                    .unexplained_bytes = v.unexplained_bytes,
                                    .minor_faults_since_step_2 = pl_session_minor_faults(r->session),
                                    .planned_step_seconds = pl_plan_step_seconds(r->plan),
                                    .measured_step_seconds = pl_session_step_seconds(r->session)};
    if (!text || room == 0) return PL_OK;
    pl_str out;
    pl_doc d = pl_doc_begin_in(text, room, &out);
    pl_report_ledger(&r->plan->ledger, &measured, &d);
    if (form == PL_LEDGER_JSON)
        pl_doc_write_json(&d, false, &out);
    else
        pl_doc_print(&d, NULL, &out);
    return out.failed ? pl_fail(err, PL_E_USAGE, "the ledger does not fit %zu bytes", room) : PL_OK;
}

pl_status pl_run_tell(const pl_run *r, const pl_run_verdict *verdict, pl_error *err)
{
    const pl_process_told told = {.group = pl_facts_value(&r->plan->identity, "shape", 0),
                                  .planned_bytes = verdict->planned_bytes,
                                  .measured_bytes = verdict->measured_bytes,
                                  .peak_bytes = verdict->peak_bytes,
                                  .as_planned = verdict->as_planned,
                                  .items = pl_session_items(r->session),
                                  .seconds = pl_session_seconds(r->session)};
    return r->data->sink ? pl_beside_append(r->data->sink->path, &told, err) : PL_OK;
}

const char *pl_run_file_at(const pl_run *r, const void *address) { return pl_session_file_at(r->session, address); }

void pl_run_close(pl_run *r)
{
    if (!r) return;
    pl_session_close(r->session);
    if (!pl_lockdown_active()) pl_data_close(r->data); /* in lockdown waiting threads may still read them */
    pl_settings_deinit(&r->settings);
    pl_text_free(r->kept_config);
    pl_config_destroy(r->config);
    pl_free(r);
}
