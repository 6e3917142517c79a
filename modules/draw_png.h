#ifndef PL_MODULES_DRAW_PNG_H
#define PL_MODULES_DRAW_PNG_H

#include <stddef.h>
#include <stdint.h>

/* `png` of pl_draw_module. */
int draw_png(void *memory, uint64_t bytes, const uint8_t *page, uint32_t image_size, void *to, uint64_t room,
             uint64_t *png_bytes, char *why, size_t why_room);

#endif
