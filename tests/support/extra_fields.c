#include "support/extra_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

void refuse_extra_fields(const pl_str *text, parse_text_fn *parse)
{
    const char *const extras[] = {" x", " x=1", "  \"a b\""};
    for (size_t end = 0, begin = 0, line = 1; end < text->bytes; end++) {
        if (text->data[end] != '\n') continue;
        for (size_t k = 0; k < sizeof extras / sizeof *extras; k++) {
            pl_error err = {0};
            pl_str damaged = {0};
            char place[64];
            snprintf(place, sizeof place, "t:%zu:%zu: ", line, end - begin + (k == 2 ? 3 : 2));
            pl_str_append_bytes(&damaged, text->data, end);
            pl_str_append(&damaged, extras[k]);
            pl_str_append_bytes(&damaged, text->data + end, text->bytes - end);
            if (parse(pl_str_text(&damaged), damaged.bytes, &err) == PL_OK)
                fail_msg("\"%.*s%s\" was accepted", (int)(end - begin), text->data + begin, extras[k]);
            if (strncmp(err.text, place, strlen(place)) != 0) fail_msg("\"%s\" is not at %s", err.text, place);
            pl_str_deinit(&damaged);
        }
        begin = end + 1, line++;
    }
}
