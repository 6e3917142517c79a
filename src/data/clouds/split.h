/* Which labels a stage of the protocol trains on, which it is stopped by, and which it is judged by. A flight's labels
 * are numbered in the order of its frames, that is in time:
 *
 *      pretrain     one flight       |←──── train, 80 % ────→|← stopped and judged by ─→|
 *      final, loo   held out         |←────────────────── judged by ───────────────────→|
 *                   every other      |←──────── train, 85 % ──────→|← stopped by, 15 % →|
 *
 * So no label of the flight that judges has a part in what is judged; "final" and "loo" differ in the flight and in how
 * samples are drawn (draw.h). */
#ifndef PL_DATA_SPLIT_H
#define PL_DATA_SPLIT_H

#include <stdbool.h>

#include "data/clouds/frames.h"

typedef enum pl_split_stage { PL_SPLIT_PRETRAIN, PL_SPLIT_FINAL, PL_SPLIT_LEAVE_OUT } pl_split_stage;

typedef enum pl_split_list { PL_SPLIT_TRAIN, PL_SPLIT_INNER, PL_SPLIT_TEST, PL_SPLIT_LISTS } pl_split_list;

/* Labels [0, train) of a flight are trained on, [train, end) stop the training; a flight that is held out has none of
 * either. In pre-training what stops is also what judges. */
typedef struct pl_flight_split {
    uint64_t train, end;
    bool held_out; /* all its labels judge */
} pl_flight_split;

/* The number of the flight of that name. PL_E_CONFIG, with those that there are; key: which key names it. */
pl_status pl_split_find(const pl_frames_flight *, uint32_t flights, const char *key, const char *name, uint32_t *number,
                        pl_error *);
/* Into split[flights]; chosen: the flight of the stage. PL_E_DATA where nothing would be left to train on, to be
 * stopped by or to be judged by. */
pl_status pl_split_make(pl_split_stage, const pl_frames_flight *, uint32_t flights, uint32_t chosen, pl_flight_split *,
                        pl_error *);
/* Which list label `label` of a flight is in; PL_SPLIT_LISTS: none. */
pl_split_list pl_split_find_list(const pl_flight_split *, uint64_t label);

#endif
