/* The row of texts encoded to capsules: its index of texts, made once beside the run, and how its data are opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/size.h"
#include "base/units.h"
#include "config/schema.h"
#include "data/pages/pages_data.h"
#include "models/model.h"
#include "store/folder.h"
#include "systems/capsules.h"
#include "systems/drawn_rows.h"
#include "systems/files.h"
#include "systems/given_weights.h"
#include "systems/results.h"
#include "systems/system.h"

enum { DRAWER_ALIGNMENT = 64 };

/* Words are the numbers of the enums. */
#define SAME(ours, theirs) _Static_assert((int)PL_CONFIG_##ours == (int)PL_##theirs + 1, #ours)
SAME(TEXTS_LINES, TEXTS_LINES);
SAME(TEXTS_JSONL, TEXTS_JSONL);
SAME(TEXTS_CSV, TEXTS_CSV);
SAME(TEXTS_FOLDER, TEXTS_FOLDER);
SAME(TEXTS_GRAMMAR, TEXTS_GRAMMAR);

/* ---- the texts ---- */

/* Capitals are letters, too. */
static bool ends_with(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && strcasecmp(text + a - b, end) == 0;
}

/* What a name says of its file; what is not here has a text a line. remedy: such a file is not read. */
static const struct {
    const char *ending;
    pl_texts_form form;
    const char *remedy;
} endings[] = {
    {".jsonl", PL_TEXTS_JSONL, NULL},
    {".ndjson", PL_TEXTS_JSONL, NULL},
    {".csv", PL_TEXTS_CSV, NULL},
    {".tsv", 0, "has tabs between its columns, where CSV with commas is read; convert it"},
    {".json", 0, "is one JSON document, where one object a line is read; convert it (jq -c '.[]')"},
    {".parquet", 0, "is Parquet, which is not read; convert it to JSON lines or CSV"},
    {".gz", 0, "is compressed; unpack it (gunzip -k)"},
    {".zst", 0, "is compressed; unpack it (unzstd)"},
    {".xz", 0, "is compressed; unpack it (unxz -k)"},
    {".bz2", 0, "is compressed; unpack it (bunzip2 -k)"},
    {".zip", 0, "is compressed; unpack it (unzip)"},
};

static pl_status find_form_by_name(const pl_config *cfg, pl_texts_form *form, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    *form = PL_TEXTS_LINES;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!ends_with(cfg->texts.path, endings[i].ending)) continue;
        *form = endings[i].form;
        if (!endings[i].remedy) break;
        return pl_fail(err, PL_E_CONFIG, "%s: texts.path %.300s %s, or say what else it is with texts.format",
                       pl_config_where(cfg, "texts.path", where, sizeof where), cfg->texts.path, endings[i].remedy);
    }
    return PL_OK;
}

/* What is not there is said when it is read. */
static pl_status find_form(const pl_config *cfg, pl_texts_form *form, pl_error *err)
{
    const pl_config_texts *c = &cfg->texts;
    struct stat st = {0};
    if (c->format != PL_CONFIG_TEXTS_AUTO) return *form = (pl_texts_form)(c->format - 1), PL_OK;
    if (stat(c->path, &st) != 0 && errno == EIO)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", c->path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return *form = PL_TEXTS_FOLDER, PL_OK;
    return find_form_by_name(cfg, form, err);
}

static pl_status check_key(const pl_config *cfg, pl_texts_form form, pl_error *err)
{
    static const char *const what[] = {[PL_TEXTS_LINES] = "lines have",
                                       [PL_TEXTS_FOLDER] = "files of a folder have",
                                       [PL_TEXTS_GRAMMAR] = "texts of a grammar have"};
    char where[PL_CONFIG_WHERE_BYTES];
    if (!cfg->texts.key[0] || form == PL_TEXTS_JSONL || form == PL_TEXTS_CSV) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: texts.key \"%.100s\" is not looked for: %s no keys and no columns; leave it out, or give "
                   "texts.format jsonl or csv",
                   pl_config_where(cfg, "texts.key", where, sizeof where), cfg->texts.key, what[form]);
}

pl_status pl_capsules_texts(const pl_config *cfg, pl_texts_setup *setup, pl_error *err)
{
    const pl_config_texts *c = &cfg->texts;
    const char *key = c->key[0] ? c->key : NULL;
    *setup = (pl_texts_setup){.path = c->path[0] ? c->path : NULL,
                              .key = key,
                              .column = key,
                              .seed = (uint64_t)cfg->encoder.seed,
                              .count = (uint64_t)c->count};
    PL_TRY(find_form(cfg, &setup->form, err));
    return c->path[0] || c->format != PL_CONFIG_TEXTS_AUTO ? check_key(cfg, setup->form, err) : PL_OK;
}

static bool are_of_grammar(const pl_config_texts *c) { return c->format == PL_CONFIG_TEXTS_GRAMMAR; }
/* Counted for a plan, and nobody reads them. */
static bool are_none(const pl_config_texts *c) { return !c->path[0] && !are_of_grammar(c); }

/* Only of who reads them: a model needs no texts. */
static pl_status check_count(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const bool grammar = are_of_grammar(&cfg->texts);
    if (cfg->texts.count > 0 || (cfg->texts.path[0] && !grammar)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: texts.count is 0, all of them, but %s",
                   pl_config_where(cfg, "texts.count", where, sizeof where),
                   grammar ? "a grammar has no end; give a count"
                           : "there are no texts; name their file (texts.path), or give a count");
}

static pl_status check_texts(const pl_config *cfg, pl_error *err)
{
    const pl_config_texts *c = &cfg->texts;
    const pl_config_pipeline *p = &cfg->pipeline;
    char where[PL_CONFIG_WHERE_BYTES];
    double seconds;
    if (are_of_grammar(c) && c->path[0])
        return pl_fail(err, PL_E_CONFIG,
                       "%s: texts.path %.200s is not read, for texts.format grammar makes them; leave one of "
                       "the two out",
                       pl_config_where(cfg, "texts.path", where, sizeof where), c->path);
    if (p->time_limit[0] && pl_parse_seconds(p->time_limit, &seconds) != 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: pipeline.time_limit \"%.40s\" is no time; write it as 90s, 30min, 12h or 1d",
                       pl_config_where(cfg, "pipeline.time_limit", where, sizeof where), p->time_limit);
    const pl_config_key *size = pl_config_find("pipeline.cache_size"); /* kept configs have it, too */
    if (!p->cache_dir[0] && pl_config_is_set(cfg, "pipeline.cache_size") && !pl_config_is_default(cfg, size))
        return pl_fail(err, PL_E_CONFIG, "%s: pipeline.cache_size is of no cache: name its folder (pipeline.cache_dir)",
                       pl_config_where(cfg, "pipeline.cache_size", where, sizeof where));
    if (p->block_texts >= p->batch_size) return PL_OK;
    pl_config_blame(cfg, "pipeline.batch_size", "pipeline.block_texts", where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: pipeline.batch_size %lld is more than pipeline.block_texts %lld; take at most that, or larger "
                   "blocks",
                   where, (long long)p->batch_size, (long long)p->block_texts);
}

/* To plan without texts is one thing, to encode none another. */
static pl_status check_folder(pl_preparation *p, pl_command command, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    (void)command;
    if (!are_none(&p->config->texts)) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: texts.path is empty; name the file or folder of the texts, or take texts.format grammar (plimsoll plan "
        "needs no more than texts.count)",
        pl_config_where(p->config, "texts.path", where, sizeof where));
}

/* ---- the index ---- */

static pl_status index_path(const pl_config *c, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    return pl_path_join(path, PL_FILE_PATH_MAX, out, PL_CAPSULES_INDEX, err);
}

typedef struct telling {
    pl_progress progress;
    void *context;
} telling;

static bool tell(void *context, const char *what, uint64_t done, uint64_t total)
{
    const telling *t = context;
    return !t->progress || t->progress(t->context, what, done, total);
}

/* The parts of a job array begin together: who comes second waits, and finds the index made. */
typedef struct making {
    pl_preparation *p;
    int lock;
} making;

static pl_status lock_folder(void *context, pl_error *err)
{
    making *m = context;
    char index[PL_FILE_PATH_MAX];
    PL_TRY(pl_made_folder(&m->p->made, m->p->out, err));
    PL_TRY(index_path(m->p->config, index, err));
    PL_TRY(pl_made_file(&m->p->made, index, err));
    if (m->lock < 0) m->lock = pl_io_open(m->p->out, O_RDONLY | O_DIRECTORY);
    if (m->lock >= 0 && pl_io_lock(m->lock, LOCK_EX) != 0) { /* a file system without locks: checksums tell */
    }
    return PL_OK;
}

/* What the run writes among the texts would be texts, other ones each time; in the cache it would be its own. */
static pl_status check_apart(const pl_config *c, bool in_folder, const char *out, pl_error *err)
{
    const struct {
        const char *path, *what, *key;
    } own[] = {{out, "the folder of the run", "run.out"},
               {c->pipeline.output, "the file of results", "pipeline.output"},
               {c->quantization.output, "the file of weights", "quantization.output"},
               {c->pipeline.cache_dir, "the cache", "pipeline.cache_dir"},
               {c->run.trace, "the trace", "run.trace"}};
    const struct {
        const char *path, *what;
    } closed[] = {{in_folder ? c->texts.path : "", "the texts"}, {c->pipeline.cache_dir, "the cache"}};
    enum { OWN = sizeof own / sizeof *own, CLOSED = sizeof closed / sizeof *closed };
    char where[PL_CONFIG_WHERE_BYTES];
    for (size_t i = 0; i < OWN * CLOSED; i++) {
        const char *path = own[i % OWN].path, *folder = closed[i / OWN].path;
        if (!path[0] || !folder[0] || path == folder) continue;
        if (!pl_files_are_one(path, folder) && !pl_file_is_below(path, folder)) continue;
        return pl_fail(err, PL_E_CONFIG, "%s: %s, %.300s, lies within %s, %.300s; choose another %s",
                       pl_config_where(c, own[i % OWN].key, where, sizeof where), own[i % OWN].what, path,
                       closed[i / OWN].what, folder, own[i % OWN].key);
    }
    return PL_OK;
}

static pl_status spare_text(const pl_config *c, const char *index, pl_error *err)
{
    const pl_file_use uses[] = {{index, "the index of the texts", PL_FILE_WRITTEN},
                                {c->texts.path, "texts.path", PL_FILE_READ}};
    return pl_files_check(uses, sizeof uses / sizeof *uses, err);
}

/* Before anything is reserved: can pages be drawn with it? */
static pl_status check_font(const pl_config *c, pl_error *err)
{
    pl_font font = {0};
    pl_module draw;
    pl_drawer *drawer = NULL;
    const pl_page_geometry geometry = pl_page_geometry_of((uint32_t)c->encoder.image_size);
    PL_TRY(pl_draw_load("encode", &draw, err));
    pl_status status = pl_font_load(c->texts.font, &font, err);
    void *memory = status == PL_OK ? pl_alloc(1, pl_drawer_bytes(&geometry) + DRAWER_ALIGNMENT) : NULL;
    void *at = (void *)pl_align_up((uintptr_t)memory, DRAWER_ALIGNMENT);
    if (status == PL_OK && !memory) status = pl_fail(err, PL_E_NOMEM, "no memory to try the font");
    if (status == PL_OK)
        status = pl_drawer_open(draw.functions, &geometry, &font, at, pl_drawer_bytes(&geometry), &drawer, err);
    if (status == PL_E_DATA && c->texts.font[0]) pl_fail_prefix(err, status, "%s", c->texts.font);
    pl_drawer_close(drawer);
    pl_free(memory);
    pl_free((void *)(uintptr_t)font.data);
    pl_module_unload(&draw);
    return status;
}

static pl_status prepare(pl_preparation *p, pl_progress progress, void *context, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    telling t = {progress, context};
    making m = {p, -1};
    pl_texts_result result;
    pl_texts_options o = {
        .index_path = path, .progress = tell, .context = &t, .before_writing = lock_folder, .writing = &m};
    PL_TRY(check_count(p->config, err));
    PL_TRY(check_font(p->config, err));
    PL_TRY(pl_capsules_texts(p->config, &o.setup, err));
    PL_TRY(check_apart(p->config, o.setup.form == PL_TEXTS_FOLDER, p->out, err));
    if (o.setup.form == PL_TEXTS_GRAMMAR || are_none(&p->config->texts)) return PL_OK;
    PL_TRY(index_path(p->config, path, err));
    PL_TRY(spare_text(p->config, path, err));
    pl_status status = pl_texts_prepare(&o, &result, err);
    if (m.lock >= 0) close(m.lock);
    return status;
}

/* ---- the data ---- */

/* Where there are none yet, those of a grammar stand in for them: a plan tries how quickly pages are drawn. */
static pl_status open_texts(const pl_config *c, pl_texts *texts, pl_error *err)
{
    pl_texts_setup setup;
    char path[PL_FILE_PATH_MAX];
    *texts = (pl_texts){.fd = -1, .index_fd = -1};
    PL_TRY(index_path(c, path, err));
    PL_TRY(pl_capsules_texts(c, &setup, err));
    if (are_none(&c->texts)) setup.form = PL_TEXTS_GRAMMAR;
    return pl_texts_open(texts, &setup, path, err);
}

/* What is in 8 bits is what flows in f32 between layers. */
static pl_status check_wide(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_key *key = pl_config_find("encoder.precision");
    if (c->encoder.precision == PL_CONFIG_ENCODER_FLOAT32) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: encoder.precision %s, but what is in 8 bits is of a model in f32; take f32",
                   pl_config_where(c, "encoder.precision", where, sizeof where), key->names[c->encoder.precision]);
}

static pl_status read_weights(const pl_config *c, pl_given_weights *given, pl_error *err)
{
    static const pl_real narrowest[] = {[PL_CONFIG_ENCODER_FLOAT32] = PL_REAL_F32,
                                        [PL_CONFIG_ENCODER_BFLOAT16] = PL_REAL_BF16,
                                        [PL_CONFIG_ENCODER_FLOAT16] = PL_REAL_F16};
    *given = (pl_given_weights){0};
    if (!c->encoder.weights[0]) return PL_OK;
    PL_TRY(pl_given_weights_check(c->encoder.weights, NULL, narrowest[c->encoder.precision], given, err));
    PL_TRY(pl_given_weights_match(c, c->encoder.weights, err));
    return given->packed ? check_wide(c, err) : PL_OK;
}

static pl_status open_setup(const pl_config *c, pl_pages_setup *s, pl_share *share, pl_error *err)
{
    pl_given_weights given;
    PL_TRY(check_count(c, err));
    PL_TRY(open_texts(c, &s->texts, err));
    PL_TRY(pl_font_load(c->texts.font, &s->font, err));
    PL_TRY(read_weights(c, &given, err));
    if (c->encoder.weights[0]) s->weights = c->encoder.weights, s->weights_hash = given.hash;
    return pl_share_read(c, "texts.part", c->texts.part, "texts", s->texts.count, share, err);
}

static pl_status say_identity(const pl_config *c, const pl_pages_setup *s, pl_str *text, pl_error *err)
{
    pl_facts made = {0};
    pl_facts_add(&made, "texts", pl_texts_identity(&s->texts));
    pl_facts_add(&made, "font", s->font.hash);
    if (s->weights) pl_facts_add(&made, PL_FACT_WEIGHTS, s->weights_hash);
    return pl_results_say_identity(c, &made, text, err);
}

static void read_numbers(const pl_config *cfg, pl_pages_setup *s)
{
    const pl_config_encoder *c = &cfg->encoder;
    const pl_config_pipeline *p = &cfg->pipeline;
    s->image_size = (uint32_t)c->image_size;
    s->capsules = (uint32_t)c->target_capsules, s->width = (uint32_t)c->width;
    s->checksum = (uint32_t)c->checksum_dim, s->children = (uint32_t)c->children_per_capsule;
    s->entropy = c->attention_entropy && c->pooling_method == PL_CONFIG_POOLING_ATTENTION;
    s->block = (uint32_t)p->block_texts;
    s->at_once = p->batch_size == PL_CONFIG_AUTO ? 0 : (uint32_t)p->batch_size;
    s->threads = (uint32_t)p->num_workers;
    s->form = (pl_block_form)p->storage;
    s->cache = p->cache_dir[0] ? p->cache_dir : NULL;
    s->cache_bytes = p->cache_size;
    s->cache_is_memory = s->cache && pl_disk_is_memory(s->cache);
    (void)pl_parse_seconds(p->time_limit, &s->limit_seconds); /* checked; none leaves 0 */
}

static pl_status open_data(const pl_config *c, pl_pages_setup *s, pl_str *text, pl_data **data, pl_error *err)
{
    pl_share share;
    char path[PL_FILE_PATH_MAX];
    pl_pages_data *d;
    PL_TRY(open_setup(c, s, &share, err));
    PL_TRY(say_identity(c, s, text, err));
    PL_TRY(pl_results_find_path(c, "pipeline.output", c->pipeline.output, c->pipeline.storage, &share, path, err));
    read_numbers(c, s);
    s->first = share.first, s->count = share.count;
    s->path = path, s->text = pl_str_text(text);
    pl_pages_setup taken = *s;
    s->texts.fd = s->texts.index_fd = -1, s->font = (pl_font){0};
    PL_TRY(pl_pages_data_open(&taken, &d, err));
    if (are_none(&c->texts)) {
        d->data.instead = "of a grammar";
        d->data.said[0] = 0;
    }
    *data = &d->data;
    return PL_OK;
}

static pl_status open_results(const pl_config *c, pl_data_use use, const pl_facts *planned, pl_data **data,
                              pl_error *err)
{
    pl_str text = {0};
    pl_pages_setup *s = pl_alloc(1, sizeof *s);
    const uint64_t witness = planned ? pl_facts_value(planned, PL_FACT_WITNESS, UINT64_MAX) : UINT64_MAX;
    if (!s) return pl_fail(err, PL_E_NOMEM, "no memory for the texts");
    s->texts.fd = s->texts.index_fd = -1;
    s->opens_cache = use == PL_DATA_FOR_RUN;
    pl_status status = open_data(c, s, &text, data, err);
    pl_texts_close(&s->texts);
    pl_free((void *)(uintptr_t)s->font.data);
    pl_free(s);
    pl_str_deinit(&text);
    if (status != PL_OK || witness == UINT64_MAX) return status;
    status = pl_pages_data_witness((pl_pages_data *)*data, witness, PL_FACT_WITNESS, err);
    if (status != PL_OK) pl_data_close(*data), *data = NULL;
    return status;
}

/* Of a config only what says which texts there are: a file may have keys of encoding, too. */
static pl_status open_calibration(const pl_config *given, pl_data_use use, pl_data **data, pl_error *err)
{
    PL_TRY(check_wide(given, err));
    pl_config *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the texts");
    *c = *given;
    c->texts.part[0] = c->pipeline.cache_dir[0] = c->pipeline.time_limit[0] = 0;
    c->pipeline.num_workers = 1;
    const pl_status status = open_results(c, use, NULL, data, err);
    pl_free(c);
    if (status == PL_OK) pl_pages_data_calibrate((pl_pages_data *)*data);
    return status;
}

static pl_status open_capsules(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                               pl_data **data, pl_error *err)
{
    return command == PL_COMMAND_QUANTIZE ? open_calibration(c, use, data, err)
                                          : open_results(c, use, planned, data, err);
}

/* It stays: the handle is given up, and so its memory is never. */
static pl_status load_module(const char *further, pl_error *err)
{
    pl_module kept;
    if (further) PL_TRY(pl_page_cache_keep_module(err));
    return pl_draw_load("encode", &kept, err);
}

static const char *further_module(const pl_config *c) { return c->pipeline.cache_dir[0] ? "capsules:cache" : NULL; }

/* Neither texts nor a font are needed, nor what they are drawn with. */
static void close_model(pl_data *d) { pl_free(d); }

static pl_status open_model(const pl_config *c, pl_data **data, pl_error *err)
{
    static const pl_data_kind kind = {.close = close_model};
    pl_given_weights given;
    PL_TRY(read_weights(c, &given, err));
    pl_data *d = *data = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the model");
    d->kind = &kind;
    if (!c->encoder.weights[0]) return PL_OK;
    d->weights = c->encoder.weights;
    pl_facts_add(&d->identity, PL_FACT_WEIGHTS, given.hash);
    return PL_OK;
}

/* A model of files is opened with what draws, but for no texts. */
static void forget_data(pl_config *c)
{
    c->texts.path[0] = c->texts.part[0] = c->pipeline.cache_dir[0] = 0;
    if (c->texts.count == 0) c->texts.count = 1;
}

static const char *const files[] = {PL_CAPSULES_INDEX, NULL};

static const pl_dataset dataset = {.load_module = load_module,
                                   .further_module = further_module,
                                   .rows = &pl_drawn_rows,
                                   .open_model = open_model,
                                   .forget_data = forget_data,
                                   .prepare = prepare,
                                   .files = files,
                                   .check_folder = check_folder,
                                   .open = open_capsules};

static const pl_task task = {.job = {[PL_COMMAND_ENCODE] = &pl_job_encode,
                                     [PL_COMMAND_QUANTIZE] = &pl_job_quantize_encode,
                                     [PL_COMMAND_INFER] = &pl_job_infer},
                             .keeps_config = true,
                             .page = pl_capsules_page_write};

const pl_system pl_system_capsules = {.words = {"text", "texts", "text", "texts", "texts/s", "texts", "block", "batch",
                                                "", "batch_size", "batch_size, image_size, width or layers",
                                                "width or layers"},
                                      .check = check_texts,
                                      .dataset = {&dataset},
                                      .task = &task};
