/* plimsoll synth: data that is made, so that examples and tests need no downloads. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "out.h"

enum { FLIGHTS, LABELS, HEIGHT, WIDTH, GSD, CUE, COUNT, FORMAT, SEED };
static const pl_cli_option own_options[] = {
    [FLIGHTS] = {"--flights", "N", "clouds: how many, 1 to 31; default: 6, the documented ones"},
    [LABELS] = {"--labels", "N", "clouds: in each flight; fifth (the default) or full: of the documented numbers"},
    [HEIGHT] = {"--height", "ROWS", "clouds: of a frame's swath; default: 440"},
    [WIDTH] = {"--width", "COLUMNS", "clouds: of a frame; default: 640"},
    [GSD] = {"--gsd", "METRES", "clouds: of a pixel on the ground; default: 125, shadows of 16 pixels at most"},
    [CUE] = {"--cue", "CUE", "clouds: what tells the height: %s", .words = "shadow parallax"},
    [COUNT] = {"--count", "N", "texts: how many; default: 10000"},
    [FORMAT] = {"--format", "FORM", "texts: %s", .words = "lines jsonl csv"},
    [SEED] = {"--seed", "N", "another one makes other flights or texts; default: 1"},
};

static const char about[] =
    "clouds OUT writes flights over an ocean with clouds into the folder OUT, for the regression of cloud heights: of "
    "each flight "
    "the frames of a camera, the profiles of a lidar and the navigation, as three HDF5 files in the documented "
    "layout, and synthetic_flights.yaml, the keys of a config that name them (also on stdout).\n"
    "\n"
    "  shadow    clouds cast shadows, whose length is the height times the tangent\n"
    "            of the sun's zenith angle\n"
    "  parallax  only the displacement from frame to frame tells the height: a\n"
    "            model that encodes each frame by itself cannot know it\n"
    "\n"
    "Needs libhdf5.\n"
    "\n"
    "texts OUT writes texts to draw as pages into the file OUT, of 20 to 400 characters: code, prose and formulas with "
    "random names and numbers, a few in other scripts. One a line (ends of lines within a text become spaces), an "
    "object a line (jsonl), or CSV, the latter two with the columns id and text.\n"
    "\n"
    "The same options give the same bytes.\n";

static int complain(pl_status status, const pl_error *err) { return pl_cli_complain("synth", status, err); }

static pl_status expected(const char *option, const char *what, const char *value, pl_error *err)
{
    return pl_cli_error(err, PL_E_USAGE, "%s expects %s, not %.100s; try plimsoll synth --help", option, what, value);
}

/* Digits alone, at most `limit`. */
static bool read_number(const char *text, uint64_t limit, uint64_t *number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !*end && errno == 0 && *number <= limit;
}

static pl_status read_into(const pl_cli_arguments *a, int option, uint32_t *number, pl_error *err)
{
    uint64_t n;
    if (!a->value[option]) return PL_OK;
    if (!read_number(a->value[option], UINT32_MAX, &n) || n == 0)
        return expected(own_options[option].name, "a number from 1 on", a->value[option], err);
    *number = (uint32_t)n;
    return PL_OK;
}

static pl_status read_labels(const char *value, pl_synth_clouds_options *o, pl_error *err)
{
    uint64_t n = 0;
    if (!value) return PL_OK;
    o->labels_part = strcmp(value, "full") == 0 ? 1 : 5;
    if (strcmp(value, "full") == 0 || strcmp(value, "fifth") == 0) return PL_OK;
    if (!read_number(value, UINT32_MAX, &n) || n == 0)
        return expected("--labels", "a number from 1 on, fifth or full", value, err);
    o->labels = (uint32_t)n;
    return PL_OK;
}

static pl_status read_seed(const pl_cli_arguments *a, uint64_t *seed, pl_error *err)
{
    const char *value = a->value[SEED];
    if (value && !read_number(value, UINT64_MAX, seed)) return expected("--seed", "a number from 0 on", value, err);
    return PL_OK;
}

static pl_status read_rest(const pl_cli_arguments *a, pl_synth_clouds_options *o, pl_error *err)
{
    const char *gsd = a->value[GSD], *cue = a->value[CUE];
    char *end = NULL;
    if (gsd) o->gsd_metres = strtod(gsd, &end);
    if (gsd && (end == gsd || *end || !isfinite(o->gsd_metres)))
        return expected("--gsd", "a number of metres", gsd, err);
    if (cue && strcmp(cue, "shadow") != 0 && strcmp(cue, "parallax") != 0)
        return expected("--cue", "shadow or parallax", cue, err);
    if (cue && strcmp(cue, "parallax") == 0) o->cue = PL_SYNTH_PARALLAX;
    return read_seed(a, &o->seed, err);
}

static pl_status read_options(const pl_cli_arguments *a, pl_synth_clouds_options *o, pl_error *err)
{
    pl_status status = read_into(a, FLIGHTS, &o->flights, err);
    if (status == PL_OK) status = read_into(a, HEIGHT, &o->height, err);
    if (status == PL_OK) status = read_into(a, WIDTH, &o->width, err);
    if (status == PL_OK) status = read_labels(a->value[LABELS], o, err);
    return status == PL_OK ? read_rest(a, o, err) : status;
}

static void tell(void *context, const char *flight, uint64_t frames, uint64_t labels)
{
    (void)context;
    pl_say("%s: %" PRIu64 " frames, %" PRIu64 " labels\n", flight, frames, labels);
}

static int make_clouds(const char *folder, const pl_synth_clouds_options *o)
{
    pl_error err = {0};
    char *text;
    size_t bytes;
    pl_status status = pl_synth_clouds(folder, o, &text, &bytes, &err);
    if (status != PL_OK) return complain(status, &err);
    status = pl_put(text, bytes, &err);
    pl_text_free(text);
    return status == PL_OK ? 0 : complain(status, &err);
}

static int clouds(const pl_cli_arguments *a)
{
    pl_error err = {0};
    pl_synth_clouds_options options = pl_synth_clouds_default();
    options.tell = tell;
    if (read_options(a, &options, &err) != PL_OK) return complain(err.status, &err);
    return make_clouds(a->operand[1], &options);
}

static pl_status read_texts_options(const pl_cli_arguments *a, pl_synth_texts_options *o, pl_error *err)
{
    const char *count = a->value[COUNT], *format = a->value[FORMAT];
    if (count && (!read_number(count, UINT64_MAX, &o->count) || o->count == 0))
        return expected("--count", "a number from 1 on", count, err);
    if (format && strcmp(format, "jsonl") == 0)
        o->form = PL_SYNTH_JSONL;
    else if (format && strcmp(format, "csv") == 0)
        o->form = PL_SYNTH_CSV;
    else if (format && strcmp(format, "lines") != 0)
        return expected("--format", "lines, jsonl or csv", format, err);
    return read_seed(a, &o->seed, err);
}

static int texts(const pl_cli_arguments *a)
{
    pl_error err = {0};
    pl_synth_texts_options options = pl_synth_texts_default();
    pl_status status = read_texts_options(a, &options, &err);
    if (status == PL_OK) status = pl_synth_texts(a->operand[1], &options, &err);
    if (status != PL_OK) return complain(status, &err);
    pl_say("%s: %" PRIu64 " text%s\n", a->operand[1], options.count, options.count == 1 ? "" : "s");
    return 0;
}

/* What can be made, and the options that it does not take. */
static const struct {
    const char *name, *missing, *one;
    int (*make)(const pl_cli_arguments *);
    int first, behind; /* options of the other alone: [first, behind) */
} thing[] = {
    {"clouds", "the folder to write into is missing: clouds OUT", "one folder only, but there is also ", clouds, COUNT,
     SEED},
    {"texts", "the file to write is missing: texts OUT", "one file only, but there is also ", texts, FLIGHTS, COUNT}};

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    size_t i = 0;
    if (pl_cli_parse(command, argc, argv, &a, &err) != PL_OK) return complain(err.status, &err);
    if (a.operand_count == 0) return pl_cli_usage("synth", "what to make is missing: clouds OUT or texts OUT", "");
    while (i < sizeof thing / sizeof *thing && strcmp(a.operand[0], thing[i].name) != 0) i++;
    if (i == sizeof thing / sizeof *thing)
        return pl_cli_usage("synth", "clouds and texts can be made, not ", a.operand[0]);
    if (a.operand_count == 1) return pl_cli_usage("synth", thing[i].missing, "");
    if (a.operand_count > 2) return pl_cli_usage("synth", thing[i].one, a.operand[2]);
    for (int k = thing[i].first; k < thing[i].behind; k++)
        if (a.value[k]) return pl_cli_usage("synth", "what is made has no option ", own_options[k].name);
    return thing[i].make(&a);
}

const pl_cli_body pl_cli_synth = {.text = about,
                                  .options = own_options,
                                  .option_count = sizeof own_options / sizeof *own_options,
                                  .first = "clouds texts",
                                  .run = run};
