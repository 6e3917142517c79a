/* The curves of a hybrid model's validations. */
#include "systems/hybrid_measure.h"

#define GATES(name, which)                                                                                             \
    {                                                                                                                  \
        "Gates: " name, "of all " which " that were validated",                                                        \
        {                                                                                                              \
            {name "_gate_mean", "valid", "gradient", "mean"}, {name "_gate_median", "train", "weight", "median"},      \
                {name "_gate_max", "most", "saved", "largest"}, {name "_gate_min", "least", "optimizer", "least"},     \
        }                                                                                                              \
    }

const pl_metric_chart pl_hybrid_charts[] = {
    GATES("fusion", "tokens"),
    GATES("adapter", "tokens"),
    GATES("planner", "pages"),
    {"Noise left",
     "of what noise adds to features or pixels, in squares, behind adapter, denoiser or policy: 1 where these leave it",
     {{"noise_left", "valid", "gradient", "noise left"}}},
    {"Signal to noise",
     "dB, peak, over the pixels of all pages that were validated",
     {{"psnr", "valid", "gradient", "what comes out"},
      {"psnr_denoised", "train", "weight", "behind the denoiser alone"},
      {"psnr_noisy", "most", "saved", "noisy pages"}}},
    {"Choices of the policy",
     "how much the denoiser counts, in the mean, and the share of pages that are drawn as they are",
     {{"strength", "valid", "gradient", "strength"}, {"as_is", "train", "weight", "drawn as they are"}}},
    {"Choice entropy",
     "nat, of size and place together: 6.74 where each is as likely as any other",
     {{"choice_entropy", "valid", "gradient", "choice entropy"}}},
    {"Path entropy",
     "nat, of the shares of the planner's ways: the logarithm of their number when all count alike",
     {{"path_entropy", "valid", "gradient", "path entropy"}}},
    {NULL},
};
