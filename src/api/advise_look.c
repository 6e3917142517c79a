/* The stages of a command's work and their rates; and what may go wrong with it. Filling and writing are tried: some
 * samples are filled as a thread of the ring would, and a few megabytes written where the results will lie. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/advise.h"
#include "base/alloc.h"
#include "base/locale.h"
#include "base/machine_file.h"
#include "base/size.h"
#include "base/units.h"
#include "config/schema.h"
#include "store/block_sink.h"
#include "store/folder.h"

enum { LINE_BYTES = 64, LOOK_ROWS = 64, LOOK_SLOTS = 16, LOOK_LEAST = 3, LOOK_BYTES = 8 << 20, REMARKS = 8 };
#define LOOK_SECONDS 0.1
#define NEARLY       0.95
#define TAIL         2.0

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void) { return read_clock(CLOCK_MONOTONIC); }

/* ---- filling, tried ---- */

typedef struct look {
    const pl_source *source;
    pl_source_layout layout;
    uint32_t rows;
    char *memory; /* scratch, then the ports */
    uint64_t bytes;
    uint64_t samples, remarked[REMARKS];
    uint64_t timed;          /* samples that the seconds are of */
    double seconds, busy;    /* busy: of a core */
    double each[LOOK_SLOTS]; /* seconds of a sample, slot by slot */
    size_t slots;
} look;

static uint64_t room_of(const pl_source_layout *l)
{
    uint64_t bytes = pl_align_up(l->scratch_bytes, LINE_BYTES);
    for (uint32_t i = 0; i < l->ports; i++) bytes += pl_align_up(l->port[i].bytes, LINE_BYTES);
    return bytes + LINE_BYTES;
}

/* As many samples at once as a little memory holds, one at least. */
static pl_status size_look(look *k, pl_error *err)
{
    k->rows = k->source->batch < LOOK_ROWS ? k->source->batch : LOOK_ROWS;
    if (k->source->at_once && k->source->at_once < k->rows) k->rows = k->source->at_once;
    for (;; k->rows /= 2) {
        PL_TRY(k->source->kind->describe(k->source, k->rows, &k->layout, err));
        k->bytes = room_of(&k->layout);
        if (k->bytes <= LOOK_BYTES || k->rows == 1) break;
    }
    k->memory = pl_alloc(1, k->bytes);
    return k->memory ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to try the %s", k->source->kind->name);
}

/* Of a slot that is counted in smaller items (tokens) as many as its rows. */
static uint64_t samples_of(const pl_slot *slot) { return slot->counted < slot->rows ? slot->counted : slot->rows; }

static void count_remarks(look *k, const pl_slot *slot)
{
    const pl_source_remarks *r = &k->source->kind->remarks;
    k->samples += samples_of(slot);
    for (int bit = 0; r->text && r->text[bit] && bit < REMARKS; bit++)
        for (uint32_t i = 0; i < slot->rows; i++)
            k->remarked[bit] += ((const uint8_t *)slot->port[r->port].at)[i] >> bit & 1;
}

/* Slots from all of the data, evenly; the first warms up. */
static pl_status fill_slots(look *k, pl_error *err)
{
    const uint64_t steps = k->source->steps_per_epoch[PL_PART_TRAIN];
    const uint64_t slots = steps < LOOK_SLOTS ? steps : LOOK_SLOTS;
    char *scratch = (char *)pl_align_up((uintptr_t)k->memory, LINE_BYTES),
         *at = scratch + pl_align_up(k->layout.scratch_bytes, LINE_BYTES);
    pl_slot slot = {.ports = k->layout.ports, .rows = k->rows, .part = PL_PART_TRAIN};
    memcpy(slot.port, k->layout.port, sizeof slot.port);
    for (uint32_t i = 0; i < slot.ports; at += pl_align_up(slot.port[i].bytes, LINE_BYTES), i++) slot.port[i].at = at;
    slot.micro_count = (k->source->batch + k->rows - 1) / k->rows;
    k->source->kind->prepare(k->source, scratch);
    for (uint64_t i = 0; i <= slots && (i <= LOOK_LEAST || k->seconds < LOOK_SECONDS); i++) {
        slot.step = i ? (i - 1) * (steps / slots) : 0;
        slot.first_sample = slot.step * k->source->batch;
        const double before = now(), busy = read_clock(CLOCK_THREAD_CPUTIME_ID);
        PL_TRY(k->source->kind->fill(k->source, scratch, &slot, err));
        if (i == 0) continue;
        const double seconds = now() - before;
        k->seconds += seconds;
        k->busy += read_clock(CLOCK_THREAD_CPUTIME_ID) - busy;
        k->timed += samples_of(&slot);
        if (slot.counted) k->each[k->slots++] = seconds / (double)samples_of(&slot);
        count_remarks(k, &slot);
    }
    return PL_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of a sample: the mean of the slots, where one counts no more than TAIL times the median. */
static double usual_seconds(look *k)
{
    double sum = 0;
    if (k->slots == 0) return 0;
    qsort(k->each, k->slots, sizeof *k->each, by_value);
    const double most = TAIL * k->each[(k->slots - 1) / 2];
    for (size_t i = 0; i < k->slots; i++) sum += fmin(k->each[i], most);
    return sum / (double)k->slots;
}

static pl_status look_at(const pl_source *source, look *k, pl_error *err)
{
    *k = (look){.source = source};
    pl_status status = size_look(k, err);
    if (status == PL_OK) status = fill_slots(k, err);
    pl_free(k->memory);
    k->memory = NULL;
    return status;
}

/* ---- the stages ---- */

static uint64_t disk_row(const pl_plan *p, const char *name)
{
    for (size_t i = 0; i < p->disk_count; i++)
        if (strcmp(p->disk[i].name, name) == 0) return p->disk[i].bytes;
    return 0;
}

uint64_t pl_advice_disk_bytes(const pl_advising *v, const pl_plan *p)
{
    uint64_t bytes = 0;
    if (!v->trains) return disk_row(p, PL_PLAN_DISK_RESULTS);
    for (size_t i = 0; i < p->disk_count; i++) bytes += p->disk[i].bytes;
    bytes -= v->data->file ? disk_row(p, v->data->file) : 0;
    return pl_size_mul(bytes, v->trainings, &bytes) ? UINT64_MAX : bytes;
}

static double slowest(const pl_advice_stage stage[PL_ADVICE_STAGES])
{
    double rate = stage[PL_ADVICE_WORK].per_second;
    for (int i = 0; i < PL_ADVICE_STAGES; i++)
        if (rate >= 0 && stage[i].per_second >= 0 && stage[i].per_second < rate) rate = stage[i].per_second;
    return rate;
}

/* A team waits for its slowest thread: what filling lacks of the cores that the work leaves, all of the team waits for.
 * Results are copied by a thread of the team while the others wait; their disk is waited for if it is the slowest. */
double pl_advice_rate(const pl_advice_stage stage[PL_ADVICE_STAGES], double cores)
{
    const pl_advice_stage *fill = &stage[PL_ADVICE_FILL], *work = &stage[PL_ADVICE_WORK],
                          *write = &stage[PL_ADVICE_WRITE];
    if (work->per_second <= 0) return -1;
    double seconds = 1 / work->per_second;
    if (write->per_second > 0) seconds += write->cores / fmin(cores, 1) / write->per_second;
    if (fill->per_second > 0) {
        const double at_once = fmin(fill->threads, cores), spare = fmin(fmax(cores - work->cores, 0), at_once);
        const double lacking = fill->cores / fill->per_second - spare * seconds; /* seconds of a core */
        seconds += fmax(lacking, 0) / at_once;
    }
    return fmin(1 / seconds, slowest(stage));
}

static pl_status find_fill(pl_advising *v, look *k, pl_error *err)
{
    const pl_source *source = v->data->source;
    const pl_words *words = pl_plan_words_of(v->plan);
    pl_advice_stage *s = &v->a->stage[PL_ADVICE_FILL];
    pl_error why = {0};
    pl_status status = look_at(source, k, &why);
    snprintf(s->name, sizeof s->name, "%s", source->kind->verb ? source->kind->verb : "fill");
    s->threads = pl_source_threads(source);
    s->cores = s->threads;
    s->per_second = -1;
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    const double each = usual_seconds(k);
    if (status != PL_OK || each <= 0) return (void)snprintf(s->basis, sizeof s->basis, "could not be tried"), PL_OK;
    s->per_second = s->threads / each;
    s->cores = s->threads * fmin(1, k->busy / k->seconds);
    snprintf(s->basis, sizeof s->basis, "tried with %" PRIu64 " %s", k->timed,
             k->timed == 1 ? words->sample : words->samples);
    return PL_OK;
}

double pl_advise_work_rate(const pl_advising *v, const pl_compiled *of)
{
    return of->time.seconds > 0 ? (double)v->samples / (of->time.seconds + v->pause_seconds) : -1;
}

static void find_work(pl_advising *v)
{
    pl_advice_stage *s = &v->a->stage[PL_ADVICE_WORK];
    const pl_work *w = v->plan->work;
    snprintf(s->name, sizeof s->name, "%s", pl_command_name(v->command));
    s->threads = (uint32_t)v->plan->team.threads;
    s->cores = fmin(s->threads, v->a->cores); /* its kernels were measured on these */
    s->per_second = pl_advise_work_rate(v, &v->compiled);
    if (s->per_second < 0)
        snprintf(s->basis, sizeof s->basis, "its kernels were not measured");
    else if (!v->trains)
        snprintf(s->basis, sizeof s->basis, "from its kernels' times%s", w->count > 1 ? ", of the largest shape" : "");
    else
        pl_print(s->basis, sizeof s->basis,
                 "from its kernels' times, with %" PRIu64 " evaluation%s and %" PRIu64 " checkpoint%s%s",
                 w->evaluations, pl_plural(w->evaluations), w->checkpoints, pl_plural(w->checkpoints),
                 v->pause_seconds > 0 ? "" : ", these in no time");
}

/* Checkpoints are written between two steps, which wait for them. */
static void find_pause(pl_advising *v)
{
    const double rate = pl_disk_measure(v->out), bytes = (double)disk_row(v->plan, PL_PLAN_DISK_CHECKPOINT);
    v->pause_seconds = rate > 0 ? bytes / rate * (double)v->plan->work->checkpoints : 0;
}

/* The disk is waited for, mostly; the rest of the time a core copies. */
static void find_write(pl_advising *v)
{
    char rate[32];
    pl_advice_stage *s = &v->a->stage[PL_ADVICE_WRITE];
    const double begin = now(), busy = read_clock(CLOCK_THREAD_CPUTIME_ID);
    const double bytes = pl_disk_measure(v->data->sink->path),
                 each = (double)pl_advice_disk_bytes(v, v->plan) / (double)v->a->samples;
    const double seconds = now() - begin;
    snprintf(s->name, sizeof s->name, "write");
    s->threads = 1;
    s->cores = seconds > 0 ? fmin(1, (read_clock(CLOCK_THREAD_CPUTIME_ID) - busy) / seconds) : 0;
    s->per_second = bytes > 0 && each > 0 ? bytes / each : -1;
    if (s->per_second < 0)
        snprintf(s->basis, sizeof s->basis, "its disk could not be tried");
    else
        snprintf(s->basis, sizeof s->basis, "its disk was tried: %s/s",
                 pl_format_bytes((uint64_t)bytes, rate, sizeof rate));
}

/* At most. */
static double find_cache_share(const pl_advice *a)
{
    pl_advice_stage rest[PL_ADVICE_STAGES];
    if (a->bound < 0 || a->stage[PL_ADVICE_FILL].per_second < 0) return -1;
    memcpy(rest, a->stage, sizeof rest);
    rest[PL_ADVICE_FILL].per_second = -1;
    return 1 - a->per_second / pl_advice_rate(rest, a->cores);
}

/* The slowest stage, unless more cores would help. */
static void find_bound(pl_advising *v)
{
    pl_advice *a = v->a;
    const double least = slowest(a->stage), rate = pl_advice_rate(a->stage, a->cores);
    /* of shapes of their own rates */
    double work = v->trains ? v->compiled.time.seconds + v->pause_seconds : v->plan->work->seconds;
    a->per_second = rate > 0 ? rate : -1;
    a->bound = -1;
    for (int i = 0; i < PL_ADVICE_STAGES; i++) {
        const double own = a->stage[i].per_second;
        a->share[i] = rate > 0 && own > 0 ? rate / own : -1;
        if (rate > 0 && own == least) a->bound = i;
    }
    if (a->bound == PL_ADVICE_WORK) work *= least / rate;
    a->seconds = rate <= 0 ? -1 : a->bound == PL_ADVICE_WORK ? work : (double)a->samples / rate;
    a->cache_key = v->data->source->kind->cache_key;
    a->cache_share = find_cache_share(a);
    if (a->bound >= 0 && rate < NEARLY * pl_advice_rate(a->stage, INFINITY)) a->bound = PL_ADVICE_CORES;
}

/* ---- the risks ---- */

static pl_advice_risk *add_risk(pl_advising *v, const char *name, bool is_bad)
{
    pl_advice_risk *r = &v->a->risk[v->a->risks++];
    *r = (pl_advice_risk){.name = name, .is_bad = is_bad};
    return r;
}

static void say_texts(pl_advising *v, const look *k)
{
    const pl_words *words = pl_plan_words_of(v->plan);
    const pl_source_remarks *r = &v->data->source->kind->remarks;
    char text[sizeof v->a->risk->text];
    pl_str s = pl_str_fixed(text, sizeof text);
    bool is_bad = false;
    if (!r->text || k->samples == 0) return;
    pl_str_printf(&s, "of %" PRIu64 " %s that were tried", k->samples,
                  k->samples == 1 ? words->sample : words->samples);
    for (int bit = 0; r->text[bit] && bit < REMARKS; bit++) {
        if (!k->remarked[bit]) continue;
        pl_str_printf(&s, "%s %" PRIu64 " %s", is_bad ? ";" : ",", k->remarked[bit], r->text[bit]);
        is_bad = true;
    }
    pl_str_printf(&s, "%s", is_bad ? "" : " all are as they are meant");
    if (v->data->instead) pl_str_printf(&s, " (%s, for there are none yet)", v->data->instead);
    snprintf(add_risk(v, words->samples, is_bad)->text, sizeof text, "%s", pl_str_text(&s));
}

pl_status pl_advise_stages(pl_advising *v, pl_error *err)
{
    look k;
    PL_TRY(find_fill(v, &k, err));
    if (v->trains) find_pause(v);
    find_work(v);
    if (v->trains)
        v->a->stage[PL_ADVICE_WRITE].per_second = -1;
    else
        find_write(v);
    find_bound(v);
    say_texts(v, &k);
    return PL_OK;
}

/* Where the space would be used up. The file is made whole before the first sample: so it would not even begin. */
static void say_full(pl_advising *v, uint64_t need, pl_str *s)
{
    const pl_words *words = pl_plan_words_of(v->plan);
    char lack[32], count[32], all[32], when[32];
    const double share = (double)v->disk_free / (double)need;
    pl_str_printf(s,
                  ": %s short, so the run would be refused before the first %s (all of the space is reserved then); "
                  "it would be full after %s of %s %s",
                  pl_format_bytes(need - v->disk_free, lack, sizeof lack), words->sample,
                  pl_format_count((uint64_t)(share * (double)v->a->samples), count, sizeof count),
                  pl_format_count(v->a->samples, all, sizeof all), words->samples);
    if (v->a->seconds >= 0) pl_str_printf(s, ", %s", pl_format_seconds(share * v->a->seconds, when, sizeof when));
}

static void bar(pl_advising *v, const char *name, const char *why)
{
    v->is_barred = true;
    snprintf(add_risk(v, name, true)->text, sizeof v->a->risk->text, "%.480s", why);
}

/* May the nearest folder above that is there be written to? What cannot be told, the run finds out. */
static pl_status check_writable(const char *path, pl_error *err)
{
    char at[PL_FILE_PATH_MAX];
    struct stat st;
    snprintf(at, sizeof at, "%s", path);
    do {
        char *slash = strrchr(at, '/');
        snprintf(slash > at ? slash : at, 2, "%s", slash == at ? "/" : slash ? "" : ".");
    } while (stat(at, &st) != 0 && errno == ENOENT && strcmp(at, ".") != 0 && strcmp(at, "/") != 0);
    if (stat(at, &st) == 0 && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else if (access(at, W_OK | X_OK) == 0)
        return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%.300s cannot be made, for %.100s cannot be written to: %s; choose another folder", path, at,
                   strerror(errno));
}

/* What is filled is kept there at the most: on a disk that has as much, or it is full before. */
static void say_cache(pl_advising *v)
{
    const char *key = v->data->source->kind->cache_key;
    const char *path = key ? pl_config_value_of(v->config, pl_config_find(key)) : NULL;
    char text[sizeof v->a->risk->text], inside[PL_FILE_PATH_MAX], need[32], have[32];
    uint64_t available;
    pl_error why = {0};
    if (!path || !path[0] || v->data->file_bytes == 0) return;
    if (snprintf(inside, sizeof inside, "%s/file", path) < (int)sizeof inside &&
        check_writable(inside, &why) != PL_OK) {
        bar(v, "cache", why.text);
        return;
    }
    if (pl_disk_free(path, &available, &why) != PL_OK) return;
    if ((double)v->data->file_bytes <= PL_ADVICE_ROOM * (double)available) return;
    snprintf(text, sizeof text, "%.300s may become %s large, and %s are free there; make it smaller, or leave it out",
             path, pl_format_bytes(v->data->file_bytes, need, sizeof need),
             pl_format_bytes(available, have, sizeof have));
    bar(v, "cache", text);
}

static pl_status find_disk(pl_advising *v, pl_error *err)
{
    const pl_block_sink *sink = v->data->sink;
    pl_block_found found = {.is_new = true};
    pl_error why = {0};
    pl_status status = pl_block_file_look(sink->path, sink->form, sink->layout, &found, &why);
    if (status == PL_OK && found.is_new) status = check_writable(sink->path, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK && status != PL_E_STORAGE) bar(v, "results", why.text);
    if (status == PL_E_STORAGE && check_writable(sink->path, &why) != PL_OK) bar(v, "results", why.text);
    v->disk_is_there = status == PL_OK && !found.is_new;
    v->left = v->disk_is_there && found.blocks ? 1 - (double)found.done / (double)found.blocks : 1;
    v->a->done = (uint64_t)round((1 - v->left) * (double)v->a->samples);
    if (v->a->seconds >= 0) v->a->seconds *= v->left;
    if (pl_disk_free(sink->path, &v->disk_free, &why) != PL_OK) v->disk_free = UINT64_MAX;
    return PL_OK;
}

bool pl_advice_lacks_disk(const pl_advising *v, uint64_t bytes)
{
    return !v->disk_is_there && v->disk_free != UINT64_MAX && (double)bytes > PL_ADVICE_ROOM * (double)v->disk_free;
}

/* What a training keeps grows while it runs: the disk is asked again before each checkpoint. */
static void say_run_disk(pl_advising *v)
{
    char need[32], have[32], who[48] = "the run keeps";
    pl_error why = {0};
    const uint64_t bytes = pl_advice_disk_bytes(v, v->plan);
    if (pl_disk_free(v->out, &v->disk_free, &why) != PL_OK) v->disk_free = UINT64_MAX;
    pl_advice_risk *r = add_risk(v, "disk", pl_advice_lacks_disk(v, bytes));
    pl_format_bytes(bytes, need, sizeof need);
    if (v->trainings > 1) snprintf(who, sizeof who, "the %" PRIu32 " trainings keep", v->trainings);
    if (v->disk_free == UINT64_MAX)
        snprintf(r->text, sizeof r->text, "%s %s; how much is free is not known", who, need);
    else
        snprintf(r->text, sizeof r->text, "%s at most %s, including the checkpoint being written; %s are free%s", who,
                 need, pl_format_bytes(v->disk_free, have, sizeof have),
                 r->is_bad ? ": keep fewer checkpoints, or choose another folder" : "");
}

static pl_status say_disk(pl_advising *v, pl_error *err)
{
    char need[32], have[32], done[32], all[32], text[sizeof v->a->risk->text];
    const uint64_t bytes = pl_advice_disk_bytes(v, v->plan);
    pl_str s = pl_str_fixed(text, sizeof text);
    PL_TRY(find_disk(v, err));
    pl_str_printf(&s, "the results need %s", pl_format_bytes(bytes, need, sizeof need));
    if (v->disk_is_there)
        pl_str_printf(&s, ", which are reserved already; %s of %s %s are done",
                      pl_format_count(v->a->done, done, sizeof done), pl_format_count(v->a->samples, all, sizeof all),
                      pl_plan_words_of(v->plan)->samples);
    else if (v->disk_free == UINT64_MAX)
        pl_str_append(&s, "; how much is free is not known");
    else
        pl_str_printf(&s, ", %s are free", pl_format_bytes(v->disk_free, have, sizeof have));
    if (!v->disk_is_there && bytes > v->disk_free) say_full(v, bytes, &s);
    snprintf(add_risk(v, "disk", pl_advice_lacks_disk(v, bytes))->text, sizeof text, "%s", pl_str_text(&s));
    return PL_OK;
}

/* What the machine and its control group have for the process, which takes the place of this one. */
static void say_headroom(const pl_advising *v, const char *charged, pl_advice_risk *r)
{
    const pl_machine *m = &v->machine;
    char have[32], all[32];
    pl_str s = pl_str_fixed(r->text, sizeof r->text);
    pl_str_printf(&s, "%s charged, and nothing is asked for later; %s of %s are free on %s", charged,
                  pl_format_bytes(m->available_bytes + m->own_bytes, have, sizeof have),
                  pl_format_bytes(m->ram_bytes, all, sizeof all), pl_machine_words());
    if (m->cgroup_path[0] && m->cgroup_limit_bytes != PL_MACHINE_UNLIMITED)
        pl_str_printf(&s, ", %s of the %s of its control group",
                      pl_format_bytes(m->cgroup_room_bytes + m->own_bytes, have, sizeof have),
                      pl_format_bytes(m->cgroup_limit_bytes, all, sizeof all));
}

static pl_status say_memory(pl_advising *v, pl_error *err)
{
    char charged[32];
    pl_error why = {0};
    const uint64_t bytes = pl_plan_charged_bytes(v->plan);
    const pl_status status = pl_plan_check_machine(v->plan, &why);
    const bool fits = status == PL_OK;
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    pl_advice_risk *r = add_risk(v, "memory", !fits);
    if (fits)
        say_headroom(v, pl_format_bytes(bytes, charged, sizeof charged), r);
    else
        snprintf(r->text, sizeof r->text, "%.480s", why.text);
    return PL_OK;
}

/* The sentence of how far it comes stands with the work. */
static void say_limit(pl_advising *v)
{
    const pl_work *w = v->plan->work;
    if (w->limit_seconds <= 0) return;
    const bool is_bad = v->a->seconds < 0 || v->a->seconds > w->limit_seconds;
    pl_advice_risk *r = add_risk(v, "time limit", is_bad);
    if (!is_bad)
        snprintf(r->text, sizeof r->text, "it is enough for all");
    else
        snprintf(r->text, sizeof r->text,
                 "several runs: each goes on by the same command, and needs the file of results as the one before left "
                 "it, the same data and the same keys that decide the results; what is at once, threads and the budget "
                 "may differ");
}

pl_status pl_advise_risks(pl_advising *v, pl_error *err)
{
    if (v->trains)
        say_run_disk(v);
    else
        PL_TRY(say_disk(v, err));
    say_cache(v);
    PL_TRY(say_memory(v, err));
    say_limit(v);
    return PL_OK;
}
