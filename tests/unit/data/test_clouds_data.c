/* Flights as data against a slow second way: which labels a stage has, their scalers, and every number that a source
 * writes, for random flights, stages and rules. That nothing of a flight that is held out gets into a training; that
 * what is written hangs on no slot, thread or memory; damage; the sentences. */
#include "unit/data/frame_file.h"

#include "data/clouds/clouds_data.h"
#include "stream/ring.h"
#include "support/program.h"
#include "support/seed.h"

enum {
    WINDOW_MAX = 7,
    BATCH_MAX = 11,
    IMAGES_MAX = BATCH_MAX * WINDOW_MAX * WORLD_PIXELS,
    LABELS_MAX = WORLD_FLIGHTS * WORLD_FRAMES
};

static scratch_random dice;
static pl_error err;
static world here;
static pl_clouds_setup setup;
static pl_clouds_data *data;
static char path[128];

/* ---- what is opened ---- */

static void random_setup(uint32_t k)
{
    setup = (pl_clouds_setup){.frames_path = path,
                              .stage = (pl_split_stage)(k % 3),
                              .stage_key = "stage",
                              .flight = here.flight[k / 3 % WORLD_FLIGHTS].name,
                              .overweight = "",
                              .overweight_factor = 3.5,
                              .window = 1 + scratch_next(&dice, WINDOW_MAX),
                              .batch = 1 + scratch_next(&dice, BATCH_MAX),
                              .seed = scratch_next(&dice, 1000),
                              .augment = scratch_next(&dice, 2),
                              .zscore = scratch_next(&dice, 2),
                              .zenith = scratch_next(&dice, 4),
                              .azimuth = scratch_next(&dice, 4),
                              .evaluates = scratch_next(&dice, 2)};
    if (scratch_next(&dice, 2)) setup.overweight = here.flight[(k / 3 + 1) % WORLD_FLIGHTS].name;
}

static void open_data(void)
{
    if (pl_clouds_data_open(&setup, &data, &err) != PL_OK) fail_msg("%s", err.text);
}

static void open_random(uint32_t k)
{
    world_make(&here, &dice);
    world_write(&here, path);
    random_setup(k);
    open_data();
}

static void close_data(void) { pl_data_close(&data->data); }

/* ---- the second way ---- */

typedef struct labelled {
    uint32_t flight, frame;
} labelled;

/* The largest whole number of which 100 are not above percent · n. */
static uint32_t share(uint32_t n, uint32_t percent)
{
    uint32_t m = 0;
    while ((m + 1) * 100 <= n * percent) m++;
    return m;
}

/* 0: trains, 1: validates, 2: neither. */
static int role_of(uint32_t flight, uint32_t label)
{
    const bool chosen = strcmp(here.flight[flight].name, setup.flight) == 0;
    const uint32_t n = here.flight[flight].labels;
    if (setup.stage == PL_SPLIT_PRETRAIN) return !chosen ? 2 : label < share(n, 80) ? 0 : 1;
    if (chosen) return setup.evaluates ? 1 : 2;
    return label < share(n, 85) ? 0 : setup.evaluates ? 2 : 1;
}

static uint32_t list_of(int role, labelled *list)
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < WORLD_FLIGHTS; f++)
        for (uint32_t i = 0, label = 0; i < here.flight[f].frames; i++)
            if (here.flight[f].frame[i].labelled && role_of(f, label++) == role) list[count++] = (labelled){f, i};
    return count;
}

static void check_list(int part)
{
    static labelled want[LABELS_MAX];
    const uint32_t count = list_of(part, want);
    const pl_clouds_samples *got = &data->source.samples[part];
    assert_int_equal(got->count, count);
    assert_int_equal(data->source.source.steps_per_epoch[part], count / setup.batch + (count % setup.batch > 0));
    for (uint32_t i = 0; i < count; i++) {
        const world_frame *x = &here.flight[want[i].flight].frame[want[i].frame];
        const pl_clouds_sample *s = &got->sample[i];
        assert_true(s->flight == want[i].flight && s->frame == want[i].frame);
        assert_true(s->seconds == x->seconds && s->height_km == x->km && s->zenith == x->zenith &&
                    s->azimuth == x->azimuth);
        if (part == PL_PART_TRAIN) continue;
        const pl_label label = data->data.kind->labels->at(&data->data, i);
        assert_string_equal(label.group, here.flight[want[i].flight].name);
        assert_true(label.item == want[i].frame && label.seconds == x->seconds && label.truth == (double)x->km);
    }
}

/* Whatever the rules: no label of both, none of the flight that is held out, none that is later than what validates. */
static void check_no_leak(void)
{
    for (uint64_t i = 0; i < data->source.samples[0].count; i++) {
        const pl_clouds_sample *a = &data->source.samples[0].sample[i];
        assert_true((strcmp(here.flight[a->flight].name, setup.flight) == 0) == (setup.stage == PL_SPLIT_PRETRAIN));
        for (uint64_t k = 0; k < data->source.samples[1].count; k++) {
            const pl_clouds_sample *b = &data->source.samples[1].sample[k];
            assert_true(a->flight != b->flight || a->seconds < b->seconds);
        }
    }
}

typedef struct series {
    double x[LABELS_MAX];
    uint32_t n;
} series;

static void check_scaler(const series *s, const pl_scaler *got)
{
    long double mean = 0, squares = 0;
    for (uint32_t i = 0; i < s->n; i++) mean += s->x[i] / s->n;
    for (uint32_t i = 0; i < s->n; i++) squares += (s->x[i] - mean) * (s->x[i] - mean) / s->n;
    assert_true(fabs(got->mean - (double)mean) <= 1e-12 * (1 + fabs(got->mean)));
    assert_true(fabs(got->deviation - (double)sqrtl(squares)) <= 1e-10 * got->deviation);
}

static void check_scalers(void)
{
    static series zenith, azimuth, height;
    zenith.n = azimuth.n = height.n = 0;
    for (uint32_t f = 0; f < WORLD_FLIGHTS; f++) {
        const bool chosen = strcmp(here.flight[f].name, setup.flight) == 0;
        for (uint32_t i = 0, label = 0; i < here.flight[f].frames; i++) {
            const world_frame *x = &here.flight[f].frame[i];
            if (x->labelled && role_of(f, label++) == 0) height.x[height.n++] = (double)x->km;
            if (chosen != (setup.stage == PL_SPLIT_PRETRAIN)) continue;
            zenith.x[zenith.n++] = x->zenith, azimuth.x[azimuth.n++] = x->azimuth;
        }
    }
    check_scaler(&zenith, &data->source.scaler.zenith);
    check_scaler(&azimuth, &data->source.scaler.azimuth);
    check_scaler(&height, data->data.kind->labels->scaler(&data->data));
}

static void lists_and_scalers(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 24; k++) {
        open_random(k);
        check_list(PL_PART_TRAIN);
        check_list(PL_PART_VALIDATION);
        assert_int_equal(data->data.kind->labels->count(&data->data), data->source.samples[1].count);
        check_no_leak();
        check_scalers();
        assert_int_equal(pl_facts_value(&data->data.extents, "height", 0), here.height);
        assert_int_equal(pl_facts_value(&data->data.extents, "width", 0), here.width);
        assert_int_equal(data->source.source.at_once, setup.evaluates ? 0 : setup.batch);
        close_data();
    }
}

/* ---- what a step is filled with ---- */

typedef struct filled {
    float images[IMAGES_MAX], angles[BATCH_MAX * 2], target[BATCH_MAX];
    uint64_t counted;
} filled;

/* A step by micro-batches of so many, in any order, each slot and the scratch full of rubbish before. */
static pl_status fill_step(pl_part part, uint64_t step, uint32_t rows, filled *to)
{
    static filled slot;
    const pl_source *s = &data->source.source;
    const uint32_t micros = (setup.batch + rows - 1) / rows, turn = scratch_next(&dice, micros);
    const size_t row = (size_t)setup.window * here.height * here.width;
    pl_source_layout l;
    pl_status status = PL_OK;
    assert_int_equal(s->kind->describe(s, rows, &l, &err), PL_OK);
    assert_true(l.ports == 3 && l.port[0].bytes == rows * row * 4 && l.port[1].bytes == rows * 8 &&
                l.port[2].bytes == rows * 4);
    void *scratch = aligned_alloc(64, l.scratch_bytes);
    memset(scratch, 0xa7, l.scratch_bytes);
    s->kind->prepare(s, scratch);
    to->counted = 0;
    for (uint32_t k = 0; k < micros && status == PL_OK; k++) {
        const uint32_t micro = (k + turn) % micros, begin = micro * rows,
                       n = setup.batch - begin < rows ? setup.batch - begin : rows;
        pl_slot at = {.port = {{.at = slot.images}, {.at = slot.angles}, {.at = slot.target}},
                      .ports = 3,
                      .part = part,
                      .step = step,
                      .micro = micro,
                      .micro_count = micros,
                      .rows = rows,
                      .first_sample = step * setup.batch + begin,
                      .counted = 99};
        memset(&slot, 0x77, sizeof slot);
        status = s->kind->fill(s, scratch, &at, &err);
        memcpy(to->images + begin * row, slot.images, n * row * sizeof(float));
        memcpy(to->angles + begin * 2, slot.angles, n * 2 * sizeof(float));
        memcpy(to->target + begin, slot.target, n * sizeof(float));
        to->counted += at.counted;
        for (uint32_t r = n; r < rows && status == PL_OK; r++) /* rows that no sample of the batch is for */
            assert_true(isnan(slot.target[r]) && slot.angles[r * 2] == 0 && slot.images[r * row] == 0);
    }
    free(scratch);
    return status;
}

static void must_fill(pl_part part, uint64_t step, uint32_t rows, filled *to)
{
    if (fill_step(part, step, rows, to) != PL_OK) fail_msg("%s", err.text);
}

static void is_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want)))) fail_msg("%.9g, where %.9g is due", got, want);
}

static double scaled(const pl_scaler *s, double x) { return (x - s->mean) / s->deviation; }

static void picture_of(const world_frame *x, const pl_variation *v, double *out)
{
    const uint32_t n = here.height * here.width;
    double mean = 0, after = 0, squares = 0, y[WORLD_PIXELS];
    for (uint32_t i = 0; i < n; i++) mean += (double)x->pixel[i] / n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t column = i % here.width, from = v->varies && v->flips ? i - column + here.width - 1 - column : i;
        y[i] = (double)x->pixel[from];
        if (v->varies) y[i] = fmin(1, fmax(0, ((y[i] - mean) * v->contrast + mean) * v->brightness));
        after += y[i] / n;
    }
    for (uint32_t i = 0; i < n; i++) squares += (y[i] - after) * (y[i] - after) / n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t row = i / here.width, column = i % here.width;
        const bool erased = v->varies && v->erases && row - v->top < v->height && column - v->left < v->width;
        out[i] = erased ? 0 : setup.zscore ? (y[i] - after) / sqrt(squares) : y[i];
    }
}

static void check_sample(labelled at, const pl_variation *v, const float *images, const float *angles, float target)
{
    const world_frame *x = &here.flight[at.flight].frame[at.frame];
    const pl_clouds_scalers *s = &data->source.scaler;
    const double azimuth = v->varies && v->flips && x->azimuth > 0 ? 360 - x->azimuth : x->azimuth;
    double want[WORLD_PIXELS];
    is_near((double)angles[0], setup.zenith ? scaled(&s->zenith, x->zenith) : 0);
    is_near((double)angles[1], setup.azimuth ? scaled(&s->azimuth, azimuth) : 0);
    is_near((double)target, scaled(&s->height, (double)x->km));
    for (uint32_t t = 0; t < setup.window; t++) {
        int frame = (int)at.frame - (int)(setup.window / 2) + (int)t;
        if (frame < 0) frame = 0;
        if (frame > (int)here.flight[at.flight].frames - 1) frame = (int)here.flight[at.flight].frames - 1;
        picture_of(&here.flight[at.flight].frame[frame], v, want);
        for (uint32_t i = 0; i < here.height * here.width; i++)
            is_near((double)images[t * here.height * here.width + i], want[i]);
    }
}

static void check_row(pl_part part, uint64_t number, const filled *f, uint32_t row)
{
    static labelled list[LABELS_MAX];
    const uint32_t count = list_of(part, list);
    const uint64_t pixels = (uint64_t)setup.window * here.height * here.width;
    const pl_clouds_sample *s = pl_clouds_source_row(&data->source, part, number);
    const pl_philox random = pl_philox_init(setup.seed, pl_stream_id("data/augment"));
    pl_variation v = {.varies = false};
    if (part == PL_PART_TRAIN && setup.augment) v = pl_variation_draw(&random, number, here.height, here.width);
    if (!s) {
        assert_true(part == PL_PART_VALIDATION && number >= count && isnan(f->target[row]));
        for (uint64_t i = 0; i < pixels; i++) assert_true(f->images[row * pixels + i] == 0);
        return;
    }
    if (part == PL_PART_VALIDATION) assert_true(list[number].flight == s->flight && list[number].frame == s->frame);
    check_sample((labelled){s->flight, (uint32_t)s->frame}, &v, f->images + row * pixels, f->angles + row * 2,
                 f->target[row]);
}

static bool is_same(const filled *a, const filled *b)
{
    const size_t n = setup.batch;
    return memcmp(a->images, b->images, n * setup.window * here.height * here.width * 4) == 0 &&
           memcmp(a->angles, b->angles, n * 8) == 0 && memcmp(a->target, b->target, n * 4) == 0 &&
           a->counted == b->counted;
}

static void steps_are_as_said(void **state)
{
    (void)state;
    static filled whole, parts;
    for (uint32_t k = 0; k < 12; k++) {
        open_random(k);
        const pl_source *s = &data->source.source;
        for (int part = 0; part < 2; part++)
            for (uint64_t step = 0; step < 3; step++) {
                const uint64_t at = part == PL_PART_TRAIN ? step * 1000 : (s->steps_per_epoch[1] - 1) * (step & 1);
                must_fill((pl_part)part, at, setup.batch, &whole);
                assert_int_equal(whole.counted, s->kind->count(s, (pl_part)part, at));
                for (uint32_t row = 0; row < setup.batch; row++)
                    check_row((pl_part)part, at * setup.batch + row, &whole, row);
                must_fill((pl_part)part, at, 1 + scratch_next(&dice, setup.batch), &parts);
                assert_true(is_same(&whole, &parts));
            }
        assert_int_equal(s->kind->count(s, PL_PART_TRAIN, 12345), setup.batch);
        assert_int_equal(s->kind->count(s, PL_PART_VALIDATION, s->steps_per_epoch[1]), 0);
        close_data();
    }
}

/* Over the end of epochs, which the batch divides or not: every sample once an epoch, or drawn by its weight. */
static void epochs_are_whole(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 12; k++) {
        open_random(k);
        const pl_clouds_samples *of = &data->source.samples[PL_PART_TRAIN];
        for (uint64_t epoch = 0; epoch < 3 && setup.stage != PL_SPLIT_FINAL; epoch++) {
            uint8_t seen[LABELS_MAX] = {0};
            for (uint64_t i = 0; i < of->count; i++)
                assert_false(
                    seen[pl_clouds_source_row(&data->source, PL_PART_TRAIN, epoch * of->count + i) - of->sample]++);
        }
        if (setup.stage == PL_SPLIT_FINAL) {
            uint64_t heavy = 0, drawn = 0;
            for (uint64_t i = 0; i < of->count; i++)
                heavy += strcmp(here.flight[of->sample[i].flight].name, setup.overweight) == 0;
            for (uint64_t i = 0; i < 20000; i++)
                drawn += strcmp(here.flight[pl_clouds_source_row(&data->source, PL_PART_TRAIN, i)->flight].name,
                                setup.overweight) == 0;
            const double want = (double)heavy * 3.5 / ((double)heavy * 3.5 + (double)(of->count - heavy));
            assert_true(fabs((double)drawn / 20000 - want) <= 8 * sqrt(want * (1 - want) / 20000));
        }
        close_data();
    }
}

/* ---- through a ring ---- */

static void any_threads(void **state)
{
    (void)state;
    static filled want;
    open_random(2);
    uint64_t bytes;
    pl_ring_options o = {
        .source = &data->source.source, .micro_batch = setup.batch, .slots = 3, .threads = 2, .stack_bytes = 65536};
    pl_ring *ring;
    pl_slot slot;
    assert_int_equal(pl_ring_bytes(&o, &bytes, &err), PL_OK);
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_int_equal(pl_ring_init(memory, &o, &ring, &err), PL_OK);
    assert_int_equal(pl_ring_start(ring, &err), PL_OK);
    pl_alloc_seal(1);
    pl_ring_begin(ring, PL_PART_TRAIN, 5, 25);
    for (uint64_t step = 5; step < 25; step++) {
        if (pl_ring_next(ring, &slot, &err) != PL_OK) fail_msg("%s", err.text);
        must_fill(PL_PART_TRAIN, step, setup.batch, &want);
        assert_memory_equal(slot.port[0].at, want.images, slot.port[0].bytes);
        assert_memory_equal(slot.port[1].at, want.angles, slot.port[1].bytes);
        assert_memory_equal(slot.port[2].at, want.target, slot.port[2].bytes);
        pl_ring_release(ring);
    }
    pl_alloc_seal(0);
    pl_ring_deinit(ring);
    free(memory);
    close_data();
}

/* ---- leaks ---- */

/* Other heights in the place of those that no training may know. */
static void change_hidden(void)
{
    for (uint32_t f = 0; f < WORLD_FLIGHTS; f++)
        for (uint32_t i = 0, label = 0; i < here.flight[f].frames; i++) {
            world_frame *x = &here.flight[f].frame[i];
            if (x->labelled && role_of(f, label++) == 2) x->km = (float)(0.1 + 1.9 * world_uniform(&dice));
        }
}

static uint64_t hash_floats(uint64_t hash, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ pl_f32_bits(x[i])) * 0x100000001b3u;
    return hash;
}

/* Everything that a stage's training sees: of three epochs, and of its validation. */
static uint64_t hash_training(void)
{
    static filled step;
    const size_t pixels = (size_t)setup.window * here.height * here.width;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int part = 0; part < 2; part++)
        for (uint64_t k = 0; k < data->source.source.steps_per_epoch[part] * (part ? 1 : 3); k++) {
            must_fill((pl_part)part, k, setup.batch, &step);
            hash = hash_floats(hash, step.images, setup.batch * pixels);
            hash = hash_floats(hash, step.angles, setup.batch * 2);
            hash = hash_floats(hash, step.target, setup.batch);
        }
    return hash;
}

static void hidden_labels_change_nothing(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < 6; k++) {
        open_random(k);
        close_data();
        setup.evaluates = false;
        open_data();
        const pl_facts before = data->data.identity;
        const pl_clouds_scalers scaler = data->source.scaler;
        const uint64_t hash = hash_training();
        close_data();
        change_hidden();
        world_write(&here, path);
        open_data();
        assert_memory_equal(&scaler, &data->source.scaler, sizeof scaler);
        assert_true(hash == hash_training());
        assert_int_equal(pl_facts_value(&before, "scalers", 0), pl_facts_value(&data->data.identity, "scalers", 1));
        assert_int_equal(pl_facts_value(&before, "split", 0), pl_facts_value(&data->data.identity, "split", 1));
        assert_int_not_equal(pl_facts_value(&before, "frames", 0), pl_facts_value(&data->data.identity, "frames", 0));
        close_data();
        here.flight[setup.stage == PL_SPLIT_PRETRAIN ? k / 3 : k / 3 + 1].frame[0].km += 0.5f; /* one that counts */
        world_write(&here, path);
        open_data();
        assert_true(hash != hash_training() && memcmp(&scaler, &data->source.scaler, sizeof scaler) != 0);
        close_data();
    }
}

/* ---- what is refused ---- */

static void refused(pl_status status, const char *says)
{
    err.text[0] = 0;
    assert_int_equal(pl_clouds_data_open(&setup, &data, &err), status);
    assert_says(&err, says);
}

static void a_plain_setup(pl_split_stage stage)
{
    world_make(&here, &dice);
    world_write(&here, path);
    random_setup(stage);
    setup.overweight = "";
}

static void names_are_checked(void **state)
{
    (void)state;
    a_plain_setup(PL_SPLIT_FINAL);
    setup.stage_key = "validation_flight";
    setup.flight = "31Feb25";
    refused(PL_E_CONFIG, "validation_flight is 31Feb25, but there is no such flight; give one of flight0, flight1, ");
    setup.flight = "";
    refused(PL_E_CONFIG, "validation_flight names no flight");
    setup.flight = "flight1", setup.overweight = "x";
    refused(PL_E_CONFIG, "overweight_flight is x, but");
    setup.overweight = "flight1";
    refused(PL_E_CONFIG, "validation_flight and overweight_flight are both flight1");
    setup.stage = PL_SPLIT_LEAVE_OUT; /* where it has no meaning it stands in no way */
    open_data();
    close_data();
    setup.window = 65;
    refused(PL_E_CONFIG, "a window of 65 frames");
    setup.window = 5, setup.frames_path = scratch_path("none");
    refused(PL_E_DATA, "none");
}

static void too_few_are_refused(void **state)
{
    (void)state;
    a_plain_setup(PL_SPLIT_PRETRAIN);
    setup.flight = "flight0";
    for (uint32_t i = 0; i < here.flight[0].frames; i++) {
        here.flight[0].frame[i].labelled = i == 4;
        here.flight[0].frame[i].km = i == 4 ? 1 : NAN;
    }
    here.flight[0].labels = 1;
    world_write(&here, path);
    refused(PL_E_DATA, "flight flight0 has 1 labels, too few");
    here.flight[0].frame[4].labelled = false, here.flight[0].frame[4].km = NAN, here.flight[0].labels = 0;
    world_write(&here, path);
    setup.stage = PL_SPLIT_FINAL;
    refused(PL_E_DATA, "flight flight0 has no labels to be judged by");
    setup.flight = "flight1";
    for (uint32_t f = 0; f < WORLD_FLIGHTS; f++)
        for (uint32_t i = 0; i < here.flight[f].frames; i++)
            if (f != 1 && here.flight[f].frame[i].labelled) here.flight[f].frame[i].km = 1.25f;
    world_write(&here, path);
    refused(PL_E_DATA, "heights that would be trained on are 1.25 km");
}

static void windows_need_pictures(void **state)
{
    (void)state;
    a_plain_setup(PL_SPLIT_PRETRAIN);
    here.flight[0].frame[7].labelled = true, here.flight[0].frame[6].labelled = false;
    here.flight[0].frame[7].km = 1, here.flight[0].frame[6].km = NAN;
    here.flight[0].labels = 0;
    for (uint32_t i = 0; i < here.flight[0].frames; i++) here.flight[0].labels += here.flight[0].frame[i].labelled;
    world_write_without(&here, path, 6);
    setup.window = 3, setup.flight = "flight0";
    refused(PL_E_DATA, "of flight flight0 has no picture, but is one of the 3 around a label");
}

static void damage_is_found_where_it_is(void **state)
{
    (void)state;
    static filled step;
    a_plain_setup(PL_SPLIT_PRETRAIN);
    open_data();
    pl_frames_info info = data->frames.info;
    for (uint64_t i = 0; i < info.pictures; i++)
        scratch_damage(setup.frames_path,
                       (long)(pl_frames_records_offset(&info) - (i + 1) * pl_frames_picture_bytes(&info)));
    assert_int_equal(fill_step(PL_PART_TRAIN, 3, setup.batch, &step), PL_E_DATA);
    assert_says(&err, "are damaged (checksum of picture");
    close_data();
    scratch_damage(setup.frames_path, (long)pl_frames_records_offset(&info) + 3);
    refused(PL_E_DATA, "the records");
    here.form = PL_FRAMES_F16;
    for (uint32_t i = 0; i < here.flight[0].frames; i++) here.flight[0].frame[i].pixel[1] = 1.5f;
    world_write(&here, path);
    setup.flight = "flight0";
    open_data();
    assert_int_equal(fill_step(PL_PART_TRAIN, 3, setup.batch, &step), PL_E_DATA);
    assert_says(&err, "has numbers outside [0, 1]");
    close_data();
}

static void other_data_are_refused(void **state)
{
    (void)state;
    a_plain_setup(PL_SPLIT_FINAL);
    open_data();
    const pl_facts own = data->data.identity;
    const pl_data_kind *kind = data->data.kind;
    assert_int_equal(kind->match(&data->data, &own, "run", true, &err), PL_OK);
    assert_int_equal(kind->match(&data->data, &(pl_facts){0}, "run", true, &err), PL_OK);
    close_data();
    setup.evaluates = !setup.evaluates; /* the same data, whoever asks */
    open_data();
    assert_true(pl_facts_equal(&own, &data->data.identity));
    close_data();
    setup.overweight = "flight3", setup.overweight_factor = 2;
    open_data();
    assert_int_equal(kind->match(&data->data, &own, "run", false, &err), PL_OK); /* to be judged */
    assert_int_equal(kind->match(&data->data, &own, "run", true, &err), PL_E_CONFIG);
    assert_says(&err, "run: was trained on other flights than those in ");
    close_data();
    setup.flight = "flight2";
    open_data();
    assert_int_equal(kind->match(&data->data, &own, "run", false, &err), PL_E_CONFIG);
    assert_says(&err, "other means and deviations");
    close_data();
}

static void absurd_batches_are_refused(void **state)
{
    (void)state;
    a_plain_setup(PL_SPLIT_FINAL);
    open_data();
    pl_clouds_source large = data->source;
    pl_source_layout l;
    large.window = UINT32_MAX;
    assert_int_equal(large.source.kind->describe(&large.source, UINT32_MAX, &l, &err), PL_E_CONFIG);
    assert_says(&err, "absurdly large");
    close_data();
}

/* Every refusal of memory while opening is passed on, and nothing is kept. */
static void without_memory(void **state)
{
    (void)state;
    a_plain_setup(PL_SPLIT_FINAL);
    const uint64_t held = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status == PL_E_NOMEM; n++) {
        pl_alloc_fail_at(n, 0);
        status = pl_clouds_data_open(&setup, &data, &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(pl_alloc_live_blocks(), held);
    }
    assert_int_equal(status, PL_OK);
    close_data();
    assert_int_equal(pl_alloc_live_blocks(), held);
}

static int begin(void **state)
{
    if (scratch_make(state)) return -1;
    snprintf(path, sizeof path, "%s/frames", scratch_folder);
    return 0;
}

PL_TEST_PROGRAM(argc, argv)
{
    dice.key = pl_philox_init(test_seed_said(argc, argv), 6);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_scalers),
        cmocka_unit_test(steps_are_as_said),
        cmocka_unit_test(epochs_are_whole),
        cmocka_unit_test(any_threads),
        cmocka_unit_test(hidden_labels_change_nothing),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(too_few_are_refused),
        cmocka_unit_test(windows_need_pictures),
        cmocka_unit_test(damage_is_found_where_it_is),
        cmocka_unit_test(other_data_are_refused),
        cmocka_unit_test(absurd_batches_are_refused),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, begin, scratch_remove);
}
