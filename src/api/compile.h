/* From a config to a plan, with what the search found on the way. */
#ifndef PL_API_COMPILE_H
#define PL_API_COMPILE_H

#include "api/api.h"
#include "fit/result.h"
#include "ir/properties.h"

/* Of a plan for what is repeated or trained. */
typedef struct pl_compiled {
    pl_duration
        time;      /* of all items that the data are opened for, or all steps; predicted; seconds negative: not known */
    bool measured; /* every kernel at its shape; else some follow from those of other sizes */
    uint32_t at_once; /* samples */
    /* Of a training: */
    uint64_t steps, epoch_steps, evaluations, checkpoints, patience;
} pl_compiled;

typedef struct pl_compile_options {
    pl_command command;
    const char *cache_folder; /* of the calibration; NULL: none is kept */
    bool unmeasured;          /* no kernel is measured, no time predicted */
    pl_progress progress;     /* or NULL */
    void *context;
    bool everything;    /* predict what does not fit, too: for the front */
    bool measured;      /* nothing is to be measured any more: what is not in the table is estimated */
    bool *news;         /* set where kernels were measured, and are kept; or NULL */
    uint64_t *steps;    /* of the run, out; or NULL */
    pl_compiled *found; /* likewise */
    bool here;          /* this machine is to hold it: what it cannot is refused at once */
    pl_data *data;      /* opened for the command and lent; or NULL: they are opened here */
    uint32_t group; /* of work in groups: one more than the number of the one that is planned; 0: the next to be done */
    bool survey;    /* one of many graphs: kernels that are near to measured ones (PL_SURVEY_NEAR) are estimated */
    bool quick;     /* whether it fits is all that is asked; nothing is measured */
    bool sizes;     /* of texts to be judged, whose length decides nothing, none is read */
    bool brief;     /* measuring takes at most PL_BRIEF_SECONDS; what is not known then is estimated */
} pl_compile_options;

/* result NULL: not wanted; else for pl_fit_result_deinit, whatever is returned. The plan is NULL when it fails. */
pl_status pl_compile(const pl_config *, const pl_compile_options *, pl_fit_result *, pl_plan **, pl_error *);

/* ---- survey.c ---- */
#define PL_SURVEY_NEAR    0.25 /* sizes whose logarithms are no further apart: a quarter more */
#define PL_SURVEY_SECONDS 60.0 /* for measuring */
#define PL_BRIEF_SECONDS  0.3  /* or one pass, but never longer than ten times that */
/* Of work in groups the plan of the largest one, which then carries what was found of all of them, and the options say
 * which it was; else as above. */
pl_status pl_compile_largest(const pl_config *, pl_compile_options *, pl_fit_result *, pl_plan **, pl_error *);

/* The plan carries its training as all of the work. */
pl_status pl_work_add_training(pl_plan *, const pl_compiled *, pl_error *);

/* ---- room.c ---- */
/* Is it a model that somebody brings? Then a refusal names no keys, and what would fit follows (pl_advise_refused). */
bool pl_is_brought(const pl_config *);

/* ---- certify.c ---- */
/* Nothing fits: each permission that is not given is tried alone, without measuring; into the result. */
pl_status pl_certify(const pl_config *, const pl_compile_options *, pl_fit_result *, pl_error *);
/* Something fits, and nothing is trained: what other numbers would bring, each alone, measured; into the result. */
pl_status pl_try_numbers(const pl_config *, const pl_compile_options *, pl_fit_result *, pl_error *);

/* ---- advise.c ---- */
/* Of a plan that carries all of the work: what bounds its time, what would change that, what may go wrong, and what
 * would be safe; into the plan. Each variation that its keys tell of (WHAT_IF in config/sections.def) is planned. */
pl_status pl_advise(const pl_config *, const pl_compile_options *, const pl_compiled *, pl_plan *, pl_error *);
/* Nothing fits the budget: the options that would make it fit, behind the sentence. Returns PL_E_BUDGET. */
pl_status pl_advise_refused(const pl_config *, const pl_compile_options *, pl_error *);

/* ---- contexts.c ---- */
/* The table of contexts, into a plan that has a context. */
pl_status pl_look_at_contexts(const pl_config *, const char *cache_folder, pl_plan *, pl_error *);

#endif
