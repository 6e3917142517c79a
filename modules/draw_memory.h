/* Whose memory the libraries get. */
#ifndef PL_MODULES_DRAW_MEMORY_H
#define PL_MODULES_DRAW_MEMORY_H

#include <setjmp.h>

#include "data/pages/heap.h"

/* This thread's requests come from that heap from now on; NULL: from the module's own, which is for what the libraries
 * keep as long as they are loaded. Returns the heap before. */
pl_page_heap *pl_draw_use_heap(pl_page_heap *);

/* Where a request of this thread that its heap refuses goes, in place of returning NULL, which not all libraries look
 * for (Raqm 0.7 does not); NULL: nowhere. Whoever jumps out of a library forgets all that it had in the heap. */
void pl_draw_set_escape(jmp_buf *);

/* Of the module's own. */
void pl_draw_own_memory(uint64_t *used, uint64_t *peak, uint64_t *refused);

#endif
