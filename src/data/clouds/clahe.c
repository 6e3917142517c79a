#include "data/clouds/clahe.h"

#include <math.h>
#include <string.h>

/* Along one axis: so many pixels, tiles of so many. */
typedef struct axis {
    uint32_t pixels, tile, tiles;
} axis;

typedef struct clahe {
    axis y, x;
    uint16_t *map; /* [y.tiles][x.tiles][PL_CLAHE_BINS] */
    uint8_t *bin;  /* [y.pixels][x.pixels] */
} clahe;

static axis axis_of(uint32_t pixels)
{
    const uint32_t tile = pixels / 8 > 1 ? pixels / 8 : 1;
    return (axis){pixels, tile, (pixels + tile - 1) / tile};
}

static uint64_t map_bytes(axis y, axis x) { return (uint64_t)y.tiles * x.tiles * PL_CLAHE_BINS * sizeof(uint16_t); }

uint64_t pl_clahe_scratch_bytes(uint32_t height, uint32_t width)
{
    return map_bytes(axis_of(height), axis_of(width)) + (uint64_t)height * width;
}

/* ---- bins ---- */

static void find_range(const float *image, uint64_t n, double *low, double *high)
{
    float least = image[0], most = image[0];
    for (uint64_t i = 1; i < n; i++) {
        least = image[i] < least ? image[i] : least;
        most = image[i] > most ? image[i] : most;
    }
    *low = (double)least, *high = (double)most;
}

/* In 16 bits, which the definition goes through first. */
static double in_16_bits(double x) { return rint(fmin(fmax(x, 0), 1) * UINT16_MAX); }

static void fill_bins(const float *image, uint64_t n, double low, double high, uint8_t *bin)
{
    const uint32_t levels_a_bin = 1 + PL_CLAHE_LEVELS / PL_CLAHE_BINS;
    for (uint64_t i = 0; i < n; i++) {
        const double level = rint((in_16_bits((double)image[i]) - low) / (high - low) * (PL_CLAHE_LEVELS - 1));
        bin[i] = (uint8_t)((uint32_t)level / levels_a_bin);
    }
}

/* ---- a tile's map ---- */

static uint32_t mirrored(uint32_t i, uint32_t pixels) { return i < pixels ? i : 2 * (pixels - 1) - i; }

static void count_tile(const clahe *c, uint32_t tile_y, uint32_t tile_x, int64_t histogram[PL_CLAHE_BINS])
{
    memset(histogram, 0, PL_CLAHE_BINS * sizeof *histogram);
    for (uint32_t y = tile_y * c->y.tile; y < (tile_y + 1) * c->y.tile; y++) {
        const uint8_t *row = c->bin + (uint64_t)mirrored(y, c->y.pixels) * c->x.pixels;
        for (uint32_t x = tile_x * c->x.tile; x < (tile_x + 1) * c->x.tile; x++)
            histogram[row[mirrored(x, c->x.pixels)]]++;
    }
}

static int64_t count_below(const int64_t *histogram, int64_t clip)
{
    int64_t count = 0;
    for (int i = 0; i < PL_CLAHE_BINS; i++) count += histogram[i] < clip;
    return count;
}

/* One each for the bins with room, from `first` on in even steps; returns what is left. */
static int64_t give_one_each(int64_t *histogram, int64_t clip, int first, int64_t excess)
{
    const int64_t room = count_below(histogram, clip) / excess, step = room > 1 ? room : 1;
    for (int64_t i = first; i < PL_CLAHE_BINS; i += step)
        if (histogram[i] < clip) histogram[i]++, excess--;
    return excess;
}

static void clip_histogram(int64_t *histogram, int64_t clip)
{
    int64_t excess = 0;
    for (int i = 0; i < PL_CLAHE_BINS; i++)
        if (histogram[i] > clip) excess += histogram[i] - clip, histogram[i] = clip;
    const int64_t share = excess / PL_CLAHE_BINS;
    for (int i = 0; i < PL_CLAHE_BINS; i++) {
        const int64_t shared = histogram[i] < clip - share ? histogram[i] + share : histogram[i];
        const int64_t now = shared >= clip - share ? clip : shared;
        excess -= now - histogram[i], histogram[i] = now;
    }
    for (int64_t before = excess + 1; excess > 0 && excess < before;) {
        before = excess;
        for (int first = 0; first < PL_CLAHE_BINS && excess > 0; first++)
            excess = give_one_each(histogram, clip, first, excess);
    }
}

static void make_maps(const clahe *c, double clip_limit)
{
    const int64_t pixels = (int64_t)c->y.tile * c->x.tile;
    const double limit = clip_limit * (double)pixels, scale = (PL_CLAHE_LEVELS - 1) / (double)pixels;
    const int64_t clip = !(limit > 0) || limit >= (double)pixels ? pixels : limit < 1 ? 1 : (int64_t)limit;
    for (uint32_t tile = 0; tile < c->y.tiles * c->x.tiles; tile++) {
        int64_t histogram[PL_CLAHE_BINS], sum = 0;
        count_tile(c, tile / c->x.tiles, tile % c->x.tiles, histogram);
        clip_histogram(histogram, clip);
        for (int i = 0; i < PL_CLAHE_BINS; i++) {
            sum += histogram[i];
            c->map[(uint64_t)tile * PL_CLAHE_BINS + i] = (uint16_t)fmin((double)sum * scale, PL_CLAHE_LEVELS - 1);
        }
    }
}

/* ---- between the maps ---- */

/* The two tiles whose centres a pixel lies between, the same one beyond the outermost, and how far it is to the
 * second. */
typedef struct between {
    uint32_t tile[2];
    double weight[2];
} between;

static between place_of(axis a, uint32_t pixel)
{
    const uint32_t at = pixel + a.tile / 2, block = at / a.tile;
    const double second = (at % a.tile) / (double)a.tile;
    return (between){{block ? block - 1 : 0, block < a.tiles ? block : a.tiles - 1}, {1 - second, second}};
}

/* Rounded to f32 after each term, as the definition's sum is. */
static float interpolate(const clahe *c, between y, between x, uint8_t bin)
{
    float sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const uint64_t tile = (uint64_t)y.tile[i] * c->x.tiles + x.tile[j];
            sum += (float)(c->map[tile * PL_CLAHE_BINS + bin] * (x.weight[j] * y.weight[i]));
        }
    return floorf(sum);
}

static void stretch(float *out, uint64_t n)
{
    double low, high;
    find_range(out, n, &low, &high);
    for (uint64_t i = 0; i < n; i++) out[i] = high > low ? (float)(((double)out[i] - low) / (high - low)) : 0;
}

void pl_clahe(uint32_t height, uint32_t width, double clip_limit, const float *image, void *scratch, float *out)
{
    clahe c = {axis_of(height), axis_of(width), .map = scratch};
    const uint64_t n = (uint64_t)height * width;
    double low, high;
    c.bin = (uint8_t *)scratch + map_bytes(c.y, c.x);
    find_range(image, n, &low, &high);
    low = in_16_bits(low), high = in_16_bits(high);
    if (!(high > low)) {
        memset(out, 0, n * sizeof *out);
        return;
    }
    fill_bins(image, n, low, high, c.bin);
    make_maps(&c, clip_limit);
    for (uint32_t y = 0; y < height; y++) {
        const between at_y = place_of(c.y, y);
        for (uint32_t x = 0; x < width; x++)
            out[(uint64_t)y * width + x] = interpolate(&c, at_y, place_of(c.x, x), c.bin[(uint64_t)y * width + x]);
    }
    stretch(out, n);
}
