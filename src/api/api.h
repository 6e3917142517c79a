/* Within src/api. */
#ifndef PL_API_API_H
#define PL_API_API_H

#include "plimsoll/plimsoll.h"

#include "config/config.h"
#include "plan/command.h"
#include "plan/plan.h"
#include "run/session.h"
#include "show/render.h"
#include "systems/system.h"

/* ---- settings.c ---- */
/* What the runner needs to know of a config. The texts live in the structure. */
typedef struct pl_settings {
    char out[PL_FILE_PATH_MAX], trace[PL_FILE_PATH_MAX];
    char *config_text; /* for pl_free */
    void *own;         /* likewise */
    pl_job_list jobs;
    pl_words words; /* for a command with words of its own */
    pl_run_settings run;
} pl_settings;

/* stages.c: how many of several trainings come before this one, also where the config names this one alone. */
uint32_t pl_stage_count_earlier(const pl_config *);
pl_status pl_settings_fill(const pl_config *, pl_command, const pl_data *, pl_settings *, pl_error *);
void pl_settings_deinit(pl_settings *);

/* ---- face.c ---- */
/* For a command that asks for first values: PL_E_USAGE where the command line names weights, too. */
pl_status pl_check_seeded(const pl_config *, pl_error *);
/* The one road to the data of a command: its system opens them; for a command that runs a model on files
 * (pl_system_files), they are those files. */
pl_status pl_open_data(const pl_config *, pl_command, pl_data_use, const pl_facts *planned, pl_data **, pl_error *);
/* For such a command; its files may have to be made ready first, which can take long. */
pl_status pl_open_files(const pl_config *, pl_command, const pl_facts *planned, const pl_staging_told *, pl_data **,
                        pl_error *);
/* The graph of a command as the model builds it; for a model run on files, its program as other programs see it. */
pl_status pl_build_graph(const pl_config *, pl_command, const pl_facts *extents, pl_graph **, pl_error *);

/* ---- room.c ---- */
/* May a run of the plan, and that many bytes more, be held on top of what this process has? PL_E_BUDGET. */
pl_status pl_room_check_beside(const pl_plan *, uint64_t bytes, pl_error *);

/* ---- stages.c ---- */
struct pl_stage; /* plimsoll/stages.h */
/* Turns a config of several trainings into that of training k, from 0; is that one done? */
pl_status pl_stage_take(pl_config *, uint32_t k, struct pl_stage *, bool *is_done, pl_error *);

/* ---- compile.c ---- */
/* For training, without a prediction of time: nothing is measured. */
pl_status pl_plan_make_unmeasured(const pl_config *, pl_plan **, pl_error *);

/* ---- run.c ---- */
/* In this process, and leaving no trace: no lock, no files. */
pl_status pl_run_write_witness(pl_run *, uint64_t steps, const char *folder, pl_error *);
pl_status pl_run_open_apart(const pl_plan *, const char *checkpoint, const volatile int *stop, pl_run **, pl_error *);
pl_session *pl_run_session(pl_run *);
const pl_session *pl_run_session_of(const pl_run *);
const pl_plan *pl_run_plan(const pl_run *);
const char *pl_run_folder(const pl_run *); /* NULL unless the run keeps checkpoints there */

/* What a runner's requests take of its heap, besides the plan and what the session holds. */
typedef struct pl_run_heap {
    /* Config, data, settings: held, and the most while they are opened. What the data only need while they are opened
     * (a tokenizer's tree) counts as held: its holes lie between blocks that stay, and what comes next is larger. */
    uint64_t held_bytes, peak_bytes;
    uint64_t load_bytes; /* more than held, for a moment: a checkpoint of the plan's graph */
} pl_run_heap;
/* The run to rehearse. plan: NULL: no checkpoint is loaded. planned: the identity that its plan will have. */
typedef struct pl_run_rehearsal {
    const char *config;
    pl_command command;
    const pl_plan *plan;
    const pl_facts *planned;
} pl_run_rehearsal;
/* Measures the heap by doing what the run will do. */
pl_status pl_run_rehearse(const pl_run_rehearsal *, pl_run_heap *, pl_error *);

/* A text handed to the caller: takes the string's memory. */
pl_status pl_give_text(pl_str *, char **text, size_t *bytes, pl_error *);

/* ---- starts.c: the newest lines of the folder's starts.jsonl, in a block; NULL: there is none ---- */
pl_status pl_starts_read(const char *folder, char **text, size_t *bytes, pl_error *);

/* ---- times.c ---- */
pl_doc_form pl_times_doc_form(pl_times_form);

#endif
