/* Tests of rewrites and plans as text: a file *.graph holds a graph, what is to be done with it and what must come out
 * (docs/testing.md, "A graph as a test").
 *
 *      # What is shown, in plain words.
 *      steps: bind batch, in place           names of passes (rewrite/passes.c), or of steps.c
 *      with: micro_batch=2                   what they are told; may be left out
 *      graph 2                               the graph, as ir/print.c writes it; lines of comment may stand in it
 *      …
 *      end graph
 *      expect:                               what comes out, to the letter: the graph, the plan, or the refusal
 *      …
 *
 * A recorded text proves nothing by itself: judge.c has an oracle for every step, which runs whatever the text says. */
#ifndef PL_TESTS_GRAPHS_H
#define PL_TESTS_GRAPHS_H

#include "ir/graph.h"
#include "rewrite/passes.h"

enum { STEPS_MAX = 16 };

typedef struct subject {
    const char *path, *name; /* name: without its folders */
    uint64_t seed;           /* of the numbers that the oracles run with */
    char *text;
    size_t expect_at; /* where the expected text begins */
    int expect_line;  /* and the line that this is */
    char steps[400];  /* as written; step[i] points into it */
    char *step[STEPS_MAX];
    size_t step_count;
    pl_rewrites with;
    pl_recompute_decision listed;
    double clip, ema_rate;
    bool angle;
    pl_graph *graph;
    pl_str out;     /* what came out; empty: the graph is it */
    size_t numbers; /* that an oracle has compared */
} subject;

/* ---- file.c: ends the program where the file is not as above ---- */
void subject_read(subject *, const char *path, uint64_t seed);
void subject_release(subject *);
void subject_write(const subject *, const pl_str *got); /* the expected part anew */
/* Says where they differ, as "FILE:LINE: …"; false: nowhere. */
bool subject_differs(const subject *, const pl_str *got);
/* "FILE: sentence" to standard error, and the program ends with 1. */
_Noreturn void subject_broken(const subject *, const char *format, ...) PL_PRINTF(2, 3);

/* ---- steps.c: what is refused leaves its sentence in `out`, and nothing more is done ---- */
extern const double step_beta1, step_beta2, step_epsilon, step_decay;
void subject_run(subject *);

/* ---- judge.c ---- */
/* Legal, and the same after print, parse, print. */
void judge_graph(const subject *, const char *behind);
/* Interpreted with the same random weights, inputs and data, `before` and the subject's graph leave the same numbers in
 * all that lasts: weights, moments, state, outputs, and unless `scaled` gradients. within: how far a number may be from
 * what it was, relative to it; 0: the same bits. */
void judge_same(subject *, const pl_graph *before, bool scaled, double within);
/* Each gradient is the difference quotient of the loss. */
void judge_gradients(subject *, const pl_graph *before);
/* Weights and moments are AdamW's (Adam-atan2's), averages those of the weights, computed apart from the gradients of
 * `before`. */
void judge_update(subject *, const pl_graph *before);

#endif
