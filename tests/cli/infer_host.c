/* A host program that infers in memory of its own, for the tests of infer:
 *
 *   infer_host MODEL BATCH first|trained OUT NAME=FILE…
 *
 * FILE has the bytes of input NAME for the batch. Leaves OUT/NAME, the bytes of each output, and prints the values, a
 * line each, then how many requests for memory came while three steps were made (which must give the same), and
 * whether the bytes around the model's memory are as they were. */
#include <plimsoll/plimsoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES_MAX = 16, STEPS = 3, GUARD = 64 };

static volatile unsigned long long requests;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *malloc(size_t bytes)
{
    __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
    __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, bytes);
}
void *realloc(void *block, size_t bytes)
{
    __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
    return __libc_realloc(block, bytes);
}
#endif

static pl_error error;

static void must(pl_status status)
{
    if (status == PL_OK) return;
    fprintf(stderr, "infer_host: %s: %s\n", pl_status_name(status), error.text);
    exit(pl_status_exit_code(status));
}

static void copy_file(const char *path, const char *mode, void *data, size_t bytes)
{
    FILE *f = fopen(path, mode);
    if (!f || (*mode == 'r' ? fread(data, 1, bytes, f) : fwrite(data, 1, bytes, f)) != bytes || fclose(f)) {
        fprintf(stderr, "infer_host: %s\n", path);
        exit(1);
    }
}

/* Of name=file the file, or NULL. */
static const char *file_of(int count, char **words, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strncmp(words[i], name, strlen(name)) == 0 && words[i][strlen(name)] == '=')
            return words[i] + strlen(name) + 1;
    return NULL;
}

static void print_value(const pl_infer_value *v)
{
    printf("%s %s %s", v->name, v->is_input ? "in" : "out", v->is_whole ? "i32" : "f32");
    for (unsigned i = 0; i < v->rank; i++) printf(" %llu", (unsigned long long)v->dim[i]);
    printf("\n");
}

static char *block_of(uint64_t bytes)
{
    char *block = aligned_alloc(64, (bytes + 2 * GUARD + 63) / 64 * 64);
    if (!block) exit(1);
    memset(block, 0xa5, bytes + 2 * GUARD);
    return block;
}

static int is_guarded(const char *block, uint64_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)block[i] != 0xa5 || (unsigned char)block[GUARD + bytes + (uint64_t)i] != 0xa5) return 0;
    return 1;
}

int main(int argc, char **argv)
{
    pl_infer *model = NULL;
    if (argc < 5) return 2;
    const pl_infer_options options = {
        .model = argv[1], .batch = (uint32_t)atoi(argv[2]), .seeded = strcmp(argv[3], "first") == 0};
    char *at[VALUES_MAX], *before[VALUES_MAX], path[4096];
    must(pl_infer_plan(&options, &model, &error));
    const uint64_t bytes = pl_infer_bytes(model);
    char *block = block_of(bytes);
    must(pl_infer_load(model, block + GUARD, bytes, &error));
    const size_t values = pl_infer_values(model);
    for (size_t i = 0; i < values; i++) {
        const pl_infer_value v = pl_infer_value_at(model, i);
        print_value(&v);
        at[i] = calloc(1, v.bytes), before[i] = calloc(1, v.bytes);
        const char *file = v.is_input ? file_of(argc - 5, argv + 5, v.name) : NULL;
        if (file) copy_file(file, "rb", at[i], v.bytes);
        must(pl_infer_bind(model, v.name, at[i], v.bytes, &error));
    }
    int same = 1;
    const unsigned long long asked = requests;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (asked < 100) return 3; /* they are not counted */
#endif
    for (int step = 0; step < STEPS; step++) {
        must(pl_infer_step(model, &error));
        for (size_t i = 0; i < values; i++) {
            const uint64_t size = pl_infer_value_at(model, i).bytes;
            same &= step == 0 || memcmp(at[i], before[i], size) == 0;
            memcpy(before[i], at[i], size);
        }
    }
    const unsigned long long now = requests;
    for (size_t i = 0; i < values; i++) {
        const pl_infer_value v = pl_infer_value_at(model, i);
        snprintf(path, sizeof path, "%s/%s", argv[4], v.name);
        if (!v.is_input) copy_file(path, "wb", at[i], v.bytes);
        free(at[i]), free(before[i]);
    }
    printf("requests %llu\nsame %d\nguarded %d\n", now - asked, same, is_guarded(block, bytes));
    pl_infer_close(model);
    free(block);
    return 0;
}
