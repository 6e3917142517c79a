/* The arena as text: time to the right, addresses upward, a letter for the role that fills most of a cell. */
#ifndef PL_REPORT_MAP_H
#define PL_REPORT_MAP_H

#include "plan/plan.h"

/* width × height cells, axes beside them; then the programs under their stretch of time, a mark at the peak, a legend.
 * Either size 0, or a plan without nodes: nothing. */
pl_status pl_report_map(const pl_plan *, unsigned width, unsigned height, bool color, pl_str *out, pl_error *);

#endif
