/* Bytes as letters, for files inside of a page. */
#include "show/html.h"

static void put_letters(pl_base64 *e, int count)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char four[4] = {'=', '=', '=', '='};
    for (int i = 0; i < count; i++) four[i] = letters[e->bits >> (18 - 6 * i) & 63];
    pl_str_append_bytes(e->out, four, 4);
    e->bits = 0, e->bytes = 0;
}

void pl_base64_put(pl_base64 *e, unsigned byte)
{
    e->bits |= (uint32_t)byte << (16 - 8 * e->bytes);
    if (++e->bytes == 3) put_letters(e, 4);
}

void pl_base64_end(pl_base64 *e)
{
    if (e->bytes) put_letters(e, e->bytes + 1);
}
