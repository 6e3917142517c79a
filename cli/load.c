#include "load.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "signals.h"

extern char **environ;

/* ---- where the calibration is kept ---- */

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The folders of a path, from the slash at `from` on. For the owner alone, as the XDG specification wants it. */
static bool make_folders(char *path, size_t from)
{
    for (char *slash = strchr(path + from + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bool failed = mkdir(path, 0700) && errno != EEXIST;
        *slash = '/';
        if (failed) return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* No home, or one that is relative, missing or not writable: there is no cache, and that is fine. A home is never made:
 * where there is none (a service's account has /nonexistent), none is wanted. $XDG_CACHE_HOME is made. */
const char *pl_cli_find_cache(char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    size_t there = 0;
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(path, PATH_MAX, "%s/plimsoll", cache);
    else if (home && home[0] == '/' && is_folder(home)) {
        n = snprintf(path, PATH_MAX, "%s/.cache/plimsoll", home);
        there = strlen(home);
    }
    if (n < 0 || n >= PATH_MAX || !make_folders(path, there) || access(path, R_OK | W_OK | X_OK)) path[0] = 0;
    return path[0] ? path : NULL;
}

const char *pl_cli_cache(const pl_cli_input *in) { return in->cache[0] ? in->cache : NULL; }

/* ---- loading ---- */

/* The first subfolder, by name, in which something was trained; "" where there is none. */
static void find_trained_below(const char *folder, char name[NAME_MAX + 1])
{
    struct dirent *e;
    DIR *d = opendir(folder);
    name[0] = 0;
    while (d && (e = readdir(d))) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s/checkpoints", folder, e->d_name);
        if (e->d_name[0] == '.' || n < 0 || n >= PATH_MAX || access(path, F_OK) != 0) continue;
        if (!name[0] || strcmp(e->d_name, name) < 0) snprintf(name, NAME_MAX + 1, "%s", e->d_name);
    }
    if (d) closedir(d);
}

static pl_status refuse_folder(const char *folder, int error, pl_error *err)
{
    char name[NAME_MAX + 1];
    find_trained_below(folder, name);
    if (name[0])
        return pl_cli_error(err, PL_E_CONFIG,
                            "%s: holds several trainings, each in a folder of its own, and no config of them all; give "
                            "the config file, or one of those folders, such as %s%s%s",
                            folder, folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
    /* A disk that does not answer is not the user's mistake. */
    return pl_cli_error(
        err, error == ENOENT || error == ENOTDIR ? PL_E_CONFIG : PL_E_STORAGE,
        "%s: is not a readable folder of a run (%s: %s), and has no config.json of a pretrained model; give a "
        "config file or such a folder",
        folder, PL_CLI_CONFIG_FILE, strerror(error));
}

/* The folder of a run stands for its config with that folder as run.out, unless --out names another one. */
static pl_status load_folder(pl_config *config, const char *folder, pl_error *err)
{
    char path[PATH_MAX], out[PATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s/" PL_CLI_CONFIG_FILE, folder);
    if (n < 0 || n >= PATH_MAX) return pl_cli_error(err, PL_E_USAGE, "%s: the path is too long", folder);
    if (access(path, R_OK)) return refuse_folder(folder, errno, err);
    if (stat(path, &info) == 0 && info.st_size == 0)
        return pl_cli_error(err, PL_E_DATA,
                            "%s: is empty, and a run keeps its whole config there; put a copy of it back", path);
    pl_status status = pl_cli_setting(config, "run", "out", out, sizeof out, err); /* it holds only options so far */
    if (status == PL_OK) status = pl_config_load_file(config, path, err);
    if (status != PL_OK || strcmp(out, "auto") != 0) return status;
    return pl_config_set(config, "run.out", folder, "the folder of the run", err);
}

/* ---- pretrained models ---- */

/* Where Hugging Face's libraries keep downloads; NULL: no variable says so. */
static const char *find_hub(char path[PATH_MAX])
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *folder = getenv(places[i].variable);
        if (!folder || !*folder) continue;
        const int n = snprintf(path, PATH_MAX, "%s%s", folder, places[i].below);
        return n > 0 && n < PATH_MAX ? path : NULL;
    }
    return NULL;
}

pl_status pl_cli_find_model(const char *name, char path[PATH_MAX], pl_error *err)
{
    char hub[PATH_MAX];
    return pl_model_find(name, find_hub(hub), path, PATH_MAX, err);
}

/* A config may name its model and its weights so, too. */
static pl_status find_sources(pl_config *config, pl_error *err)
{
    char source[PATH_MAX], path[PATH_MAX], hub[PATH_MAX];
    pl_status status = pl_config_find_weights(config, find_hub(hub), err);
    if (status == PL_OK) status = pl_cli_setting(config, "model", "source", source, sizeof source, err);
    if (status != PL_OK || !source[0] || strcmp(source, "none") == 0) return status;
    status = pl_cli_find_model(source, path, err);
    if (status != PL_OK || strcmp(source, path) == 0) return status;
    return pl_config_set(config, "model.source", path, "model.source", err);
}

/* A pretrained model's folder has config.json in place of a run's config.yaml. */
static bool is_model(const char *folder)
{
    char path[PATH_MAX];
    static const char *const names[] = {PL_CLI_CONFIG_FILE, "config.json"};
    bool has[2];
    for (int i = 0; i < 2; i++) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        has[i] = n > 0 && n < PATH_MAX && access(path, F_OK) == 0;
    }
    return has[1] && !has[0];
}

static pl_status load_path(pl_config *config, const char *path, pl_error *err)
{
    char found[PATH_MAX];
    struct stat info;
    int known = stat(path, &info);
    if (known != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        const pl_status status = pl_cli_find_model(path, found, err);
        return status == PL_OK ? pl_config_load_file(config, found, err) : status;
    }
    if (known != 0 && errno == EIO)
        return pl_cli_error(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    const bool is_run = known == 0 && S_ISDIR(info.st_mode) && !is_model(path);
    return is_run ? load_folder(config, path, err) : pl_config_load_file(config, path, err);
}

static pl_status load(const pl_cli_command *command, size_t at, pl_cli_input *in, pl_error *err)
{
    const pl_cli_arguments *a = &in->arguments;
    if (a->operand_count <= at)
        return pl_cli_error(err, PL_E_USAGE, "a config file is missing: plimsoll %s %s", command->name,
                            command->operands);
    if (a->operand_count > at + 1 && !command->body->takes_many)
        return pl_cli_error(err, PL_E_USAGE, "one config only, but there is also %.200s", a->operand[at + 1]);
    const char *path = a->operand[at];
    return load_path(in->config, path, err);
}

/* A subcommand that runs a command checks that one; a subcommand that only plans takes the config's. */
static pl_status check_command(const pl_cli_command *command, const pl_cli_arguments *a, const pl_config *config,
                               pl_error *err)
{
    const bool runs = command->config == PL_CLI_RUNS;
    const pl_command of = runs ? command->command : pl_command_of(config);
    pl_status status = pl_command_require(of, config, err);
    if (status != PL_OK) return status;
    return command->body->check_options ? command->body->check_options(a, config, err)
                                        : pl_command_check_options(of, config, err);
}

pl_status pl_cli_load(const pl_cli_command *command, int argc, char **argv, size_t at, pl_cli_input *in, pl_error *err)
{
    *in = (pl_cli_input){.config = pl_config_create()};
    if (!in->config) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_signals_leave();
    (void)pl_cli_find_cache(in->cache);
    int own, rest;
    pl_status status = pl_cli_own_first(command, argc, argv, &own, err);
    rest = argc - own;
    if (status == PL_OK) status = pl_config_apply_args(in->config, &rest, argv + own, err);
    argc = own + rest;
    if (status == PL_OK) status = pl_cli_parse(command, argc, argv, &in->arguments, err);
    if (status == PL_OK) status = load(command, at, in, err);
    if (status == PL_OK) status = pl_config_apply_env(in->config, environ, err);
    if (status == PL_OK && command->body != &pl_cli_config) status = find_sources(in->config, err);
    if (status == PL_OK && command->config >= PL_CLI_PLANS)
        status = check_command(command, &in->arguments, in->config, err);
    if (status == PL_OK) status = pl_config_check(in->config, err);
    if (status == PL_OK) status = pl_config_run_folder(in->config, in->out, sizeof in->out, err);
    /* Set explicitly, so that the plan and the kept config name the folder wherever they lie themselves. */
    if (status == PL_OK) status = pl_config_set(in->config, "run.out", in->out, "the folder of the run", err);
    if (status == PL_OK) status = pl_cli_setting(in->config, "run", "resume", in->resume, sizeof in->resume, err);
    return status == PL_OK ? pl_cli_check_files(command, in, err) : status;
}

static pl_status refuse_untrained(const pl_cli_input *in, bool may_be_seeded, pl_error *err)
{
    char name[NAME_MAX + 1], path[PATH_MAX];
    find_trained_below(in->out, name);
    if (name[0])
        return pl_cli_error(err, PL_E_DATA,
                            "%s: holds several trainings, each in a folder of its own; give one of those in place of "
                            "%s, such as %s/%s",
                            in->out, in->arguments.operand[0], in->out, name);
    const int n = snprintf(path, sizeof path, "%s/checkpoints", in->arguments.operand[0]);
    if (n > 0 && n < PATH_MAX && access(path, F_OK) == 0) /* and in->out has no checkpoint */
        return pl_cli_error(err, PL_E_USAGE, "%s: nothing was trained there, and %s is a run itself; leave --out out",
                            in->out, in->arguments.operand[0]);
    /* What a system prepares from its data, such as a tokenizer, comes with a training: without it weights from
     * elsewhere are of no use there. */
    return pl_cli_error(err, PL_E_DATA, "%s: nothing was trained there yet; train first: plimsoll train %s%s", in->out,
                        in->arguments.operand[0],
                        may_be_seeded && !pl_prepares(in->config, PL_COMMAND_TRAIN)
                            ? ", or take a file of weights (--weights FILE) or first values (--seeded)"
                            : "");
}

pl_status pl_cli_find_brought(const pl_cli_input *in, bool *is_brought, pl_error *err)
{
    char source[8];
    const pl_status status = pl_cli_setting(in->config, "model", "source", source, sizeof source, err);
    *is_brought = source[0] && strcmp(source, "none") != 0;
    return status;
}

/* A file of weights takes the place of a checkpoint; the library finds out whether it is sound. */
static pl_status find_weights(const pl_cli_input *in, const char *checkpoint, bool *has, pl_error *err)
{
    char weights[PATH_MAX];
    bool is_brought = false;
    pl_status status = pl_cli_setting(in->config, "run", "weights", weights, sizeof weights, err);
    if (status == PL_OK) status = pl_cli_find_brought(in, &is_brought, err);
    if (status != PL_OK) return status;
    *has = strcmp(weights, "none") != 0 || is_brought;
    if (!*has || !checkpoint) return PL_OK;
    if (is_brought)
        return pl_cli_error(err, PL_E_USAGE,
                            "--checkpoint names weights of a model that is trained here; leave it out");
    return pl_cli_error(err, PL_E_USAGE,
                        "--checkpoint %.200s and run.weights %.200s both name the weights; give one of them",
                        checkpoint, weights);
}

pl_status pl_cli_require_trained(const pl_cli_input *in, const char *checkpoint, bool may_be_seeded, pl_error *err)
{
    char path[PATH_MAX];
    bool has_weights = false;
    pl_status status = find_weights(in, checkpoint, &has_weights, err);
    if (status != PL_OK || has_weights) return status;
    int n = checkpoint ? snprintf(path, sizeof path, "%s/run.json", checkpoint)
                       : snprintf(path, sizeof path, "%s/checkpoints", in->out);
    if (n < 0 || n >= PATH_MAX) return pl_cli_error(err, PL_E_USAGE, "the path of the checkpoint is too long");
    if (access(path, F_OK) == 0) return PL_OK; /* the library finds out whether it is sound */
    if (errno != ENOENT && errno != ENOTDIR)
        return pl_cli_error(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    if (checkpoint)
        return pl_cli_error(err, PL_E_DATA, "%s: is not a checkpoint (run.json: %s); give a folder of %s/checkpoints",
                            checkpoint, strerror(errno), in->out);
    return refuse_untrained(in, may_be_seeded, err);
}

void pl_cli_release(pl_cli_input *in)
{
    pl_config_destroy(in->config);
    in->config = NULL;
}
