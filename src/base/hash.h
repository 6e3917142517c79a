/* XXH64 (xxhash, BSD 2-clause), inlined: no library to link, and the size of its state is known. */
#ifndef PL_BASE_HASH_H
#define PL_BASE_HASH_H

#define XXH_INLINE_ALL
#pragma GCC diagnostic push
/* gcc 12 at -O3 sees a read before the end of what is hashed where its length is a constant under 32. */
#pragma GCC diagnostic ignored "-Warray-bounds"
#include <xxhash.h>
#pragma GCC diagnostic pop

#endif
