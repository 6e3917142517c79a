/* A file system without locks, as Lustre is where it is mounted without `flock`: preloaded, every request for a lock of
 * a file or of a range of it fails with the errno that PL_NO_LOCKS names by its number. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static int refuse(void)
{
    const char *number = getenv("PL_NO_LOCKS");
    errno = number ? atoi(number) : ENOSYS;
    return -1;
}

EXPORT int flock(int fd, int how)
{
    (void)fd, (void)how;
    return refuse();
}

static int control(int fd, int what, void *argument)
{
    if (what == F_OFD_SETLK || what == F_OFD_SETLKW || what == F_OFD_GETLK || what == F_GETLK || what == F_SETLK ||
        what == F_SETLKW)
        return refuse();
    return (int)syscall(SYS_fcntl, fd, what, argument);
}

EXPORT int fcntl(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    void *argument = va_arg(list, void *);
    va_end(list);
    return control(fd, what, argument);
}

EXPORT int fcntl64(int fd, int what, ...)
{
    va_list list;
    va_start(list, what);
    void *argument = va_arg(list, void *);
    va_end(list);
    return control(fd, what, argument);
}
