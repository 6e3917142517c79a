/* The table as a file:
 *
 *      {"format":"plimsoll calibration 3","machine":{"cpu":"…","isa":"avx512","cores":2,"kernels":"…"},"entries":[
 *      {"key":"…","seconds":1.2e-4,"spread":2e-6,"work":9e-5,"samples":240},
 *      …
 *      ]}
 *
 * What a short look measured has "brief":true besides, what was measured on a busy machine "busy":2.5, a job "at":….
 *
 * An entry a line, so that it is read line by line: in a small container the whole of it as a tree would take what the
 * plan needs. The entries that were used last stand last; those in front go when the file would be larger than
 * PL_CALIBRATION_FILE_BYTES_MAX. It is a cache: safe to delete, and whatever is wrong with it costs a new measurement
 * and a warning, nothing more.
 *
 * Its name tells the machine and the code of the kernels, so that builds which share a folder keep a table each. Of one
 * machine's tables the BUILDS_KEPT that were used last stay: a folder does not grow with the number of builds. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/philox.h"
#include "base/remove.h"
#include "calibrate/table.h"

#define FORMAT    "plimsoll calibration 3"
#define HEAD_TAIL ",\"entries\":["
#define TAIL      "]}"
enum { ENTRY_EXTRA_BYTES = 192, HEADER_BYTES = 1024, BUILDS_KEPT = 6, NAME_BYTES = 64 };
enum { LINE_BYTES = 6 * PL_CALIBRATION_KEY_BYTES + ENTRY_EXTRA_BYTES }; /* a byte of a key takes six at most */

static void warn(pl_calibration *c, const char *what)
{
    snprintf(c->warning, sizeof c->warning, "the calibration file %.300s %s; the kernels are measured anew", c->path,
             what);
}

static void kernels_text(const pl_calibration_machine *m, char text[24])
{
    snprintf(text, 24, "%016" PRIx64, m->kernels);
}

static bool is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, wanted) == 0;
}

/* NULL when the table was measured here, else how it was not. */
static const char *judge(const pl_calibration *c, const json_t *root)
{
    const json_t *machine = json_object_get(root, "machine");
    char kernels[24];
    kernels_text(&c->machine, kernels);
    if (!is_text(root, "format", FORMAT)) return "is not a calibration of this version";
    if (!is_text(machine, "cpu", c->machine.cpu) || !is_text(machine, "isa", c->machine.isa) ||
        json_integer_value(json_object_get(machine, "cores")) != c->machine.cores)
        return "was measured on another machine";
    if (!is_text(machine, "kernels", kernels)) return "was measured by another build";
    return NULL;
}

static bool is_seconds(const json_t *value)
{
    double s = json_number_value(value);
    return json_is_number(value) && isfinite(s) && s >= 0 && s < 1e6;
}

/* 0, or -1 when the entry is not as it was written; status says whether there was memory. */
static int take_entry(pl_calibration *c, const json_t *e, pl_status *status, pl_error *err)
{
    const char *key = json_string_value(json_object_get(e, "key"));
    const json_t *seconds = json_object_get(e, "seconds"), *spread = json_object_get(e, "spread");
    const json_t *work = json_object_get(e, "work"), *busy = json_object_get(e, "busy"), *at = json_object_get(e, "at");
    json_int_t samples = json_integer_value(json_object_get(e, "samples"));
    if ((busy && !is_seconds(busy)) || (at && (!json_is_integer(at) || json_integer_value(at) < 0))) return -1;
    if (!key || !*key || strlen(key) >= PL_CALIBRATION_KEY_BYTES || !is_seconds(seconds) || !is_seconds(spread) ||
        !is_seconds(work) || !json_is_integer(json_object_get(e, "samples")) || samples < 0)
        return -1;
    const pl_calibration_entry figures = {.seconds = json_number_value(seconds),
                                          .spread = json_number_value(spread),
                                          .work = json_number_value(work),
                                          .busy = json_number_value(busy),
                                          .at = (uint64_t)json_integer_value(at),
                                          .samples = (uint64_t)samples,
                                          .brief = json_is_true(json_object_get(e, "brief"))};
    *status = pl_calibration_put(c, key, &figures, err);
    return 0;
}

/* ---- line by line ---- */

typedef struct reader {
    int fd;
    uint64_t at, bytes; /* of the file: what was read, all */
    size_t next, end;   /* of the chunk */
    char chunk[4096], line[LINE_BYTES];
} reader;

/* The length of the next line; -1 when there is none, or none that we wrote: they are shorter, and end. */
static int next_line(reader *r, const char *path)
{
    for (size_t used = 0; used < sizeof r->line;) {
        if (r->next == r->end) {
            uint64_t left = r->bytes - r->at;
            r->next = 0;
            r->end = left < sizeof r->chunk ? (size_t)left : sizeof r->chunk;
            if (left == 0 || pl_file_read_at(r->fd, path, r->at, r->chunk, r->end, NULL) != PL_OK) return -1;
            r->at += r->end;
        }
        char c = r->chunk[r->next++];
        r->line[used] = c == '\n' ? 0 : c;
        if (c == '\n') return (int)used;
        used++;
    }
    return -1;
}

/* A line as an object, without what stands behind it. PL_E_DATA: it is none. */
static pl_status parse_line(const reader *r, int bytes, const char *tail, json_t **object, pl_error *err)
{
    json_error_t where;
    int rest = bytes - (int)strlen(tail);
    *object = NULL;
    if (rest < 0 || strcmp(r->line + rest, tail) != 0) return PL_E_DATA;
    pl_status status = pl_json_read(r->line, (size_t)rest, JSON_REJECT_DUPLICATES, object, &where);
    return status == PL_E_NOMEM ? pl_fail(err, status, "no memory to read the calibration file") : status;
}

static pl_status read_head(const pl_calibration *c, reader *r, const char **wrong, pl_error *err)
{
    json_t *head;
    int bytes = next_line(r, c->path), rest = bytes - (int)strlen(HEAD_TAIL);
    *wrong = "is damaged, or of another version";
    if (rest < 0 || strcmp(r->line + rest, HEAD_TAIL) != 0) return PL_OK;
    strcpy(r->line + rest, "}");
    pl_status status = parse_line(r, rest + 1, "", &head, err);
    if (status == PL_OK) *wrong = judge(c, head);
    json_decref(head);
    return status == PL_E_NOMEM ? status : PL_OK;
}

/* *wrong: how an entry is not as it was written; NULL when all are. */
static pl_status read_entries(pl_calibration *c, reader *r, const char **wrong, pl_error *err)
{
    pl_status status = PL_OK;
    *wrong = "is damaged (an entry is not as it was written)";
    for (bool last = false; status == PL_OK;) {
        json_t *entry;
        int bytes = next_line(r, c->path);
        if (bytes >= 0 && strcmp(r->line, TAIL) == 0 && (last || c->count == 0)) return *wrong = NULL, PL_OK;
        if (bytes < 0 || last) return PL_OK;
        last = bytes > 0 && r->line[bytes - 1] != ',';
        status = parse_line(r, bytes, last ? "" : ",", &entry, err);
        bool fine = status == PL_OK && take_entry(c, entry, &status, err) == 0;
        json_decref(entry);
        if (!fine && status != PL_E_NOMEM) return PL_OK;
    }
    return status;
}

pl_status pl_calibration_read(pl_calibration *c, pl_error *err)
{
    if (!c->path[0] || access(c->path, F_OK)) return PL_OK;
    const char *wrong = "cannot be read or is too large";
    pl_status status = PL_OK;
    reader *r = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "no memory to read the calibration file %s", c->path);
    if (pl_file_open(c->path, &r->fd, &r->bytes, NULL) == PL_OK) {
        if (r->bytes <= PL_CALIBRATION_FILE_BYTES_MAX) status = read_head(c, r, &wrong, err);
        if (status == PL_OK && !wrong) status = read_entries(c, r, &wrong, err);
        pl_io_close(r->fd);
    }
    pl_free(r);
    if (wrong || status != PL_OK) pl_calibration_clear(c);
    if (status != PL_OK) return pl_fail(err, status, "no memory to read the calibration file %s", c->path);
    if (wrong)
        warn(c, wrong);
    else
        (void)utimensat(AT_FDCWD, c->path, NULL, 0); /* it is in use */
    return PL_OK;
}

/* ---- writing ---- */

static uint64_t entry_bytes(const pl_calibration_entry *e) { return strlen(e->key) + ENTRY_EXTRA_BYTES; }

static uint64_t table_bytes(const pl_calibration *c)
{
    uint64_t bytes = HEADER_BYTES;
    for (size_t i = 0; i < c->count; i++) bytes += entry_bytes(&c->entry[i]);
    return bytes;
}

/* The file will soon be full, and what is in use stands where it would go first. */
static bool is_misplaced(const pl_calibration *c)
{
    bool misplaced = false;
    if (table_bytes(c) < PL_CALIBRATION_FILE_BYTES_MAX / 4 * 3) return false;
    for (size_t i = 0; i < c->count / 2; i++) misplaced |= c->entry[i].used;
    return misplaced;
}

static void print_machine(const pl_calibration_machine *m, pl_json *json)
{
    char kernels[24];
    kernels_text(m, kernels);
    pl_json_key(json, "machine");
    pl_json_object(json);
    pl_json_kv_string(json, "cpu", m->cpu);
    pl_json_kv_string(json, "isa", m->isa);
    pl_json_kv_int(json, "cores", m->cores);
    pl_json_kv_string(json, "kernels", kernels);
    pl_json_object_end(json);
}

static void print_entry(const pl_calibration_entry *e, const char *before, pl_str *out)
{
    pl_str_append(out, before);
    pl_json json = pl_json_begin(out, true);
    pl_json_object(&json);
    pl_json_kv_string(&json, "key", e->key);
    pl_json_kv_double(&json, "seconds", e->seconds);
    pl_json_kv_double(&json, "spread", e->spread);
    pl_json_kv_double(&json, "work", e->work);
    pl_json_kv_uint(&json, "samples", e->samples);
    if (e->brief) pl_json_kv_bool(&json, "brief", true);
    if (e->busy > 1) pl_json_kv_double(&json, "busy", e->busy);
    if (e->at) pl_json_kv_uint(&json, "at", e->at);
    pl_json_object_end(&json);
}

static void print_head(const pl_calibration *c, pl_str *out)
{
    pl_json json = pl_json_begin(out, true);
    pl_json_object(&json);
    pl_json_kv_string(&json, "format", FORMAT);
    print_machine(&c->machine, &json);
    pl_json_key(&json, "entries");
    pl_json_array(&json);
}

/* 0: this process did not ask for it; of those the oldest go where there is no room for all. Of a finished job the
 * note goes before what was measured for it. */
static int place_of(const pl_calibration_entry *e)
{
    bool job = strncmp(e->key, PL_CALIBRATION_FINISHED, strlen(PL_CALIBRATION_FINISHED)) == 0;
    return !e->used ? 0 : job ? 1 : 2;
}

static pl_status write_entry(pl_file_writer *w, const pl_calibration_entry *e, const char *before, pl_error *err)
{
    char line[LINE_BYTES];
    pl_str out = pl_str_fixed(line, sizeof line);
    print_entry(e, before, &out);
    return pl_file_write(w, out.data, out.bytes, err);
}

/* Entry by entry: as a whole its text would take as much again as the table. */
static pl_status write_entries(const pl_calibration *c, pl_file_writer *w, pl_error *err)
{
    char line[HEADER_BYTES];
    pl_str head = pl_str_fixed(line, sizeof line);
    const char *before = "\n";
    uint64_t all = table_bytes(c), over = all > PL_CALIBRATION_FILE_BYTES_MAX ? all - PL_CALIBRATION_FILE_BYTES_MAX : 0;
    print_head(c, &head);
    PL_TRY(pl_file_write(w, head.data, head.bytes, err));
    for (int place = 0; place < 3; place++)
        for (size_t i = 0; i < c->count; i++) {
            const pl_calibration_entry *e = &c->entry[i];
            if (place_of(e) != place) continue;
            if (over == 0) {
                PL_TRY(write_entry(w, e, before, err));
                before = ",\n";
            }
            over -= over < entry_bytes(e) ? over : entry_bytes(e);
        }
    return pl_file_write(w, "\n" TAIL "\n", sizeof "\n" TAIL "\n" - 1, err);
}

/* ---- one table a build ---- */

/* "calibration-<machine>": what the names of all this machine's tables begin with. */
static void print_prefix(const pl_calibration_machine *m, char prefix[NAME_BYTES])
{
    char text[160];
    snprintf(text, sizeof text, "%s %s %d", m->cpu, m->isa, m->cores);
    snprintf(prefix, NAME_BYTES, "calibration-%016" PRIx64, pl_stream_id(text));
}

static bool is_table(const char *name, const char *prefix)
{
    size_t n = strlen(prefix), bytes = strlen(name);
    return strncmp(name, prefix, n) == 0 && bytes < NAME_BYTES && bytes >= n + 5 &&
           strcmp(name + bytes - 5, ".json") == 0;
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* How many tables of this machine there are, and the name of the one that was used longest ago. */
static size_t find_oldest(DIR *folder, const char *prefix, char oldest[NAME_BYTES])
{
    struct timespec used = {0};
    struct stat st;
    size_t count = 0;
    rewinddir(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        if (!is_table(e->d_name, prefix) || fstatat(dirfd(folder), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode))
            continue;
        if (count++ == 0 || is_older(&st.st_mtim, &used)) used = st.st_mtim, strcpy(oldest, e->d_name);
    }
    return count;
}

/* Only where the tables have the names that we give; what cannot be removed stays. */
static void remove_old(const pl_calibration *c, const char *folder_path)
{
    char prefix[NAME_BYTES], oldest[NAME_BYTES];
    const char *slash = strrchr(c->path, '/');
    print_prefix(&c->machine, prefix);
    if (!is_table(slash ? slash + 1 : c->path, prefix)) return;
    DIR *folder = opendir(folder_path);
    if (!folder) return;
    while (find_oldest(folder, prefix, oldest) > BUILDS_KEPT && pl_remove_at(dirfd(folder), oldest) == 0) {
    }
    closedir(folder);
}

static pl_status write_table(const pl_calibration *c, pl_error *err)
{
    char folder[PL_CALIBRATION_PATH_BYTES];
    pl_file_writer w = {0};
    memcpy(folder, c->path, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = 0;
        PL_TRY(pl_folder_create(folder, err));
    }
    PL_TRY(pl_file_create(&w, c->path, err));
    pl_status status = write_entries(c, &w, err);
    if (status == PL_OK) status = pl_file_commit(&w, err);
    pl_file_abandon(&w);
    if (status == PL_OK) remove_old(c, slash && slash != folder ? folder : slash ? "/" : ".");
    return status;
}

/* A cache: what is wrong with the file is a warning. */
pl_status pl_calibration_save(pl_calibration *c, pl_error *err)
{
    pl_error why = {0};
    (void)err;
    if (!c->path[0] || (!c->changed && !is_misplaced(c))) return PL_OK;
    if (write_table(c, &why) == PL_OK)
        c->changed = false;
    else
        snprintf(c->warning, sizeof c->warning, "the calibration is not kept: %.400s", why.text);
    return PL_OK;
}

pl_status pl_calibration_path(char *path, size_t room, const char *folder, pl_error *err)
{
    pl_calibration_machine m;
    char prefix[NAME_BYTES], kernels[24], name[2 * NAME_BYTES];
    PL_TRY(pl_calibration_machine_read(&m, err));
    print_prefix(&m, prefix);
    kernels_text(&m, kernels);
    snprintf(name, sizeof name, "%s-%s.json", prefix, kernels);
    return pl_path_join(path, room, folder, name, err);
}
