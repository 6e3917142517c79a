#include "data/pages/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/module.h"
#include "base/remove.h"
#include "base/size.h"
#include "data/pages/pack.h"

enum { HEAD_BYTES = 9 }; /* before a packed page: its checksum, and the remarks */

struct pl_page_cache {
    pthread_mutex_t lock; /* for what follows */
    pl_module loaded;
    const pl_cache_module *module; /* its functions */
    pl_cache_store *store;         /* NULL: it is not open */
    const pl_page_cache_use *use;
    uint64_t file_bytes, recipe;
    uint32_t rows, row_bytes;
    int folder; /* locked while it is open */
    bool is_told;
    pl_page_cache_count count;
    char path[PL_FILE_PATH_MAX], folder_path[PL_FILE_PATH_MAX], told[PL_PAGE_CACHE_TEXT_BYTES];
    _Alignas(16) uint8_t memory[PL_CACHE_MEMORY_BYTES];
};

uint64_t pl_page_cache_disk_bytes(uint64_t file_bytes) { return file_bytes + PL_CACHE_JOURNAL_BYTES; }

uint64_t pl_page_cache_scratch_bytes(uint32_t rows, uint32_t row_bytes)
{
    return HEAD_BYTES + pl_pack_bytes(rows, row_bytes);
}

bool pl_page_cache_keeps(uint32_t rows, uint32_t row_bytes)
{
    return pl_page_cache_scratch_bytes(rows, row_bytes) <= PL_CACHE_VALUE_BYTES_MAX;
}

bool pl_page_cache_is_open(const pl_page_cache *c) { return c->store != NULL; }

const pl_page_cache_use pl_page_cache_drawn = {.makes = "draws",
                                               .size_key = "pipeline.cache_size",
                                               .without =
                                                   ", or leave pipeline.cache_dir out: drawing is quick without it"};
const pl_page_cache_use pl_page_cache_denoised = {
    .makes = "denoises", .size_key = "dataset.cache_size", .without = ", or leave dataset.cache_images out"};

/* ---- the module ---- */

static pl_status load(const pl_page_cache_use *use, pl_module *m, pl_error *err)
{
    const pl_module_wanted wanted = {.file = PL_CACHE_FILE,
                                     .symbol = PL_CACHE_SYMBOL,
                                     .version = PL_CACHE_VERSION,
                                     .what = "a cache of pages",
                                     .install =
                                         "; install SQLite (Debian: libsqlite3-dev, and build Plimsoll with it there)",
                                     .instead = use->without};
    return pl_module_load(&wanted, m, err);
}

pl_status pl_page_cache_keep_module(const pl_page_cache_use *use, pl_error *err)
{
    pl_module kept;
    return load(use, &kept, err);
}

pl_status pl_page_cache_create(const pl_page_cache_setup *o, pl_page_cache **cache, pl_error *err)
{
    pl_page_cache *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for a cache of pages");
    c->use = o->use;
    c->file_bytes = o->file_bytes;
    c->rows = o->rows, c->row_bytes = o->row_bytes;
    c->folder = -1;
    snprintf(c->folder_path, sizeof c->folder_path, "%s", o->folder);
    pthread_mutex_init(&c->lock, NULL);
    pl_status status = pl_path_join(c->path, sizeof c->path, o->folder, PL_PAGE_CACHE_NAME, err);
    if (status == PL_OK) status = load(c->use, &c->loaded, err);
    c->module = c->loaded.functions;
    if (status != PL_OK) return pl_page_cache_destroy(c), status;
    *cache = c;
    return PL_OK;
}

static void close_folder(pl_page_cache *c)
{
    close(c->folder);
    c->folder = -1;
}

static void close_store(pl_page_cache *c)
{
    if (!c->store) return;
    c->module->tell(c->store, &c->count.facts);
    c->module->close(c->store);
    c->store = NULL;
    close_folder(c);
}

void pl_page_cache_destroy(pl_page_cache *c)
{
    if (!c) return;
    close_store(c);
    pl_module_unload(&c->loaded);
    pthread_mutex_destroy(&c->lock);
    pl_free(c);
}

/* ---- what fails ---- */

/* The journal goes first: left alone, it would undo in a new file what that file never did. */
pl_status pl_page_cache_remove(const char *folder, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_PAGE_CACHE_NAME, err));
    if (pl_remove_is_link(path)) return pl_remove_file(path, err);
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_PAGE_CACHE_NAME "-journal", err));
    PL_TRY(pl_remove_file(path, err));
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_PAGE_CACHE_NAME, err));
    return pl_remove_file(path, err);
}

/* What this run does then: it makes all pages itself, or begins with an empty cache. */
typedef enum outcome { WITHOUT, WITHOUT_THIS_TIME, ANEW } outcome;

static void note(pl_page_cache *c, const char *what, const char *why, outcome then)
{
    char run[80];
    c->is_told = false;
    snprintf(run, sizeof run, "this run %s all pages%s", c->use->makes,
             then == WITHOUT_THIS_TIME ? ", and the next one makes it anew" : "");
    snprintf(c->told, sizeof c->told, "the cache of pages in %.200s %s (%.100s); %s", c->folder_path, what, why,
             then == ANEW ? "it was made anew" : run);
}

static void give_up(pl_page_cache *c, pl_cache_answer answer, const char *why)
{
    const bool damaged = answer == PL_CACHE_DAMAGED;
    const bool is_removed = damaged && pl_page_cache_remove(c->folder_path, NULL) == PL_OK;
    note(c, damaged ? "is damaged" : "cannot be used any more", why, is_removed ? WITHOUT_THIS_TIME : WITHOUT);
    close_store(c);
}

/* ---- opening ---- */

static bool lock_folder(pl_page_cache *c)
{
    pl_error why = {0};
    if (pl_folder_create(c->folder_path, &why) != PL_OK) {
        note(c, "cannot be made", why.text, WITHOUT);
        return false;
    }
    c->folder = pl_io_open(c->folder_path, O_RDONLY | O_DIRECTORY);
    if (c->folder >= 0 && pl_io_lock(c->folder, LOCK_EX | LOCK_NB) == 0) return true;
    note(c, "cannot be used",
         errno == EWOULDBLOCK        ? "another run has it"
         : pl_io_has_no_locks(errno) ? "its file system has no locks"
                                     : strerror(errno),
         WITHOUT);
    if (c->folder >= 0) close(c->folder);
    c->folder = -1;
    return false;
}

static pl_cache_answer open_store(pl_page_cache *c, char *why, size_t room)
{
    return c->module->open(c->memory, sizeof c->memory, c->path, c->file_bytes, &c->store, why, room);
}

/* A file that was allowed more would never shrink: SQLite frees pages within it, and keeps them. */
static bool remove_larger(pl_page_cache *c)
{
    struct stat st;
    if (stat(c->path, &st) != 0 || (uint64_t)st.st_size <= c->file_bytes) return true;
    char lowered[80];
    snprintf(lowered, sizeof lowered, "%s was lowered", c->use->size_key);
    const bool is_removed = pl_page_cache_remove(c->folder_path, NULL) == PL_OK;
    note(c, is_removed ? "was larger than it may be" : "is larger than it may be, and cannot be removed",
         pl_remove_is_link(c->path) ? "it is a link" : lowered, is_removed ? ANEW : WITHOUT);
    return is_removed;
}

void pl_page_cache_open(pl_page_cache *c, uint64_t recipe)
{
    char why[160];
    if (c->store || c->told[0]) return;
    c->recipe = recipe;
    if (!lock_folder(c)) return;
    if (!remove_larger(c)) return close_folder(c);
    pl_cache_answer answer = open_store(c, why, sizeof why);
    if (answer == PL_CACHE_DAMAGED && pl_page_cache_remove(c->folder_path, NULL) == PL_OK) {
        note(c, "could not be read", why, ANEW);
        answer = open_store(c, why, sizeof why);
    }
    if (answer == PL_CACHE_OK) return;
    note(c, "cannot be used", why, WITHOUT);
    c->store = NULL;
    close_folder(c);
}

/* ---- pages ---- */

static void find_key(const pl_page_cache *c, const void *text, size_t bytes, bool whole, XXH128_canonical_t *key)
{
    _Static_assert(sizeof key->digest == PL_CACHE_KEY_BYTES, "a key");
    XXH128_canonicalFromHash(key, XXH3_128bits_withSeed(text, bytes, c->recipe + whole));
}

static void seal(const XXH128_canonical_t *key, const uint8_t *value, uint64_t bytes, uint8_t to[8])
{
    XXH64_hash_t seed;
    memcpy(&seed, key->digest, sizeof seed);
    const XXH64_hash_t sum = XXH64(value + 8, bytes - 8, seed);
    memcpy(to, &sum, 8);
}

static bool read_value(const pl_page_cache *c, const XXH128_canonical_t *key, const uint8_t *value, uint64_t bytes,
                       uint8_t *page, uint8_t *remarks)
{
    uint8_t sum[8];
    if (bytes < HEAD_BYTES) return false;
    seal(key, value, bytes, sum);
    *remarks = value[8];
    return memcmp(sum, value, sizeof sum) == 0 &&
           pl_unpack(value + HEAD_BYTES, bytes - HEAD_BYTES, c->rows, c->row_bytes, page);
}

bool pl_page_cache_get(pl_page_cache *c, const void *text, size_t bytes, bool whole, void *scratch, uint8_t *page,
                       uint8_t *remarks)
{
    XXH128_canonical_t key;
    uint64_t packed = 0;
    pl_cache_answer answer = PL_CACHE_NONE;
    find_key(c, text, bytes, whole, &key);
    pthread_mutex_lock(&c->lock);
    if (c->store)
        answer =
            c->module->get(c->store, key.digest, scratch, pl_page_cache_scratch_bytes(c->rows, c->row_bytes), &packed);
    const bool read = answer == PL_CACHE_OK && read_value(c, &key, scratch, packed, page, remarks);
    if (c->store && answer == PL_CACHE_OK && !read) give_up(c, PL_CACHE_DAMAGED, "a page is not as it was written");
    if (c->store && (answer == PL_CACHE_DAMAGED || answer == PL_CACHE_FAILED))
        give_up(c, answer, c->module->why(c->store));
    c->count.found += read;
    pthread_mutex_unlock(&c->lock);
    return read;
}

void pl_page_cache_put(pl_page_cache *c, const void *text, size_t bytes, bool whole, void *scratch, const uint8_t *page,
                       uint8_t remarks)
{
    XXH128_canonical_t key;
    uint8_t *value = scratch;
    find_key(c, text, bytes, whole, &key);
    value[8] = remarks;
    const uint64_t packed = HEAD_BYTES + pl_pack(page, c->rows, c->row_bytes, value + HEAD_BYTES);
    seal(&key, value, packed, value);
    pthread_mutex_lock(&c->lock);
    pl_cache_answer answer = PL_CACHE_OK;
    if (c->store) answer = c->module->put(c->store, key.digest, value, packed);
    const bool left_out = answer == PL_CACHE_NONE;
    if (c->store && answer != PL_CACHE_OK && !left_out) give_up(c, answer, c->module->why(c->store));
    c->count.drawn += c->store != NULL;
    c->count.left_out += left_out;
    pthread_mutex_unlock(&c->lock);
}

/* ---- telling ---- */

bool pl_page_cache_tell(pl_page_cache *c, char text[PL_PAGE_CACHE_TEXT_BYTES])
{
    pthread_mutex_lock(&c->lock);
    const bool is_new = c->told[0] && !c->is_told;
    if (is_new) memcpy(text, c->told, sizeof c->told);
    c->is_told = true;
    pthread_mutex_unlock(&c->lock);
    return is_new;
}

void pl_page_cache_read_count(pl_page_cache *c, pl_page_cache_count *count)
{
    pthread_mutex_lock(&c->lock);
    if (c->store) c->module->tell(c->store, &c->count.facts);
    *count = c->count;
    pthread_mutex_unlock(&c->lock);
}

/* ---- from outside ---- */

pl_status pl_page_cache_shrink(const char *folder, uint64_t file_bytes, pl_error *err)
{
    const pl_page_cache_setup o = {.folder = folder, .file_bytes = file_bytes, .use = &pl_page_cache_drawn};
    pl_page_cache *c;
    char why[160] = "";
    if (file_bytes < PL_CACHE_FILE_BYTES_MIN)
        return pl_fail(err, PL_E_USAGE, "%s: a cache has %d bytes at least; 0 removes it", folder,
                       (int)PL_CACHE_FILE_BYTES_MIN);
    PL_TRY(pl_page_cache_create(&o, &c, err));
    pl_cache_answer answer = c->module->shrink(c->memory, sizeof c->memory, c->path, file_bytes, why, sizeof why);
    pl_status status = PL_OK;
    if (answer == PL_CACHE_NONE)
        status =
            pl_fail(err, PL_E_UNSUPPORTED, "%s: cannot be made smaller: %s; `cache-size` 0 removes it", c->path, why);
    else if (answer != PL_CACHE_OK)
        status = pl_fail(err, answer == PL_CACHE_DAMAGED ? PL_E_DATA : PL_E_STORAGE,
                         "%s: cannot be made smaller: %s; `cache-size` 0 removes it", c->path, why);
    pl_page_cache_destroy(c);
    return status;
}
