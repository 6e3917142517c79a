/* LD_PRELOAD: a signal that comes just when a program begins, before it has any handler. PL_PRELOAD_SIGNAL is
 * "NUMBER:N:FILE": each program that begins adds a byte to FILE, and the N-th one sends itself the signal. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

__attribute__((constructor)) static void begin(void)
{
    const char *said = getenv("PL_PRELOAD_SIGNAL");
    int number = 0, wanted = 0, at = 0;
    struct stat s;
    if (!said || sscanf(said, "%d:%d:%n", &number, &wanted, &at) != 2 || at == 0) return;
    int fd = open(said + at, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (write(fd, "x", 1) == 1 && fstat(fd, &s) == 0 && s.st_size == wanted) (void)kill(getpid(), number);
    close(fd);
}
