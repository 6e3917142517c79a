/* The checkpoints of a run: a folder with `latest`, `best` and step folders, from one input in which a line "=== NAME"
 * begins each file:
 *
 *      === latest
 *      step-00000001
 *      === 1/run.json
 *      {"schema": …}
 *      === 1/model.safetensors
 *      …
 *
 * Sizes and checksums in run.json are made right, so that what is found is looked into. Then the run goes on as after a
 * crash: finds, loads, cleans up, saves; and what it saved is what is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "fuzz/fuzz.h"
#include "fuzz/mend_record.h"
#include "store/checkpoint.h"

/* ---- the run ---- */

static float weight[6], bias[2], moment[6];
static pl_st_entry model_entry[] = {{"weight", PL_ST_F32, 2, {2, 3}, weight, sizeof weight},
                                    {"bias", PL_ST_F32, 1, {2}, bias, sizeof bias}};
static pl_st_entry state_entry[] = {{"weight.m", PL_ST_F32, 2, {2, 3}, moment, sizeof moment}};
static pl_record_counter counters[] = {{"tokens", 7}};
static pl_record own_record = {.model_hash = 77,
                               .config = "model:\n  width: 3\n",
                               .best_metric = "validation_loss",
                               .counters = counters,
                               .counter_count = 1};
static const pl_st_list model = {.entries = model_entry, .count = 2}, state = {.entries = state_entry, .count = 1};

static void fill(float value)
{
    for (int i = 0; i < 6; i++) weight[i] = moment[i] = value;
    bias[0] = bias[1] = value;
}

static bool is_filled(float value)
{
    for (int i = 0; i < 6; i++)
        if (weight[i] != value || moment[i] != value) return false;
    return bias[0] == value && bias[1] == value;
}

/* ---- the folder ---- */

static const char *const names[] = {"latest",
                                    "best",
                                    "1/run.json",
                                    "1/model.safetensors",
                                    "1/state.safetensors",
                                    "2/run.json",
                                    "2/model.safetensors",
                                    "2/state.safetensors",
                                    "3/run.json"};
enum { NAMES = sizeof names / sizeof *names, LATEST = 0, BEST = 1 };

typedef struct part {
    const char *text;
    size_t bytes;
} part;

static const char *find_mark(const char *at, const char *end)
{
    while (at < end && (at = memmem(at, (size_t)(end - at), "=== ", 4)) && at[-1] != '\n') at++;
    return at && at < end ? at : end;
}

static void split(const char *text, size_t size, part parts[NAMES])
{
    const char *end = text + size, *at = size >= 4 && memcmp(text, "=== ", 4) == 0 ? text : end;
    while (at < end) {
        const char *name = at + 4, *line = memchr(name, '\n', (size_t)(end - name));
        if (!line) return;
        const char *next = find_mark(line + 1, end);
        for (int i = 0; i < NAMES; i++)
            if (strlen(names[i]) == (size_t)(line - name) && memcmp(names[i], name, (size_t)(line - name)) == 0)
                parts[i] = (part){line + 1, (size_t)(next - line - 1) - (next < end && next > line + 1)};
        at = next;
    }
}

static void mend_file(json_t *root, const char *name, const part *file)
{
    char digits[PL_CHECKSUM_TEXT_BYTES];
    json_t *entry = json_object_get(json_object_get(root, "files"), name);
    json_object_set_new(entry, "bytes", json_integer((json_int_t)file->bytes));
    json_object_set_new(entry, "xxh64",
                        json_string(pl_checksum_print(pl_checksum_of(file->text, file->bytes), digits)));
}

/* The record with the figures of the two files behind it. */
static void write_record(const char *path, const part *p)
{
    json_t *root = json_loadb(p->text, p->bytes, 0, NULL);
    if (!root) {
        fuzz_write(path, p->text, p->bytes);
        return;
    }
    if (p[1].text) mend_file(root, "model.safetensors", &p[1]);
    if (p[2].text) mend_file(root, "state.safetensors", &p[2]);
    json_object_del(root, "checksum");
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_ENCODE_ANY);
    pl_str mended = mend_record(text, strlen(text));
    fuzz_write(path, pl_str_text(&mended), mended.bytes);
    pl_str_deinit(&mended);
    free(text);
    json_decref(root);
}

static void write_part(const char *checkpoints, int i, const part *p)
{
    char path[256], digits[2] = {names[i][0]};
    if (i <= BEST) {
        snprintf(path, sizeof path, "%s/%s", checkpoints, names[i]);
        fuzz_write(path, p->text, p->bytes);
        return;
    }
    snprintf(path, sizeof path, "%s/step-0000000%s", checkpoints, digits);
    (void)mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/step-0000000%s/%s", checkpoints, digits, names[i] + 2);
    if (strcmp(names[i] + 2, "run.json") == 0 && i + 2 < NAMES)
        write_record(path, p);
    else
        fuzz_write(path, p->text, p->bytes);
}

static void write_folder(const char *out, const char *text, size_t size)
{
    part parts[NAMES] = {{0}};
    char checkpoints[128];
    fuzz_remove_all(out);
    (void)mkdir(out, 0755);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", out);
    (void)mkdir(checkpoints, 0755);
    split(text, size, parts);
    for (int i = 0; i < NAMES; i++)
        if (parts[i].text) write_part(checkpoints, i, &parts[i]);
}

/* ---- what a run does with it ---- */

static void use(const pl_saved *saved)
{
    pl_error err = {0};
    fill(-1);
    pl_status status = pl_saved_match(saved, own_record.model_hash, own_record.config, &model, &err);
    if (status != PL_OK) fuzz_refused(status, &err, saved->path, FUZZ_NAME);
    status = pl_saved_load(saved, &model, &state, &err);
    if (status == PL_OK) return;
    fuzz_refused(status, &err, saved->path, FUZZ_NAME);
    FUZZ_CHECK(is_filled(-1), "a checkpoint that was refused changed the weights: %s", err.text);
}

typedef pl_status finder(const char *, pl_saved_part, pl_saved *, pl_error *);
static void look(const char *out, finder *find, pl_saved_part how)
{
    pl_error err = {0};
    pl_saved saved;
    pl_status status = find(out, how, &saved, &err);
    if (status != PL_OK) {
        FUZZ_CHECK(!saved.record, "a record of a checkpoint that was refused");
        fuzz_refused(status, &err, out, FUZZ_NAME);
    } else if (saved.record && how == PL_SAVED_WHOLE) {
        use(&saved);
    }
    pl_saved_deinit(&saved);
}

static void go_on(const char *out)
{
    static _Alignas(64) char scratch[256 << 10];
    pl_checkpoint_spec spec = {
        .folder = out, .model = model, .state = state, .keep_last = 1, .keep_best = true, .record = &own_record};
    pl_error err = {0};
    pl_saved saved;
    pl_checkpoint *checkpoint;
    if (pl_saved_find(out, PL_SAVED_WHOLE, &saved, &err) != PL_OK) return;
    FUZZ_CHECK(pl_checkpoint_create(&spec, saved.record, scratch, sizeof scratch, &checkpoint, &err) == PL_OK, "%s",
               err.text);
    own_record.step = saved.record && saved.record->step < 1000 ? saved.record->step + 1 : 1;
    own_record.has_best = saved.record && saved.record->has_best;
    own_record.best_step = own_record.has_best ? saved.record->best_step : 0;
    own_record.best_value = own_record.has_best ? saved.record->best_value : 0;
    pl_saved_deinit(&saved);
    fill(5);
    FUZZ_CHECK(pl_checkpoint_save(checkpoint, &own_record, &err) == PL_OK, "%s", err.text);
    fill(-1);
    FUZZ_CHECK(pl_saved_find(out, PL_SAVED_WHOLE, &saved, &err) == PL_OK && saved.record,
               "what was saved is not found: %s", err.text);
    FUZZ_CHECK(saved.record->step == own_record.step && !saved.warning[0], "step %llu was saved, %llu is found %s",
               (unsigned long long)own_record.step, (unsigned long long)saved.record->step, saved.warning);
    FUZZ_CHECK(pl_saved_load(&saved, &model, &state, &err) == PL_OK && is_filled(5), "other weights came back: %s",
               err.text);
    pl_saved_deinit(&saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char out[96];
    uint64_t before = pl_alloc_live_blocks();
    snprintf(out, sizeof out, "%s/run", fuzz_folder());
    write_folder(out, (const char *)data, size);
    look(out, pl_saved_find, PL_SAVED_RECORD);
    look(out, pl_saved_find, PL_SAVED_WEIGHTS);
    look(out, pl_saved_find, PL_SAVED_WHOLE);
    look(out, pl_saved_find_best, PL_SAVED_WHOLE);
    go_on(out);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
