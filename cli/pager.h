/* Long texts for a terminal go through a pager: $PAGER, else less. */
#ifndef PL_CLI_PAGER_H
#define PL_CLI_PAGER_H

#include <sys/types.h>

typedef struct pl_pager {
    pid_t child; /* 0: there is none, and stdout is as it was */
    int output;  /* stdout, meanwhile */
} pl_pager;

/* From now on stdout is the pager's, where stdout is a terminal and a pager can be started. Who leaves it early ends
 * nothing: what is written to it then is lost. */
pl_pager pl_pager_begin(void);
/* Waits until the pager has ended. Returns whether there was one. */
int pl_pager_end(pl_pager *);

#endif
