/* What a row of logits says as probabilities, their softmax. */
#ifndef PL_BASE_SOFTMAX_H
#define PL_BASE_SOFTMAX_H

double pl_softmax_entropy(const float *logit, int count); /* in nats; 0 for one choice that is certain */

#endif
