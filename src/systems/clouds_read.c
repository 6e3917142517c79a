#include "systems/clouds.h"

#include "base/alloc.h"

/* "/…" stands for itself, as with every path. */
static pl_status find_file(const pl_config *c, pl_pool *texts, const char *name, const char **path, pl_error *err)
{
    char whole[PL_FILE_PATH_MAX];
    *path = name;
    if (name[0] == '/') return PL_OK;
    PL_TRY(pl_config_require(c, "data_directory", "this command", err));
    PL_TRY(pl_path_join(whole, sizeof whole, c->clouds.data_directory, name, err));
    *path = pl_pool_strdup(texts, whole);
    return *path ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the paths of the flights");
}

static pl_status read_flight(const pl_config *c, int64_t i, pl_clouds_reading *r, pl_error *err)
{
    const pl_config_flight *from = &c->clouds.flights.item[i];
    pl_flight_files *to = &r->flight[i];
    to->name = from->name;
    PL_TRY(find_file(c, r->texts, from->camera, &to->camera, err));
    PL_TRY(find_file(c, r->texts, from->lidar, &to->lidar, err));
    return find_file(c, r->texts, from->navigation, &to->navigation, err);
}

static const pl_label_filter *filter_of(const pl_config *c)
{
    return pl_label_filter_find(c->clouds.filter_type == PL_CONFIG_FILTER_PRACTICAL ? "practical" : "basic");
}

static pl_clouds_options options_of(const pl_config *c, const pl_clouds_reading *r)
{
    return (pl_clouds_options){.flight = r->flight,
                               .flights = (uint32_t)c->clouds.flights.count,
                               .swath_begin = (uint32_t)c->clouds.swath_slice.item[0],
                               .swath_end = (uint32_t)c->clouds.swath_slice.item[1],
                               .clip_limit = c->clouds.clahe_clip_limit,
                               .flat_field = c->clouds.flat_field_correction,
                               .filter = filter_of(c),
                               .window = (uint32_t)c->clouds.temporal_frames,
                               .form = c->clouds.frame_form == PL_CONFIG_FRAMES_F16 ? PL_FRAMES_F16 : PL_FRAMES_U8,
                               .file_max = (uint64_t)c->clouds.frame_bytes,
                               .path = r->path,
                               .in_child = true};
}

pl_status pl_clouds_need_flights(pl_error *err)
{
    return pl_fail(
        err, PL_E_CONFIG,
        "this command needs flights: name them and their files in the config (flights: [{name: …, "
        "iFileName: …, cFileName: …, nFileName: …}]); plimsoll plan needs no more than count and frame_width");
}

static pl_status read_all(const pl_config *c, pl_clouds_reading *r, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(pl_path_join(r->path, sizeof r->path, c->clouds.cache[0] ? c->clouds.cache : out, "frames.bin", err));
    if (c->clouds.flights.count == 0) return pl_clouds_need_flights(err);
    r->texts = pl_pool_create();
    if (!r->texts) return pl_fail(err, PL_E_NOMEM, "no memory for the paths of the flights");
    for (int64_t i = 0; i < c->clouds.flights.count; i++) PL_TRY(read_flight(c, i, r, err));
    r->options = options_of(c, r);
    return PL_OK;
}

pl_status pl_clouds_read(const pl_config *c, pl_clouds_reading **out, pl_error *err)
{
    pl_clouds_reading *r = *out = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "no memory for the flights");
    const pl_status status = read_all(c, r, err);
    if (status != PL_OK) pl_clouds_reading_destroy(r), *out = NULL;
    return status;
}

void pl_clouds_reading_destroy(pl_clouds_reading *r)
{
    if (!r) return;
    if (r->texts) pl_pool_destroy(r->texts);
    pl_free(r);
}
