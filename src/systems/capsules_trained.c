/* The encoder of arch hybrid is that of arch capsules, under the same names: encoder.…, checksum_head.… and
 * children_projection.… (docs/capsules.md). Some tensors are matrices there, which pl_weights_part allows for. The
 * first table below has a hybrid's other tensors, the second the encoder key for each of its keys. */
#include "systems/capsules_trained.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "config/schema.h"
#include "systems/given_weights.h"

/* ---- the tensors ---- */

static const struct {
    const char *prefix, *name;
    bool is_before; /* it feeds the encoder, in place of patches */
} parts[] = {{"denoiser.", "the denoiser (denoiser.…)", true},
             {"clip.", "the frozen tower (clip.…)", true},
             {"vit.", "the trained tower (vit.…)", true},
             {"fusion.", "the fusion (fusion.…)", true},
             {"adapter.", "the adapter (adapter.…)", true},
             {"reasoner.", "the reasoner", false},
             {"planner.", "the planner", false},
             {"output_head.", "the heads", false}};
enum { PARTS = sizeof parts / sizeof *parts };

static bool has_part(const pl_safetensors *s, const char *prefix)
{
    for (size_t i = 0; i < pl_safetensors_count(s); i++)
        if (strncmp(pl_safetensors_at(s, i)->name, prefix, strlen(prefix)) == 0) return true;
    return false;
}

static pl_status look(const pl_safetensors *s, const char *path, bool *is_trained, pl_error *err)
{
    char names[240];
    pl_str before = pl_str_fixed(names, sizeof names);
    *is_trained = false;
    for (int i = 0; i < PARTS; i++) {
        if (!has_part(s, parts[i].prefix)) continue;
        *is_trained = true;
        if (parts[i].is_before) pl_str_printf(&before, "%s%s", before.bytes ? ", " : "", parts[i].name);
    }
    if (!before.bytes) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.300s: its encoder was trained after parts that arch capsules has not got: %s; encode with that "
                   "run itself (plimsoll encode RUN), or train one with vision_encoder.fusion_type none and "
                   "adapter_layers 0, whose encoder sees the patches",
                   path, names);
}

pl_status pl_capsules_find_trained(const char *path, const pl_weights_part **part, pl_error *err)
{
    static const pl_weights_part encoder = {.prefix = "", .root = "", .is_larger = true};
    pl_safetensors *file;
    bool is_trained;
    *part = NULL;
    PL_TRY(pl_safetensors_open(path, &file, err));
    const pl_status status = look(file, path, &is_trained, err);
    pl_safetensors_destroy(file);
    if (status == PL_OK && is_trained) *part = &encoder;
    return status;
}

/* ---- the keys ---- */

/* Numbers that must be the same; checked for clearer messages than shapes would give. */
static const struct {
    const char *ours, *theirs;
} keys[] = {{"encoder.image_size", "vision_encoder.image_size"},
            {"encoder.patch_size", "vision_encoder.patch_size"},
            {"encoder.width", "vision_encoder.width"},
            {"encoder.heads", "vision_encoder.heads"},
            {"encoder.layers", "vision_encoder.layers"},
            {"encoder.expansion", "vision_encoder.expansion"},
            {"encoder.target_capsules", "vision_encoder.target_capsules"},
            {"encoder.children_per_capsule", "vision_encoder.children_per_capsule"},
            {"encoder.checksum_dim", "vision_encoder.checksum_dim"}};

static void say_key(const pl_config *c, const char *path, pl_str *text)
{
    const pl_config_key *key = pl_config_find(path);
    pl_str_printf(text, "%s ", path);
    pl_config_print_value(key, pl_config_value_of(c, key), text);
}

static pl_status refuse(const pl_config *c, const char *path, const char *key, const char *made, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], text[120];
    pl_str ours = pl_str_fixed(text, sizeof text);
    say_key(c, key, &ours);
    return pl_fail(err, PL_E_DATA, "%.300s: its encoder was trained with %s, but %.200s says %s; take that", path, made,
                   pl_config_where(c, key, where, sizeof where), text);
}

static pl_status check_numbers(const pl_config *c, const pl_config *made, const char *path, pl_error *err)
{
    char text[120];
    pl_str theirs = pl_str_fixed(text, sizeof text);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const pl_config_key *a = pl_config_find(keys[i].ours), *b = pl_config_find(keys[i].theirs);
        if (memcmp(pl_config_value_of(c, a), pl_config_value_of(made, b), a->bytes) == 0) continue;
        say_key(made, keys[i].theirs, &theirs);
        return refuse(c, path, keys[i].ours, text, err);
    }
    const int64_t cycles = made->vision_encoder.H_cycles * made->vision_encoder.L_cycles;
    if (cycles == c->encoder.H_cycles * c->encoder.L_cycles) return PL_OK;
    snprintf(text, sizeof text, "H_cycles times L_cycles %" PRId64, cycles);
    return refuse(c, path, "encoder.H_cycles", text, err);
}

/* A hybrid has only one kind of each. */
static pl_status check_kinds(const pl_config *c, const char *path, pl_error *err)
{
    const pl_config_encoder *e = &c->encoder;
    const double trained_eps = 1e-6;
    if (e->recursion != PL_CONFIG_RECURSION_FLAT)
        return refuse(c, path, "encoder.recursion", "encoder.recursion flat", err);
    if (e->pooling_method != PL_CONFIG_POOLING_ATTENTION)
        return refuse(c, path, "encoder.pooling_method", "encoder.pooling_method attention", err);
    if (!e->real_children) return refuse(c, path, "encoder.real_children", "encoder.real_children true", err);
    if (e->rms_norm_eps < trained_eps || e->rms_norm_eps > trained_eps)
        return refuse(c, path, "encoder.rms_norm_eps", "encoder.rms_norm_eps 1e-06", err);
    return PL_OK;
}

static pl_status match_text(const pl_config *c, const char *path, const char *text, pl_error *err)
{
    pl_error why = {0};
    pl_config *made = pl_config_create();
    if (!made) return pl_fail(err, PL_E_NOMEM, "no memory for the config of %.300s", path);
    pl_status status = pl_config_load_text(made, PL_WEIGHTS_CONFIG, text, strlen(text), &why);
    if (status != PL_OK)
        status = pl_fail(err, status == PL_E_NOMEM ? status : PL_E_DATA,
                         "%.300s: the config of its weights cannot be read (%.400s)", path, why.text);
    else
        status = check_numbers(c, made, path, err);
    pl_config_destroy(made);
    return status;
}

pl_status pl_capsules_match_trained(const pl_config *c, const char *path, uint64_t hash, pl_error *err)
{
    char *text;
    PL_TRY(check_kinds(c, path, err));
    PL_TRY(pl_given_weights_config(path, hash, &text, err));
    const pl_status status = text ? match_text(c, path, text, err) : PL_OK;
    pl_free(text);
    return status;
}
