/* The largest parts in words. A cause says only what the mappings show: bytes, and what kind of memory they are. Where
 * something else would have to be known (is a heap's memory in use or freed?), the sentence says that it is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "doctor/doctor.h"

enum { TEXT = 32 };

typedef struct writer {
    const pl_doctor_view *view;
    pl_doctor_cause *cause;
} writer;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *pl_doctor_finds_library(const pl_doctor_view *v, const char *prefix)
{
    for (size_t i = 0; i < v->group_count; i++) {
        bool code = v->group[i].kind == PL_DOCTOR_LIBRARIES || v->group[i].kind == PL_DOCTOR_PROGRAM;
        const char *name = base_name(v->group[i].name);
        if (code && strncmp(name, prefix, strlen(prefix)) == 0) return name;
    }
    return NULL;
}

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

/* ---- programs that are known by what they map ---- */

static const struct runtime {
    const char *library, *program; /* one of the two; a program's name may go on with its version */
    const char *title, *text, *remedy;
} runtimes[] = {
    {"libjvm.so", NULL, "memory of a JVM",
     "A JVM is loaded: the Java heap, metaspace, the code cache and the collector's tables are in here. Only the JVM "
     "can tell them apart: jcmd PID VM.native_memory (it must have been started with "
     "-XX:NativeMemoryTracking=summary).",
     "-Xmx512m or -XX:MaxRAMPercentage=50 bounds the heap (by default it may grow to a quarter of the memory that the "
     "JVM sees); -XX:MaxMetaspaceSize and -XX:ReservedCodeCacheSize bound the rest."},
    {NULL, "node", "memory of Node.js", "The heap of JavaScript objects and buffers of the runtime are in here.",
     "--max-old-space-size=MB bounds the heap; node --heap-prof shows who fills it."},
    {NULL, "python", "memory of Python and its libraries",
     "Arenas of Python objects, arrays and tensors, large blocks of malloc: the mappings do not tell them apart.",
     "python -X tracemalloc names the lines that hold memory; an array goes back to the system with its last "
     "reference."},
};

static bool is_program(const pl_doctor_view *v, const char *name)
{
    const char *own = base_name(v->process->executable);
    size_t bytes = strlen(name);
    if (strncmp(own, name, bytes) != 0) return false;
    const char *rest = own + bytes + strspn(own + bytes, "0123456789.");
    return !*rest || strcmp(rest, " (deleted)") == 0;
}

static const struct runtime *find_runtime(const pl_doctor_view *v)
{
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++) {
        const struct runtime *r = &runtimes[i];
        if (r->library ? pl_doctor_finds_library(v, r->library) != NULL : is_program(v, r->program)) return r;
    }
    return NULL;
}

/* ---- one kind each ---- */

static const pl_doctor_map *largest_map(const pl_doctor_view *v, pl_doctor_kind kind)
{
    const pl_doctor_map *most = NULL;
    for (size_t i = 0; i < v->process->map_count; i++) {
        const pl_doctor_map *m = &v->process->map[i];
        if (v->kind[i] == kind && (!most || m->bytes[PL_SMAPS_RSS] > most->bytes[PL_SMAPS_RSS])) most = m;
    }
    return most;
}

static void say_heap(writer *w)
{
    const pl_doctor_row *row = &w->view->row[PL_DOCTOR_HEAP];
    char resident[TEXT];
    snprintf(w->cause->title, sizeof w->cause->title, "the heap ([heap])");
    snprintf(w->cause->text, sizeof w->cause->text,
             "malloc's main arena holds %s. How much of that the program uses, and how much it has freed and malloc "
             "keeps, cannot be known from outside.",
             show(row->bytes[PL_SMAPS_RSS], resident));
    snprintf(
        w->cause->remedy, sizeof w->cause->remedy,
        "heaptrack or valgrind --tool=massif names the code that asks for it; if much was freed, malloc_trim(0) in "
        "the program gives whole free pages back (MALLOC_TRIM_THRESHOLD_ only what is free at the heap's upper end).");
}

static void say_arenas(writer *w)
{
    const pl_doctor_row *row = &w->view->row[PL_DOCTOR_ARENAS];
    char resident[TEXT], reserved[TEXT];
    bool java = pl_doctor_finds_library(w->view, "libjvm.so");
    snprintf(w->cause->title, sizeof w->cause->title, "%zu arenas of malloc", w->view->arena_count);
    snprintf(
        w->cause->text, sizeof w->cause->text,
        "They hold %s of %s reserved addresses. Threads open an arena each, up to 8 a core, and memory freed in one "
        "does not serve the others.%s",
        show(row->bytes[PL_SMAPS_RSS], resident), show(row->reserved_bytes, reserved),
        java ? " (A JVM's metaspace can have the same shape.)" : "");
    if (w->view->arena_count >= 3)
        snprintf(w->cause->remedy, sizeof w->cause->remedy,
                 "MALLOC_ARENA_MAX=2 in its environment lets threads share arenas, at some cost in waiting.");
}

static void say_plimsoll(writer *w)
{
    snprintf(w->cause->title, sizeof w->cause->title, "Plimsoll's arena");
    snprintf(w->cause->text, sizeof w->cause->text,
             "Weights, gradients and activations of a run of Plimsoll, as its plan placed them (%.300s/plan.lock).",
             w->view->process->run_folder);
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "--budget SIZE plans a smaller one.");
}

static void say_anonymous(writer *w)
{
    const pl_doctor_view *v = w->view;
    const pl_doctor_row *row = &v->row[PL_DOCTOR_ANONYMOUS];
    const pl_doctor_map *most = largest_map(v, PL_DOCTOR_ANONYMOUS);
    const struct runtime *runtime = find_runtime(v);
    char largest[TEXT];
    if (w->view->process->run_folder) {
        say_plimsoll(w);
        return;
    }
    snprintf(w->cause->title, sizeof w->cause->title, "%s", runtime ? runtime->title : "anonymous memory (mmap)");
    snprintf(w->cause->text, sizeof w->cause->text, "%u mappings, the largest with %s%s%.60s. %s", row->maps,
             show(most ? most->bytes[PL_SMAPS_RSS] : 0, largest), most && *most->name ? " " : "",
             most ? most->name : "",
             runtime ? runtime->text
                     : "Large blocks of malloc (each of 128 KiB or more is a mapping of its own), buffers, heaps of "
                       "runtimes; the mappings do not tell who asked for them.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "%s",
             runtime ? runtime->remedy : "heaptrack, or perf trace -e mmap, names the code that asks for it.");
}

static void say_stacks(writer *w)
{
    const pl_doctor_row *row = &w->view->row[PL_DOCTOR_THREAD_STACKS];
    char resident[TEXT], reserved[TEXT];
    snprintf(w->cause->title, sizeof w->cause->title, "touched pages of thread stacks");
    snprintf(w->cause->text, sizeof w->cause->text,
             "%u %s touched %s of %s reserved. What calls once touched stays until the thread ends; what they "
             "never touched costs no memory.",
             row->maps, row->maps == 1 ? "stack has" : "stacks have", show(row->bytes[PL_SMAPS_RSS], resident),
             show(row->reserved_bytes, reserved));
    snprintf(w->cause->remedy, sizeof w->cause->remedy,
             "fewer threads, or smaller local arrays and shallower calls; a smaller stack size changes only what is "
             "reserved.");
}

static void say_main_stack(writer *w)
{
    snprintf(w->cause->title, sizeof w->cause->title, "the main thread's stack");
    snprintf(w->cause->text, sizeof w->cause->text,
             "It has grown to the deepest call so far and does not shrink; arguments and environment lie in it too.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "smaller local arrays, shallower calls.");
}

/* "libtorch_cpu.so (310 MB), libc.so.6 (1.8 MB)" */
static void list_groups(const pl_doctor_view *v, pl_doctor_kind kind, size_t most, char *text, size_t room)
{
    char bytes[TEXT];
    size_t used = 0, shown = 0;
    text[0] = 0;
    for (size_t i = 0; i < v->group_count && shown < most && used < room; i++) {
        if (v->group[i].kind != kind) continue;
        int n = snprintf(text + used, room - used, "%s%.80s (%s)", shown ? ", " : "", base_name(v->group[i].name),
                         show(v->group[i].sum.bytes[PL_SMAPS_RSS], bytes));
        used += n > 0 ? (size_t)n : 0;
        shown++;
    }
}

static size_t count_groups(const pl_doctor_view *v, pl_doctor_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < v->group_count; i++) count += v->group[i].kind == kind;
    return count;
}

static uint64_t clean_bytes(const pl_doctor_row *row)
{
    return row->bytes[PL_SMAPS_SHARED_CLEAN] + row->bytes[PL_SMAPS_PRIVATE_CLEAN];
}

/* Locked counts as Pss does. */
static bool is_locked(const pl_doctor_row *row)
{
    return row->bytes[PL_SMAPS_LOCKED] && row->bytes[PL_SMAPS_LOCKED] >= row->bytes[PL_SMAPS_PSS] / 2;
}

static void say_code(writer *w, pl_doctor_kind kind)
{
    const pl_doctor_row *row = &w->view->row[kind];
    char names[280], clean[TEXT], dirty[TEXT];
    bool cuda = pl_doctor_finds_library(w->view, "libcuda") || pl_doctor_finds_library(w->view, "libtorch_cuda");
    size_t count = count_groups(w->view, kind);
    list_groups(w->view, kind, 3, names, sizeof names);
    if (kind == PL_DOCTOR_PROGRAM)
        snprintf(w->cause->title, sizeof w->cause->title, "the program's own code and data");
    else
        snprintf(w->cause->title, sizeof w->cause->title, "%zu %s", count, count == 1 ? "library" : "libraries");
    snprintf(
        w->cause->text, sizeof w->cause->text,
        "%s. %s of it is unchanged: page cache, shared with others that map the same files, and %s. %s is its own: "
        "written data, and pages that the loader relocated.",
        names, show(clean_bytes(row), clean), is_locked(row) ? "locked (mlock), so it stays" : "the kernel can drop it",
        show(row->bytes[PL_SMAPS_PRIVATE_DIRTY], dirty));
    if (cuda && kind == PL_DOCTOR_LIBRARIES)
        snprintf(w->cause->remedy, sizeof w->cause->remedy,
                 "files of CUDA are among them: where no GPU is used, a build without CUDA maps none; with one, "
                 "CUDA_MODULE_LOADING=LAZY (the default since CUDA 12.2) loads kernels only when they are used.");
}

static void say_files(writer *w, pl_doctor_kind kind)
{
    const pl_doctor_row *row = &w->view->row[kind];
    char names[260], clean[TEXT];
    list_groups(w->view, kind, 3, names, sizeof names);
    snprintf(w->cause->title, sizeof w->cause->title, "%s",
             kind == PL_DOCTOR_FILES_PRIVATE ? "files mapped privately" : "files mapped shared");
    bool written = clean_bytes(row) < row->bytes[PL_SMAPS_RSS] / 2;
    if (is_locked(row)) {
        snprintf(w->cause->text, sizeof w->cause->text,
                 "%s. %s of it is unchanged page cache, but locked (mlock): the kernel may not take it back.", names,
                 show(clean_bytes(row), clean));
        snprintf(w->cause->remedy, sizeof w->cause->remedy, "munlock, or no MCL_FUTURE in mlockall.");
        return;
    }
    snprintf(w->cause->text, sizeof w->cause->text,
             written
                 ? "%s. Only %s of it is unchanged page cache; the rest was written and waits for its disk, or is a "
                   "private copy."
                 : "%s. %s of it is unchanged page cache: the kernel takes it back before it refuses memory to "
                   "anybody, so it looks larger than it weighs.",
             names, show(clean_bytes(row), clean));
    if (written && kind == PL_DOCTOR_FILES_PRIVATE) return;
    snprintf(w->cause->remedy, sizeof w->cause->remedy,
             written ? "msync writes it to its disk; then the kernel can take it back."
                     : "usually none is needed; madvise(MADV_DONTNEED) or munmap gives it back sooner.");
}

static const pl_doctor_group *largest_group(const pl_doctor_view *v, pl_doctor_kind kind)
{
    for (size_t i = 0; i < v->group_count; i++)
        if (v->group[i].kind == kind) return &v->group[i];
    return NULL;
}

/* "It is mapped 3 times…": in Rss a page counts in each mapping of it. */
static void say_mapped_again(const pl_doctor_group *g, char *text, size_t room)
{
    char pss[TEXT];
    const uint64_t *bytes = g->sum.bytes;
    bool again = g->sum.maps > 1 && bytes[PL_SMAPS_PSS] < bytes[PL_SMAPS_RSS] - bytes[PL_SMAPS_RSS] / 4;
    text[0] = 0;
    if (again)
        snprintf(text, room,
                 " The largest is mapped %u times, and Rss counts its pages each time; Pss, which divides "
                 "them, is %s.",
                 g->sum.maps, show(bytes[PL_SMAPS_PSS], pss));
}

/* Only what has a name outlives its processes. */
static const char *remedy_of_shared_memory(const pl_doctor_view *v)
{
    bool file = false, segment = false;
    for (size_t i = 0; i < v->process->map_count; i++) {
        const pl_doctor_map *m = &v->process->map[i];
        if (v->kind[i] != PL_DOCTOR_SHARED_MEMORY) continue;
        segment = segment || strncmp(m->name, "/SYSV", 5) == 0;
        file = file || strncmp(m->name, "/dev/shm/", 9) == 0 || (m->tmpfs && strncmp(m->name, "/memfd:", 7) != 0);
    }
    if (file && segment)
        return "a file in /dev/shm or another tmpfs stays until it is removed, a System V segment until ipcrm, even "
               "when no process uses it.";
    if (file) return "a file in /dev/shm or another tmpfs stays until it is removed, even when no process uses it.";
    if (segment) return "a System V segment stays until ipcrm, even when no process uses it.";
    return "it goes with the last process that maps it or holds its descriptor.";
}

static void say_shared_memory(writer *w)
{
    char names[260], again[160] = "";
    const pl_doctor_group *most = largest_group(w->view, PL_DOCTOR_SHARED_MEMORY);
    bool java = most && strncmp(most->name, "/memfd:java_heap", 16) == 0;
    const struct runtime *runtime = java ? find_runtime(w->view) : NULL;
    list_groups(w->view, PL_DOCTOR_SHARED_MEMORY, runtime ? 1 : 3, names, sizeof names);
    if (most) say_mapped_again(most, again, sizeof again);
    snprintf(w->cause->title, sizeof w->cause->title, "%s", runtime ? runtime->title : "shared memory");
    snprintf(w->cause->text, sizeof w->cause->text, "%s.%s %s", *names ? names : "mappings without a name", again,
             runtime
                 ? runtime->text
                 : "It has no file on a disk behind it, so it can only be swapped; the control group of the process "
                   "that first touched a page pays for it.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "%s",
             runtime ? runtime->remedy : remedy_of_shared_memory(w->view));
}

/* ---- beside resident ---- */

/* Candidates that no row's Rss counts, numbered behind the kinds. */
enum { PAGE_TABLES = PL_DOCTOR_KIND_COUNT, KERNEL_STACKS, SWAP, CANDIDATES };

static void say_page_tables(writer *w)
{
    const pl_doctor_view *v = w->view;
    char addresses[TEXT];
    snprintf(w->cause->title, sizeof w->cause->title, "page tables, not in resident");
    snprintf(w->cause->text, sizeof w->cause->text,
             "The kernel holds 4 KiB of table for every 2 MiB of addresses in which a page was ever read or written, "
             "here somewhere in %s of addresses; what is touched sparsely costs most, even where Rss stays small.",
             show(v->total.reserved_bytes, addresses));
    snprintf(w->cause->remedy, sizeof w->cause->remedy,
             "touch memory densely; madvise(MADV_HUGEPAGE) or hugetlb needs one entry instead of 512; munmap of a "
             "whole range gives its tables back.");
}

static void say_kernel_stacks(writer *w)
{
    snprintf(w->cause->title, sizeof w->cause->title, "kernel stacks of %llu threads, not in resident",
             (unsigned long long)w->view->process->status.threads);
    snprintf(w->cause->text, sizeof w->cause->text,
             "Each thread has one of 16 KiB in the kernel (x86-64), whatever it does; computed, not measured.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "fewer threads: a pool instead of one for each task.");
}

static void say_swap(writer *w)
{
    snprintf(w->cause->title, sizeof w->cause->title, "pages in swap, not in resident");
    snprintf(w->cause->text, sizeof w->cause->text,
             "The kernel has moved them out to make room; the column swap says which rows they belong to. They take "
             "memory again "
             "when they are touched.");
}

static void say_hugetlb(writer *w)
{
    snprintf(w->cause->title, sizeof w->cause->title, "hugetlb pages, not in resident");
    snprintf(w->cause->text, sizeof w->cause->text,
             "Reserved huge pages (MAP_HUGETLB, hugetlbfs): the kernel does not count them in any Rss and never swaps "
             "them.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy,
             "munmap gives them back to their pool; /proc/sys/vm/nr_hugepages says how many the machine keeps there.");
}

static void say_kind(writer *w, int kind)
{
    switch (kind) {
    case PAGE_TABLES:
        say_page_tables(w);
        break;
    case KERNEL_STACKS:
        say_kernel_stacks(w);
        break;
    case SWAP:
        say_swap(w);
        break;
    case PL_DOCTOR_HUGETLB:
        say_hugetlb(w);
        break;
    case PL_DOCTOR_HEAP:
        say_heap(w);
        break;
    case PL_DOCTOR_ARENAS:
        say_arenas(w);
        break;
    case PL_DOCTOR_ANONYMOUS:
        say_anonymous(w);
        break;
    case PL_DOCTOR_THREAD_STACKS:
        say_stacks(w);
        break;
    case PL_DOCTOR_MAIN_STACK:
        say_main_stack(w);
        break;
    case PL_DOCTOR_PROGRAM:
    case PL_DOCTOR_LIBRARIES:
        say_code(w, (pl_doctor_kind)kind);
        break;
    case PL_DOCTOR_FILES_PRIVATE:
    case PL_DOCTOR_FILES_SHARED:
        say_files(w, (pl_doctor_kind)kind);
        break;
    case PL_DOCTOR_SHARED_MEMORY:
        say_shared_memory(w);
        break;
    default:
        snprintf(w->cause->title, sizeof w->cause->title, "%s", pl_doctor_kind_title((pl_doctor_kind)kind));
        snprintf(w->cause->text, sizeof w->cause->text, "%s.", pl_doctor_kind_what((pl_doctor_kind)kind));
    }
}

static uint64_t resident_bytes_of(const pl_doctor_view *v, int k)
{
    return k < PL_DOCTOR_KIND_COUNT ? v->row[k].bytes[PL_SMAPS_RSS] : 0;
}

static uint64_t bytes_of(const pl_doctor_view *v, int k)
{
    const pl_doctor_status *s = &v->process->status;
    switch (k) {
    case PAGE_TABLES:
        return s->page_table_bytes;
    case KERNEL_STACKS:
        return s->threads * PL_DOCTOR_KERNEL_STACK_BYTES;
    case SWAP:
        return s->swap_bytes;
    case PL_DOCTOR_HUGETLB:
        return v->total.bytes[PL_SMAPS_SHARED_HUGETLB] + v->total.bytes[PL_SMAPS_PRIVATE_HUGETLB];
    default:
        return resident_bytes_of(v, k);
    }
}

uint64_t pl_doctor_charged_bytes(const pl_doctor_view *v)
{
    uint64_t sum = 0;
    for (int k = 0; k < CANDIDATES; k++) sum += bytes_of(v, k);
    return sum;
}

static int next_candidate(const pl_doctor_view *v, const bool *used)
{
    int most = CANDIDATES;
    for (int k = 0; k < CANDIDATES; k++)
        if (!used[k] && bytes_of(v, k) && (most == CANDIDATES || bytes_of(v, k) > bytes_of(v, most))) most = k;
    return most;
}

size_t pl_doctor_find_causes(const pl_doctor_view *v, pl_doctor_cause *causes)
{
    bool used[CANDIDATES] = {false};
    size_t count = 0;
    while (v->process->permitted && count < PL_DOCTOR_CAUSES_MAX) {
        int k = next_candidate(v, used);
        if (k == CANDIDATES) break;
        used[k] = true;
        causes[count] = (pl_doctor_cause){.bytes = bytes_of(v, k), .resident_bytes = resident_bytes_of(v, k)};
        say_kind(&(writer){v, &causes[count]}, k);
        count++;
    }
    return count;
}
