#include "layers/net.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/philox.h"

void pl_net_init(pl_net *n, pl_graph *g, pl_id init, pl_error *err)
{
    *n = (pl_net){.err = err, .flowing = PL_NONE};
    n->b = n->init = pl_builder_begin(g, init, err);
    for (int i = 0; i < PL_INPUT_COUNT; i++) n->input[i] = PL_NONE;
}

void pl_net_deinit(pl_net *n) { pl_names_deinit(&n->lasting); }

/* ---- what lasts ---- */

static pl_id add(pl_net *n, pl_role role, pl_dtype dtype, pl_shape shape, const char *name)
{
    pl_id id = pl_build_persistent(&n->b, role, dtype, shape, "%s", name);
    if (id != PL_NONE) n->b.status = pl_names_add(&n->lasting, n->b.graph, id, n->b.err);
    if (n->b.status != PL_OK) return PL_NONE;
    pl_builder_at_value(&n->init, id);
    return id;
}

static void fill(pl_net *n, pl_id y, double value)
{
    pl_fill_args a = pl_fill_none;
    a.y = y, a.value = value;
    pl_build_fill(&n->init, &a);
}

static void draw_normal(pl_net *n, pl_id y, double std, int64_t stream)
{
    pl_normal_args a = pl_normal_none;
    a.y = y, a.std = std, a.seed = (int64_t)n->seed, a.stream = stream;
    pl_build_normal(&n->init, &a);
}

static void draw_truncated(pl_net *n, pl_id y, double std, int64_t stream)
{
    pl_truncated_normal_args a = pl_truncated_normal_none;
    a.y = y, a.std = std, a.seed = (int64_t)n->seed, a.stream = stream;
    pl_build_truncated_normal(&n->init, &a);
}

static void draw_uniform(pl_net *n, pl_id y, pl_init init, int64_t stream)
{
    pl_uniform_args a = pl_uniform_none;
    a.y = y, a.item = n->input[PL_INPUT_ITEM], a.low = init.low, a.high = init.high;
    a.seed = (int64_t)n->seed, a.stream = stream;
    pl_build_uniform(&n->init, &a);
}

static void begin(pl_net *n, pl_id y, pl_init init, const char *name)
{
    const int64_t stream = (int64_t)pl_stream_id(name);
    switch (init.kind) {
    case PL_INIT_ABSENT:
    case PL_INIT_READ:
        break;
    case PL_INIT_ALL:
        fill(n, y, init.value);
        break;
    case PL_INIT_NORMAL:
        draw_normal(n, y, init.value, stream);
        break;
    case PL_INIT_TRUNCATED:
        draw_truncated(n, y, init.value, stream);
        break;
    case PL_INIT_UNIFORM:
        draw_uniform(n, y, init, stream);
        break;
    }
    n->b.status = n->init.status;
}

/* A name stands for one value: asked for as another one, it is a name that two parts of a model share by mistake. */
static pl_id known(pl_net *n, pl_role role, pl_dtype dtype, const pl_shape *shape, const char *name)
{
    const pl_id id = pl_names_find(&n->lasting, n->b.graph, name);
    if (id == PL_NONE) return PL_NONE;
    const pl_value *v = &n->b.graph->value[id];
    if (v->role == role && v->dtype == dtype && pl_shape_equal(&v->shape, shape)) return id;
    n->b.status =
        pl_fail(n->err, PL_E_INTERNAL, "%s is made twice, of two kinds or shapes; give one another name", name);
    return PL_NONE;
}

static pl_id lasting(pl_net *n, pl_role role, pl_init init, pl_dtype dtype, pl_shape shape, const char *name)
{
    if (n->b.status != PL_OK || init.kind == PL_INIT_ABSENT) return PL_NONE;
    pl_id id = known(n, role, dtype, &shape, name);
    if (n->b.status != PL_OK || id != PL_NONE) return id;
    id = add(n, role, dtype, shape, name);
    if (id == PL_NONE) return PL_NONE;
    pl_value *v = &n->b.graph->value[id];
    v->frozen = role == PL_ROLE_WEIGHT && n->is_frozen;
    if (v->frozen && init.kind == PL_INIT_READ && n->store) n->store(n->files, v);
    begin(n, id, init, name);
    return id;
}

/* A name that was cut could be another one's. */
static void print_name(pl_net *n, char name[PL_NET_NAME_BYTES], const char *fmt, va_list args)
{
    const int bytes = vsnprintf(name, PL_NET_NAME_BYTES, fmt, args);
    if (n->b.status == PL_OK && (bytes < 0 || bytes >= PL_NET_NAME_BYTES))
        n->b.status = pl_fail(n->err, PL_E_INTERNAL, "%s…: the name of a weight has more than %d bytes", name,
                              PL_NET_NAME_BYTES - 1);
}

#define NAMED(name, fmt)                                                                                               \
    char name[PL_NET_NAME_BYTES];                                                                                      \
    va_list args;                                                                                                      \
    va_start(args, fmt);                                                                                               \
    print_name(n, name, fmt, args);                                                                                    \
    va_end(args)

pl_id pl_net_weight(pl_net *n, pl_init init, pl_dtype dtype, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    return lasting(n, PL_ROLE_WEIGHT, init, dtype, shape, name);
}

pl_id pl_net_state(pl_net *n, pl_init init, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    pl_id id = lasting(n, PL_ROLE_STATE, init, PL_DTYPE_F32, shape, name);
    if (id != PL_NONE) n->b.graph->value[id].inference = true;
    return id;
}

pl_id pl_net_carried(pl_net *n, pl_init init, pl_dtype dtype, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    return lasting(n, PL_ROLE_STATE, init, dtype, shape, name);
}

pl_id pl_net_carried_copy(pl_net *n, pl_id of, const char *fmt, ...)
{
    NAMED(name, fmt);
    pl_cast_args a = pl_cast_none;
    if (n->b.status != PL_OK || of == PL_NONE) return PL_NONE;
    const pl_value v = n->b.graph->value[of];
    const pl_id id = known(n, PL_ROLE_STATE, v.dtype, &v.shape, name);
    if (n->b.status != PL_OK || id != PL_NONE) return id;
    a.x = of, a.y = add(n, PL_ROLE_STATE, v.dtype, v.shape, name);
    if (a.y == PL_NONE) return PL_NONE;
    pl_build_cast(&n->init, &a);
    n->b.status = n->init.status;
    return a.y;
}

bool pl_net_freeze(pl_net *n, bool is_frozen)
{
    const bool before = n->is_frozen;
    n->is_frozen = before || is_frozen;
    return before;
}

void pl_net_thaw(pl_net *n, bool before) { n->is_frozen = before; }

/* ---- what layers ask ---- */

int64_t pl_net_extent(const pl_net *n, pl_id x, int axis)
{
    return n->b.status != PL_OK || x == PL_NONE ? 1 : n->b.graph->value[x].shape.dim[axis];
}

int64_t pl_net_last_extent(const pl_net *n, pl_id x)
{
    return n->b.status != PL_OK || x == PL_NONE ? 1 : pl_shape_last(&n->b.graph->value[x].shape);
}

int64_t pl_net_stream(const pl_net *n, const char *part)
{
    char name[sizeof n->b.scope + 16];
    snprintf(name, sizeof name, "%s%s%s", n->b.scope, part[0] ? "/" : "", part);
    return (int64_t)pl_stream_id(name);
}
