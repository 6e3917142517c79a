/* What is asked about models beyond their graphs. A process that runs a plan asks, too, so this is a file of its own:
 * such a process leaves out those that build graphs (cmake/parts.cmake). */
#include "models/hybrid.h"
#include "models/model.h"

static const pl_family text = {.face = {.program = "evaluate",
                                        .in = {{"tokens", "ids of the tokenizer, of a whole sequence"}, {NULL}},
                                        .scored = {{"logits", "of the token behind each"}}},
                               .used_for = PL_COMMAND_GENERATE};

static const pl_family chain = {
    .parts = PL_PART(images), /* windows on its answers */
    .face = {.program = "evaluate",
             .in = {{"tokens", "question, bot, -1 for each latent, eot and what is behind it but the last"}, {NULL}},
             .scored = {{"logits", "of the tokens behind eot"}}},
    .used_for = PL_COMMAND_EVALUATE};

static bool saves_memory(const pl_config *c) { return c->clouds.memory_optimized; }

static const pl_family clouds = {
    .parts = PL_PART(images) | PL_PART(clouds),
    .face = {.program = "evaluate",
             .in = {{"images", "frames as training saw them: cut, scaled or standardised as the config says"},
                    {"angles", "of the sun, likewise"},
                    {NULL}},
             .stored = {{"height", "of the cloud, standardised as the labels were"}}},
    .used_for = PL_COMMAND_EVALUATE,
    .saves_memory = saves_memory};

static const pl_family capsules = {
    .parts = PL_PART(images) | PL_PART(capsules),
    .face = {.program = "encode",
             .in = {{"images", "pages, grey or in colours from 0 (black) to 1 (white)"}, {NULL}},
             .stored = {{"capsules", "the sketch of each capsule: its weighed sum of tokens"},
                        {"checksums", "of each capsule"},
                        {"children", "of each capsule, the tokens that weigh most, projected"},
                        {NULL},
                        {"attention", "of each capsule, the weight of each patch"}}},
    .used_for = PL_COMMAND_ENCODE};

static const pl_family pretrained = {.parts = PL_PART(pretrained),
                                     .face = {.program = "evaluate",
                                              .in = {{"tokens", "ids of the tokenizer, of a whole sequence"}, {NULL}},
                                              .scored = {{"logits", "of the token after each"}}},
                                     .used_for = PL_COMMAND_GENERATE};

static pl_model_part find_denoiser(const pl_config *c)
{
    if (!pl_hybrid_is_denoised(c)) return (pl_model_part){NULL};
    return (pl_model_part){.from = c->dataset.denoiser_path,
                           .names = "denoiser.",
                           .too = pl_hybrid_has_policy(c) ? "policy." : NULL,
                           .key = "dataset.denoiser_path",
                           .sizes = "denoiser.channels and denoiser.depth"};
}

static const pl_family hybrid = {
    .parts = PL_PART(images) | PL_PART(capsules) | PL_PART(hybrid),
    .face = {.program = "infer",
             .in = {{"images", "pages, grey or in colours from 0 (black) to 1 (white)"}, {NULL}},
             .stored = {{"logits", "of each capsule, of the words, then EXPAND, STOP, MERGE, PAD"},
                        {"q_halt", "the logit of: all words are right, reasoning may end"},
                        {"capsules", "the sketch of each capsule: its weighed sum of tokens"}}},
    .used_for = PL_COMMAND_EVALUATE,
    .find_part = find_denoiser,
    .check_used = pl_hybrid_check_used};

static const pl_family rollout = {
    .parts = PL_PART(images) | PL_PART(rollout),
    .face = {.program = "features",
             .given = {"state", {"state", "a field"}},
             .stored = {{"output", "of the network, without noise and before the policy of updates"}}},
    .used_for = PL_COMMAND_ROLLOUT};

const pl_family *pl_model_family(const pl_config *c)
{
    static const pl_family *const families[] = {
#define PL_SYSTEM_ROW(id, name) [PL_SYSTEM_##id] = &name,
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
    };
    return families[pl_config_system_of(c)];
}
