/* plimsoll help: texts from the table, the config's options from the library's. -h is one screen, --help is all, on a
 * terminal through a pager. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "command.h"
#include "help.h"
#include "out.h"
#include "pager.h"

enum { LEFT = 32, LEFT_BRIEF = 26, COLUMNS = 80 };

static const struct {
    const char *name, *lines, *options;
} examples[] = {
#define EXAMPLES(name, lines, options) {name, lines, options},
#include "examples.def"
};

static const char overview_end[] =
    "\n"
    "plimsoll COMMAND -h is one screen, plimsoll COMMAND --help is all, plimsoll help WORD looks for a key or a word. "
    "CONFIG is a YAML file, or the folder of a run for the config that is kept "
    "there; "
    "plimsoll config --markdown prints its reference. Commands that take a CONFIG take the keys that they read as "
    "options, too. Data goes to stdout, messages to stderr.\n"
    "\n"
    "Exit codes: 0 done; 1 failure (no memory, a loss that is no longer finite, a machine that cannot do it); 2 wrong "
    "usage or config; 3 does not fit the memory; 4 data missing or damaged; 5 storage: a file cannot be read or "
    "written; 6 measured memory differs from the plan; 75 ended early by SIGHUP, 130 by SIGINT, 143 by SIGTERM: a "
    "training that was at work can be resumed then (where nothing was saved it ends with 1). A shell shows 141 "
    "(SIGPIPE) when the reader of the output left first (plimsoll plan x.yaml | head -3); train, ablate, "
    "rollout, encode, quantize and infer --out go on.\n";

/* A line of the text is a paragraph; one that begins with a space is left as it is. */
static pl_status put_paragraphs(const char *text, pl_error *err)
{
    pl_status status = PL_OK;
    while (*text && status == PL_OK) {
        size_t bytes = strcspn(text, "\n");
        if (*text == ' ')
            status = pl_put(text, bytes + 1, err);
        else
            status = pl_put_words(text, bytes, 0, "\n", err);
        text += bytes + (text[bytes] == '\n');
    }
    return status;
}

static pl_status put_row(const char *left, const char *help, pl_error *err)
{
    bool beside = strlen(left) + 2 <= LEFT;
    pl_status status = beside ? pl_put_format(err, "%-*s", LEFT, left) : pl_put_format(err, "%s\n%*s", left, LEFT, "");
    return status == PL_OK ? pl_put_words(help, strlen(help), LEFT, "\n", err) : status;
}

static int end(pl_pager *pager, pl_status status, pl_error *err)
{
    const bool paged = pl_pager_end(pager);
    return status == PL_OK || paged ? 0 : pl_cli_complain("help", status, err);
}

static int print_overview(void)
{
    pl_error err = {0};
    char left[128];
    pl_pager pager = pl_pager_begin();
    pl_status status = put_paragraphs(
        "Plimsoll trains and runs neural networks inside a memory budget: it knows where every byte of the process "
        "will go before the first step, and then runs exactly so.\n\nusage: plimsoll COMMAND [ARGUMENTS]\n\n",
        &err);
    const pl_cli_command *c;
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) {
        snprintf(left, sizeof left, "  %s %s", c->name, c->operands);
        status = put_row(left, c->summary, &err);
    }
    if (status == PL_OK) status = put_row("  --version", "print version and build (--json: as JSON)", &err);
    if (status == PL_OK) status = put_paragraphs(overview_end, &err);
    return end(&pager, status, &err);
}

static int print_brief_overview(void)
{
    pl_error err = {0};
    pl_status status = pl_put_text("Plimsoll trains and runs neural networks inside a memory budget.\n\n"
                                   "usage: plimsoll COMMAND [ARGUMENTS], for example\n"
                                   "  plimsoll train examples/tiny.yaml --text book.txt\n\n",
                                   &err);
    const pl_cli_command *c;
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++)
        status = pl_put_format(&err, "  %-12s%s\n", c->name, c->summary);
    if (status == PL_OK)
        status = pl_put_text("\nMore: plimsoll COMMAND -h (one screen), plimsoll COMMAND --help (all),\n"
                             "plimsoll help WORD (a key such as batch_size, or any word), plimsoll --help.\n",
                             &err);
    return status == PL_OK ? 0 : pl_cli_complain("help", status, &err);
}

int pl_cli_print_overview(pl_cli_help_form form)
{
    return form == PL_CLI_HELP_BRIEF ? print_brief_overview() : print_overview();
}

const char *pl_cli_option_help(const pl_cli_option *o, char room[PL_CLI_HELP_BYTES])
{
    const char *gap = strstr(o->help, "%s"), *word = o->words;
    if (!gap) return o->help;
    size_t used = (size_t)snprintf(room, PL_CLI_HELP_BYTES, "%.*s", (int)(gap - o->help), o->help);
    for (size_t bytes; *word && used < PL_CLI_HELP_BYTES; word += bytes + (word[bytes] == ' ')) {
        bytes = strcspn(word, " ");
        const char *before = word == o->words ? "" : word[bytes] ? ", " : " or ";
        used += (size_t)snprintf(room + used, PL_CLI_HELP_BYTES - used, "%s%.*s%s", before, (int)bytes, word,
                                 word == o->words ? " (the default)" : "");
    }
    if (used < PL_CLI_HELP_BYTES) snprintf(room + used, PL_CLI_HELP_BYTES - used, "%s", gap + 2);
    return room;
}

static pl_status put_options(const pl_cli_command *c, pl_error *err)
{
    char left[128], help[PL_CLI_HELP_BYTES];
    pl_status status = pl_put_text("\nOptions:\n", err);
    for (size_t i = 0; i < c->body->option_count && status == PL_OK; i++) {
        const pl_cli_option *o = &c->body->options[i];
        snprintf(left, sizeof left, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        status = put_row(left, pl_cli_option_help(o, help), err);
    }
    return status == PL_OK ? put_row("  -h, --help", "one screen, or all", err) : status;
}

pl_status pl_cli_config_help(const pl_cli_command *c, char **text, size_t *bytes, pl_error *err)
{
    if (c->config >= PL_CLI_PLANS) return pl_command_help(c->command, text, bytes, err);
    pl_config *config = pl_config_create();
    pl_status status = config ? pl_config_text(config, PL_CONFIG_HELP, text, bytes, err)
                              : pl_cli_error(err, PL_E_NOMEM, "no memory for the help");
    pl_config_destroy(config);
    return status;
}

static pl_status put_config_options(const pl_cli_command *c, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_cli_config_help(c, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_text("\n", err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

static int print_all(const pl_cli_command *c)
{
    pl_error err = {0};
    pl_pager pager = pl_pager_begin();
    pl_status status = pl_put_format(&err, "plimsoll %s: %s\n\nusage: plimsoll %s %s [options]\n", c->name, c->summary,
                                     c->name, c->operands);
    if (status == PL_OK && c->body->text) status = pl_put_text("\n", &err);
    if (status == PL_OK && c->body->text) status = put_paragraphs(c->body->text, &err);
    if (status == PL_OK) status = put_options(c, &err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = put_config_options(c, &err);
    return end(&pager, status, &err);
}

/* ---- -h ---- */

/* What fits on the line, up to the end of a clause or else of a word. */
static size_t cut(const char *text, size_t room, const char **dots)
{
    size_t bytes = strlen(text), clause = strcspn(text, ";");
    *dots = "";
    if (bytes <= room) return bytes;
    if (clause <= room) return clause;
    *dots = "...";
    for (bytes = room - 3; bytes && text[bytes] != ' '; bytes--) {
    }
    return bytes;
}

static pl_status put_brief_option(const pl_cli_option *o, pl_error *err)
{
    char left[128], room[PL_CLI_HELP_BYTES];
    const char *dots, *help = pl_cli_option_help(o, room);
    const size_t bytes = cut(help, COLUMNS - LEFT_BRIEF, &dots);
    snprintf(left, sizeof left, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
    return pl_put_format(err, "%-*s%.*s%s\n", LEFT_BRIEF, left, (int)bytes, help, dots);
}

static pl_status put_brief_keys(const pl_cli_command *c, const char *options, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_command_brief(c->command, options, &text, &bytes, err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

static pl_status put_examples(const char *lines, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t bytes; *lines && status == PL_OK; lines += bytes + (lines[bytes] == '\n')) {
        bytes = strcspn(lines, "\n");
        status = pl_put_format(err, "  plimsoll %.*s\n", (int)bytes, lines);
    }
    return status;
}

static int print_brief(const pl_cli_command *c)
{
    const char *lines = "", *options = "";
    pl_error err = {0};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (strcmp(examples[i].name, c->name) == 0) lines = examples[i].lines, options = examples[i].options;
    pl_status status = pl_put_format(&err, "plimsoll %s: %s\n\nusage: plimsoll %s %s [options]\n", c->name, c->summary,
                                     c->name, c->operands);
    if (status == PL_OK) status = put_examples(lines, &err);
    if (status == PL_OK && *options) status = pl_put_text("\nOptions, and what they are by default:\n", &err);
    if (status == PL_OK && !*options && c->body->option_count) status = pl_put_text("\n", &err);
    if (status == PL_OK && *options) status = put_brief_keys(c, options, &err);
    for (size_t i = 0; i < c->body->option_count && status == PL_OK; i++)
        status = put_brief_option(&c->body->options[i], &err);
    if (status == PL_OK)
        status = pl_put_format(&err, "\nAll of it: plimsoll %s --help%s\n", c->name,
                               *options ? "; about one word: plimsoll help batch_size" : "");
    return status == PL_OK ? 0 : pl_cli_complain("help", status, &err);
}

int pl_cli_print_help(const pl_cli_command *c, pl_cli_help_form form)
{
    return form == PL_CLI_HELP_BRIEF ? print_brief(c) : print_all(c);
}

/* ---- help WORD ---- */

/* Only at the beginning of a word: "room" does not mention "oom". */
static bool speaks_of(const char *text, const char *word)
{
    for (const char *at = text; at && *word && (at = strcasestr(at, word)); at++)
        if (at == text || !isalnum((unsigned char)at[-1])) return true;
    return false;
}

static pl_status put_commands(const char *word, bool *found, pl_error *err)
{
    pl_status status = PL_OK;
    const pl_cli_command *c;
    bool first = true;
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) {
        bool speaks = speaks_of(c->summary, word) || speaks_of(c->body->text, word);
        for (size_t n = 0; n < c->body->option_count; n++)
            speaks = speaks || speaks_of(c->body->options[n].name, word) || speaks_of(c->body->options[n].help, word);
        if (!speaks) continue;
        if (first) status = pl_put_format(err, "%sCommands (plimsoll COMMAND --help):\n", *found ? "\n" : "");
        first = false;
        if (status == PL_OK) status = pl_put_format(err, "  %-12s%s\n", c->name, c->summary);
    }
    *found = *found || !first;
    return status;
}

static pl_status put_headings(const char *word, bool *found, pl_error *err)
{
    pl_status status = PL_OK;
    bool first = true;
    for (const pl_cli_heading *h = pl_cli_headings; status == PL_OK && h->page; h++) {
        if (!speaks_of(h->text, word) && !speaks_of(h->page + strlen("docs/"), word)) continue;
        if (first) status = pl_put_format(err, "%sPages of the documentation:\n", *found ? "\n" : "");
        first = false;
        if (status == PL_OK) status = pl_put_format(err, "  %-26s%s\n", h->page, h->text);
    }
    *found = *found || !first;
    return status;
}

static pl_status put_keys(const char *word, bool *found, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_config_about(word, &text, &bytes, err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    *found = bytes > 0;
    pl_text_free(text);
    return status;
}

static int search_for(const char *word)
{
    const pl_cli_command *near = pl_cli_nearest(word);
    pl_error err = {0};
    bool found = false;
    pl_pager pager = pl_pager_begin();
    pl_status status = put_keys(word, &found, &err);
    if (status == PL_OK) status = put_commands(word, &found, &err);
    if (status == PL_OK) status = put_headings(word, &found, &err);
    if (status == PL_OK && !found)
        status = pl_cli_error(&err, PL_E_USAGE, "no command %.60s, and no key or page mentions it; %s%s%s", word,
                              near ? "did you mean " : "see plimsoll help", near ? near->name : "", near ? "?" : "");
    (void)pl_pager_end(&pager);
    return status == PL_OK ? 0 : pl_cli_complain("help", status, &err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_error err = {0};
    if (argc < 2) return print_overview();
    if (argc > 2) {
        pl_cli_error(&err, PL_E_USAGE, "one word only, but there is also %.200s", argv[2]);
        return pl_cli_complain(command->name, PL_E_USAGE, &err);
    }
    const char *word = argv[1] + strspn(argv[1], "-"); /* "--batch_size" is a word, too */
    const pl_cli_command *about = pl_cli_find(word);
    return about ? print_all(about) : search_for(word);
}

const pl_cli_body pl_cli_help = {.run = run};
