#include "base/causal_lm.h"

#include <math.h>

static double clamp(double x, double least, double most) { return x < least ? least : x > most ? most : x; }

/* llama3: wavelengths beyond the original context are stretched, short ones stay, and those between are mixed. */
static double llama3_frequency(const pl_rope_scaling *s, double f)
{
    const double turns = s->original_context * f / (2 * M_PI); /* within the original context */
    if (turns > s->high_factor) return f;
    if (turns < s->low_factor) return f / s->factor;
    const double u = (turns - s->low_factor) / (s->high_factor - s->low_factor);
    return (1 - u) * f / s->factor + u * f;
}

/* The pair, as a fraction, that makes so many turns within the original context. */
static double pair_of_turns(const pl_rope_scaling *s, int64_t half, double turns)
{
    return (double)half * log(s->original_context / (2 * M_PI * turns)) / log(s->theta);
}

static double yarn_frequency(const pl_rope_scaling *s, int64_t half, int64_t pair, double f)
{
    double low = pair_of_turns(s, half, s->beta_fast), high = pair_of_turns(s, half, s->beta_slow);
    if (!s->keeps_fractions) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, (double)(2 * half - 1));
    if (low == high) high += 0.001;
    const double stretched = clamp(((double)pair - low) / (high - low), 0, 1);
    return stretched * f / s->factor + (1 - stretched) * f;
}

double pl_rope_frequency(const pl_rope_scaling *s, int64_t half, int64_t pair)
{
    double f = pow(s->theta, -(double)pair / (double)half);
    if (s->kind == PL_ROPE_LINEAR) f /= s->factor;
    if (s->kind == PL_ROPE_LLAMA3) f = llama3_frequency(s, f);
    if (s->kind == PL_ROPE_YARN) f = yarn_frequency(s, half, pair, f);
    return pair < s->divisors ? f / (double)s->divisor[pair] : f;
}

static double yarn_scale(double factor, double mscale) { return factor > 1 ? 0.1 * mscale * log(factor) + 1 : 1; }

double pl_rope_magnitude(const pl_rope_scaling *s)
{
    if (s->kind != PL_ROPE_YARN) return 1;
    if (s->attention_factor != 0) return s->attention_factor;
    if (s->mscale != 0 && s->mscale_all != 0)
        return yarn_scale(s->factor, s->mscale) / yarn_scale(s->factor, s->mscale_all);
    return yarn_scale(s->factor, 1);
}
