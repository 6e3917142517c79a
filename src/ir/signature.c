#include "ir/signature.h"

#include <stddef.h>
#include <stdio.h>

#define IN(name, kind, ...)               .name = PL_NONE,
#define OPT(name, kind, ...)              .name = PL_NONE,
#define INS(name, kind, least, most, ...) .name = {[0 ... most - 1] = PL_NONE},
#define OUT(name, ...)                    .name = PL_NONE,
#define OUT_OPT(name, ...)                .name = PL_UNWANTED,
#define NEW(name, input, ...)             .name = PL_NONE,
#define OUTS(name, most, ...)             .name = {[0 ... most - 1] = PL_UNWANTED},
#define OVER(input)
#define PL_OP(constant, op, ins, outs, attrs) const pl_##op##_args pl_##op##_none = {ins outs};
#include "ir/ops.def"

/* One function per operator, so that in each the operator's own struct is called `args`. */
#define IN(name, kind, ...)               {#name, kind, 1, 1, -1, __VA_ARGS__},
#define OPT(name, kind, ...)              {#name, kind, 0, 1, -1, __VA_ARGS__},
#define INS(name, kind, least, most, ...) {#name, kind, least, most, -1, __VA_ARGS__},
#define OUT(name, ...)                    {#name, '.', 1, 1, -1, __VA_ARGS__},
#define OUT_OPT(name, ...)                {#name, '.', 0, 1, -1, __VA_ARGS__},
#define NEW(name, input, ...)             {#name, '.', 0, 1, offsetof(args, input) / sizeof(pl_id), __VA_ARGS__},
#define OUTS(name, most, ...)             {#name, '.', 0, most, -1, __VA_ARGS__},
#define OVER(input)                       {#input, PL_OVER, 0, 0, offsetof(args, input) / sizeof(pl_id)},
#define INT(name)                         {#name, 'i', 1, 1, -1},
#define INT_OPT(name)                     {#name, 'i', 0, 1, -1},
#define REAL(name)                        {#name, 'f', 1, 1, -1},
#define REAL_OPT(name)                    {#name, 'f', 0, 1, -1},
#define ACT(name)                         {#name, 'a', 1, 1, -1},
#define PL_OP(constant, op, ins_, outs_, attrs_)                                                                       \
    static const pl_signature *signature_##op(void)                                                                    \
    {                                                                                                                  \
        typedef pl_##op##_args args __attribute__((unused));                                                           \
        static const pl_operand in_row[] = {ins_{{0}}}, out_row[] = {outs_{{0}}}, attr_row[] = {attrs_{{0}}};          \
        static const pl_signature s = {.name = #op,                                                                    \
                                       .ins = PL_INS_OF_##constant,                                                    \
                                       .outs = PL_OUTS_OF_##constant,                                                  \
                                       .attrs = PL_ATTRS_OF_##constant,                                                \
                                       .in = in_row,                                                                   \
                                       .out = out_row,                                                                 \
                                       .attr = attr_row};                                                              \
        return &s;                                                                                                     \
    }
#include "ir/ops.def"

const pl_signature *pl_signature_of(pl_op op)
{
    static const pl_signature *(*const of[PL_OP_COUNT])(void) = {
#define PL_OP(constant, op, ins, outs, attrs) [PL_OP_##constant] = signature_##op,
#include "ir/ops.def"
    };
    return of[op]();
}

const pl_operand *pl_operand_at(const pl_operand *o, int k)
{
    for (; o->name[0]; k -= o->most, o++)
        if (k < o->most) return o;
    return NULL;
}

pl_position_name pl_position_name_of(const pl_operand *o, int k)
{
    pl_position_name name;
    for (; k >= o->most; o++) k -= o->most;
    if (o->most == 1)
        snprintf(name.text, sizeof name.text, "%s", o->name);
    else
        snprintf(name.text, sizeof name.text, "%s[%d]", o->name, k);
    return name;
}

bool pl_operand_has(const pl_operand *o, int k, pl_tag tag)
{
    const pl_operand *found = pl_operand_at(o, k);
    return found && found->tags & tag;
}

bool pl_operand_is_required(const pl_operand *o, int k)
{
    for (; o->name[0]; k -= o->most, o++)
        if (k < o->most) return k < o->least;
    return false;
}
