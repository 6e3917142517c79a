#include "data/clouds/scene.h"

#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "data/clouds/lidar.h"

static const double degree = 0.017453292519943295;

/* Filters, in pixels and frames; they end at so many deviations. */
#define CLOUD_PIXELS  1.5
#define OCEAN_PIXELS  1.5 /* at most: the room is that of the clouds */
#define HEIGHT_FRAMES 4.0
enum { DEVIATIONS = 3, HEIGHT_RADIUS = 12, RADIUS_MAX = 12 };

#define SPEED_METRES   (200 * PL_SCENE_FRAME_SECONDS) /* of the aircraft, a frame */
#define WIND_METRES    (10 * PL_SCENE_FRAME_SECONDS)  /* at most, along each axis */
#define SOFT_EDGE      0.3
#define SHADOW         10.0
#define DEAD_DEVIATION 4.26 /* noise above it, one number in 100,000: the pixel is NAN */

/* What is drawn, each from a stream of its own. Places on the strip count from the middle of the counters. */
#define STREAM(scene, what) pl_philox_init((scene)->seed, pl_stream_id("clouds/" what))
enum { STRIP_MIDDLE = 1 << 28 };

static double altitude_km(const pl_scene *s) { return s->cue == PL_CUE_PARALLAX ? 5 : 20; }
static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* ---- what is refused ---- */

static double longest_shadow(const pl_scene *s)
{
    return PL_SCENE_HIGH_KM * 1000 * tan(PL_SCENE_ZENITH_HIGH * degree) / s->gsd_metres;
}

/* Pixels beyond each side of a frame from which a shadow may fall into it. */
static int64_t reach_of(const pl_scene *s) { return s->cue == PL_CUE_SHADOW ? (int64_t)ceil(longest_shadow(s)) : 0; }

pl_status pl_scene_check(const pl_scene *s, pl_error *err)
{
    const uint32_t shorter = s->height < s->width ? s->height : s->width;
    if (s->height < 8 || s->width < 8 || s->height > PL_SCENE_SIDE_MAX || s->width > PL_SCENE_SIDE_MAX)
        return pl_fail(err, PL_E_USAGE, "frames of %u by %u pixels were asked for; give sides of 8 to %d", s->height,
                       s->width, PL_SCENE_SIDE_MAX);
    if (!(s->gsd_metres >= 1 && s->gsd_metres <= 100000))
        return pl_fail(err, PL_E_USAGE, "a pixel of %g metres was asked for; give 1 to 100000", s->gsd_metres);
    if (s->cue == PL_CUE_SHADOW && longest_shadow(s) > shorter)
        return pl_fail(err, PL_E_USAGE,
                       "with pixels of %g metres shadows are up to %.0f pixels long, more than the %u of a frame's "
                       "shorter side; give pixels of %.0f metres or more",
                       s->gsd_metres, ceil(longest_shadow(s)), shorter,
                       ceil(s->gsd_metres * longest_shadow(s) / shorter));
    return PL_OK;
}

/* ---- a flight ---- */

static double between(uint32_t bits, double low, double high) { return low + bits * 0x1p-32 * (high - low); }

pl_scene_flight pl_scene_flight_of(const pl_scene *s, uint32_t number, uint64_t frames, uint64_t labels)
{
    const pl_philox p = STREAM(s, "flight");
    const double wind = s->cue == PL_CUE_SHADOW ? WIND_METRES / s->gsd_metres : 0; /* it would look like parallax */
    uint32_t u[12];
    for (uint32_t i = 0; i < 3; i++) pl_philox_block(&p, 0, number, i, u + 4 * i);
    return (pl_scene_flight){
        .of = s,
        .number = number,
        .frames = frames,
        .labels = labels,
        .texture_pixels = between(u[0], 1, OCEAN_PIXELS),
        .threshold = between(u[1], 0.8, 1.2),
        .wind_x = between(u[2], -wind, wind),
        .wind_y = between(u[3], -wind, wind),
        .ocean = between(u[4], 280, 290),
        .cloud = between(u[5], 10, 14),
        .noise = between(u[6], 0.1, 0.3),
        .vignette = between(u[7], 0.01, 0.04),
        .zenith = {between(u[8], PL_SCENE_ZENITH_LOW, PL_SCENE_ZENITH_HIGH),
                   between(u[9], PL_SCENE_ZENITH_LOW, PL_SCENE_ZENITH_HIGH)},
        .azimuth = {between(u[10], PL_SCENE_AZIMUTH_LOW, PL_SCENE_AZIMUTH_HIGH),
                    between(u[11], PL_SCENE_AZIMUTH_LOW, PL_SCENE_AZIMUTH_HIGH)},
    };
}

/* Weights of a Gaussian whose squares sum to 1: what is filtered with it keeps its variance. Returns the radius. */
static int64_t make_weights(double deviation, float weight[2 * RADIUS_MAX + 1])
{
    const int64_t radius = (int64_t)ceil(DEVIATIONS * deviation);
    double squares = 0;
    for (int64_t i = -radius; i <= radius; i++) squares += exp(-(double)(i * i) / (deviation * deviation));
    for (int64_t i = -radius; i <= radius; i++)
        weight[i + radius] = (float)(exp(-(double)(i * i) / (2 * deviation * deviation)) / sqrt(squares));
    return radius;
}

static double height_at(const pl_scene_flight *f, uint64_t frame)
{
    const pl_philox p = STREAM(f->of, "height");
    float weight[2 * RADIUS_MAX + 1], z[2 * RADIUS_MAX + 1];
    const int64_t radius = make_weights(HEIGHT_FRAMES, weight);
    double sum = 0;
    pl_philox_normal_f32(&p, 0, f->number, frame, frame + 2 * (uint64_t)radius + 1, z);
    for (int64_t i = 0; i <= 2 * radius; i++) sum += (double)weight[i] * (double)z[i];
    return PL_SCENE_LOW_KM + (PL_SCENE_HIGH_KM - PL_SCENE_LOW_KM) * 0.5 * erfc(-sum * sqrt(0.5));
}

static double along(const double ends[2], uint64_t frame, uint64_t frames)
{
    return frames < 2 ? ends[0] : ends[0] + (ends[1] - ends[0]) * (double)frame / (double)(frames - 1);
}

/* All but the places, which add up. */
static void look(const pl_scene_flight *f, pl_scene_at *at)
{
    at->height_km = height_at(f, at->frame);
    at->zenith = along(f->zenith, at->frame, f->frames);
    at->azimuth = along(f->azimuth, at->frame, f->frames);
    at->has_label = (unsigned __int128)at->frame * f->labels % f->frames < f->labels;
}

pl_scene_at pl_scene_begin(const pl_scene_flight *f)
{
    pl_scene_at at = {0};
    look(f, &at);
    return at;
}

void pl_scene_next(const pl_scene_flight *f, pl_scene_at *at)
{
    const double ground = SPEED_METRES / f->of->gsd_metres, above = altitude_km(f->of);
    at->ground_y += ground;
    at->cloud_y += ground * above / (above - at->height_km) + f->wind_y;
    at->cloud_x += f->wind_x;
    at->frame++;
    look(f, at);
}

/* ---- fields ---- */

/* The part of a strip that begins at a place between its points: one row and column more than are wanted. */
typedef struct part {
    int64_t rows, columns;    /* wanted */
    int64_t top, left;        /* the first point */
    float weight_y, weight_x; /* of the next point */
} part;

static part part_at(double y, double x, int64_t rows, int64_t columns)
{
    const double top = floor(y), left = floor(x);
    return (part){rows, columns, (int64_t)top, (int64_t)left, (float)(y - top), (float)(x - left)};
}

static uint64_t field_elems(int64_t rows, int64_t columns, int64_t radius)
{
    return (uint64_t)((rows + 1 + 2 * radius) * (columns + 1 + 2 * radius));
}

/* Row by row in place, then the rows together: the field of the points [rows + 1, columns + 1] in `room`. */
static void fill_points(const pl_philox *p, uint32_t number, part at, double deviation, float *room, float *field)
{
    float weight[2 * RADIUS_MAX + 1];
    const int64_t radius = make_weights(deviation, weight), wide = at.columns + 1 + 2 * radius;
    for (int64_t y = 0; y < at.rows + 1 + 2 * radius; y++) {
        float *row = room + y * wide;
        const uint64_t first = (uint64_t)(at.left - radius + STRIP_MIDDLE);
        pl_philox_normal_f32(p, number, (uint64_t)(at.top - radius + y + STRIP_MIDDLE), first, first + (uint64_t)wide,
                             row);
        for (int64_t x = 0; x <= at.columns; x++) { /* the sum lies where no later one looks */
            float sum = 0;
            for (int64_t i = 0; i <= 2 * radius; i++) sum += weight[i] * row[x + i];
            row[x] = sum;
        }
    }
    for (int64_t y = 0; y <= at.rows; y++) {
        float *out = field + y * (at.columns + 1);
        memset(out, 0, (size_t)(at.columns + 1) * sizeof *out);
        for (int64_t i = 0; i <= 2 * radius; i++)
            for (int64_t x = 0; x <= at.columns; x++) out[x] += weight[i] * room[(y + i) * wide + x];
    }
}

static float bilinear(const float *field, int64_t stride, float weight_y, float weight_x)
{
    const float above = field[0] + weight_x * (field[1] - field[0]);
    const float below = field[stride] + weight_x * (field[stride + 1] - field[stride]);
    return above + weight_y * (below - above);
}

/* The points become [rows, columns] of the part, in place. */
static void shift_points(part at, float *field)
{
    for (int64_t y = 0; y < at.rows; y++)
        for (int64_t x = 0; x < at.columns; x++)
            field[y * at.columns + x] =
                bilinear(field + y * (at.columns + 1) + x, at.columns + 1, at.weight_y, at.weight_x);
}

/* ---- a frame ---- */

typedef struct canvas {
    int64_t rows, columns, reach;
    float *cloud; /* [rows + 2 reach][columns + 2 reach], how much of it is there: 0 to 1 */
    float *room;
} canvas;

static uint64_t cloud_elems(const pl_scene *s)
{
    return field_elems(s->height + 2 * reach_of(s), s->width + 2 * reach_of(s), 0);
}

uint64_t pl_scene_scratch_bytes(const pl_scene *s)
{
    const uint64_t room =
        field_elems(s->height + 2 * reach_of(s), s->width + 2 * reach_of(s), (int64_t)ceil(DEVIATIONS * CLOUD_PIXELS));
    const uint64_t ocean = field_elems(s->height, s->width, 0); /* and the noise after it */
    return (cloud_elems(s) + room + ocean) * sizeof(float);
}

static void fill_clouds(const pl_scene_flight *f, const pl_scene_at *at, const canvas *c)
{
    const pl_philox p = STREAM(f->of, "cloud");
    const part where = part_at(at->cloud_y - (double)c->reach, at->cloud_x - (double)c->reach, c->rows + 2 * c->reach,
                               c->columns + 2 * c->reach);
    fill_points(&p, f->number, where, CLOUD_PIXELS, c->room, c->cloud);
    shift_points(where, c->cloud);
    for (int64_t i = 0; i < where.rows * where.columns; i++)
        c->cloud[i] = (float)clamp(((double)c->cloud[i] - f->threshold) / SOFT_EDGE, 0, 1);
}

/* How much shadow falls on the frame's pixel: the cloud that stands towards the sun. */
typedef struct shadow {
    int64_t y, x;
    float weight_y, weight_x;
} shadow;

static shadow shadow_of(const pl_scene *s, const pl_scene_at *at)
{
    const double length = at->height_km * 1000 * tan(at->zenith * degree) / s->gsd_metres;
    const double y = -length * cos(at->azimuth * degree), x = length * sin(at->azimuth * degree); /* to the sun */
    return (shadow){(int64_t)floor(y), (int64_t)floor(x), (float)(y - floor(y)), (float)(x - floor(x))};
}

static float shade(const canvas *c, shadow s, int64_t y, int64_t x)
{
    const int64_t stride = c->columns + 2 * c->reach;
    return bilinear(c->cloud + (y + s.y + c->reach) * stride + x + s.x + c->reach, stride, s.weight_y, s.weight_x);
}

static double gain_at(const pl_scene_flight *f, int64_t y, int64_t x)
{
    const double v = 2 * ((double)y + 0.5) / f->of->height - 1, u = 2 * ((double)x + 0.5) / f->of->width - 1;
    return 1 - f->vignette * (u * u + v * v) / 2;
}

static void paint(const pl_scene_flight *f, const pl_scene_at *at, const canvas *c, const float *ocean, float *out)
{
    const bool has_shadow = f->of->cue == PL_CUE_SHADOW;
    const shadow s = has_shadow ? shadow_of(f->of, at) : (shadow){0};
    for (int64_t y = 0; y < c->rows; y++)
        for (int64_t x = 0; x < c->columns; x++) {
            const double m = (double)c->cloud[(y + c->reach) * (c->columns + 2 * c->reach) + x + c->reach];
            double v = f->ocean + (double)ocean[y * c->columns + x];
            if (has_shadow) v -= SHADOW * (double)shade(c, s, y, x);
            out[y * c->columns + x] = (float)(gain_at(f, y, x) * ((1 - m) * v + m * (f->ocean + f->cloud)));
        }
}

static void add_noise(const pl_scene_flight *f, const pl_scene_at *at, int64_t n, float *noise, float *out)
{
    const pl_philox p = STREAM(f->of, "noise");
    pl_philox_normal_f32(&p, f->number, at->frame, 0, (uint64_t)n, noise);
    for (int64_t i = 0; i < n; i++)
        out[i] = (double)noise[i] > DEAD_DEVIATION ? NAN : (float)((double)out[i] + f->noise * (double)noise[i]);
}

void pl_scene_fill(const pl_scene_flight *f, const pl_scene_at *at, void *scratch, float *out)
{
    canvas c = {f->of->height, f->of->width, reach_of(f->of), .cloud = scratch};
    const pl_philox p = STREAM(f->of, "ocean");
    const part where = part_at(at->ground_y, 0, c.rows, c.columns);
    float *ocean = c.cloud + cloud_elems(f->of);
    c.room = ocean + field_elems(c.rows, c.columns, 0);
    fill_clouds(f, at, &c);
    fill_points(&p, f->number, where, f->texture_pixels, c.room, ocean);
    shift_points(where, ocean);
    paint(f, at, &c, ocean, out);
    add_noise(f, at, c.rows * c.columns, ocean, out);
}

/* ---- beside the frames ---- */

void pl_scene_angles(const pl_scene_flight *f, const pl_scene_at *at, double *zenith, double *azimuth)
{
    const bool may_lack = !at->has_label && f->frames > 2;
    *zenith = may_lack && at->frame % 5 == 1 ? NAN : at->zenith;
    *azimuth = may_lack && at->frame % 7 == 2 ? NAN : at->azimuth;
}

/* One that the filter drops, for the reason of this number. */
static pl_scene_profile dropped(uint64_t reason, double height_km)
{
    const float base = (float)height_km;
    const pl_scene_profile p[] = {{.base_km = PL_LIDAR_MISSING},
                                  {.base_km = NAN},
                                  {.base_km = 3.5f},
                                  {.base_km = 0.02f},
                                  {.base_km = base, .dem_surface_m = 35},
                                  {.base_km = base, .lidar_surface_m = 1500},
                                  {.base_km = base, .lidar_surface_m = PL_LIDAR_MISSING},
                                  {.base_km = base, .dem_surface_m = NAN}};
    return p[reason % (sizeof p / sizeof *p)];
}

void pl_scene_profiles(const pl_scene_flight *f, const pl_scene_at *at, pl_scene_profile profile[PL_SCENE_PROFILES])
{
    const pl_philox p = STREAM(f->of, "lidar");
    const double h = at->height_km;
    float z[4];
    pl_philox_normal_f32(&p, f->number, at->frame, 0, 4, z);
    const double noisy = clamp(h + PL_SCENE_LABEL_NOISE_KM * (double)z[0], PL_SCENE_LOW_KM, PL_SCENE_HIGH_KM);
    for (int i = 0; i < PL_SCENE_PROFILES; i++) profile[i] = (pl_scene_profile){.base_km = PL_LIDAR_MISSING};
    if (at->has_label && at->frame % 4 == 0) profile[0].base_km = (float)(h > 1 ? h - 0.5 : h + 0.5);
    profile[1] = at->has_label ? (pl_scene_profile){.base_km = (float)noisy} : dropped(at->frame, h);
    if (at->frame % 3 == 0) profile[2].base_km = (float)(h > 1 ? h - 0.5 : h + 0.5);
    profile[0].seconds = -0.3;
    profile[1].seconds = 0.1 + 0.05 * clamp((double)z[1], -3, 3);
    profile[2].seconds = PL_SCENE_FRAME_SECONDS / 2;
}
