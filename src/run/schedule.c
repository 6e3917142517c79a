#include <math.h>

#include "run/settings.h"

static double decay(const pl_lr_schedule *s, double progress)
{
    switch (s->kind) {
    case PL_LR_COSINE:
        return s->min_ratio + (1 - s->min_ratio) * 0.5 * (1 + cos(3.14159265358979323846 * progress));
    case PL_LR_LINEAR:
        return 1 - (1 - s->min_ratio) * progress;
    case PL_LR_CONSTANT:
    case PL_LR_PLATEAU:
        return 1;
    }
    return 1;
}

double pl_lr_at(const pl_lr_schedule *s, const pl_plateau *plateau, uint64_t step)
{
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
    double span = s->steps > s->warmup ? (double)(s->steps - s->warmup) : 1,
           progress = (double)(step - s->warmup) / span;
    double lr = s->lr * decay(s, progress > 1 ? 1 : progress);
    return s->kind == PL_LR_PLATEAU ? lr * plateau->scale : lr;
}

void pl_plateau_init(pl_plateau *p) { *p = (pl_plateau){.best = INFINITY, .scale = 1}; }

void pl_plateau_update(pl_plateau *p, const pl_lr_schedule *s, double loss)
{
    if (s->kind != PL_LR_PLATEAU) return;
    if (loss < p->best * (1 - 1e-4) || isinf(p->best)) {
        p->best = loss;
        p->bad = 0;
        return;
    }
    if (++p->bad <= s->patience) return;
    p->bad = 0;
    p->scale *= s->factor;
    if (p->scale < s->min_ratio) p->scale = s->min_ratio;
}
