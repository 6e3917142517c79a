/* Forms by the endings of names; in every process, since a run opens its texts in the planned form. */
#include <string.h>
#include <strings.h>

#include "texts/form.h"

static const pl_text_ending endings[] = {
    {".jsonl", PL_TEXTS_JSONL, NULL, NULL},
    {".ndjson", PL_TEXTS_JSONL, NULL, NULL},
    {".csv", PL_TEXTS_CSV, NULL, NULL},
    {".json", PL_TEXTS_SQUAD, "is one JSON document", "convert it (jq -c '.[]')"},
    {".tsv", PL_TEXTS_WHOLE, "has tabs between its columns, where CSV with commas is read", "convert it"},
    {".parquet", PL_TEXTS_WHOLE, "is Parquet, which is not read", "convert it to JSON lines or CSV"},
    {".zst", PL_TEXTS_WHOLE, "is compressed", "unpack it (unzstd)"},
    {".xz", PL_TEXTS_WHOLE, "is compressed", "unpack it (unxz -k)"},
    {".bz2", PL_TEXTS_WHOLE, "is compressed", "unpack it (bunzip2 -k)"},
    {".zip", PL_TEXTS_WHOLE, "is compressed", "unpack it (unzip)"},
};

const pl_text_ending *pl_text_ending_of(const char *path)
{
    size_t n = strlen(path);
    if (n > 3 && strcasecmp(path + n - 3, ".gz") == 0) n -= 3; /* its content counts */
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t m = strlen(endings[i].ending);
        if (n > m && strncasecmp(path + n - m, endings[i].ending, m) == 0) return &endings[i];
    }
    return NULL;
}
