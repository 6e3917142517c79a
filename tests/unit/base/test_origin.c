/* How a source is known is noted in the file that was made of it, and in no other that came into its place. Oracle: the
 * bytes of the files. */
#include "unit/store/scratch_folder.h"

#include "base/bytes.h"
#include "base/origin.h"
#include "support/program.h"

enum { BYTES = 48, CONTENT_AT = 32, BEFORE = 8 };

static const pl_origin source = {.bytes = 5, .inode = 6, .mtime_ns = 7, .ctime_ns = 8, .content = 0x1234567890abcdef};

static void put(uint8_t *to, const pl_origin *o)
{
    pl_put_u64(to, 0, o->inode);
    pl_put_u64(to, CONTENT_AT, o->content);
}

/* A prepared file of a source of that content, and what is in it once it was noted. */
static void note(uint64_t content, uint8_t before[BEFORE + BYTES], uint8_t after[BEFORE + BYTES])
{
    memset(before, 0x55, BEFORE + BYTES);
    pl_put_u64(before, BEFORE + CONTENT_AT, content);
    write_bytes(in_folder("prepared"), before, BEFORE + BYTES);
    pl_origin_note(in_folder("prepared"), BEFORE, BYTES, CONTENT_AT, put, &source);
    FILE *file = fopen(in_folder("prepared"), "rb");
    assert_non_null(file);
    assert_int_equal(fread(after, 1, BEFORE + BYTES, file), BEFORE + BYTES);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

static void of_the_same_content_it_is_noted(void **state)
{
    uint8_t before[BEFORE + BYTES], after[BEFORE + BYTES];
    (void)state;
    note(source.content, before, after);
    pl_put_u64(before, BEFORE, source.inode);
    assert_memory_equal(before, after, sizeof before);
}

static void of_another_content_nothing_changes(void **state)
{
    uint8_t before[BEFORE + BYTES], after[BEFORE + BYTES];
    (void)state;
    note(source.content + 1, before, after);
    assert_memory_equal(before, after, sizeof before);
}

static void a_file_that_is_not_there_is_not_made(void **state)
{
    (void)state;
    pl_origin_note(in_folder("nowhere"), 0, BYTES, CONTENT_AT, put, &source);
    assert_int_equal(access(in_folder("nowhere"), F_OK), -1);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_same_content_it_is_noted),
        cmocka_unit_test(of_another_content_nothing_changes),
        cmocka_unit_test(a_file_that_is_not_there_is_not_made),
    };
    return cmocka_run_group_tests_name("origin", tests, make_test_folder, remove_test_folder);
}
