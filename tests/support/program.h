/* One program a folder of tests: each file says PL_TEST_PROGRAM(argc, argv) where it would say int main(int argc, char
 * **argv), and main() in program.c runs the file that its first argument names. */
#ifndef PL_TESTS_SUPPORT_PROGRAM_H
#define PL_TESTS_SUPPORT_PROGRAM_H

typedef struct test_program {
    const char *path; /* of the source */
    int (*run)(int argc, char **argv);
    char name[64]; /* of the file, without folder and ".c"; this and the next are program.c's */
    struct test_program *next;
} test_program;

/* Before main(), and without asking for memory: tests count what they ask for. */
void test_program_register(test_program *);

/* argv[0] is the command that runs this file, "build/tests/unit_store test_metrics"; argv[1] is what came behind it. */
#define PL_TEST_PROGRAM(argc, argv)                                                                                    \
    static int program(int, char **);                                                                                  \
    __attribute__((constructor)) static void register_program(void)                                                    \
    {                                                                                                                  \
        static test_program this = {.path = __FILE__, .run = program};                                                 \
        test_program_register(&this);                                                                                  \
    }                                                                                                                  \
    static int program(__attribute__((unused)) int argc, __attribute__((unused)) char **argv)

#endif
