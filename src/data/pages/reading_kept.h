/* Within data/pages: what a model makes of pages and gives back, kept for the next time (reading.h). */
#ifndef PL_DATA_READING_KEPT_H
#define PL_DATA_READING_KEPT_H

#include "data/pages/reading.h"

/* Page of row i of a slot; false: it has none. (reading.c) */
bool pl_reading_find_row(const pl_reading *, const pl_slot *, uint32_t i, uint64_t *page);

/* Do kept pages take the place of those in all sizes, which nobody needs then? A step's data are few values. */
static inline bool pl_reading_is_in_place(const pl_reading *r) { return r->setup.keeps_images && r->setup.places; }

pl_status pl_reading_init_kept(pl_reading *, pl_error *);
void pl_reading_deinit_kept(pl_reading *);
/* For the plan: what lies on the disk, and what is said about it. */
void pl_reading_say_kept(pl_reading *, pl_str *said);

/* Adds its ports and its scratch, after the rest. */
pl_status pl_reading_describe_kept(const pl_reading *, uint32_t micro_batch, pl_source_layout *, pl_error *);
/* Is everything known for a slot's pages? Where that takes the place of the pages, they are drawn only if not. */
bool pl_reading_fill_kept(const pl_reading *, void *scratch, pl_slot *);

/* As pl_source_kind has them. */
pl_status pl_reading_make_known(const pl_source *, uint64_t hash, pl_error *);
pl_status pl_reading_keep(const pl_source *, const pl_slot *, uint32_t port, const void *made, pl_error *);
bool pl_reading_tell(const pl_source *, char *text, size_t room);

#endif
