/* Which rows of an array are nearest to one of them, by the cosine of the angle between them: npy_nearest A.npy ROW
 * COUNT prints so many lines, "number cosine", the nearest first. A is of f16, its first dimension the rows. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 10 };

static double value_of(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half >> 15 ? -size : size;
}

/* The rows behind the header; NULL: it is no such array. */
static uint16_t *read_rows(FILE *f, unsigned long long *rows, size_t *width)
{
    unsigned char head[HEADER_BYTES];
    char text[1024] = "";
    const char *shape;
    if (fread(head, 1, sizeof head, f) != sizeof head || memcmp(head, "\x93NUMPY", 6) != 0) return NULL;
    const size_t bytes = (size_t)(head[8] | head[9] << 8);
    if (bytes >= sizeof text || fread(text, 1, bytes, f) != bytes || !strstr(text, "<f2")) return NULL;
    shape = strchr(text, '(');
    if (!shape || sscanf(shape, "(%llu", rows) != 1 || *rows == 0) return NULL;
    const long begin = ftell(f);
    if (fseek(f, 0, SEEK_END) != 0) return NULL;
    const size_t data = (size_t)(ftell(f) - begin);
    *width = data / sizeof(uint16_t) / *rows;
    uint16_t *numbers = malloc(data + 1);
    if (!numbers || fseek(f, begin, SEEK_SET) != 0 || fread(numbers, 1, data, f) != data) return free(numbers), NULL;
    return numbers;
}

static double cosine(const uint16_t *a, const uint16_t *b, size_t width)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < width; i++) {
        const double x = value_of(a[i]), y = value_of(b[i]);
        ab += x * y, aa += x * x, bb += y * y;
    }
    return ab / sqrt(aa * bb);
}

static int print_nearest(const uint16_t *numbers, unsigned long long rows, size_t width, unsigned long long row,
                         unsigned long long count)
{
    double *of = row < rows ? malloc(rows * sizeof *of) : NULL;
    if (!of) return -1;
    for (unsigned long long i = 0; i < rows; i++) of[i] = cosine(numbers + row * width, numbers + i * width, width);
    for (unsigned long long k = 0; k < count && k < rows; k++) {
        unsigned long long best = 0;
        for (unsigned long long i = 1; i < rows; i++)
            if (of[i] > of[best]) best = i;
        printf("%llu %.4f\n", best, of[best]);
        of[best] = -2;
    }
    free(of);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long long rows = 0;
    size_t width = 0;
    FILE *f = argc == 4 ? fopen(argv[1], "rb") : NULL;
    uint16_t *numbers = f ? read_rows(f, &rows, &width) : NULL;
    const int failed =
        !numbers || print_nearest(numbers, rows, width, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10)) != 0;
    if (failed) fprintf(stderr, "npy_nearest A.npy ROW COUNT: an array of f16, and one of its rows, are wanted\n");
    free(numbers);
    if (f) fclose(f);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
