/* A file of weights is read once while it is the same: not again where nothing changed, and anew where it, or one of
 * the files of an index, did. */
#include "unit/store/scratch_folder.h"

#include "support/program.h"
#include "systems/given_weights.h"

static float numbers[2] = {1, 2};

static void write_file(const char *name, const char *tensor)
{
    static pl_st_writer writer;
    const pl_st_entry entry = {tensor, PL_ST_F32, 1, {2}, numbers, sizeof numbers};
    const pl_st_list list = {.entries = &entry, .count = 1};
    pl_error err = {0};
    if (pl_safetensors_write(&writer, in_folder("%s", name), &list, NULL, &err) != PL_OK) fail_msg("%s", err.text);
}

static uint64_t hash_of(const char *name)
{
    pl_given_weights given;
    pl_error err = {0};
    if (pl_given_weights_check(in_folder("%s", name), NULL, PL_REAL_F16, &given, &err) != PL_OK)
        fail_msg("%s", err.text);
    return given.hash;
}

static void check(const char *path, const char *replaced, const char *tensor)
{
    pl_given_weights given;
    pl_error err = {0};
    numbers[1] = 2, write_file(replaced, tensor);
    const uint64_t first = hash_of(path);
    assert_true(hash_of(path) == first);
    numbers[1] = 3, write_file(replaced, tensor);
    assert_true(hash_of(path) != first);
    numbers[1] = 2, write_file(replaced, tensor);
    assert_true(hash_of(path) == first);
    numbers[1] = 1e6f, write_file(replaced, tensor);
    assert_int_equal(pl_given_weights_check(in_folder("%s", path), NULL, PL_REAL_F16, &given, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, replaced));
    assert_non_null(strstr(err.text, "number 1 is 1e+06; a finite one of at most 65504"));
}

static void test_what_changed_is_read_again(void **state)
{
    static const char index[] = "{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"y.safetensors\"}}";
    pl_error err = {0};
    (void)state;
    assert_int_equal(pl_file_write_all(in_folder("i.json"), index, strlen(index), &err), PL_OK);
    check("one.safetensors", "one.safetensors", "a");
    numbers[1] = 2, write_file("x.safetensors", "a");
    check("i.json", "y.safetensors", "b");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_changed_is_read_again)};
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
