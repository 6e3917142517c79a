/* What a person, or a program, sees of a run while it goes on. Asks for no memory. */
#ifndef PL_CLI_PROGRESS_H
#define PL_CLI_PROGRESS_H

#include "command.h"

typedef enum pl_show {
    PL_SHOW_BAR,   /* one line of a terminal, drawn again and again */
    PL_SHOW_PLAIN, /* lines, at most about one a second, and one now and then while a step lasts */
    PL_SHOW_JSON,  /* one object a line on stdout, schema plimsoll.progress/1: docs/formats.md */
} pl_show;

enum { PL_VIEW_BEST_BYTES = 256 };

typedef struct pl_view {
    pl_show show;
    int quiet; /* 1: nothing but warnings; 2: nothing */
    bool color;
    bool text_to_stdout; /* generate: text is data, as it comes */
    bool bar_drawn;
    bool in_text; /* between the first piece and the end */
    unsigned text_column;
    uint64_t first_step; /* where this process began */
    uint64_t shown_step;
    double shown_at; /* seconds of the last plain line, or object of a program's; negative: none */
    double drawn_at; /* and of the last bar */
    double drawn_loss;
    uint64_t timed_step; /* the last one that was seen to end, when, and how long it took */
    double step_at, step_took;
    double made, end_at; /* steps of this process, and the seconds at which the last one is expected */
    uint64_t work_step;  /* the step or the validation under way, when it began, and the last event of it */
    bool work_validates;
    double work_at, heard_at;
    bool stop_heard, stop_said; /* a signal asked for the end: since when that is known here */
    double stop_heard_at;
    uint64_t resident_bytes;
    uint64_t step;      /* of the last event */
    const char *again;  /* the command that goes on; "": not known */
    bool goes_on;       /* it is not the first process of the command: what that said need not be said again */
    bool keeps_results; /* what is whole is on the disk at any time */
    uint64_t planned_bytes;
    char best[PL_VIEW_BEST_BYTES]; /* "loss 3.3249 at step 500  ppl 27.80": the best validation; "" before one */
    double bits_per_byte;          /* of it; 0: it has no such metric */
    uint64_t best_step;            /* when that was; and the last validation */
    double best_loss, last_loss;
    bool reader_left; /* nobody reads stdout any more */
    pl_status status; /* of writing to stdout */
    pl_error error;
} pl_view;

/* "auto", "bar", "plain", "json" as on a terminal or not. */
pl_show pl_show_choose(const char *word, bool terminal);
const char *pl_show_name(pl_show);
bool pl_color_wanted(int fd); /* NO_COLOR, TERM=dumb */

void pl_view_event(pl_view *, const pl_event *);
/* A log, or a program, has heard nothing for long, and the step under way lasts. */
bool pl_view_is_silent(const pl_view *, const pl_event *);
/* NAN: not known, as before anything was made; 0: longer already than what was made lets expect. */
double pl_view_seconds_left(const pl_view *, const pl_event *);
void pl_view_clear(pl_view *); /* takes the bar away, so that other text can be written */

/* ---- progress_stop.c: each event of a training ---- */
void pl_view_stopping(pl_view *, const pl_event *);
/* What a second signal says, which leaves at once: made anew when something is saved, for a handler formats nothing. */
void pl_view_last_words(const pl_view *, const pl_event *);
/* ---- progress_json.c ---- */
void pl_view_json(pl_view *, const pl_event *);
/* ---- progress_text.c: generated text, framed or raw ---- */
void pl_view_text(pl_view *, const char *text, size_t bytes);
void pl_view_text_end(pl_view *);

uint64_t pl_resident_now(void); /* bytes, as the kernel counts them at this moment; 0 when unknown */

#endif
