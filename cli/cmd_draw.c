/* plimsoll draw: a text as the page that an encoding sees, in a PNG. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "out.h"

enum { OUT, TEXT_FILE, SIZE, FONT, ADVANCES };
static const pl_cli_option own_options[] = {
    [OUT] = {"--out", "FILE", "the picture to write; - is stdout"},
    [TEXT_FILE] = {"--file", "PATH", "draw what is in this file, in place of TEXT"},
    [SIZE] = {"--image_size", "N", "pixels of both sides, 40 to 896; default: 224"},
    [FONT] = {"--font", "PATH", "file of an outline font; default: DejaVu Sans Mono, where the system has it"},
    [ADVANCES] = {"--advances", "WHICH", "of letters, in pixels: %s", .words = "whole raqm"},
};

static const char about[] =
    "Draws TEXT as plimsoll encode does and writes the page as a PNG: black on white, DejaVu Sans Mono at 12 pixels, "
    "lines of 16 pixels and padding of 10, so that a page of 224 pixels has 12 lines of 29 columns. - as TEXT stands "
    "for stdin. Any bytes make a page: what is no UTF-8, has no glyph in the font or no room on the page is counted, "
    "and told on stderr.\n"
    "\n"
    "  whole   letters advance by whole pixels, as the font is hinted\n"
    "  raqm    by 1/64 pixel, as Pillow draws with Raqm: 28 columns\n"
    "\n"
    "Needs FreeType, HarfBuzz, Raqm and libpng when Plimsoll is built (Debian: libraqm-dev, libpng-dev).\n";

static int complain(pl_status status, const pl_error *err) { return pl_cli_complain("draw", status, err); }

static pl_status read_size(const char *text, uint32_t *size, pl_error *err)
{
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || n > UINT32_MAX)
        return pl_cli_error(err, PL_E_USAGE, "--image_size expects a number of pixels, not %.100s", text);
    *size = (uint32_t)n;
    return PL_OK;
}

static pl_status read_options(const pl_cli_arguments *a, pl_draw_options *o, pl_error *err)
{
    const char *advances = a->value[ADVANCES];
    const pl_file_use files[] = {{a->value[TEXT_FILE], "--file", PL_FILE_READ},
                                 {a->value[FONT], "--font", PL_FILE_READ},
                                 {a->value[OUT], "--out", PL_FILE_WRITTEN}};
    *o = pl_draw_default();
    o->font = a->value[FONT];
    o->raqm_advances = advances && strcmp(advances, "raqm") == 0;
    if (advances && !o->raqm_advances && strcmp(advances, "whole") != 0)
        return pl_cli_error(err, PL_E_USAGE, "--advances expects whole or raqm, not %.100s", advances);
    pl_status status = a->value[SIZE] ? read_size(a->value[SIZE], &o->image_size, err) : PL_OK;
    return status == PL_OK ? pl_files_check(files, sizeof files / sizeof *files, err) : status;
}

static void remark(uint64_t n, const char *one, const char *many)
{
    if (n > 0) pl_say("%" PRIu64 " %s\n", n, n == 1 ? one : many);
}

static void tell(const pl_draw_said *s, uint32_t size)
{
    pl_say("%" PRIu32 " x %" PRIu32 " pixels, %" PRIu32 " of %" PRIu32 " lines, %" PRIu32 " columns\n", size, size,
           s->lines, s->rows, s->columns);
    remark(s->invalid_bytes, "byte is no UTF-8, drawn as U+FFFD", "bytes are no UTF-8, each drawn as U+FFFD");
    remark(s->missing_glyphs, "character has no glyph in the font, drawn as its box",
           "characters have no glyph in the font, drawn as its box");
    remark(s->unshaped_lines, "line could not be shaped, drawn letter by letter",
           "lines could not be shaped, drawn letter by letter");
    remark(s->truncated_bytes, "byte of the text has no room on the page",
           "bytes of the text have no room on the page");
}

static pl_status draw(const pl_cli_arguments *a, const pl_draw_options *o, pl_error *err)
{
    const char *text = a->operand[0], *file = a->value[TEXT_FILE], *out = a->value[OUT];
    pl_draw_said said;
    char *png;
    size_t bytes;
    if (!file && strcmp(text, "-") == 0) file = text;
    pl_status status = file ? pl_draw_file(file, o, &png, &bytes, &said, err)
                            : pl_draw_text(text, strlen(text), o, &png, &bytes, &said, err);
    if (status != PL_OK) return status;
    status = pl_put_to(out, pl_text_save, png, bytes, err);
    pl_text_free(png);
    if (status == PL_OK) tell(&said, o->image_size);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_draw_options options;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &a, &err) != PL_OK) return complain(err.status, &err);
    if (a.operand_count == 0 && !a.value[TEXT_FILE]) return pl_cli_usage("draw", "a text, or --file, is missing", "");
    if (a.operand_count > 0 && a.value[TEXT_FILE])
        return pl_cli_usage("draw", "a text or --file, not both; there is also ", a.operand[0]);
    if (a.operand_count > 1) return pl_cli_usage("draw", "one text only, in quotes; there is also ", a.operand[1]);
    if (!a.value[OUT]) return pl_cli_usage("draw", "--out FILE is missing: where the picture goes", "");
    pl_status status = read_options(&a, &options, &err);
    if (status == PL_OK) status = draw(&a, &options, &err);
    return status == PL_OK ? 0 : complain(status, &err);
}

const pl_cli_body pl_cli_draw = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
