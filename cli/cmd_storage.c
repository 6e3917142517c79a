/* plimsoll storage: what lies in a folder, and cleaning it up. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "format.h"
#include "out.h"

enum { JSON, DRY_RUN, KEEP_LAST, CACHE_SIZE, CONSOLIDATE, LIMIT };
static const pl_cli_option own_options[] = {
    [JSON] = {"--json", NULL, "report, or clean with --dry-run: print it as JSON (schema plimsoll.storage/1)"},
    [DRY_RUN] = {"--dry-run", NULL, "clean: say what it would do, and change nothing"},
    [KEEP_LAST] = {"--keep-last", "K",
                   "of each run the K newest checkpoints that are sound stay, the best, and the latest"},
    [CACHE_SIZE] = {"--cache-size", "SIZE", "each cache has at most so much; 0: they go"},
    [CONSOLIDATE] = {"--consolidate", NULL, "the parts of a job in FOLDER/temp become one file in FOLDER/datasets"},
    [LIMIT] = {"--limit", "SIZE", "report: compare what lies there with this"},
};

static const char about[] =
    "Tells what Plimsoll's files in a folder take of the disk, and what may be deleted, and deletes that.\n"
    "\n"
    "  report FOLDER        what lies there, what clean would do with it and why\n"
    "  clean FOLDER         remove what killed processes left behind; further things\n"
    "                       where options say so: old checkpoints, caches, parts that\n"
    "                       were joined\n"
    "\n"
    "FOLDER is that of a run, or one above. What a process is using is left alone, "
    "and so are links and all that is not known to be Plimsoll's. Killed at any "
    "instant, the same command ends what was begun. Options that say what clean is "
    "to do may be given to report, too.\n";

static int complain(pl_status status, const pl_error *err) { return pl_cli_complain("storage", status, err); }

/* ---- options ---- */

static int read_keep_last(const char *text, uint64_t *keep)
{
    char *end;
    if (!text) return 0;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number == 0)
        return pl_cli_usage("storage", "--keep-last takes a number from 1 on, not ", text);
    *keep = number;
    return 0;
}

static int read_rules(const pl_cli_arguments *given, pl_storage_rules *r)
{
    const char *const *value = given->value;
    *r = (pl_storage_rules){.consolidates = value[CONSOLIDATE] != NULL};
    int code = read_keep_last(value[KEEP_LAST], &r->keep_last);
    r->bounds_caches = value[CACHE_SIZE] != NULL;
    if (code == 0 && value[CACHE_SIZE])
        code = pl_cli_read_size("storage", "--cache-size", value[CACHE_SIZE], &r->cache_bytes);
    if (code == 0 && value[LIMIT]) code = pl_cli_read_size("storage", "--limit", value[LIMIT], &r->limit_bytes);
    return code;
}

/* ---- report ---- */

static pl_status report(const char *folder, const pl_storage_rules *rules, bool json, pl_error *err)
{
    pl_storage *s;
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_storage_look(folder, rules, &s, err);
    if (status != PL_OK) return status;
    status = pl_storage_print(s, json ? PL_STORAGE_JSON : PL_STORAGE_TEXT, &text, &bytes, err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    pl_storage_destroy(s);
    return status;
}

static int run_report(const pl_cli_arguments *given)
{
    static char warning[PL_STORAGE_WARNING_BYTES];
    pl_storage_rules rules;
    pl_error err = {0};
    if (given->value[DRY_RUN]) return pl_cli_usage("storage", "--dry-run is no option of ", "report");
    int code = read_rules(given, &rules);
    if (code) return code;
    pl_status status = report(given->operand[1], &rules, given->value[JSON] != NULL, &err);
    if (status != PL_OK) return complain(status, &err);
    pl_storage_warn(given->operand[1], warning);
    if (warning[0]) pl_say("plimsoll storage: warning: %s\n", warning);
    return 0;
}

/* ---- clean ---- */

/* What was said so far, and whether that could be said. */
typedef struct telling {
    pl_status status;
    pl_error *err;
} telling;

static void tell(void *context, const pl_storage_item *m, uint64_t gained, const char *problem)
{
    telling *t = context;
    char shown[PL_SHOWN_BYTES] = "", bytes[PL_FORMAT_BYTES], why[PL_SHOWN_BYTES] = "";
    if (problem) {
        pl_say("plimsoll storage: warning: %s is left: %s\n", pl_show_plainly(m->path, shown),
               pl_show_plainly(problem, why));
        return;
    }
    const char *what = m->fate == PL_STORAGE_SHRINKS ? "made smaller" : "removed";
    if (t->status == PL_OK)
        t->status = pl_put_format(t->err, "%s: %s, %s: %s\n", pl_show_plainly(m->path, shown), what,
                                  pl_show_bytes(gained, bytes), pl_show_plainly(m->why, why));
}

static pl_status clean(const char *folder, const pl_storage_rules *rules, pl_error *err)
{
    pl_storage *s;
    pl_storage_cleaned c;
    char bytes[PL_FORMAT_BYTES], count[PL_FORMAT_BYTES];
    pl_error unsaid = {0};
    telling t = {PL_OK, &unsaid};
    pl_status status = pl_storage_look(folder, rules, &s, err);
    if (status != PL_OK) return status;
    status = pl_storage_clean(s, tell, &t, &c, err);
    pl_storage_destroy(s);
    if (t.status == PL_OK)
        t.status =
            pl_put_format(&unsaid, "%s removed, %s", pl_show_count(c.items, count), pl_show_bytes(c.bytes, bytes));
    if (t.status == PL_OK && c.left) t.status = pl_put_format(&unsaid, "; %s left", pl_show_count(c.left, count));
    if (t.status == PL_OK && c.in_use)
        t.status = pl_put_format(&unsaid, "; %s in use and left alone", pl_show_count(c.in_use, count));
    if (t.status == PL_OK) t.status = pl_put_format(&unsaid, "\n");
    if (status != PL_OK || t.status == PL_OK) return status;
    *err = unsaid;
    return t.status;
}

static int run_clean(const pl_cli_arguments *given)
{
    pl_storage_rules rules;
    pl_error err = {0};
    const bool dry = given->value[DRY_RUN] != NULL;
    if (given->value[LIMIT]) return pl_cli_usage("storage", "--limit is no option of ", "clean");
    if (given->value[JSON] && !dry) return pl_cli_usage("storage", "clean: --json goes with --dry-run", "");
    int code = read_rules(given, &rules);
    if (code) return code;
    pl_status status = dry ? report(given->operand[1], &rules, given->value[JSON] != NULL, &err)
                           : clean(given->operand[1], &rules, &err);
    return status == PL_OK ? 0 : complain(status, &err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments given;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &given, &err) != PL_OK) return complain(err.status, &err);
    if (given.operand_count == 0) return pl_cli_usage("storage", "report or clean is missing", "");
    const bool reports = strcmp(given.operand[0], "report") == 0;
    if (!reports && strcmp(given.operand[0], "clean") != 0)
        return pl_cli_usage("storage", "report or clean were expected, not ", given.operand[0]);
    if (given.operand_count != 2) return pl_cli_usage("storage", "one folder is expected", "");
    return reports ? run_report(&given) : run_clean(&given);
}

const pl_cli_body pl_cli_storage = {.text = about,
                                    .options = own_options,
                                    .option_count = sizeof own_options / sizeof *own_options,
                                    .first = "report clean",
                                    .run = run};
