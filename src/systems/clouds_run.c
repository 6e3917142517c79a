/* The frame file of a run: made once from the flights, in the run's folder or in one that runs share, and reused by
 * every stage. A writer keeps others out. */
#include <string.h>
#include <unistd.h>

#include "systems/clouds.h"

typedef struct preparation {
    pl_preparation *p;
    pl_clouds_reading *reading;
    int cache_lock;
    pl_progress progress;
    void *context;
} preparation;

/* A file of that name that was not made here belongs to somebody. */
static pl_status spare_foreign(const char *path, pl_error *err)
{
    char magic[8] = {0};
    int fd;
    uint64_t bytes;
    if (access(path, F_OK) != 0) return PL_OK;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    const pl_status status = bytes < sizeof magic ? PL_OK : pl_file_read_at(fd, path, 0, magic, sizeof magic, err);
    close(fd);
    if (status != PL_OK || bytes < sizeof magic || memcmp(magic, PL_FRAMES_MAGIC, sizeof magic) == 0) return status;
    return pl_fail(err, PL_E_STORAGE,
                   "%.350s: exists but is no frame file, and this command would overwrite it; move it away, or choose "
                   "another folder with cache or `run.out`",
                   path);
}

static pl_status before_writing(void *context, pl_error *err)
{
    preparation *p = context;
    const char *cache = p->p->config->clouds.cache;
    PL_TRY(cache[0] ? pl_preparation_lock_cache(p->p, cache, &p->cache_lock, err) : pl_preparation_lock(p->p, err));
    PL_TRY(spare_foreign(p->reading->path, err));
    return pl_made_file(&p->p->made, p->reading->path, err);
}

static bool tell(void *context, const char *flight, uint64_t done, uint64_t all)
{
    const preparation *p = context;
    (void)flight;
    return !p->progress || p->progress(p->context, "preparing frames", done, all);
}

/* The file that is made here must not be one of its own sources. */
static pl_status spare_flights(const pl_clouds_reading *r, pl_error *err)
{
    for (uint32_t i = 0; i < r->options.flights; i++) {
        const pl_flight_files *f = &r->flight[i];
        const pl_file_use uses[] = {{r->path, "the frame file", PL_FILE_WRITTEN},
                                    {f->camera, "iFileName", PL_FILE_READ},
                                    {f->lidar, "cFileName", PL_FILE_READ},
                                    {f->navigation, "nFileName", PL_FILE_READ}};
        PL_TRY(pl_files_check(uses, sizeof uses / sizeof *uses, err));
    }
    return PL_OK;
}

static pl_status prepare(preparation *p, pl_error *err)
{
    pl_clouds_options *o = &p->reading->options;
    pl_clouds_result result;
    PL_TRY(spare_flights(p->reading, err));
    o->progress = tell, o->context = p;
    o->before_writing = before_writing, o->writing = p;
    o->identity = pl_preparation_saved(p->p, "frames");
    if (p->p->saved.record) o->run = p->p->out;
    return pl_clouds_prepare(o, &result, err);
}

pl_status pl_clouds_prepare_run(pl_preparation *of, pl_progress progress, void *context, pl_error *err)
{
    preparation p = {.p = of, .cache_lock = -1, .progress = progress, .context = context};
    if (of->config->clouds.flights.count == 0) return PL_OK; /* counted, for a plan */
    PL_TRY(pl_clouds_read(of->config, &p.reading, err));
    const pl_status status = prepare(&p, err);
    if (p.cache_lock >= 0) close(p.cache_lock);
    pl_clouds_reading_destroy(p.reading);
    return status;
}
