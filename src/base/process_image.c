#include "base/process_image.h"

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/procfile.h"
#include "base/size.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Larger anonymous mappings at the start are not the loader's (a sanitizer's shadow, a preloaded library's heap). */
enum { LOADER_MAPPING_MAX_BYTES = 4 << 20 };

/* The image as it was when main() began. The process is one, so this is one. */
static pl_image started;
static bool start_done, start_is_whole;

static uint64_t libraries_bytes;

void pl_process_note_libraries(uint64_t heap_bytes) { libraries_bytes = heap_bytes; }
uint64_t pl_process_libraries_bytes(void) { return libraries_bytes; }

uint64_t pl_process_modules_written_bytes(void)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < started.module_count; i++) bytes += started.module[i].written_bytes;
    return bytes;
}

static const char *file_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void name_program(char *name, size_t room)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    snprintf(name, room, "%.47s", length > 0 ? file_part(path) : "program");
}

/* Written by the loader, then protected: of a segment that may be written. */
static uint64_t bytes_made_read_only(const struct dl_phdr_info *info)
{
    const uintptr_t whole = ~(uintptr_t)(PL_PAGE_BYTES - 1);
    uint64_t bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_RELRO) bytes += ((begin + segment->p_memsz) & whole) - (begin & whole);
    }
    return bytes;
}

/* dl_iterate_phdr lists the program first; the vdso is known by its address. */
static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    pl_image *image = context;
    if (image->module_count == PL_IMAGE_MODULES_MAX) return 1;
    pl_image_module *m = &image->module[image->module_count];
    *m = (pl_image_module){.kind = image->module_count ? PL_MEMORY_LIBRARY : PL_MEMORY_PROGRAM, .begin = UINTPTR_MAX};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || segment->p_memsz == 0) continue;
        uintptr_t begin = (info->dlpi_addr + segment->p_vaddr) & ~(uintptr_t)(PL_PAGE_BYTES - 1);
        uintptr_t end = pl_align_up(info->dlpi_addr + segment->p_vaddr + segment->p_memsz, PL_PAGE_BYTES);
        if (begin < m->begin) m->begin = begin;
        if (end > m->end) m->end = end;
        m->loaded_bytes += end - begin;
        if (segment->p_flags & PF_W) m->written_bytes += end - begin;
    }
    if (m->end == 0) return 0;
    m->written_bytes -= bytes_made_read_only(info);
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    if (vdso && vdso >= m->begin && vdso < m->end) m->kind = PL_MEMORY_VDSO;
    if (m->kind == PL_MEMORY_PROGRAM)
        name_program(m->name, sizeof m->name);
    else
        snprintf(m->name, sizeof m->name, "%s", m->kind == PL_MEMORY_VDSO ? "vdso" : file_part(info->dlpi_name));
    image->module_count++;
    return 0;
}

/* The part of an anonymous mapping that no module covers; a merged mapping can hold bss and loader memory side by side.
 */
static void add_loader_memory(pl_image *image, uintptr_t begin, uintptr_t end)
{
    for (size_t i = 0; i < image->module_count && begin < end; i++) {
        const pl_image_module *m = &image->module[i];
        if (m->end <= begin || m->begin >= end) continue;
        if (m->begin > begin) add_loader_memory(image, begin, m->begin);
        begin = m->end;
    }
    if (begin >= end || image->loader_count == PL_IMAGE_LOADER_MAX) return;
    image->loader[image->loader_count].begin = begin;
    image->loader[image->loader_count++].end = end;
}

static void sort_mapping(pl_image *image, const pl_mapping *m)
{
    if (strcmp(m->name, "[stack]") == 0) image->stack_end = m->end;
    bool anonymous = m->name[0] == 0 && m->inode == 0;
    if (anonymous && m->protection[1] == 'w' && m->end - m->begin <= LOADER_MAPPING_MAX_BYTES) {
        add_loader_memory(image, m->begin, m->end);
    }
}

/* Before any large frame: one that goes over the limit is a segmentation fault, without a word. */
static pl_status check_main_stack(pl_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= PL_PROCESS_MAIN_STACK_BYTES) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "the main stack may have %llu bytes, it needs %d bytes: raise the limit (ulimit -s %d)",
                   (unsigned long long)limit.rlim_cur, PL_PROCESS_MAIN_STACK_BYTES, PL_PROCESS_MAIN_STACK_BYTES >> 10);
}

static __attribute__((noinline)) pl_status record_start(pl_error *err)
{
    start_is_whole = dl_iterate_phdr(add_module, &started) == 0;
    pl_procfile maps;
    if (pl_procfile_open(&maps, "/proc/self/maps")) {
        return pl_fail(err, PL_E_UNSUPPORTED, "/proc/self/maps cannot be read: %s%s", strerror(errno),
                       pl_procfile_hint(errno));
    }
    pl_mapping m;
    for (char *line; (line = pl_procfile_line(&maps));) {
        if (pl_mapping_parse(line, &m)) sort_mapping(&started, &m);
    }
    pl_procfile_close(&maps);
    if (maps.error) return pl_fail(err, PL_E_UNSUPPORTED, "/proc/self/maps cannot be read: %s", strerror(maps.error));
    start_done = true;
    return PL_OK;
}

pl_status pl_process_start(pl_error *err)
{
    if (start_done) return PL_OK;
    PL_TRY(check_main_stack(err));
    return record_start(err);
}

static pl_status refuse_modules(pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED, "more than %d libraries are loaded: start with fewer (LD_PRELOAD?)",
                   PL_IMAGE_MODULES_MAX);
}

pl_status pl_image_read(pl_image *image, pl_error *err)
{
    PL_TRY(pl_process_start(err));
    *image = started;
    image->module_count = 0;
    return dl_iterate_phdr(add_module, image) ? refuse_modules(err) : PL_OK;
}

pl_status pl_image_read_start(pl_image *image, pl_error *err)
{
    PL_TRY(pl_process_start(err));
    *image = started;
    return start_is_whole ? PL_OK : refuse_modules(err);
}

bool pl_image_next_held(const pl_left_out *out, uintptr_t *begin, uintptr_t *end)
{
    for (size_t i = 0; i < out->count && *begin < *end; i++) {
        const pl_part_range *r = &out->range[i];
        if (r->end <= *begin) continue;
        if (r->begin > *begin) {
            if (r->begin < *end) *end = r->begin;
            return true;
        }
        *begin = r->end;
    }
    return *begin < *end;
}

void pl_image_leave_out(const pl_left_out *out)
{
    for (size_t i = 0; i < out->count; i++) {
        void *begin = (void *)out->range[i].begin;
        const size_t bytes = out->range[i].end - out->range[i].begin;
        (void)madvise(begin, bytes, MADV_DONTDUMP);
        if (!out->range[i].zeros) (void)madvise(begin, bytes, MADV_DONTNEED);
    }
}

/* Of the mappings of the modules' files. */
static void each_mapping(const pl_image *image, const pl_left_out *out,
                         void (*use)(const pl_mapping *, const pl_left_out *))
{
    pl_procfile maps;
    pl_mapping m;
    if (pl_procfile_open(&maps, "/proc/self/maps")) return;
    for (char *line; (line = pl_procfile_line(&maps));) {
        bool file = pl_mapping_parse(line, &m) && m.inode && m.protection[0] == 'r';
        for (size_t i = 0; file && i < image->module_count; i++)
            if (m.begin >= image->module[i].begin && m.end <= image->module[i].end) use(&m, out);
    }
    pl_procfile_close(&maps);
}

static void read_singly(const pl_mapping *m, const pl_left_out *out)
{
    (void)out;
    (void)madvise((void *)m->begin, m->end - m->begin, MADV_RANDOM);
}

void pl_image_stop_read_ahead(const pl_image *image) { each_mapping(image, NULL, read_singly); }

/* What may be written is the process's own already. */
static void hold(const pl_mapping *m, const pl_left_out *out)
{
    uintptr_t begin = m->begin, end = m->end;
    for (; m->protection[1] != 'w' && pl_image_next_held(out, &begin, &end); begin = end, end = m->end)
        (void)mlock((const void *)begin, end - begin);
}

void pl_image_hold(const pl_image *image, const pl_left_out *out) { each_mapping(image, out, hold); }

/* Kernels before 5.14. The atomic "or 0" is a write that changes nothing, also while another thread writes the same
 * byte. */
static void touch(uintptr_t begin, uintptr_t end, bool writable)
{
    for (uintptr_t page = begin; page < end; page += PL_PAGE_BYTES) {
        if (writable)
            __atomic_fetch_or((unsigned char *)page, 0, __ATOMIC_RELAXED);
        else
            (void)*(volatile const unsigned char *)page;
    }
}

int pl_image_populate(uintptr_t begin, uintptr_t end, bool writable)
{
    int result;
    do result = madvise((void *)begin, end - begin, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    while (result != 0 && (errno == EAGAIN || errno == EINTR));
    if (result == 0) return 0;
    if (errno != EINVAL) return -1;
    touch(begin, end, writable);
    return 0;
}
