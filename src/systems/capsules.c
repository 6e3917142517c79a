/* The row of texts encoded to capsules: its index of texts, made once for the run, and how its data are opened. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/size.h"
#include "base/units.h"
#include "config/schema.h"
#include "data/pages/pages_data.h"
#include "data/pages/texts_index.h"
#include "models/model.h"
#include "store/folder.h"
#include "systems/capsules.h"
#include "systems/capsules_trained.h"
#include "systems/drawn_rows.h"
#include "systems/files.h"
#include "systems/given_weights.h"
#include "systems/input.h"
#include "systems/results.h"
#include "systems/system.h"
#include "texts/form.h"

enum { DRAWER_ALIGNMENT = 64 };

/* The config's words have the numbers of the enums. */
#define SAME(ours, theirs) _Static_assert((int)PL_CONFIG_##ours == (int)PL_##theirs + 1, #ours)
SAME(TEXTS_LINES, TEXTS_LINES);
SAME(TEXTS_JSONL, TEXTS_JSONL);
SAME(TEXTS_CSV, TEXTS_CSV);
SAME(TEXTS_FOLDER, TEXTS_FOLDER);
SAME(TEXTS_GRAMMAR, TEXTS_GRAMMAR);
SAME(TEXTS_SQUAD, TEXTS_SQUAD);
SAME(TEXTS_PLAIN, TEXTS_WHOLE);

/* ---- the texts ---- */

/* By its name; a name that says nothing means one text per line. */
static pl_status find_form_by_name(const pl_config *cfg, pl_texts_form *form, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_text_ending *named = pl_text_ending_of(cfg->texts.path);
    *form = named ? named->form : PL_TEXTS_LINES;
    if (!named || !named->is) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: texts.path %.300s %s; %s%s, or say what else it is with texts.format",
                   pl_config_where(cfg, "texts.path", where, sizeof where), cfg->texts.path, named->is,
                   named->form == PL_TEXTS_SQUAD ? "if it is SQuAD's, say texts.format squad; else " : "",
                   named->remedy);
}

/* A missing file is reported when it is read. */
static pl_status find_form(const pl_config *cfg, pl_texts_form *form, pl_error *err)
{
    const pl_config_texts *c = &cfg->texts;
    struct stat st = {0};
    if (c->format != PL_CONFIG_TEXTS_AUTO) return *form = (pl_texts_form)(c->format - 1), PL_OK;
    if (stat(c->path, &st) != 0 && errno == EIO)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", c->path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return *form = PL_TEXTS_FOLDER, PL_OK;
    const bool is_name = !strchr(c->path, '\n') && (st.st_mode || !strpbrk(c->path, "*?[@"));
    if (!is_name) return *form = PL_TEXTS_AUTO_LINES, PL_OK;
    return find_form_by_name(cfg, form, err);
}

static pl_status check_key(const pl_config *cfg, pl_texts_form form, pl_error *err)
{
    static const char *const what[] = {[PL_TEXTS_LINES] = "lines have",
                                       [PL_TEXTS_FOLDER] = "files of a folder have",
                                       [PL_TEXTS_GRAMMAR] = "texts of a grammar have",
                                       [PL_TEXTS_WHOLE] = "texts that are files have"};
    char where[PL_CONFIG_WHERE_BYTES];
    if (!cfg->texts.key[0] || form == PL_TEXTS_JSONL || form == PL_TEXTS_CSV || form == PL_TEXTS_SQUAD ||
        form == PL_TEXTS_AUTO_LINES)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: texts.key \"%.100s\" is not looked for: %s no keys and no columns; leave it out, or give "
                   "texts.format jsonl or csv",
                   pl_config_where(cfg, "texts.key", where, sizeof where), cfg->texts.key, what[form]);
}

pl_status pl_capsules_texts(const pl_capsules_encoding *e, const pl_config *cfg, pl_texts_setup *setup, pl_error *err)
{
    const pl_config_texts *c = &cfg->texts;
    const char *key = c->key[0] ? c->key : NULL;
    *setup = (pl_texts_setup){.path = c->path[0] ? c->path : NULL,
                              .key = key,
                              .column = key,
                              .seed = e->facts(cfg).seed,
                              .count = (uint64_t)c->count};
    PL_TRY(find_form(cfg, &setup->form, err));
    return c->path[0] || c->format != PL_CONFIG_TEXTS_AUTO ? check_key(cfg, setup->form, err) : PL_OK;
}

static bool are_of_grammar(const pl_config_texts *c) { return c->format == PL_CONFIG_TEXTS_GRAMMAR; }
/* Only counted, for a plan; nobody reads them. */
static bool are_none(const pl_config_texts *c) { return !c->path[0] && !are_of_grammar(c); }

/* Only for commands that read texts: a model needs none. */
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

pl_status pl_capsules_check_texts(const pl_config *cfg, pl_error *err)
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

/* Planning without texts is allowed; encoding none is not. */
pl_status pl_capsules_check_folder(pl_preparation *p, pl_command command, pl_error *err)
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

typedef struct telling {
    pl_progress progress;
    void *context;
} telling;

static bool tell(void *context, const char *what, uint64_t done, uint64_t total)
{
    const telling *t = context;
    return !t->progress || t->progress(t->context, what, done, total);
}

/* The parts of a job array begin together: the second waits, and finds the index made. */
typedef struct making {
    pl_preparation *p;
    int lock;
} making;

static pl_status make_gathered(pl_preparation *p, const char *index, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_texts_gathered_path(path, index, err));
    return pl_made_file(&p->made, path, err);
}

static pl_status lock_folder(void *context, pl_error *err)
{
    making *m = context;
    char index[PL_FILE_PATH_MAX];
    PL_TRY(pl_made_folder(&m->p->made, m->p->out, err));
    PL_TRY(pl_config_run_path(m->p->config, PL_CAPSULES_INDEX, index, err));
    PL_TRY(pl_made_file(&m->p->made, index, err));
    PL_TRY(make_gathered(m->p, index, err));
    if (m->lock < 0) m->lock = pl_io_open(m->p->out, O_RDONLY | O_DIRECTORY);
    if (m->lock >= 0 && pl_io_lock(m->lock, LOCK_EX) != 0) { /* a file system without locks: checksums tell */
    }
    return PL_OK;
}

/* What a run wrote among the texts would become texts, different ones each time; in the cache it would become cache. */
static pl_status check_closed(const pl_config *c, const char *out, const char *folder, const char *what, pl_error *err)
{
    const struct {
        const char *path, *what, *key;
    } own[] = {{out, "the folder of the run", "run.out"},
               {c->pipeline.output, "the file of results", "pipeline.output"},
               {c->quantization.output, "the file of weights", "quantization.output"},
               {c->pipeline.cache_dir, "the cache", "pipeline.cache_dir"},
               {c->run.trace, "the trace", "run.trace"}};
    char where[PL_CONFIG_WHERE_BYTES];
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const char *path = own[i].path;
        if (!path[0] || !folder[0] || path == folder) continue;
        if (!pl_files_are_one(path, folder) && !pl_file_is_below(path, folder)) continue;
        return pl_fail(err, PL_E_CONFIG, "%s: %s, %.300s, lies within %s, %.300s; choose another %s",
                       pl_config_where(c, own[i].key, where, sizeof where), own[i].what, path, what, folder,
                       own[i].key);
    }
    return PL_OK;
}

typedef struct writing {
    const pl_config *config;
    const char *out, *index;
} writing;

static pl_status check_named(void *context, const char *path, uint64_t number, pl_error *err)
{
    const writing *w = context;
    const pl_file_use uses[] = {{w->index, "the index of the texts", PL_FILE_WRITTEN},
                                {path, "texts.path", PL_FILE_READ}};
    struct stat st;
    (void)number;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return check_closed(w->config, w->out, path, "the texts", err);
    return pl_files_check(uses, sizeof uses / sizeof *uses, err);
}

static pl_status check_apart(const pl_config *c, const pl_texts_setup *s, const char *out, const char *index,
                             pl_error *err)
{
    writing w = {c, out, index};
    const pl_corpus_wish wish = pl_texts_corpus(s, index);
    if (s->path) PL_TRY(pl_corpus_each_named(&wish, check_named, &w, err));
    return check_closed(c, out, c->pipeline.cache_dir, "the cache", err);
}

/* Before anything is reserved: can pages be drawn with it? */
static pl_status check_font(const pl_encoder_facts *f, pl_error *err)
{
    pl_font font = {0};
    pl_module draw;
    pl_drawer *drawer = NULL;
    const pl_page_geometry geometry = pl_page_geometry_of(f->image_size);
    PL_TRY(pl_draw_load("encode", &draw, err));
    pl_status status = pl_font_load(f->font, &font, err);
    void *memory = status == PL_OK ? pl_alloc(1, pl_drawer_bytes(&geometry) + DRAWER_ALIGNMENT) : NULL;
    void *at = (void *)pl_align_up((uintptr_t)memory, DRAWER_ALIGNMENT);
    if (status == PL_OK && !memory) status = pl_fail(err, PL_E_NOMEM, "no memory to try the font");
    if (status == PL_OK)
        status = pl_drawer_open(draw.functions, &geometry, &font, at, pl_drawer_bytes(&geometry), &drawer, err);
    if (status == PL_E_DATA && f->font[0]) pl_fail_prefix(err, status, "%s", f->font);
    pl_drawer_close(drawer);
    pl_free(memory);
    pl_free((void *)(uintptr_t)font.data);
    pl_module_unload(&draw);
    return status;
}

/* The texts are those that came first: a resumed run uses them. */
static pl_status keep_input(pl_preparation *p, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    pl_config *c = p->writable;
    bool is_there;
    if (strcmp(c->texts.path, "-") != 0) return PL_OK;
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, p->out, PL_INPUT_FILE, err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) PL_TRY(pl_made_folder(&p->made, p->out, err));
    PL_TRY(is_there ? pl_input_check(path, err) : pl_input_read(p, "texts.path", path, err));
    memset(c->texts.path, 0, sizeof c->texts.path);
    memcpy(c->texts.path, path, strlen(path));
    return PL_OK;
}

pl_status pl_capsules_prepare(const pl_capsules_encoding *e, pl_preparation *p, pl_progress progress, void *context,
                              pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    telling t = {progress, context};
    making m = {p, -1};
    pl_texts_result result;
    pl_texts_options o = {
        .index_path = path, .progress = tell, .context = &t, .before_writing = lock_folder, .writing = &m};
    const pl_encoder_facts f = e->facts(p->config);
    PL_TRY(check_count(p->config, err));
    PL_TRY(check_font(&f, err));
    PL_TRY(keep_input(p, path, err));
    PL_TRY(pl_capsules_texts(e, p->config, &o.setup, err));
    PL_TRY(pl_config_run_path(p->config, PL_CAPSULES_INDEX, path, err));
    PL_TRY(check_apart(p->config, &o.setup, p->out, path, err));
    if (o.setup.form == PL_TEXTS_GRAMMAR || are_none(&p->config->texts)) return PL_OK;
    pl_status status = pl_texts_prepare(&o, &result, err);
    if (m.lock >= 0) close(m.lock);
    return status;
}

/* ---- the data ---- */

/* Where there are no texts yet, a grammar's stand in for them: a plan measures how quickly pages are drawn. */
static pl_status open_texts(const pl_capsules_encoding *e, const pl_config *c, pl_texts *texts, pl_error *err)
{
    pl_texts_setup setup;
    char path[PL_FILE_PATH_MAX];
    *texts = (pl_texts){.fd = -1, .index_fd = -1};
    PL_TRY(pl_config_run_path(c, PL_CAPSULES_INDEX, path, err));
    PL_TRY(pl_capsules_texts(e, c, &setup, err));
    if (are_none(&c->texts)) setup.form = PL_TEXTS_GRAMMAR;
    return pl_texts_open(texts, &setup, path, err);
}

/* Weights in 8 bits need f32 between layers. */
static pl_status check_wide(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_key *key = pl_config_find("encoder.precision");
    if (c->encoder.precision == PL_CONFIG_ENCODER_FLOAT32) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: encoder.precision %s, but what is in 8 bits is of a model in f32; take f32",
                   pl_config_where(c, "encoder.precision", where, sizeof where), key->names[c->encoder.precision]);
}

static pl_status find_weights(const pl_config *c, pl_data_use use, pl_encoder_weights *w, pl_error *err)
{
    (void)use;
    pl_given_weights given;
    static const pl_real narrowest[] = {[PL_CONFIG_ENCODER_FLOAT32] = PL_REAL_F32,
                                        [PL_CONFIG_ENCODER_BFLOAT16] = PL_REAL_BF16,
                                        [PL_CONFIG_ENCODER_FLOAT16] = PL_REAL_F16};
    *w = (pl_encoder_weights){0};
    if (!c->encoder.weights[0]) return PL_OK;
    snprintf(w->path, sizeof w->path, "%s", c->encoder.weights);
    PL_TRY(pl_capsules_find_trained(w->path, &w->part, err));
    PL_TRY(pl_given_weights_check(w->path, w->part, narrowest[c->encoder.precision], &given, err));
    w->hash = given.hash;
    PL_TRY(w->part ? pl_capsules_match_trained(c, w->path, w->hash, err) : pl_given_weights_match(c, w->path, err));
    return given.packed ? check_wide(c, err) : PL_OK;
}

static pl_encoder_facts facts_of(const pl_config *cfg)
{
    const pl_config_encoder *c = &cfg->encoder;
    const int64_t at_once = cfg->pipeline.batch_size;
    return (pl_encoder_facts){.image_size = (uint32_t)c->image_size,
                              .capsules = (uint32_t)c->target_capsules,
                              .width = (uint32_t)c->width,
                              .checksum = (uint32_t)c->checksum_dim,
                              .children = (uint32_t)c->children_per_capsule,
                              .entropy = c->attention_entropy && c->pooling_method == PL_CONFIG_POOLING_ATTENTION,
                              .at_once = at_once == PL_CONFIG_AUTO ? 0 : (uint32_t)at_once,
                              .font = cfg->texts.font,
                              .seed = (uint64_t)c->seed};
}

static const pl_capsules_encoding encoding = {.facts = facts_of, .find_weights = find_weights};

/* What a pages' setup points into while it is opened; opening copies it. */
typedef struct opening {
    pl_pages_setup setup;
    pl_encoder_weights weights;
    pl_str text;
} opening;

static pl_status open_setup(const pl_capsules_encoding *e, const pl_config *c, pl_data_use use, opening *o,
                            pl_share *share, pl_error *err)
{
    pl_pages_setup *s = &o->setup;
    PL_TRY(check_count(c, err));
    PL_TRY(open_texts(e, c, &s->texts, err));
    s->names = c->texts.path;
    PL_TRY(pl_font_load(e->facts(c).font, &s->font, err));
    PL_TRY(e->find_weights(c, use, &o->weights, err));
    if (o->weights.path[0])
        s->weights = o->weights.path, s->weights_hash = o->weights.hash, s->weights_part = o->weights.part;
    s->weights_said = o->weights.said, s->weights_are_others = o->weights.is_another;
    s->extent = e->extent;
    return pl_share_read(c, "texts.part", c->texts.part, "texts", s->texts.count, share, err);
}

static pl_status say_identity(const pl_config *c, const pl_pages_setup *s, pl_str *text, pl_error *err)
{
    pl_facts made = {0};
    pl_facts_add(&made, "texts", pl_texts_identity(&s->texts));
    pl_facts_add(&made, "font", s->font.hash);
    if (s->weights) pl_facts_add(&made, PL_FACT_WEIGHTS, s->weights_hash);
    return pl_results_say_identity(c, PL_CONFIG_BY_ENCODE, &made, text, err);
}

static void read_numbers(const pl_encoder_facts *f, const pl_config_pipeline *p, pl_pages_setup *s)
{
    s->image_size = f->image_size;
    s->capsules = f->capsules, s->width = f->width;
    s->checksum = f->checksum, s->children = f->children;
    s->entropy = f->entropy;
    s->block = (uint32_t)p->block_texts;
    s->at_once = f->at_once;
    s->threads = (uint32_t)p->num_workers;
    s->form = (pl_block_form)p->storage;
    s->cache = p->cache_dir[0] ? p->cache_dir : NULL;
    s->cache_bytes = p->cache_size;
    s->cache_is_memory = s->cache && pl_disk_is_memory(s->cache);
    (void)pl_parse_seconds(p->time_limit, &s->limit_seconds); /* already checked; without one it stays 0 */
}

static pl_status open_data(const pl_capsules_encoding *e, const pl_config *c, pl_data_use use, opening *o,
                           pl_data **data, pl_error *err)
{
    pl_share share;
    char path[PL_FILE_PATH_MAX];
    pl_pages_data *d;
    pl_pages_setup *s = &o->setup;
    const pl_encoder_facts f = e->facts(c);
    PL_TRY(open_setup(e, c, use, o, &share, err));
    PL_TRY(say_identity(c, s, &o->text, err));
    PL_TRY(pl_results_find_path(c, "pipeline.output", c->pipeline.output, c->pipeline.storage, &share, path, err));
    read_numbers(&f, &c->pipeline, s);
    s->first = share.first, s->count = share.count;
    s->path = path, s->text = pl_str_text(&o->text);
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

pl_status pl_capsules_open(const pl_capsules_encoding *e, const pl_config *c, pl_data_use use, const pl_facts *planned,
                           pl_data **data, pl_error *err)
{
    opening *o = pl_alloc(1, sizeof *o);
    const uint64_t witness = planned ? pl_facts_value(planned, PL_FACT_WITNESS, UINT64_MAX) : UINT64_MAX;
    if (!o) return pl_fail(err, PL_E_NOMEM, "no memory for the texts");
    o->setup.texts.fd = o->setup.texts.index_fd = -1;
    o->setup.opens_cache = use == PL_DATA_FOR_RUN;
    pl_status status = open_data(e, c, use, o, data, err);
    pl_texts_close(&o->setup.texts);
    pl_free((void *)(uintptr_t)o->setup.font.data);
    pl_str_deinit(&o->text);
    pl_free(o);
    if (status != PL_OK || witness == UINT64_MAX) return status;
    status = pl_pages_data_witness((pl_pages_data *)*data, witness, PL_FACT_WITNESS, err);
    if (status != PL_OK) pl_data_close(*data), *data = NULL;
    return status;
}

/* Uses only what the config says about texts: its file may have keys of encoding, too. */
static pl_status open_calibration(const pl_config *given, pl_data_use use, pl_data **data, pl_error *err)
{
    PL_TRY(check_wide(given, err));
    pl_config *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the texts");
    *c = *given;
    c->texts.part[0] = c->pipeline.cache_dir[0] = c->pipeline.time_limit[0] = 0;
    c->pipeline.num_workers = 1;
    const pl_status status = pl_capsules_open(&encoding, c, use, NULL, data, err);
    pl_free(c);
    if (status == PL_OK) pl_pages_data_calibrate((pl_pages_data *)*data);
    return status;
}

static pl_status open_capsules(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned,
                               pl_data **data, pl_error *err)
{
    return command == PL_COMMAND_QUANTIZE ? open_calibration(c, use, data, err)
                                          : pl_capsules_open(&encoding, c, use, planned, data, err);
}

/* Loaded for good: the handle is dropped, and so its memory is never released. */
static pl_status load_module(const char *further, pl_error *err)
{
    pl_module kept;
    if (further) PL_TRY(pl_page_cache_keep_module(&pl_page_cache_drawn, err));
    return pl_draw_load("encode", &kept, err);
}

static const char *further_module(const pl_config *c) { return c->pipeline.cache_dir[0] ? "capsules:cache" : NULL; }

/* Needs neither texts nor a font, nor what draws them. */
static void close_model(pl_data *d) { pl_free(d); }

static pl_status open_model(const pl_config *c, pl_data **data, pl_error *err)
{
    static const pl_data_kind kind = {.close = close_model};
    pl_encoder_weights weights;
    PL_TRY(find_weights(c, PL_DATA_FOR_PLAN, &weights, err));
    pl_data *d = *data = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the model");
    d->kind = &kind;
    if (!c->encoder.weights[0]) return PL_OK;
    d->weights = c->encoder.weights, d->weights_part = weights.part;
    pl_facts_add(&d->identity, PL_FACT_WEIGHTS, weights.hash);
    return PL_OK;
}

/* A model that runs on files is opened with what draws, but without texts. */
static void forget_data(pl_config *c)
{
    c->texts.path[0] = c->texts.part[0] = c->pipeline.cache_dir[0] = 0;
    if (c->texts.count == 0) c->texts.count = 1;
}

static const char *const files[] = {PL_CAPSULES_INDEX, NULL};

static pl_status prepare(pl_preparation *p, pl_progress progress, void *context, pl_error *err)
{
    return pl_capsules_prepare(&encoding, p, progress, context, err);
}

static pl_status write_page(const pl_config *c, const pl_page_wish *wish, pl_doc *doc, pl_error *err)
{
    return pl_capsules_page_write(&encoding, c, wish, doc, err);
}

static const pl_dataset dataset = {.load_module = load_module,
                                   .further_module = further_module,
                                   .rows = &pl_drawn_rows,
                                   .open_model = open_model,
                                   .forget_data = forget_data,
                                   .prepare = prepare,
                                   .files = files,
                                   .magic = PL_TEXTS_MAGIC,
                                   .check_folder = pl_capsules_check_folder,
                                   .open = open_capsules};

static const pl_task task = {.job = {[PL_COMMAND_ENCODE] = &pl_job_encode,
                                     [PL_COMMAND_QUANTIZE] = &pl_job_quantize_encode,
                                     [PL_COMMAND_INFER] = &pl_job_infer},
                             .keeps_config = true,
                             .page = write_page};

const pl_system pl_system_capsules = {.words = {"text", "texts", "text", "texts", "texts/s", "texts", "block", "batch",
                                                "", "batch_size", "batch_size, image_size, width or layers",
                                                "width or layers"},
                                      .check = pl_capsules_check_texts,
                                      .dataset = {&dataset},
                                      .task = &task};
