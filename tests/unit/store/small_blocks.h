/* A small rollout for the tests of block files: operators × realisations × states. A state is some f32, and its next
 * one cannot be told from what is stored (f16); so who goes on needs the carry. Every number is a plain function of
 * where it stands, which `expected_arrays` computes without any block. */
#ifndef TESTS_STORE_SMALL_BLOCKS_H
#define TESTS_STORE_SMALL_BLOCKS_H

#include "unit/store/scratch_folder.h"

#include <math.h>

#include "base/narrow.h"
#include "store/block_file.h"

enum {
    OPERATORS = 3,
    REALISATIONS = 2,
    STATES = 11,
    STEP = 4, /* states in a block: 4, 4, 3 */
    WIDTH = 700,
    FEATURES = 5,
    SEQUENCES = OPERATORS * REALISATIONS,
    PIECES = (STATES + STEP - 1) / STEP,
    BLOCKS = SEQUENCES * PIECES + OPERATORS,
    WORD = 12
};

static const char small_names[OPERATORS][WORD] = {"gaussian", "laplace", "periodic"};

/* ---- the layout ---- */

enum { TRAJECTORIES, ENERGY, FEATURE, NAMES, DATASETS };
static const pl_block_kind small_kind[] = {
    {"states", 3, {{"operator", OPERATORS, 1}, {"realisation", REALISATIONS, 1}, {"state", STATES, STEP}}},
    {"features", 1, {{"operator", OPERATORS, 1}}},
};
static const pl_block_dataset small_dataset[DATASETS] = {
    [TRAJECTORIES] = {"outputs/fields", PL_DTYPE_F16, false, 4, {OPERATORS, REALISATIONS, STATES, WIDTH}, 0, NULL},
    [ENERGY] = {"metrics/energy", PL_DTYPE_F32, false, 3, {OPERATORS, REALISATIONS, STATES}, 0, NULL},
    [FEATURE] = {"features", PL_DTYPE_F64, false, 2, {OPERATORS, FEATURES}, 1, NULL},
    [NAMES] = {"metadata/noise", PL_DTYPE_U8, true, 2, {OPERATORS, WORD}, 1, small_names},
};
static const pl_block_attribute small_attribute[] = {{"metadata", "version", "1.0", 0},
                                                     {"metadata", "num_realizations", NULL, REALISATIONS}};
static const pl_block_layout small_layout = {.text = "{\n  \"seed\": 7,\n  \"dt\": 0.01\n}",
                                             .kind = small_kind,
                                             .kinds = 2,
                                             .dataset = small_dataset,
                                             .datasets = DATASETS,
                                             .attribute = small_attribute,
                                             .attributes = 2,
                                             .carry_slots = 2,
                                             .carry_bytes = WIDTH * sizeof(float)};

/* ---- the numbers ---- */

static uint32_t small_finished_max = 3; /* blocks between two commits */
static int small_first;                 /* operators before those of the layout: of a part */

static inline void first_state(int sequence, float *state)
{
    sequence += small_first * REALISATIONS;
    for (int i = 0; i < WIDTH; i++) state[i] = (float)((sequence * 37 + i * 11) % 101) / 101.0f;
}

/* Chaotic (the logistic map), so that a state that was rounded leads elsewhere. */
static inline void next_state(int sequence, float *state)
{
    sequence += small_first * REALISATIONS;
    for (int i = 0; i < WIDTH; i++) state[i] = (3.8f + 0.01f * (float)sequence) * state[i] * (1 - state[i]);
}

static inline float energy_of(const float *state)
{
    float sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += state[i] * state[i];
    return sum;
}

static inline double feature_of(int o, int i) { return (o + small_first) * 1000 + i * 0.25; }

typedef struct small_arrays {
    uint16_t fields[SEQUENCES][STATES][WIDTH];
    float energy[SEQUENCES][STATES];
    double features[OPERATORS][FEATURES];
} small_arrays;

static inline const small_arrays *expected_arrays(void)
{
    static small_arrays a;
    float state[WIDTH];
    for (int s = 0; s < SEQUENCES; s++) {
        first_state(s, state);
        for (int t = 0; t < STATES; t++, next_state(s, state)) {
            for (int i = 0; i < WIDTH; i++) a.fields[s][t][i] = pl_f16_of_f32(state[i]);
            a.energy[s][t] = energy_of(state);
        }
    }
    for (int o = 0; o < OPERATORS; o++)
        for (int i = 0; i < FEATURES; i++) a.features[o][i] = feature_of(o, i);
    return &a;
}

/* ---- the run ---- */

typedef struct small_blocks {
    pl_block_use use;
    _Alignas(64) char memory[1 << 16];
    pl_block_file *file;
    uint32_t computed, recalled, lost; /* states; sequences that went on, and that could not though they should */
} small_blocks;

static inline pl_status small_open(small_blocks *b, const char *path, const pl_block_layout *l, pl_error *err)
{
    pl_block_sizes sizes;
    b->use = (pl_block_use){2, small_finished_max};
    b->computed = b->recalled = b->lost = 0;
    pl_status status = pl_block_file_measure(l, PL_BLOCK_NATIVE, &b->use, &sizes, err);
    if (status == PL_OK) assert_true(sizes.memory_bytes <= sizeof b->memory);
    if (status == PL_OK) status = pl_block_file_open(path, l, &b->use, b->memory, sizes.memory_bytes, &b->file, err);
    return status;
}

static inline pl_status put_state(pl_block_file *f, uint64_t block, int at, const float *state, pl_error *err)
{
    uint16_t half[WIDTH];
    float energy = energy_of(state);
    for (int i = 0; i < WIDTH; i++) half[i] = pl_f16_of_f32(state[i]);
    pl_status status = pl_block_file_put(f, block, TRAJECTORIES, (uint64_t)at * sizeof half, half, sizeof half, err);
    if (status != PL_OK) return status;
    return pl_block_file_put(f, block, ENERGY, (uint64_t)at * sizeof energy, &energy, sizeof energy, err);
}

static inline uint64_t state_block(const pl_block_layout *l, int sequence, int piece)
{
    const uint64_t place[] = {(uint64_t)sequence / REALISATIONS, (uint64_t)sequence % REALISATIONS,
                              (uint64_t)piece * STEP};
    return pl_block_at(l, 0, place);
}

/* Where a sequence goes on: its first piece that is not done, and the state there; PIECES: it is done. */
static inline pl_status find_start(small_blocks *b, const pl_block_layout *l, int sequence, float *state, int *piece,
                                   pl_error *err)
{
    bool found = false;
    for (*piece = 0; *piece < PIECES; ++*piece)
        if (!pl_block_file_is_done(b->file, state_block(l, sequence, *piece))) break;
    if (*piece == PIECES) return PL_OK;
    if (*piece > 0) {
        pl_status status = pl_block_file_recall(b->file, state_block(l, sequence, *piece), state, &found, err);
        if (status != PL_OK) return status;
        b->recalled += found;
        b->lost += !found;
    }
    if (!found) first_state(sequence, state);
    for (int t = 0; !found && t < *piece * STEP; t++) next_state(sequence, state);
    return PL_OK;
}

static inline pl_status run_piece(small_blocks *b, const pl_block_layout *l, uint32_t slot, int sequence, int piece,
                                  float *state, pl_error *err)
{
    const uint64_t block = state_block(l, sequence, piece);
    pl_status status = PL_OK;
    for (int t = piece * STEP; t < STATES && t < (piece + 1) * STEP && status == PL_OK; t++) {
        status = put_state(b->file, block, t - piece * STEP, state, err);
        next_state(sequence, state);
        b->computed++;
    }
    if (status == PL_OK && piece + 1 < PIECES && slot < pl_block_file_slots(b->file))
        status = pl_block_file_carry(b->file, slot, block, state_block(l, sequence, piece + 1), state, err);
    return status == PL_OK ? pl_block_file_finish(b->file, block, err) : status;
}

/* Two realisations at once, a piece of each in turn, then the operator's features. */
static inline pl_status run_operator(small_blocks *b, const pl_block_layout *l, int o, pl_error *err)
{
    static float state[REALISATIONS][WIDTH];
    int piece[REALISATIONS];
    pl_status status = PL_OK;
    for (int r = 0; r < REALISATIONS && status == PL_OK; r++)
        status = find_start(b, l, o * REALISATIONS + r, state[r], &piece[r], err);
    for (bool any = true; any && status == PL_OK;) {
        any = false;
        for (int r = 0; r < REALISATIONS && status == PL_OK; r++) {
            if (piece[r] == PIECES) continue;
            if (pl_block_file_is_done(b->file, state_block(l, o * REALISATIONS + r, piece[r]))) {
                for (int t = 0; t < STEP; t++) next_state(o * REALISATIONS + r, state[r]); /* a hole before it */
            } else
                status = run_piece(b, l, (uint32_t)r, o * REALISATIONS + r, piece[r], state[r], err);
            piece[r]++;
            any = true;
        }
    }
    const uint64_t place[] = {(uint64_t)o}, block = pl_block_at(l, 1, place);
    if (status != PL_OK || pl_block_file_is_done(b->file, block)) return status;
    double features[FEATURES];
    for (int i = 0; i < FEATURES; i++) features[i] = feature_of(o, i);
    status = pl_block_file_put(b->file, block, FEATURE, 0, features, sizeof features, err);
    return status == PL_OK ? pl_block_file_finish(b->file, block, err) : status;
}

/* Makes or finds the file and does what is left of it. */
static inline pl_status small_run_all(small_blocks *b, const char *path, pl_block_form form, const pl_block_layout *l,
                                      pl_block_found *found, pl_error *err)
{
    pl_status status = pl_block_file_make(path, form, l, found, err);
    if (status == PL_OK) status = small_open(b, path, l, err);
    if (status != PL_OK) return status;
    const int operators = (int)l->kind[0].axis[0].extent;
    for (int o = 0; o < operators && status == PL_OK; o++) status = run_operator(b, l, o, err);
    if (status == PL_OK) return pl_block_file_close(b->file, err);
    (void)pl_block_file_close(b->file, NULL);
    return status;
}

/* ---- what must have come out ---- */

static inline void check_array(const pl_block_reader *r, const char *name, const void *wanted, size_t bytes)
{
    static char found[sizeof(small_arrays)];
    pl_error err = {0};
    uint32_t dataset = pl_block_find(pl_block_reader_layout(r), name);
    assert_int_not_equal(dataset, PL_BLOCK_NO_KIND);
    assert_int_equal(pl_block_dataset_bytes(&pl_block_reader_layout(r)->dataset[dataset]), bytes);
    if (pl_block_reader_read(r, dataset, 0, found, bytes, &err) != PL_OK) fail_msg("%s", err.text);
    if (memcmp(found, wanted, bytes) != 0) fail_msg("%s has other bytes than it should", name);
}

/* Everything is done, sound, and what it should be. */
static inline void check_complete(const char *path)
{
    const small_arrays *a = expected_arrays();
    pl_error err = {0};
    pl_block_reader *r;
    pl_block_checked checked;
    if (pl_block_reader_open(path, false, &r, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(pl_block_reader_done(r), BLOCKS);
    check_array(r, "outputs/fields", a->fields, sizeof a->fields);
    check_array(r, "metrics/energy", a->energy, sizeof a->energy);
    check_array(r, "features", a->features, sizeof a->features);
    check_array(r, "metadata/noise", small_names, sizeof small_names);
    if (pl_block_reader_check(r, NULL, NULL, &checked, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(checked.checked, BLOCKS);
    assert_int_equal(checked.damaged + checked.constants_damaged, 0);
    pl_block_reader_close(r);
}

static inline void assert_same_files(const char *a, const char *b)
{
    static char x[1 << 21], y[1 << 21];
    size_t n = read_bytes(a, x, sizeof x), m = read_bytes(b, y, sizeof y);
    assert_true(n < sizeof x);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i]) fail_msg("%s and %s differ first at byte %zu of %zu", a, b, i, n);
}

/* All files of two results of one form. */
static inline void assert_same_results(const char *a, const char *b, pl_block_form form)
{
    char x[1200], y[1200];
    if (form != PL_BLOCK_NPY) {
        assert_same_files(a, b);
        return;
    }
    static const char *const names[] = {"index", "outputs.fields.npy", "metrics.energy.npy", "features.npy",
                                        "metadata.noise.npy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(x, sizeof x, "%s/%s", a, names[i]);
        snprintf(y, sizeof y, "%s/%s", b, names[i]);
        assert_same_files(x, y);
    }
}

#endif
