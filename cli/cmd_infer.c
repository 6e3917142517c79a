/* plimsoll infer: a model on the user's files, in a planned process. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "out.h"
#include "planning.h"
#include "signals.h"

enum { TO, ARRAYS, LATENCY, BRIEF, SEEDED, CHECKPOINT, COMPARE, TURNS, HTML, JSON, QUIET, VERBOSE, LEDGER };
static const pl_cli_option options[] = {
    [TO] = {"--out", "FILE", "write the lines there, and not to stdout (-); the file is whole or not there",
            .other = "--to"},
    [ARRAYS] = {"--npy", "PREFIX", "in place of lines PREFIX.NAME.npy for each output"},
    [LATENCY] = {"--latency", NULL, "item by item, and how long each took: median, 95 %, largest"},
    [BRIEF] = {"--brief", NULL,
               "lines without the model's numbers, only what its system says of them; on a terminal always, but with "
               "--out -"},
    [SEEDED] = {"--seeded", NULL, "first values of the config's seed in place of trained weights"},
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [COMPARE] = {"--compare", NULL,
                 "the table of f32, bf16, 8 bits and signs: time, bytes, accuracy; files may be left out"},
    [TURNS] = {"--turns", "N", "with --compare: how often each is run (3), of which medians are taken"},
    [HTML] = {"--html", "FILE", "with --compare: the table as a page (- for stdout)"},
    [JSON] = {"--json", NULL,
              "close with what was done as JSON (plimsoll.infer/1); the table as JSON (plimsoll.compare/1)"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, to stderr"},
};

static const char about[] =
    "Runs a model on files and writes a line of JSON for each item: its number, where it came from, what the model "
    "gives out, and what that means. CONFIG is the run's config file or the folder of the run. A file is a .npy array "
    "whose first dimension counts items, a dataset of an HDF5 file (FILE:/DATASET) likewise, a picture in PNG or JPEG, "
    "or a text whose lines are items (for models of texts and of pages), JSON Lines, CSV or SQuAD's JSON "
    "(--text_format, --text_key), compressed by gzip or not, or - for standard input; files of one input follow each "
    "other, and "
    "@FILE is a file whose lines name more. Of a model with several inputs give a file for each, in their order or as "
    "NAME=FILE. With --compare the table of the model in f32, bf16, 8 bits and signs: what a sample takes, alone and "
    "16 at once, bytes of file and memory, accuracy, each number of a process of its own; without FILE it has inputs "
    "of "
    "its own. It takes options of quantize and eval, too (--samples, --method). docs/infer.md says what each system "
    "takes and gives. Files are looked through before anything runs, and read item by item: memory does not grow with "
    "them. Of pictures and HDF5 the numbers lie in a file without a name meanwhile (--scratch). What does not fit "
    "memory.budget is refused before anything large is taken (exit 3).\n";

/* Without operands after the config, infer.files names the files. */
static pl_status check_named(const pl_cli_input *in, pl_error *err)
{
    char first[2];
    pl_status status = pl_cli_setting(in->config, "infer", "files", first, sizeof first, err);
    if (status != PL_OK || first[0]) return status;
    return pl_cli_error(err, PL_E_USAGE, "there are no files to run the model on; name them after the config");
}

static pl_status check_names(const pl_cli_input *in, pl_error *err)
{
    const pl_cli_arguments *a = &in->arguments;
    if (a->operand_count < 2) return check_named(in, err);
    if (pl_config_is_option(in->config, "infer.files"))
        return pl_cli_error(err, PL_E_USAGE, "%.200s and --set infer.files both name the files; leave one out",
                            a->all[1]);
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
    const bool lines = value[TO] || pl_config_is_option(in->config, "infer.to"),
               arrays = value[ARRAYS] || pl_config_is_option(in->config, "infer.npy");
    if (lines && arrays)
        return pl_cli_error(err, PL_E_USAGE,
                            "--out is a file of lines, and --npy writes arrays in their place; leave one out");
    if (value[BRIEF] && value[ARRAYS])
        return pl_cli_error(err, PL_E_USAGE,
                            "--brief makes lines without the model's numbers, and --npy writes those alone; leave one "
                            "out");
    return PL_OK;
}

/* A folder in which nothing was trained is reported before anything is planned. */
static pl_status check_trained(const pl_cli_input *in, pl_error *err)
{
    const char *const *value = in->arguments.value;
    pl_error none = {0};
    bool is_brought;
    const pl_status status = pl_cli_find_brought(in, &is_brought, err);
    if (status != PL_OK) return status;
    if (value[SEEDED] && is_brought)
        return pl_cli_error(err, PL_E_USAGE, "a pretrained model has no first values; leave --seeded out");
    if (value[SEEDED]) return PL_OK;
    const bool is_trained = pl_command_require(PL_COMMAND_TRAIN, in->config, &none) == PL_OK;
    if (is_trained) return pl_cli_require_trained(in, value[CHECKPOINT], true, err);
    if (!value[CHECKPOINT]) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "--checkpoint names weights of a model that is trained here; leave it out");
}

/* Options that say where results go replace what the config says about it. */
static pl_status take_places(const pl_cli_input *in, pl_error *err)
{
    const char *to = in->arguments.value[TO], *arrays = in->arguments.value[ARRAYS];
    pl_status status = set(in, "infer.to", arrays || pl_is_stdout(to) ? "none" : to, "--out", err);
    return status == PL_OK ? set(in, "infer.npy", to ? "none" : arrays, "--npy", err) : status;
}

/* The config may name files, too. */
static bool goes_to_files(const pl_cli_input *in)
{
    static const char *const keys[] = {"to", "npy"};
    char name[8];
    pl_error none = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const pl_status status = pl_cli_setting(in->config, "infer", keys[i], name, sizeof name, &none);
        if (status == PL_OK && strcmp(name, "none") != 0) return true;
    }
    return false;
}

/* Nobody reads a row of numbers for each token: on a terminal they are shown only on request (--out -). */
static bool is_brief(const pl_cli_input *in)
{
    const char *const *value = in->arguments.value;
    return value[BRIEF] || (!value[TO] && !goes_to_files(in) && pl_is_terminal(STDOUT_FILENO));
}

static pl_status take_words(const pl_cli_input *in, pl_error *err)
{
    static char files[4096];
    const char *const *value = in->arguments.value;
    pl_status status = check_words(in, err);
    if (status == PL_OK) status = check_trained(in, err);
    if (status == PL_OK) status = check_names(in, err);
    if (status == PL_OK) status = pl_cli_join_names(in, NULL, files, sizeof files, err);
    if (status == PL_OK) status = set(in, "infer.files", files[0] ? files : NULL, "the files", err);
    if (status == PL_OK) status = take_places(in, err);
    if (status == PL_OK) status = set(in, "infer.latency", value[LATENCY] ? "true" : NULL, "--latency", err);
    if (status == PL_OK) status = set(in, "infer.brief", is_brief(in) ? "true" : NULL, "--brief", err);
    if (status == PL_OK) status = set(in, "infer.seeded", value[SEEDED] ? "true" : NULL, "--seeded", err);
    return status;
}

/* Some options belong to a single run, others to a comparison. */
static pl_status check_compared(const pl_cli_input *in, pl_error *err)
{
    static const int of_one[] = {TO, ARRAYS, LATENCY, BRIEF, VERBOSE, LEDGER}, of_both[] = {TURNS, HTML};
    const char *const *value = in->arguments.value;
    for (size_t i = 0; value[COMPARE] && i < sizeof of_one / sizeof *of_one; i++)
        if (value[of_one[i]])
            return pl_cli_error(err, PL_E_USAGE, "%s is of one run, and --compare makes a table of many; leave one out",
                                options[of_one[i]].name);
    for (size_t i = 0; !value[COMPARE] && i < sizeof of_both / sizeof *of_both; i++)
        if (value[of_both[i]])
            return pl_cli_error(err, PL_E_USAGE, "%s is of --compare, which is not given; leave it out or compare",
                                options[of_both[i]].name);
    if (value[JSON] && pl_is_stdout(value[HTML]))
        return pl_cli_error(err, PL_E_USAGE,
                            "--json and --html - both go to standard output; give one of them, or a FILE");
    return PL_OK;
}

static pl_status check_options(const pl_cli_arguments *a, const pl_config *config, pl_error *err)
{
    return a->value[COMPARE] ? pl_compare_check_options(config, err)
                             : pl_command_check_options(PL_COMMAND_INFER, config, err);
}

static int compare(const pl_cli_command *command, const pl_cli_input *in)
{
    pl_talk talk;
    pl_error err = {0};
    const char *const *value = in->arguments.value;
    const pl_compare_words words = {.html = value[HTML],
                                    .json = value[JSON],
                                    .checkpoint = value[CHECKPOINT],
                                    .seeded = value[SEEDED],
                                    .turns = value[TURNS]};
    pl_status status = check_words(in, &err);
    if (status == PL_OK) status = check_trained(in, &err);
    if (status == PL_OK) status = pl_talk_read(in->config, value[QUIET], false, &talk, &err);
    return status == PL_OK ? pl_cli_compare(command, in, &talk, &words) : pl_cli_complain(command->name, status, &err);
}

static int infer(const pl_cli_command *command, pl_cli_input *in, pl_status status, pl_error *err)
{
    pl_call call = {.command = command};
    const char *const *value = in->arguments.value;
    if (status == PL_OK) status = take_words(in, err);
    const bool apart = status == PL_OK && goes_to_files(in);
    if (apart) pl_signals_outlive_readers();
    call.word[PL_CALL_CHECKPOINT] = value[CHECKPOINT];
    call.word[PL_CALL_JSON] = value[JSON] ? "1" : NULL;
    call.word[PL_CALL_APART] = apart ? "1" : NULL;
    call.word[PL_CALL_LEDGER] = value[LEDGER] ? "1" : NULL;
    return pl_cli_finish(in, status, &(pl_manner){value[QUIET], value[VERBOSE]}, &call, err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = check_compared(&in, &err);
    if (!in.arguments.value[COMPARE]) return infer(command, &in, status, &err);
    const int code = status == PL_OK ? compare(command, &in) : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_infer = {.text = about,
                                  .options = options,
                                  .option_count = sizeof options / sizeof *options,
                                  .takes_many = true,
                                  .run = run,
                                  .check_options = check_options};
