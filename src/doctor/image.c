/* How far a program or library reaches behind its file: zeroed data (.bss) is anonymous memory right behind the
 * file's last mapping, and so, by chance, may be a stranger's. The file's program headers say where the one ends.
 *
 *       r-xp libx.so | rw-p libx.so | rw-p (anonymous)      PT_LOAD: p_filesz <= p_memsz
 *                                   ^ end of the file       ^ end of .bss = load address + p_vaddr + p_memsz */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor/doctor.h"

enum { PATH_BYTES = PL_SMAPS_NAME_BYTES + 64, HEADERS_MAX = 32, PAGE = 4096 };

static uint64_t floor_page(uint64_t x) { return x & ~(uint64_t)(PAGE - 1); }

/* The end of the writable segment that this mapping is a part of; 0 when the headers have none such. */
static uintptr_t end_of_segment(const Elf64_Phdr *h, const pl_doctor_map *m)
{
    bool writable = h->p_type == PT_LOAD && (h->p_flags & PF_W);
    uint64_t first = floor_page(h->p_offset), last;
    if (!writable || __builtin_add_overflow(h->p_offset, h->p_filesz, &last)) return 0;
    if (m->offset < first || m->offset >= last) return 0;
    uint64_t address = m->begin - (m->offset - first) - floor_page(h->p_vaddr), end;
    if (__builtin_add_overflow(h->p_vaddr, h->p_memsz, &end)) return 0;
    return address + floor_page(end + PAGE - 1);
}

static uintptr_t read_end(int fd, const pl_doctor_map *m)
{
    Elf64_Ehdr e;
    Elf64_Phdr h[HEADERS_MAX];
    bool elf = pread(fd, &e, sizeof e, 0) == (ssize_t)sizeof e && memcmp(e.e_ident, ELFMAG, SELFMAG) == 0;
    if (!elf || e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof *h) return 0;
    size_t count = e.e_phnum < HEADERS_MAX ? e.e_phnum : HEADERS_MAX;
    ssize_t wanted = (ssize_t)(count * sizeof *h);
    if (pread(fd, h, (size_t)wanted, (off_t)e.e_phoff) != wanted) return 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t end = end_of_segment(&h[i], m);
        if (end) return end;
    }
    return 0;
}

/* As the process itself sees the path: it may live in a container. What lies there now may be no regular file any more,
 * and opening a device or a pipe does things: so it is looked at first, through a descriptor that only names it. */
static int open_file(const char *root, pid_t id, const char *name)
{
    char path[PATH_BYTES];
    struct stat s;
    snprintf(path, sizeof path, "%s/proc/%d/root%s", root, (int)id, name);
    int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    int fd = fstat(place, &s) == 0 && S_ISREG(s.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    close(place);
    return fd;
}

void pl_doctor_read_images(const char *root, pl_doctor_process *p)
{
    for (size_t i = 0; i + 1 < p->map_count; i++) {
        pl_doctor_map *m = &p->map[i];
        bool data = m->name[0] == '/' && m->protection[1] == 'w' && m->protection[3] == 'p';
        bool followed = m[1].begin == m->end && !*m[1].name && m[1].protection[1] == 'w';
        if (!data || !followed || strncmp(m->name, "/dev/", 5) == 0) continue;
        int fd = open_file(root, p->id, m->name);
        if (fd < 0) continue;
        m->image_end = read_end(fd, m);
        close(fd);
    }
}
