/* A training watched from outside. Its folder may be written to at any moment: a line that is not whole yet is read the
 * next time, and a file that has become shorter (a resume cuts it) is read anew. */
#include "plimsoll/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/locale.h"
#include "base/procfile.h"
#include "config/config.h"
#include "store/checkpoint.h"
#include "store/folder.h"
#include "store/metrics.h"
#include "systems/system.h"

#define WHOLE 0x1p53 /* below it a double holds every whole number */
enum { SUMS = 2 * PL_WATCH_POINTS_MAX, READ_BYTES = 1 << 16 };

/* A file by which one is known again, so that it is read only when it is another one. */
typedef struct identity {
    struct timespec changed;
    ino_t inode;
    off_t bytes;
} identity;

struct pl_watch {
    char root[PL_FILE_PATH_MAX]; /* as it was named */
    pl_watched seen;
    identity config, plan;
    int64_t steps;    /* train.steps; PL_CONFIG_AUTO: as many as the epochs have */
    uint64_t epochs;  /* of a training */
    uint64_t at;      /* bytes of metrics.jsonl that were read */
    ino_t metrics;    /* its inode */
    double sum[SUMS]; /* of `stretch` losses each, the last perhaps of fewer */
    size_t sums;
    uint64_t stretch, last; /* how many losses the last one has */
    uint64_t began_step;    /* of the first line that this process wrote, and its seconds */
    double began_seconds, last_seconds;
    uint64_t saved_step; /* of the last checkpoint; 0: none */
    size_t held;         /* bytes of `text` */
    char text[READ_BYTES];
};

static pl_status path_of(const pl_watch *w, const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    return pl_path_join(path, PL_FILE_PATH_MAX, w->seen.folder, name, err);
}

static double age_of(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const double age = (double)(now.tv_sec - st->st_mtim.tv_sec) + 1e-9 * (double)(now.tv_nsec - st->st_mtim.tv_nsec);
    return age > 0 ? age : 0;
}

static bool is_news(const char *path, identity *known)
{
    struct stat st;
    if (stat(path, &st) != 0) return false;
    const identity now = {st.st_mtim, st.st_ino, st.st_size};
    if (memcmp(&now.changed, &known->changed, sizeof now.changed) == 0 && now.inode == known->inode &&
        now.bytes == known->bytes)
        return false;
    *known = now;
    return true;
}

/* ---- which training ---- */

static bool has_training(const char *folder, struct timespec *written)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    if (pl_path_join(path, sizeof path, folder, "metrics.jsonl", NULL) == PL_OK && stat(path, &st) == 0 &&
        S_ISREG(st.st_mode)) {
        *written = st.st_mtim;
        return true;
    }
    *written = (struct timespec){0};
    return pl_path_join(path, sizeof path, folder, "config.yaml", NULL) == PL_OK && access(path, F_OK) == 0;
}

typedef struct choice {
    const char *root;
    char best[PL_FILE_PATH_MAX];
    struct timespec written;
    bool found, works;
} choice;

/* One at which a process is at work, else the one that was written to last. */
static pl_status consider(void *context, const char *name, pl_error *err)
{
    choice *c = context;
    char path[PL_FILE_PATH_MAX];
    struct timespec written;
    (void)err;
    if (pl_path_join(path, sizeof path, c->root, name, NULL) != PL_OK || !has_training(path, &written)) return PL_OK;
    const bool works = pl_folder_holder(path) != 0;
    const bool later = written.tv_sec > c->written.tv_sec ||
                       (written.tv_sec == c->written.tv_sec && written.tv_nsec > c->written.tv_nsec);
    if (c->found && (works < c->works || (works == c->works && !later))) return PL_OK;
    strcpy(c->best, path);
    c->written = written;
    c->works = works;
    c->found = true;
    return PL_OK;
}

static pl_status refuse(const char *root, pl_error *err)
{
    struct stat st;
    if (stat(root, &st) != 0)
        return pl_fail(err, PL_E_USAGE, "%s: %s; give the folder of a training", root, strerror(errno));
    return pl_fail(err, PL_E_USAGE,
                   "%s: there is no training in it (no metrics.jsonl, no config.yaml); give the folder of one", root);
}

static pl_status choose(pl_watch *w, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    choice c = {.root = w->root};
    struct timespec written;
    if (has_training(w->root, &written))
        strcpy(c.best, w->root), c.found = true;
    else if (pl_folder_each(w->root, list, consider, &c, err) != PL_OK || !c.found)
        return refuse(w->root, err);
    if (strcmp(c.best, w->seen.folder) == 0) return PL_OK;
    strcpy(w->seen.folder, c.best);
    w->config = w->plan = (identity){0};
    w->metrics = 0;
    return PL_OK;
}

/* ---- lines of metrics ---- */

static void forget_lines(pl_watch *w)
{
    pl_watched *s = &w->seen;
    w->at = w->held = w->sums = 0;
    w->stretch = 1, w->last = 0;
    w->last_seconds = w->began_seconds = NAN;
    s->step = s->validation_step = 0;
    s->items[0] = 0;
    s->epoch = s->loss = s->lr = s->items_per_second = s->seconds = s->validation_loss = s->best_validation_loss = NAN;
}

/* Means over stretches that grow twice as long when there are too many of them. */
static void add_loss(pl_watch *w, double loss)
{
    if (!isfinite(loss)) return;
    if (w->last == 0 || w->last == w->stretch) {
        if (w->sums == SUMS) {
            for (size_t i = 0; i < SUMS / 2; i++) w->sum[i] = w->sum[2 * i] + w->sum[2 * i + 1];
            w->sums = SUMS / 2;
            w->stretch *= 2;
        }
        w->sum[w->sums++] = 0;
        w->last = 0;
    }
    w->sum[w->sums - 1] += loss;
    w->last++;
}

/* The number of a key; NAN where it is null or not there. */
static double number_of(const char *line, const char *key)
{
    char quoted[PL_WATCH_NAME_BYTES + 4];
    char *end;
    const int n = snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    if (!at) return NAN;
    const double value = pl_read_double(at + n, &end);
    return end > at + n ? value : NAN;
}

/* "tokens" of "tokens_per_second". */
static void find_items(pl_watch *w, const char *line)
{
    static const char ending[] = "_per_second\":";
    const char *end = strstr(line, ending), *begin = end;
    if (w->seen.items[0] || !end) return;
    while (begin > line && begin[-1] != '"') begin--;
    if ((size_t)(end - begin) < sizeof w->seen.items)
        snprintf(w->seen.items, sizeof w->seen.items, "%.*s", (int)(end - begin), begin);
}

/* The seconds of a line begin anew with each process. */
static void note_time(pl_watch *w, uint64_t step, double seconds)
{
    if (!(seconds >= w->last_seconds)) {
        w->began_step = step;
        w->began_seconds = seconds;
    }
    w->last_seconds = w->seen.seconds = seconds;
}

static void take_line(pl_watch *w, const char *line)
{
    pl_watched *s = &w->seen;
    char key[PL_WATCH_NAME_BYTES + 16];
    const double step = number_of(line, "step"), validated = number_of(line, "validation_loss");
    if (!(step >= 0 && step < WHOLE)) return;
    if (strstr(line, "\"validation_loss\":")) {
        s->validation_step = (uint64_t)step;
        s->validation_loss = validated;
        s->best_validation_loss = number_of(line, "best_validation_loss");
        return;
    }
    find_items(w, line);
    snprintf(key, sizeof key, "%.63s_per_second", s->items);
    s->step = (uint64_t)step;
    s->epoch = number_of(line, "epoch");
    s->loss = number_of(line, "loss");
    s->lr = number_of(line, "lr");
    s->items_per_second = number_of(line, key);
    note_time(w, s->step, number_of(line, "seconds"));
    add_loss(w, s->loss);
}

/* Whole lines of what is held; one longer than all there is room for is none of ours, and is passed over. */
static void take_lines(pl_watch *w)
{
    const locale_t before = pl_locale_enter();
    size_t from = 0;
    for (char *end; (end = memchr(w->text + from, '\n', w->held - from)); from = (size_t)(end - w->text) + 1) {
        *end = 0;
        take_line(w, w->text + from);
    }
    pl_locale_leave(before);
    if (from == 0 && w->held == sizeof w->text) from = w->held;
    memmove(w->text, w->text + from, w->held - from);
    w->held -= from;
}

static pl_status read_new(pl_watch *w, int fd, const char *path, uint64_t bytes, pl_error *err)
{
    while (w->at < bytes) {
        size_t n = sizeof w->text - w->held;
        if (n > bytes - w->at) n = (size_t)(bytes - w->at);
        pl_status status = pl_file_read_at(fd, path, w->at, w->text + w->held, n, err);
        if (status == PL_E_DATA) return w->metrics = 0, PL_OK; /* it has become shorter: anew the next time */
        if (status != PL_OK) return status;
        w->at += n;
        w->held += n;
        take_lines(w);
    }
    return PL_OK;
}

static pl_status read_metrics(pl_watch *w, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    PL_TRY(path_of(w, "metrics.jsonl", path, err));
    const int fd = pl_io_open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) close(fd);
        return forget_lines(w), PL_OK; /* it has not begun */
    }
    if (st.st_ino != w->metrics || (uint64_t)st.st_size < w->at) forget_lines(w);
    w->metrics = st.st_ino;
    w->seen.line_age_seconds = st.st_size ? age_of(&st) : NAN;
    const pl_status status = read_new(w, fd, path, (uint64_t)st.st_size, err);
    close(fd);
    return status;
}

/* ---- what else lies there ---- */

/* A config that cannot be read says nothing of steps; the run itself will say what is wrong with it. */
static pl_status read_config(pl_watch *w, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_error ignored = {0};
    PL_TRY(path_of(w, "config.yaml", path, err));
    if (!is_news(path, &w->config)) return PL_OK;
    pl_config *c = pl_config_create();
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config of %s", w->seen.folder);
    w->steps = PL_CONFIG_AUTO;
    w->epochs = 0;
    if (pl_config_load_file(c, path, &ignored) == PL_OK && pl_config_check(c, &ignored) == PL_OK) {
        w->steps = c->train.steps;
        w->epochs = pl_system_epochs(c);
    }
    pl_config_destroy(c);
    return PL_OK;
}

static pl_status read_plan(pl_watch *w, pl_error *err)
{
    static const char totals[] = "totals resident=";
    char path[PL_FILE_PATH_MAX];
    pl_procfile file;
    PL_TRY(path_of(w, "plan.lock", path, err));
    if (!is_news(path, &w->plan) || pl_procfile_open(&file, path) != 0) return PL_OK;
    w->seen.planned_bytes = 0;
    for (const char *line; !w->seen.planned_bytes && (line = pl_procfile_line(&file));)
        if (strncmp(line, totals, sizeof totals - 1) == 0)
            (void)sscanf(line + sizeof totals - 1, "%" SCNu64, &w->seen.planned_bytes);
    pl_procfile_close(&file);
    return PL_OK;
}

static pl_status read_checkpoint(pl_watch *w, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    uint64_t step;
    pl_watched *s = &w->seen;
    PL_TRY(path_of(w, "checkpoints/latest", path, err));
    s->checkpoint_age_seconds = NAN;
    w->saved_step = 0;
    if (stat(path, &st) != 0 || pl_procfile_read_line(path, s->checkpoint, sizeof s->checkpoint) != 0 ||
        pl_step_name_parse(s->checkpoint, &step) != 0)
        return s->checkpoint[0] = 0, PL_OK;
    w->saved_step = step;
    s->checkpoint_age_seconds = age_of(&st);
    return PL_OK;
}

/* Before its first line of metrics the process that has the folder may still be planning: its memory is shown all the
 * same. */
static void read_process(pl_watch *w)
{
    char path[64];
    pl_watched *s = &w->seen;
    s->process = pl_folder_holder(s->folder);
    s->resident_bytes = s->peak_bytes = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", s->process);
    if (!s->process) return;
    (void)pl_procfile_find(path, "VmRSS", &s->resident_bytes);
    (void)pl_procfile_find(path, "VmHWM", &s->peak_bytes);
}

/* ---- what follows from it ---- */

/* As many steps as an epoch has follow from any line: its epoch is step / steps of one, to the last bit. */
static void find_steps(pl_watch *w)
{
    pl_watched *s = &w->seen;
    s->steps = w->steps != PL_CONFIG_AUTO ? (uint64_t)w->steps : 0;
    if (!s->steps && s->epoch > 0 && w->epochs) s->steps = (uint64_t)llround((double)s->step / s->epoch) * w->epochs;
}

/* As fast as this process went between its first line and its last. */
static void find_time_left(pl_watch *w)
{
    pl_watched *s = &w->seen;
    const double seconds = s->seconds - w->began_seconds;
    const bool known = s->state == PL_WATCH_RUNS && s->steps > s->step && s->step > w->began_step && seconds > 0;
    s->seconds_left =
        known ? seconds / (double)(s->step - w->began_step) * (double)(s->steps - s->step) - s->line_age_seconds : NAN;
    if (s->seconds_left < 0) s->seconds_left = 0;
}

static void find_points(pl_watch *w)
{
    pl_watched *s = &w->seen;
    const size_t each = w->sums > PL_WATCH_POINTS_MAX ? 2 : 1;
    s->points = 0;
    for (size_t i = 0; i < w->sums; i += each) {
        const bool is_last = i + each >= w->sums;
        const double count = (double)(is_last ? (w->sums - i - 1) * w->stretch + w->last : each * w->stretch);
        s->point[s->points++] = (w->sum[i] + (each == 2 && i + 1 < w->sums ? w->sum[i + 1] : 0)) / count;
    }
}

pl_status pl_watch_begin(const char *folder, pl_watch **watch, pl_error *err)
{
    *watch = NULL;
    pl_watch *w = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "no memory to watch %.200s", folder);
    forget_lines(w);
    w->steps = PL_CONFIG_AUTO;
    pl_status status = folder[0] && strlen(folder) < sizeof w->root
                           ? PL_OK
                           : pl_fail(err, PL_E_USAGE, "the name of a folder was expected, not \"%.200s\"", folder);
    if (status == PL_OK) strcpy(w->root, folder);
    if (status == PL_OK) status = choose(w, err);
    if (status != PL_OK) return pl_free(w), status;
    *watch = w;
    return PL_OK;
}

pl_status pl_watch_look(pl_watch *w, pl_watched *seen, pl_error *err)
{
    pl_watched *s = &w->seen;
    PL_TRY(choose(w, err));
    read_process(w); /* before the metrics: of a run that ends meanwhile the last line is read */
    PL_TRY(read_config(w, err));
    PL_TRY(read_plan(w, err));
    PL_TRY(read_metrics(w, err));
    PL_TRY(read_checkpoint(w, err));
    find_steps(w);
    const uint64_t made = s->step > w->saved_step ? s->step : w->saved_step; /* not every step has a line */
    s->state = s->process ? PL_WATCH_RUNS : s->steps && made >= s->steps ? PL_WATCH_FINISHED : PL_WATCH_ENDED;
    find_time_left(w);
    find_points(w);
    *seen = *s;
    return PL_OK;
}

void pl_watch_end(pl_watch *w) { pl_free(w); }
