/* plimsoll infer: a model on the user's files, in a planned process. */
#include <stdio.h>
#include <string.h>

#include "planning.h"

enum { TO, ARRAYS, LATENCY, BRIEF, SEEDED, CHECKPOINT, JSON, QUIET, VERBOSE, LEDGER };
static const pl_cli_option options[] = {
    [TO] = {"--to", "FILE", "write the lines there, and not to stdout; the file is whole or not there"},
    [ARRAYS] = {"--npy", "PREFIX", "in place of lines PREFIX.NAME.npy for each output"},
    [LATENCY] = {"--latency", NULL, "item by item, and how long each took: median, 95 %, largest"},
    [BRIEF] = {"--brief", NULL, "lines without the model's numbers: what its system says of them alone"},
    [SEEDED] = {"--seeded", NULL, "first values of the config's seed in place of trained weights"},
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [JSON] = {"--json", NULL, "close with what was done as JSON (schema plimsoll.infer/1)"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, to stderr"},
};

static const char about[] =
    "Runs a model on files and writes a line of JSON for each item: its number, where it came from, what the model "
    "gives out, and what that means. CONFIG is the run's config file or the folder of the run. A file is a .npy array "
    "whose "
    "first dimension counts items, or a text whose lines are items (for models of texts and of pages); files of one "
    "input follow each other. Of a model with several inputs give a file for each, in their order or as NAME=FILE. "
    "docs/infer.md says what each system takes and gives. Files are looked through before anything runs, and read item "
    "by item: memory does not grow with them. What does not fit memory.budget is refused before anything large is "
    "taken (exit 3).\n";

/* No words behind the config: then infer.files has them. */
static pl_status check_named(const pl_cli_input *in, pl_error *err)
{
    char first[2];
    pl_status status = pl_cli_setting(in->config, "infer", "files", first, sizeof first, err);
    if (status != PL_OK || first[0]) return status;
    return pl_cli_error(err, PL_E_USAGE, "there are no files to run the model on; name them behind the config");
}

/* Behind the config, a line each. */
static pl_status join_files(const pl_cli_input *in, char *text, size_t room, pl_error *err)
{
    const pl_cli_arguments *a = &in->arguments;
    size_t used = 0;
    text[0] = 0;
    if (a->operand_count < 2) return check_named(in, err);
    if (pl_config_is_option(in->config, "infer.files"))
        return pl_cli_error(err, PL_E_USAGE, "%.200s and --set infer.files both name the files; leave one out",
                            a->all[1]);
    for (size_t i = 1; i < a->operand_count; i++) {
        const char *file = a->all[i];
        const size_t bytes = strlen(file);
        if (strchr(file, '\n')) return pl_cli_error(err, PL_E_USAGE, "a file has a line break in its name; rename it");
        if (used + bytes + 2 > room)
            return pl_cli_error(err, PL_E_USAGE,
                                "the names of the files have more than %zu bytes together; run some of them at a time",
                                room - 1);
        used += (size_t)snprintf(text + used, room - used, "%s%s", i > 1 ? "\n" : "", file);
    }
    return PL_OK;
}

static pl_status set(const pl_cli_input *in, const char *key, const char *value, const char *by, pl_error *err)
{
    return value ? pl_config_set(in->config, key, value, by, err) : PL_OK;
}

static pl_status check_words(const pl_cli_input *in, pl_error *err)
{
    const char *const *value = in->arguments.value;
    if (value[SEEDED] && value[CHECKPOINT])
        return pl_cli_error(err, PL_E_USAGE, "--seeded and --checkpoint both name weights; leave one out");
    if (value[TO] && value[ARRAYS])
        return pl_cli_error(err, PL_E_USAGE,
                            "--to is a file of lines, and --npy writes arrays in their place; leave one out");
    if (value[BRIEF] && value[ARRAYS])
        return pl_cli_error(err, PL_E_USAGE,
                            "--brief makes lines without the model's numbers, and --npy writes those alone; leave one "
                            "out");
    return PL_OK;
}

/* A folder in which nothing was trained is said before anything is planned. */
static pl_status check_trained(const pl_cli_input *in, pl_error *err)
{
    const char *const *value = in->arguments.value;
    pl_error none = {0};
    if (value[SEEDED]) return PL_OK;
    const bool is_trained = pl_command_require(PL_COMMAND_TRAIN, in->config, &none) == PL_OK;
    if (is_trained) return pl_cli_require_trained(in, value[CHECKPOINT], err);
    if (!value[CHECKPOINT]) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "--checkpoint names weights of a model that is trained here; leave it out");
}

static pl_status take_words(const pl_cli_input *in, pl_error *err)
{
    static char files[4096];
    const char *const *value = in->arguments.value;
    pl_status status = check_words(in, err);
    if (status == PL_OK) status = check_trained(in, err);
    if (status == PL_OK) status = join_files(in, files, sizeof files, err);
    if (status == PL_OK) status = set(in, "infer.files", files[0] ? files : NULL, "the files", err);
    if (status == PL_OK) status = set(in, "infer.to", value[TO], "--to", err);
    if (status == PL_OK) status = set(in, "infer.npy", value[ARRAYS], "--npy", err);
    if (status == PL_OK) status = set(in, "infer.latency", value[LATENCY] ? "true" : NULL, "--latency", err);
    if (status == PL_OK) status = set(in, "infer.brief", value[BRIEF] ? "true" : NULL, "--brief", err);
    if (status == PL_OK) status = set(in, "infer.seeded", value[SEEDED] ? "true" : NULL, "--seeded", err);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_call call = {.command = command};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = take_words(&in, &err);
    call.word[PL_CALL_CHECKPOINT] = in.arguments.value[CHECKPOINT];
    call.word[PL_CALL_JSON] = in.arguments.value[JSON] ? "1" : NULL;
    call.word[PL_CALL_LEDGER] = in.arguments.value[LEDGER] ? "1" : NULL;
    return pl_cli_finish(&in, status, &(pl_manner){in.arguments.value[QUIET], in.arguments.value[VERBOSE]}, &call,
                         &err);
}

const pl_cli_body pl_cli_infer = {.text = about,
                                  .options = options,
                                  .option_count = sizeof options / sizeof *options,
                                  .takes_many = true,
                                  .run = run};
