/* May this command work in the run's folder, and what must be made there first? */
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/resume.h"
#include "systems/infer.h"
#include "systems/system.h"

static pl_status refuse_training(pl_preparation *p, pl_error *err)
{
    static const char *const traces[] = {"lock", "checkpoints"}; /* that a run leaves; no other folder is locked */
    char path[PL_FILE_PATH_MAX];
    bool is_there;
    for (int i = 0; i < 2; i++) {
        PL_TRY(pl_path_join(path, sizeof path, p->out, traces[i], err));
        PL_TRY(pl_file_look(path, &is_there, err));
        if (is_there) PL_TRY(pl_preparation_lock(p, err));
    }
    return p->config->run.resume != PL_SWITCH_OFF ? PL_OK : pl_saved_refuse_new(p->out, &p->saved, err);
}

/* A training begins with the weights of another run. A file of weights comes from another program, and is refused
 * before anything is planned; whether a folder is a run's, the session finds out. */
static pl_status refuse_file_to_begin(const pl_preparation *p, pl_error *err)
{
    static const char *const kinds[] = {".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".gguf", ".onnx", ".npz"};
    const char *from = p->config->train.init_from;
    struct stat info;
    bool is_file = from[0] && stat(from, &info) == 0 && S_ISREG(info.st_mode);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        is_file = is_file || (pl_ends_with(from, kinds[i]) && access(from, F_OK) != 0);
    if (!is_file || p->holds_run) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.600s: is a file, and a training begins with the folder of a run (`train.init_from` runs/NAME); "
                   "weights of other programs are for models in use: export them as safetensors, which `run.weights` "
                   "takes",
                   from);
}

/* Where there is something and it is damaged, the run itself finds out how much. */
static pl_status check_resume(const pl_preparation *p, pl_error *err)
{
    bool is_damaged = p->holds_run && !p->saved.record;
    if (p->config->run.resume == PL_SWITCH_OFF || is_damaged) return PL_OK;
    return pl_resume_check(p->config, p->out, &p->saved, err);
}

/* Held around one piece of work. */
static pl_status with_preparation(const pl_config *c, pl_config *writable, pl_command command,
                                  pl_status (*work)(pl_preparation *, const void *, pl_error *), const void *context,
                                  pl_error *err)
{
    pl_preparation *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory to look at the folder of the run");
    pl_status status = pl_preparation_begin(p, c, writable, command, err);
    if (status == PL_OK) status = work(p, context, err);
    pl_preparation_end(p, status);
    pl_free(p);
    return status;
}

static pl_status look_at_resume(pl_preparation *p, const void *context, pl_error *err)
{
    (void)context;
    return check_resume(p, err);
}

pl_status pl_check_resume(const pl_config *c, pl_error *err)
{
    return with_preparation(c, NULL, PL_COMMAND_TRAIN, look_at_resume, NULL, err);
}

static pl_status look_at_folder(pl_preparation *p, const void *context, pl_error *err)
{
    const pl_command command = p->command;
    (void)context;
    if (pl_command_does(command, PL_USES_UPDATE)) PL_TRY(refuse_training(p, err));
    if (pl_command_does(command, PL_USES_UPDATE)) PL_TRY(check_resume(p, err));
    if (pl_command_does(command, PL_USES_UPDATE)) PL_TRY(refuse_file_to_begin(p, err));
    const pl_dataset *d = pl_dataset_of(p->config, command);
    if (pl_system_files(p->config, command)) return PL_OK; /* nothing of the run's own data is read */
    return d->check_folder ? d->check_folder(p, command, err) : PL_OK;
}

pl_status pl_check_folder(const pl_config *c, pl_command command, pl_error *err)
{
    PL_TRY(pl_system_require(c, command, err));
    return with_preparation(c, NULL, command, look_at_folder, NULL, err);
}

static pl_status forget(pl_preparation *p, const void *context, pl_error *err)
{
    (void)context;
    if (!p->holds_run) return PL_OK;
    PL_TRY(pl_preparation_lock(p, err));
    return pl_saved_forget(p->out, err);
}

pl_status pl_forget_run(const pl_config *c, pl_error *err)
{
    return with_preparation(c, NULL, PL_COMMAND_TRAIN, forget, NULL, err);
}

typedef struct told {
    pl_progress progress;
    void *context;
} told;

static pl_status prepare(pl_preparation *p, const void *context, pl_error *err)
{
    const told *t = context;
    const pl_dataset *d = pl_dataset_of(p->config, p->command);
    return d->prepare ? d->prepare(p, t->progress, t->context, err) : PL_OK;
}

bool pl_prepares(const pl_config *c, pl_command command) { return pl_dataset_of(c, command)->prepare != NULL; }

pl_status pl_prepare(pl_config *c, pl_command command, pl_progress progress, void *context, pl_error *err)
{
    told t = {progress, context};
    return with_preparation(c, c, command, prepare, &t, err);
}

/* ---- for a look alone ---- */

struct pl_prepared {
    pl_preparation p;
};

pl_status pl_prepare_briefly(pl_config *c, pl_command command, pl_progress progress, void *context,
                             pl_prepared **prepared, pl_error *err)
{
    const told t = {progress, context};
    pl_prepared *made = pl_alloc(1, sizeof *made);
    *prepared = NULL;
    if (!made) return pl_fail(err, PL_E_NOMEM, "no memory to look at the folder of the run");
    pl_status status = pl_preparation_begin(&made->p, c, c, command, err);
    if (status == PL_OK) status = prepare(&made->p, &t, err);
    if (status == PL_OK) return *prepared = made, PL_OK;
    pl_preparation_end(&made->p, status);
    pl_free(made);
    return status;
}

pl_status pl_prepared_undo(pl_prepared *made, pl_error *err)
{
    if (!made) return PL_OK;
    pl_made_keep_outside(&made->p.made, made->p.out);
    const pl_status status = pl_made_undo(&made->p.made, err);
    pl_preparation_end(&made->p, PL_OK);
    pl_free(made);
    return status;
}
