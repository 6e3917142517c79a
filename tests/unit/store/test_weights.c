/* Weights of elsewhere: numbers of each type into places of each type, through more than one piece; a file that is no
 * longer the one that was looked at; what a header or a number can be wrong in; a file of which only a part is read. */
#include "unit/store/scratch_folder.h"

#include <math.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "store/weights.h"
#include "support/flip.h"
#include "support/program.h"

enum { NUMBERS = 20011 }; /* of 4 bytes: five pieces, the last one short */

static pl_st_writer writer;
static float numbers[NUMBERS];
static uint16_t halves[NUMBERS], brains[NUMBERS], one = 0x3c00;

static pl_st_entry entries[] = {{"a", PL_ST_F32, 2, {1, NUMBERS}, numbers, sizeof numbers},
                                {"b", PL_ST_F16, 1, {NUMBERS}, halves, sizeof halves},
                                {"c", PL_ST_BF16, 1, {NUMBERS}, brains, sizeof brains},
                                {"d", PL_ST_F16, 0, {0}, &one, sizeof one}};
enum { ENTRIES = sizeof entries / sizeof *entries };
static const pl_st_list written = {.entries = entries, .count = ENTRIES};

static void draw_numbers(void)
{
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = sinf((float)i) * exp2f((float)(i % 24 - 12)); /* each fits in 16 bits */
        halves[i] = pl_f16_of_f32(numbers[i]), brains[i] = pl_bf16_of_f32(numbers[i]);
    }
}

static pl_safetensors *open_written(const char *name)
{
    pl_safetensors *s;
    pl_error err = {0};
    assert_int_equal(pl_safetensors_write(&writer, in_folder("%s", name), &written, NULL, &err), PL_OK);
    assert_int_equal(pl_safetensors_open(in_folder("%s", name), &s, &err), PL_OK);
    return s;
}

/* What a number of the file becomes in a place of the other type: the same number where that can hold it. */
static void test_every_type_into_every_type(void **state)
{
    static const pl_st_dtype types[] = {PL_ST_F32, PL_ST_BF16, PL_ST_F16};
    static const pl_real as[] = {PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16};
    static float place[ENTRIES][NUMBERS];
    static char bytes[1 << 20];
    pl_error err = {0};
    uint64_t checksum;
    (void)state;
    draw_numbers();
    pl_safetensors *s = open_written("all");
    assert_int_equal(pl_weights_check(s, NULL, PL_REAL_F16, &checksum, &err), PL_OK);
    assert_int_equal(checksum, pl_checksum_of(bytes, read_bytes(in_folder("all"), bytes, sizeof bytes)));
    for (int t = 0; t < 3; t++) {
        pl_st_entry to[ENTRIES];
        for (int k = 0; k < ENTRIES; k++) {
            to[k] = entries[k];
            to[k].dtype = types[t], to[k].data = place[k];
        }
        const pl_st_list list = {.entries = to, .count = ENTRIES};
        pl_alloc_seal(1);
        assert_int_equal(pl_weights_match(s, NULL, &list, &err), PL_OK);
        assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_OK);
        pl_alloc_seal(0);
        for (int i = 0; i < NUMBERS; i++) {
            const float from[] = {numbers[i], pl_f32_of_f16(halves[i]), pl_f32_of_bf16(brains[i])};
            for (int k = 0; k < 3; k++) {
                const float got = pl_real_get(as[t], place[k], i), gap = fabsf(got - from[k]);
                assert_true(gap <= fabsf(from[k]) * (t == 0 ? 0 : t == 1 ? 0x1p-8f : 0x1p-11f) + 0x1p-25f);
            }
        }
        assert_true(pl_real_get(as[t], place[3], 0) == 1);
    }
    pl_safetensors_destroy(s);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void test_a_changed_file_is_told(void **state)
{
    static float place[NUMBERS];
    pl_error err = {0};
    uint64_t checksum;
    (void)state;
    draw_numbers();
    pl_safetensors *s = open_written("changed");
    assert_int_equal(pl_weights_check(s, NULL, PL_REAL_F32, &checksum, &err), PL_OK);
    const uint64_t bytes = pl_safetensors_data_at(s) + pl_safetensors_at(s, 0)->bytes;
    pl_st_entry to[ENTRIES];
    for (int k = 0; k < ENTRIES; k++) to[k] = entries[k], to[k].data = place;
    const pl_st_list list = {.entries = to, .count = ENTRIES};
    const uint64_t places[] = {8, 20, pl_safetensors_data_at(s), bytes - 1}; /* in the header, and in numbers */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char was, now;
        int fd = open(in_folder("changed"), O_RDWR);
        assert_int_equal(pread(fd, &was, 1, (off_t)places[i]), 1);
        now = (char)(was ^ 1);
        assert_int_equal(pwrite(fd, &now, 1, (off_t)places[i]), 1);
        assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_E_DATA);
        assert_non_null(strstr(err.text, "changed: was changed while this command began; start it again"));
        assert_int_equal(pwrite(fd, &was, 1, (off_t)places[i]), 1);
        close(fd);
        assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_OK);
    }
    assert_int_equal(truncate(in_folder("changed"), (off_t)bytes), 0);
    assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_E_DATA);
    pl_safetensors_destroy(s);
}

static void write_shard(const char *name, int first, int end)
{
    const pl_st_list list = {.entries = entries + first, .count = (size_t)(end - first)};
    pl_error err = {0};
    assert_int_equal(pl_safetensors_write(&writer, in_folder("%s", name), &list, NULL, &err), PL_OK);
}

static void write_index(const char *text)
{
    pl_error err = {0};
    assert_int_equal(pl_file_write_all(in_folder("i.json"), text, strlen(text), &err), PL_OK);
}

static void refused_index(const char *text, const char *sentence)
{
    pl_safetensors *s;
    pl_error err = {0};
    write_index(text);
    assert_int_equal(pl_safetensors_open(in_folder("i.json"), &s, &err), PL_E_DATA);
    assert_null(s);
    if (!strstr(err.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
}

/* Several files and their index are one model; one of them that is replaced or written to after it was looked at is
 * told, and so is an index that does not say what they hold. */
static void test_several_files(void **state)
{
    static const char index[] = "{\"weight_map\": {\"a\": \"x\", \"d\": \"y\", \"b\": \"y\", \"c\": \"y\"}}";
    static float place[ENTRIES][NUMBERS];
    pl_st_entry to[ENTRIES];
    const pl_st_list list = {.entries = to, .count = ENTRIES};
    pl_error err = {0};
    uint64_t checksum;
    pl_safetensors *s;
    (void)state;
    draw_numbers();
    write_shard("x", 0, 1), write_shard("y", 1, ENTRIES), write_index(index);
    assert_int_equal(pl_safetensors_open(in_folder("i.json"), &s, &err), PL_OK);
    assert_int_equal(pl_safetensors_count(s), ENTRIES);
    assert_string_equal(pl_safetensors_at(s, 3)->name, "d");
    assert_int_equal(pl_weights_check(s, NULL, PL_REAL_F16, &checksum, &err), PL_OK);
    for (int k = 0; k < ENTRIES; k++) to[k] = entries[k], to[k].data = place[k];
    pl_alloc_seal(1);
    assert_int_equal(pl_weights_match(s, NULL, &list, &err), PL_OK);
    assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_OK);
    pl_alloc_seal(0);
    for (int k = 0; k < ENTRIES; k++) assert_memory_equal(place[k], entries[k].data, entries[k].bytes);
    halves[0]++, write_shard("y", 1, ENTRIES); /* another file of that name: the open one stays as it was */
    assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_OK);
    pl_safetensors_destroy(s);
    assert_int_equal(pl_safetensors_open(in_folder("i.json"), &s, &err), PL_OK);
    assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "i.json: was changed while this command began; start it again"));
    halves[0]--;
    assert_int_equal(truncate(in_folder("y"), 100), 0);
    assert_int_equal(pl_weights_load(s, NULL, &list, checksum, &err), PL_E_DATA);
    pl_safetensors_destroy(s);
    write_shard("y", 1, ENTRIES);
    refused_index("{\"weight_map\": {\"a\": \"x\", \"d\": \"i.json\"}}", "i.json: says that its header has");
    refused_index("{\"weight_map\": {\"a\": \"x\", \"b\": \"z\"}}", "z: cannot be opened");
    refused_index("{\"weight_map\": {\"a\": \"x\", \"b\": \"x\"}}", "tensor \"b\" is not in x");
    refused_index("{\"weight_map\": {\"a\": \"x\", \"b\": \"y\"}}", "does not name tensor");
    refused_index("{\"weight_map\": {\"a\": \"../x\"}}", "is not a name in this folder");
    refused_index("{}", "has no object weight_map");
    write_shard("y", 0, 1);
    refused_index("{\"weight_map\": {\"a\": \"x\", \"b\": \"y\"}}", "tensor \"a\" is in two of its files");
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

/* With a checksum of the tensors in its metadata: it is compared, whatever it says. */
static pl_status check_against(const char *says, pl_error *err)
{
    pl_safetensors *s;
    uint64_t checksum;
    const pl_st_text text = {PL_WEIGHTS_CHECKSUM, says};
    const pl_st_list list = {.entries = entries, .count = ENTRIES, .metadata = &text, .metadata_count = 1};
    assert_int_equal(pl_safetensors_write(&writer, in_folder("sum"), &list, NULL, err), PL_OK);
    assert_int_equal(pl_safetensors_open(in_folder("sum"), &s, err), PL_OK);
    const pl_status status = pl_weights_check(s, NULL, PL_REAL_F32, &checksum, err);
    pl_safetensors_destroy(s);
    return status;
}

static void test_its_own_checksum(void **state)
{
    static char bytes[1 << 20];
    char text[PL_CHECKSUM_TEXT_BYTES], sentence[120];
    pl_error err = {0};
    (void)state;
    draw_numbers();
    pl_safetensors *s = open_written("bare");
    const uint64_t at = pl_safetensors_data_at(s);
    pl_safetensors_destroy(s);
    const uint64_t found = pl_checksum_of(bytes + at, read_bytes(in_folder("bare"), bytes, sizeof bytes) - at);
    assert_int_equal(check_against(pl_checksum_print(found, text), &err), PL_OK);
    snprintf(sentence, sizeof sentence, "(checksum %s, and its metadata say ", text);
    for (int bit = 0; bit < 64; bit++) {
        assert_int_equal(check_against(pl_checksum_print(found ^ (uint64_t)1 << bit, text), &err), PL_E_DATA);
        assert_non_null(strstr(err.text, in_folder("sum")));
        assert_non_null(strstr(err.text, sentence));
        err = (pl_error){0};
    }
    const char *const others[] = {"", "0", "xxh64", "of some other program, which has a word for it that is long"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(check_against(others[i], &err), PL_E_DATA);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

/* ---- what lies packed has a checksum of all of the file ---- */

static char packed_file[1 << 16];

/* A layer in 8 bits, its range and a bias, as quantize writes them. */
static size_t write_packed(const char *format, bool sealed)
{
    enum { BYTES = 192 };
    pl_error err = {0};
    unsigned char packed[BYTES];
    float range[2] = {-1, 2}, bias[4] = {1};
    for (int i = 0; i < BYTES; i++) packed[i] = (unsigned char)(11 * i);
    const pl_st_entry entry[] = {{"w" PL_INT8_PACKED, PL_ST_U8, 1, {BYTES}, packed, BYTES},
                                 {"w.input.0", PL_ST_F32, 1, {2}, range, sizeof range},
                                 {"b", PL_ST_F32, 1, {4}, bias, sizeof bias}};
    char checksum[PL_CHECKSUM_TEXT_BYTES] = PL_WEIGHTS_NO_CHECKSUM;
    const pl_st_text text[] = {
        {"format", format}, {PL_WEIGHTS_CONFIG, "model:\n  width: 8\n"}, {PL_WEIGHTS_CHECKSUM, checksum}};
    const pl_st_list list = {.entries = entry, .count = 3, .metadata = text, .metadata_count = sealed ? 3 : 2};
    if (sealed) pl_checksum_print(pl_safetensors_checksum(&list), checksum);
    assert_int_equal(pl_safetensors_write(&writer, in_folder("packed"), &list, NULL, &err), PL_OK);
    return read_bytes(in_folder("packed"), packed_file, sizeof packed_file);
}

static pl_status check_packed(const char *path, pl_error *err)
{
    uint64_t checksum;
    pl_safetensors *s;
    PL_TRY(pl_safetensors_open(path, &s, err));
    const pl_status status = pl_weights_check(s, NULL, PL_REAL_F32, &checksum, err);
    pl_safetensors_destroy(s);
    return status;
}

/* No bit of it means nothing: a space is one of the file, too. */
static bool is_refused(void *context, const char *text, size_t bytes)
{
    pl_error err = {0};
    (void)context;
    assert_int_equal(pl_file_write_all(in_folder("flipped"), text, bytes, &err), PL_OK);
    return check_packed(in_folder("flipped"), &err) == PL_E_DATA;
}

static void test_a_flipped_bit_of_packed_weights(void **state)
{
    pl_error err = {0};
    (void)state;
    const size_t bytes = write_packed(PL_WEIGHTS_FORMAT, true), header = 8 + strcspn(packed_file + 8, "}");
    if (check_packed(in_folder("packed"), &err) != PL_OK) fail_msg("%s", err.text);
    flip_bits(packed_file, bytes, header, 16, 300, is_refused, NULL);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

/* Of version 1, which earlier builds wrote, the checksum is of the data alone, and a file may have none. */
static void test_versions_of_packed_weights(void **state)
{
    pl_error err = {0};
    (void)state;
    write_packed("plimsoll.int8/1", false);
    if (check_packed(in_folder("packed"), &err) != PL_OK) fail_msg("%s", err.text);
    write_packed("plimsoll.int8/1", true); /* a version that is damaged */
    assert_int_equal(check_packed(in_folder("packed"), &err), PL_E_DATA);
    write_packed(PL_WEIGHTS_FORMAT, false);
    assert_int_equal(check_packed(in_folder("packed"), &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "its tensors are not those that were written"));
    write_packed("plimsoll.int8/3", true);
    assert_int_equal(check_packed(in_folder("packed"), &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "plimsoll.int8/3"));
}

static void expect(const pl_st_entry *with, size_t count, const char *sentence)
{
    pl_error err = {0};
    pl_safetensors *s = open_written("other");
    const pl_st_list list = {.entries = with, .count = count};
    assert_int_equal(pl_weights_match(s, NULL, &list, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, in_folder("other")));
    if (!strstr(err.text, sentence)) fail_msg("%s\nnot %s", err.text, sentence);
    pl_safetensors_destroy(s);
}

static void test_what_does_not_match(void **state)
{
    pl_st_entry to[ENTRIES + 1];
    (void)state;
    draw_numbers();
    memcpy(to, entries, sizeof entries);
    expect(to, ENTRIES - 1, "holds a tensor \"d\", which the model has not got");
    to[ENTRIES] = (pl_st_entry){"e", PL_ST_F32, 1, {2}, NULL, 8};
    expect(to, ENTRIES + 1, "has no tensor \"e\"; the model takes F32 [2]");
    to[1].shape[0]++;
    expect(to, ENTRIES, "tensor \"b\" is F16 [20011] there, but the model takes F16 [20012]");
}

static void test_numbers_that_are_refused(void **state)
{
    pl_error err = {0};
    uint64_t checksum;
    (void)state;
    draw_numbers();
    numbers[NUMBERS - 1] = 70000;
    pl_safetensors *s = open_written("large");
    assert_int_equal(pl_weights_check(s, NULL, PL_REAL_BF16, &checksum, &err), PL_OK);
    assert_int_equal(pl_weights_check(s, NULL, PL_REAL_F16, &checksum, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "tensor \"a\", number 20010 is 70000; a finite one of at most 65504"));
    pl_safetensors_destroy(s);
    draw_numbers();
    brains[5000] = 0x7fc0;
    s = open_written("nan");
    assert_int_equal(pl_weights_check(s, NULL, PL_REAL_F32, &checksum, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "tensor \"c\", number 5000 is nan"));
    pl_safetensors_destroy(s);
}

/* A file of several models: of one part, whatever stands before its root, every tensor is taken and put in its place;
 * the others, whatever they hold, and places of other parts stay as they are. */
static void test_a_part_of_the_model(void **state)
{
    static const char *const unused[] = {"last.bias", NULL};
    static const pl_weights_part part = {"tower.", "vision.", unused};
    static const char *const before[] = {"", "model.", "vision_model.", "tower."};
    float a[2] = {1, 2}, b = 3, lost = NAN, place[4] = {-1, -1, -1, -1};
    int64_t ids[2] = {0, 1};
    pl_error err = {0};
    uint64_t checksum;
    (void)state;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        char name[4][64];
        static const char *const of_part[] = {"a", "b.weight", "last.bias"};
        for (int k = 0; k < 3; k++) snprintf(name[k], sizeof name[k], "%svision.%s", before[i], of_part[k]);
        pl_st_entry in[] = {{name[0], PL_ST_F32, 1, {2}, a, sizeof a},
                            {name[1], PL_ST_F32, 0, {0}, &b, sizeof b},
                            {name[2], PL_ST_I64, 1, {2}, ids, sizeof ids},
                            {"zz", PL_ST_F32, 0, {0}, &lost, sizeof lost},
                            {"avision.a", PL_ST_F32, 0, {0}, &lost, sizeof lost}};
        pl_st_entry to[] = {{"vit.a", PL_ST_F32, 1, {2}, place, 8},
                            {"tower.vision.a", PL_ST_F32, 1, {2}, place, 8},
                            {"tower.vision.b.weight", PL_ST_F32, 0, {0}, place + 2, 4},
                            {"tower.vision.c", PL_ST_F32, 0, {0}, place + 3, 4}};
        const pl_st_list list = {.entries = in, .count = 5}, wanted = {.entries = to, .count = 3},
                         more = {.entries = to, .count = 4}, fewer = {.entries = to, .count = 2};
        pl_safetensors *s;
        to[0].data = place + 3, to[0].shape[0] = 1, to[0].bytes = 4;
        place[3] = -1;
        assert_int_equal(pl_safetensors_write(&writer, in_folder("part"), &list, NULL, &err), PL_OK);
        assert_int_equal(pl_safetensors_open(in_folder("part"), &s, &err), PL_OK);
        assert_int_equal(pl_weights_check(s, &part, PL_REAL_F16, &checksum, &err), PL_OK);
        assert_int_equal(pl_weights_count_unread(s, &part), 3);
        assert_int_equal(pl_weights_match(s, &part, &wanted, &err), PL_OK);
        assert_int_equal(pl_weights_load(s, &part, &wanted, checksum, &err), PL_OK);
        assert_true(place[0] == 1 && place[1] == 2 && place[2] == 3 && place[3] == -1);
        assert_int_equal(pl_weights_match(s, &part, &more, &err), PL_E_DATA);
        snprintf(name[3], sizeof name[3], "has no tensor \"%svision.c\"", before[i]);
        assert_non_null(strstr(err.text, name[3]));
        assert_int_equal(pl_weights_match(s, &part, &fewer, &err), PL_E_DATA);
        assert_non_null(strstr(err.text, "b.weight\", which the model has not got"));
        assert_int_equal(pl_weights_check(s, NULL, PL_REAL_F16, &checksum, &err), PL_E_DATA);
        pl_safetensors_destroy(s);
    }
    pl_safetensors *s = open_written("none");
    const pl_st_list list = {.entries = entries, .count = ENTRIES};
    assert_int_equal(pl_weights_match(s, &part, &list, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "has no tensor whose name begins with \"vision.\""));
    pl_safetensors_destroy(s);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_into_every_type),
        cmocka_unit_test(test_a_changed_file_is_told),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_what_does_not_match),
        cmocka_unit_test(test_numbers_that_are_refused),
        cmocka_unit_test(test_a_part_of_the_model),
        cmocka_unit_test(test_its_own_checksum),
        cmocka_unit_test(test_a_flipped_bit_of_packed_weights),
        cmocka_unit_test(test_versions_of_packed_weights),
    };
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
