/* What a process of this executable will hold once prepared: sums of sizes, no estimate. The one thing that is a bound
 * and not exact is page tables, because where address randomisation puts a mapping decides how many 2 MiB regions it
 * meets. */
#include <stdio.h>
#include <string.h>

#include "base/process_image.h"
#include "base/size.h"

/* Growth of a memory cgroup's kernel counter over 512 idle threads on Linux 6.18 (x86-64), page tables taken off: 21.9
 * kB each, of which 16 KiB are the kernel stack and 5.9 kB the task structure; the rest are two mappings, pid and
 * stack-guard nodes. Another kernel gave 30 kB (DESIGN.md). A bound for both stands here. */
enum { THREAD_KERNEL_BYTES = 32 << 10 };
/* The process itself, without further threads: 30 kB measured for a bare one; about 100 mappings of 0.4 kB, open files,
 * pipes, names and inodes of the run's folder, the index of its pages in the cache come on top. 160 KiB at most in a
 * hundred runs, each alone in a cgroup (tests/budget/enforce.py). */
enum { PROCESS_KERNEL_BYTES = 192 << 10 };

pl_process_options pl_process_options_default(void)
{
    return (pl_process_options){.heap_bytes = 1 << 20,
                                .main_stack_bytes = PL_PROCESS_MAIN_STACK_BYTES,
                                .thread_stack_reserved_bytes = 512 << 10,
                                .thread_stack_touched_bytes = 64 << 10,
                                .parts = PL_PARTS_ALL};
}

uint64_t pl_process_thread_kernel_bytes(void) { return THREAD_KERNEL_BYTES; }

uint64_t pl_process_page_table_bytes(uint64_t mapping_bytes)
{
    if (mapping_bytes == 0) return 0;
    /* n pages meet at most ⌈(n − 1)/512⌉ + 1 tables; the same one level up. */
    uint64_t pages = (mapping_bytes - 1) / PL_PAGE_BYTES + 1;
    uint64_t tables = (pages - 1 + 511) / 512 + 1;
    uint64_t directories = tables > 1 ? (tables - 1 + 511) / 512 + 1 - 1 : 0; /* the first is shared with neighbours */
    return (tables + directories) * PL_PAGE_BYTES;
}

static pl_memory_row *add_row(pl_process_planned *plan, pl_memory_kind kind, const char *name, uint64_t resident_bytes)
{
    if (plan->row_count == PL_MEMORY_ROWS_MAX) return NULL;
    pl_memory_row *row = &plan->row[plan->row_count++];
    *row =
        (pl_memory_row){.kind = kind, .count = 1, .reserved_bytes = resident_bytes, .resident_bytes = resident_bytes};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

static int add_arena(pl_process_planned *plan, const pl_process_arena *a)
{
    if (!a->is_files) return add_row(plan, PL_MEMORY_ARENA, a->name, a->resident_bytes) ? 0 : -1;
    pl_memory_row *row = add_row(plan, PL_MEMORY_FILES, a->name, 0);
    if (row) row->reserved_bytes = a->resident_bytes;
    return row ? 0 : -1;
}

static uint64_t left_out_bytes(pl_parts held)
{
    pl_part_range range[PL_PART_RANGES_MAX];
    uint64_t bytes = 0;
    for (size_t i = pl_parts_left_out(held, range); i > 0; i--) bytes += range[i - 1].end - range[i - 1].begin;
    return bytes;
}

static int add_image(pl_process_planned *plan, const pl_image *image, pl_parts held)
{
    for (size_t i = 0; i < image->module_count; i++) {
        const pl_image_module *m = &image->module[i];
        pl_memory_row *row = add_row(plan, m->kind, m->name, m->loaded_bytes);
        if (!row) return -1;
        row->reserved_bytes = m->end - m->begin;
        if (m->kind == PL_MEMORY_PROGRAM) row->resident_bytes -= left_out_bytes(held);
    }
    uint64_t loader = 0;
    for (size_t i = 0; i < image->loader_count; i++) loader += image->loader[i].end - image->loader[i].begin;
    if (loader == 0) return 0;
    pl_memory_row *row = add_row(plan, PL_MEMORY_LOADER, "loader", loader);
    if (row) row->count = (uint32_t)image->loader_count;
    return row ? 0 : -1;
}

static int add_stacks(pl_process_planned *plan, const pl_process_options *o, uint32_t threads)
{
    if (!add_row(plan, PL_MEMORY_HEAP, "heap", o->heap_bytes)) return -1;
    if (!add_row(plan, PL_MEMORY_MAIN_STACK, "main stack", o->main_stack_bytes)) return -1;
    if (threads == 0) return 0;
    pl_memory_row *row =
        add_row(plan, PL_MEMORY_THREAD_STACK, "thread stacks", threads * o->thread_stack_touched_bytes);
    if (!row) return -1;
    row->count = threads;
    row->reserved_bytes = threads * o->thread_stack_reserved_bytes;
    return 0;
}

static pl_status sum_up(pl_process_planned *plan, const pl_process_options *o, uint32_t threads, pl_error *err)
{
    /* Regions far apart (program and heap, libraries, main stack) need upper tables of their own. */
    plan->page_table_bytes = 6 * PL_PAGE_BYTES;
    plan->kernel_bytes = PROCESS_KERNEL_BYTES + threads * (uint64_t)THREAD_KERNEL_BYTES;
    uint64_t image_bytes = 0;
    for (size_t i = 0; i < plan->row_count; i++) {
        const pl_memory_row *row = &plan->row[i];
        bool image = row->kind == PL_MEMORY_LIBRARY || row->kind == PL_MEMORY_LOADER || row->kind == PL_MEMORY_VDSO;
        if (image)
            image_bytes += row->reserved_bytes;
        else if (row->kind != PL_MEMORY_THREAD_STACK) {
            const bool has_holes = row->kind == PL_MEMORY_PROGRAM || row->kind == PL_MEMORY_FILES;
            plan->page_table_bytes +=
                pl_process_page_table_bytes(has_holes ? row->reserved_bytes : row->resident_bytes);
        }
        if (pl_size_add(plan->resident_bytes, row->resident_bytes, &plan->resident_bytes)) {
            return pl_fail(err, PL_E_BUDGET, "the memory of this run adds up to more than 64 bits can count");
        }
    }
    plan->page_table_bytes += pl_process_page_table_bytes(image_bytes);
    /* Stacks lie one below the other: a run of them meets the tables of its whole span, but no more than two a stack.
     */
    uint64_t span = pl_process_page_table_bytes(threads * (o->thread_stack_reserved_bytes + PL_PAGE_BYTES));
    uint64_t each = threads * pl_process_page_table_bytes(o->thread_stack_touched_bytes);
    plan->page_table_bytes += span < each ? span : each;
    if (pl_size_add(plan->resident_bytes, plan->page_table_bytes + plan->kernel_bytes, &plan->charged_bytes)) {
        return pl_fail(err, PL_E_BUDGET, "the memory of this run adds up to more than 64 bits can count");
    }
    return PL_OK;
}

pl_status pl_process_check_options(const pl_process_options *o, pl_error *err)
{
    uint64_t sizes[] = {o->heap_bytes, o->main_stack_bytes, o->thread_stack_reserved_bytes,
                        o->thread_stack_touched_bytes};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] % PL_PAGE_BYTES || sizes[i] == 0 || sizes[i] > (uint64_t)1 << 40) {
            return pl_fail(err, PL_E_USAGE,
                           "%llu bytes is not a size for a heap or a stack: a multiple of %d is expected",
                           (unsigned long long)sizes[i], PL_PAGE_BYTES);
        }
    }
    if (o->thread_stack_touched_bytes > o->thread_stack_reserved_bytes) {
        return pl_fail(err, PL_E_USAGE, "a thread's stack cannot have more bytes touched (%llu) than reserved (%llu)",
                       (unsigned long long)o->thread_stack_touched_bytes,
                       (unsigned long long)o->thread_stack_reserved_bytes);
    }
    return PL_OK;
}

static pl_status check_threads(int threads, int helper_threads, pl_error *err)
{
    if (threads >= 1 && helper_threads >= 0 && helper_threads <= PL_PROCESS_THREADS_MAX &&
        threads <= PL_PROCESS_THREADS_MAX - helper_threads) {
        return PL_OK;
    }
    return pl_fail(err, PL_E_USAGE, "%d threads and %d helpers asked for: 1 to %d together are possible", threads,
                   helper_threads, PL_PROCESS_THREADS_MAX);
}

pl_status pl_process_plan(const pl_process_options *options, int threads, int helper_threads,
                          const pl_process_arena *arenas, size_t arena_count, pl_process_planned *plan, pl_error *err)
{
    *plan = (pl_process_planned){0};
    PL_TRY(pl_process_check_options(options, err));
    PL_TRY(check_threads(threads, helper_threads, err));
    pl_image image;
    PL_TRY(pl_image_read_start(&image, err));
    uint32_t further = (uint32_t)(threads - 1 + helper_threads);
    int failed = 0;
    for (size_t i = 0; i < arena_count; i++) {
        failed |= add_arena(plan, &arenas[i]);
    }
    failed |= add_stacks(plan, options, further);
    failed |= add_image(plan, &image, options->parts);
    if (failed) return pl_fail(err, PL_E_INTERNAL, "more than %d rows in the memory of a process", PL_MEMORY_ROWS_MAX);
    return sum_up(plan, options, further, err);
}
