/* The runner's arguments, and the memory files that carry the plan to it. The runner copies them into the run's folder
 * once it holds the lock, and closes them: after "committed" they hold no memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "again.h"
#include "runner.h"
#include "signals.h"

extern char **environ;

enum { DESCRIPTOR_BYTES = 32, WORDS_BYTES = 32768 };

static const char *const word_names[PL_CALL_WORDS] = {
    [PL_CALL_LOCK] = "lock",
    [PL_CALL_OUT] = "out",
    [PL_CALL_HTML] = "html",
    [PL_CALL_STARTS] = "starts",
    [PL_CALL_RESUME] = "resume",
    [PL_CALL_AGAIN] = "again",
    [PL_CALL_SHOW] = "show",
    [PL_CALL_QUIET] = "quiet",
    [PL_CALL_SUMMARY] = "summary",
    [PL_CALL_LEDGER] = "ledger",
    [PL_CALL_THEN] = "then",
    [PL_CALL_JSON] = "json",
    [PL_CALL_PROMPT] = "prompt",
    [PL_CALL_FROM] = "from",
    [PL_CALL_SEVERAL] = "several",
    [PL_CALL_ANSWERS] = "answers",
    [PL_CALL_CHECKPOINT] = "checkpoint",
    [PL_CALL_TO] = "to",
    [PL_CALL_NEXT] = "next",
    [PL_CALL_GOES_ON] = "goes_on",
    [PL_CALL_APART] = "apart",
    [PL_CALL_STAGE] = "stage",
};

static pl_status write_memory(int fd, const char *text, size_t bytes, pl_error *err)
{
    while (bytes) {
        ssize_t n = write(fd, text, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return pl_cli_error(err, PL_E_NOMEM, "the plan cannot be handed to the runner: %s", strerror(errno));
        text += n;
        bytes -= (size_t)n;
    }
    return PL_OK;
}

/* Text into a memory file that survives exec. */
static pl_status stage(const char *name, const char *text, size_t bytes, int *fd, pl_error *err)
{
    *fd = memfd_create(name, 0);
    if (*fd < 0)
        return pl_cli_error(err, PL_E_UNSUPPORTED, "the plan cannot be handed to the runner: memfd_create: %s",
                            strerror(errno));
    return write_memory(*fd, text, bytes, err);
}

static pl_status stage_plan(const pl_plan *plan, pl_plan_form form, const char *name, int *fd, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_plan_text(plan, form, &text, &bytes, err);
    if (status == PL_OK) status = stage(name, text, bytes, fd, err);
    pl_text_free(text);
    return status;
}

/* A training goes on without: *fd is -1 where what lies in the place of the list must be left alone. */
static pl_status stage_starts(const pl_call *call, int *fd, pl_error *err)
{
    char command[PL_AGAIN_BYTES], *text = NULL;
    size_t bytes = 0;
    pl_error why = {0};
    const bool goes_on = strcmp(call->word[PL_CALL_RESUME], "false") != 0;
    pl_again_print(NULL, command);
    pl_status status = pl_starts_text(call->word[PL_CALL_OUT], goes_on, command, &text, &bytes, &why);
    if (status == PL_OK) {
        status = stage("plimsoll starts", text, bytes, fd, err);
        pl_text_free(text);
        return status;
    }
    if (status != PL_E_STORAGE && status != PL_E_DATA) return pl_cli_error(err, status, "%s", why.text);
    if (strcmp(call->word[PL_CALL_QUIET], "2") != 0)
        pl_say("warning: %s; it is left alone, and how this run was started is not kept\n", why.text);
    return PL_OK;
}

/* "--prompt=text" for each word said, into a static block: this is called once, and exec copies it. */
static pl_status build_arguments(const pl_call *call, char **argv, pl_error *err)
{
    static char block[32768];
    size_t used = 0, count = 0;
    argv[count++] = "plimsoll";
    argv[count++] = PL_CLI_RUNNER;
    argv[count++] = (char *)call->command->name;
    for (int i = 0; i < PL_CALL_WORDS; i++) {
        if (!call->word[i]) continue;
        int n = snprintf(block + used, sizeof block - used, "--%s=%s", word_names[i], call->word[i]);
        if (n < 0 || (size_t)n >= sizeof block - used)
            return pl_cli_error(err, PL_E_USAGE, "%s is too long", word_names[i]);
        argv[count++] = block + used;
        used += (size_t)n + 1;
    }
    argv[count] = NULL;
    return PL_OK;
}

static pl_status exec_runner(const pl_call *call, pl_error *err)
{
    char *argv[PL_CALL_WORDS + 4];
    pl_status status = build_arguments(call, argv, err);
    if (status != PL_OK) return status;
    pl_signals_hold();
    return pl_runner_exec(call->word[PL_CALL_LOCK], argv, environ, err);
}

/* The words of this command, each with its end, for the process that goes on when the runner is through. */
static pl_status stage_words(int *fd, pl_error *err)
{
    const char *const *words;
    int count = pl_again_words(&words);
    size_t bytes = 0;
    *fd = -1;
    for (int i = 0; i < count; i++) bytes += strlen(words[i]) + 1;
    if (count == 0 || count > PL_AGAIN_WORDS || bytes >= WORDS_BYTES)
        return pl_cli_error(
            err, PL_E_USAGE,
            "so many words cannot be handed on from process to process; put options into the config file");
    pl_status status = stage("plimsoll words", words[0], strlen(words[0]) + 1, fd, err);
    for (int i = 1; i < count && status == PL_OK; i++) status = write_memory(*fd, words[i], strlen(words[i]) + 1, err);
    return status;
}

/* In place of the runner. Returns only where that fails. */
pl_status pl_cli_go_on(int fd, pl_error *err)
{
    static char block[WORDS_BYTES], *argv[PL_AGAIN_WORDS + 1];
    ssize_t bytes = pread(fd, block, sizeof block - 1, 0);
    int count = 0;
    close(fd);
    for (char *word = block; word < block + bytes && count < PL_AGAIN_WORDS; word += strlen(word) + 1)
        argv[count++] = word;
    if (bytes <= 0 || bytes == (ssize_t)sizeof block - 1)
        return pl_cli_error(err, PL_E_USAGE, "the command is too long to be begun again; begin it again by hand");
    pl_signals_hold();
    execv("/proc/self/exe", argv);
    return pl_cli_error(err, PL_E_UNSUPPORTED, "the command cannot be begun again: %s; begin it again by hand",
                        strerror(errno));
}

pl_status pl_cli_launch(const pl_plan *plan, bool keep, pl_call *call, pl_error *err)
{
    char lock[DESCRIPTOR_BYTES], page[DESCRIPTOR_BYTES], starts[DESCRIPTOR_BYTES], next[DESCRIPTOR_BYTES];
    int lock_fd = -1, page_fd = -1, starts_fd = -1, next_fd = -1;
    pl_status status = stage_plan(plan, PL_PLAN_LOCK, "plimsoll plan", &lock_fd, err);
    if (status == PL_OK && keep) status = stage_plan(plan, PL_PLAN_HTML, "plimsoll page", &page_fd, err);
    if (status == PL_OK && keep) status = stage_starts(call, &starts_fd, err);
    if (status == PL_OK && (call->word[PL_CALL_STAGE] || pl_command_does(call->command->command, PL_USES_RESULTS)))
        status = stage_words(&next_fd, err);
    snprintf(lock, sizeof lock, "/proc/self/fd/%d", lock_fd);
    snprintf(page, sizeof page, "%d", page_fd);
    call->word[PL_CALL_LOCK] = lock;
    call->word[PL_CALL_HTML] = keep ? page : NULL;
    snprintf(starts, sizeof starts, "%d", starts_fd);
    call->word[PL_CALL_STARTS] = starts_fd >= 0 ? starts : NULL;
    snprintf(next, sizeof next, "%d", next_fd);
    call->word[PL_CALL_NEXT] = next_fd >= 0 ? next : NULL;
    if (status == PL_OK) status = pl_runner_hand_on(plan, err);
    if (status == PL_OK) status = exec_runner(call, err);
    if (lock_fd >= 0) close(lock_fd);
    if (page_fd >= 0) close(page_fd);
    if (starts_fd >= 0) close(starts_fd);
    if (next_fd >= 0) close(next_fd);
    return status;
}

static pl_status parse_word(const char *word, pl_call *call, pl_error *err)
{
    const char *equals = strchr(word, '=');
    for (int i = 0; i < PL_CALL_WORDS && equals && strncmp(word, "--", 2) == 0; i++) {
        size_t bytes = strlen(word_names[i]);
        if ((size_t)(equals - word) != bytes + 2 || strncmp(word + 2, word_names[i], bytes) != 0) continue;
        call->word[i] = equals + 1;
        return PL_OK;
    }
    return pl_cli_error(err, PL_E_USAGE, "__run is internal; use plimsoll train, eval, generate, verify or rollout");
}

pl_status pl_call_parse(int argc, char **argv, pl_call *call, pl_error *err)
{
    *call = (pl_call){.command = argc > 1 ? pl_cli_find(argv[1]) : NULL};
    if (!call->command || call->command->config != PL_CLI_RUNS || argc < 3) return parse_word("", call, err);
    for (int i = 2; i < argc; i++) {
        pl_status status = parse_word(argv[i], call, err);
        if (status != PL_OK) return status;
    }
    return call->word[PL_CALL_LOCK] ? PL_OK : parse_word("", call, err);
}
