/* Texts through a trained hybrid model to capsules: what the keys are called there, and which weights it begins with: a
 * named file, or the run's best checkpoint, else its latest. Results belong to the contents of that file: after more
 * training they differ. */
#include "systems/hybrid_texts.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/pages/texts_index.h"
#include "models/hybrid.h"
#include "store/checkpoint.h"
#include "systems/capsules.h"
#include "systems/given_weights.h"

static pl_encoder_facts facts_of(const pl_config *cfg)
{
    const pl_config_vision_encoder *c = &cfg->vision_encoder;
    const int64_t at_once = cfg->train.micro_batch, block = cfg->pipeline.block_texts;
    return (pl_encoder_facts){.image_size = (uint32_t)c->image_size,
                              .capsules = (uint32_t)c->target_capsules,
                              .width = (uint32_t)c->width,
                              .checksum = (uint32_t)c->checksum_dim,
                              .children = (uint32_t)c->children_per_capsule,
                              .at_once = at_once == PL_CONFIG_AUTO ? 0 : (uint32_t)(at_once < block ? at_once : block),
                              .font = cfg->reading.font,
                              .seed = (uint64_t)cfg->reading.lexicon_seed};
}

/* ---- weights ---- */

/* The model ends at the capsules: the file may hold more. */
static const pl_weights_part whole = {.prefix = "", .root = "", .is_larger = true};

/* The best one, which is checked later with its file; without one, the newest sound one. "": there is none. */
static pl_status find_saved(const pl_config *c, pl_encoder_weights *w, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    pl_saved s;
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(pl_saved_find_best(out, PL_SAVED_RECORD, &s, err));
    if (!s.record) PL_TRY(pl_saved_find(out, PL_SAVED_WEIGHTS, &s, err));
    const pl_status status = s.record ? pl_path_join(w->path, sizeof w->path, s.path, PL_MODEL_FILE, err) : PL_OK;
    if (s.record) snprintf(w->said, sizeof w->said, "the weights of %.120s", s.path);
    if (s.warning[0]) snprintf(w->said, sizeof w->said, "%.300s", s.warning), w->is_another = true;
    pl_saved_deinit(&s);
    return status;
}

/* The run takes the file that was planned, by its hash. */
static pl_status find_weights(const pl_config *c, pl_data_use use, pl_encoder_weights *w, pl_error *err)
{
    pl_given_weights given;
    char *made_with;
    *w = (pl_encoder_weights){.part = &whole};
    if (c->run.weights[0])
        snprintf(w->path, sizeof w->path, "%s", c->run.weights);
    else
        PL_TRY(find_saved(c, w, err));
    if (!w->path[0]) return PL_OK;
    PL_TRY(pl_given_weights_check(w->path, NULL, pl_system_narrowest(c), &given, err));
    w->hash = given.hash;
    /* Also in a run: a checked file is not opened again, and a count of its heap must include a header that is read. */
    PL_TRY(pl_given_weights_config(w->path, w->hash, &made_with, err));
    const bool looks = use == PL_DATA_FOR_PLAN && made_with;
    const pl_status status = looks ? pl_given_weights_match_text(c, w->path, made_with, err) : PL_OK;
    pl_free(made_with);
    return status;
}

static const pl_capsules_encoding encoding = {
    .facts = facts_of, .find_weights = find_weights, .extent = PL_HYBRID_ENCODES};

/* ---- the command ---- */

static pl_status check_model(const pl_config *c, pl_error *err)
{
    PL_TRY(pl_capsules_check_texts(c, err));
    return pl_hybrid_check_used(c, err);
}

/* A plan needs neither texts nor weights, but encoding does. */
static pl_status check_folder(pl_preparation *p, pl_command command, pl_error *err)
{
    PL_TRY(check_model(p->config, err));
    PL_TRY(pl_capsules_check_folder(p, command, err));
    if (p->holds_run || p->config->run.weights[0]) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: nothing was trained there yet; train first (plimsoll train), or take a file of weights "
                   "(`run.weights`)",
                   p->out);
}

static pl_status prepare(pl_preparation *p, pl_progress progress, void *context, pl_error *err)
{
    PL_TRY(check_model(p->config, err));
    return pl_capsules_prepare(&encoding, p, progress, context, err);
}

static pl_status open_texts(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                            pl_data **data, pl_error *err)
{
    (void)command;
    PL_TRY(check_model(c, err));
    return pl_capsules_open(&encoding, c, use, planned, data, err);
}

static bool is_meant(const pl_config *c, pl_command command)
{
    (void)c;
    return command == PL_COMMAND_ENCODE;
}

const pl_dataset pl_dataset_hybrid_texts = {.is_meant = is_meant,
                                            .prepare = prepare,
                                            .magic = PL_TEXTS_MAGIC,
                                            .check_folder = check_folder,
                                            .open = open_texts};

pl_status pl_hybrid_write_page(const pl_config *c, const pl_page_wish *wish, pl_doc *doc, pl_error *err)
{
    return pl_capsules_page_write(&encoding, c, wish, doc, err);
}
