/* Canonical composition (Unicode's form NFC), cluster by cluster, with the tables of Hugging Face's tokenizers
 * (unicode_decomposition.inc, …): ids depend on the version of Unicode. */
#ifndef PL_DATA_NFC_H
#define PL_DATA_NFC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_NFC_EXPANSION_MAX = 4 }; /* code points that one becomes, at most */

/* Nothing before this character has an influence on it or on what follows: a cluster may begin here. */
bool pl_nfc_begins(uint32_t code_point);
/* A cluster, in order; out has room for PL_NFC_EXPANSION_MAX times as many. Returns how many there are then. */
size_t pl_nfc_compose(const uint32_t *cluster, size_t count, uint32_t *out);

#endif
