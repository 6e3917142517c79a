#include "show/html.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/locale.h"

void pl_html_text_bytes(pl_str *out, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < bytes;) {
        size_t n = pl_json_utf8_length(p + i, bytes - i);
        if (n == 0 || (p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') || p[i] == 0x7f)
            pl_str_append(out, "\xef\xbf\xbd");
        else if (strchr("&<>\"'", p[i]))
            pl_str_printf(out, "&#%d;", p[i]);
        else
            pl_str_append_bytes(out, p + i, n);
        i += n ? n : 1;
    }
}

void pl_html_lines(pl_str *out, const char *text)
{
    size_t bytes = strlen(text);
    while (bytes && text[bytes - 1] == '\n') bytes--;
    for (size_t at = 0, line; at < bytes; at += line + 1) {
        const char *end = memchr(text + at, '\n', bytes - at);
        line = end ? (size_t)(end - (text + at)) : bytes - at;
        if (at) pl_str_append(out, "<br>");
        pl_html_text_bytes(out, text + at, line);
    }
}

void pl_html_text(pl_str *out, const char *text) { pl_html_text_bytes(out, text, strlen(text)); }

double pl_html_tick(double range, int ticks)
{
    if (!(range > 0)) return 1;
    double step = pow(10, floor(log10(range / ticks)));
    if (range / step <= ticks) return step;
    if (range / (2 * step) <= ticks) return 2 * step;
    return range / (5 * step) <= ticks ? 5 * step : 10 * step;
}

const char *pl_html_tick_text(double value, double step, char text[32])
{
    const int last = (int)floor(log10(step) + 1e-9); /* place of the last digit that differs */
    const double size = fmax(fabs(value), step);
    if (fabs(value) < 1e-9 * step)
        pl_print(text, 32, "0");
    else if (size < 1e7 && last > -7)
        pl_print(text, 32, "%.*f", last < 0 ? -last : 0, value);
    else
        pl_print(text, 32, "%.*g", (int)floor(log10(size)) - last + 1, value);
    return text;
}
