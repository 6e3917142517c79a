/* plimsoll results: what runs have left on the disk. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "format.h"
#include "out.h"

enum { JSON, REPAIR, DATASET, AT, OUT, HTML, ONLY, MOVE };
static const pl_cli_option own_options[] = {
    [JSON] = {"--json", NULL, "ls, check: print it as JSON (schemas plimsoll.results/1, plimsoll.results-check/1)"},
    [REPAIR] = {"--repair", NULL,
                "check: what is damaged no longer counts as finished; the run that goes on redoes it"},
    [DATASET] = {"--dataset", "NAME", "export: which; may be left out where there is one"},
    [AT] = {"--at", "PART", "export: a part of it, such as operator=12,state=0:25; default: all"},
    [OUT] = {"--out", "FILE", "export: the .npy file to write"},
    [HTML] = {"--html", "FILE", "report: the page to write (- for stdout); default: beside the results, results.html"},
    [ONLY] = {"--only", "N", "report: operator or text N, counted from 0 in all of the job; default: some"},
    [MOVE] = {"--move", NULL, "join: free what was copied of the parts, and remove them at the end"},
};

static const char about[] =
    "Looks into files of results, whatever their form, also while a run writes them.\n"
    "\n"
    "  ls FILE...           how much is finished, dataset by dataset\n"
    "  check FILE...        read what is finished, compare it with its checksums,\n"
    "                       name what is damaged (exit 4)\n"
    "  export FILE          copy a part of a dataset as .npy\n"
    "  join OUT PART...     the parts of a job as a whole: those in HDF5 form are\n"
    "                       shown by a small file and stay where they are, others are\n"
    "                       checked and copied (again, it goes on)\n"
    "  report PATH          a page: of a rollout fields, metrics over time and the\n"
    "                       parameter space; of an encoding pages, nearest texts,\n"
    "                       norms and remarks; of both planned against measured\n"
    "\n"
    "A PART of --at names dimensions as ls --json does (axes), or gives them in order, with : for all of one: "
    "operator=12,realisation=0 and 12,0,:,0 are such. A range A:B begins with A and ends before B. What is not "
    "finished "
    "is not exported. The PATH of report is the folder of a run, or results.\n";

typedef struct arguments {
    const char *dataset, *at, *out, *html;
    size_t only;
    bool json, repair;
    const char *const *file;
    size_t count;
} arguments;

static int complain(pl_status status, const pl_error *err) { return pl_cli_complain("results", status, err); }

/* ---- ls ---- */

static pl_status list_one(const arguments *a, const char *path, pl_error *err)
{
    pl_results *results;
    char *text = NULL, shown[PL_SHOWN_BYTES] = "";
    size_t bytes = 0;
    pl_status status = pl_results_open(path, &results, err);
    if (status != PL_OK) return status;
    status = pl_results_print(results, a->json ? PL_RESULTS_JSON : PL_RESULTS_TEXT, &text, &bytes, err);
    if (status == PL_OK && a->count > 1 && !a->json) status = pl_put_format(err, "%s\n", pl_show_plainly(path, shown));
    if (status == PL_OK) status = pl_put(text, bytes, err);
    if (status == PL_OK && a->count > 1 && !a->json) status = pl_put_text("\n", err);
    pl_text_free(text);
    pl_results_close(results);
    return status;
}

/* ---- check ---- */

static void tell(void *context, const char *name)
{
    char shown[PL_SHOWN_BYTES] = "";
    pl_say("plimsoll results: %s: %s: damaged\n", pl_show_plainly(context, shown), name);
}

static pl_status report_check(const arguments *a, const char *path, const pl_results_checked *c, pl_error *err)
{
    static char text[6 * PATH_MAX + 256]; /* a byte of a path takes six at most */
    pl_line line = {text, sizeof text, 0};
    if (!a->json) {
        char blocks[PL_FORMAT_BYTES], bytes[PL_FORMAT_BYTES], shown[PL_SHOWN_BYTES] = "", others[64] = "";
        if (c->not_finite)
            snprintf(others, sizeof others, "; %" PRIu64 " number%s infinite or NaN", c->not_finite,
                     c->not_finite == 1 ? " is" : "s are");
        return pl_put_format(err, "%s: %s finished block%s read, %s: %" PRIu64 " damaged%s%s\n",
                             pl_show_plainly(path, shown), pl_show_count(c->blocks, blocks), pl_show_plural(c->blocks),
                             pl_show_bytes(c->bytes, bytes), c->damaged,
                             c->damaged && a->repair ? ", no longer counted as finished" : "", others);
    }
    pl_line_add(&line, "{\"schema\": \"plimsoll.results-check/1\", \"file\": \"");
    pl_line_json(&line, path, strlen(path));
    pl_line_add(&line,
                "\", \"blocks\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"damaged\": %" PRIu64
                ", \"not_finite\": %" PRIu64 "}\n",
                c->blocks, c->bytes, c->damaged, c->not_finite);
    return pl_put(text, line.bytes, err);
}

static pl_status check_one(const arguments *a, const char *path, pl_error *err)
{
    pl_results_checked c;
    pl_status status = pl_results_check(path, a->repair, tell, (void *)path, &c, err);
    if (status == PL_OK) status = report_check(a, path, &c, err);
    if (status != PL_OK || c.damaged == 0 || a->repair) return status;
    return pl_cli_error(err, PL_E_DATA,
                        "%.300s: %" PRIu64 " of its blocks, constants and marks %s damaged; with --repair the run that "
                        "goes on makes those blocks again",
                        path, c.damaged, c.damaged == 1 ? "is" : "are");
}

/* Each file, also behind one that is not sound; the first failure decides. */
static int for_each(const arguments *a, pl_status (*what)(const arguments *, const char *, pl_error *))
{
    int code = 0;
    for (size_t i = 0; i < a->count; i++) {
        pl_error err = {0};
        pl_status status = what(a, a->file[i], &err);
        int one = status == PL_OK ? 0 : complain(status, &err);
        if (code == 0) code = one;
    }
    return code;
}

/* ---- export ---- */

static pl_status wrong_part(const char *word, size_t bytes, const char *what, pl_error *err)
{
    return pl_cli_error(err, PL_E_USAGE, "--at: \"%.*s\" %s; parts such as operator=12 or 0:25 were expected",
                        (int)(bytes < 100 ? bytes : 100), word, what);
}

/* The dimension that a word begins with, "state=", or `next` where it has none. */
static pl_status find_dimension(const pl_results_dataset *d, const char **word, size_t *bytes, uint32_t next,
                                uint32_t *dimension, pl_error *err)
{
    const char *equals = memchr(*word, '=', *bytes);
    size_t name = equals ? (size_t)(equals - *word) : 0;
    *dimension = next;
    for (uint32_t i = 0; equals && i < d->axes; i++)
        if (strlen(d->axis[i]) == name && memcmp(d->axis[i], *word, name) == 0) {
            *dimension = i;
            *bytes -= name + 1;
            *word = equals + 1;
            return PL_OK;
        }
    if (equals) return wrong_part(*word, *bytes, "names no axis of this dataset", err);
    if (next < d->rank) return PL_OK;
    return wrong_part(*word, *bytes, "is one dimension too many", err);
}

static bool take_number(const char **at, const char *end, uint64_t *number)
{
    const char *begin = *at;
    for (*number = 0; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        if (*number > (UINT64_MAX - 9) / 10) return false;
        *number = *number * 10 + (uint64_t)(**at - '0');
    }
    return *at > begin;
}

/* "12", "0:25", "5:", ":25" or ":". */
static pl_status take_range(const char *word, size_t bytes, uint64_t *begin, uint64_t *end, pl_error *err)
{
    const char *at = word, *stop = word + bytes;
    uint64_t number;
    bool has_begin = take_number(&at, stop, &number), sound = has_begin || (bytes > 0 && *at == ':');
    if (has_begin) *begin = number;
    if (has_begin && at == stop) *end = number + 1;
    if (at < stop && *at == ':') {
        at++;
        if (take_number(&at, stop, &number)) *end = number;
    }
    return sound && at == stop ? PL_OK : wrong_part(word, bytes, "is no place and no range", err);
}

static pl_status take_part(const char *text, const pl_results_dataset *d, uint64_t *begin, uint64_t *end, pl_error *err)
{
    uint32_t next = 0, dimension;
    for (uint32_t i = 0; i < d->rank; i++) begin[i] = 0, end[i] = d->shape[i];
    for (const char *word = text; word; next++) {
        const char *comma = strchr(word, ','), *at = word;
        size_t bytes = comma ? (size_t)(comma - word) : strlen(word);
        pl_status status = find_dimension(d, &at, &bytes, next, &dimension, err);
        if (status == PL_OK) status = take_range(at, bytes, &begin[dimension], &end[dimension], err);
        if (status != PL_OK) return status;
        word = comma ? comma + 1 : NULL;
    }
    return PL_OK;
}

static pl_status choose_dataset(const arguments *a, const pl_results *r, size_t *dataset, pl_error *err)
{
    const size_t count = pl_results_summarize(r).datasets;
    char names[512];
    pl_line line = {names, sizeof names, 0};
    *dataset = a->dataset ? pl_results_find(r, a->dataset) : count == 1 ? 0 : PL_RESULTS_NONE;
    if (*dataset != PL_RESULTS_NONE) return PL_OK;
    for (size_t i = 0; i < count; i++) pl_line_add(&line, "%s%s", i ? ", " : "", pl_results_at(r, i).name);
    if (!a->dataset) return pl_cli_error(err, PL_E_USAGE, "--dataset NAME is missing; there are %s", names);
    return pl_cli_error(err, PL_E_USAGE, "there is no dataset %.100s; there are %s", a->dataset, names);
}

static pl_status export_one(const arguments *a, const char *path, pl_error *err)
{
    uint64_t begin[PL_RESULTS_RANK_MAX], end[PL_RESULTS_RANK_MAX];
    const pl_file_use use[] = {{path, "the file of results", PL_FILE_READ}, {a->out, "--out", PL_FILE_WRITTEN}};
    size_t dataset;
    pl_results *results;
    pl_status status = pl_files_check(use, 2, err);
    if (status == PL_OK) status = pl_results_open(path, &results, err);
    if (status != PL_OK) return status;
    status = choose_dataset(a, results, &dataset, err);
    if (status == PL_OK) {
        pl_results_dataset d = pl_results_at(results, dataset);
        status = take_part(a->at, &d, begin, end, err);
        if (status == PL_OK) status = pl_results_export(results, dataset, begin, end, a->out, err);
    }
    pl_results_close(results);
    return status;
}

/* ---- report ---- */

static pl_status report_one(const arguments *a, pl_error *err)
{
    static char results[PATH_MAX], page[PATH_MAX];
    char *text = NULL, shown[PL_SHOWN_BYTES] = "";
    size_t bytes = 0;
    pl_status status = pl_results_locate(a->file[0], results, sizeof results, err);
    if (status == PL_OK) status = pl_results_page_path(results, page, sizeof page, err);
    const char *to = a->html ? a->html : page;
    if (status == PL_OK) status = pl_results_page_check(results, to, err);
    if (status == PL_OK) status = pl_results_report(results, a->only, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(to, pl_page_save, text, bytes, err);
    if (status == PL_OK && !a->html) pl_say("page: %s\n", pl_show_plainly(to, shown));
    pl_text_free(text);
    return status;
}

/* ---- the command ---- */

static int refuse_foreign(const pl_cli_arguments *given, const char *what, unsigned allowed)
{
    char text[96];
    for (unsigned i = 0; i < sizeof own_options / sizeof *own_options; i++)
        if (given->value[i] && !(allowed >> i & 1)) {
            snprintf(text, sizeof text, "%s is no option of ", own_options[i].name);
            return pl_cli_usage("results", text, what);
        }
    return 0;
}

static int run_list(const arguments *a, const pl_cli_arguments *given)
{
    int code = refuse_foreign(given, "ls", 1u << JSON);
    if (code == 0 && a->count == 0) code = pl_cli_usage("results", "ls: a file of results is missing", "");
    return code ? code : for_each(a, list_one);
}

static int run_check(const arguments *a, const pl_cli_arguments *given)
{
    int code = refuse_foreign(given, "check", 1u << JSON | 1u << REPAIR);
    if (code == 0 && a->count == 0) code = pl_cli_usage("results", "check: a file of results is missing", "");
    return code ? code : for_each(a, check_one);
}

static int run_export(const arguments *a, const pl_cli_arguments *given)
{
    pl_error err = {0};
    int code = refuse_foreign(given, "export", 1u << DATASET | 1u << AT | 1u << OUT);
    if (code) return code;
    if (a->count != 1) return pl_cli_usage("results", "export: one file of results is expected", "");
    if (!a->out) return pl_cli_usage("results", "export: --out FILE is missing", "");
    if (pl_is_stdout(a->out))
        return pl_cli_usage("results", "export: --out takes the name of a file, and writes none to stdout", "");
    pl_status status = export_one(a, a->file[0], &err);
    return status == PL_OK ? 0 : complain(status, &err);
}

static int run_join(const arguments *a, const pl_cli_arguments *given)
{
    pl_error err = {0};
    int code = refuse_foreign(given, "join", 1u << MOVE);
    if (code) return code;
    if (a->count < 2) return pl_cli_usage("results", "join: OUT and the parts are expected", "");
    pl_status status = pl_results_join(a->file[0], a->file + 1, a->count - 1, given->value[MOVE] != NULL, &err);
    return status == PL_OK ? 0 : complain(status, &err);
}

static pl_status read_only(const char *text, size_t *only, pl_error *err)
{
    uint64_t number;
    const char *at = text, *end = text ? text + strlen(text) : NULL;
    *only = PL_RESULTS_NONE;
    if (!text) return PL_OK;
    if (!take_number(&at, end, &number) || at < end)
        return pl_cli_error(err, PL_E_USAGE, "--only %.40s: a number was expected", text);
    *only = (size_t)number;
    return PL_OK;
}

static int run_report(const arguments *a, const pl_cli_arguments *given)
{
    pl_error err = {0};
    arguments with = *a;
    int code = refuse_foreign(given, "report", 1u << HTML | 1u << ONLY);
    if (code) return code;
    if (a->count != 1) return pl_cli_usage("results", "report: one folder of a run, or its results, is expected", "");
    pl_status status = read_only(given->value[ONLY], &with.only, &err);
    if (status == PL_OK) status = report_one(&with, &err);
    return status == PL_OK ? 0 : complain(status, &err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const arguments *, const pl_cli_arguments *);
    } parts[] = {
        {"ls", run_list}, {"check", run_check}, {"export", run_export}, {"join", run_join}, {"report", run_report}};
    pl_cli_arguments given;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &given, &err) != PL_OK) return complain(err.status, &err);
    if (given.operand_count == 0) return pl_cli_usage("results", "ls, check, export, join or report is missing", "");
    const arguments a = {.dataset = given.value[DATASET],
                         .at = given.value[AT],
                         .out = given.value[OUT],
                         .html = given.value[HTML],
                         .json = given.value[JSON] != NULL,
                         .repair = given.value[REPAIR] != NULL,
                         .file = (const char *const *)given.all + 1,
                         .count = given.operand_count - 1};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(given.operand[0], parts[i].name) == 0) return parts[i].run(&a, &given);
    return pl_cli_usage("results", "ls, check, export, join or report were expected, not ", given.operand[0]);
}

const pl_cli_body pl_cli_results = {.text = about,
                                    .options = own_options,
                                    .option_count = sizeof own_options / sizeof *own_options,
                                    .first = "ls check export join report",
                                    .takes_many = true,
                                    .run = run};
