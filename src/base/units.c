#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"
#include "base/size.h"

/* "k" 1000, "MiB" 2^20, "" or "B" 1; 0 when it is no unit. */
static uint64_t read_unit(const char *text)
{
    uint64_t unit = 1, base = 1000;
    const char *letters = "kmgt";
    while (*text == ' ') text++;
    const char *at = *text ? strchr(letters, tolower((unsigned char)*text)) : NULL;
    if (at) {
        text++;
        if (*text == 'i' || *text == 'I') base = 1024, text++;
        for (const char *c = letters; c <= at; c++) unit *= base;
    }
    if (*text == 'b' || *text == 'B') text++;
    while (isspace((unsigned char)*text)) text++;
    return *text ? 0 : unit;
}

/* Whole numbers are exact; a double would round those above 2^53. */
int pl_parse_bytes(const char *text, uint64_t *bytes)
{
    while (isspace((unsigned char)*text)) text++;
    if (!isdigit((unsigned char)*text) && *text != '.') return -1;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return -1;
    char *end;
    double number = pl_read_double(text, &end);
    uint64_t unit = read_unit(end), whole;
    if (!unit) return -1;
    if (text + strspn(text, "0123456789") == end) {
        errno = 0;
        whole = strtoull(text, NULL, 10);
        if (errno || pl_size_mul(whole, unit, &whole) || whole > INT64_MAX) return -1;
        *bytes = whole;
        return 0;
    }
    double total = number * (double)unit + 0.5;
    if (!(total < 0x1p63) || (number > 0 && total < 1)) return -1; /* something must not become nothing */
    *bytes = (uint64_t)total;
    return 0;
}

int pl_parse_seconds(const char *text, double *seconds)
{
    static const struct {
        const char *word;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
    static const double most = 100 * 365.25 * 86400;
    char *end;
    if (!isdigit((unsigned char)*text) && *text != '.') return -1;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return -1;
    const double number = pl_read_double(text, &end);
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].word) == 0) {
            *seconds = number * units[i].seconds;
            return *seconds > 0 && *seconds <= most ? 0 : -1;
        }
    return -1;
}

const char *pl_format_bytes(uint64_t bytes, char *buf, size_t room)
{
    static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 999.5 && unit < 6) value /= 1000, unit++;
    int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    if (unit >= 2 && value >= 99.95) decimals = 1;
    pl_print(buf, room, "%.*f %s", decimals, value, names[unit]);
    return buf;
}

const char *pl_format_count(uint64_t count, char *buf, size_t room)
{
    char digits[24];
    int n = pl_print(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t out = 0;
    for (int i = 0; i < n && out + 2 < room; i++) {
        if (i && (n - i) % 3 == 0) buf[out++] = ',';
        buf[out++] = digits[i];
    }
    if (room) buf[out < room ? out : room - 1] = 0;
    return buf;
}

const char *pl_format_seconds(double s, char *buf, size_t room)
{
    if (!(s >= 0) || isinf(s))
        pl_print(buf, room, "?");
    else if (s < 0.9995e-3)
        pl_print(buf, room, "%.3g us", s * 1e6);
    else if (s < 0.9995)
        pl_print(buf, room, "%.3g ms", s * 1e3);
    else if (s < 99.5)
        pl_print(buf, room, "%.3g s", s);
    else if (s < 3600)
        pl_print(buf, room, "%d min %02d s", (int)(s / 60), (int)s % 60);
    else if (s > 3.6e12) /* a thousand million hours */
        pl_print(buf, room, "%.3g h", s / 3600);
    else
        pl_print(buf, room, "%lld h %02d min", (long long)(s / 3600), (int)(fmod(s, 3600) / 60));
    return buf;
}

const char *pl_plural(uint64_t count) { return count == 1 ? "" : "s"; }

const char *pl_format_rate(double per_second, char *buf, size_t room)
{
    if (per_second >= 1000 && per_second < 1e18) return pl_format_count((uint64_t)per_second, buf, room);
    pl_print(buf, room, "%.3g", per_second);
    return buf;
}

const char *pl_format_operations(double count, char *buf, size_t room)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    int unit = 0;
    while (count >= 999.5 && unit < 6) count /= 1000, unit++;
    pl_print(buf, room, "%.*f%s", unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2, count, units[unit]);
    return buf;
}
