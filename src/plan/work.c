#include "plan/work.h"

#include "base/alloc.h"

void pl_work_destroy(pl_work *w)
{
    if (!w) return;
    for (size_t i = 0; i < w->count; i++) pl_free(w->group[i].text);
    pl_free(w->group);
    pl_free(w);
}
