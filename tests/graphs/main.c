/* graphs [--write] FILE…: does with each file what it says; --write records what comes out. */
#include <stdio.h>
#include <string.h>

#include "graphs/graphs.h"
#include "support/seed.h"

static int run(const char *path, uint64_t seed, bool write)
{
    subject s;
    subject_read(&s, path, seed);
    if (s.out.bytes == 0) subject_run(&s);
    if (s.out.bytes == 0) pl_graph_print(s.graph, &s.out);
    int failed = 0;
    if (write)
        subject_write(&s, &s.out);
    else
        failed = subject_differs(&s, &s.out);
    printf("%s: %s, %zu numbers compared\n", s.name, failed ? "DIFFERS" : write ? "written" : "as expected", s.numbers);
    subject_release(&s);
    return failed;
}

int main(int argc, char **argv)
{
    bool write = argc > 1 && strcmp(argv[1], "--write") == 0;
    int failed = 0;
    uint64_t seed = test_seed(1, argv);
    if (argc < 2 + write) return fprintf(stderr, "usage: graphs [--write] FILE.graph…\n"), 2;
    for (int i = 1 + write; i < argc; i++) failed |= run(argv[i], seed, write);
    return failed;
}
