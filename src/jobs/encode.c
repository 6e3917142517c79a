/* Texts to capsules: block by block of the results, each in micro-batches, as pages come from the ring. What is already
 * done (data, then its mark: store/block_file.h) is not made again: the stream of pages covers each stretch of blocks
 * that are not. A text's bits do not depend on what is encoded with it, and so not on where a run began. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/pages/pages_data.h"
#include "jobs/encode_witness.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"
#include "store/not_finite.h"

#define COMMIT_SECONDS 2.0
#define RATE_SECONDS   0.5
enum { ENTROPIES = 512, REMARKS = 512 }; /* written at a time */

typedef struct encode {
    const pl_pages_data *d;
    pl_id program;
    uint64_t block;       /* at work */
    uint64_t first, rows; /* of its texts, those that exist in the current micro-batch */
    double committed_at;
    uint64_t pages, remarked[PL_PAGE_REMARK_COUNT]; /* of this run */
    char said[512];
} encode;

/* ---- amount of work ---- */

enum { INIT, ENCODE }; /* places in pl_job_encode.program */

static uint64_t count_blocks(const pl_pages_data *d) { return pl_block_count(&d->layout); }

/* The last block may have fewer. */
static uint64_t texts_of(const pl_pages_data *d, uint64_t block)
{
    const uint64_t first = block * d->setup.block, left = d->setup.count - first;
    return left < d->setup.block ? left : d->setup.block;
}

static uint64_t batches_of(uint64_t texts, uint32_t micro_batch) { return (texts + micro_batch - 1) / micro_batch; }

static double count_runs(const pl_data *data, uint32_t micro_batch, size_t k)
{
    const pl_pages_data *d = pl_pages_data_of(data);
    const uint64_t last = count_blocks(d) - 1;
    if (k == INIT) return 1;
    return (double)last * (double)batches_of(d->setup.block, micro_batch) +
           (double)batches_of(texts_of(d, last), micro_batch);
}

/* ---- what is written ---- */

static void count_remarks(encode *e, uint8_t remarks)
{
    e->pages++;
    for (int k = 0; k < PL_PAGE_REMARK_COUNT; k++) e->remarked[k] += remarks >> k & 1;
}

/* Bytes of one text in what is stored at a port. */
static uint64_t bytes_of_text(const encode *e, uint32_t port)
{
    uint64_t offset, bytes;
    (void)pl_block_piece(&e->d->layout, e->block, port, &offset, &bytes);
    return bytes / texts_of(e->d, e->block);
}

/* Finite weights may produce such numbers, also where only f16 cannot hold them. */
static bool is_not_finite(const encode *e, const pl_store_call *call, uint64_t row)
{
    for (uint32_t k = 0; k < PL_PAGES_REMARKS; k++) {
        const uint64_t one = bytes_of_text(e, k);
        if (pl_not_finite_count(e->d->dataset[k].dtype, (const char *)call->port[k].at + row * one, one)) return true;
    }
    return false;
}

/* At once: waiting until the end could take days. */
static void tell_first(pl_session *s, const encode *e, uint64_t row)
{
    char text[160];
    const uint64_t number = e->d->setup.first + e->block * e->d->setup.block + e->first + row;
    const int bytes = snprintf(text, sizeof text,
                               "the capsules of text %llu have numbers that are infinite or NaN; the end says of how "
                               "many texts this is so",
                               (unsigned long long)number);
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_WARNING, .text = text, .text_bytes = (size_t)bytes});
}

static pl_status put_remarks(pl_session *s, encode *e, const pl_store_call *call, pl_error *err)
{
    const uint8_t *drawn = call->port[PL_PAGES_REMARKS].at;
    uint8_t piece[REMARKS];
    for (uint64_t at = 0, n; at < e->rows; at += n) {
        n = e->rows - at < REMARKS ? e->rows - at : REMARKS;
        for (uint64_t i = 0; i < n; i++) {
            piece[i] = (uint8_t)(drawn[at + i] | is_not_finite(e, call, at + i) << PL_PAGE_PLACE_NOT_FINITE);
            if (e->remarked[PL_PAGE_PLACE_NOT_FINITE] == 0 && piece[i] >> PL_PAGE_PLACE_NOT_FINITE & 1)
                tell_first(s, e, at + i);
            count_remarks(e, piece[i]);
        }
        PL_TRY(pl_block_file_put(s->results, e->block, PL_PAGES_REMARKS, e->first + at, piece, n, err));
    }
    return PL_OK;
}

/* Each capsule's −Σ a·ln(a + 1e-8) over the patches (docs/capsules.md), from the model's output. */
static pl_status put_entropy(pl_session *s, const encode *e, const pl_call_port *attention, pl_error *err)
{
    const uint64_t batch = s->settings->micro_batch, capsules = e->d->setup.capsules;
    const uint64_t patches = attention->bytes / sizeof(float) / batch / capsules, count = e->rows * capsules;
    const float *a = attention->at;
    float piece[ENTROPIES];
    for (uint64_t k = 0; k < count; k++) {
        double sum = 0;
        for (uint64_t i = 0; i < patches; i++, a++) sum -= (double)*a * log((double)*a + 1e-8);
        piece[k % ENTROPIES] = (float)sum;
        const uint64_t used = k % ENTROPIES + 1, first = e->first * capsules + k + 1 - used;
        if (used < ENTROPIES && k + 1 < count) continue;
        PL_TRY(pl_block_file_put(s->results, e->block, PL_PAGES_ENTROPY, first * sizeof *piece, piece,
                                 used * sizeof *piece, err));
    }
    return PL_OK;
}

/* Rows past the end of the block's texts are not wanted. */
static pl_status store(pl_session *s, void *job, const pl_store_call *call, pl_error *err)
{
    encode *e = job;
    if (!e->rows) return PL_OK; /* before commit everything runs once */
    if (s->settings->to) return pl_encode_witness_put(s, s->settings->to, call, err);
    if (e->d->setup.entropy) PL_TRY(put_entropy(s, e, &call->port[PL_PAGES_ENTROPY], err));
    for (uint32_t k = 0; k < PL_PAGES_REMARKS; k++) {
        const uint64_t one = bytes_of_text(e, k);
        PL_TRY(pl_block_file_put(s->results, e->block, k, e->first * one, call->port[k].at, e->rows * one, err));
    }
    return put_remarks(s, e, call, err);
}

static pl_status commit_now_and_then(pl_session *s, encode *e, pl_error *err)
{
    if (pl_run_now() - e->committed_at < COMMIT_SECONDS) return PL_OK;
    PL_TRY(pl_block_file_commit(s->results, err));
    e->committed_at = pl_run_now();
    return PL_OK;
}

/* ---- the work ---- */

static pl_status open_encode(pl_session *s, void *state, pl_error *err)
{
    encode *e = state;
    e->d = pl_pages_data_of(s->o.data);
    if (s->results) s->step = pl_block_file_done(s->results);
    return pl_session_find_program(s, "encode", &e->program, err);
}

static void tell_progress(pl_session *s)
{
    const double now = pl_run_now(), seconds = now - s->reported_at;
    const uint64_t items = s->items_seen - s->reported_items;
    if (seconds >= RATE_SECONDS || !isfinite(s->last_rate)) s->last_rate = seconds > 0 ? (double)items / seconds : NAN;
    s->reported_at = now;
    s->reported_items = s->items_seen;
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_STEP, .loss = NAN, .lr = NAN, .items_per_second = s->last_rate});
}

static pl_status skip_slot(pl_session *s, pl_error *err)
{
    pl_slot slot;
    PL_TRY(pl_ring_next(s->ring, &slot, err));
    pl_ring_release(s->ring);
    return PL_OK;
}

/* Checked between blocks, so that no work is wasted; one block is always made, however short the limit. */
static bool is_over_time(const pl_session *s, const encode *e)
{
    const double limit = s->o.data->limit_seconds;
    return limit > 0 && e->pages > 0 && pl_run_now() - s->committed_at > limit;
}

/* The ring delivers as many micro-batches for each block as for a full one; those after the last text are skipped. */
static pl_status run_block(pl_session *s, encode *e, pl_error *err)
{
    const uint64_t most = s->settings->micro_batch, texts = texts_of(e->d, e->block);
    s->part = 0;
    s->parts = batches_of(texts, (uint32_t)most);
    for (e->first = 0; e->first < e->d->setup.block; e->first += most) {
        if (pl_session_should_stop(s))
            return pl_fail(err, PL_E_STOPPED, "stopped at text %llu",
                           (unsigned long long)(e->d->setup.first + e->block * e->d->setup.block + e->first));
        e->rows = e->first >= texts ? 0 : texts - e->first < most ? texts - e->first : most;
        PL_TRY(e->rows ? pl_session_run_program(s, e->program, false, err) : skip_slot(s, err));
        s->items_seen += e->rows;
        s->part += e->rows > 0;
    }
    PL_TRY(pl_texts_check(&e->d->setup.texts, err)); /* otherwise some of them may come from another file */
    PL_TRY(pl_block_file_finish(s->results, e->block, err));
    s->step++;
    tell_progress(s);
    return commit_now_and_then(s, e, err);
}

static pl_status run_stretches(pl_session *s, encode *e, pl_error *err)
{
    const uint64_t blocks = count_blocks(e->d);
    for (uint64_t begin = 0, end; begin < blocks; begin = end) {
        for (; begin < blocks && pl_block_file_is_done(s->results, begin); begin++) {
        }
        for (end = begin; end < blocks && !pl_block_file_is_done(s->results, end); end++) {
        }
        if (begin == end) break;
        pl_ring_begin(s->ring, PL_PART_TRAIN, begin, end);
        for (e->block = begin; e->block < end; e->block++) {
            if (is_over_time(s, e)) return pl_fail(err, PL_E_STOPPED, "the limit of time is over");
            PL_TRY(run_block(s, e, err));
        }
    }
    return PL_OK;
}

/* What cannot be drawn as intended is drawn as well as possible, and reported. */
static void tell_remarks(pl_session *s, encode *e)
{
    static const char *const words[] = {
#define PL_PAGE_REMARK_TEXT(c, word, text) text,
        PL_PAGE_REMARKS(PL_PAGE_REMARK_TEXT)};
    size_t used = 0;
    for (int k = 0; k < PL_PAGE_REMARK_COUNT; k++)
        if (e->remarked[k] && used < sizeof e->said)
            used += (size_t)snprintf(e->said + used, sizeof e->said - used, "%s%llu %s", used ? "; " : "",
                                     (unsigned long long)e->remarked[k], words[k]);
    if (used > 0 && used < sizeof e->said)
        used += (size_t)snprintf(e->said + used, sizeof e->said - used,
                                 " (of %llu texts; the dataset remarks has which)", (unsigned long long)e->pages);
    if (used >= sizeof e->said) used = sizeof e->said - 1;
    if (used) pl_session_tell(s, (pl_event){.kind = PL_EVENT_WARNING, .text = e->said, .text_bytes = used});
}

/* Once each. */
static void tell_cache(pl_session *s, const encode *e)
{
    char text[PL_PAGE_CACHE_TEXT_BYTES];
    if (e->d->cache && pl_page_cache_tell(e->d->cache, text))
        pl_session_tell(s, (pl_event){.kind = PL_EVENT_WARNING, .text = text, .text_bytes = strlen(text)});
}

/* At the end. */
static void tell_left_out(pl_session *s, const encode *e)
{
    char text[160];
    pl_page_cache_count count = {0};
    if (e->d->cache) pl_page_cache_read_count(e->d->cache, &count);
    if (count.left_out == 0) return;
    const int bytes = snprintf(
        text, sizeof text, "%llu of the pages, packed, have more than %d KiB: the cache of pages keeps none of these",
        (unsigned long long)count.left_out, PL_CACHE_VALUE_BYTES_MAX >> 10);
    pl_session_tell(s, (pl_event){.kind = PL_EVENT_WARNING, .text = text, .text_bytes = (size_t)bytes});
}

static void tell_texts(pl_session *s)
{
    const pl_data *d = s->o.data;
    const pl_event_kind kind = d->has_less ? PL_EVENT_WARNING : PL_EVENT_NOTE;
    pl_session_tell(s, (pl_event){.kind = kind, .text = d->said, .text_bytes = strlen(d->said)});
}

static pl_status run_witness(pl_session *s, encode *e, pl_error *err)
{
    PL_TRY(pl_encode_witness_open(s, s->settings->to, err));
    pl_ring_begin(s->ring, PL_PART_TRAIN, 0, 1);
    e->rows = 1;
    return pl_session_run_program(s, e->program, false, err);
}

static pl_status run_encode(pl_session *s, void *state, pl_error *err)
{
    encode *e = state;
    pl_error ignored;
    if (s->settings->to) return run_witness(s, e, err);
    e->committed_at = pl_run_now();
    tell_texts(s);
    tell_cache(s, e);
    pl_status status = run_stretches(s, e, err);
    e->rows = 0;
    if (status != PL_OK && status != PL_E_STOPPED) return (void)pl_block_file_commit(s->results, &ignored), status;
    PL_TRY(pl_block_file_commit(s->results, err));
    const char *path = s->o.data->sink->path;
    pl_event end = {.kind = PL_EVENT_FINISHED, .loss = NAN, .text = path, .text_bytes = strlen(path)};
    if (status == PL_E_STOPPED) end.kind = PL_EVENT_STOPPED;
    tell_remarks(s, e);
    tell_cache(s, e);
    tell_left_out(s, e);
    pl_session_tell(s, end);
    return status;
}

static const pl_words words = {.item = "text",
                               .items = "texts",
                               .sample = "text",
                               .samples = "texts",
                               .rate = "texts/s",
                               .data = "texts",
                               .step = "block",
                               .part = "batch",
                               .loss = ""};

const pl_job pl_job_encode = {.program = {[INIT] = "init", [ENCODE] = "encode"},
                              .words = &words,
                              .repeated = ENCODE,
                              .count_runs = count_runs,
                              .state_bytes = sizeof(encode),
                              .open = open_encode,
                              .run = run_encode,
                              .store = store};
