/* metrics.jsonl at a resume: what is kept are whole lines from the beginning of the file, of steps up to the one asked
 * for, and a line can be added to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"
#include "store/metrics.h"

/* The file's bytes now; the caller frees them. */
static uint8_t *contents(const char *path, uint64_t *size)
{
    pl_error err = {0};
    char *text;
    size_t bytes;
    FUZZ_CHECK(pl_file_read_all(path, UINT64_MAX, &text, &bytes, &err) == PL_OK, "%s", err.text);
    *size = bytes;
    return (uint8_t *)text;
}

/* A file with a name of its own: the links of /proc/self/fd are not followed. */
static const char *file_of(const uint8_t *data, size_t size)
{
    static char path[PL_FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/metrics.jsonl", fuzz_folder());
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0, "no room for a file in memory");
    return path;
}

static void check_kept(const char *path, const uint8_t *data, size_t size, uint64_t last_step)
{
    uint64_t kept;
    uint8_t *text = contents(path, &kept);
    FUZZ_CHECK(kept <= size && memcmp(text, data, kept) == 0, "what is kept was not there");
    FUZZ_CHECK(kept == 0 || text[kept - 1] == '\n', "a torn line is kept");
    FUZZ_CHECK(last_step != PL_METRICS_NONE || kept == 0, "a fresh run keeps lines");
    for (const uint8_t *line = text; line < text + kept;) {
        FUZZ_CHECK(strtoull((const char *)line + 8, NULL, 10) <= last_step, "a line of a later step is kept");
        line = (const uint8_t *)memchr(line, '\n', (size_t)(text + kept - line)) + 1;
    }
    pl_free(text);
}

static void check_goes_on(pl_metrics *m, uint64_t last_step)
{
    pl_error err = {0};
    uint64_t bytes = m->bytes, step = last_step == PL_METRICS_NONE ? 0 : last_step;
    pl_metric value[] = {{"loss", 1.5}, {"tokens", 4096}};
    FUZZ_CHECK(pl_metrics_write(m, step, value, 2, &err) == PL_OK, "%s", err.text);
    char path[PL_FILE_PATH_MAX];
    strcpy(path, m->path);
    pl_metrics_close(m);
    FUZZ_CHECK(pl_metrics_open(m, path, step, &err) == PL_OK, "what was written is refused: %s", err.text);
    FUZZ_CHECK(m->bytes > bytes, "the line that was written is gone");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pl_metrics metrics;
    static const uint64_t steps[] = {0, 1, 5, 1000, UINT64_MAX - 1, PL_METRICS_NONE};
    uint64_t before = pl_alloc_live_blocks();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        pl_error err = {0};
        const char *path = file_of(data, size);
        pl_status status = pl_metrics_open(&metrics, path, steps[i], &err);
        if (status == PL_OK) {
            check_kept(path, data, size, steps[i]);
            check_goes_on(&metrics, steps[i]);
            pl_metrics_close(&metrics);
        } else {
            uint64_t left;
            uint8_t *text = contents(path, &left);
            fuzz_refused(status, &err, path, FUZZ_LINE_COLUMN);
            FUZZ_CHECK(left == size && memcmp(text, data, size) == 0, "a file that was refused was changed");
            pl_free(text);
        }
    }
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
