/* Feeds a target every file it is given, and every file of every folder, in the order of their names: the seeds and
 * what once broke something, again, in trees without clang. Prints how many. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX = 1 << 24 };

static size_t replay_file(const char *path)
{
    static uint8_t buffer[INPUT_MAX];
    FILE *f = fopen(path, "rb");
    FUZZ_CHECK(f, "%s cannot be opened", path);
    size_t size = fread(buffer, 1, sizeof buffer, f);
    fclose(f);
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees a byte too many */
    FUZZ_CHECK(exact, "no memory for %s", path);
    memcpy(exact, buffer, size);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static size_t replay(const char *path)
{
    struct stat st;
    FUZZ_CHECK(stat(path, &st) == 0, "%s is not there", path);
    if (!S_ISDIR(st.st_mode)) return replay_file(path);
    struct dirent **names;
    int count = scandir(path, &names, is_visible, alphasort);
    size_t done = 0;
    for (int i = 0; i < count; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name);
        done += replay(inner);
        free(names[i]);
    }
    free(names);
    return done;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) count += replay(argv[i]);
    printf("%zu inputs\n", count);
    return count ? 0 : 1;
}
