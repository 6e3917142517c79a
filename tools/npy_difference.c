/* How far two arrays of f32 are from each other: npy_difference A.npy B.npy prints the largest difference over the
 * largest magnitude of A, alone on stdout. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 10 };

/* Stands at the first number behind the header (.npy of version 1.0); -1: it is none. */
static int skip_header(FILE *f)
{
    unsigned char head[HEADER_BYTES];
    if (fread(head, 1, sizeof head, f) != sizeof head || memcmp(head, "\x93NUMPY", 6) != 0) return -1;
    return fseek(f, head[8] | head[9] << 8, SEEK_CUR);
}

static int compare(FILE *a, FILE *b)
{
    double largest = 0, difference = 0;
    float x, y;
    while (fread(&x, sizeof x, 1, a) == 1) {
        if (fread(&y, sizeof y, 1, b) != 1) return -1;
        if (!(fabs((double)x - y) <= difference)) difference = fabs((double)x - y);
        if (fabs(x) > largest) largest = fabs(x);
    }
    if (largest == 0 || fread(&y, sizeof y, 1, b) == 1) return -1;
    return printf("%.3g\n", difference / largest) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    FILE *a = argc == 3 ? fopen(argv[1], "rb") : NULL, *b = argc == 3 ? fopen(argv[2], "rb") : NULL;
    const int failed = !a || !b || skip_header(a) || skip_header(b) || compare(a, b);
    if (failed) fprintf(stderr, "npy_difference A.npy B.npy: two arrays of f32 of one shape are wanted\n");
    if (a) fclose(a);
    if (b) fclose(b);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
