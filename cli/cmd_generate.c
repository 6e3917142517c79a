/* plimsoll generate: text from a trained model, in a process of its own with a plan of its own. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "generate.h"
#include "out.h"
#include "planning.h"

enum { JSON, QUIET, LEDGER, VERBOSE, PROMPT, FROM, TOKENS, CHECKPOINT };
enum { PROMPT_BYTES = 8192, INPUT_MAX = 16 << 20 /* bytes, as of a file */ };
const pl_cli_option pl_cli_generate_options[] = {
    [JSON] = {"--json", NULL, "each text as a line of JSON with its speed (plimsoll.generate/1), without the prompt"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors beside the text", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, to stderr"},
    [VERBOSE] = {"--verbose", NULL, "print the report of the plan first, to stderr", true},
    [PROMPT] = {"-p", "TEXT", "another name of --prompt"},
    [FROM] = {"-f", "FILE", "another name of --prompt @FILE"},
    [TOKENS] = {"-n", "N", "another name of --tokens"},
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
};

static const char about[] =
    "Writes the prompt and the model's continuation to stdout, as it comes, and how fast that was to stderr. CONFIG is "
    "the run's config file or the folder of the run, or a pretrained model (docs/own-models.md). PROMPT (or --prompt) "
    "is a text, @FILE a file that has it, - "
    "standard "
    "input. Without one standard input is the prompt where it is a pipe or a file; on a terminal each line that you "
    "type "
    "is one: Ctrl-C ends an answer, and at the prompt the command. The same seed gives the same text. docs/generate.md "
    "says in which order the sampling options act.\n";

/* ---- the prompt ---- */

/* Texts that a config cannot hold go into a file, which ends with a line break that is no part of them. */
static pl_status stage_text(const pl_cli_input *in, const char *text, pl_error *err)
{
    char path[PL_CLI_NAMELESS_BYTES];
    int fd;
    pl_status status = pl_cli_open_nameless(in, path, &fd, err);
    if (status == PL_OK && dprintf(fd, "%s\n", text) < 0)
        status = pl_cli_error(err, PL_E_STORAGE, "the prompt cannot be put into a file; give it as @FILE");
    return status == PL_OK ? pl_config_set(in->config, "generate.prompt_file", path, "the prompt", err) : status;
}

static pl_status copy_input(int to, bool *any, pl_error *err)
{
    char piece[4096];
    ssize_t n, bytes = 0;
    while ((n = read(STDIN_FILENO, piece, sizeof piece)) > 0) {
        *any = true;
        if ((bytes += n) > INPUT_MAX)
            return pl_cli_error(err, PL_E_USAGE, "standard input has more than 16 MiB; give a shorter prompt");
        if (write(to, piece, (size_t)n) != n)
            return pl_cli_error(err, PL_E_STORAGE, "standard input cannot be kept in a file; give it as @FILE");
    }
    return n < 0 ? pl_cli_error(err, PL_E_STORAGE, "standard input cannot be read") : PL_OK;
}

static pl_status take_input(const pl_cli_input *in, const char *key, pl_error *err)
{
    char path[PL_CLI_NAMELESS_BYTES];
    bool any = false;
    int fd;
    pl_status status = pl_cli_open_nameless(in, path, &fd, err);
    if (status == PL_OK) status = copy_input(fd, &any, err);
    return status == PL_OK && any ? pl_config_set(in->config, key, path, "standard input", err) : status;
}

static pl_status set(const pl_cli_input *in, const char *key, const char *value, pl_error *err)
{
    return pl_config_set(in->config, key, value, "the prompt", err);
}

/* In place of what the config has: a prompt, a file that is one, or a file of several. */
static pl_status take_prompt(const pl_cli_input *in, const char *prompt, bool has_several, pl_error *err)
{
    pl_error ignored = {0};
    pl_status status = set(in, "generate.prompt", "", err);
    if (status == PL_OK && has_several) status = set(in, "generate.prompts", "none", err);
    if (status == PL_OK) status = set(in, "generate.prompt_file", "none", err);
    if (status != PL_OK) return status;
    if (strcmp(prompt, "-") == 0) return take_input(in, "generate.prompt_file", err);
    if (prompt[0] == '@') return set(in, "generate.prompt_file", prompt + 1, err);
    return set(in, "generate.prompt", prompt, &ignored) == PL_OK ? PL_OK : stage_text(in, prompt, err);
}

/* Where several name it. */
static pl_status check_one(const char *const *given, size_t count, pl_error *err)
{
    static const char *const names[] = {
        "PROMPT after the config", "-p", "-f", "--prompt", "--prompts", "--interactive"};
    const char *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!given[i]) continue;
        if (first)
            return pl_cli_error(err, PL_E_USAGE, "%s and %s both say where prompts come from; leave one out", first,
                                names[i]);
        first = names[i];
    }
    return PL_OK;
}

/* Nobody has named a prompt: what is there? */
static pl_status take_what_is_there(const pl_cli_input *in, bool chats, pl_error *err)
{
    struct stat info;
    if (chats || isatty(STDIN_FILENO))
        return pl_config_set(in->config, "generate.interactive", "true", "the terminal", err);
    const bool has =
        fstat(STDIN_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
    return has ? take_input(in, "generate.prompt_file", err) : PL_OK;
}

/* The config has a prompt of its own, and something waits to be read. */
static void warn_unread(void)
{
    struct stat info;
    int bytes = 0;
    if (fstat(STDIN_FILENO, &info) != 0) return;
    const bool is_pipe = S_ISFIFO(info.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0;
    if (is_pipe ? bytes > 0 : S_ISREG(info.st_mode) && info.st_size > 0)
        pl_say("plimsoll generate: warning: standard input is not read, for the config has a prompt; write - to read "
               "it\n");
}

/* What the config says of it, whoever said so. */
typedef struct source {
    char prompt[PROMPT_BYTES], file[PATH_MAX], prompts[PATH_MAX], samples[24];
    bool is_file, answers, chats, has_several;
} source;

static pl_status find_several(const pl_cli_input *in, source *s, pl_error *err)
{
    pl_status status = pl_cli_setting(in->config, "generate", "prompts", s->prompts, sizeof s->prompts, err);
    if (status == PL_OK)
        status = pl_cli_setting(in->config, "generate", "num_samples", s->samples, sizeof s->samples, err);
    s->has_several = s->prompts[0] && strcmp(s->prompts, "none") != 0; /* not said: "" */
    return status;
}

static pl_status find_source(const pl_cli_input *in, source *s, pl_error *err)
{
    char word[8];
    pl_status status = pl_cli_setting(in->config, "generate", "prompt", s->prompt, sizeof s->prompt, err);
    if (status == PL_OK) status = pl_cli_setting(in->config, "generate", "prompt_file", s->file, sizeof s->file, err);
    if (status == PL_OK) status = pl_cli_setting(in->config, "generate", "interactive", word, sizeof word, err);
    if (status == PL_OK) status = find_several(in, s, err);
    s->is_file = strcmp(s->file, "none") != 0;
    s->answers = strcmp(word, "true") == 0;
    if (status == PL_OK) status = pl_cli_setting(in->config, "generate", "chat", word, sizeof word, err);
    s->chats = strcmp(word, "true") == 0;
    return status;
}

/* Options that only a chat reads. */
static pl_status check_chat(const pl_cli_input *in, pl_error *err)
{
    static const char *const keys[] = {"generate.system", "generate.template"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pl_config_is_option(in->config, keys[i]))
            return pl_cli_error(err, PL_E_USAGE,
                                "`%s` is of a chat, and this writes on from a text; leave it out, or use "
                                "plimsoll chat",
                                keys[i]);
    return PL_OK;
}

static pl_status take_source(const pl_cli_input *in, source *s, pl_error *err)
{
    char from[PATH_MAX + 1];
    const char *const *value = in->arguments.value;
    pl_status status = find_source(in, s, err);
    if (status == PL_OK && !s->chats) status = check_chat(in, err);
    if (status != PL_OK) return status;
    snprintf(from, sizeof from, "@%s", value[FROM] ? value[FROM] : "");
    const bool is_several = s->has_several && pl_config_is_option(in->config, "generate.prompts");
    const char *given[] = {in->arguments.operand_count > 1 ? in->arguments.operand[1] : NULL,
                           value[PROMPT],
                           value[FROM] ? from : NULL,
                           pl_config_is_option(in->config, "generate.prompt") ? s->prompt : NULL,
                           is_several ? "" : NULL,
                           pl_config_is_option(in->config, "generate.interactive") && s->answers ? "" : NULL};
    status = check_one(given, sizeof given / sizeof *given, err);
    if (status != PL_OK || s->answers) return status;
    for (size_t i = 0; i < sizeof given / sizeof *given && !is_several; i++)
        if (given[i]) return take_prompt(in, given[i], s->has_several, err);
    if (strcmp(s->prompts, "-") == 0) return take_input(in, "generate.prompts", err);
    if (s->has_several) return PL_OK;
    if (!s->prompt[0] && !s->is_file) return take_what_is_there(in, s->chats, err);
    warn_unread();
    return PL_OK;
}

static pl_status check_words(const pl_cli_input *in, pl_error *err)
{
    const pl_cli_arguments *a = &in->arguments;
    if (a->operand_count > 2)
        return pl_cli_error(err, PL_E_USAGE,
                            "one prompt only, but there is also %.200s; put a text of several words in quotes",
                            a->all[2]);
    return a->value[TOKENS] ? pl_config_set(in->config, "generate.tokens", a->value[TOKENS], "-n", err) : PL_OK;
}

/* ---- the command ---- */

int pl_cli_write_texts(const pl_cli_command *command, const pl_cli_input *in)
{
    static source s; /* large */
    char said[256] = "";
    const char *const *value = in->arguments.value;
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.command = command};
    pl_status status = check_words(in, &err);
    if (status == PL_OK) status = pl_cli_require_trained(in, value[CHECKPOINT], false, &err);
    if (status == PL_OK) status = pl_talk_read(in->config, value[QUIET], value[VERBOSE], &talk, &err);
    if (status == PL_OK) status = take_source(in, &s, &err);
    if (status == PL_OK) status = find_source(in, &s, &err);
    if (status == PL_OK) status = pl_config_take_sampling(in->config, said, sizeof said, &err);
    if (said[0] && !talk.quiet) pl_say("sampling as generation_config.json says: %s\n", said);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    call.word[PL_CALL_CHECKPOINT] = value[CHECKPOINT];
    call.word[PL_CALL_LEDGER] = value[LEDGER] ? "1" : NULL;
    call.word[PL_CALL_JSON] = value[JSON] ? "1" : NULL;
    const bool is_shown = !s.answers && !s.chats && !s.has_several;
    call.word[PL_CALL_PROMPT] = is_shown && !s.is_file ? s.prompt : NULL;
    call.word[PL_CALL_FROM] = is_shown && s.is_file ? s.file : NULL;
    call.word[PL_CALL_SEVERAL] = s.has_several ? s.samples : NULL;
    call.word[PL_CALL_ANSWERS] = !s.answers ? NULL : s.chats ? "chat" : "1";
    return pl_cli_start(in, &talk, false, &call);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    int code = status == PL_OK ? pl_cli_write_texts(command, &in) : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_generate = {
    .text = about, .options = pl_cli_generate_options, .option_count = CHECKPOINT + 1, .takes_many = true, .run = run};
