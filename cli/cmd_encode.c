/* plimsoll encode: texts drawn as pages and encoded to capsules, in a planned process; or a witness of one text, in
 * this process. */
#include "results_command.h"

static const pl_cli_option options[] = {
    [PL_RESULTS_QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [PL_RESULTS_VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [PL_RESULTS_LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, and where the time went"},
    [PL_RESULTS_ONLY] = {"--only", "N", "with --witness: text N, counted from 0; default: 0"},
    [PL_RESULTS_WITNESS] = {"--witness", "DIR",
                            "write the weights, one text's page and its capsules into DIR, and no results: what "
                            "another program needs to repeat it"},
};

static const char about[] =
    "Draws each text as a page, encodes it by the model of the config, and writes its capsules (sketches, checksums, "
    "children) into one file of results, block by block, so memory does not grow with the number of texts. What the "
    "file has already is not made again: after a stop, a crash or a kill the same command goes on, and the file is the "
    "one that an undisturbed run would have made, whatever batch, threads and budget. What the disk has no room for is "
    "refused before anything runs (exit 5), what does not fit memory.budget before the first text (exit 3). Texts that "
    "a page cannot show as they are meant are drawn as well as it can, counted, and marked in the dataset remarks. "
    "When "
    "all is done, an HTML page about it lies beside the results; plimsoll results report makes it at any time.\n";

const pl_cli_body pl_cli_encode = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = pl_results_command_run};
