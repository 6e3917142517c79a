/* Names and stack pointers of a process's threads. /proc/N/task/T/syscall tells the stack pointer of a thread that
 * waits in the kernel and "running" of one that runs; the latter is asked some more times. A thread is never stopped
 * for it. Source: proc_pid_syscall(5). (The kstkesp of /proc/N/stat is 0 for living processes since Linux 4.11.) */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "doctor/doctor.h"

enum { PATH_BYTES = 512, ROUNDS = 4, PAUSE_NANOSECONDS = 1500000 };

/* "202 0x7f.. … 0x7f79c0bfedb0 0x7f79c7ea3f16": stack pointer and program counter are the last two. */
static uintptr_t read_stack_pointer(const char *root, pid_t process, pid_t thread)
{
    char path[PATH_BYTES], text[512];
    snprintf(path, sizeof path, "%s/proc/%d/task/%d/syscall", root, (int)process, (int)thread);
    if (pl_procfile_read_line(path, text, sizeof text)) return 0;
    char *last = strrchr(text, ' ');
    if (!last) return 0; /* "running" */
    *last = 0;
    char *before = strrchr(text, ' ');
    return before ? strtoul(before + 1, NULL, 16) : 0;
}

static pl_status add_thread(const char *root, pl_doctor_process *p, size_t *capacity, pid_t id, pl_error *err)
{
    char path[PATH_BYTES];
    if (pl_grow(&p->thread, capacity, p->thread_count, sizeof *p->thread))
        return pl_fail(err, PL_E_NOMEM, "no memory to read the threads of process %d", (int)p->id);
    pl_doctor_thread *t = &p->thread[p->thread_count++];
    *t = (pl_doctor_thread){.id = id, .stack_pointer = read_stack_pointer(root, p->id, id)};
    snprintf(path, sizeof path, "%s/proc/%d/task/%d/comm", root, (int)p->id, (int)id);
    if (pl_procfile_read_line(path, t->name, sizeof t->name)) snprintf(t->name, sizeof t->name, "?");
    return PL_OK;
}

static int by_id(const void *a, const void *b)
{
    pid_t x = ((const pl_doctor_thread *)a)->id, y = ((const pl_doctor_thread *)b)->id;
    return (x > y) - (x < y);
}

static size_t ask_again(const char *root, pl_doctor_process *p)
{
    size_t unknown = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        if (p->thread[i].stack_pointer) continue;
        p->thread[i].stack_pointer = read_stack_pointer(root, p->id, p->thread[i].id);
        unknown += p->thread[i].stack_pointer == 0;
    }
    return unknown;
}

pl_status pl_doctor_threads_read(const char *root, pl_doctor_process *p, pl_error *err)
{
    char path[PATH_BYTES];
    size_t capacity = 0;
    pl_status status = PL_OK;
    snprintf(path, sizeof path, "%s/proc/%d/task", root, (int)p->id);
    DIR *folder = opendir(path);
    if (!folder) return pl_doctor_is_gone(errno) || errno == EACCES ? PL_OK : pl_doctor_unreadable(path, err);
    for (struct dirent *entry; status == PL_OK && (entry = readdir(folder));) {
        long id = strtol(entry->d_name, NULL, 10);
        if (id > 0) status = add_thread(root, p, &capacity, (pid_t)id, err);
    }
    closedir(folder);
    if (p->thread_count) qsort(p->thread, p->thread_count, sizeof *p->thread, by_id);
    for (int round = 0; status == PL_OK && round < ROUNDS && ask_again(root, p); round++)
        (void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
    return status;
}
