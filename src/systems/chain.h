/* The system of chains of thought: what its files share. Private to this folder. */
#ifndef PL_SYSTEMS_CHAIN_H
#define PL_SYSTEMS_CHAIN_H

#include "base/predicted.h"
#include "data/text/chains.h"
#include "systems/system.h"

/* ---- chain.c ---- */
pl_chain_layout pl_chain_layout_of(const pl_config *);

/* ---- chain_measure.c ---- */
size_t pl_chain_measure(const pl_data *, const pl_predicted *, pl_loss_metric *);
/* A line for each held-out chain. */
pl_status pl_chain_keep_predictions(const pl_data *, const float *predictions, uint64_t count, const char *path,
                                    pl_error *);

/* ---- chain_stages.c ---- */
bool pl_chain_stage(const pl_config *, uint32_t k, pl_stage_row *);
/* Checks keys of one training against those of several. PL_E_CONFIG. */
pl_status pl_chain_check(const pl_config *, pl_error *);
pl_status pl_chain_report_stages(const pl_config *, const char *out, pl_doc *, pl_error *);

#endif
