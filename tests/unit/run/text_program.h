/* A graph written as text, as a program at every level beside the interpreter. */
#ifndef PL_TEST_UNIT_RUN_TEXT_PROGRAM_H
#define PL_TEST_UNIT_RUN_TEXT_PROGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "plan/plan.h"
#include "reference/interpret.h"
#include "run/program.h"

static inline pl_plan *text_plan(const char *text, pl_team team)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_plan *p = NULL;
    pl_plan_options options = {.team = team, .process = pl_process_options_default()};
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK || pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (pl_plan_create(g, &options, &p, &err) != PL_OK || pl_plan_check(p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

/* The same normal numbers in both. */
static inline void text_fill(uint64_t seed, reference *r, pl_program *program, const char *name, int count)
{
    pl_philox p = pl_philox_init(seed, pl_stream_id(name));
    float *to = pl_program_find(program, name);
    pl_philox_normal_f32(&p, 0, 0, 0, (uint64_t)count, to);
    for (int i = 0; i < count; i++) reference_find(r, name)[i] = to[i];
}

static inline void text_each_level(void (*run)(pl_team))
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) run((pl_team){1 + isa % 3, (pl_isa)isa});
}

#endif
