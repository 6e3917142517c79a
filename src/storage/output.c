/* Files that a command wrote where it was told to, for people and other programs. All of them stay, so a mark that
 * another program might leave, too, does no harm. */
#include <string.h>

#include "base/str.h"
#include "storage/storage.h"

/* A file whose name ends so, whose first bytes are these, and among whose next ones those are. */
static const struct mark {
    const char *ending, *begins, *has, *what;
} marks[] = {
    {"", "<!doctype html>\n<html lang='en'>", "", "a page"},
    {"", "plan ", "\ncommand ", "a plan to run"},
    {"", "# plimsoll.", "", "a config"},
    {"", "{", "\"schema\": \"plimsoll.", "a report in JSON"},
    {"", "{", "\"schema\":\"plimsoll.", "a report in JSON"},
    {"", "{\"format\":\"plimsoll calibration", "", "times of this machine's kernels; safe to delete"},
    {"kenizer.json", "{", "\"version\"", "a tokenizer"},
    {"", "[\n{\"ph\":", "\"name\":\"plimsoll\"", "a trace"},
    {"", "\x93NUMPY", ", ), }", "an array"}, /* NumPy itself writes no blank there */
    {"", "\x89PNG", "Plimsoll", "a drawn page"},
    {".json", "{\n  \"arch\": \"", "\"operator\": ", "numbers of an operator"},
    {".safetensors", "", "plimsoll", "tensors for other programs"},
    {".safetensors", "", "{\"loss\":{\"dtype\":\"F64\"", "gradients, as verify writes them"},
    {".onnx", "", "plimsoll", "a model in ONNX"},
    {"", "{\"item\":", "\"source\":", "output of infer"},
    {"_flights.yaml", "data_directory:", "", "names of synthetic flights"},
};

static bool fits(const struct mark *m, const char *name, const void *head, size_t bytes)
{
    const size_t begins = strlen(m->begins);
    return pl_ends_with(name, m->ending) && bytes >= begins && memcmp(head, m->begins, begins) == 0 &&
           memmem(head, bytes, m->has, strlen(m->has));
}

const char *pl_storage_output_of(const char *name, const void *head, size_t bytes)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (fits(&marks[i], name, head, bytes)) return marks[i].what;
    return NULL;
}
