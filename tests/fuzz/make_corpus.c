/* Seeds that our own writers make, so that they are never behind the formats: make_corpus FOLDER. What no writer makes
 * (configs, CSV, hand-made mistakes) lies in corpus/. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "base/quantize.h"
#include "calibrate/table.h"
#include "chat/template.h"
#include "data/text/bpe_train.h"
#include "data/clouds/frames.h"
#include "data/pages/texts_index.h"
#include "data/text/tokens.h"
#include "reference/tiny.h"
#include "store/block_file.h"
#include "store/checkpoint.h"
#include "store/weights.h"
#include "support/tiny_model.h"

static const char *root;

static void must(pl_status status, const pl_error *err)
{
    if (status == PL_OK) return;
    fprintf(stderr, "fuzz_make_corpus: %s\n", err->text);
    exit(1);
}

/* FOLDER/thing/name; the folder is made. */
static const char *path_of(const char *thing, const char *name)
{
    static char path[PL_FILE_PATH_MAX];
    pl_error err = {0};
    snprintf(path, sizeof path, "%s/%s", root, thing);
    must(pl_folder_create(path, &err), &err);
    snprintf(path, sizeof path, "%s/%s/%s", root, thing, name);
    return path;
}

static void put(const char *thing, const char *name, pl_str *text)
{
    pl_error err = {0};
    must(text->failed ? pl_fail(&err, PL_E_NOMEM, "no memory") : PL_OK, &err);
    must(pl_file_write_all(path_of(thing, name), text->data, text->bytes, &err), &err);
    pl_str_deinit(text);
}

/* ---- graphs and plans of small models ---- */

/* Lines that tiny models have no use for. */
static void add_fields(pl_plan *p, uint64_t seed)
{
    static const char config[] = "model:\n  width: 4\ndata:\n  text: ";
    if (seed % 2) {
        p->config = pl_alloc(sizeof config + 600, 1);
        must(p->config ? PL_OK : PL_E_NOMEM, &(pl_error){.text = "no memory"});
        memset(p->config, 'x', sizeof config + 599);
        memcpy(p->config, config, sizeof config - 1);
        p->batch = 2;
        p->disk_count = 2;
        p->disk[0] = (pl_plan_disk_row){"checkpoints", 1000};
        p->disk[1] = (pl_plan_disk_row){"tokens \"x\"", 2000};
    }
    if (seed % 3) {
        p->identity = (pl_facts){{{"text", seed}, {"tokenizer", UINT64_MAX - seed}}, 2};
        p->validation = (pl_facts){{{"tokens", 10 * seed}, {"bytes", 40 * seed}}, 2};
    }
    for (size_t i = 0; i < p->graph->node_count; i++) p->seconds[i] = 1e-6 * (double)(i + 1);
}

static void make_plans(void)
{
    static tiny t;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        char name[32];
        pl_str text = {0};
        tiny_random(&t, seed);
        t.update = true;
        t.config.model.layers = 1;
        snprintf(name, sizeof name, "model_%d", (int)seed);
        pl_graph *model = tiny_forward(&t);
        pl_graph_print(model, &text);
        pl_graph_destroy(model);
        put("graph", name, &text);
        pl_plan *plan = tiny_plan(&t, (pl_team){2, PL_ISA_BASELINE});
        add_fields(plan, seed);
        pl_plan_print(plan, &text);
        pl_plan_destroy(plan);
        put("plan", name, &text);
    }
}

/* ---- tokenizers ---- */

static void make_tokenizers(void)
{
    static const char text[] = "the theory of the other thing: it's there, there! 2026 \n\n\tabc abc";
    static const uint32_t points[] = {'\n', ' ', 'a', 0xfc, 0x1f600};
    pl_error err = {0};
    pl_str out = {0};
    pl_tokenizer *t;
    pl_bpe_trainer *trainer;
    pl_bpe_options o = pl_bpe_options_default(280);
    must(pl_bpe_trainer_create(&o, &trainer, &err), &err);
    pl_bpe_trainer_feed(trainer, text, sizeof text - 1);
    must(pl_bpe_trainer_finish(trainer, &t, &err), &err);
    pl_bpe_trainer_destroy(trainer);
    pl_tokenizer_print(t, &out);
    pl_tokenizer_destroy(t);
    put("tokenizer", "bpe", &out);
    must(pl_tokenizer_create_chars(points, sizeof points / sizeof *points, &t, &err), &err);
    pl_tokenizer_print(t, &out);
    pl_tokenizer_destroy(t);
    put("tokenizer", "chars", &out);
    must(pl_tokenizer_create_bytes(&t, &err), &err);
    pl_tokenizer_print(t, &out);
    pl_tokenizer_destroy(t);
    put("tokenizer", "bytes", &out);
}

/* ---- token files ---- */

/* Two flights of three frames; the second frame of each has a label, the last no picture. */
static void make_frames(const char *name, pl_frames_form form)
{
    static const float picture[6 * 11] = {[3] = 0.5f, [40] = 1};
    const pl_frames_info info = {.height = 6, .width = 11, .form = form};
    pl_frames_flight flight[2] = {{.name = "10Feb25", .frames = 3, .labels = 1},
                                  {.name = "30Oct24", .first = 3, .frames = 3, .labels = 1}};
    pl_frames_record record[6];
    pl_error err = {0};
    pl_frames_writer *w;
    must(pl_frames_create(path_of("frames", name), &info, &w, &err), &err);
    for (uint32_t i = 0, pictures = 0; i < 6; i++) {
        const int has_label = i % 3 == 1, has_picture = i % 3 < 2;
        record[i] = (pl_frames_record){.seconds = 1.7e9 + 2 * i, .zenith = 40, .azimuth = 180};
        record[i].label_km = has_label ? 1.5f : (float)NAN, record[i].profile = has_label ? i : PL_FRAMES_NONE;
        record[i].picture = has_picture ? pictures++ : PL_FRAMES_NONE;
        if (has_picture) must(pl_frames_append(w, picture, &err), &err);
    }
    static const pl_origin source[2 * PL_FRAMES_SOURCES];
    const pl_frames_rest rest = {flight, record, source, 2, 6, 7, 0, NULL};
    must(pl_frames_commit(w, &rest, &err), &err);
}

/* Of two files, or of two texts in one. */
static void make_texts(const char *name, pl_texts_form form)
{
    pl_error err = {0};
    pl_texts_writer *w;
    const bool is_folder = form == PL_TEXTS_FOLDER;
    const pl_text_encoding other = form == PL_TEXTS_CSV ? PL_TEXT_CSV : PL_TEXT_RAW;
    must(pl_texts_writer_create(path_of("texts", name), &w, &err), &err);
    if (is_folder) must(pl_texts_put_file(w, "a/b", 5, &err), &err);
    if (is_folder) must(pl_texts_put_file(w, "c", 6, &err), &err);
    must(pl_texts_put(w, &(pl_text_place){0, 7, PL_TEXT_RAW}, &err), &err);
    must(pl_texts_put(w, &(pl_text_place){is_folder ? 15 : 9, 11, other}, &err), &err);
    must(pl_texts_commit(w, form, &(pl_texts_info){.recipe = 1, .source = {.content = 2, .bytes = 20}}, &err), &err);
}

static void make_tokens(const char *name, uint32_t vocab, uint32_t count)
{
    pl_error err = {0};
    pl_tokens_writer *w;
    must(pl_tokens_create(path_of("tokens", name), vocab, &w, &err), &err);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = (i * i + 7 * i) % vocab;
        must(pl_tokens_append(w, &id, 1, &err), &err);
    }
    pl_tokens_info info = {.tokenizer_hash = 11, .recipe = 12, .source = {.bytes = 13, .content = 14}};
    must(pl_tokens_commit(w, &info, &err), &err);
}

/* ---- checkpoints, their tensors and their record ---- */

static void append_file(pl_str *out, const char *mark, const char *folder, const char *name)
{
    char path[PL_FILE_PATH_MAX], *text;
    pl_error err = {0};
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    must(pl_file_read_all(path, 1 << 20, &text, &bytes, &err), &err);
    pl_str_printf(out, "=== %s%s\n", mark, name);
    pl_str_append_bytes(out, text, bytes);
    pl_str_append(out, "\n");
    pl_free(text);
}

static void copy_file(const char *thing, const char *name, const char *folder, const char *file)
{
    pl_error err = {0};
    pl_str out = {0};
    char path[PL_FILE_PATH_MAX], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    must(pl_file_read_all(path, 1 << 20, &text, &bytes, &err), &err);
    pl_str_append_bytes(&out, text, bytes);
    pl_free(text);
    put(thing, name, &out);
}

static void make_checkpoints(void)
{
    static float weight[6] = {1, 2, 3, 4, 5, 6}, bias[2], moment[6];
    static _Alignas(64) char scratch[256 << 10];
    pl_st_entry model[] = {{"weight", PL_ST_F32, 2, {2, 3}, weight, sizeof weight},
                           {"bias", PL_ST_F32, 1, {2}, bias, sizeof bias}};
    pl_st_entry state[] = {{"weight.m", PL_ST_F32, 2, {2, 3}, moment, sizeof moment}};
    pl_st_text metadata[] = {{"format", "pt"}};
    pl_record_counter counter[] = {{"tokens", 7}, {"plateau_best", 1.25}};
    pl_record record = {.model_hash = 77,
                        .config = "model:\n  width: 3\n",
                        .best_metric = "validation_loss",
                        .has_best = true,
                        .counters = counter,
                        .counter_count = 2};
    char folder[PL_FILE_PATH_MAX], steps[2][PL_FILE_PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%s/run", root);
    pl_checkpoint_spec spec = {.folder = folder,
                               .model = {model, 2, metadata, 1},
                               .state = {state, 1, NULL, 0},
                               .keep_last = 3,
                               .record = &record};
    pl_error err = {0};
    pl_checkpoint *checkpoint;
    must(pl_folder_create(folder, &err), &err);
    must(pl_checkpoint_create(&spec, NULL, scratch, sizeof scratch, &checkpoint, &err), &err);
    for (uint64_t step = 1; step <= 2; step++) {
        record.step = record.best_step = step;
        must(pl_checkpoint_save(checkpoint, &record, &err), &err);
        snprintf(steps[step - 1], sizeof steps[0], "%s/checkpoints/step-0000000%d", folder, (int)step);
    }
    copy_file("record", "saved", steps[0], PL_RECORD_FILE);
    copy_file("safetensors", "model", steps[0], PL_MODEL_FILE);
    copy_file("safetensors", "state", steps[0], PL_STATE_FILE);
    pl_str one = {0}, two = {0};
    pl_str_append(&one, "=== latest\nstep-00000001\n=== best\nstep-00000001\n");
    pl_str_append(&two, "=== latest\nstep-00000002\n");
    for (int i = 0; i < 3; i++) {
        static const char *const files[] = {PL_RECORD_FILE, PL_MODEL_FILE, PL_STATE_FILE};
        append_file(&one, "1/", steps[0], files[i]);
        append_file(&two, "1/", steps[0], files[i]);
        append_file(&two, "2/", steps[1], files[i]);
    }
    put("checkpoint", "one", &one);
    put("checkpoint", "two", &two);
}

/* ---- block files ---- */

/* Three operators of two states, the first one done, one more with something to go on from. */
static void make_blocks(const char *name, uint32_t slots, uint32_t datasets)
{
    static const char kinds[3][4] = {"one", "two", "old"};
    static const pl_block_kind kind[] = {{"states", 2, {{"operator", 3, 1}, {"state", 2, 1}}},
                                         {"features", 1, {{"operator", 3, 1}}}};
    static const pl_block_dataset dataset[] = {{"out/fields", PL_DTYPE_F16, false, 3, {3, 2, 4}, 0, NULL},
                                               {"features", PL_DTYPE_F32, false, 2, {3, 2}, 1, NULL},
                                               {"kinds", PL_DTYPE_U8, true, 2, {3, 4}, 1, kinds}};
    static _Alignas(64) char memory[1 << 15];
    const pl_block_layout l = {.text = "{\"seed\": 7}",
                               .kind = kind,
                               .kinds = 2,
                               .dataset = dataset,
                               .datasets = datasets,
                               .carry_slots = slots,
                               .carry_bytes = 16};
    const pl_block_use use = {1, 1};
    const uint8_t bytes[16] = {1, 2, 3};
    pl_block_found found;
    pl_block_file *f;
    pl_error err = {0};
    must(pl_block_file_make(path_of("blocks", name), PL_BLOCK_NATIVE, &l, &found, &err), &err);
    must(pl_block_file_open(path_of("blocks", name), &l, &use, memory, sizeof memory, &f, &err), &err);
    for (uint64_t block = 0; block < 3; block++) {
        must(pl_block_file_put(f, block, 0, 0, bytes, 8, &err), &err);
        if (slots && block % 2 == 0) must(pl_block_file_carry(f, 0, block, block + 1, bytes, &err), &err);
        must(pl_block_file_finish(f, block, &err), &err);
    }
    must(pl_block_file_close(f, &err), &err);
}

/* ---- the rest ---- */

static void make_calibration(void)
{
    static pl_calibration c = {.machine = {.cpu = "a machine", .isa = "avx2", .cores = 2, .kernels = 1}};
    pl_error err = {0};
    strcpy(c.path, path_of("calibration", "saved"));
    must(pl_calibration_put(&c, "linear forward [4,8] [8,8]",
                            &(pl_calibration_entry){.seconds = 1e-5, .spread = 1e-7, .samples = 100}, &err),
         &err);
    must(pl_calibration_put(&c, "norm", &(pl_calibration_entry){.seconds = 2e-6, .samples = 1}, &err), &err);
    c.changed = true;
    must(pl_calibration_save(&c, &err), &err);
    pl_calibration_clear(&c);
}

/* ---- weights in 8 bits ---- */

/* As fuzz_quantized.c wants them. */
static void make_quantized(const char *name, int8_t first, bool has_checksum)
{
    enum { ROWS = 5, WIDTH = 7 };
    static pl_st_writer writer;
    static _Alignas(64) char packed[4096];
    int8_t w[ROWS * WIDTH] = {first, 127, -3};
    float scale[ROWS] = {1, 0.5F, 0.25F, 2, 1e-3F}, range[2] = {-1, 2}, bias[ROWS] = {1};
    pl_error err = {0};
    for (int i = 3; i < ROWS * WIDTH; i++) w[i] = (int8_t)(11 * i % 255 - 127);
    pl_int8_pack(ROWS, WIDTH, w, WIDTH, scale, packed);
    const uint64_t bytes = pl_int8_packed_bytes(ROWS, WIDTH);
    pl_st_entry entry[] = {{"w" PL_INT8_PACKED, PL_ST_U8, 1, {bytes}, packed, bytes},
                           {"w.input.0", PL_ST_F32, 1, {2}, range, sizeof range},
                           {"b", PL_ST_F32, 1, {ROWS}, bias, sizeof bias}};
    char checksum[PL_CHECKSUM_TEXT_BYTES] = PL_WEIGHTS_NO_CHECKSUM;
    const pl_st_text text[] = {{"format", has_checksum ? PL_WEIGHTS_FORMAT : "plimsoll.int8/1"},
                               {PL_WEIGHTS_CHECKSUM, checksum}};
    const pl_st_list list = {.entries = entry, .count = 3, .metadata = text, .metadata_count = has_checksum ? 2 : 1};
    pl_checksum_print(pl_safetensors_checksum(&list), checksum);
    must(pl_safetensors_write(&writer, path_of("quantized", name), &list, NULL, &err), &err);
}

static void make_chat_templates(void)
{
    const char *name;
    pl_error err = {0};
    for (size_t i = 0; (name = pl_chat_built_in_name(i)); i++) {
        const char *text = pl_chat_built_in(name);
        must(pl_file_write_all(path_of("chat", name), text, strlen(text), &err), &err);
    }
}

/* ---- models that people bring ---- */

static void make_gguf(const char *name, uint32_t type)
{
    pl_error err = {0};
    size_t bytes;
    unsigned char *data = tiny_make_gguf(type, &bytes);
    must(pl_file_write_all(path_of("gguf", name), data, bytes, &err), &err);
    free(data);
}

/* The two texts of a folder, a zero between them. */
static void make_pretrained(void)
{
    char header[TINY_HEADER_MAX];
    pl_str text = {0};
    const size_t bytes = tiny_print_header(header);
    pl_str_append_bytes(&text, tiny_config, strlen(tiny_config) + 1);
    pl_str_append_bytes(&text, header, bytes);
    put("pretrained", "llama", &text);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: fuzz_make_corpus FOLDER\n");
        return 2;
    }
    root = argv[1];
    make_plans();
    make_tokenizers();
    make_frames("bytes", PL_FRAMES_U8);
    make_frames("half", PL_FRAMES_F16);
    make_texts("lines", PL_TEXTS_LINES);
    make_texts("csv", PL_TEXTS_CSV);
    make_texts("folder", PL_TEXTS_FOLDER);
    make_tokens("narrow", 300, 50);
    make_tokens("wide", 70000, 40);
    make_tokens("blocks", 300, PL_TOKENS_BLOCK + 20);
    make_checkpoints();
    make_quantized("usual", -127, false);
    make_quantized("least", -128, false);
    make_quantized("summed", -127, true);
    make_blocks("carry", 1, 2);
    make_blocks("constant", 0, 3);
    make_calibration();
    make_chat_templates();
    make_gguf("f32", 0);
    make_gguf("q8_0", 8);
    make_pretrained();
    return 0;
}
