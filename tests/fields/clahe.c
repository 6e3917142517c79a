/* clahe HEIGHT WIDTH CLIP_LIMIT: an image of f32 from standard input, equalised, to standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "data/clouds/clahe.h"

int main(int argc, char **argv)
{
    const uint32_t height = argc > 3 ? (uint32_t)atoi(argv[1]) : 1, width = argc > 3 ? (uint32_t)atoi(argv[2]) : 1;
    const size_t pixels = (size_t)height * width;
    float *image = malloc(pixels * sizeof *image);
    void *scratch = malloc(pl_clahe_scratch_bytes(height, width));
    if (!image || !scratch || fread(image, sizeof *image, pixels, stdin) != pixels) return 1;
    pl_clahe(height, width, argc > 3 ? atof(argv[3]) : 0, image, scratch, image);
    const int ok = fwrite(image, sizeof *image, pixels, stdout) == pixels;
    free(scratch);
    free(image);
    return ok ? 0 : 1;
}
