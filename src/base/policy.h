/* What a policy over pages decides of a text (docs/hybrid.md), and what it sees of one. */
#ifndef PL_BASE_POLICY_H
#define PL_BASE_POLICY_H

enum {
    PL_POLICY_FEATURES = 768,  /* numbers of a text: the mean of the vectors of its trigrams */
    PL_POLICY_SIZES = 7,       /* of the font: the documented one and 3 pixels less to 3 more */
    PL_POLICY_SHIFTS = 11,     /* of a page, 5 pixels to the left or up to 5 to the right or down */
    PL_POLICY_SIZE_AS_IS = 3,  /* of these choices the one that changes nothing */
    PL_POLICY_SHIFT_AS_IS = 5, /* likewise */
};

/* Of a row of logits: the choices one behind the other, and how much the denoiser counts. */
enum {
    PL_POLICY_SIZE = 0,
    PL_POLICY_ACROSS = PL_POLICY_SIZE + PL_POLICY_SIZES,
    PL_POLICY_DOWN = PL_POLICY_ACROSS + PL_POLICY_SHIFTS,
    PL_POLICY_STRENGTH = PL_POLICY_DOWN + PL_POLICY_SHIFTS,
    PL_POLICY_LOGITS
};

/* What is added to logits, so that the largest of a row is a draw from its softmax (the Gumbel-max trick: Maddison et
 * al. 2014), or that a number is one near it. */
typedef enum pl_perturbation { PL_PERTURB_GUMBEL, PL_PERTURB_NORMAL, PL_PERTURB_COUNT } pl_perturbation;

/* What a row of PL_POLICY_LOGITS says is best: pixels more or less of the font, pixels to the right and down, and the
 * share of what is denoised; and how sure the three choices are, the sum of their entropies in nats. */
typedef struct pl_policy_choice {
    int size, across, down;
    double strength, entropy;
} pl_policy_choice;
pl_policy_choice pl_policy_choose(const float *logits);

#endif
