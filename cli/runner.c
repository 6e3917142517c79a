/* The runner: a fresh process that holds what the plan says, does the work of one subcommand and measures itself. From
 * PL_EVENT_COMMITTED on nothing here asks for memory: text goes through fixed buffers and write(2). */
#include "runner.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "gradients.h"
#include "out.h"
#include "page.h"
#include "progress.h"
#include "scored.h"
#include "signals.h"
#include "texts.h"

enum { REPORT_BYTES = 128 << 10 };

typedef struct runner {
    pl_call call;
    pl_view view;
    pl_texts texts;
    pl_plan *plan;
    pl_run *run;
    pl_error error;
} runner;

static char report_text[REPORT_BYTES]; /* the ledger or the table of times: one is shown at a time */

static bool said(const runner *r, pl_call_word word) { return r->call.word[word] != NULL; }

/* ---- the ledger ---- */

static void say_ledger(runner *r, pl_run_verdict *verdict)
{
    pl_error err = {0};
    pl_view_clear(&r->view);
    if (pl_run_ledger(r->run, PL_LEDGER_REPORT, report_text, sizeof report_text, verdict, &err) == PL_OK)
        pl_say("\n"), pl_say_bytes(report_text, strlen(report_text));
    else
        pl_say("the ledger cannot be made: %s\n", err.text);
}

static void hear(void *context, const pl_event *e)
{
    runner *r = context;
    if (e->kind == PL_EVENT_COMMITTED) pl_signals_catch();
    if (!pl_texts_event(&r->texts, e)) pl_view_event(&r->view, e);
    if (r->run && pl_signal_take_ledger()) say_ledger(r, NULL);
}

/* A JSON text on one line: a line break in JSON is layout, and so are the blanks after it. */
static void put_json_event(const char *event, const char *json)
{
    pl_error ignored = {0};
    pl_status status =
        pl_put_format(&ignored, "{\"schema\":\"plimsoll.progress/1\",\"event\":\"%s\",\"%s\":", event, event);
    while (*json && status == PL_OK) {
        size_t bytes = strcspn(json, "\n");
        status = pl_put(json, bytes, &ignored);
        json += bytes;
        json += strspn(json, "\n ");
    }
    if (status == PL_OK) (void)pl_put_text("}\n", &ignored);
}

/* The ledger as JSON: kept in the run's folder, and the last line of progress for programs. */
static pl_status keep_ledger(runner *r, pl_run_verdict *verdict)
{
    char path[PATH_MAX];
    pl_status status = pl_run_ledger(r->run, PL_LEDGER_JSON, report_text, sizeof report_text, verdict, &r->error);
    if (status == PL_E_USAGE && verdict->planned_bytes) { /* more rows than there is room for: the verdict is there */
        pl_view_clear(&r->view);
        if (r->view.quiet < 2) pl_say("warning: the ledger is not kept: %.900s\n", r->error.text);
        return PL_OK;
    }
    if (status != PL_OK) return status;
    bool trains = pl_command_does(r->call.command->command, PL_USES_UPDATE);
    if (!r->view.text_to_stdout && r->view.show == PL_SHOW_JSON) put_json_event("ledger", report_text);
    if (!trains || !said(r, PL_CALL_OUT)) return PL_OK;
    int n = snprintf(path, sizeof path, "%s/report.json", r->call.word[PL_CALL_OUT]);
    if (n < 0 || n >= PATH_MAX)
        return pl_cli_error(&r->error, PL_E_USAGE, "%s: the path is too long", r->call.word[PL_CALL_OUT]);
    return pl_text_save(path, report_text, strlen(report_text), &r->error);
}

/* ---- the table of times; there is none where nothing ran ---- */

static void say_times(runner *r)
{
    pl_error none = {0};
    if (pl_run_times(r->run, PL_TIMES_TEXT, report_text, sizeof report_text, &none) != PL_OK) return;
    pl_say("\n"), pl_say_bytes(report_text, strlen(report_text));
}

/* Kept where plimsoll report finds it, and sent to programs. A finished run does not fail because of it. */
static void keep_times(runner *r)
{
    static char path[PATH_MAX];
    pl_error err = {0};
    if (pl_run_times(r->run, PL_TIMES_JSON, report_text, sizeof report_text, &err) != PL_OK) return;
    if (!r->view.text_to_stdout && r->view.show == PL_SHOW_JSON) put_json_event("times", report_text);
    pl_status status = pl_run_times_path(r->run, path, sizeof path, &err);
    if (status == PL_OK && path[0]) status = pl_text_save(path, report_text, strlen(report_text), &err);
    if (status != PL_OK && r->view.quiet < 2) pl_say("warning: the table of times is not kept: %.900s\n", err.text);
}

static void say_step_time(const pl_run_verdict *v)
{
    char planned[PL_FORMAT_BYTES], measured[PL_FORMAT_BYTES];
    if (v->measured_step_seconds <= 0) return;
    pl_say("step: %s measured", pl_show_seconds(v->measured_step_seconds, measured));
    if (v->planned_step_seconds > 0) pl_say(", %s predicted", pl_show_seconds(v->planned_step_seconds, planned));
    pl_say("; page faults since step 2: %llu\n", (unsigned long long)v->minor_faults_since_step_2);
}

/* "As planned, to the byte. Peak 10,964,992 bytes (11.0 MB); a step took 15 ms, 3.6 ms predicted." */
static void say_memory(const pl_run_verdict *v)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES], differs[PL_FORMAT_BYTES];
    const bool over = v->measured_bytes > v->planned_bytes;
    if (v->measured_bytes == v->planned_bytes)
        pl_say("As planned, to the byte.");
    else
        pl_say(
            "%s planned: %s bytes %s.", v->as_planned ? "As" : "NOT as",
            pl_show_count(over ? v->measured_bytes - v->planned_bytes : v->planned_bytes - v->measured_bytes, differs),
            over ? "over" : "under");
    pl_say(" Peak %s bytes (%s)", pl_show_count(v->peak_bytes, a), pl_show_bytes(v->peak_bytes, b));
    if (v->mapped_files_bytes) pl_say(", with %s of mapped files", pl_show_bytes(v->mapped_files_bytes, a));
    if (v->measured_step_seconds > 0) pl_say("; a step took %s", pl_show_seconds(v->measured_step_seconds, a));
    if (v->measured_step_seconds > 0 && v->planned_step_seconds > 0)
        pl_say(", %s predicted", pl_show_seconds(v->planned_step_seconds, a));
    pl_say("\n");
}

/* Above this many bits per byte a model has learned letters, but hardly words. */
#define BITS_OF_TEXT 2.9
/* A validation this much above the best one, at least a quarter of the steps later, is not noise. */
#define RISEN 1.02

/* Whether more steps would help. */
static void say_advice(const pl_view *v)
{
    if (!v->best[0]) return;
    const bool is_best = v->best_step == v->step;
    if (v->last_loss > RISEN * v->best_loss && 4 * v->best_step <= 3 * v->step)
        pl_say("the validation loss has risen since step %llu: the model overfits; more data, fewer steps or a "
               "smaller model help\n",
               (unsigned long long)v->best_step);
    else if (is_best && v->bits_per_byte > BITS_OF_TEXT)
        pl_say(
            "it writes letters rather than words so far (%.1f bits per byte): go on with more --steps and --resume\n",
            v->bits_per_byte);
}

static void say_what_next(const runner *r)
{
    const char *out = r->call.word[PL_CALL_OUT], *then = r->call.word[PL_CALL_THEN];
    char shown[PL_SHOWN_BYTES];
    if (!then) return;
    pl_say("kept in %s; plimsoll report shows where its memory and time went\n", pl_show_plainly(out, shown));
    say_advice(&r->view);
    pl_say("next: %s\n", then);
}

/* What most people want to know; --ledger and plimsoll report give the rest. */
static void say_summary(const runner *r, const pl_run_verdict *v, bool finished)
{
    if (r->view.best[0]) pl_say("best validation: %s\n", r->view.best);
    say_memory(v);
    if (finished) say_what_next(r);
}

/* A page without it is no reason to fail. */
static void tell(runner *r, const pl_run_verdict *verdict)
{
    pl_error err = {0};
    pl_view_clear(&r->view);
    if (pl_run_tell(r->run, verdict, &err) != PL_OK && r->view.quiet < 2) pl_say("warning: %s\n", err.text);
}

static pl_status measure(runner *r, bool finished)
{
    pl_run_verdict verdict = {0};
    char planned[PL_FORMAT_BYTES], measured[PL_FORMAT_BYTES];
    keep_times(r);
    pl_status status = keep_ledger(r, &verdict);
    if (status != PL_OK) return status;
    tell(r, &verdict);
    const bool is_last = finished ? pl_run_results_left(r->run) == 0 : r->view.keeps_results; /* process of this job */
    if (said(r, PL_CALL_LEDGER) && is_last) {
        say_ledger(r, &verdict);
        say_times(r);
        say_step_time(&verdict);
    } else if (said(r, PL_CALL_SUMMARY) && is_last) {
        say_summary(r, &verdict, finished);
    }
    if (verdict.as_planned) return PL_OK;
    return pl_cli_error(&r->error, PL_E_MISMATCH,
                        "measured memory is not as planned: %s resident, %s planned; please report this with %s",
                        pl_show_bytes(verdict.measured_bytes, measured), pl_show_bytes(verdict.planned_bytes, planned),
                        "the output of --ledger, and the plan");
}

/* ---- inherited files ---- */

static pl_status keep_file(runner *r, const char *descriptor, const char *name)
{
    char path[PATH_MAX];
    int fd = descriptor ? atoi(descriptor) : -1;
    if (fd < 3) return PL_OK;
    int n = snprintf(path, sizeof path, "%s/%s", r->call.word[PL_CALL_OUT], name);
    pl_status status = n < 0 || n >= PATH_MAX
                           ? pl_cli_error(&r->error, PL_E_USAGE, "%s: the path is too long", r->call.word[PL_CALL_OUT])
                           : pl_text_copy(path, fd, &r->error);
    close(fd);
    return status;
}

/* The plan's descriptor is the end of its path in /proc/self/fd. */
static const char *plan_word(const runner *r)
{
    const char *slash = strrchr(r->call.word[PL_CALL_LOCK], '/');
    return slash ? slash + 1 : NULL;
}

static int plan_descriptor(const runner *r)
{
    const char *word = plan_word(r);
    return word && strncmp(r->call.word[PL_CALL_LOCK], "/proc/self/fd/", 14) == 0 && atoi(word) >= 3 ? atoi(word) : -1;
}

static bool keeps_plan(const runner *r) { return said(r, PL_CALL_OUT) && said(r, PL_CALL_HTML); }

static pl_status keep_files(runner *r)
{
    pl_status status = keep_file(r, plan_word(r), "plan.lock");
    if (status == PL_OK) status = keep_file(r, r->call.word[PL_CALL_HTML], "plan.html");
    return status == PL_OK ? keep_file(r, r->call.word[PL_CALL_STARTS], "starts.jsonl") : status;
}

/* ---- the work of each subcommand ---- */

static pl_status train(runner *r)
{
    pl_status status = pl_run_train(r->run, &r->error);
    if (status != PL_OK || r->view.status == PL_OK) return status;
    (void)pl_cli_error(&r->error, PL_E_STORAGE, "the run is complete, but its progress output is not: %.900s",
                       r->view.error.text);
    return PL_E_STORAGE;
}

static pl_status generate(runner *r)
{
    r->texts = (pl_texts){.view = &r->view,
                          .prompt = r->call.word[PL_CALL_PROMPT],
                          .prompt_file = r->call.word[PL_CALL_FROM],
                          .samples = said(r, PL_CALL_SEVERAL) ? strtoull(r->call.word[PL_CALL_SEVERAL], NULL, 10) : 0,
                          .json = said(r, PL_CALL_JSON),
                          .chats = said(r, PL_CALL_ANSWERS) && strcmp(r->call.word[PL_CALL_ANSWERS], "chat") == 0};
    return said(r, PL_CALL_ANSWERS) ? pl_texts_answer(&r->texts, r->run, &r->error)
                                    : pl_texts_write(&r->texts, r->run, &r->error);
}

/* JSON has no number for a metric that is not finite. */
static pl_status put_evaluated(const runner *r, double loss, uint64_t items, pl_error *err)
{
    char text[1024];
    pl_line line = {text, sizeof text, 0};
    pl_loss_metric metric[PL_LOSS_METRICS_MAX];
    size_t metrics = pl_run_metrics(r->run, loss, metric);
    pl_line_add(&line, "{\"schema\":\"plimsoll.eval/1\",\"step\":%llu,\"loss\":%.9g", (unsigned long long)r->view.step,
                loss);
    for (size_t i = 0; i < metrics; i++)
        pl_line_add(&line, isfinite(metric[i].value) ? ",\"%s\":%.9g" : ",\"%s\":null", metric[i].key, metric[i].value);
    pl_line_add(&line, ",\"%s\":%llu%s}\n", pl_run_words(r->run)->items, (unsigned long long)items,
                pl_run_judges_all(r->run) ? ",\"judged\":\"all\"" : "");
    return pl_put(text, line.bytes, err);
}

static pl_status print_evaluated(const runner *r, double loss, uint64_t items, pl_error *err)
{
    enum { COLUMN = 14 };
    char text[1024], count[PL_FORMAT_BYTES];
    pl_line line = {text, sizeof text, 0};
    pl_loss_metric metric[PL_LOSS_METRICS_MAX];
    const pl_words *words = pl_run_words(r->run);
    size_t metrics = pl_run_metrics(r->run, loss, metric);
    pl_line_add(&line, "%-*s  %.5f %s\n", COLUMN, "loss", loss, words->loss);
    for (size_t i = 0; i < metrics; i++)
        pl_line_add(&line, "%-*s  %.*f\n", COLUMN, metric[i].words, metric[i].decimals, metric[i].value);
    if (pl_run_judges_all(r->run))
        pl_line_add(&line, "%-*s  all of it: the run was not trained on this %s\n", COLUMN, "judged", words->data);
    pl_line_add(&line, "%-*s  %s\n%-*s  %llu\n", COLUMN, words->items, pl_show_count(items, count), COLUMN, "step",
                (unsigned long long)r->view.step);
    return pl_put(text, line.bytes, err);
}

/* A stage's evaluation, on one line. */
static void say_evaluated(const runner *r, double loss, uint64_t items)
{
    pl_loss_metric metric[PL_LOSS_METRICS_MAX];
    const size_t metrics = pl_run_metrics(r->run, loss, metric);
    if (r->view.quiet) return;
    pl_say("%s: %llu %s", r->call.word[PL_CALL_STAGE], (unsigned long long)items, pl_run_words(r->run)->items);
    for (size_t i = 0; i < metrics; i++)
        if (metric[i].uses & PL_METRIC_VALIDATED)
            pl_say(", %s %.*f", metric[i].brief, metric[i].brief_decimals, metric[i].value);
    pl_say("\n");
}

static pl_status report_scored(runner *r)
{
    pl_text_score scored;
    pl_run_verdict verdict = {0};
    pl_status status = pl_run_scored(r->run, &scored, &r->error);
    if (status == PL_OK)
        status = pl_run_ledger(r->run, PL_LEDGER_JSON, report_text, sizeof report_text, &verdict, &r->error);
    return status == PL_OK ? pl_put_scored(&scored, &verdict, said(r, PL_CALL_JSON), &r->error) : status;
}

static pl_status evaluate(runner *r)
{
    double loss = 0;
    uint64_t items = 0;
    pl_status status = pl_run_evaluate(r->run, &loss, &items, &r->error);
    pl_view_clear(&r->view);
    if (status == PL_OK && said(r, PL_CALL_TO))
        status = pl_run_write_predictions(r->run, r->call.word[PL_CALL_TO], &r->error);
    if (status != PL_OK) return status;
    if (pl_run_scores(r->run)) return report_scored(r);
    if (said(r, PL_CALL_STAGE)) return say_evaluated(r, loss, items), PL_OK;
    return said(r, PL_CALL_JSON) ? put_evaluated(r, loss, items, &r->error)
                                 : print_evaluated(r, loss, items, &r->error);
}

static pl_status gradients(runner *r)
{
    const char *path = r->call.word[PL_CALL_TO];
    if (!path) return pl_cli_error(&r->error, PL_E_USAGE, "a file for the gradients is missing");
    pl_status status = pl_run_write_gradients(r->run, path, &r->error);
    return status == PL_OK ? pl_list_tensors(path, &r->error) : status;
}

/* With the memory that the process has now: none of the work's memory is freed before it. */
static pl_status put_inferred(const runner *r, const pl_inferred *i, pl_error *err)
{
    pl_run_verdict verdict = {0};
    char text[512];
    pl_status status = pl_run_ledger(r->run, PL_LEDGER_JSON, report_text, sizeof report_text, &verdict, err);
    if (status != PL_OK) return status;
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line,
                "{\"schema\":\"plimsoll.infer/1\",\"items\":%llu,\"not_finite\":%llu,\"seconds\":%.6g,"
                "\"run_seconds\":%.6g",
                (unsigned long long)i->items, (unsigned long long)i->not_finite, i->seconds, i->run_seconds);
    if (i->most_seconds > 0)
        pl_line_add(&line, ",\"median_seconds\":%.6g,\"p95_seconds\":%.6g,\"most_seconds\":%.6g", i->median_seconds,
                    i->p95_seconds, i->most_seconds);
    pl_line_add(&line, ",\"planned_bytes\":%llu,\"measured_bytes\":%llu}\n", (unsigned long long)verdict.planned_bytes,
                (unsigned long long)verdict.measured_bytes);
    return said(r, PL_CALL_APART) ? pl_put_kept(text, line.bytes, err) : pl_put(text, line.bytes, err);
}

static void say_inferred(const pl_inferred *i)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES], c[PL_FORMAT_BYTES];
    pl_say("%s item%s in %s", pl_show_count(i->items, a), pl_show_plural(i->items), pl_show_seconds(i->seconds, b));
    if (i->most_seconds > 0)
        pl_say("; an item takes %s (median), %s (95 %% of them take less), %s at most",
               pl_show_seconds(i->median_seconds, a), pl_show_seconds(i->p95_seconds, b),
               pl_show_seconds(i->most_seconds, c));
    pl_say("\n");
}

static pl_status infer(runner *r)
{
    pl_inferred found;
    pl_status status = pl_run_infer(r->run, &found, &r->error);
    if (status == PL_OK && r->view.status != PL_OK) r->error = r->view.error, status = r->view.status;
    pl_view_clear(&r->view);
    if (status == PL_OK && !r->view.quiet) say_inferred(&found);
    return status == PL_OK && said(r, PL_CALL_JSON) ? put_inferred(r, &found, &r->error) : status;
}

/* A job without a function here tells the view all that it has to report. */
static pl_status do_job(runner *r)
{
    pl_status status = pl_run_work(r->run, &r->error);
    if (status != PL_OK || r->view.status == PL_OK) return status;
    r->error = r->view.error;
    return r->view.status;
}

static pl_status work(runner *r)
{
    static pl_status (*const works[PL_COMMAND_COUNT])(runner *) = {
        [PL_COMMAND_TRAIN] = train,         [PL_COMMAND_EVALUATE] = evaluate, [PL_COMMAND_GENERATE] = generate,
        [PL_COMMAND_GRADIENTS] = gradients, [PL_COMMAND_INFER] = infer,
    };
    const pl_command command = r->call.command->command;
    return works[command] ? works[command](r) : do_job(r);
}

/* ---- from the arguments to the end ---- */

static void set_view(runner *r)
{
    const char *show = r->call.word[PL_CALL_SHOW], *quiet = r->call.word[PL_CALL_QUIET];
    r->view.show = pl_show_choose(show ? show : "plain", false);
    r->view.quiet = quiet ? atoi(quiet) : 0;
    r->view.color = pl_color_wanted(STDERR_FILENO);
    r->view.text_to_stdout =
        !pl_command_does(r->call.command->command, PL_USES_UPDATE | PL_USES_RESULTS | PL_USES_CALIBRATION) &&
        !said(r, PL_CALL_STAGE) && !(said(r, PL_CALL_APART) && r->view.show == PL_SHOW_JSON);
    r->view.keeps_results = pl_command_does(r->call.command->command, PL_USES_RESULTS);
    r->view.goes_on = said(r, PL_CALL_GOES_ON);
    r->view.again = said(r, PL_CALL_AGAIN) ? r->call.word[PL_CALL_AGAIN] : "";
}

static pl_resume resume_of(const char *word)
{
    if (!word) return PL_RESUME_AS_PLANNED;
    return strcmp(word, "true") == 0 ? PL_RESUME_YES : strcmp(word, "auto") == 0 ? PL_RESUME_AUTO : PL_RESUME_NO;
}

/* For a signal's handler, which knows no runner. */
static const pl_run *running;
static const char *file_at(const void *address) { return pl_run_file_at(running, address); }

static pl_status open_run(runner *r)
{
    const char *lock = r->call.word[PL_CALL_LOCK];
    pl_run_options options = {.listener = hear,
                              .context = r,
                              .stop = &pl_signal_stop,
                              .test_seccomp = getenv("PLIMSOLL_TEST_SECCOMP"),
                              .checkpoint = r->call.word[PL_CALL_CHECKPOINT],
                              .resume = resume_of(r->call.word[PL_CALL_RESUME])};
    pl_status status = pl_runner_prepare(lock, &r->error);
    if (status == PL_OK) status = pl_plan_load(lock, &r->plan, &r->error);
    if (status == PL_OK && !keeps_plan(r)) close(plan_descriptor(r)); /* it is memory */
    if (status == PL_OK) status = pl_run_open(r->plan, &options, &r->run, &r->error);
    running = r->run;
    if (status == PL_OK) pl_signals_name_files(r->call.command->name, file_at);
    return status == PL_OK && keeps_plan(r) ? keep_files(r) : status;
}

static pl_status finish(runner *r, pl_status status)
{
    if (status == PL_OK || status == PL_E_STOPPED) {
        pl_status measured = measure(r, status == PL_OK);
        if (status == PL_OK) status = measured;
    }
    pl_view_clear(&r->view);
    return status;
}

/* The last message: why it ends. */
static int conclude(const runner *r, pl_status status)
{
    return status == PL_OK ? 0 : pl_cli_complain(r->call.command->name, status, &r->error);
}

/* The next process does what is missing of the results; where nothing is left, it makes their page. */
static pl_status close_run(runner *r, pl_status status)
{
    static char path[PATH_MAX];
    const bool next_stage = status == PL_OK && said(r, PL_CALL_STAGE) && said(r, PL_CALL_NEXT);
    const bool keeps_results = status == PL_OK && said(r, PL_CALL_NEXT) && !next_stage;
    const bool goes_on = keeps_results && pl_run_results_left(r->run) > 0;
    const bool has_page = keeps_results && pl_run_has_page(r->run);
    if (keeps_results) snprintf(path, sizeof path, "%s", pl_run_results_path(r->run));
    pl_run_close(r->run); /* may warn */
    pl_plan_destroy(r->plan);
    if (next_stage) return pl_cli_go_on(atoi(r->call.word[PL_CALL_NEXT]), &r->error);
    if (!goes_on && !has_page) return status;
    return goes_on ? pl_cli_go_on(atoi(r->call.word[PL_CALL_NEXT]), &r->error)
                   : pl_page_exec(path, r->view.quiet, &r->error);
}

int pl_cli_run(int argc, char **argv)
{
    static runner r;
    pl_status status = pl_call_parse(argc, argv, &r.call, &r.error);
    if (status != PL_OK) return pl_cli_complain(PL_CLI_RUNNER, status, &r.error);
    pl_signals_leave(); /* until there is something to save */
    pl_signals_ledger();
    set_view(&r);
    status = open_run(&r);
    if (status == PL_OK) status = work(&r);
    status = finish(&r, status);
    /* Threads that end release their stacks by madvise, which this mode's filter forbids. */
    const char *filter = getenv("PLIMSOLL_TEST_SECCOMP");
    if (filter && filter[0]) _exit(conclude(&r, status));
    return conclude(&r, close_run(&r, status));
}
