/* A model in each form that it can run in, beside each other: how long a sample takes, what its file and its process
 * hold, and what it costs in accuracy. All numbers were measured by processes that ran; where there is none, a sentence
 * says why. */
#ifndef PL_REPORT_COMPARE_H
#define PL_REPORT_COMPARE_H

#include "base/error.h"
#include "show/render.h"

#define PL_COMPARE_SCHEMA "plimsoll.compare/1"

enum {
    PL_COMPARE_ROWS_MAX = 6,
    PL_COMPARE_BATCHES = 2,  /* one by one, and so many at once */
    PL_COMPARE_TURNS = 64,   /* at most */
    PL_COMPARE_METRICS = 40, /* at most, the loss among them */
    PL_COMPARE_OUTPUTS = 13,
    PL_COMPARE_NAME = 40,
    PL_COMPARE_SENTENCE = 1100
};

/* Processes that ran a model on the same items. */
typedef struct pl_compare_run {
    uint64_t items, batch;                  /* batch: at once, asked for; where there are fewer items, those */
    double seconds[PL_COMPARE_TURNS];       /* that an item takes: of each turn */
    uint32_t turns;                         /* 0: it was not run */
    uint64_t planned_bytes, measured_bytes; /* resident; the most that was measured */
    char why[PL_COMPARE_SENTENCE];          /* it was not run; "": it was, or the row says why */
} pl_compare_run;

typedef struct pl_compare_metric {
    char name[PL_COMPARE_NAME]; /* "loss", "perplexity": as eval --json has it */
    double value;
} pl_compare_metric;

/* What comes out, against what comes of f32. */
typedef struct pl_compare_output {
    char name[PL_COMPARE_NAME];
    double difference;                /* the root of Σ(y − y32)² / Σ y32² */
    bool has_cosine;                  /* rows are of two numbers or more */
    double mean_cosine, least_cosine; /* of a row with the same of f32 */
} pl_compare_output;

typedef struct pl_compare_row {
    const char *name, *words;         /* "int8", "int8, linear layers" ; constants */
    char why[PL_COMPARE_SENTENCE];    /* "": it was run; else why not, and what would help */
    char remark[PL_COMPARE_SENTENCE]; /* "": nothing else is to be said */
    uint64_t file_bytes;              /* of its safetensors file; 0: there is none */
    pl_compare_run runs[PL_COMPARE_BATCHES];
    pl_compare_metric metric[PL_COMPARE_METRICS];
    size_t metrics;                       /* 0: nothing that is held out was judged */
    char not_judged[PL_COMPARE_SENTENCE]; /* why */
    pl_compare_output output[PL_COMPARE_OUTPUTS];
    size_t outputs;
} pl_compare_row;

typedef struct pl_report_compare {
    const char *title;                /* the folder or file that was named */
    const char *arch;                 /* "gpt" */
    const char *sample;               /* what an item is called: "text" */
    char inputs[PL_COMPARE_SENTENCE]; /* "16 texts of what is held out" */
    uint32_t turns;                   /* asked for */
    double flops;                     /* of a sample */
    double binary_flops;              /* of them, products that are of signs */
    double possible_flops;            /* that model.binary would make so; negative: the arch has no such layers */
    bool is_binary;                   /* its layers are of signs */
    int rows;
    pl_compare_row row[PL_COMPARE_ROWS_MAX];
} pl_report_compare;

/* JSON: PL_COMPARE_SCHEMA, docs/infer.md. What was not measured is null, and a sentence says why. columns: of text. */
void pl_report_compare_write(const pl_report_compare *, pl_doc_form, unsigned columns, pl_str *out);
/* Of the turns, 0 where there is none; and the largest distance from it as a share of it. */
double pl_compare_median(const pl_compare_run *);
double pl_compare_spread(const pl_compare_run *);
/* How many times as fast the whole is when that share of it takes no time at all. */
double pl_compare_limit(const pl_report_compare *);
/* The share of the operations, from 0 to 1, that are products of signs or could be; negative: the arch has no such
 * layers. */
double pl_compare_share(const pl_report_compare *);
/* Why none that ran was judged, where it is the same for all; else NULL. */
const char *pl_compare_not_judged(const pl_report_compare *);

#endif
