/* plimsoll doctor: the memory of any process, explained. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "doctor.h"
#include "load.h"
#include "out.h"

enum { PID, WATCH, INTERVAL, LENGTH, AT, ALL, JSON, OUT, HTML };
static const pl_cli_option own_options[] = {
    [PID] = {"--pid", "N", "the process to explain"},
    [WATCH] = {"--watch", NULL, "look at it again and again until it ends or Ctrl-C; then plot, peak, report"},
    [INTERVAL] = {"--interval", "SECONDS", "longest pause between two looks; default 0.1"},
    [LENGTH] = {"--for", "SECONDS", "with --watch: stop after this many seconds"},
    [AT] = {"--at", "WHEN", "of what was watched, report the 'peak' or the 'end' only", .words = "peak end"},
    [ALL] = {"--all", NULL, "list every stack, every name and every mapping"},
    [JSON] = {"--json", NULL, "report as JSON (schema plimsoll.doctor/1)"},
    [OUT] = {"--out", "FILE", "write the report there"},
    [HTML] = {"--html", "FILE", "write a page with the curve of what was watched, causes and table"},
};

static const char about[] =
    "Explains where the memory of any process is: heap, mappings, libraries, stacks of threads (reserved and "
    "touched), shared memory, page tables; which limits hold; the three largest causes in words. Only /proc and /sys "
    "are read: the process is never stopped. Mappings of another user's process need root.\n"
    "\n"
    "With -- COMMAND, after all options, the command is run and watched with all its children. Its input and output "
    "stay its own; the report goes to stderr (with --pid: to stdout), or to --out FILE. Signals are passed on. The "
    "exit code is the command's own, 128 + N when signal N ended it, 127 when there is no such command, 126 when it "
    "cannot be started.\n"
    "Each row says what it is; docs/doctor.md in Plimsoll's source explains it at length.\n";

typedef struct arguments {
    int pid;
    char **command; /* NULL: a process that is there */
    pl_cli_watch watch;
    bool watches, all, json, peak, end;
    const char *out, *html;
} arguments;

static pl_status take_seconds(const char *name, const char *value, double *seconds, pl_error *err)
{
    char *end;
    if (!value) return PL_OK;
    *seconds = strtod(value, &end);
    if (end != value && !*end && *seconds > 0 && *seconds <= 1e6) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "%s expects a number of seconds above 0, not %.200s", name, value);
}

static pl_status take_pid(const char *value, int *pid, pl_error *err)
{
    char *end;
    if (!value) return PL_OK;
    errno = 0;
    long number = strtol(value, &end, 10);
    *pid = (int)number;
    if (end != value && !*end && !errno && number > 0 && number <= INT_MAX) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "--pid expects the number of a process, not %.200s; ps -e lists them", value);
}

static pl_status take_at(const char *value, arguments *a, pl_error *err)
{
    a->peak = !value || strcmp(value, "peak") == 0;
    a->end = !value || strcmp(value, "end") == 0;
    if (a->peak || a->end) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "--at expects peak or end, not %.200s", value);
}

static pl_status check(const arguments *a, const pl_cli_arguments *given, pl_error *err)
{
    if (given->operand_count)
        return pl_cli_error(err, PL_E_USAGE, "%.200s: to run a command put -- before it; to look at a process, --pid N",
                            given->operand[0]);
    if (a->pid && a->command)
        return pl_cli_error(err, PL_E_USAGE, "--pid and a command exclude each other; give one of them");
    if (!a->pid && !a->command)
        return pl_cli_error(err, PL_E_USAGE, "which process? --pid N, or -- COMMAND to run one");
    if (given->value[LENGTH] && !given->value[WATCH])
        return pl_cli_error(err, PL_E_USAGE, "--for says how long to --watch; give both");
    if (a->html && !a->watches)
        return pl_cli_error(err, PL_E_USAGE, "--html draws what was watched: give --watch or a command");
    if (pl_is_stdout(a->html)) return pl_cli_error(err, PL_E_USAGE, "--html needs the name of a file, not -");
    return PL_OK;
}

static pl_status parse(const pl_cli_command *command, int argc, char **argv, arguments *a, pl_error *err)
{
    pl_cli_arguments given;
    int own = 1;
    while (own < argc && strcmp(argv[own], "--") != 0) own++;
    *a = (arguments){.watch.interval_s = 0.1};
    if (own < argc && !argv[own + 1]) return pl_cli_error(err, PL_E_USAGE, "a command is missing after --");
    if (own < argc) a->command = argv + own + 1;
    pl_status status = pl_cli_parse(command, own, argv, &given, err);
    if (status == PL_OK) status = take_pid(given.value[PID], &a->pid, err);
    if (status == PL_OK) status = take_seconds("--interval", given.value[INTERVAL], &a->watch.interval_s, err);
    if (status == PL_OK) status = take_seconds("--for", given.value[LENGTH], &a->watch.length_s, err);
    if (status == PL_OK) status = take_at(given.value[AT], a, err);
    a->watches = given.value[WATCH] || a->command;
    a->watch.show = given.value[WATCH] && pl_terminal_redraws(STDERR_FILENO);
    a->all = given.value[ALL];
    a->json = given.value[JSON];
    a->out = given.value[OUT];
    a->html = given.value[HTML];
    if (status == PL_OK) status = check(a, &given, err);
    return status == PL_OK ? pl_cli_check_watched(command, &given, a->command, a->pid, err) : status;
}

/* ---- telling ---- */

typedef struct piece {
    char *text;
    size_t bytes;
} piece;

enum { PIECES = 4 };

/* The report in pieces: with --watch the plot before it, and after that of the peak the table of the end. */
static pl_status make_pieces(const arguments *a, const pl_doctor *doctor, piece *pieces, pl_error *err)
{
    pl_doctor_form full = a->json ? PL_DOCTOR_JSON : a->all ? PL_DOCTOR_REPORT_LONG : PL_DOCTOR_REPORT;
    bool both = a->watches && !a->json && a->peak && a->end && !pl_doctor_count(doctor).peak_is_last;
    pl_status status = PL_OK;
    if (a->watches && !a->json)
        status = pl_doctor_text(doctor, PL_DOCTOR_PLOT, PL_DOCTOR_PEAK, &pieces[0].text, &pieces[0].bytes, err);
    if (status == PL_OK)
        status = pl_doctor_text(doctor, full, a->peak ? PL_DOCTOR_PEAK : PL_DOCTOR_LAST, &pieces[1].text,
                                &pieces[1].bytes, err);
    if (status == PL_OK && both)
        status = pl_doctor_text(doctor, PL_DOCTOR_TABLE, PL_DOCTOR_LAST, &pieces[2].text, &pieces[2].bytes, err);
    if (status == PL_OK && a->html)
        status = pl_doctor_text(doctor, PL_DOCTOR_HTML, PL_DOCTOR_PEAK, &pieces[3].text, &pieces[3].bytes, err);
    return status;
}

/* One text in the end, so that a file gets it whole. */
static pl_status join(const piece *pieces, piece *whole, pl_error *err)
{
    static const char between[] = "\nAt its end: ";
    char *to = malloc(pieces[0].bytes + 1 + pieces[1].bytes + sizeof between + pieces[2].bytes);
    whole->text = to;
    if (!to) return pl_cli_error(err, PL_E_NOMEM, "no memory for the report");
    if (pieces[0].bytes) {
        memcpy(to, pieces[0].text, pieces[0].bytes);
        to += pieces[0].bytes;
        *to++ = '\n';
    }
    memcpy(to, pieces[1].text, pieces[1].bytes);
    to += pieces[1].bytes;
    if (pieces[2].bytes) {
        memcpy(to, between, sizeof between - 1);
        to += sizeof between - 1;
        memcpy(to, pieces[2].text, pieces[2].bytes);
        to += pieces[2].bytes;
    }
    whole->bytes = (size_t)(to - whole->text);
    return PL_OK;
}

static pl_status deliver(const arguments *a, const piece *whole, pl_error *err)
{
    if (a->out && !pl_is_stdout(a->out)) return pl_text_save(a->out, whole->text, whole->bytes, err);
    if (a->out || !a->command) return pl_put(whole->text, whole->bytes, err);
    pl_say_bytes(whole->text, whole->bytes);
    return PL_OK;
}

static pl_status report(const arguments *a, const pl_doctor *doctor, pl_error *err)
{
    piece pieces[PIECES] = {{0}}, whole = {0};
    pl_status status = make_pieces(a, doctor, pieces, err);
    if (status == PL_OK) status = join(pieces, &whole, err);
    if (status == PL_OK) status = deliver(a, &whole, err);
    if (status == PL_OK && a->html) status = pl_page_save(a->html, pieces[3].text, pieces[3].bytes, err);
    free(whole.text);
    for (int i = 0; i < PIECES; i++) pl_text_free(pieces[i].text);
    return status;
}

/* ---- the two ways ---- */

static int explain_process(arguments *a)
{
    pl_error err = {0};
    pl_doctor *doctor = NULL;
    bool alive = true;
    int stopped_by = 0;
    pl_status status = pl_doctor_open(a->pid, false, &doctor, &err);
    if (status == PL_OK)
        status = a->watches ? pl_cli_watch_process(&a->watch, doctor, &stopped_by, &err)
                            : pl_doctor_look(doctor, &alive, &err);
    if (status == PL_OK) status = report(a, doctor, &err);
    pl_doctor_close(doctor);
    if (status != PL_OK) return pl_cli_complain("doctor", status, &err);
    return stopped_by && stopped_by != SIGINT ? 128 + stopped_by : 0; /* Ctrl-C is how a watch is ended */
}

static int explain_command(arguments *a)
{
    pl_error err = {0}, unseen = {0};
    pl_doctor *doctor = NULL;
    int code = 0;
    pl_status told = PL_OK, status = pl_cli_watch_command(&a->watch, a->command, &doctor, &code, &unseen);
    if (doctor && pl_doctor_count(doctor).looks) told = report(a, doctor, &err);
    pl_doctor_close(doctor);
    if (status == PL_E_DATA) {
        pl_say("plimsoll doctor: %.200s ended before it could be looked at: %s\n", a->command[0], unseen.text);
        return code;
    }
    if (told == PL_OK && status == PL_OK) return code;
    int own = status == PL_OK ? pl_cli_complain("doctor", told, &err) : pl_cli_complain("doctor", status, &unseen);
    return code ? code : own;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    arguments a;
    pl_error err = {0};
    pl_status status = parse(command, argc, argv, &a, &err);
    if (status != PL_OK) return pl_cli_complain("doctor", status, &err);
    return a.command ? explain_command(&a) : explain_process(&a);
}

const pl_cli_body pl_cli_doctor = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
