/* The comparison: base weights, the file of each form, what each loses, and then all of them in turns, so that other
 * load on the machine affects all. Every number is from a process planned on its own. */
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out.h"
#include "signals.h"

enum { ITEMS = 16 /* made where there are no files */, BATCH = 16, TURNS = 3 };

typedef struct comparison {
    const char *name; /* the command's */
    const pl_cli_input *in;
    const pl_talk *talk;
    const pl_compare_words *words;
    pl_compare *of;
    char folder[PATH_MAX];
    char input[PL_CLI_NAMELESS_BYTES]; /* standard input of each process */
    uint32_t turns, batch;
    bool seeded;
    char *made;           /* a line each; NULL: the files are the user's */
    const char **command; /* the words of a run, with room for all files */
    size_t files;
    int failed; /* exit code of the first run that failed; 0 */
    pl_compare_told told;
} comparison;

static void say(const comparison *c, const char *what, const char *of)
{
    if (!c->talk->quiet) pl_say("%s: %s …\n", of, what);
}

static const char *path_of(const comparison *c, const char *name, const char *end, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s%s", c->folder, name, end);
    return path;
}

static pl_status write_config(const comparison *c, int v, pl_compare_step step, char path[PATH_MAX], pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    path_of(c, "config", ".yaml", path);
    pl_status status = pl_compare_config(c->of, v, step, &text, &bytes, err);
    if (status == PL_OK) status = pl_text_save(path, text, bytes, err);
    pl_text_free(text);
    return status;
}

static pl_status run_child(comparison *c, const char *const *words, pl_error *err)
{
    char path[PATH_MAX];
    const pl_status status = pl_compare_run_child(c->folder, c->input, words, &c->told, err);
    pl_compare_name_config(path_of(c, "config", ".yaml", path), c->in->arguments.operand[0], c->told.sentence);
    return status;
}

/* ---- files of weights ---- */

static uint64_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static pl_status export(comparison *c, const char *config, const char *to, const char *const *more, pl_error *err)
{
    const char *words[12] = {"plimsoll", "export", config, "--format", "safetensors", "--out", to};
    for (size_t i = 0; more[i]; i++) words[7 + i] = more[i];
    return run_child(c, words, err);
}

/* All forms are made from it, so that all rows show the same model. */
static pl_status make_base(comparison *c, pl_error *err)
{
    char config[PATH_MAX], to[PATH_MAX];
    const char *checkpoint = c->words->checkpoint;
    const char *more[] = {c->seeded    ? "--seeded"
                          : checkpoint ? "--checkpoint"
                                       : NULL,
                          c->seeded ? NULL : checkpoint, NULL};
    if (pl_compare_made_by(c->of, 0) == PL_COMPARE_BY_KEY) return PL_OK;
    say(c, "its weights", "base");
    pl_status status = write_config(c, 0, PL_COMPARE_BASE, config, err);
    if (status == PL_OK) status = export(c, config, path_of(c, "base", ".safetensors", to), more, err);
    if (status != PL_OK || c->told.code == 0) return status;
    return pl_cli_error(err, pl_compare_status_of(c->told.code), "%s", c->told.sentence);
}

static pl_status make(comparison *c, int v, const char *to, pl_error *err)
{
    static const char *const more[][2] = {[PL_COMPARE_BY_EXPORT] = {NULL},
                                          [PL_COMPARE_BY_SEEDED] = {"--seeded", NULL},
                                          [PL_COMPARE_BY_PACKED] = {"--packed", NULL}};
    char config[PATH_MAX];
    const pl_compare_maker by = pl_compare_made_by(c->of, v);
    say(c, by == PL_COMPARE_BY_QUANTIZE ? "a calibration, and its file" : "its file", pl_compare_name(c->of, v));
    pl_status status = write_config(c, v, PL_COMPARE_MAKE, config, err);
    if (status != PL_OK) return status;
    if (by != PL_COMPARE_BY_QUANTIZE) return export(c, config, to, more[by], err);
    const char *const words[] = {"plimsoll", "quantize", config, "--quiet", NULL};
    return run_child(c, words, err);
}

static pl_status make_form(comparison *c, int v, pl_error *err)
{
    char path[PATH_MAX];
    const bool is_base = pl_compare_is_base(c->of, v);
    pl_status status = PL_OK;
    if (pl_compare_made_by(c->of, v) == PL_COMPARE_BY_KEY) return PL_OK;
    path_of(c, is_base ? "base" : pl_compare_name(c->of, v), ".safetensors", path);
    c->told.code = 0;
    if (!is_base) status = make(c, v, path, err);
    if (status != PL_OK) return status;
    if (c->told.code)
        pl_compare_refuse(c->of, v, c->told.sentence);
    else
        pl_compare_take_file(c->of, v, size_of(path));
    return PL_OK;
}

/* ---- what is held out ---- */

static pl_status judge(comparison *c, int v, pl_error *err)
{
    char config[PATH_MAX];
    if (!pl_compare_judges(c->of, v)) return PL_OK;
    say(c, "what is held out", pl_compare_name(c->of, v));
    pl_status status = write_config(c, v, PL_COMPARE_JUDGE, config, err);
    const char *const words[] = {"plimsoll", "eval", config, "--json", NULL};
    if (status == PL_OK) status = run_child(c, words, err);
    if (status != PL_OK) return status;
    if (c->told.code) return pl_compare_refuse_judged(c->of, v, c->told.sentence), PL_OK;
    return pl_compare_take_judged(c->of, v, c->told.line, strlen(c->told.line), err);
}

/* ---- inputs ---- */

enum { BEFORE_FILES = 9 /* words of a run */ };

static pl_status take_files(comparison *c, pl_error *err)
{
    const pl_cli_arguments *a = &c->in->arguments;
    char words[160];
    const size_t given = a->operand_count > 1 ? a->operand_count - 1 : 0;
    pl_status status = given ? PL_OK : pl_compare_make_inputs(c->of, ITEMS, &c->made, err);
    if (status != PL_OK) return status;
    size_t lines = given;
    for (const char *at = c->made; at && *at; at++) lines += *at == '\n' || at == c->made;
    c->command = calloc(BEFORE_FILES + lines + 1, sizeof *c->command);
    if (!c->command) return pl_cli_error(err, PL_E_NOMEM, "no memory for the words of a run");
    for (size_t i = 0; i < given; i++) c->command[BEFORE_FILES + i] = a->all[i + 1];
    for (char *at = c->made, *end; at && *at && !given; at = end) {
        end = strchr(at, '\n');
        end = end ? (*end = 0, end + 1) : at + strlen(at);
        c->command[BEFORE_FILES + c->files++] = at;
    }
    if (!given) return PL_OK;
    c->files = given;
    snprintf(words, sizeof words, "the items of %zu file%s", given, given == 1 ? "" : "s");
    pl_compare_name_inputs(c->of, words);
    return PL_OK;
}

/* ---- turns ---- */

static pl_status run_words(comparison *c, int v, bool at_once, pl_error *err)
{
    char config[PATH_MAX], prefix[PATH_MAX], batch[32];
    snprintf(batch, sizeof batch, "--batch=%u", c->batch);
    const char *const words[BEFORE_FILES] = {"plimsoll", "infer",
                                             config,     "--json",
                                             "--quiet",  at_once ? batch : "--latency",
                                             "--npy",    path_of(c, pl_compare_name(c->of, v), "", prefix),
                                             "--"};
    memcpy(c->command, words, sizeof words);
    pl_status status = write_config(c, v, PL_COMPARE_RUN, config, err);
    return status == PL_OK ? run_child(c, c->command, err) : status;
}

static pl_status run_form(comparison *c, int v, bool at_once, pl_error *err)
{
    pl_status status = run_words(c, v, at_once, err);
    if (status != PL_OK) return status;
    if (c->told.code == 0) return pl_compare_take_inferred(c->of, v, at_once, c->told.line, strlen(c->told.line), err);
    pl_compare_refuse_run(c->of, v, at_once, c->told.sentence);
    if (!c->failed) c->failed = c->told.code;
    return PL_OK;
}

/* Files that cannot be read are reported before a calibration; what does not fit a budget, in the table. */
static pl_status check_files(comparison *c, pl_error *err)
{
    if (c->made || !pl_compare_runs(c->of, 0)) return PL_OK;
    say(c, "the files", "inputs");
    pl_status status = run_words(c, 0, true, err);
    const pl_status why = pl_compare_status_of(c->told.code);
    if (status != PL_OK || (why != PL_E_DATA && why != PL_E_STORAGE && why != PL_E_CONFIG)) return status;
    return c->told.code ? pl_cli_error(err, why, "%s", c->told.sentence) : PL_OK;
}

/* What is refused once is not tried again. */
static pl_status take_turn(comparison *c, bool refused[PL_COMPARE_FORMS_MAX][2], pl_error *err)
{
    pl_status status = PL_OK;
    for (int v = 0; v < pl_compare_count(c->of); v++)
        for (int b = 0; b < 2 && status == PL_OK; b++) {
            if (!pl_compare_runs(c->of, v) || refused[v][b]) continue;
            status = run_form(c, v, b != 0, err);
            refused[v][b] = c->told.code != 0;
        }
    return status;
}

static pl_status take_turns(comparison *c, pl_error *err)
{
    bool refused[PL_COMPARE_FORMS_MAX][2] = {{false}};
    char text[64];
    pl_status status = PL_OK;
    for (uint32_t t = 0; t < c->turns && status == PL_OK; t++) {
        snprintf(text, sizeof text, "turn %u of %u", t + 1, c->turns);
        say(c, "each form, one by one and at once", text);
        status = take_turn(c, refused, err);
    }
    for (int v = 0; status == PL_OK && v < pl_compare_count(c->of); v++)
        if (pl_compare_runs(c->of, v) && !refused[v][0] && !refused[0][0])
            status = pl_compare_take_outputs(c->of, v, err);
    for (int v = 0; v < pl_compare_count(c->of); v++)
        if (pl_compare_runs(c->of, v) && !(refused[v][0] && refused[v][1])) c->failed = 0;
    return status;
}

/* ---- the table ---- */

static pl_status put(const comparison *c, pl_compare_form form, const char *path, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_compare_text(c->of, form, pl_terminal_columns(STDOUT_FILENO), &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(path, pl_page_save, text, bytes, err);
    pl_text_free(text);
    return status;
}

static pl_status put_all(const comparison *c, pl_error *err)
{
    const char *html = c->words->html;
    pl_error table = {0};
    const pl_status page = html ? put(c, PL_COMPARE_HTML, html, err) : PL_OK;
    if (pl_is_stdout(html)) return page;
    const pl_status status = put(c, c->words->json ? PL_COMPARE_JSON : PL_COMPARE_REPORT, NULL, &table);
    if (page != PL_OK) return page; /* the table was made and printed all the same */
    if (status != PL_OK) *err = table;
    return status;
}

/* ---- all of it ---- */

pl_status pl_cli_read_turns(const char *word, uint32_t *turns, pl_error *err)
{
    char *end;
    *turns = TURNS;
    if (!word) return PL_OK;
    const unsigned long n = strtoul(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end || n < 1 || n > PL_COMPARE_TURNS_MAX)
        return pl_cli_error(err, PL_E_USAGE, "--turns \"%.40s\": a number from 1 to %d was expected", word,
                            (int)PL_COMPARE_TURNS_MAX);
    *turns = (uint32_t)n;
    return PL_OK;
}

static pl_status read_batch(comparison *c, pl_error *err)
{
    char text[32];
    pl_status status = pl_cli_setting(c->in->config, "infer", "batch", text, sizeof text, err);
    const unsigned long n = strtoul(text, NULL, 10); /* checked by the config; auto: 0 */
    c->batch = n ? (uint32_t)n : BATCH;
    if (status == PL_OK && n == 1)
        return pl_cli_error(err, PL_E_USAGE,
                            "--batch 1 is what a comparison does anyway; name how many at once "
                            "beside it, or leave it out");
    return status;
}

/* From an option or the config. */
static pl_status read_seeded(comparison *c, pl_error *err)
{
    char text[16];
    pl_status status = pl_cli_setting(c->in->config, "infer", "seeded", text, sizeof text, err);
    c->seeded = c->words->seeded || strcmp(text, "true") == 0;
    if (status != PL_OK || !c->seeded || !c->words->checkpoint) return status;
    return pl_cli_error(err, PL_E_USAGE, "infer.seeded and --checkpoint both name weights; leave one out");
}

/* NULL: there is no page, or it goes to standard output. */
static const char *page_of(const comparison *c)
{
    const char *html = c->words->html;
    return pl_is_stdout(html) ? NULL : html;
}

static pl_status share_input(comparison *c, pl_error *err)
{
    const pl_cli_arguments *a = &c->in->arguments;
    bool is_read = false;
    for (size_t i = 1; i < a->operand_count; i++) is_read |= strcmp(a->all[i], "-") == 0;
    return is_read ? pl_compare_share_input(c->in, c->input, err) : PL_OK;
}

static pl_status open_comparison(comparison *c, pl_error *err)
{
    pl_status status = pl_cli_read_turns(c->words->turns, &c->turns, err);
    if (status == PL_OK) status = read_batch(c, err);
    if (status == PL_OK) status = read_seeded(c, err);
    if (status == PL_OK && page_of(c)) status = pl_page_check(page_of(c), err);
    if (status == PL_OK) status = pl_cli_begin_with_module(c->in->config, err);
    if (status == PL_OK) status = share_input(c, err);
    if (status != PL_OK) return status;
    pl_signals_note(); /* the folder is removed; long work runs in a child, which a second signal ends */
    status = pl_compare_folder_make(c->folder, err);
    const pl_compare_options o = {.title = c->in->arguments.operand[0],
                                  .folder = c->folder,
                                  .page = page_of(c),
                                  .turns = c->turns,
                                  .batch = c->batch};
    return status == PL_OK ? pl_compare_create(c->in->config, &o, &c->of, err) : status;
}

static pl_status compare(comparison *c, pl_error *err)
{
    pl_status status = open_comparison(c, err);
    if (status == PL_OK) status = make_base(c, err);
    if (status == PL_OK) status = make_form(c, 0, err);
    if (status == PL_OK) status = take_files(c, err);
    if (status == PL_OK) status = check_files(c, err);
    for (int v = 1; status == PL_OK && v < pl_compare_count(c->of); v++)
        if (pl_compare_runs(c->of, v)) status = make_form(c, v, err);
    for (int v = 0; status == PL_OK && v < pl_compare_count(c->of); v++) status = judge(c, v, err);
    if (status == PL_OK) status = take_turns(c, err);
    return status == PL_OK && pl_signal_stop ? PL_E_STOPPED : status;
}

int pl_cli_compare(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk,
                   const pl_compare_words *words)
{
    static comparison c;
    pl_error err = {0};
    c = (comparison){.name = command->name, .in = in, .talk = talk, .words = words, .input = PL_COMPARE_NO_INPUT};
    pl_status status = compare(&c, &err);
    pl_compare_folder_remove(c.folder); /* first: a reader of the table may close the pipe, which ends this process */
    pl_signals_leave();
    if (status == PL_OK) status = put_all(&c, &err);
    pl_compare_destroy(c.of);
    pl_text_free(c.made);
    free(c.command);
    return status == PL_OK ? c.failed : pl_cli_complain(command->name, status, &err);
}
