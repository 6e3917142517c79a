/* What generate and chat have in common. */
#ifndef PL_CLI_GENERATE_H
#define PL_CLI_GENERATE_H

#include "load.h"

/* generate takes one more, the last: a checkpoint. */
enum { PL_CLI_CHAT_OPTIONS = 7 };
extern const pl_cli_option pl_cli_generate_options[];

/* Makes the config that of a chat. PL_E_CONFIG: it names no pretrained model. */
pl_status pl_cli_set_chat(const pl_cli_input *, pl_error *);
/* The command's work, with a config that is loaded; returns the exit code of a failure. */
int pl_cli_write_texts(const pl_cli_command *, const pl_cli_input *);

#endif
