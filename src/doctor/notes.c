/* What looks large and costs nothing, and what the figures cannot say. */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "doctor/doctor.h"

enum { TEXT = 32 };

static const char *show(uint64_t bytes, char *text) { return pl_format_bytes(bytes, text, TEXT); }

/* An untouched stack costs no memory: whoever adds up what stacks reserve blames the wrong thing. */
static void note_stacks(const pl_doctor_view *v, pl_str *out)
{
    const pl_doctor_row *row = &v->row[PL_DOCTOR_THREAD_STACKS];
    char reserved[TEXT], touched[TEXT];
    if (row->maps == 0) return;
    pl_str_printf(out, "%u thread %s %s and %s %s: ", row->maps, row->maps == 1 ? "stack reserves" : "stacks reserve",
                  show(row->reserved_bytes, reserved), row->maps == 1 ? "touches" : "touch",
                  show(row->bytes[PL_SMAPS_RSS], touched));
    pl_str_append(out, "an untouched stack costs no memory, only addresses.\n");
    if (v->guessed)
        pl_str_printf(out,
                      "%zu of the stacks are a guess, by size and guard: no thread's stack pointer was seen in them "
                      "(running all the time, not permitted, or kept by the C library for the next thread).\n",
                      v->guessed);
}

static void note_joined(const pl_doctor_view *v, pl_str *out)
{
    size_t count = 0;
    char usual[TEXT];
    for (size_t i = 0; i < v->process->map_count; i++) count += v->process->map[i].joined;
    if (count)
        pl_str_printf(out,
                      "%zu of the stacks and the memory above %s are one mapping: %s of each, the usual size, %s "
                      "counted as stack, the rest as other memory.\n",
                      count, count == 1 ? "it" : "them", show(pl_doctor_usual_stack_bytes(v->process), usual),
                      count == 1 ? "is" : "are");
}

/* Threads but the first, whose stack is known by name. */
static size_t count_hidden(const pl_doctor_view *v)
{
    const pl_doctor_process *p = v->process;
    size_t unknown = 0;
    for (size_t i = 0; i < p->thread_count; i++) unknown += !p->thread[i].stack_pointer && p->thread[i].id != p->id;
    return unknown > v->guessed ? unknown - v->guessed : 0;
}

static void note_threads(const pl_doctor_view *v, pl_str *out)
{
    size_t hidden = count_hidden(v);
    if (hidden)
        pl_str_printf(out,
                      "At least %zu %s no stack in this report: %s showed no stack pointer (running each time), and no "
                      "mapping has the shape of %s; what %s touched counts as anonymous.\n",
                      hidden, hidden == 1 ? "thread has" : "threads have", hidden == 1 ? "it" : "they",
                      hidden == 1 ? "its stack" : "their stacks", hidden == 1 ? "it" : "they");
    if (v->threads_elsewhere)
        pl_str_printf(out,
                      "%zu threads run on stacks inside other memory (a runtime's own stacks): those count there.\n",
                      v->threads_elsewhere);
    if (v->threads_unknown && v->threads_unknown == v->process->thread_count)
        pl_str_append(out,
                      "No stack pointer could be read (/proc/N/task/T/syscall), so stacks are recognised by shape.\n");
}

static void note_addresses(const pl_doctor_view *v, pl_str *out)
{
    char bytes[TEXT], resident[TEXT];
    uint64_t reserved = v->row[PL_DOCTOR_NO_ACCESS].reserved_bytes;
    if (reserved >= 1 << 20)
        pl_str_printf(out, "%s of addresses are reserved without access: they cost nothing.\n", show(reserved, bytes));
    if (v->total.reserved_bytes / 2 > v->total.bytes[PL_SMAPS_RSS])
        pl_str_printf(out, "Of %s of addresses (VmSize) %s are resident; only what was touched costs memory.\n",
                      show(v->total.reserved_bytes, bytes), show(v->total.bytes[PL_SMAPS_RSS], resident));
}

static void note_huge(const pl_doctor_view *v, pl_str *out)
{
    char huge[TEXT];
    uint64_t bytes = v->total.bytes[PL_SMAPS_ANON_HUGE];
    const char *setting = v->process->machine.transparent_huge_pages;
    if (bytes) {
        pl_str_printf(out,
                      "%s of anonymous memory is in huge pages (THP, set to %s): one byte touched in such a page holds "
                      "2 MiB.",
                      show(bytes, huge), setting);
        if (bytes > v->total.bytes[PL_SMAPS_ANONYMOUS] / 4)
            pl_str_printf(
                out, " Where memory is touched sparsely, prctl(PR_SET_THP_DISABLE)%s madvise(MADV_NOHUGEPAGE)%s.",
                strcmp(setting, "always") == 0 ? "," : " or",
                strcmp(setting, "always") == 0 ? " or /sys/kernel/mm/transparent_hugepage/enabled = madvise takes less"
                                               : " takes less");
        pl_str_append(out, "\n");
    }
    bytes = v->total.bytes[PL_SMAPS_SHARED_HUGETLB] + v->total.bytes[PL_SMAPS_PRIVATE_HUGETLB];
    if (bytes)
        pl_str_printf(out, "%s of hugetlb pages come on top: the kernel counts them in no Rss.\n", show(bytes, huge));
}

/* After fork, processes share the pages that none of them has written since: Rss counts them in each. */
static void note_forked(const pl_doctor_view *v, pl_str *out)
{
    uint64_t resident = 0, proportional = 0;
    char text[2][TEXT];
    for (int k = PL_DOCTOR_HEAP; k <= PL_DOCTOR_ANONYMOUS; k++) {
        resident += v->row[k].bytes[PL_SMAPS_RSS];
        proportional += v->row[k].bytes[PL_SMAPS_PSS];
    }
    if (resident >= 1 << 20 && proportional < resident / 2)
        pl_str_printf(out,
                      "Heap, arenas and anonymous memory hold %s, but their Pss is only %s: processes have shared them "
                      "since fork, and the end of this one alone frees only its private pages.\n",
                      show(resident, text[0]), show(proportional, text[1]));
}

static void note_rest(const pl_doctor_view *v, pl_str *out)
{
    char bytes[TEXT];
    if (v->process->status.swap_bytes)
        pl_str_printf(out, "%s more lie in swap.\n", show(v->process->status.swap_bytes, bytes));
    if (v->process->status.locked_bytes)
        pl_str_printf(out, "%s are locked (mlock): the kernel may neither swap nor drop them.\n",
                      show(v->process->status.locked_bytes, bytes));
    if (v->total.bytes[PL_SMAPS_LAZY_FREE])
        pl_str_printf(out, "%s are freed with MADV_FREE: resident until the kernel needs them.\n",
                      show(v->total.bytes[PL_SMAPS_LAZY_FREE], bytes));
    if (v->unexplained_bytes)
        pl_str_append(out,
                      "Unexplained: the process kept running between the reading of its mappings and of their sum.\n");
}

/* OpenBLAS maps buffers, by its processor of 32, 64 or 128 MiB of addresses: one or two (by its version) for the thread
 * that calls it, one for each of its own; the kernel joins neighbours into one mapping. Known by size: so told as such,
 * and only where the library is there. Where no more than two are left, fewer threads have nothing to save. */
static void note_blas(const pl_doctor_view *v, pl_str *out)
{
    const uint64_t unit = 32 << 20;
    uint64_t reserved = 0, touched = 0, smallest = UINT64_MAX;
    size_t count = 0;
    char text[2][TEXT];
    for (size_t i = 0; i < v->process->map_count; i++) {
        const pl_doctor_map *m = &v->process->map[i];
        uint64_t bytes = m->end - m->begin;
        if (v->kind[i] != PL_DOCTOR_ANONYMOUS || *m->name || bytes % unit) continue;
        count++;
        reserved += bytes;
        touched += m->bytes[PL_SMAPS_RSS];
        if (bytes < smallest) smallest = bytes;
    }
    const char *library = pl_doctor_finds_library(v, "libopenblas");
    if (!library) library = pl_doctor_finds_library(v, "libscipy_openblas");
    if (!count || !library) return;
    pl_str_printf(
        out, "%zu %s of whole 32 MiB %s like buffers of OpenBLAS (%s): %s reserved, %s touched.%s\n", count,
        count == 1 ? "mapping" : "mappings", count == 1 ? "looks" : "look", library, show(reserved, text[0]),
        show(touched, text[1]),
        reserved / smallest > 2 ? " OPENBLAS_NUM_THREADS=1 leaves one or two buffers, depending on its version." : "");
}

static void note_plimsoll(const pl_doctor_view *v, pl_str *out)
{
    const pl_doctor_process *p = v->process;
    if (p->run_folder)
        pl_str_printf(
            out,
            "A run of Plimsoll's own: %s/plan.lock is its plan; kill -USR1 %d makes it print its ledger, planned "
            "next to measured, with an owner for every byte.\n",
            p->run_folder, (int)p->id);
}

void pl_doctor_notes(const pl_doctor_view *v, pl_str *out)
{
    note_plimsoll(v, out);
    note_stacks(v, out);
    note_joined(v, out);
    note_threads(v, out);
    note_blas(v, out);
    note_huge(v, out);
    note_addresses(v, out);
    note_forked(v, out);
    note_rest(v, out);
}
