/* The row of pages that are read: towers, fusion, recursion and planning, trained (MODELS.md 2). */
#include <string.h>

#include "base/alloc.h"
#include "data/pages/reading.h"
#include "models/model.h"
#include "systems/system.h"

static pl_status read_lexicon(const pl_config *c, pl_lexicon *l, pl_error *err)
{
    const uint32_t words = (uint32_t)c->reading.words;
    if (c->reading.lexicon[0]) return pl_lexicon_read(c->reading.lexicon, words, l, err);
    return pl_lexicon_make((uint64_t)c->reading.lexicon_seed, words, l, err);
}

static pl_status open_hybrid(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                             pl_data **data, pl_error *err)
{
    pl_reading *r;
    pl_reading_setup s = {.pages = (uint64_t)c->reading.pages,
                          .seed = (uint64_t)c->reading.lexicon_seed,
                          .held_out = c->reading.held_out,
                          .image_size = (uint32_t)c->vision_encoder.image_size,
                          .capsules = (uint32_t)c->vision_encoder.target_capsules,
                          .batch = (uint32_t)c->train.batch_size};
    (void)command, (void)use, (void)planned;
    PL_TRY(pl_font_load(c->reading.font, &s.font, err));
    pl_status status = read_lexicon(c, &s.lexicon, err);
    if (status != PL_OK) return pl_free((void *)(uintptr_t)s.font.data), status;
    status = pl_reading_open(&s, &r, err);
    if (status == PL_E_DATA && c->reading.font[0]) pl_fail_prefix(err, status, "%s", c->reading.font);
    if (status == PL_OK) *data = &r->data;
    return status;
}

/* ---- what is read off predictions: of each page how many words it has, how many are read, and whether all are ---- */

enum { WORDS, RIGHT, ALL_RIGHT, ROW };

static size_t measure(const pl_data *data, const float *predictions, uint64_t count, pl_loss_metric *to)
{
    const uint64_t pages = pl_reading_of(data)->count[PL_PART_VALIDATION],
                   rows = count / ROW < pages ? count / ROW : pages;
    double sum[ROW] = {0};
    for (uint64_t i = 0; i < rows; i++)
        for (int k = 0; k < ROW; k++) sum[k] += (double)predictions[i * ROW + k];
    to[0] = (pl_loss_metric){"token_accuracy",
                             "words read",
                             "words read",
                             4,
                             3,
                             PL_METRIC_IN_FILE | PL_METRIC_VALIDATED,
                             sum[WORDS] > 0 ? sum[RIGHT] / sum[WORDS] : 0};
    to[1] = (pl_loss_metric){"exact_accuracy",
                             "pages read",
                             "pages read",
                             4,
                             3,
                             PL_METRIC_IN_FILE | PL_METRIC_VALIDATED,
                             rows ? sum[ALL_RIGHT] / (double)rows : 0};
    return 2;
}

/* It stays: the handle is given up, and so its memory is never. */
static pl_status load_module(const char *further, pl_error *err)
{
    pl_draw kept;
    (void)further;
    return pl_draw_load("arch hybrid", &kept, err);
}

const pl_system pl_system_hybrid = {
    .words = {"word", "words", "page", "pages", "words/s", "pages", "step", "part", "nats per word", "batch_size",
              "batch_size, vision_encoder.hidden_size or .image_size", "vision_encoder.hidden_size or its layers"},
    .load_module = load_module,
    .job = {[PL_COMMAND_TRAIN] = &pl_job_train,
            [PL_COMMAND_EVALUATE] = &pl_job_evaluate,
            [PL_COMMAND_GRADIENTS] = &pl_job_gradients},
    .measure = measure,
    .check = pl_model_check,
    .open = open_hybrid};
