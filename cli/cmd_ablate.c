/* plimsoll ablate: a training in several variants, each by processes of its own, and the table of them. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare.h"
#include "out.h"
#include "progress.h"
#include "signals.h"

enum { HTML, JSON, QUIET };
static const pl_cli_option options[] = {
    [HTML] = {"--html", "FILE", "write the table as a page, with curves (- for stdout)", true},
    [JSON] = {"--json", NULL, "print the table as JSON (schema plimsoll.runs/1)", true},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors"},
};

static const char about[] =
    "Trains a config in several variants, one after another, and prints the table of them: what each lost, the time of "
    "a step, memory, and the settings that differ. A variant is NAME, the config as it is, or "
    "NAME:KEY=VALUE,KEY=VALUE, with these settings changed (a comma inside [ ] divides none); for example, a model "
    "whole and without its planner:\n"
    "  ablate CONFIG full lean:latent_planning.enable_latent_planning=false\n"
    "Each has its own folder in that of the run (--out): OUT/NAME, next to OUT/NAME.yaml, its config, which train "
    "takes, too. Where a variant is several trainings, all of them are made, and the table shows the last. The "
    "variants are made in the order in which they are named, so a later one can begin with what an earlier one has "
    "trained. All are planned before the first begins: what does not fit memory.budget is refused then (exit 3). "
    "--resume goes on where the command was stopped; report shows the table again: report OUT/NAME OUT/NAME.\n";

enum { VARIANTS_MAX = 8 /* as many as one table shows */, NAME_BYTES = 48, SETTING_BYTES = PATH_MAX + 128 };

typedef struct variant {
    char name[NAME_BYTES];
    const char *changes; /* "KEY=VALUE,…"; "": none */
    bool reads_input;    /* its text comes from standard input */
    pl_config *config;
    char file[PATH_MAX];    /* its config, written once all variants are planned: a refusal changes nothing */
    char planned[PATH_MAX]; /* the same for planning; removed when the command ends */
    char folder[PATH_MAX];  /* of its only training, or its last one */
} variant;

typedef struct ablation {
    const pl_cli_input *in;
    const pl_talk *talk;
    variant variant[VARIANTS_MAX];
    size_t count;
    char between[PATH_MAX];            /* a folder that is removed when the command ends */
    char input[PL_CLI_NAMELESS_BYTES]; /* standard input of each process */
    pl_compare_told told;
} ablation;

/* ---- arguments ---- */

static pl_status join(char path[PATH_MAX], const char *folder, const char *name, const char *end, pl_error *err)
{
    const int n = snprintf(path, PATH_MAX, "%s/%s%s", folder, name, end);
    return n > 0 && n < PATH_MAX ? PL_OK : pl_cli_error(err, PL_E_USAGE, "%.300s: the path is too long", folder);
}

/* Also the name of a folder. */
static bool is_name(const char *word, size_t bytes)
{
    bool is = bytes > 0 && bytes < NAME_BYTES && isalnum((unsigned char)word[0]);
    for (size_t i = 0; i < bytes; i++) is &= isalnum((unsigned char)word[i]) || strchr("-_", word[i]) != NULL;
    return is;
}

static pl_status take_name(ablation *a, const char *word, pl_error *err)
{
    variant *v = &a->variant[a->count];
    const size_t bytes = strcspn(word, ":=");
    if (!is_name(word, bytes) || word[bytes] == '=')
        return pl_cli_error(
            err, PL_E_USAGE,
            "\"%.200s\": a variant is NAME or NAME:KEY=VALUE,KEY=VALUE, its name of letters, digits and "
            "\"-_\", at most %d",
            word, NAME_BYTES - 1);
    snprintf(v->name, sizeof v->name, "%.*s", (int)bytes, word);
    v->changes = word[bytes] ? word + bytes + 1 : "";
    if (word[bytes] && !v->changes[0])
        return pl_cli_error(err, PL_E_USAGE, "%s: has no settings after its colon; leave the colon out", word);
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->variant[i].name, v->name) == 0)
            return pl_cli_error(err, PL_E_USAGE, "two variants are called %s; give each a name of its own", v->name);
    a->count++;
    return PL_OK;
}

static pl_status take_names(ablation *a, pl_error *err)
{
    const pl_cli_arguments *words = &a->in->arguments;
    const size_t given = words->operand_count - 1;
    if (given < 2 || given > VARIANTS_MAX)
        return pl_cli_error(err, PL_E_USAGE, "2 to %d variants after the config were expected, and there %s %zu",
                            VARIANTS_MAX, given == 1 ? "is" : "are", given);
    for (size_t i = 0; i < given; i++) {
        const pl_status status = take_name(a, words->all[i + 1], err);
        if (status != PL_OK) return status;
    }
    return PL_OK;
}

/* Bytes up to the next comma outside brackets. */
static size_t setting_bytes(const char *at)
{
    int depth = 0;
    size_t n = 0;
    for (; at[n] && (at[n] != ',' || depth > 0); n++) depth += at[n] == '[' ? 1 : at[n] == ']' ? -1 : 0;
    return n;
}

static pl_status change(variant *v, pl_error *err)
{
    char setting[SETTING_BYTES];
    for (const char *at = v->changes; *at;) {
        const size_t bytes = setting_bytes(at);
        if (bytes >= sizeof setting) return pl_cli_error(err, PL_E_USAGE, "%s: a setting is too long", v->name);
        memcpy(setting, at, bytes), setting[bytes] = 0;
        char *equals = strchr(setting, '=');
        if (!equals || equals == setting)
            return pl_cli_error(err, PL_E_USAGE, "%s: \"%.200s\" is no KEY=VALUE", v->name, setting);
        *equals = 0;
        if (strcmp(setting, "run.out") == 0 || strcmp(setting, "run.resume") == 0)
            return pl_cli_error(err, PL_E_USAGE, "%s: sets %s, which is the same for all variants; leave it out",
                                v->name, setting);
        const pl_status status = pl_config_set(v->config, setting, equals + 1, v->name, err);
        if (status != PL_OK) return status;
        at += bytes + (at[bytes] == ',');
    }
    return PL_OK;
}

/* ---- their configs ---- */

static pl_status check_new(const ablation *a, const variant *v, const char *folder, pl_error *err)
{
    if (strcmp(a->in->resume, "false") != 0 || access(folder, F_OK) != 0) return PL_OK;
    return pl_cli_error(err, PL_E_STORAGE,
                        "%s: %s was begun before; continue with --resume, or choose another folder with --out", folder,
                        v->name);
}

static pl_status open_variant(const ablation *a, variant *v, pl_error *err)
{
    char folder[PATH_MAX], text[4] = "";
    v->config = pl_config_copy(a->in->config);
    if (!v->config) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = join(folder, a->in->out, v->name, "", err);
    if (status == PL_OK) status = join(v->file, a->in->out, v->name, ".yaml", err);
    if (status == PL_OK) status = check_new(a, v, folder, err);
    if (status == PL_OK) status = change(v, err);
    if (status == PL_OK) status = pl_cli_setting(v->config, "data", "text", text, sizeof text, err);
    v->reads_input = strcmp(text, "-") == 0;
    if (status == PL_OK) status = pl_config_set(v->config, "run.out", folder, "the folder of a variant", err);
    if (status == PL_OK) status = pl_config_set(v->config, "run.resume", "auto", "a variant goes on where it was", err);
    return status;
}

static pl_status make_folder(const char *path, pl_error *err)
{
    char part[PATH_MAX];
    for (size_t i = 1; path[i - 1]; i++) {
        if (path[i] != '/' && path[i]) continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0755) != 0 && errno != EEXIST)
            return pl_cli_error(err, PL_E_STORAGE, "%s: cannot be made: %s", part, strerror(errno));
        if (!path[i]) break;
    }
    return PL_OK;
}

static pl_status save(const variant *v, const char *path, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_config_text(v->config, PL_CONFIG_YAML, &text, &bytes, err);
    if (status == PL_OK) status = pl_text_save(path, text, bytes, err);
    pl_text_free(text);
    return status;
}

/* ---- processes ---- */

static pl_status run_child(ablation *a, const variant *v, const char *const *words, pl_error *err)
{
    const pl_status status = pl_compare_run_child(a->between, a->input, words, &a->told, err);
    if (status != PL_OK || a->told.code == 0) return status;
    pl_compare_name_config(v->planned, a->in->arguments.operand[0], a->told.sentence);
    return pl_cli_error(err, pl_compare_status_of(a->told.code), "%.900s (%s)", a->told.sentence, v->name);
}

/* Given explicitly, it is compared with the text that a resumed training has kept. */
#define READ_INPUT "--text=-"

/* Plans one training, or each of several; the table shows the last of them. */
static pl_status plan(ablation *a, variant *v, pl_error *err)
{
    uint32_t count = 1;
    pl_status saved = join(v->planned, a->between, v->name, ".yaml", err);
    if (saved == PL_OK) saved = save(v, v->planned, err);
    if (saved != PL_OK) return saved;
    for (uint32_t k = 0; k < count; k++) {
        pl_stage stage = {0};
        pl_config *one = pl_config_copy(v->config);
        if (!one) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
        pl_status status = pl_stage_ahead(one, k, &stage, err);
        if (status == PL_OK) status = pl_config_run_folder(one, v->folder, sizeof v->folder, err);
        pl_config_destroy(one);
        if (stage.count) count = stage.count;
        const char *words[8] = {"plimsoll", "plan", v->planned, "--json"};
        size_t said = 4;
        if (v->reads_input) words[said++] = READ_INPUT;
        if (count > 1) words[said++] = "--stage", words[said++] = stage.name;
        if (status == PL_OK) status = run_child(a, v, words, err);
        if (status != PL_OK) return status;
    }
    return PL_OK;
}

static pl_status train(ablation *a, const variant *v, size_t number, pl_error *err)
{
    const char *const words[] = {"plimsoll", "train", v->file, "--quiet", v->reads_input ? READ_INPUT : NULL, NULL};
    if (!a->talk->quiet)
        pl_say("%s (%zu of %zu): training%s%s …\n", v->name, number + 1, a->count, v->changes[0] ? " with " : "",
               v->changes);
    return run_child(a, v, words, err);
}

/* ---- all of it ---- */

static pl_status make(ablation *a, pl_error *err)
{
    pl_status status = pl_command_require(PL_COMMAND_TRAIN, a->in->config, err);
    if (status == PL_OK) status = take_names(a, err);
    for (size_t i = 0; i < a->count && status == PL_OK; i++) status = open_variant(a, &a->variant[i], err);
    bool reads_input = false;
    for (size_t i = 0; i < a->count; i++) reads_input |= a->variant[i].reads_input;
    if (status == PL_OK && reads_input) status = pl_compare_share_input(a->in, a->input, err);
    if (status != PL_OK) return status;
    pl_signals_note(); /* the folder is removed; long work runs in a child, which a second signal ends */
    status = pl_compare_folder_make(a->between, err);
    if (!a->talk->quiet) pl_say("planning %zu variants …\n", a->count);
    for (size_t i = 0; i < a->count && status == PL_OK; i++) status = plan(a, &a->variant[i], err);
    if (status == PL_OK) status = make_folder(a->in->out, err);
    for (size_t i = 0; i < a->count && status == PL_OK; i++) status = save(&a->variant[i], a->variant[i].file, err);
    for (size_t i = 0; i < a->count && status == PL_OK; i++) status = train(a, &a->variant[i], i, err);
    return status;
}

static pl_status put(const ablation *a, pl_times_form form, const char *path, pl_error *err)
{
    const char *folder[VARIANTS_MAX], *name[VARIANTS_MAX];
    char *text = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < a->count; i++) folder[i] = a->variant[i].folder, name[i] = a->variant[i].name;
    pl_status status =
        pl_runs_report_as(name, folder, a->count, form, pl_terminal_columns(STDOUT_FILENO),
                          pl_is_terminal(STDOUT_FILENO) && pl_color_wanted(STDOUT_FILENO), &text, &bytes, err);
    const bool to_stdout = !path || pl_is_stdout(path);
    if (status == PL_OK) status = to_stdout ? pl_put_kept(text, bytes, err) : pl_page_save(path, text, bytes, err);
    pl_text_free(text);
    return status;
}

static pl_status put_all(const ablation *a, pl_error *err)
{
    const char *html = a->in->arguments.value[HTML];
    pl_status status = html ? put(a, PL_TIMES_HTML, html, err) : PL_OK;
    if (status != PL_OK || pl_is_stdout(html)) return status;
    return put(a, a->in->arguments.value[JSON] ? PL_TIMES_JSON : PL_TIMES_TEXT, NULL, err);
}

static pl_status ablate(ablation *a, pl_error *err)
{
    const char *html = a->in->arguments.value[HTML];
    pl_status status = html && !pl_is_stdout(html) ? pl_page_check(html, err) : PL_OK;
    if (status == PL_OK) status = make(a, err);
    pl_compare_folder_remove(a->between);
    pl_signals_leave();
    if (status == PL_OK) status = put_all(a, err);
    for (size_t i = 0; i < a->count; i++) pl_config_destroy(a->variant[i].config);
    return status;
}

/* Static, it would count in the process of each command that plans. */
static pl_status begin(const pl_cli_input *in, const pl_talk *talk, pl_error *err)
{
    ablation *a = calloc(1, sizeof *a);
    if (!a) return pl_cli_error(err, PL_E_NOMEM, "no memory for %d variants", VARIANTS_MAX);
    *a = (ablation){.in = in, .talk = talk, .input = PL_COMPARE_NO_INPUT};
    const pl_status status = ablate(a, err);
    free(a);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_talk talk;
    pl_error err = {0};
    pl_signals_outlive_readers();
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_talk_read(in.config, in.arguments.value[QUIET], false, &talk, &err);
    if (status == PL_OK) status = begin(&in, &talk, &err);
    pl_cli_release(&in);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_ablate = {.text = about,
                                   .options = options,
                                   .option_count = sizeof options / sizeof *options,
                                   .takes_many = true,
                                   .run = run};
