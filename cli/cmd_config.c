/* plimsoll config: the effective configuration, and what there is to configure. */
#include "load.h"
#include "out.h"

enum { JSON, SCHEMA, MARKDOWN };
static const pl_cli_option options[] = {
    [JSON] = {"--json", NULL, "the effective config as JSON"},
    [SCHEMA] = {"--schema", NULL, "the JSON Schema of config files, for editors; needs no CONFIG"},
    [MARKDOWN] = {"--markdown", NULL, "the reference of all keys; needs no CONFIG"},
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

static pl_status put_reference(pl_config_form form, pl_error *err)
{
    pl_config *config = pl_config_create();
    if (!config) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = put_config(config, form, err);
    pl_config_destroy(config);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_cli_input in = {0};
    pl_error err = {0};
    pl_status status;
    if (pl_cli_parse(command, argc, argv, &a, &err) == PL_OK && a.operand_count == 0 &&
        (a.value[SCHEMA] || a.value[MARKDOWN])) {
        status = put_reference(a.value[SCHEMA] ? PL_CONFIG_SCHEMA : PL_CONFIG_MARKDOWN, &err);
    } else {
        status = pl_cli_load(command, argc, argv, 0, &in, &err);
        const char *const *value = in.arguments.value;
        pl_config_form form = value[JSON]       ? PL_CONFIG_JSON
                              : value[SCHEMA]   ? PL_CONFIG_SCHEMA
                              : value[MARKDOWN] ? PL_CONFIG_MARKDOWN
                                                : PL_CONFIG_YAML;
        if (status == PL_OK) status = put_config(in.config, form, &err);
    }
    pl_cli_release(&in);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_command pl_cli_config = {.name = "config",
                                      .operands = "CONFIG",
                                      .summary = "print the effective configuration",
                                      .text = about,
                                      .options = options,
                                      .option_count = sizeof options / sizeof *options,
                                      .takes_config = true,
                                      .run = run};
