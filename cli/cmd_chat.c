/* plimsoll chat: generate, with messages in place of texts. */
#include <string.h>

#include "generate.h"

static const char about[] =
    "Talks with a pretrained model: MODEL is a folder as Hugging Face's libraries write it, a GGUF file, or a config "
    "that "
    "names one. The model sees the chat as the template that comes with it writes it (--chat_template: another); "
    "--system is the message that it begins with. MESSAGE is a text, @FILE a file that has it, - standard input: it is "
    "answered, and that is all. Without one each line of standard input is a message: Ctrl-C ends an answer, and "
    "Ctrl-D the chat.\n";

pl_status pl_cli_set_chat(const pl_cli_input *in, pl_error *err)
{
    bool is_brought;
    pl_status status = pl_cli_find_brought(in, &is_brought, err);
    if (status == PL_OK && !is_brought)
        return pl_cli_error(err, PL_E_CONFIG,
                            "%.300s: names no pretrained model, which a chat needs; give its folder or GGUF file",
                            in->arguments.operand[0]);
    if (status == PL_OK) status = pl_config_set(in->config, "generate.chat", "true", "chat", err);
    return status == PL_OK ? pl_config_check(in->config, err) : status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_set_chat(&in, &err);
    int code = status == PL_OK ? pl_cli_write_texts(command, &in) : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_chat = {.text = about,
                                 .options = pl_cli_generate_options,
                                 .option_count = PL_CLI_CHAT_OPTIONS,
                                 .takes_many = true,
                                 .run = run};
