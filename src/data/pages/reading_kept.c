/* What a model makes of pages and gives back: features of the frozen tower, numbers each in a place of their own
 * (page_features.h), or pages that came through the denoiser, packed (cache.h). A model gives back one of the two. The
 * threads of the ring read; the thread that runs the programs writes. */
#include "data/pages/reading_kept.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/colours.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/units.h"

static const pl_reading *reading_of(const pl_source *source)
{
    return (const pl_reading *)((const char *)source - offsetof(pl_reading, source));
}

static uint32_t row_bytes(const pl_reading *r) { return r->setup.image_size * PL_COLOURS; }
static uint64_t image_bytes(const pl_reading *r) { return (uint64_t)row_bytes(r) * r->setup.image_size; }
static uint64_t packed_bytes(const pl_reading *r)
{
    return pl_page_cache_scratch_bytes(r->setup.image_size, row_bytes(r));
}

/* ---- opening ---- */

static pl_status init_features(pl_reading *r, pl_error *err)
{
    const pl_reading_setup *s = &r->setup;
    uint64_t bytes;
    if (pl_size_mul(s->features, sizeof(float), &bytes))
        return pl_fail(err, PL_E_CONFIG, "the features of a page are absurdly large");
    r->features = pl_alloc(1, sizeof *r->features);
    if (!r->features) return pl_fail(err, PL_E_NOMEM, "no memory for the features of pages");
    return pl_page_features_init(r->features, s->features_path, s->pages, bytes, s->features_bytes, err);
}

/* The cache keeps a page as one value. */
static pl_status check_images(const pl_reading *r, pl_error *err)
{
    char needed[32], most[32];
    if (pl_page_cache_keeps(r->setup.image_size, row_bytes(r))) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "dataset.cache_images: a denoised page of %u pixels may take %s, and the cache keeps at most %s of "
                   "one; make vision_encoder.image_size smaller, or leave dataset.cache_images out",
                   r->setup.image_size, pl_format_bytes(packed_bytes(r), needed, sizeof needed),
                   pl_format_bytes(PL_CACHE_VALUE_BYTES_MAX, most, sizeof most));
}

static pl_status init_images(pl_reading *r, pl_error *err)
{
    const pl_reading_setup *s = &r->setup;
    const pl_page_cache_setup setup = {s->images_folder, s->images_bytes, s->image_size, row_bytes(r),
                                       &pl_page_cache_denoised};
    PL_TRY(check_images(r, err));
    if (!s->images_folder) return PL_OK;
    r->packed = pl_alloc(packed_bytes(r), 1);
    if (!r->packed) return pl_fail(err, PL_E_NOMEM, "no memory for a packed page");
    return pl_page_cache_create(&setup, &r->images, err);
}

pl_status pl_reading_init_kept(pl_reading *r, pl_error *err)
{
    return r->setup.features ? init_features(r, err) : r->setup.keeps_images ? init_images(r, err) : PL_OK;
}

void pl_reading_deinit_kept(pl_reading *r)
{
    if (r->features) pl_page_features_deinit(r->features);
    pl_free(r->features);
    pl_page_cache_destroy(r->images);
    pl_free(r->packed);
}

/* ---- what is reported ---- */

static void say_features(pl_reading *r, pl_str *said)
{
    r->data.file = "features of pages";
    r->data.file_bytes = pl_page_features_file_bytes(r->features);
    r->data.kernel_cache_bytes = PL_PAGE_FEATURES_CACHE_BYTES;
    pl_str_printf(said, "; features of %s",
                  r->features->places < r->setup.pages ? "pages 0 to " : "all pages are kept");
    if (r->features->places < r->setup.pages) pl_str_printf(said, "%" PRIu64 " are kept", r->features->places - 1);
}

/* All pages, packed as badly as possible, each with the two pages of the file that it may leave half empty; SQLite
 * takes a sixteenth. */
static uint64_t most_images_bytes(const pl_reading *r)
{
    enum { LEFT_EMPTY = 2 * 4096, OWN = 16, OWN_LEAST = 1 << 20 };
    const uint64_t of_one = packed_bytes(r) + LEFT_EMPTY;
    return r->setup.pages * (of_one + of_one / (OWN - 1)) + OWN_LEAST;
}

static void say_images(pl_reading *r, pl_str *said)
{
    char text[32];
    const uint64_t most = most_images_bytes(r), bytes = most < r->setup.images_bytes ? most : r->setup.images_bytes;
    r->data.file = "cache of denoised pages, at most";
    r->data.file_bytes = pl_page_cache_disk_bytes(bytes);
    r->data.kernel_cache_bytes = PL_CACHE_PAGE_CACHE_BYTES;
    pl_str_printf(said, "; denoised pages are kept, in at most %s", pl_format_bytes(bytes, text, sizeof text));
}

void pl_reading_say_kept(pl_reading *r, pl_str *said)
{
    if (r->setup.keeps_features) say_features(r, said);
    if (r->images) say_images(r, said);
}

/* ---- ports ---- */

pl_status pl_reading_describe_kept(const pl_reading *r, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    uint64_t bytes;
    if (!r->features && !r->setup.keeps_images) return PL_OK;
    if (pl_size_mul(r->features ? r->features->place_bytes : image_bytes(r), micro_batch, &bytes) || bytes > INT64_MAX)
        return pl_fail(err, PL_E_CONFIG, "%s of %u pages are absurdly large; make the micro-batch smaller",
                       r->features ? "features" : "colours", micro_batch);
    if (!pl_reading_is_in_place(r))
        l->port[l->ports++] = r->features ? (pl_port){"features", PL_DTYPE_F32, bytes, 0, NULL}
                                          : (pl_port){"denoised", PL_DTYPE_U8, bytes, 0, NULL};
    l->port[l->ports++] = (pl_port){"missing", PL_DTYPE_I32, sizeof(int32_t), 0, NULL};
    if (r->images) l->scratch_bytes += packed_bytes(r);
    return PL_OK;
}

static uint32_t kept_port(const pl_reading *r)
{
    return r->port[pl_reading_is_in_place(r) ? PL_READING_PAGES : PL_READING_KEPT];
}

static bool read_page(const pl_reading *r, uint64_t page, void *scratch, void *to)
{
    uint8_t none;
    if (r->features) return pl_page_features_read(r->features, page, to);
    return pl_page_cache_get(r->images, &page, sizeof page, true, scratch, to, &none);
}

static bool has_all(const pl_reading *r, const pl_slot *slot)
{
    uint64_t page;
    if (!r->features) return r->images != NULL; /* only a read can tell */
    for (uint32_t i = 0; i < slot->rows; i++)
        if (pl_reading_find_row(r, slot, i, &page) && !pl_page_features_has(r->features, page)) return false;
    return true;
}

/* Reads what is kept of all its pages, or nothing: a row without a page does not count, whatever is made of it. */
static bool read_all(const pl_reading *r, void *scratch, const pl_slot *slot)
{
    const uint64_t bytes = r->features ? r->features->place_bytes : image_bytes(r);
    char *to = slot->port[kept_port(r)].at;
    uint64_t page;
    if (!has_all(r, slot)) return false;
    for (uint32_t i = 0; i < slot->rows; i++, to += bytes)
        if (!pl_reading_find_row(r, slot, i, &page))
            memset(to, 0, bytes);
        else if (!read_page(r, page, scratch, to))
            return false;
    return true;
}

bool pl_reading_fill_kept(const pl_reading *r, void *scratch, pl_slot *slot)
{
    if (!r->features && !r->setup.keeps_images) return false;
    const bool is_known = read_all(r, scratch, slot);
    *(int32_t *)slot->port[r->port[PL_READING_MISSING]].at = !is_known;
    return is_known;
}

/* ---- what comes back ---- */

static bool are_finite(const float *x, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static pl_status keep_features(const pl_reading *r, uint64_t page, const char *from, pl_error *err)
{
    if (!are_finite((const float *)(const void *)from, r->setup.features))
        return pl_fail(err, PL_E_DATA,
                       "what the frozen tower makes of page %" PRIu64
                       " is not finite; give vision_encoder.pretrained_weights other weights, or f32 to "
                       "vision_encoder.pretrained_precision and train.mixed_precision off",
                       page);
    if (!pl_page_features_has(r->features, page)) pl_page_features_write(r->features, page, from);
    return PL_OK;
}

pl_status pl_reading_keep(const pl_source *source, const pl_slot *slot, uint32_t port, const void *made, pl_error *err)
{
    const pl_reading *r = reading_of(source);
    const uint64_t bytes = r->features ? r->features->place_bytes : image_bytes(r);
    const char *from = made;
    uint64_t page;
    if ((!r->features && !r->images) || port != kept_port(r)) return PL_OK;
    for (uint32_t i = 0; i < slot->rows; i++, from += bytes) {
        if (!pl_reading_find_row(r, slot, i, &page)) continue;
        if (r->features)
            PL_TRY(keep_features(r, page, from, err));
        else
            pl_page_cache_put(r->images, &page, sizeof page, true, r->packed, (const uint8_t *)from, 0);
    }
    return PL_OK;
}

pl_status pl_reading_make_known(const pl_source *source, uint64_t hash, pl_error *err)
{
    const pl_reading *r = reading_of(source);
    const pl_reading_setup *s = &r->setup;
    const uint64_t key[] = {s->kept_key, hash, s->seed, s->image_size, s->capsules, s->lexicon.hash, s->font.hash};
    const uint64_t of = XXH64(key, sizeof key, 0);
    if (r->images) pl_page_cache_open(r->images, of);
    return r->features ? pl_page_features_open(r->features, of, err) : PL_OK;
}

bool pl_reading_tell(const pl_source *source, char *text, size_t room)
{
    const pl_reading *r = reading_of(source);
    char said[PL_PAGE_CACHE_TEXT_BYTES];
    if (r->features) return pl_page_features_tell(r->features, text, room);
    if (!r->images || !pl_page_cache_tell(r->images, said)) return false;
    snprintf(text, room, "%s", said);
    return true;
}
