#include "pretrained/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pl_problems_add(pl_problems *p, const char *fmt, ...)
{
    char one[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(one, sizeof one, fmt, args);
    va_end(args);
    const char *between = p->count++ ? "; " : "";
    const size_t bytes = strlen(between) + strlen(one);
    if (p->unwritten || p->bytes + bytes >= sizeof p->text) {
        p->unwritten++;
        return;
    }
    p->bytes += (size_t)snprintf(p->text + p->bytes, sizeof p->text - p->bytes, "%s%s", between, one);
}

pl_status pl_problems_fail(const pl_problems *p, pl_status status, const char *path, const char *what, pl_error *err)
{
    if (p->count == 0) return PL_OK;
    pl_fail(err, status, "%.150s: %s: %s", path, what, p->text);
    if (p->unwritten && err) pl_error_append(err, "; and %zu more", p->unwritten);
    return status;
}
