/* plimsoll place: the placer alone. Reads buffers from CSV, prints peak and lower bound, writes the offsets. */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format.h"
#include "load.h"
#include "out.h"

/* Ten seconds of one core at most, counted in steps, so that the answer is the same on every machine. */
#define WORK_LIMIT UINT64_C(6000000000)

enum { CAPACITY, OUT, SVG, JSON, TIME };
static const pl_cli_option own_options[] = {
    [CAPACITY] = {"--capacity", "SIZE", "fail (exit 3) when it cannot be met"},
    [OUT] = {"--out", "FILE", "write the same rows with their offsets", true},
    [SVG] = {"--svg", "FILE", "draw the arena, time x offset", true},
    [JSON] = {"--json", NULL, "print the result as JSON (schema plimsoll.place/1)", true},
    [TIME] = {"--time", "SECONDS",
              "search for at most this long, if need be longer than by default; best answer so far"},
};

static const char about[] =
    "Finds an offset for each buffer of FILE.csv so that buffers alive at the same time do not overlap and the arena "
    "is as small as possible. Columns, in any order: id,lower,upper,size (alive from lower to before upper) and, if "
    "wanted, alignment (a power of two) and offset (fixed; empty = free). Sizes take units: 500MB, 1.5MiB.\n"
    "\n"
    "Without --time the search is bounded by counted steps, ten seconds of one core at most: the answer is the same "
    "on every machine. With it the best answer so far is never lost: more time is never worse. What comes first is "
    "what is done without it. - as a file stands for stdin or stdout. Exit 3 when the capacity is not met; the "
    "message says whether that is proven. --out is written only when it is met.\n";

typedef struct arguments {
    const char *input, *out, *svg;
    uint64_t capacity;
    double time_s;
    bool json;
} arguments;

static int parse(const pl_cli_command *command, arguments *a, int argc, char **argv)
{
    pl_cli_arguments given;
    pl_error err = {0};
    int code = 0;
    if (pl_cli_parse(command, argc, argv, &given, &err) != PL_OK || pl_cli_check_words(command, &given, &err) != PL_OK)
        return pl_cli_complain("place", err.status, &err);
    if (given.operand_count == 0) return pl_cli_usage("place", "a CSV file is missing", "");
    if (given.operand_count > 1) return pl_cli_usage("place", "one file only, but there is also ", given.operand[1]);
    *a = (arguments){.input = given.operand[0],
                     .out = given.value[OUT],
                     .svg = given.value[SVG],
                     .json = given.value[JSON] != NULL,
                     .capacity = PL_PLACE_NONE};
    if (given.value[CAPACITY]) code = pl_cli_read_size("place", "--capacity", given.value[CAPACITY], &a->capacity);
    if (code == 0 && given.value[TIME]) code = pl_cli_read_seconds("place", "--time", given.value[TIME], &a->time_s);
    return code;
}

static void add_capacity(const arguments *a, const pl_place_solution *s, pl_line *line)
{
    const char *verdict = s->verdict == PL_PLACE_FITS         ? "met"
                          : s->verdict == PL_PLACE_IMPOSSIBLE ? "cannot be met (proven)"
                                                              : "not met within the limits";
    pl_line_add(line, "capacity     %" PRIu64 " byte%s, %s\n", a->capacity, pl_show_plural(a->capacity), verdict);
}

static pl_status report(const arguments *a, size_t count, const pl_place_solution *s, pl_error *err)
{
    char text[1024];
    pl_line line = {text, sizeof text, 0};
    double gap = s->lower_bound ? 100 * ((double)s->peak / (double)s->lower_bound - 1) : 0;
    pl_line_add(&line, "buffers      %zu\n", count);
    pl_line_add(&line, "peak         %" PRIu64 " byte%s, at time %" PRIu64 "\n", s->peak, pl_show_plural(s->peak),
                s->peak_time);
    pl_line_add(&line, "lower bound  %" PRIu64 " byte%s, at time %" PRIu64 "\n", s->lower_bound,
                pl_show_plural(s->lower_bound), s->bound_time);
    pl_line_add(&line, "gap          %" PRIu64 " byte%s (%.3f %%)%s\n", s->peak - s->lower_bound,
                pl_show_plural(s->peak - s->lower_bound), gap,
                s->optimal ? ", proven optimal" : ", not proven optimal");
    pl_line_add(&line, "found by     %s in %.3f s, %" PRIu64 " node%s\n", s->heuristic, s->seconds, s->nodes,
                pl_show_plural(s->nodes));
    if (a->capacity != PL_PLACE_NONE) add_capacity(a, s, &line);
    if (!a->json && !pl_is_stdout(a->out) && !pl_is_stdout(a->svg)) return pl_put(text, line.bytes, err);
    pl_say_bytes(text, line.bytes);
    return PL_OK;
}

static pl_status emit(const pl_place_problem *problem, const pl_place_solution *s, pl_place_form form, const char *path,
                      pl_error *err)
{
    char *text;
    size_t bytes;
    pl_status status = pl_place_print(problem, s, form, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(path, pl_text_save, text, bytes, err);
    pl_place_text_free(text);
    return status;
}

/* A file with offsets that do not fit would mislead: --out is written only when the capacity is met. */
static pl_status write_all(const arguments *a, const pl_place_problem *problem, const pl_place_solution *s,
                           pl_error *err)
{
    pl_status status = PL_OK;
    if (a->json) status = emit(problem, s, PL_PLACE_JSON, "-", err);
    if (status == PL_OK && a->svg) status = emit(problem, s, PL_PLACE_SVG, a->svg, err);
    if (status == PL_OK && a->out && s->verdict == PL_PLACE_FITS) status = emit(problem, s, PL_PLACE_CSV, a->out, err);
    return status;
}

/* Judging the answer takes some five times as long as reading the rows took, whose time counts as well; on a loaded
 * machine more. What a pipe was waited for does not count. */
static double time_for_search(double time_s)
{
    double reading_s = (double)clock() / CLOCKS_PER_SEC;
    return fmax(time_s - 8 * reading_s, 1e-9);
}

static int solve(const arguments *a, const pl_place_problem *problem)
{
    pl_error err = {0}, write_err = {0};
    pl_place_options options = pl_place_options_default();
    options.work_limit = WORK_LIMIT; /* with --time too: first what is done without it */
    if (a->time_s > 0) options.time_limit_s = time_for_search(a->time_s);
    pl_place_solution s = {.offsets = calloc(problem->buffer_count + 1, sizeof *s.offsets)};
    if (!s.offsets) return pl_cli_complain("place", pl_cli_error(&err, PL_E_NOMEM, "no memory for the offsets"), &err);
    pl_status status = pl_place(problem, &options, &s, &err), written = PL_OK;
    if (status == PL_OK) status = pl_place_validate(problem, s.offsets, NULL, &err);
    if (status == PL_OK || status == PL_E_BUDGET) {
        written = report(a, problem->buffer_count, &s, &write_err);
        if (written == PL_OK) written = write_all(a, problem, &s, &write_err);
    }
    free(s.offsets);
    int code = status == PL_OK ? 0 : pl_cli_complain("place", status, &err);
    return written == PL_OK ? code : pl_cli_complain("place", written, &write_err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    arguments a;
    pl_error err = {0};
    pl_place_table *table;
    int code = parse(command, &a, argc, argv);
    if (code) return code;
    pl_status status = pl_place_table_read(a.input, &table, &err);
    if (status != PL_OK) return pl_cli_complain("place", status, &err);
    pl_place_problem problem = pl_place_table_problem(table);
    problem.capacity = a.capacity;
    code = solve(&a, &problem);
    pl_place_table_destroy(table);
    return code;
}

const pl_cli_body pl_cli_place = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
