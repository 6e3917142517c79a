/* What a plan needs besides the model's own values, asked for by fit at each candidate: staging as values of the graph,
 * and the rows of the whole process. */
#include <string.h>

#include "api/compiler.h"
#include "base/alloc.h"
#include "base/causal_lm.h"
#include "base/size.h"
#include "ir/op.h"
#include "store/block_sink.h"
#include "store/folder.h"

/* ---- staging ---- */

static pl_status add_staging(pl_graph *g, const pl_session_staging *s, const char *at_once_key, pl_error *err)
{
    if (s->bytes == 0) return PL_OK;
    if (s->bytes >> 40)
        return pl_fail(err, PL_E_CONFIG, "%s would take %llu bytes; make %s or what a sample holds smaller", s->name,
                       (unsigned long long)s->bytes, at_once_key);
    pl_builder b = pl_builder_begin(g, 0, err);
    pl_builder_enter(&b, "staging");
    pl_build_persistent(&b, s->role, PL_DTYPE_U8, pl_shape_of(1, (int64_t)s->bytes), "%s", s->name);
    return b.status;
}

pl_status pl_compiler_stage(void *context, pl_graph *g, int64_t micro_batch, pl_error *err)
{
    pl_compiler *c = context;
    pl_session_staging s[PL_SESSION_STAGING_MAX];
    size_t count;
    c->settings.run.micro_batch = (uint32_t)micro_batch;
    PL_TRY(pl_session_measure_staging(g, &c->settings.run, c->data, &c->settings.jobs, s, &count, &c->disk, err));
    for (size_t i = 0; i < count; i++) PL_TRY(add_staging(g, &s[i], c->settings.run.words->at_once_key, err));
    return PL_OK;
}

/* ---- the rows of the process ---- */

static void add_disk(pl_plan *p, const char *name, uint64_t bytes)
{
    if (bytes == 0 || p->disk_count == PL_PLAN_DISK_ROWS_MAX) return;
    pl_plan_disk_row *r = &p->disk[p->disk_count++];
    strncpy(r->name, name, sizeof r->name - 1);
    r->bytes = bytes;
}

enum { BESIDE = 1 << 20 };

/* What lies in memory until the first block or checkpoint is written: the memory files that bring the plan to the
 * runner, as text and as a page about as large, and the words of the command. */
static uint64_t brought_bytes(const pl_compiler *c) { return 2 * c->plan_text_bytes + (64 << 10); }

/* On a disk that is memory all files stay charged. */
static uint64_t results_bytes(const pl_compiler *c)
{
    const pl_block_sizes *r = &c->results;
    return pl_disk_is_memory(c->data->sink->path) ? r->disk_bytes + brought_bytes(c) : r->page_cache_bytes;
}

/* The files of each training before this one: its checkpoints, its plan, what was predicted and measured. */
static uint64_t earlier_bytes(const pl_compiler *c)
{
    const uint64_t kept = c->disk.disk_bytes - (c->disk.disk_bytes ? c->disk.checkpoint_bytes : 0);
    return c->earlier_stages * (kept + brought_bytes(c) + BESIDE);
}

/* Two windows of a checkpoint's largest file, or all of a small checkpoint, with metrics, events and trace. */
static uint64_t run_bytes(const pl_compiler *c, const pl_plan *p)
{
    uint64_t windows = 2 * (uint64_t)PL_FILE_WINDOW_BYTES, kept = 0;
    for (size_t i = 0; i < p->disk_count; i++) kept += p->disk[i].bytes;
    if (pl_disk_is_memory(c->settings.out)) return kept + brought_bytes(c) + BESIDE + earlier_bytes(c);
    return (c->disk.checkpoint_bytes < windows ? c->disk.checkpoint_bytes : windows) + BESIDE;
}

/* Pages of files being written. */
static uint64_t files_bytes(const pl_compiler *c, const pl_plan *p)
{
    const bool trains = pl_command_does(c->command, PL_USES_UPDATE);
    if (pl_command_does(c->command, PL_USES_TEXT)) return pl_align_up(c->data->kernel_cache_bytes, PL_PAGE_BYTES);
    if (!c->data->sink && !trains) return 0;
    const uint64_t written = c->data->sink ? results_bytes(c) : run_bytes(c, p);
    return pl_align_up((written > brought_bytes(c) ? written : brought_bytes(c)) + c->data->kernel_cache_bytes,
                       PL_PAGE_BYTES);
}

/* What the results take on the disk and in its cache. */
static pl_status measure_results(pl_compiler *c, pl_error *err)
{
    const pl_block_use use = pl_session_block_use(&c->settings.run, c->data->sink);
    if (!c->data->sink) return PL_OK;
    return pl_block_file_measure(c->data->sink->layout, c->data->sink->form, &use, &c->results, err);
}

/* The rows of the whole process. */
pl_status pl_compiler_settle(void *context, pl_plan *p, pl_error *err)
{
    pl_compiler *c = context;
    PL_TRY(measure_results(c, err));
    if (pl_disk_is_memory(c->settings.out)) c->earlier_stages = pl_stage_count_earlier(c->config);
    p->command = c->command;
    p->numerics_hash = pl_config_hash_numerics(c->config);
    p->words = *c->settings.run.words;
    if (c->data->source || c->data->at_once || c->data->brought || c->data->held) p->identity = c->data->identity;
    p->validation = c->data->validation;
    p->context = pl_facts_value(&c->data->extents, PL_FACT_CONTEXT, 0);
    p->context_most = pl_facts_value(&c->data->extents, PL_FACT_CONTEXT_MOST, 0);
    p->config = pl_strdup(c->settings.config_text);
    if (!p->config) return pl_fail(err, PL_E_NOMEM, "no memory for the plan");
    add_disk(p, "checkpoints kept", c->disk.disk_bytes - (c->disk.disk_bytes ? c->disk.checkpoint_bytes : 0));
    add_disk(p, PL_PLAN_DISK_CHECKPOINT, c->disk.disk_bytes ? c->disk.checkpoint_bytes : 0);
    add_disk(p, PL_PLAN_DISK_RESULTS, c->results.disk_bytes);
    if (c->data->source && c->data->file) add_disk(p, c->data->file, c->data->file_bytes);
    PL_TRY(pl_compiler_find_heap(c, p, err));
    p->writer_cache_bytes = files_bytes(c, p);
    memcpy(p->budget, c->budget, sizeof p->budget);
    _Static_assert(sizeof p->data == sizeof c->data->said, "one is copied to the other");
    if (pl_command_does(c->command, PL_USES_UPDATE)) memcpy(p->data, c->data->said, sizeof p->data);
    return pl_plan_account(p, (int)pl_source_threads(c->data->source), err);
}

/* A team that is not given may be one thread; the heap is that of an empty plan, pages of files those of the smallest
 * checkpoint. */
pl_status pl_compiler_find_floor(const pl_compiler *c, pl_fit_options *o, pl_error *err)
{
    pl_process_planned process;
    pl_process_options how = o->plan.process;
    int threads = o->given.threads ? o->given.threads : 1;
    PL_TRY(pl_compiler_find_least_heap(c, threads, &how.heap_bytes, err));
    PL_TRY(pl_process_plan(&how, threads, o->plan.helper_threads, NULL, 0, &process, err));
    o->floor_bytes = process.charged_bytes + (pl_command_does(c->command, PL_USES_UPDATE) ? BESIDE : 0);
    return PL_OK;
}
