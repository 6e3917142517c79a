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

typedef enum pl_clouds_stage { PL_CLOUDS_PRETRAIN, PL_CLOUDS_FINAL, PL_CLOUDS_LEAVE_OUT } pl_clouds_stage;

typedef enum pl_clouds_list { PL_CLOUDS_TRAIN, PL_CLOUDS_INNER, PL_CLOUDS_TEST, PL_CLOUDS_LISTS } pl_clouds_list;

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
pl_status pl_split_make(pl_clouds_stage, const pl_frames_flight *, uint32_t flights, uint32_t chosen, pl_flight_split *,
                        pl_error *);
/* Which list label `label` of a flight is in; PL_CLOUDS_LISTS: none. */
pl_clouds_list pl_split_list(const pl_flight_split *, uint64_t label);

#endif
