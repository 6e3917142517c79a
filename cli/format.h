/* Numbers as people read them. Each writes into the caller's buffer (PL_FORMAT_BYTES suffice) and returns it. */
#ifndef PL_CLI_FORMAT_H
#define PL_CLI_FORMAT_H

#include <stdint.h>

enum { PL_FORMAT_BYTES = 32 };

const char *pl_show_count(uint64_t count, char *text);   /* "4,967,424" */
const char *pl_show_bytes(uint64_t bytes, char *text);   /* "104 MB", "3.41 GB" */
const char *pl_show_rate(double per_second, char *text); /* "0.12", "640", "6.4k", "1.2M" */
/* e to the loss: "67.40", "4821.3", "1.2e+08"; "-" when there is none */
const char *pl_show_metric(double value, int decimals, char *text); /* decimals −1: as many as there is room for */
const char *pl_show_plural(uint64_t count);                         /* behind a word: "", or "s" where it is not one */
const char *pl_show_seconds(double seconds, char *text); /* "340 us", "1.2 ms", "12 s", "2 min 10 s", "3 h 05 min" */

#endif
