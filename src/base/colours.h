/* Mean and deviation of the colours, in [0, 1], of the pictures that CLIP was trained on (Radford et al. 2021). */
#ifndef PL_BASE_COLOURS_H
#define PL_BASE_COLOURS_H

enum { PL_COLOURS = 3 };
static const float pl_colour_mean[PL_COLOURS] = {0.48145466f, 0.4578275f, 0.40821073f};
static const float pl_colour_deviation[PL_COLOURS] = {0.26862954f, 0.26130258f, 0.27577711f};

#endif
