/* A folder of its own with a text and the config of a small model, small.yaml: the setup and teardown of a test. */
#ifndef PL_TESTS_API_SMALL_RUN_H
#define PL_TESTS_API_SMALL_RUN_H

#include "support/folder.h"

static char small_run_folder[] = "/tmp/plimsoll-small-run-XXXXXX";

static inline int small_run_begin(void **state)
{
    (void)state;
    if (enter_folder(small_run_folder)) return -1;
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    write_file("small.yaml",
               "model:\n  width: 8\n  heads: 2\n  sequence: 16\n"
               "data:\n  text: text.txt\n  tokenizer: bytes\n"
               "train:\n  batch_size: 4\n  steps: 3\n"
               "memory:\n  huge_pages: off\nrun:\n  threads: 2\n  out: run\n",
               1);
    return 0;
}

static inline int small_run_end(void **state)
{
    (void)state;
    return leave_folder(small_run_folder);
}

#endif
