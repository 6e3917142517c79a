#include "data/text/judged.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { LEAST_DESCRIPTOR = 3 };
static const char name[] = "the file of the tokens to judge";

pl_status pl_judged_find(uint64_t fact, int *fd, pl_error *err)
{
    pl_judged_head h;
    *fd = fcntl((int)(fact & INT32_MAX), F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR);
    const bool is_read = *fd >= 0 && pread(*fd, &h, sizeof h, 0) == (ssize_t)sizeof h;
    if (is_read && memcmp(h.magic, PL_JUDGED_MAGIC, sizeof h.magic) == 0 &&
        h.key >> PL_JUDGED_KEY_BITS == fact >> PL_JUDGED_KEY_BITS)
        return PL_OK;
    if (*fd >= 0) close(*fd);
    *fd = 0;
    return pl_fail(err, PL_E_DATA,
                   "the tokens that this plan is to judge are gone with the process that planned; plan again where it "
                   "runs");
}

pl_status pl_judged_begin(pl_judged *j, int fd, pl_error *err)
{
    struct stat info;
    *j = (pl_judged){.fd = fd, .at = sizeof j->head};
    PL_TRY(pl_file_read_at(fd, name, 0, &j->head, sizeof j->head, err));
    if (fstat(fd, &info) == 0 && (uint64_t)info.st_size >= j->at) return j->end = (uint64_t)info.st_size, PL_OK;
    return pl_fail(err, PL_E_DATA, "%s cannot be examined; start again", name);
}

static pl_status fill(pl_judged *j, pl_error *err)
{
    const uint64_t left = (j->end - j->at) / sizeof *j->block;
    j->count = (uint32_t)(left < PL_JUDGED_BLOCK ? left : PL_JUDGED_BLOCK), j->next = 0;
    const size_t bytes = j->count * sizeof *j->block;
    if (bytes) PL_TRY(pl_file_read_at(j->fd, name, j->at, j->block, bytes, err));
    j->at += bytes;
    return PL_OK;
}

pl_status pl_judged_next(pl_judged *j, uint32_t *number, bool *more, pl_error *err)
{
    if (j->next == j->count) PL_TRY(fill(j, err));
    *more = j->next < j->count;
    if (*more) *number = j->block[j->next++];
    return PL_OK;
}
