/* What becomes of what was found, under the rules. Nothing is deleted for its age; a checkpoint goes only where enough
 * newer ones are sound. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "data/pages/cache.h"
#include "storage/storage.h"
#include "store/block_file.h"
#include "store/checkpoint.h"

/* ---- checkpoints ---- */

enum { POINTER_BYTES = 256 };

/* "step-…", and at most one newline behind it. */
static bool parse_pointer(char *text, size_t bytes, uint64_t *step)
{
    if (bytes && text[bytes - 1] == '\n') text[--bytes] = 0;
    return strlen(text) == bytes && pl_step_name_parse(text, step) == 0;
}

/* The step that the run's `latest` or `best` names; NO_STEP where there is none. One that cannot be read is no reason
 * to delete what it may name. */
#define NO_STEP UINT64_MAX
static pl_status read_pointer(const pl_storage *s, size_t run, const char *pointer, uint64_t *step, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX], *text;
    struct stat st;
    size_t bytes;
    *step = NO_STEP;
    PL_TRY(pl_storage_path(s, s->run[run].path, folder, err));
    PL_TRY(pl_path_join(path, sizeof path, folder, "checkpoints", err));
    PL_TRY(pl_path_join(folder, sizeof folder, path, pointer, err));
    if (lstat(folder, &st) != 0 && errno == ENOENT) return PL_OK;
    PL_TRY(pl_file_read_all(folder, POINTER_BYTES, &text, &bytes, err));
    const bool is_step = parse_pointer(text, bytes, step);
    pl_free(text);
    if (is_step) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: names no checkpoint, so it is not known which one must stay; plimsoll train --resume "
                   "makes it anew",
                   folder);
}

/* The same, and that step is one of the list. */
static pl_status find_pointer(const pl_storage *s, size_t run, const char *pointer, pl_storage_entry *const *step,
                              size_t count, uint64_t *named, pl_error *err)
{
    PL_TRY(read_pointer(s, run, pointer, named, err));
    for (size_t i = 0; i < count; i++)
        if (step[i]->step == *named) return PL_OK;
    if (*named == NO_STEP) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s/%s%scheckpoints/%s: names step %" PRIu64 ", of which no checkpoint is there that can be read, "
                   "so it is not known which one must stay",
                   s->root, s->run[run].path, s->run[run].path[0] ? "/" : "", pointer, *named);
}

static int newest_first(const void *a, const void *b)
{
    const pl_storage_entry *x = *(pl_storage_entry *const *)a, *y = *(pl_storage_entry *const *)b;
    return x->step < y->step ? 1 : -(x->step > y->step);
}

/* The best step as a checkpoint's run.json has it: train --resume makes `best` by that. */
static uint64_t best_of(const pl_record *r) { return r && r->has_best ? r->best_step : NO_STEP; }

/* Its files against their checksums. Nothing resumes from weights alone: without its state it does not count. */
static pl_status check_sound(const pl_storage *s, pl_storage_entry *e, bool *is_sound, uint64_t *best, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_error why = {0};
    pl_saved saved;
    PL_TRY(pl_storage_path(s, e->item.path, path, err));
    pl_status status = pl_saved_open(path, PL_SAVED_WHOLE, &saved, &why);
    if (status == PL_OK && *best == NO_STEP) *best = best_of(saved.record);
    pl_saved_deinit(&saved);
    if (status == PL_OK) status = pl_storage_check_step(path, &why);
    *is_sound = e->is_sound = status == PL_OK;
    if (status == PL_OK) return PL_OK;
    if (status != PL_E_DATA) return pl_fail(err, status, "%s", why.text);
    return pl_storage_text(s, &e->item.why, err, "is not counted: %.300s", why.text);
}

/* Of the latest, from which a run goes on though newer ones may be there. */
static pl_status read_best(const pl_storage *s, const pl_storage_entry *e, uint64_t *best, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_saved saved;
    PL_TRY(pl_storage_path(s, e->item.path, path, err));
    pl_status status = pl_saved_open(path, PL_SAVED_RECORD, &saved, err);
    if (status == PL_OK) *best = best_of(saved.record);
    pl_saved_deinit(&saved);
    return status;
}

/* From the newest on; a step that a run.json calls the best is no newer than that run.json is. */
static pl_status thin_out(const pl_storage *s, size_t run, pl_storage_entry **step, size_t count, pl_error *err)
{
    uint64_t best, latest, kept = 0, newest_best = NO_STEP, latest_best = NO_STEP;
    PL_TRY(find_pointer(s, run, "best", step, count, &best, err));
    PL_TRY(find_pointer(s, run, "latest", step, count, &latest, err));
    s->run[run].best = best;
    s->run[run].latest = latest;
    for (size_t i = 0; i < count; i++) {
        pl_storage_item *m = &step[i]->item;
        const uint64_t is = step[i]->step;
        bool is_sound = true;
        if (is == latest) PL_TRY(read_best(s, step[i], &latest_best, err));
        if (kept < s->rules.keep_last) {
            PL_TRY(check_sound(s, step[i], &is_sound, &newest_best, err));
            kept += is_sound;
            if (is_sound) m->why = "one of the last";
        } else if (is == best || is == newest_best || is == latest_best) {
            m->why = "the best";
        } else if (is == latest) {
            m->why = "the latest";
        } else {
            m->fate = PL_STORAGE_GOES;
            PL_TRY(pl_storage_text(s, &m->why, err, "older than the last %" PRIu64 " that are intact",
                                   s->rules.keep_last));
        }
    }
    return PL_OK;
}

static pl_status thin_out_run(const pl_storage *s, size_t run, pl_storage_entry **step, pl_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < s->entries; i++)
        if (s->entry[i].run == run && s->entry[i].item.kind == PL_STORAGE_CHECKPOINT &&
            s->entry[i].item.fate == PL_STORAGE_STAYS)
            step[count++] = &s->entry[i];
    if (count == 0) return PL_OK;
    for (size_t i = 0; i < count && s->run[run].has_links; i++)
        step[i]->item.why = "stays: among the checkpoints of this run are links, or other things that are no files";
    if (s->run[run].has_links) return PL_OK;
    qsort(step, count, sizeof *step, newest_first);
    return thin_out(s, run, step, count, err);
}

static pl_status thin_out_all(const pl_storage *s, pl_error *err)
{
    pl_status status = PL_OK;
    if (!s->rules.keep_last || !s->entries) return PL_OK;
    pl_storage_entry **step = pl_alloc(s->entries, sizeof *step);
    if (!step) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its checkpoints", s->root);
    for (size_t run = 0; run < s->runs && status == PL_OK; run++) status = thin_out_run(s, run, step, err);
    pl_free(step);
    return status;
}

/* ---- once more, under the lock ---- */

static pl_status check_stays(const pl_storage *s, const pl_storage_entry *e, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    PL_TRY(pl_storage_path(s, e->item.path, path, err));
    const bool is_there = lstat(path, &st) == 0;
    if (!is_there && errno != ENOENT)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    if (is_there && st.st_dev == e->device && st.st_ino == e->inode) {
        const pl_status status = e->is_sound ? pl_storage_check_step(path, err) : PL_OK;
        if (status != PL_E_DATA) return status;
    }
    return pl_fail(err, PL_E_STOPPED, "%s: was to stay, and was changed since it was looked at: none older goes", path);
}

pl_status pl_storage_check_kept(const pl_storage *s, size_t run, pl_error *err)
{
    uint64_t best, latest;
    bool thins = false;
    for (size_t i = 0; i < s->entries; i++)
        thins |=
            s->entry[i].run == run && s->entry[i].shape == PL_STORAGE_STEP && s->entry[i].item.fate == PL_STORAGE_GOES;
    if (!thins) return PL_OK;
    PL_TRY(read_pointer(s, run, "best", &best, err));
    PL_TRY(read_pointer(s, run, "latest", &latest, err));
    if (best != s->run[run].best || latest != s->run[run].latest)
        return pl_fail(err, PL_E_STOPPED, "%s/%s: its best or latest has changed since it was looked at", s->root,
                       s->run[run].path);
    for (size_t i = 0; i < s->entries; i++)
        if (s->entry[i].run == run && s->entry[i].shape == PL_STORAGE_STEP && s->entry[i].item.fate == PL_STORAGE_STAYS)
            PL_TRY(check_stays(s, &s->entry[i], err));
    return PL_OK;
}

/* ---- caches ---- */

static pl_status bound_cache(const pl_storage *s, pl_storage_item *m, pl_error *err)
{
    char bound[32];
    if (m->bytes <= s->rules.cache_bytes) return PL_OK;
    if (s->rules.cache_bytes == 0) {
        m->fate = PL_STORAGE_GOES;
        m->why = "a cache; pages are drawn again";
        return PL_OK;
    }
    m->fate = PL_STORAGE_SHRINKS;
    m->gain = m->bytes - s->rules.cache_bytes;
    return pl_storage_text(s, &m->why, err, "has more than %s: what was not used for longest goes",
                           pl_format_bytes(s->rules.cache_bytes, bound, sizeof bound));
}

pl_status pl_storage_check_rules(const pl_storage_rules *r, pl_error *err)
{
    if (!r->bounds_caches || r->cache_bytes == 0 || r->cache_bytes >= PL_CACHE_FILE_BYTES_MIN) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "`cache-size`: a cache has %d bytes at least; give more, or 0 to remove caches",
                   (int)PL_CACHE_FILE_BYTES_MIN);
}

/* ---- parts ---- */

/* "NAME-I-of-N.ext" as the name of all of it, "NAME.ext", and I and N (pl_path_of_part). */
static bool parse_part(const char *name, char whole[PL_FILE_PATH_MAX], unsigned *part, unsigned *parts)
{
    const char *dot = strrchr(name, '.'), *end = dot && dot != name ? dot : name + strlen(name), *at = NULL;
    int used = 0;
    for (const char *c = name; c + 4 < end; c++)
        if (*c == '-' && sscanf(c, "-%u-of-%u%n", part, parts, &used) == 2 && c + used == end) at = c;
    if (!at || at == name || sscanf(at, "-%u-of-%u", part, parts) != 2) return false;
    snprintf(whole, PL_FILE_PATH_MAX, "%.*s%s", (int)(at - name), name, end);
    return *part >= 1 && *part <= *parts;
}

/* datasets/SUB/NAME.ext of temp/SUB/NAME-I-of-N.ext. */
static bool find_target(const char *path, char target[PL_FILE_PATH_MAX], unsigned *part, unsigned *parts)
{
    char whole[PL_FILE_PATH_MAX];
    const size_t temp = strlen(PL_STORAGE_TEMP);
    const char *slash = strrchr(path, '/');
    if (strncmp(path, PL_STORAGE_TEMP "/", temp + 1) != 0 || !parse_part(slash + 1, whole, part, parts)) return false;
    int n = snprintf(target, PL_FILE_PATH_MAX, PL_STORAGE_DATASETS "%.*s%s", (int)(slash + 1 - path - (ptrdiff_t)temp),
                     path + temp, whole);
    return n > 0 && n < PL_FILE_PATH_MAX;
}

static pl_status is_hdf5(const pl_storage *s, const pl_storage_entry *e, bool *is, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_block_reader *b = NULL;
    PL_TRY(pl_storage_path(s, e->item.path, path, err));
    PL_TRY(pl_block_reader_open(path, false, &b, err));
    *is = pl_block_reader_form(b) == PL_BLOCK_HDF5;
    pl_block_reader_close(b);
    return PL_OK;
}

/* Of the parts of a target that are in the list: how many, and whether each is finished. */
static unsigned count_parts(const pl_storage *s, const char *wanted, unsigned of, bool *all_finished)
{
    unsigned found = 0, part, parts;
    char target[PL_FILE_PATH_MAX];
    *all_finished = true;
    for (size_t i = 0; i < s->entries; i++) {
        const pl_storage_item *m = &s->entry[i].item;
        if (m->kind != PL_STORAGE_PART || !find_target(m->path, target, &part, &parts) || parts != of ||
            strcmp(target, wanted) != 0)
            continue;
        found++;
        *all_finished &= s->entry[i].is_finished && !s->entry[i].has_others;
    }
    return found;
}

static pl_status is_there(const pl_storage *s, const char *target, bool *is, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    PL_TRY(pl_storage_path(s, target, path, err));
    *is = lstat(path, &st) == 0;
    if (*is || errno == ENOENT || errno == ENOTDIR) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
}

static pl_status set_of(pl_storage *s, const char *target, const char *first, size_t *set, pl_error *err)
{
    for (*set = 0; *set < s->sets; ++*set)
        if (strcmp(s->set[*set].target, target) == 0) return PL_OK;
    if (pl_grow(&s->set, &s->set_room, s->sets, sizeof *s->set) != 0)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its parts", s->root);
    s->set[s->sets] = (pl_storage_set){.first = first};
    PL_TRY(pl_storage_text(s, &s->set[s->sets].target, err, "%s", target));
    s->sets++;
    return PL_OK;
}

static pl_status decide_part(pl_storage *s, pl_storage_entry *e, pl_error *err)
{
    char target[PL_FILE_PATH_MAX];
    unsigned part, parts;
    bool finished, is_made, hdf5;
    pl_storage_item *m = &e->item;
    if (e->has_others || !find_target(m->path, target, &part, &parts)) return PL_OK;
    PL_TRY(is_there(s, target, &is_made, err)); /* then some of the parts may be gone */
    const unsigned found = count_parts(s, target, parts, &finished);
    if (!is_made && found < parts)
        return pl_storage_text(s, &m->why, err, "part %u of %u, of which %u are here", part, parts, found);
    if (!is_made && !finished) return PL_OK;
    PL_TRY(is_hdf5(s, e, &hdf5, err));
    if (hdf5) {
        m->why = "in HDF5 form, which results join shows as one without a copy: parts stay";
        return PL_OK;
    }
    if (!s->rules.consolidates)
        return pl_storage_text(s, &m->why, err, "%s %s",
                               is_made ? "--consolidate removes what is whole in" : "--consolidate makes it part of",
                               target);
    PL_TRY(set_of(s, target, m->path, &e->set, err));
    m->fate = PL_STORAGE_JOINS;
    return pl_storage_text(s, &m->why, err, "joined into %s and compared with it byte by byte", target);
}

/* What a join that was killed has made so far is gone on with. */
static pl_status spare_half_joined(pl_storage *s, pl_error *err)
{
    char whole[PL_FILE_PATH_MAX], temporary[PL_FILE_TEMPORARY_MAX], path[PL_FILE_PATH_MAX];
    for (size_t set = 0; set < s->sets; set++) {
        PL_TRY(pl_storage_path(s, s->set[set].target, whole, err));
        pl_file_temporary(whole, "", temporary);
        for (size_t i = 0; i < s->entries; i++) {
            pl_storage_item *m = &s->entry[i].item;
            PL_TRY(pl_storage_path(s, m->path, path, err));
            if (m->fate != PL_STORAGE_GOES || strcmp(path, temporary) != 0) continue;
            m->fate = PL_STORAGE_STAYS;
            m->why = "parts that are half joined: gone on with";
        }
    }
    return PL_OK;
}

pl_status pl_storage_decide(pl_storage *s, pl_error *err)
{
    PL_TRY(thin_out_all(s, err));
    for (size_t i = 0; i < s->entries; i++) {
        pl_storage_entry *e = &s->entry[i];
        if (e->item.kind == PL_STORAGE_CACHE && s->rules.bounds_caches) PL_TRY(bound_cache(s, &e->item, err));
        if (e->item.kind == PL_STORAGE_PART) PL_TRY(decide_part(s, e, err));
    }
    PL_TRY(spare_half_joined(s, err));
    for (size_t i = 0; i < s->entries; i++) {
        pl_storage_item *m = &s->entry[i].item;
        if (m->fate == PL_STORAGE_GOES || m->fate == PL_STORAGE_JOINS) m->gain = m->bytes;
    }
    return PL_OK;
}
