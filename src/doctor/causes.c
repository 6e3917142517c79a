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
     "A JVM is loaded: the Java heap, metaspace, code cache and tables of the collector are in it. Which is which, "
     "only "
     "the JVM can tell: jcmd PID VM.native_memory (it must have been started with -XX:NativeMemoryTracking=summary).",
     "-Xmx512m or -XX:MaxRAMPercentage=50 bounds the heap (by default it may grow to a quarter of the memory that the "
     "JVM "
     "sees); -XX:MaxMetaspaceSize and -XX:ReservedCodeCacheSize bound the rest."},
    {NULL, "node", "memory of Node.js", "The heap of JavaScript objects and buffers of the runtime are in it.",
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
    own += bytes + strspn(own + bytes, "0123456789.");
    return *own == 0 || strcmp(own, " (deleted)") == 0; /* an update replaced it */
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
        "heaptrack or valgrind --tool=massif names who asks for it; if much was freed, malloc_trim(0) in the program "
        "or MALLOC_TRIM_THRESHOLD_=131072 in its environment gives it back.");
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
                     : "Large blocks of malloc (from 128 KiB on each is a mapping of its own), buffers, heaps of "
                       "runtimes; who asked for them the mappings do not tell.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "%s",
             runtime ? runtime->remedy : "heaptrack, or perf trace -e mmap, names who asks for it.");
}

static void say_stacks(writer *w)
{
    const pl_doctor_row *row = &w->view->row[PL_DOCTOR_THREAD_STACKS];
    char resident[TEXT], reserved[TEXT];
    snprintf(w->cause->title, sizeof w->cause->title, "touched pages of thread stacks");
    snprintf(w->cause->text, sizeof w->cause->text,
             "%u stacks have touched %s of %s reserved. What calls once touched stays until the thread ends; what they "
             "never touched costs no memory.",
             row->maps, show(row->bytes[PL_SMAPS_RSS], resident), show(row->reserved_bytes, reserved));
    snprintf(w->cause->remedy, sizeof w->cause->remedy,
             "fewer threads, or smaller local arrays and less deep calls; a smaller stack size changes only what is "
             "reserved.");
}

static void say_main_stack(writer *w)
{
    snprintf(w->cause->title, sizeof w->cause->title, "the main thread's stack");
    snprintf(w->cause->text, sizeof w->cause->text,
             "It has grown to the deepest call so far and does not shrink; arguments and environment lie in it too.");
    snprintf(w->cause->remedy, sizeof w->cause->remedy, "smaller local arrays, less deep calls.");
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
        "%s. %s of it is unchanged: page cache, shared with others that map the same files, and the kernel can drop "
        "it. %s is its own: written data, and pages that the loader relocated.",
        names, show(clean_bytes(row), clean), show(row->bytes[PL_SMAPS_PRIVATE_DIRTY], dirty));
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
    if (row->bytes[PL_SMAPS_LOCKED] > row->bytes[PL_SMAPS_RSS] / 2) {
        snprintf(w->cause->text, sizeof w->cause->text,
                 "%s. They are locked (mlock, mlockall): the kernel can neither drop nor move them.", names);
        snprintf(w->cause->remedy, sizeof w->cause->remedy, "munlock, or locking less, gives the kernel its choice.");
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
             written ? "msync has it written; then the kernel can take it back."
                     : "usually none is needed; madvise(MADV_DONTNEED) or munmap gives it back sooner.");
}

static void say_shared_memory(writer *w)
{
    char names[260];
    list_groups(w->view, PL_DOCTOR_SHARED_MEMORY, 3, names, sizeof names);
    snprintf(w->cause->title, sizeof w->cause->title, "shared memory");
    snprintf(
        w->cause->text, sizeof w->cause->text,
        "%s. It has no file on a disk behind it, so it can only be swapped; the control group of who touched a page "
        "first pays for it.",
        names);
    snprintf(
        w->cause->remedy, sizeof w->cause->remedy,
        "a file in /dev/shm or another tmpfs stays until it is removed, a System V segment until ipcrm, even when no "
        "process uses it.");
}

static void say_kind(writer *w, pl_doctor_kind kind)
{
    switch (kind) {
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
        say_code(w, kind);
        break;
    case PL_DOCTOR_FILES_PRIVATE:
    case PL_DOCTOR_FILES_SHARED:
        say_files(w, kind);
        break;
    case PL_DOCTOR_SHARED_MEMORY:
        say_shared_memory(w);
        break;
    default:
        snprintf(w->cause->title, sizeof w->cause->title, "%s", pl_doctor_kind_title(kind));
        snprintf(w->cause->text, sizeof w->cause->text, "%s.", pl_doctor_kind_what(kind));
    }
}

/* ---- what is in no mapping's Rss ---- */

enum { PAGE_TABLES = PL_DOCTOR_KIND_COUNT, KERNEL_STACKS, SWAP, CANDIDATES };

static const struct {
    const char *title, *text, *remedy;
} outside[CANDIDATES - PL_DOCTOR_KIND_COUNT] = {
    {"page tables",
     "The kernel keeps 8 bytes for each page of 4 KiB that is or was mapped, in tables of 4 KiB for 2 MiB of "
     "addresses: "
     "memory that is touched here and there needs a whole table for each place, and reading is touching, too.",
     "touch memory densely, give back what is no longer used (munmap), or use huge pages, which need no such table."},
    {"kernel stacks", "Each thread has a stack of 16 KiB in the kernel, whether it works or waits.",
     "fewer threads: a pool instead of one for each task."},
    {"swap", "Pages of this process that the kernel has moved out: it needs more than it was left with.",
     "more memory for it, or less use of it; the rows' swap column shows whose pages they are."},
};

static uint64_t weigh(const pl_doctor_view *v, int candidate)
{
    const pl_doctor_status *s = &v->process->status;
    if (candidate == PAGE_TABLES) return s->page_table_bytes;
    if (candidate == KERNEL_STACKS) return s->threads * PL_DOCTOR_KERNEL_STACK_BYTES;
    if (candidate == SWAP) return s->swap_bytes;
    const uint64_t *bytes = v->row[candidate].bytes;
    return bytes[PL_SMAPS_RSS] + bytes[PL_SMAPS_SHARED_HUGETLB] + bytes[PL_SMAPS_PRIVATE_HUGETLB];
}

uint64_t pl_doctor_held_bytes(const pl_doctor_view *v)
{
    uint64_t sum = 0;
    for (int k = 0; k < CANDIDATES; k++) sum += weigh(v, k);
    return sum;
}

static int next_candidate(const pl_doctor_view *v, const bool *used)
{
    int most = CANDIDATES;
    for (int k = 0; k < CANDIDATES; k++)
        if (!used[k] && weigh(v, k) && (most == CANDIDATES || weigh(v, k) > weigh(v, most))) most = k;
    return most;
}

size_t pl_doctor_find_causes(const pl_doctor_view *v, pl_doctor_cause *causes)
{
    bool used[CANDIDATES] = {false};
    for (size_t count = 0; count < PL_DOCTOR_CAUSES_MAX; count++) {
        if (!v->process->permitted) return 0; /* the mappings, mostly the largest, are not known */
        int next = next_candidate(v, used), beyond = next - PL_DOCTOR_KIND_COUNT;
        if (next == CANDIDATES) return count;
        pl_doctor_cause *c = &causes[count];
        used[next] = true;
        *c = (pl_doctor_cause){.bytes = weigh(v, next)};
        if (beyond < 0) {
            say_kind(&(writer){v, c}, (pl_doctor_kind)next);
            continue;
        }
        snprintf(c->title, sizeof c->title, "%s", outside[beyond].title);
        snprintf(c->text, sizeof c->text, "%s", outside[beyond].text);
        snprintf(c->remedy, sizeof c->remedy, "%s", outside[beyond].remedy);
    }
    return PL_DOCTOR_CAUSES_MAX;
}
