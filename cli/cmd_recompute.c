/* plimsoll recompute: the recompute planner alone. Reads a graph from a .dag file, prints what a schedule within the
 * budget costs, writes the schedule. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format.h"
#include "load.h"
#include "out.h"

/* With --time the clock binds, and the exact search may hold this many states (about 100 bytes each). */
enum { STATES_WITH_TIME = 2000000 };

enum { BUDGET, OUT, TIME, MIN, JSON };
static const pl_cli_option own_options[] = {
    [BUDGET] = {"--budget", "SIZE", "bytes that the schedule may hold, the file's fixed ones included"},
    [OUT] = {"--out", "FILE", "write the schedule, a step a line: C ID computes, F ID frees", true},
    [TIME] = {"--time", "SECONDS", "be done in this time, reading included; the best answer so far is given"},
    [MIN] = {"--min", NULL, "find the least budget for which there is a schedule, instead of --budget"},
    [JSON] = {"--json", NULL, "print the result as JSON (schema plimsoll.recompute/1)", true},
};

static const char about[] =
    "Decides which results of the graph in FILE.dag to drop and compute again so that it runs within the budget, at "
    "the least added cost. Lines of the file (# begins a comment):\n"
    "\n"
    "  dag N NAME            first\n"
    "  fixed BYTES           always there; optional\n"
    "  node ID COST SIZE WORK NDEPS D0 D1 ...\n"
    "                        ids from 0, in topological order\n"
    "  keep ID ...           stays from its first run to the end; optional\n"
    "\n"
    "To compute a node its inputs must be resident, and fixed + resident + SIZE + WORK must fit. Without --time the "
    "answer is the same on every machine. - as a file stands for stdin or stdout. Exit 3 when no schedule is found; "
    "the message says whether that is proven. --out is written only when one is found.\n";

typedef struct arguments {
    const char *input, *out;
    uint64_t budget;
    double time_s, began;
    bool json, min;
} arguments;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int parse(const pl_cli_command *command, arguments *a, int argc, char **argv)
{
    pl_cli_arguments given;
    pl_error err = {0};
    int code = 0;
    if (pl_cli_parse(command, argc, argv, &given, &err) != PL_OK || pl_cli_check_words(command, &given, &err) != PL_OK)
        return pl_cli_complain("recompute", err.status, &err);
    if (given.operand_count == 0) return pl_cli_usage("recompute", "a .dag file is missing", "");
    if (given.operand_count > 1)
        return pl_cli_usage("recompute", "one file only, but there is also ", given.operand[1]);
    *a = (arguments){.input = given.operand[0],
                     .out = given.value[OUT],
                     .json = given.value[JSON] != NULL,
                     .min = given.value[MIN] != NULL,
                     .began = now(),
                     .budget = PL_RECOMPUTE_NONE};
    if (a->min && given.value[BUDGET]) return pl_cli_usage("recompute", "--min and --budget exclude each other", "");
    if (!a->min && !given.value[BUDGET]) return pl_cli_usage("recompute", "--budget SIZE is missing, or --min", "");
    if (given.value[BUDGET]) code = pl_cli_read_size("recompute", "--budget", given.value[BUDGET], &a->budget);
    if (code == 0 && given.value[TIME])
        code = pl_cli_read_seconds("recompute", "--time", given.value[TIME], &a->time_s);
    return code;
}

static double percent_above(double cost, double base) { return base > 0 ? 100 * (cost / base - 1) : 0; }

static void add_cost(const pl_recompute_solution *s, pl_line *line)
{
    pl_line_add(line, "cost         %.15g, %.3f %% above computing each node once (%.15g)\n", s->cost,
                percent_above(s->cost, s->base_cost), s->base_cost);
    if (s->optimal)
        pl_line_add(line, "lower bound  %.15g, proven optimal\n", s->cost_lower_bound);
    else
        pl_line_add(line, "lower bound  %.15g; at most %.3f %% too much\n", s->cost_lower_bound,
                    percent_above(s->cost, s->cost_lower_bound));
}

static void add_budget(const arguments *a, const pl_recompute_problem *problem, const pl_recompute_solution *s,
                       pl_line *line)
{
    if (a->min) {
        pl_line_add(line, "least budget %" PRIu64 " byte%s%s\n", problem->budget, pl_show_plural(problem->budget),
                    s->floor_bytes >= problem->budget ? ", proven" : "");
        return;
    }
    const char *verdict = s->verdict == PL_RECOMPUTE_FITS         ? "met"
                          : s->verdict == PL_RECOMPUTE_IMPOSSIBLE ? "cannot be met (proven)"
                                                                  : "not met within the limits";
    pl_line_add(line, "budget       %" PRIu64 " byte%s, %s\n", problem->budget, pl_show_plural(problem->budget),
                verdict);
}

static pl_status report(const arguments *a, const pl_recompute_problem *problem, const pl_recompute_solution *s,
                        pl_error *err)
{
    char text[1024];
    pl_line line = {text, sizeof text, 0};
    double share = s->store_all_peak ? 100 * (double)s->peak / (double)s->store_all_peak : 100;
    pl_line_add(&line, "nodes        %zu\n", problem->node_count);
    add_budget(a, problem, s, &line);
    pl_line_add(&line, "peak         %" PRIu64 " byte%s, %.1f %% of storing all (%" PRIu64 ")\n", s->peak,
                pl_show_plural(s->peak), share, s->store_all_peak);
    pl_line_add(&line, "floor        %" PRIu64 " byte%s: no schedule holds less\n", s->floor_bytes,
                pl_show_plural(s->floor_bytes));
    if (s->verdict == PL_RECOMPUTE_FITS) add_cost(s, &line);
    pl_line_add(&line, "found by     %s in %.3f s\n", s->method, s->seconds);
    if (!a->json && !pl_is_stdout(a->out)) return pl_put(text, line.bytes, err);
    pl_say_bytes(text, line.bytes);
    return PL_OK;
}

static pl_status emit(const pl_recompute_problem *problem, const pl_recompute_solution *s, pl_recompute_form form,
                      const char *path, pl_error *err)
{
    char *text;
    size_t bytes;
    pl_status status = pl_recompute_print(problem, s, form, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(path, pl_text_save, text, bytes, err);
    pl_recompute_text_free(text);
    return status;
}

static pl_status write_all(const arguments *a, const pl_recompute_problem *problem, const pl_recompute_solution *s,
                           pl_error *err)
{
    pl_status status = report(a, problem, s, err);
    if (status == PL_OK && a->json) status = emit(problem, s, PL_RECOMPUTE_JSON, "-", err);
    if (status == PL_OK && a->out && s->verdict == PL_RECOMPUTE_FITS)
        status = emit(problem, s, PL_RECOMPUTE_SCHED, a->out, err);
    return status;
}

/* The judge shares no code with the planner: nothing is printed that it has not passed. */
static pl_status check(const pl_recompute_problem *problem, const pl_recompute_solution *s, pl_error *err)
{
    pl_error wrong = {0};
    uint64_t peak;
    pl_status status = pl_recompute_validate(problem, s->steps, s->step_count, NULL, &peak, &wrong);
    if (status == PL_OK && peak != s->peak)
        return pl_cli_error(err, PL_E_INTERNAL, "the schedule peaks at %" PRIu64 " bytes, not at %" PRIu64, peak,
                            s->peak);
    if (status != PL_OK) *err = wrong;
    return status;
}

static int solve(const arguments *a, pl_recompute_problem *problem)
{
    pl_error err = {0}, other = {0};
    pl_recompute_solution s;
    pl_recompute_options options = pl_recompute_options_default();
    if (a->time_s > 0) {
        options.time_limit_s = fmax(a->time_s - (now() - a->began), 1e-9); /* reading took the rest */
        options.work_limit = PL_RECOMPUTE_NONE;
        options.exact_states = STATES_WITH_TIME;
    }
    pl_status status = a->min ? pl_recompute_least(problem, &options, &problem->budget, &s, &err)
                              : pl_recompute(problem, &options, &s, &err);
    pl_status written = PL_OK;
    if (status == PL_OK || status == PL_E_BUDGET) {
        written = check(problem, &s, &other);
        if (written == PL_OK) written = write_all(a, problem, &s, &other);
    }
    pl_recompute_solution_deinit(&s);
    int code = status == PL_OK ? 0 : pl_cli_complain("recompute", status, &err);
    return written == PL_OK ? code : pl_cli_complain("recompute", written, &other);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    arguments a;
    pl_error err = {0};
    pl_recompute_dag *dag;
    int code = parse(command, &a, argc, argv);
    if (code) return code;
    pl_status status = pl_recompute_dag_read(a.input, &dag, &err);
    if (status != PL_OK) return pl_cli_complain("recompute", status, &err);
    pl_recompute_problem problem = pl_recompute_dag_problem(dag);
    problem.budget = a.budget;
    code = solve(&a, &problem);
    pl_recompute_dag_destroy(dag);
    return code;
}

const pl_cli_body pl_cli_recompute = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
