/* Fields as pictures: BMP files of 8 bits a pixel, each with its colours, inside of the page. The colours are those of
 * viridis (Smith, van der Walt, Firing: matplotlib), by a polynomial of degree 6 in each channel (Matt Zucker's fit,
 * public domain): of equal steps that the eye sees as such, with and without colour-blindness, and in grey. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "show/chart.h"
#include "show/html.h"

enum { HEAD = 54, COLOURS = 256, STOPS = 16 };

static unsigned char colour_byte(double t, const double c[7])
{
    double sum = 0;
    for (int i = 7; i-- > 0;) sum = sum * t + c[i];
    return (unsigned char)lround(fmin(fmax(sum, 0), 1) * 255);
}

/* Of t from 0 to 1. */
static void find_colour(double t, unsigned char rgb[3])
{
    static const double c[3][7] = {
        {0.2777273272234177, 0.1050930431085774, -0.3308618287255563, -4.634230498983486, 6.228269936347081,
         4.776384997670288, -5.435455855934631},
        {0.005407344544966578, 1.404613529898575, 0.214847559468213, -5.799100973351585, 14.17993336680509,
         -13.74514537774601, 4.645852612178535},
        {0.3340998053353061, 1.384590162594685, 0.09509516302823659, -19.33244095627987, 56.69055260068105,
         -65.35303263337234, 26.3124352495832},
    };
    for (int k = 0; k < 3; k++) rgb[k] = colour_byte(t, c[k]);
}

static void put_little(pl_base64 *e, uint32_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) pl_base64_put(e, number >> 8 * i & 255);
}

/* ---- a picture ---- */

typedef struct scale {
    double least, largest;
    bool found; /* a finite number is there at all */
} scale;

/* The one after the last colour is for what is no number. */
static unsigned level_of(const scale *s, float x)
{
    if (!isfinite(x)) return PL_PICTURE_LEVELS;
    if (!(s->largest > s->least)) return PL_PICTURE_LEVELS / 2;
    return (unsigned)(((double)x - s->least) / (s->largest - s->least) * (PL_PICTURE_LEVELS - 1) + 0.5);
}

static void put_head(pl_base64 *e, uint32_t side, uint32_t row_bytes)
{
    pl_base64_put(e, 'B'), pl_base64_put(e, 'M');
    put_little(e, HEAD + 4 * COLOURS + row_bytes * side, 4);
    put_little(e, 0, 4);
    put_little(e, HEAD + 4 * COLOURS, 4);
    put_little(e, HEAD - 14, 4);
    put_little(e, side, 4), put_little(e, side, 4);
    put_little(e, 1, 2), put_little(e, 8, 2);
    put_little(e, 0, 4), put_little(e, row_bytes * side, 4);
    put_little(e, 2835, 4), put_little(e, 2835, 4); /* pixels a metre: 72 an inch */
    put_little(e, COLOURS, 4), put_little(e, 0, 4);
}

static void put_colours(pl_base64 *e)
{
    unsigned char rgb[3];
    for (int i = 0; i < PL_PICTURE_LEVELS; i++) {
        find_colour((double)i / (PL_PICTURE_LEVELS - 1), rgb);
        put_little(e, (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2], 4);
    }
    put_little(e, 0xe6007a, 4);
}

/* From the last row to the first, each of a multiple of four bytes: so BMP has it. */
static void put_picture(const scale *s, uint32_t side, const float *pixel, pl_str *out)
{
    const uint32_t row_bytes = (side + 3) / 4 * 4;
    pl_base64 e = {.out = out};
    put_head(&e, side, row_bytes);
    put_colours(&e);
    for (uint32_t y = side; y-- > 0;)
        for (uint32_t x = 0; x < row_bytes; x++)
            pl_base64_put(&e, x < side ? level_of(s, pixel[(size_t)y * side + x]) : 0);
    pl_base64_end(&e);
}

/* ---- a row of them ---- */

static void widen(scale *s, const float *pixel, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(pixel[i])) continue;
        s->least = s->found ? fmin(s->least, pixel[i]) : pixel[i];
        s->largest = s->found ? fmax(s->largest, pixel[i]) : pixel[i];
        s->found = true;
    }
}

static void put_scale(const char *name, const scale *s, pl_str *out)
{
    unsigned char rgb[3];
    pl_str_append(out, "<div class='scale'><b>");
    pl_html_text(out, name);
    pl_str_append(out, "</b>");
    if (!s->found) {
        pl_str_append(out, "<i class='none'></i><span>no finite number</span></div>\n");
        return;
    }
    pl_str_append(out, "<i style='background:linear-gradient(90deg");
    for (int i = 0; i <= STOPS; i++) {
        find_colour((double)i / STOPS, rgb);
        pl_str_printf(out, ",#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
    }
    pl_str_printf(out, ")'></i><span><span>%.4g</span><span>%.4g</span></span></div>\n", s->least, s->largest);
}

static void put_field(const pl_chart_fields *f, uint32_t i, const scale *s, pl_str *out)
{
    const float *pixel = f->pixel + (size_t)i * f->side * f->side;
    scale own = {.found = false};
    char count[32];
    widen(&own, pixel, (size_t)f->side * f->side);
    pl_str_printf(out, "<figure><img alt='%s, %s, %s %" PRIu32 ": ", f->of, f->name, f->each, f->number[i]);
    if (own.found)
        pl_str_printf(out, "from %.4g to %.4g", own.least, own.largest);
    else
        pl_str_append(out, "no finite number");
    if (f->not_finite[i]) pl_str_printf(out, ", %s not finite", pl_format_count(f->not_finite[i], count, sizeof count));
    pl_str_append(out, "' src='data:image/bmp;base64,");
    put_picture(s, f->side, pixel, out);
    pl_str_printf(out, "'><figcaption>%s %" PRIu32, f->each, f->number[i]);
    if (own.found)
        pl_str_printf(out, "<br>%.3g to %.3g", own.least, own.largest);
    else
        pl_str_append(out, "<br>not finite");
    pl_str_append(out, "</figcaption></figure>\n");
}

void pl_chart_draw_fields(const pl_chart_fields *f, pl_str *out)
{
    scale s = {.found = false};
    widen(&s, f->pixel, (size_t)f->count * f->side * f->side);
    pl_str_append(out, f->count > 1 ? "<div class='field'>" : "<div class='field alone'>");
    put_scale(f->name, &s, out);
    for (uint32_t i = 0; i < f->count; i++) put_field(f, i, &s, out);
    pl_str_append(out, "</div>\n");
}
