/* plimsoll config: the effective configuration, and what there is to configure. */
#include <string.h>

#include "load.h"
#include "out.h"

enum { JSON, SCHEMA, MARKDOWN };
static const pl_cli_option options[] = {
    [JSON] = {"--json", NULL, "the effective config as JSON", true},
    [SCHEMA] = {"--schema", NULL, "the JSON Schema of config files, for editors; takes no CONFIG", true},
    [MARKDOWN] = {"--markdown", NULL, "the reference of all keys; takes no CONFIG", true},
};

static const char about[] =
    "Prints the config with every default, variable and option applied, as YAML that reads back.\n";

static pl_status put_config(const pl_config *config, pl_config_form form, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_config_text(config, form, &text, &bytes, err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

/* Schema and reference are of no config: one that is given, or an option of it, is a misunderstanding. */
static pl_status take_no_config(const pl_cli_command *command, int argc, char **argv, pl_config *config,
                                pl_cli_arguments *a, pl_error *err)
{
    int left = argc;
    pl_status status = pl_config_apply_args(config, &left, argv, err);
    if (status == PL_OK) status = pl_cli_parse(command, left, argv, a, err);
    if (status != PL_OK || (left == argc && a->operand_count == 0)) return status;
    return pl_cli_error(err, PL_E_USAGE, "%s takes neither a config nor its options; remove them",
                        options[a->value[SCHEMA] ? SCHEMA : MARKDOWN].name);
}

static pl_status put_reference(const pl_cli_command *command, int argc, char **argv, pl_error *err)
{
    pl_cli_arguments a;
    pl_config *config = pl_config_create();
    if (!config) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = take_no_config(command, argc, argv, config, &a, err);
    if (status == PL_OK) status = put_config(config, a.value[SCHEMA] ? PL_CONFIG_SCHEMA : PL_CONFIG_MARKDOWN, err);
    pl_config_destroy(config);
    return status;
}

static bool wants_reference(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], options[SCHEMA].name) == 0 || strcmp(argv[i], options[MARKDOWN].name) == 0) return true;
    return false;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in = {0};
    pl_error err = {0};
    pl_status status;
    if (wants_reference(argc, argv)) {
        status = put_reference(command, argc, argv, &err);
    } else {
        status = pl_cli_load(command, argc, argv, 0, &in, &err);
        if (status == PL_OK)
            status = put_config(in.config, in.arguments.value[JSON] ? PL_CONFIG_JSON : PL_CONFIG_YAML, &err);
    }
    pl_cli_release(&in);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_config = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
