/* The jobs there are, and what they offer each other and whoever runs them. */
#ifndef PL_JOBS_JOBS_H
#define PL_JOBS_JOBS_H

#include "base/quantize.h"
#include "jobs/sample.h"
#include "run/job.h"
#include "run/session.h"

/* ---- train.c ---- */
/* To the last step, or to a stop: then PL_E_STOPPED, with a checkpoint written. PL_E_DIVERGED when a loss, a weight or
 * a state is not finite. Between its steps: an evaluation where the session has that job, and what a further one
 * shows. */
extern const pl_job pl_job_train;
/* The next steps and nothing between them: no reports, no validation, no checkpoint. *loss: of the last. */
pl_status pl_train_steps(pl_session *, uint64_t count, double *loss, pl_error *);

/* ---- evaluate.c ---- */
/* Mean loss of an item of the validation part; to the listener, too. */
extern const pl_job pl_job_evaluate;
/* Over at most so many batches (0: all). */
pl_status pl_evaluate(pl_session *, uint64_t batches, double *loss, uint64_t *items, pl_error *);

/* Of the last evaluation, into a file; PL_E_USAGE where there are none. */
pl_status pl_keep_predictions(pl_session *, const char *path, pl_error *);

/* ---- score.c ---- */
/* How well a pretrained model foretells texts, or which of several choices it finds likely after a prompt: a job of the
 * system pretrained, whose data hold a file of ids (data/text/judged.h). An item with choices is told as a line of
 * JSON. */
extern const pl_job pl_job_score;
/* PL_E_USAGE where the session is none of that. Asks for no memory. */
pl_status pl_score_find(const pl_session *, pl_text_score *, pl_error *);

/* ---- diverged.c ---- */
/* PL_E_DIVERGED: what a model computed (`what`) is not finite, and which of its weights is to blame, if one is. */
pl_status pl_fail_not_finite(const pl_session *, const char *what, pl_error *);

/* ---- gradients.c ---- */
/* One batch, its loss and every gradient at the current weights, as safetensors into settings->to. */
extern const pl_job pl_job_gradients;

/* ---- generate.c ---- */
/* Texts behind the prompt, to the listener. A job of the system text: its data are a pl_text_data with a tokenizer, and
 * settings->own is a pl_generate_settings. */
extern const pl_job pl_job_generate;
typedef struct pl_generate_settings {
    const char *prompt;       /* "" or NULL: a line's beginning */
    const char *prompt_file;  /* whose text is the prompt; NULL: none */
    const char *prompts;      /* file of several, with a pretrained model; NULL: none */
    const char *stop;         /* as pl_stops_read wants it; NULL: nothing ends a text early */
    uint64_t context;         /* tokens that the model looks back */
    bool ends_at_context;     /* a text ends where that is full; else its older half moves out */
    const char *prompt_cache; /* file for what the first prompt leaves in the caches; NULL: none */
    uint32_t samples;         /* texts for a prompt */
    bool answers;             /* further prompts come, by pl_generate_answer */
    bool chats;               /* prompts are a user's messages of one chat; the data have a template */
    const char *system;       /* what it begins with; NULL or "": nothing */
    pl_sampling sampling;
} pl_generate_settings;
enum {
    PL_GENERATE_PROMPT_MAX = 16 << 20, /* bytes of prompt_file */
    PL_GENERATE_ANSWER_MAX = 4096,     /* of a prompt that comes later */
};
/* Texts behind this prompt, of further draws, or the answer to this message. Asks for no memory. PL_E_USAGE where the
 * settings have no answers, the prompt is too long or has no token, or the chat is full; PL_E_DATA: it is no text that
 * the model takes; PL_E_STOPPED. */
pl_status pl_generate_answer(pl_session *, const char *prompt, size_t bytes, pl_error *);

/* ---- rollout.c ---- */
/* States of random operators into a block file: a job of the system rollout, whose data are a pl_rollout_data. What the
 * file has is not made again; PL_E_STOPPED after a stop, what is whole is kept. */
extern const pl_job pl_job_rollout;

/* ---- infer.c ---- */
/* A model on files: the program that rewrite/face.c makes of the face of its system, whose data are a pl_infer_data. */
#define PL_INFER_PROGRAM "infer"
extern const pl_job pl_job_infer;
typedef struct pl_infer_summary {
    uint64_t items, not_finite;                       /* numbers of results that are infinite or NaN */
    double seconds;                                   /* of the work, reading and writing with it */
    double run_seconds;                               /* of that, from the begin of each batch to its end */
    double median_seconds, p95_seconds, most_seconds; /* of an item; 0 where that is not asked for */
} pl_infer_summary;
/* PL_E_USAGE where the session is none of that. */
pl_status pl_infer_find_summary(const pl_session *, pl_infer_summary *, pl_error *);

/* ---- quantize.c ---- */
/* The weights of a model in 8 bits, into a file: settings->own begins with a pl_quantize_settings, the data's steps are
 * samples of a calibration (pl_data.calibration). Its program is that of encoding, that of pl_job_infer, or of
 * evaluating: then what is held out is evaluated, where the session has that job, too. */
extern const pl_job pl_job_quantize_encode, pl_job_quantize_infer, pl_job_quantize_evaluate;
typedef struct pl_quantize_settings {
    const char *path;   /* of the file */
    const char *config; /* of the model, as the file is to say it */
    bool in_folder;     /* it is in that of the run, which may have to be made */
    pl_span_method method;
    double percentile;
    uint64_t keep; /* so many layers that lose most stay in f32 */
} pl_quantize_settings;

/* ---- encode.c ---- */
/* Texts drawn as pages to capsules, in a block file: a job of the system capsules, whose data are a pl_pages_data. What
 * the file has is not made again; PL_E_STOPPED after a stop, what is whole is kept. */
extern const pl_job pl_job_encode;

#endif
