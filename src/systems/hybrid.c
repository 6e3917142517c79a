/* The row of pages that are read: towers, fusion, recursion and planning, trained (docs/hybrid.md). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/pages/cache.h"
#include "data/pages/reading.h"
#include "models/hybrid.h"
#include "store/checkpoint.h"
#include "systems/capsules.h"
#include "systems/drawn_rows.h"
#include "systems/given_weights.h"
#include "systems/hybrid_texts.h"
#include "systems/hybrid_measure.h"
#include "systems/hybrid_stages.h"
#include "systems/system.h"

static pl_status read_lexicon(const pl_config *c, pl_lexicon *l, pl_error *err)
{
    const uint32_t words = (uint32_t)c->reading.words;
    if (c->reading.lexicon[0]) return pl_lexicon_read(c->reading.lexicon, words, l, err);
    return pl_lexicon_make((uint64_t)c->reading.lexicon_seed, words, l, err);
}

/* ---- weights of the frozen tower ---- */

/* The last norm is the class token's, which nothing reads; position_ids are the numbers 0, 1, 2, … */
static const char *const unused[] = {"post_layernorm.weight", "post_layernorm.bias", "embeddings.position_ids", NULL};
static const pl_weights_part tower = {"clip.", "vision_model.", unused};

enum { SAID_BYTES = 240, PIXEL_MAX = 255 };
#define FEATURES_FILE "features.cache"
#define IMAGES_FOLDER "images.cache"

/* The type that must hold its weights; bf16, which a search may choose, has the range of f32. */
static pl_real narrowest(const pl_config *c)
{
    const pl_config_frozen_storage as = c->vision_encoder.pretrained_precision;
    const uint32_t allow = as == PL_CONFIG_FROZEN_AUTO ? c->fit.allow : 0;
    if (as == PL_CONFIG_FROZEN_FP16) return PL_REAL_F16;
    return as == PL_CONFIG_FROZEN_BF16 || (allow & PL_ALLOW_FROZEN_BF16) ? PL_REAL_BF16 : PL_REAL_F32;
}

/* Weights that f32 holds are fine, even if a search may choose f16 and they are too large for that. */
static bool exceed_f16(const pl_config *c, const char *path)
{
    pl_given_weights unread;
    pl_error ignored;
    const bool may =
        c->vision_encoder.pretrained_precision == PL_CONFIG_FROZEN_AUTO && (c->fit.allow & PL_ALLOW_FROZEN_FP16) != 0;
    return may && pl_given_weights_check(path, &tower, PL_REAL_F16, &unread, &ignored) != PL_OK;
}

/* The checksum of the file that the run in the config's folder began with; 0: there is no run, and a new one there has
 * to read its file. The run itself reports damage. */
static pl_status find_saved_hash(const pl_config *c, uint64_t *hash, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    pl_saved saved;
    pl_error damaged;
    *hash = 0;
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    if (pl_saved_find(out, PL_SAVED_RECORD, &saved, &damaged) != PL_OK) return PL_OK;
    if (saved.record) *hash = pl_facts_value(&saved.record->identity, PL_FACT_WEIGHTS, 0);
    pl_saved_deinit(&saved);
    return PL_OK;
}

/* Is there all that the name means: a file, or the files of a folder or an index? */
static pl_status look_for_weights(const char *name, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_safetensors *index;
    pl_file_kind kind;
    PL_TRY(pl_file_find_kind(name, &kind, err));
    if (kind == PL_FILE_FOLDER) return pl_safetensors_locate(name, "AutoModel", path, err);
    if (kind == PL_FILE_NONE)
        return pl_fail(err, PL_E_DATA,
                       "%s: there is no such file or folder, and no download of a model of that name was found; fetch "
                       "its model.safetensors (or model.safetensors.index.json and all files that it names) into a "
                       "folder, and give the path of that folder",
                       name);
    if (!pl_ends_with(name, ".json")) return PL_OK;
    PL_TRY(pl_safetensors_open(name, &index, err));
    pl_safetensors_destroy(index);
    return PL_OK;
}

/* A saved run contains its tower: only a new run needs the file; a resumed one, if the file is still there, compares it
 * with the one that the run began with. */
static pl_status find_weights(const pl_config *c, pl_command command, pl_reading_setup *s, char said[SAID_BYTES],
                              pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_given_weights given;
    pl_error why;
    pl_str text = pl_str_fixed(said, SAID_BYTES);
    if (!c->vision_encoder.pretrained_weights[0] || command != PL_COMMAND_TRAIN) return PL_OK;
    s->weights = c->vision_encoder.pretrained_weights;
    if (c->train.init_from[0]) {
        pl_config_blame(c, "train.init_from", "vision_encoder.pretrained_weights", where);
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.init_from brings the frozen tower of that run, and vision_encoder.pretrained_weights "
                       "another one; leave one of the two out",
                       where);
    }
    const pl_status status = look_for_weights(s->weights, &why);
    if (status != PL_OK && status != PL_E_NOMEM) {
        PL_TRY(find_saved_hash(c, &s->weights_hash, err));
        if (s->weights_hash) {
            pl_str_printf(&text, "the frozen tower is the run's own: %.120s is not there any more", s->weights);
            return s->weights_said = said, s->weights = NULL, PL_OK;
        }
    }
    if (status != PL_OK) return pl_fail(err, status, "%s", why.text);
    PL_TRY(pl_given_weights_check(s->weights, &tower, narrowest(c), &given, err));
    s->weights_hash = given.hash, s->weights_part = &tower, s->weights_said = said;
    pl_str_printf(&text, "the frozen tower is that of %.120s: %" PRIu64 " tensors", s->weights, given.read);
    if (given.unread) pl_str_printf(&text, " (%" PRIu64 " more are of other parts and not used)", given.unread);
    s->weights_exceed_f16 = exceed_f16(c, s->weights);
    if (s->weights_exceed_f16) pl_str_append(&text, "; some are too large for fp16, which is not tried");
    return PL_OK;
}

/* ---- the cache of what it makes of pages ---- */

static pl_status find_features(const pl_config *c, pl_command command, pl_reading_setup *s, char path[PL_FILE_PATH_MAX],
                               pl_error *err)
{
    const pl_config_vision_encoder *v = &c->vision_encoder;
    const uint64_t side = (uint64_t)(v->image_size / v->patch_size);
    if (v->features_cache == 0) return PL_OK;
    PL_TRY(pl_config_run_path(c, FEATURES_FILE, path, err));
    const uint64_t of[] = {(uint64_t)v->patch_size,
                           (uint64_t)v->width,
                           (uint64_t)v->pretrained_layers,
                           (uint64_t)v->vit_heads,
                           (uint64_t)v->clip_normalize,
                           (uint64_t)v->pretrained_precision,
                           (uint64_t)c->train.mixed_precision,
                           (uint64_t)pl_config_find_isa(c)};
    s->features = side * side * (uint64_t)v->width;
    s->keeps_features = command == PL_COMMAND_TRAIN;
    s->features_path = path, s->features_bytes = v->features_cache;
    s->kept_key = pl_checksum_of(of, sizeof of);
    return PL_OK;
}

/* Warns where it was asked for and no denoiser makes pages: the source's file has the key. */
static void say_none_kept(const pl_config *c, pl_reading_setup *s, char said[SAID_BYTES])
{
    const bool is_said = s->weights_said != NULL;
    if (!c->dataset.cache_images || pl_hybrid_aim_of(c) == PL_HYBRID_DENOISES) return;
    if (pl_hybrid_aim_of(c) == PL_HYBRID_CHOOSES) return;
    snprintf(said + (is_said ? strlen(said) : 0), SAID_BYTES - (is_said ? strlen(said) : 0),
             "%sdataset.cache_images keeps nothing, since no denoiser makes pages", is_said ? "; " : "");
    s->weights_said = said;
}

static pl_status find_images(const pl_config *c, pl_command command, pl_reading_setup *s, char path[PL_FILE_PATH_MAX],
                             char said[SAID_BYTES], pl_error *err)
{
    const uint64_t of[] = {(uint64_t)c->denoiser.channels, (uint64_t)c->denoiser.depth,
                           (uint64_t)c->train.mixed_precision, (uint64_t)pl_config_find_isa(c)};
    s->keeps_images = pl_hybrid_keeps_pages(c);
    if (!s->keeps_images) return say_none_kept(c, s, said), PL_OK;
    PL_TRY(pl_config_run_path(c, IMAGES_FOLDER, path, err));
    if (command == PL_COMMAND_TRAIN) s->images_folder = path;
    s->images_bytes = c->dataset.cache_size;
    s->kept_key = pl_checksum_of(of, sizeof of);
    return PL_OK;
}

/* For parts that are trained alone and read nothing: their loss is per page. */
#define WORDS_OF_PAGES(loss, sizes, weights)                                                                           \
    {                                                                                                                  \
        "page", "pages", "page", "pages", "pages/s", "pages", "step", "part", loss, "batch_size", sizes, weights       \
    }

static const pl_words words_of_n2n =
    WORDS_OF_PAGES("mean squared error of the features", "batch_size, vision_encoder.width or .image_size",
                   "vision_encoder.width or its layers");
static const pl_words words_of_denoiser =
    WORDS_OF_PAGES("mean squared error of the pixels", "batch_size, denoiser.channels or vision_encoder.image_size",
                   "denoiser.channels or its depth");
/* Actions are learned; the pages that come from them are judged. */
static const pl_words words_of_policy =
    WORDS_OF_PAGES("mean squared error of the pixels", "batch_size, page_policy.samples or vision_encoder.image_size",
                   "denoiser.channels or its depth");

static const pl_words *words_of(const pl_config *c)
{
    static const pl_words *const words[] = {[PL_HYBRID_READS] = &pl_system_hybrid.words,
                                            [PL_HYBRID_ADAPTS] = &words_of_n2n,
                                            [PL_HYBRID_DENOISES] = &words_of_denoiser,
                                            [PL_HYBRID_CHOOSES] = &words_of_policy};
    return words[pl_hybrid_aim_of(c)];
}

/* The policy uses its denoiser's key; whether that was trained with the same value is not checked. */
static double noise_of(const pl_config *c)
{
    const pl_hybrid_aim aim = pl_hybrid_aim_of(c);
    return aim == PL_HYBRID_DENOISES || aim == PL_HYBRID_CHOOSES ? c->denoiser.noise : c->reading.noise;
}

static pl_status open_hybrid(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                             pl_data **data, pl_error *err)
{
    pl_reading *r;
    const pl_hybrid_aim aim = pl_hybrid_aim_of(c);
    const int64_t side = c->vision_encoder.image_size / c->vision_encoder.patch_size;
    pl_reading_setup s = {.pages = (uint64_t)c->reading.pages,
                          .seed = (uint64_t)c->reading.lexicon_seed,
                          .held_out = c->reading.held_out,
                          .image_size = (uint32_t)c->vision_encoder.image_size,
                          .capsules = (uint32_t)c->vision_encoder.target_capsules,
                          .batch = (uint32_t)pl_system_batch(c, command),
                          .counts_pages = aim != PL_HYBRID_READS,
                          .makes_noisy = pl_hybrid_has_noise(c),
                          .denoises = aim == PL_HYBRID_DENOISES || aim == PL_HYBRID_CHOOSES,
                          .chooses = aim == PL_HYBRID_CHOOSES,
                          .places = pl_hybrid_has_policy(c),
                          .noise = noise_of(c) / PIXEL_MAX,
                          .gates = (uint32_t)(side * side)};
    char said[SAID_BYTES], kept[PL_FILE_PATH_MAX];
    (void)use, (void)planned;
    PL_TRY(find_weights(c, command, &s, said, err));
    PL_TRY(find_features(c, command, &s, kept, err));
    PL_TRY(find_images(c, command, &s, kept, said, err));
    PL_TRY(pl_font_load(c->reading.font, &s.font, err));
    pl_status status = read_lexicon(c, &s.lexicon, err);
    if (status != PL_OK) return pl_free((void *)(uintptr_t)s.font.data), status;
    status = pl_reading_open(&s, &r, err);
    if (status == PL_E_DATA && c->reading.font[0]) pl_fail_prefix(err, status, "%s", c->reading.font);
    if (status == PL_OK) *data = &r->data;
    return status;
}

/* Loaded for good: the handle is dropped, and so its memory is never released. */
static pl_status load_module(const char *further, pl_error *err)
{
    pl_module kept;
    if (further) {
        const bool denoised = strcmp(further, "denoised") == 0;
        PL_TRY(pl_page_cache_keep_module(denoised ? &pl_page_cache_denoised : &pl_page_cache_drawn, err));
    }
    return pl_draw_load("arch hybrid", &kept, err);
}

static const char *further_module(const pl_config *c)
{
    return pl_hybrid_keeps_pages(c) ? "hybrid:denoised" : c->pipeline.cache_dir[0] ? "hybrid:cache" : NULL;
}

/* ---- what is read of a page ---- */

static const char *word_of(const pl_lexicon *l, uint64_t best)
{
    static const char *const controls[] = {"EXPAND", "STOP", "MERGE", "PAD"};
    return best < l->count ? l->word[best] : controls[best - l->count];
}

/* The likeliest word of each capsule. */
static void say_words(const pl_lexicon *l, const float *logit, const pl_infer_output *o, pl_json *j)
{
    const uint64_t classes = o->dim[o->rank - 1];
    pl_json_key(j, "words");
    pl_json_array(j);
    for (uint64_t k = 0; k < o->elems / classes; k++, logit += classes) {
        uint64_t best = 0;
        for (uint64_t i = 1; i < classes; i++)
            if (logit[i] > logit[best]) best = i;
        pl_json_string(j, word_of(l, best));
    }
    pl_json_array_end(j);
}

static void say_inferred(const pl_data *of, const pl_infer_item *item, pl_json *j)
{
    const pl_lexicon *l = &pl_reading_of(of)->setup.lexicon;
    const pl_infer_output *o;
    const float *logits = pl_infer_item_find(item, "logits", &o);
    if (logits && o->dim[o->rank - 1] == l->count + 4) say_words(l, logits, o, j);
    const float *halt = pl_infer_item_find(item, "q_halt", &o);
    if (halt) pl_json_kv_double(j, "halts", (double)(float)(1 / (1 + exp(-(double)*halt))));
}

static const char *const files[] = {FEATURES_FILE, PL_CAPSULES_INDEX, NULL};

static const pl_dataset dataset = {.load_module = load_module,
                                   .further_module = further_module,
                                   .files = files,
                                   .say_inferred = say_inferred,
                                   .rows = &pl_drawn_rows,
                                   .open = open_hybrid};

static const pl_task task = {.job = {PL_JOBS_OF_TRAINED, [PL_COMMAND_ENCODE] = &pl_job_encode},
                             .measure = pl_hybrid_measure,
                             .charts = pl_hybrid_charts,
                             .keep_predictions = pl_hybrid_keep_predictions,
                             .stage_key = "task_training.stage",
                             .stage = pl_hybrid_stage,
                             .report_stages = pl_hybrid_report_stages,
                             .page = pl_hybrid_write_page,
                             .keeps_config = true};

const pl_system pl_system_hybrid = {
    .words = {"word", "words", "page", "pages", "words/s", "pages", "step", "part", "nats per word", "batch_size",
              "batch_size, vision_encoder.width or .image_size", "vision_encoder.width or its layers"},
    .words_of = words_of,
    .check = pl_hybrid_check,
    .dataset = {&dataset, &pl_dataset_hybrid_texts},
    .task = &task};
