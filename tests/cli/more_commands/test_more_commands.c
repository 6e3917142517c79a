/* A row of plimsoll/commands.def is a subcommand: cli/commands.c, compiled with two rows more than the product has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "command.h"

/* Of the files cli/cmd_*.c, which are not here. */
#define PL_CLI_ROW(id, ...) const pl_cli_body pl_cli_##id;
#include "subcommands.def"
#undef PL_CLI_ROW
const pl_cli_body pl_cli_job;

static void check_job(const char *name, pl_command command, const char *summary)
{
    const pl_cli_command *c = pl_cli_find(name);
    assert_non_null(c);
    assert_ptr_equal(c->body, &pl_cli_job);
    assert_int_equal(c->config, PL_CLI_RUNS);
    assert_int_equal(c->command, command);
    assert_string_equal(c->summary, summary);
    assert_string_equal(c->operands, "CONFIG|FOLDER");
}

static void a_row_is_enough(void **state)
{
    (void)state;
    check_job("embed", PL_COMMAND_EMBED, "turn samples into vectors");
    check_job("distil", PL_COMMAND_DISTILLATION, "a small model from a large one");
    assert_null(pl_cli_find("distillation"));
    assert_ptr_equal(pl_cli_nearest("embe"), pl_cli_find("embed"));
    assert_ptr_equal(pl_cli_nearest("distillation"), pl_cli_find("distil"));
}

/* In the order of subcommands.def, each with its own body; the others behind them, once. */
static void what_has_a_file_of_its_own_keeps_it(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const pl_cli_body *body;
    } rows[] = {{"plan", &pl_cli_plan},
                {"fit", &pl_cli_fit},
                {"train", &pl_cli_train},
                {"ablate", &pl_cli_ablate},
                {"generate", &pl_cli_generate},
                {"chat", &pl_cli_chat},
                {"eval", &pl_cli_eval},
                {"verify", &pl_cli_verify},
                {"rollout", &pl_cli_rollout},
                {"encode", &pl_cli_encode},
                {"quantize", &pl_cli_quantize},
                {"infer", &pl_cli_infer},
                {"export", &pl_cli_export},
                {"convert", &pl_cli_convert},
                {"place", &pl_cli_place},
                {"recompute", &pl_cli_recompute},
                {"results", &pl_cli_results},
                {"storage", &pl_cli_storage},
                {"report", &pl_cli_report},
                {"top", &pl_cli_top},
                {"synth", &pl_cli_synth},
                {"draw", &pl_cli_draw},
                {"machine", &pl_cli_machine},
                {"doctor", &pl_cli_doctor},
                {"config", &pl_cli_config},
                {"completion", &pl_cli_completion},
                {"help", &pl_cli_help},
                {"embed", &pl_cli_job},
                {"distil", &pl_cli_job}};
    const size_t count = sizeof rows / sizeof *rows;
    for (size_t i = 0; i < count; i++) {
        assert_non_null(pl_cli_at(i));
        assert_string_equal(pl_cli_at(i)->name, rows[i].name);
        assert_ptr_equal(pl_cli_at(i)->body, rows[i].body);
        assert_ptr_equal(pl_cli_find(rows[i].name), pl_cli_at(i));
    }
    assert_null(pl_cli_at(count));
    assert_null(pl_cli_at(count + 1));
    assert_int_equal(pl_cli_find("verify")->command, PL_COMMAND_GRADIENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_row_is_enough),
                                       cmocka_unit_test(what_has_a_file_of_its_own_keeps_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
