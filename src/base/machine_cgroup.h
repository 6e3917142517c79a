/* Limits of the control groups this process is in; internal to base/machine.c. */
#ifndef PL_BASE_MACHINE_CGROUP_H
#define PL_BASE_MACHINE_CGROUP_H

#include "base/machine.h"

/* Fills cgroup_* and cores_quota from below `root`. */
void pl_cgroup_read(const char *root, pl_machine *);

#endif
