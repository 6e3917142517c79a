#include "planning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "again.h"
#include "format.h"
#include "out.h"
#include "progress.h"
#include "signals.h"
#include "stages.h"

pl_status pl_talk_read(const pl_config *config, bool quiet, bool verbose, pl_talk *talk, pl_error *err)
{
    char progress[16], log[16];
    pl_status status = pl_cli_setting(config, "run", "progress", progress, sizeof progress, err);
    if (status == PL_OK) status = pl_cli_setting(config, "run", "log", log, sizeof log, err);
    if (status != PL_OK) return status;
    bool only_errors = strcmp(log, "error") == 0, only_warnings = strcmp(log, "warn") == 0;
    talk->quiet = only_errors ? 2 : quiet || only_warnings ? 1 : 0;
    talk->verbose = (verbose || strcmp(log, "debug") == 0) && !talk->quiet;
    talk->show = pl_show_name(pl_show_choose(progress, pl_terminal_redraws(STDERR_FILENO)));
    return PL_OK;
}

/* ---- progress while planning: a percentage on a terminal, one line per phase elsewhere ---- */

typedef struct phases {
    const char *command;
    bool quiet, terminal, drawn;
    char name[64];
    char said[256]; /* the names of phases that already have their line; phases alternate */
    int percent;
} phases;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void draw_phase(phases *p, const char *phase, int percent)
{
    if (percent == p->percent && strncmp(p->name, phase, sizeof p->name - 1) == 0) return;
    snprintf(p->name, sizeof p->name, "%s", phase);
    p->percent = percent;
    p->drawn = true;
    pl_say("\r\033[K%s … %d %%", phase, percent);
}

static void say_phase(phases *p, const char *phase)
{
    char line[80];
    size_t used = strlen(p->said);
    snprintf(line, sizeof line, "%s …\n", phase);
    if (strstr(p->said, line)) return;
    snprintf(p->said + used, sizeof p->said - used, "%s", line);
    pl_say("%s", line);
}

static bool tell_phase(void *context, const char *phase, uint64_t done, uint64_t total)
{
    phases *p = context;
    if (!p->quiet && p->terminal)
        draw_phase(p, phase, total ? (int)(100.0 * ((double)done / (double)total)) : 0);
    else if (!p->quiet)
        say_phase(p, phase);
    return !pl_signal_stop;
}

static void end_phases(phases *p)
{
    if (p->drawn) pl_say("\r\033[K");
    p->drawn = false;
}

static pl_status check_machine(const char *name, const pl_talk *talk, bool here, pl_plan **plan, pl_error *err)
{
    pl_error why = {0};
    pl_status status = pl_plan_check_machine(*plan, &why);
    if (status == PL_OK) return PL_OK;
    if (!here && status == PL_E_BUDGET) {
        if (talk->quiet < 2)
            pl_say("plimsoll %s: warning: it cannot run %s: %s\n", name, talk->elsewhere ? "there" : "here", why.text);
        return PL_OK;
    }
    *err = why;
    pl_plan_destroy(*plan);
    *plan = NULL;
    return status;
}

/* Where the fence refuses memory, the budget is too small; the machine has not failed. */
static pl_status name_fence(pl_status status, const pl_config *config, pl_error *err)
{
    pl_error why = *err;
    if (status != PL_E_NOMEM || !pl_planner_fence_struck()) return status;
    return pl_cli_error(err, PL_E_BUDGET,
                        "preparing the %s and planning take more memory than the cgroup's limit leaves: %.600s; raise "
                        "the limit (the container's memory)",
                        pl_config_words(config)->data, why.text);
}

static phases begin_phases(const char *name, const pl_talk *talk)
{
    return (phases){
        .command = name, .terminal = pl_terminal_redraws(STDERR_FILENO), .percent = -1, .quiet = talk->quiet > 0};
}

extern char **environ;

/* With the words of the command as it was given. */
pl_status pl_cli_begin_with_module(const pl_config *config, pl_error *err)
{
    const char *const *words;
    const int count = pl_again_words(&words);
    const char *module = pl_config_module(config), *begun = getenv(PL_CLI_MODULE);
    if (!module || (begun && strcmp(begun, module) == 0)) return PL_OK;
    if (count == 0) return pl_cli_error(err, PL_E_NOMEM, "no memory for the words of the command, to begin anew");
    if (setenv(PL_CLI_MODULE, module, 1) != 0) return pl_cli_error(err, PL_E_NOMEM, "no memory to begin anew");
    pl_signals_hold();
    return pl_process_restart((char *const *)(uintptr_t)words, environ, err);
}

/* prepared: for a command that only looks, else NULL. */
static pl_status prepare(const pl_cli_input *in, pl_command command, bool data, phases *p, pl_prepared **prepared,
                         pl_error *err)
{
    pl_status status = pl_cli_begin_with_module(in->config, err);
    if (status != PL_OK) return status;
    pl_signals_catch(); /* half-written files are removed */
    status = pl_planner_fence(in->config, err);
    if (status == PL_OK && data)
        status = prepared ? pl_prepare_briefly(in->config, command, tell_phase, p, prepared, err)
                          : pl_prepare(in->config, command, tell_phase, p, err);
    pl_signals_leave();
    return status == PL_OK && pl_signal_stop ? PL_E_STOPPED : status;
}

/* prepared: for a command that only looks; NULL: the plan is to run here. */
static pl_status make_plan(const char *name, const pl_cli_input *in, pl_command command, const pl_talk *talk,
                           bool is_prepared, pl_prepared **prepared, pl_plan **plan, pl_error *err)
{
    phases p = begin_phases(name, talk);
    const bool data = pl_command_reads_samples(command, in->config);
    pl_status status = is_prepared ? PL_OK : prepare(in, command, data, &p, prepared, err);
    const bool here = !prepared;
    if (status == PL_OK)
        status =
            (here ? pl_plan_make_here : pl_plan_make)(in->config, command, pl_cli_cache(in), tell_phase, &p, plan, err);
    end_phases(&p);
    return status == PL_OK ? check_machine(name, talk, here, plan, err) : name_fence(status, in->config, err);
}

pl_status pl_cli_make_plan(const char *name, const pl_cli_input *in, pl_command command, const pl_talk *talk,
                           pl_plan **plan, pl_error *err)
{
    return make_plan(name, in, command, talk, false, NULL, plan, err);
}

pl_status pl_cli_look_at_plan(const char *name, const pl_cli_input *in, pl_command command, const pl_talk *talk,
                              pl_prepared **prepared, pl_plan **plan, pl_error *err)
{
    return make_plan(name, in, command, talk, false, prepared, plan, err);
}

/* What results are about, and so what is left to do, may be known only when the data are prepared. */
static pl_status prepare_for_results(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk,
                                     bool *prepared, pl_error *err)
{
    phases p = begin_phases(command->name, talk);
    *prepared = pl_command_does(command->command, PL_USES_DATA) && pl_command_does(command->command, PL_USES_RESULTS);
    if (!*prepared) return PL_OK;
    pl_status status = prepare(in, command->command, true, &p, NULL, err);
    end_phases(&p);
    return name_fence(status, in->config, err);
}

void pl_cli_undo(pl_prepared *prepared, const pl_talk *talk)
{
    pl_error why = {0};
    if (pl_prepared_undo(prepared, &why) != PL_OK && talk->quiet < 2) pl_say("warning: %s\n", why.text);
}

pl_status pl_cli_make_fit(const char *name, const pl_cli_input *in, const pl_talk *talk, pl_fit_answer **answer,
                          pl_error *err)
{
    phases p = begin_phases(name, talk);
    pl_prepared *prepared = NULL;
    pl_status status = prepare(in, pl_command_of(in->config), true, &p, &prepared, err);
    if (status == PL_OK) status = pl_fit_make(in->config, pl_cli_cache(in), tell_phase, &p, answer, err);
    pl_cli_undo(prepared, talk);
    end_phases(&p);
    return name_fence(status, in->config, err);
}

/* A plan made earlier, by plan or fit, runs as it is. Only the data are checked again: what was prepared from them may
 * be gone or out of date. */
static pl_status load_plan(const pl_cli_command *command, const pl_cli_input *in, const char *path, const pl_talk *talk,
                           pl_plan **plan, pl_error *err)
{
    pl_status status = pl_plan_load(path, plan, err);
    if (status == PL_OK) status = pl_plan_take_config(*plan, in->config, err);
    if (status == PL_OK) status = pl_plan_check_machine(*plan, err);
    if (status != PL_OK) return status;
    phases p = begin_phases(command->name, talk);
    status = prepare(in, command->command, true, &p, NULL, err);
    end_phases(&p);
    return name_fence(status, in->config, err);
}

/* ---- a few words about the plan ---- */

static void say_batch(const pl_plan *plan)
{
    const pl_words *words = pl_plan_words(plan);
    unsigned long long batch = pl_plan_batch(plan), micro = pl_plan_micro_batch(plan),
                       times = pl_plan_accumulation(plan);
    if (times > 1 && batch < micro * times)
        pl_say("batch %llu in %llu micro-batches of %llu, the last with %llu, ", batch, times, micro,
               batch - (times - 1) * micro);
    else if (times > 1)
        pl_say("batch %llu = %llu %s x %llu, ", batch, micro, micro == 1 ? words->sample : words->samples, times);
    else if (batch)
        pl_say("batch %llu, ", batch);
}

static void say_summary(const pl_plan *plan, pl_command command, const char *out, double seconds)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES], c[PL_FORMAT_BYTES];
    pl_say("plan: %s parameters, ", pl_show_count(pl_plan_parameters(plan), a));
    if (pl_command_does(command, PL_USES_UPDATE)) say_batch(plan);
    pl_say("%d thread%s\n", pl_plan_threads(plan), pl_show_plural((uint64_t)pl_plan_threads(plan)));
    pl_say("      %s resident (arena %s), %s charged", pl_show_bytes(pl_plan_resident_bytes(plan), a),
           pl_show_bytes(pl_plan_arena_bytes(plan), b), pl_show_bytes(pl_plan_charged_bytes(plan), c));
    if (pl_command_does(command, PL_USES_UPDATE) && pl_plan_step_seconds(plan) > 0)
        pl_say(", %s a step predicted", pl_show_seconds(pl_plan_step_seconds(plan), a));
    pl_say("\n");
    if (pl_plan_budget_text(plan)[0]) pl_say("      budget: %s\n", pl_plan_budget_text(plan));
    if (!pl_command_does(command, PL_USES_UPDATE)) return;
    if (seconds >= 0)
        pl_say("      planned in %s; everything is kept in %s\n", pl_show_seconds(seconds, a), out);
    else
        pl_say("      as planned before; everything is kept in %s\n", out);
}

static void say_lowered(const pl_plan *plan)
{
    const uint32_t chunk = pl_plan_lowered_chunk(plan), texts = pl_plan_lowered_sequences(plan);
    if (texts)
        pl_say("at most %" PRIu32 " text%s written at a time to fit the budget (--batch)\n", texts,
               texts > 1 ? "s are" : " is");
    if (chunk) pl_say("tokens are read %" PRIu32 " at a time to fit the budget (--prefill_tokens)\n", chunk);
}

static pl_status say_report(const pl_plan *plan, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_plan_text(plan, PL_PLAN_REPORT, &text, &bytes, err);
    if (status == PL_OK) pl_say_bytes(text, bytes);
    pl_text_free(text);
    return status;
}

/* Once, when the results or a run begin. */
static pl_status say_without_effect(const pl_cli_input *in, pl_error *err)
{
    char *keys;
    size_t bytes;
    pl_status status = pl_config_text(in->config, PL_CONFIG_WITHOUT_EFFECT, &keys, &bytes, err);
    if (status != PL_OK) return status;
    if (bytes) pl_say("without effect here: %s\n", keys);
    pl_text_free(keys);
    return PL_OK;
}

/* Done by the first process of a command that works in that folder. */
static void warn_of_piles(const pl_cli_input *in, const pl_talk *talk, const char *name)
{
    static char text[PL_STORAGE_WARNING_BYTES];
    if (talk->quiet > 1) return;
    pl_storage_warn(in->out, text);
    if (text[0]) pl_say("plimsoll %s: warning: %s\n", name, text);
}

/* Tells later processes of the command that the introduction was printed. */
static const char said[] = "PLIMSOLL_INTERNAL_SAID";

pl_status pl_cli_introduce_run(const char *name, const pl_cli_input *in, const pl_talk *talk, pl_error *err)
{
    if (getenv(said)) return PL_OK;
    if (setenv(said, "1", 1) != 0) return pl_cli_error(err, PL_E_NOMEM, "no memory to tell the next process");
    warn_of_piles(in, talk, name);
    return talk->quiet ? PL_OK : say_without_effect(in, err);
}

/* Where the previous process of this command left its results: they must still be the config's, even if that was
 * edited. */
static const char begun[] = "PLIMSOLL_INTERNAL_RESULTS";
/* And the descriptor that locks them. */
static const char held_results[] = "PLIMSOLL_INTERNAL_RESULTS_FD";

void pl_cli_adopt_results(void)
{
    const char *fd = getenv(held_results);
    if (fd) pl_work_adopt(atoi(fd));
}

static pl_status check_begun(const pl_work_left *results, pl_error *err)
{
    const char *before = getenv(begun);
    if (!before || strcmp(before, results->path) == 0) return PL_OK;
    return pl_cli_error(err, PL_E_CONFIG,
                        "the config was changed while this ran: its results were %.300s and would now be %.300s; begin "
                        "the command again for the one that you want",
                        before, results->path);
}

/* Nothing is left to do, or the file for the rest exists. */
static pl_status find_left(const pl_cli_input *in, pl_command command, const pl_talk *talk, bool *left, pl_error *err)
{
    pl_work_left results;
    *left = true;
    if (!pl_command_does(command, PL_USES_RESULTS)) return PL_OK;
    pl_status status = pl_work_find_left(in->config, command, &results, err);
    if (status == PL_OK) status = check_begun(&results, err);
    if (status != PL_OK) return status;
    *left = results.done < results.blocks;
    if (results.done == 0 && !talk->quiet) return say_without_effect(in, err);
    if (!*left && !talk->quiet) pl_say("all is done: %s\n", results.path);
    return PL_OK;
}

/* All parts of the work, before the first begins. */
static pl_status check_all(const pl_cli_input *in, pl_command command, pl_error *err)
{
    const bool begins = pl_command_does(command, PL_USES_RESULTS) && !getenv(begun);
    return begins ? pl_work_check(in->config, command, err) : PL_OK;
}

/* The folder or file that this process and earlier ones of the command write. */
static const char *written_to(const pl_cli_input *in)
{
    const char *results = getenv(begun), *stages = pl_cli_stages_folder();
    return results ? results : stages ? stages : in->out;
}

/* To the processes that follow. */
static pl_status hand_on(const pl_work_left *results, int *held, pl_error *err)
{
    char text[16];
    pl_status status = pl_work_hold(results, held, err);
    if (status != PL_OK) return status;
    snprintf(text, sizeof text, "%d", *held);
    if (setenv(begun, results->path, 1) != 0 || setenv(held_results, text, 1) != 0)
        return pl_cli_error(err, PL_E_NOMEM, "no memory to name the results to the next process");
    return PL_OK;
}

static pl_status reserve(const pl_cli_input *in, pl_call *call, int *held, pl_error *err)
{
    pl_work_left results;
    if (!pl_command_does(call->command->command, PL_USES_RESULTS)) return PL_OK;
    pl_status status = pl_work_reserve(in->config, call->command->command, &results, err);
    call->word[PL_CALL_GOES_ON] = getenv(begun) ? "1" : NULL;
    return status == PL_OK ? hand_on(&results, held, err) : status;
}

int pl_cli_start(const pl_cli_input *in, const pl_talk *talk, bool keep, pl_call *call)
{
    const char *name = call->command->name;
    const pl_command command = call->command->command;
    pl_error err = {0};
    pl_plan *plan = NULL;
    char quiet[2] = {(char)('0' + talk->quiet), 0}, resume[16], again[PL_AGAIN_BYTES];
    double began = now();
    call->word[PL_CALL_OUT] = in->out;
    call->word[PL_CALL_SHOW] = talk->show;
    call->word[PL_CALL_QUIET] = quiet;
    bool left, prepared = false;
    int held = -1;
    pl_status status = pl_check_folder(in->config, command, &err);
    if (status == PL_OK && keep) status = pl_cli_introduce_run(name, in, talk, &err);
    if (status == PL_OK && pl_command_does(command, PL_USES_RESULTS) && !getenv(begun)) warn_of_piles(in, talk, name);
    if (status == PL_OK) status = prepare_for_results(call->command, in, talk, &prepared, &err);
    if (status == PL_OK) status = find_left(in, command, talk, &left, &err);
    if (status == PL_OK && !left) return 0;
    if (status == PL_OK) status = check_all(in, command, &err);
    if (status == PL_OK && call->plan)
        status = load_plan(call->command, in, call->plan, talk, &plan, &err);
    else if (status == PL_OK)
        status = make_plan(name, in, command, talk, prepared, NULL, &plan, &err);
    if (status == PL_OK && !talk->quiet && (keep || talk->verbose))
        say_summary(plan, command, in->out, call->plan ? -1 : now() - began);
    if (status == PL_OK && !talk->quiet) say_lowered(plan);
    if (status == PL_OK && talk->verbose) status = say_report(plan, &err);
    if (status == PL_OK && keep) status = pl_cli_setting(in->config, "run", "resume", resume, sizeof resume, &err);
    if (status == PL_OK && keep) {
        call->word[PL_CALL_RESUME] = resume;
        call->word[PL_CALL_AGAIN] = pl_again_print(in->resume, again);
    }
    if (status == PL_OK) status = pl_runner_check(plan, written_to(in), &err);
    if (status == PL_OK) status = reserve(in, call, &held, &err);
    if (status == PL_OK) status = name_fence(pl_cli_launch(plan, keep, call, &err), in->config, &err);
    if (held >= 0) close(held); /* there is no next process to hand it on to */
    pl_plan_destroy(plan);
    return pl_cli_complain(name, status, &err);
}

int pl_cli_finish(pl_cli_input *in, pl_status status, const pl_manner *m, pl_call *call, pl_error *err)
{
    pl_talk talk;
    if (status == PL_OK) status = pl_talk_read(in->config, m->quiet, m->verbose, &talk, err);
    if (status == PL_OK && m->sums_up && talk.quiet == 0) call->word[PL_CALL_SUMMARY] = "1";
    if (m->ledger) call->word[PL_CALL_LEDGER] = "1";
    const int code =
        status == PL_OK ? pl_cli_start(in, &talk, m->keep, call) : pl_cli_complain(call->command->name, status, err);
    pl_cli_release(in);
    return code;
}
