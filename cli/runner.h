/* From plan to run: the planner hands what it made to a fresh process of the same executable (launch.c), which does the
 * work and measures itself (runner.c). Between them there are only arguments and memory files: nothing appears in the
 * folder of the run before the runner holds its lock, so a second run there overwrites nothing. */
#ifndef PL_CLI_RUNNER_H
#define PL_CLI_RUNNER_H

#include "command.h"

#define PL_CLI_RUNNER "__run"

/* What the runner is told, as "--name=text" each. NULL: not said. */
typedef enum pl_call_word {
    PL_CALL_LOCK,       /* the plan */
    PL_CALL_OUT,        /* folder in which plan and report are kept */
    PL_CALL_HTML,       /* descriptor of the plan's page, to be kept there */
    PL_CALL_STARTS,     /* likewise of the text that says how the run was started */
    PL_CALL_RESUME,     /* run.resume: "true", "false", "auto" */
    PL_CALL_AGAIN,      /* the command that goes on, for a shell */
    PL_CALL_SHOW,       /* "bar", "plain", "json" */
    PL_CALL_QUIET,      /* "1": no progress; "2": no warnings either */
    PL_CALL_SUMMARY,    /* "1": a few lines at the end */
    PL_CALL_LEDGER,     /* "1": and the whole ledger, and the table of times */
    PL_CALL_THEN,       /* the command that makes use of what was made, for a shell */
    PL_CALL_JSON,       /* "1": the result as JSON */
    PL_CALL_PROMPT,     /* what the text begins with */
    PL_CALL_FROM,       /* the file that has it */
    PL_CALL_ANSWERS,    /* "1": prompts are lines of stdin; "chat": they are messages of one chat */
    PL_CALL_SEVERAL,    /* prompts come from a file of several: texts of each */
    PL_CALL_CHECKPOINT, /* this one */
    PL_CALL_TO,         /* file of the gradients */
    PL_CALL_NEXT,       /* descriptor of the words of the command, which goes on where results are still to be made */
    PL_CALL_GOES_ON,    /* "1": it was begun so */
    PL_CALL_APART,      /* "1": what comes out goes to files, and stdout is free for progress as JSON */
    PL_CALL_STAGE,      /* of several trainings, this one: behind it the command goes on with the next (PL_CALL_NEXT) */
    PL_CALL_WORDS
} pl_call_word;

typedef struct pl_call {
    const pl_cli_command *command; /* one that runs */
    const char *word[PL_CALL_WORDS];
    const char *plan; /* a lock file that is run instead of planning anew; NULL: none. Not told the runner */
} pl_call;

/* ---- launch.c ---- */
/* Replaces this process by the runner; returns the failure's status. The call's words other than the lock, HTML and the
 * starts are the caller's to fill; keep: write these into call->word[PL_CALL_OUT]. */
pl_status pl_cli_launch(const pl_plan *, bool keep, pl_call *, pl_error *);
/* Replaces this process by the command whose words were staged, PL_CALL_NEXT. Returns only on failure. */
pl_status pl_cli_go_on(int descriptor, pl_error *);
/* Reads such words back. */
pl_status pl_call_parse(int argc, char **argv, pl_call *, pl_error *);

/* ---- runner.c ---- */
/* argv[0] is PL_CLI_RUNNER; returns the exit code. */
int pl_cli_run(int argc, char **argv);

#endif
