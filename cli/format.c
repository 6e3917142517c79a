#include "format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *pl_show_count(uint64_t count, char *text)
{
    char digits[PL_FORMAT_BYTES];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, count), at = 0;
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

const char *pl_show_plural(uint64_t count) { return count == 1 ? "" : "s"; }

const char *pl_show_bytes(uint64_t bytes, char *text)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 999.5 && unit < 5) value /= 1000, unit++;
    int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, PL_FORMAT_BYTES, "%.*f %s", decimals, value, units[unit]);
    return text;
}

const char *pl_show_rate(double rate, char *text)
{
    if (!(rate < 1e15))
        snprintf(text, PL_FORMAT_BYTES, "-");
    else if (rate < 9.95)
        snprintf(text, PL_FORMAT_BYTES, "%.2g", rate);
    else if (rate < 999.5)
        snprintf(text, PL_FORMAT_BYTES, "%.0f", rate);
    else if (rate < 99950)
        snprintf(text, PL_FORMAT_BYTES, "%.1fk", rate / 1e3);
    else if (rate < 999500)
        snprintf(text, PL_FORMAT_BYTES, "%.0fk", rate / 1e3);
    else
        snprintf(text, PL_FORMAT_BYTES, "%.1fM", rate / 1e6);
    return text;
}

const char *pl_show_metric(double value, int decimals, char *text)
{
    if (!(value < 1e30))
        snprintf(text, PL_FORMAT_BYTES, value > 0 ? "above 1e30" : "-");
    else if (decimals >= 0)
        snprintf(text, PL_FORMAT_BYTES, "%.*f", decimals, value);
    else
        snprintf(text, PL_FORMAT_BYTES, value < 99.995 ? "%.2f" : value < 9999.5 ? "%.1f" : "%.3g", value);
    return text;
}

const char *pl_show_seconds(double seconds, char *text)
{
    if (!(seconds >= 0) || seconds > 3.15e9)
        snprintf(text, PL_FORMAT_BYTES, "-");
    else if (seconds < 0.0009995)
        snprintf(text, PL_FORMAT_BYTES, "%.0f us", 1e6 * seconds);
    else if (seconds < 0.00995)
        snprintf(text, PL_FORMAT_BYTES, "%.1f ms", 1e3 * seconds);
    else if (seconds < 0.9995)
        snprintf(text, PL_FORMAT_BYTES, "%.0f ms", 1e3 * seconds);
    else if (seconds < 9.995)
        snprintf(text, PL_FORMAT_BYTES, "%.1f s", seconds);
    else if (seconds < 59.5)
        snprintf(text, PL_FORMAT_BYTES, "%.0f s", seconds);
    else {
        uint64_t s = (uint64_t)llround(seconds);
        if (s < 3600)
            snprintf(text, PL_FORMAT_BYTES, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
        else
            snprintf(text, PL_FORMAT_BYTES, "%" PRIu64 " h %02" PRIu64 " min", s / 3600, s / 60 % 60);
    }
    return text;
}
