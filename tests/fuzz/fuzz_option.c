/* Options and environment: the input is words parted by zero bytes. Those with PLIMSOLL_ at the beginning are the
 * environment, the others the command line. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "fuzz/fuzz.h"

enum { WORDS = 16 };

static void check_accepted(const pl_config *config)
{
    static pl_config again;
    pl_error err = {0};
    pl_str yaml = {0};
    pl_config_print_yaml(config, &yaml);
    pl_config_default(&again);
    pl_status status = pl_config_load_text(&again, "again", pl_str_text(&yaml), yaml.bytes, &err);
    FUZZ_CHECK(status == PL_OK, "what was printed is refused: %s", err.text);
    FUZZ_CHECK(pl_config_equal(config, &again), "what was printed loads as another config:\n%s", pl_str_text(&yaml));
    pl_str_deinit(&yaml);
    status = pl_config_check(config, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
    for (int reader = 1; reader < PL_CONFIG_BY_ANY; reader *= 2) {
        status = pl_config_check_options(config, (pl_config_reader)reader, &err);
        if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
    }
}

static void apply(char **arguments, int count, char **environment)
{
    static pl_config config;
    pl_error err = {0};
    pl_config_default(&config);
    pl_status status = pl_config_apply_args(&config, &count, arguments, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
    if (status == PL_OK && count > 1 && arguments[1][0] == '-')
        fuzz_refused(pl_config_unknown_option(arguments[1], NULL, 0, &err), &err, "", FUZZ_NAME);
    pl_status other = pl_config_apply_env(&config, environment, &err);
    if (other != PL_OK) fuzz_refused(other, &err, "", FUZZ_NAME);
    if (status == PL_OK && other == PL_OK) check_accepted(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *arguments[WORDS + 2] = {"plimsoll"}, *environment[WORDS + 1];
    int argument_count = 1, variables = 0;
    uint64_t before = pl_alloc_live_blocks();
    char *text = malloc(size + 1);
    FUZZ_CHECK(text, "no memory");
    memcpy(text, data, size);
    text[size] = 0;
    for (char *word = text; word < text + size && argument_count + variables < WORDS; word += strlen(word) + 1) {
        if (strncmp(word, "PLIMSOLL_", 9) == 0)
            environment[variables++] = word;
        else
            arguments[argument_count++] = word;
    }
    arguments[argument_count] = environment[variables] = NULL;
    apply(arguments, argument_count, environment);
    free(text);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
