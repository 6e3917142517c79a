/* The page about results of rollouts, within src/systems: what it is told, and its parts. Everything is read piece by
 * piece: the page takes some megabytes for results of any size. */
#ifndef PL_SYSTEMS_ROLLOUT_PAGE_H
#define PL_SYSTEMS_ROLLOUT_PAGE_H

#include "show/chart.h"
#include "show/doc.h"
#include "systems/rollout.h"
#include "systems/system.h"

typedef struct pl_rollout_page {
    const pl_config *config;
    const pl_page_wish *wish;
    const pl_rollout_data *d;
    const pl_block_layout *layout; /* of the file; the same as that of d, but for its constants */
    uint32_t operators;            /* of the file */
    uint8_t *policy, *done;        /* [operators]: a pl_update_policy; are all of its blocks finished? */
    uint32_t finished;             /* operators */
    pl_doc *doc;
} pl_rollout_page;

/* How many states of a realisation are finished, from its first on. */
uint32_t pl_rollout_page_states(const pl_rollout_page *, uint32_t place, uint32_t realisation);
/* Number of the file's operator at this place. */
static inline uint32_t pl_rollout_page_number(const pl_rollout_page *p, uint32_t place)
{
    return p->d->setup.first + place;
}
/* "num_layers 2, kernel_size 3": the values of an operator; of dimensions that have several, or that decide shapes. */
typedef enum pl_rollout_words { PL_ROLLOUT_WORDS_VARIED, PL_ROLLOUT_WORDS_SHAPE } pl_rollout_words;
void pl_rollout_page_words(const pl_rollout_page *, uint32_t place, pl_rollout_words, pl_str *);

/* What the config calls a policy, and the class of its colour. */
static inline pl_chart_key pl_rollout_page_policy(uint32_t policy)
{
    static const char *const classes[] = {
        [PL_POLICY_AUTOREGRESSIVE] = "saved", [PL_POLICY_RESIDUAL] = "weight", [PL_POLICY_CONVEX] = "gradient"};
#define PL_ROLLOUT_PAGE_POLICY(c, word) word,
    static const char *const names[] = {PL_UPDATE_POLICIES(PL_ROLLOUT_PAGE_POLICY)};
    return (pl_chart_key){classes[policy], names[policy]};
}

/* ---- rollout_page_fields.c, _metrics.c, _space.c, _shapes.c: a section each ---- */
pl_status pl_rollout_page_fields(const pl_rollout_page *, pl_error *);
pl_status pl_rollout_page_metrics(const pl_rollout_page *, pl_error *);
pl_status pl_rollout_page_coverage(const pl_rollout_page *, pl_error *);
void pl_rollout_page_shapes(const pl_rollout_page *);
/* Has the dimension more than one value? */
bool pl_rollout_page_varies(const pl_dimension *);
/* The word of a choice, or NULL where it is a number. */
const char *pl_rollout_page_word(const pl_rollout_page *, uint32_t dimension, uint32_t choice);

/* The row of the system. */
pl_status pl_rollout_page_write(const pl_config *, const pl_page_wish *, pl_doc *, pl_error *);

#endif
