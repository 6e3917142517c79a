/* What the stages of pl_compile share, and the stages; each group is a file. */
#ifndef PL_API_COMPILER_H
#define PL_API_COMPILER_H

#include "api/api.h"
#include "api/compile.h"
#include "base/machine.h"
#include "calibrate/calibrate.h"
#include "fit/fit.h"
#include "plan/command.h"
#include "store/block_file.h"

/* Called with the progress of searching and of measuring. */
typedef struct pl_told {
    pl_progress progress;
    void *context;
} pl_told;

/* The size of a graph. */
typedef struct pl_graph_size {
    uint64_t nodes, values, name_bytes;
    uint64_t forward_nodes, forward_values; /* in the program that layer_major runs again */
    uint64_t weight_bytes, trained_bytes;   /* all weights but those in files; those that are not frozen */
} pl_graph_size;

typedef struct pl_compiler {
    const pl_config *config;
    pl_config *decided; /* the config with which this run goes on; NULL: the given one */
    pl_command command;
    pl_machine machine;
    pl_data *data;
    bool data_lent;          /* by a caller that compiles several plans */
    pl_graph_size few, more; /* at two depths, a block apart; not deep: its own size */
    uint64_t weight_bytes, trained_bytes;
    pl_settings settings;
    pl_fit_options fit;
    pl_graph *graph; /* differentiated, before any choice */
    pl_told told;
    pl_calibration *calibration;
    bool measured;   /* nothing more is measured */
    bool news;       /* something was measured, and is kept */
    bool brief;      /* what is still unknown in the end may be measured by a later search */
    char job[40];    /* the name under which the calibration keeps what this search needs */
    int team_wanted; /* threads for measuring, still to be asked of the system; 0: done */
    pl_session_disk disk;
    pl_block_sizes results;
    uint64_t plan_text_bytes;
    uint32_t earlier_stages; /* trainings whose files lie on a disk that is memory */
    pl_run_heap heap;        /* the runner's; found once for all candidates that keep the same tensors */
    uint64_t heap_tensors;   /* disk.tensors when it was found; heap.held_bytes 0: not yet */
    bool roughly;            /* a survey: the heap of a larger graph does for a smaller one */
    size_t heap_nodes;       /* those of the largest graph so far, and its heap */
    uint64_t heap_bytes;
    char budget[128]; /* as in the plan */
    char less[128];   /* which forms of the same model take less: "`a.key` bf16 or weights in 8 bits", or "" */
} pl_compiler;

/* ---- compile.c ---- */
/* What is known before any graph is built: data, settings, options. For pl_compiler_end, also when this fails. */
pl_status pl_compiler_begin(const pl_config *given, const pl_compile_options *, pl_compiler **, pl_error *);
void pl_compiler_end(pl_compiler *); /* NULL is fine */
/* The kernels' times, where a prediction is of use. */
pl_status pl_compiler_open_times(pl_compiler *, const pl_config *given, const pl_compile_options *, pl_error *);

/* ---- compile_config.c ---- */
/* A resumed run takes from its checkpoint what fit was allowed to choose. */
pl_status pl_compiler_go_on(pl_compiler *, pl_error *);
pl_status pl_compiler_reserve_words(pl_compiler *, const pl_config *given, pl_error *);
pl_status pl_compiler_keep_choice(const pl_compiler *, const pl_choice *, pl_plan *, pl_error *);

/* ---- compile_work.c ---- */
/* The sizes above, and where the model is not deep its graph, made on the way; else NULL. */
pl_status pl_compiler_count(pl_compiler *, pl_graph **, pl_error *);
/* PL_E_BUDGET, at once, when planning itself would take too much memory, or more than this machine has. */
pl_status pl_compiler_check_work(const pl_compiler *, pl_error *);

/* ---- room.c ---- */
typedef struct pl_room {
    uint64_t bytes;
    const char *words;    /* said before the figure: "the budget of" */
    uint64_t floor_bytes; /* what a process takes without any model; 0: not known */
} pl_room;

void pl_room_find_less(pl_compiler *); /* fills `less` */
/* Do its weights come from a training that is over? */
bool pl_room_is_trained(const pl_compiler *);
/* PL_E_BUDGET when the weights, and what belongs to each of them, exceed the room. */
pl_status pl_room_check_state(const pl_compiler *, const pl_room *, pl_error *);

/* ---- compile_options.c ---- */
/* For pl_fit_find, which then calls stage and settle of compile_process.c with this compiler as their context. */
pl_status pl_compiler_find_options(pl_compiler *, pl_fit_options *, pl_error *);

/* ---- compile_graph.c ---- */
/* Does the command use a trained model in 16 bits (run.precision)? */
bool pl_compiler_is_narrow(const pl_compiler *);
/* The graph is the caller's, also when this fails. */
pl_status pl_compiler_make_graph(const pl_compiler *, pl_graph **, pl_error *);
/* PL_E_DATA: the source does not offer what the programs of the graph load, whose B is not bound yet. */
pl_status pl_check_ports(const pl_graph *, const pl_source *, const char *model, const char *data, pl_error *);
/* Only when the bit is in run.dump. */
pl_status pl_compiler_dump_graph(const pl_compiler *, uint32_t bit, const char *stage, const pl_graph *, pl_error *);
pl_status pl_compiler_dump_plan(const pl_compiler *, const pl_plan *, pl_error *);

/* ---- compile_process.c ---- */
pl_status pl_compiler_stage(void *compiler, pl_graph *, int64_t micro_batch, pl_error *);
pl_status pl_compiler_settle(void *compiler, pl_plan *, pl_error *);
/* What any plan with these options is charged at least: the process without a model. */
pl_status pl_compiler_find_floor(const pl_compiler *, pl_fit_options *, pl_error *);

/* ---- compile_heap.c ---- */
/* Puts the running process's heap into the plan's options, and the plan's length as text into the compiler. */
pl_status pl_compiler_find_heap(pl_compiler *, pl_plan *, pl_error *);
/* A training as a whole: its steps and evaluations, and how long those take. */
void pl_compiler_count_training(const pl_compiler *, const pl_plan *, pl_compiled *);
/* The heap of a run whose plan is empty: no run needs less. */
pl_status pl_compiler_find_least_heap(const pl_compiler *, int threads, uint64_t *bytes, pl_error *);

/* ---- compile_measure.c ---- */
/* Opens the calibration that the compiler's own search uses. */
pl_status pl_compiler_open_calibration(pl_compiler *, const pl_config *given, const pl_compile_options *, pl_error *);
/* The predicted time of all runs that the command's programs make over the opened data; seconds negative: not known. */
pl_duration pl_compiler_predict(const pl_compiler *, const pl_plan *, uint32_t micro_batch);
/* How far the farthest node of a bound graph is from what was measured, ignoring small shares of the time; INFINITY
 * where a kind is not known at all (calibrate.h). */
double pl_compiler_distance(const pl_compiler *, const pl_graph *);
/* When nothing failed: keeps what was measured, and notes that nothing more is to be. */
pl_status pl_compiler_keep_calibration(pl_compiler *, pl_error *);

#endif
