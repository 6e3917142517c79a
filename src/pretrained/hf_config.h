/* config.json and generation_config.json of a folder. */
#ifndef PL_PRETRAINED_HF_CONFIG_H
#define PL_PRETRAINED_HF_CONFIG_H

#include "pretrained/families.h"
#include "pretrained/pretrained.h"

pl_status pl_hf_config_read(const char *path, const pl_lm_family **, pl_causal_lm *, pl_pretrained_defaults *,
                            pl_error *);
/* Adds to the defaults. */
pl_status pl_hf_generation_read(const char *path, pl_pretrained_defaults *, pl_error *);

#endif
