/* The table of commands: every name leads back to its command, and what each uses fits together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "plan/command.h"
#include "support/program.h"

static void names_lead_back(void **state)
{
    (void)state;
    pl_command found;
    for (int c = 0; c < PL_COMMAND_COUNT; c++) {
        const pl_command_row *row = pl_command_row_of((pl_command)c);
        assert_true(pl_command_parse(pl_command_name((pl_command)c), &found) && found == (pl_command)c);
        if (row->other[0]) assert_true(pl_command_parse(row->other, &found) && found == (pl_command)c);
    }
    assert_true(pl_command_parse("eval", &found) && found == PL_COMMAND_EVALUATE);
    const char *none[] = {"", "trai", "trainx"};
    for (int k = 0; k < 3; k++) assert_false(pl_command_parse(none[k], &found));
}

/* What changes weights needs gradients, and those need samples. */
static void uses_fit_together(void **state)
{
    (void)state;
    for (int c = 0; c < PL_COMMAND_COUNT; c++) {
        bool gradient = pl_command_does((pl_command)c, PL_USES_GRADIENT),
             data = pl_command_does((pl_command)c, PL_USES_DATA);
        assert_true(gradient || !pl_command_does((pl_command)c, PL_USES_UPDATE | PL_USES_WHOLE_BATCH));
        assert_true(data || !pl_command_does((pl_command)c, PL_USES_GRADIENT | PL_USES_VALIDATION));
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_lead_back), cmocka_unit_test(uses_fit_together)};
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
