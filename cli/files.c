/* What the words of a command name must not destroy: what it reads, what else it writes, what a run keeps, and what was
 * in a folder before any run. Asked before anything is written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"

enum { USES_MAX = PL_CLI_OPTIONS_MAX + 16 };

/* In the folder of a run, beside what its system keeps there; those that only train writes are others' to give out too
 * (plan --html). */
static const struct {
    const char *name;
    bool train_writes, train_only;
} own_files[] = {{"config.yaml", false, false}, {"metrics.jsonl", true, false}, {"report.json", true, false},
                 {"times.json", true, false},   {"lock", true, false},          {"plan.lock", true, true},
                 {"plan.html", true, true},     {"starts.jsonl", true, false}};
enum { OWN_FILES = sizeof own_files / sizeof *own_files, KEPT_MAX = 8 };

typedef struct list {
    pl_file_use use[USES_MAX];
    size_t count;
} list;

static void add(list *l, const char *path, const char *name, pl_file_role role)
{
    if (l->count < USES_MAX) l->use[l->count++] = (pl_file_use){path, name, role};
}

/* Every option with a FILE is one to write; a DIR is a checkpoint to read, a PLAN a lock file, a MACHINE one of
 * plimsoll machine. */
static void add_words(list *l, const pl_cli_command *command, const pl_cli_arguments *a)
{
    if (a->operand_count) add(l, a->operand[0], command->operands, PL_FILE_READ);
    for (size_t i = 0; i < command->body->option_count; i++) {
        const pl_cli_option *o = &command->body->options[i];
        if (o->value && strcmp(o->value, "FILE") == 0) add(l, a->value[i], o->name, PL_FILE_WRITTEN);
        if (o->value && (strcmp(o->value, "PLAN") == 0 || strcmp(o->value, "MACHINE") == 0))
            add(l, a->value[i], o->name, PL_FILE_READ);
        if (o->value && strcmp(o->value, "DIR") == 0) add(l, a->value[i], o->name, PL_FILE_CLOSED);
    }
}

pl_status pl_cli_check_words(const pl_cli_command *command, const pl_cli_arguments *a, pl_error *err)
{
    list l = {.count = 0};
    add_words(&l, command, a);
    return pl_files_check(l.use, l.count, err);
}

/* The program of that name, as exec finds it; the name itself where there is none. */
static const char *find_program(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    if (strchr(name, '/')) return name;
    for (at = at ? at : "/bin:/usr/bin"; *at; at += strspn(at, ":")) {
        int length = (int)strcspn(at, ":"), n = snprintf(path, PATH_MAX, "%.*s/%s", length, at, name);
        if (n > 0 && n < PATH_MAX && access(path, X_OK) == 0) return path;
        at += length;
    }
    return name;
}

pl_status pl_cli_check_watched(const pl_cli_command *command, const pl_cli_arguments *a, char *const *watched, int pid,
                               pl_error *err)
{
    char path[PATH_MAX];
    list l = {.count = 0};
    add_words(&l, command, a);
    size_t own = l.count;
    pl_status status = pl_files_check(l.use, own, err);
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    const char *word = watched ? find_program(watched[0], path) : path;
    for (size_t i = 1; word && status == PL_OK; i++) {
        l.count = own;
        if (access(word, F_OK) == 0) add(&l, word, watched ? "the command" : "its program", PL_FILE_READ);
        status = pl_files_check(l.use, l.count, err);
        word = watched && watched[i - 1] ? watched[i] : NULL;
    }
    return status;
}

static pl_status join(char path[PATH_MAX], const char *folder, const char *name, pl_error *err)
{
    int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return n >= 0 && n < PATH_MAX ? PL_OK : pl_cli_error(err, PL_E_USAGE, "%s: the path is too long", folder);
}

/* The run's own plan may be run again: it is read as a whole before it is written, and is the same then. */
static bool is_given_plan(const pl_cli_command *command, const pl_cli_arguments *a, const char *own)
{
    struct stat there, given;
    if (stat(own, &there) != 0) return false;
    for (size_t i = 0; i < command->body->option_count; i++) {
        const pl_cli_option *o = &command->body->options[i];
        bool is_plan = o->value && strcmp(o->value, "PLAN") == 0 && a->value[i];
        if (is_plan && stat(a->value[i], &given) == 0 && given.st_dev == there.st_dev && given.st_ino == there.st_ino)
            return true;
    }
    return false;
}

/* Too much for a stack. */
typedef struct paths {
    char checkpoints[PATH_MAX], own[OWN_FILES][PATH_MAX], kept[KEPT_MAX][PATH_MAX];
} paths;

static pl_status add_settings(list *l, paths *p, const pl_cli_input *in, pl_error *err)
{
    const size_t room = USES_MAX - l->count, named = pl_config_files(in->config, l->use + l->count, room);
    l->count += named < room ? named : room;
    pl_status status = join(p->checkpoints, in->out, "checkpoints", err);
    add(l, p->checkpoints, "checkpoints", PL_FILE_CLOSED);
    return status;
}

static pl_status add_kept(list *l, paths *p, const pl_cli_input *in, pl_error *err)
{
    const char *const *name = pl_config_kept_files(in->config);
    for (size_t i = 0; name[i] && i < KEPT_MAX; i++) {
        pl_status status = join(p->kept[i], in->out, name[i], err);
        if (status != PL_OK) return status;
        add(l, p->kept[i], name[i], PL_FILE_READ);
    }
    return PL_OK;
}

static pl_status add_own(list *l, paths *p, const pl_cli_command *command, const pl_cli_input *in, pl_error *err)
{
    bool trains = command->config >= PL_CLI_PLANS && pl_command_does(command->command, PL_USES_UPDATE);
    for (size_t i = 0; i < OWN_FILES; i++) {
        pl_status status = join(p->own[i], in->out, own_files[i].name, err);
        if (status != PL_OK) return status;
        bool writes = trains && own_files[i].train_writes && !is_given_plan(command, &in->arguments, p->own[i]);
        if (trains || !own_files[i].train_only)
            add(l, p->own[i], own_files[i].name, writes ? PL_FILE_WRITTEN : PL_FILE_READ);
    }
    return PL_OK;
}

pl_status pl_cli_check_files(const pl_cli_command *command, const pl_cli_input *in, pl_error *err)
{
    list l = {.count = 0};
    paths *p = calloc(1, sizeof *p);
    if (!p) return pl_cli_error(err, PL_E_NOMEM, "no memory to compare the files of the command");
    add_words(&l, command, &in->arguments);
    pl_status status = add_settings(&l, p, in, err);
    if (status == PL_OK) status = add_own(&l, p, command, in, err);
    if (status == PL_OK) status = add_kept(&l, p, in, err);
    if (status == PL_OK) status = pl_files_check(l.use, l.count, err);
    free(p);
    return status;
}

/* A run makes its checkpoints' folder first of all, so without one these files are somebody else's. */
pl_status pl_cli_check_new_run(const pl_cli_input *in, pl_error *err)
{
    static const char *const names[] = {PL_CLI_CONFIG_FILE, "report.json"};
    char path[PATH_MAX];
    pl_status status = join(path, in->out, "checkpoints", err);
    bool fresh = status == PL_OK && access(path, F_OK) != 0 && errno == ENOENT;
    for (size_t i = 0; i < sizeof names / sizeof *names && fresh && status == PL_OK; i++) {
        status = join(path, in->out, names[i], err);
        if (status == PL_OK && access(path, F_OK) == 0)
            status = pl_cli_error(err, PL_E_STORAGE,
                                  "%s: exists but belongs to no run (no checkpoints beside it), and training would "
                                  "overwrite it; move it away or choose another folder with --out",
                                  path);
    }
    return status;
}
