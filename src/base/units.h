/* Sizes as people write and read them. "500MB" is 500·10⁶ bytes, "500MiB" 500·2²⁰; a bare number is bytes; k, M, G, T
 * with optional i and B, any case of the letters, an optional space, decimals allowed ("1.5GiB").
 * Whole numbers are exact. */
#ifndef PL_BASE_UNITS_H
#define PL_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* 0 on success, -1 when the text is no size, is negative or does not fit 63 bits. */
int pl_parse_bytes(const char *text, uint64_t *bytes);

/* "90", "90s", "15min" (or "15m"), "12h", "1.5d": a time in seconds, more than none. 0 on success, −1 when it is none
 * or beyond a hundred years. */
int pl_parse_seconds(const char *text, double *seconds);

/* "97.4 MB": decimal units, three significant digits, into buf (16 bytes suffice); returns buf. */
const char *pl_format_bytes(uint64_t bytes, char *buf, size_t room);

/* "1,234,567" into buf (32 bytes suffice); returns buf. */
const char *pl_format_count(uint64_t count, char *buf, size_t room);

/* "340 ms", "12.3 s", "4 min 05 s", "2 h 03 min" into buf (32 bytes suffice), "?" when it is no time; returns buf. */
const char *pl_format_seconds(double seconds, char *buf, size_t room);

/* So many a second: "7,104", below a thousand three digits ("84.2"), into buf (32 bytes suffice); returns buf. */
const char *pl_format_rate(double per_second, char *buf, size_t room);

/* Of floating-point operations, or the like: "512", "201 M", "1.23 G", into buf (32 bytes suffice); returns buf. */
const char *pl_format_operations(double count, char *buf, size_t room);

/* What a word has behind it: "", or "s" where the count is not one. */
const char *pl_plural(uint64_t count);

#endif
