/* plimsoll plan: where every byte will go, before anything large is taken. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "generate.h"
#include "out.h"
#include "planning.h"
#include "progress.h"
#include "stages.h"

#define CHAT                          "chat"
#define PL_COMMAND_ROW(id, name, ...) " " name
static const char commands[] =
#include "plimsoll/commands.def"
    " " CHAT;
#undef PL_COMMAND_ROW

enum { COMMAND, LONG, JSON, HTML, LOCK, GRAPH, MACHINE };
static const pl_cli_option options[] = {
    [COMMAND] = {"--command", "NAME", "plan for %s; of a config without train, what it has", .words = commands + 1},
    [LONG] = {"--long", NULL,
              "print all of the report in a terminal, too, which gets what fits a screen; elsewhere all is printed",
              true},
    [JSON] = {"--json", NULL, "print the plan as JSON (schema plimsoll.plan/1) instead of the report", true},
    [HTML] = {"--html", "FILE", "write the plan as a page with pictures (- for stdout, instead of the report)", true},
    [LOCK] = {"--out-lock", "FILE", "write the lock file: the plan that a run holds, as text (- likewise)", true},
    [GRAPH] = {"--graph", NULL, "print the graph as text instead of the report", true},
    [MACHINE] = {"--machine", "MACHINE", "plan for the machine in this file, which plimsoll machine wrote there"},
};

static const char about[] =
    "Prints what the command (--command; of infer also FILE, as that takes it) would hold: bytes by category and by "
    "component, the moment of the peak and what is "
    "alive then, the arena over time, files on disk, predicted seconds per step; of all the work its time, what bounds "
    "that and would change it, risks and what is safe. Prepares the data when that was not "
    "done, and leaves nothing of that in the folder of the run. Exit 3 when it does not fit memory.budget. A plan that "
    "this machine cannot "
    "hold (memory.budget none) is printed with a warning, for it may be meant for another one; train refuses it. More "
    "layers than can be planned in about 1 GiB of memory are refused at once (exit 3).\n";

static pl_status parse_command(const pl_cli_input *in, pl_command *command, pl_error *err)
{
    char names[200] = "";
    const char *name = in->arguments.value[COMMAND];
    *command = pl_command_of(in->config);
    if (!name || pl_command_parse(name, command)) return PL_OK;
    if (strcmp(name, CHAT) == 0) return *command = PL_COMMAND_GENERATE, pl_cli_set_chat(in, err);
    for (int i = 0; i < PL_COMMAND_COUNT; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", pl_command_name((pl_command)i));
    }
    return pl_cli_error(err, PL_E_USAGE, "--command: %.60s is none of %s, " CHAT, name, names);
}

/* What the command itself would take from the command line and from standard input. */
static pl_status take_inputs(const pl_cli_input *in, pl_command of, pl_error *err)
{
    char files[4096];
    const pl_cli_arguments *a = &in->arguments;
    if (of == PL_COMMAND_EVALUATE) return pl_cli_keep_judged(in, err);
    if (a->operand_count < 2) return PL_OK;
    if (of != PL_COMMAND_INFER)
        return pl_cli_error(err, PL_E_USAGE,
                            "one config only, but there is also %.200s; files are taken with --command infer",
                            a->operand[1]);
    const pl_status status = pl_cli_join_names(in, NULL, files, sizeof files, err);
    return status == PL_OK ? pl_config_set(in->config, "infer.files", files, "the files", err) : status;
}

static pl_status put_plan(const pl_plan *plan, pl_plan_form form, const char *path, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_plan_text(plan, form, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(path, form == PL_PLAN_HTML ? pl_page_save : pl_text_save, text, bytes, err);
    pl_text_free(text);
    return status;
}

/* A terminal gets a screen of it, in its width. */
static pl_status put_report(const pl_plan *plan, bool is_long, pl_error *err)
{
    const bool terminal = pl_is_terminal(STDOUT_FILENO), is_short = terminal && !is_long;
    const pl_plan_look look = {.columns = pl_terminal_columns(STDOUT_FILENO),
                               .color = terminal && pl_color_wanted(STDOUT_FILENO),
                               .is_short = is_short};
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_plan_report(plan, &look, &text, &bytes, err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    if (status == PL_OK && is_short) pl_say("\n--long prints every byte; --html FILE draws them\n");
    return status;
}

/* Files first: what is on stdout then is true when it is read. */
static pl_status put_all(const pl_plan *plan, const char *const *value, pl_error *err)
{
    bool taken = pl_is_stdout(value[HTML]) || pl_is_stdout(value[LOCK]);
    pl_status status = PL_OK;
    if (value[LOCK]) status = put_plan(plan, PL_PLAN_LOCK, value[LOCK], err);
    if (status == PL_OK && value[HTML]) status = put_plan(plan, PL_PLAN_HTML, value[HTML], err);
    if (status != PL_OK || taken) return status;
    if (value[JSON] || value[GRAPH]) return put_plan(plan, value[JSON] ? PL_PLAN_JSON : PL_PLAN_GRAPH, NULL, err);
    return put_report(plan, value[LONG], err);
}

static pl_status plan(const pl_cli_command *command, const pl_cli_input *in, pl_error *err)
{
    pl_talk talk = {0};
    pl_command of;
    pl_plan *p = NULL;
    pl_prepared *prepared = NULL;
    const char *machine = in->arguments.value[MACHINE];
    pl_status status = machine ? pl_machine_plan_for(machine, err) : PL_OK;
    if (status == PL_OK) status = parse_command(in, &of, err);
    if (status == PL_OK) status = pl_command_require(of, in->config, err);
    if (status == PL_OK && in->arguments.value[LOCK] && pl_command_does(of, PL_USES_RESULTS))
        status = pl_cli_error(err, PL_E_USAGE, "--out-lock keeps a plan to run, and %s plans each shape when it is due",
                              pl_command_name(of));
    if (status == PL_OK) status = pl_command_check_options(of, in->config, err);
    if (status == PL_OK) status = take_inputs(in, of, err);
    if (status == PL_OK) status = pl_talk_read(in->config, false, false, &talk, err);
    talk.elsewhere = machine != NULL;
    if (status == PL_OK && pl_command_does(of, PL_USES_UPDATE)) status = pl_check_resume(in->config, err);
    if (status == PL_OK) status = pl_cli_look_at_plan(command->name, in, of, &talk, &prepared, &p, err);
    if (status == PL_OK) status = pl_plan_advise(in->config, pl_cli_cache(in), p, err);
    if (status == PL_OK) status = put_all(p, in->arguments.value, err);
    pl_cli_undo(prepared, &talk); /* last: a file may be wanted in the folder of the run */
    pl_plan_destroy(p);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_plan_stage(command, &in, &err);
    if (status == PL_OK) status = plan(command, &in, &err);
    pl_cli_release(&in);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_plan = {.text = about,
                                 .options = options,
                                 .option_count = sizeof options / sizeof *options,
                                 .takes_many = true,
                                 .run = run};
