/* The file: a head, the tokens' ids, then the caches in the order of the graph's nodes, of each as many rows as there
 * are tokens, or all of a ring. Numbers are little-endian. */
#include "jobs/prompt_cache.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/checksum.h"
#include "ir/op.h"

#define MAGIC "plimsoll.prompt1"

enum { HEAD_BYTES = 64, IDENTITY = 16, TOKENS = 24, BODY = 32, CONTENT = 40, HEAD = 48, IDS = 256 };

/* ---- what the caches are ---- */

/* A cache as it lies in memory: the rows that so many tokens fill. */
typedef struct cache {
    void *at;
    uint64_t bytes;
} cache;

/* Node i writes one. */
static bool find_cache(const pl_session *s, size_t i, uint64_t tokens, cache *c)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_node *n = &g->node[i];
    if (n->op != PL_OP_CACHE_WRITE || strcmp(g->region[pl_region_program(g, n->region)].name, "prefill") != 0)
        return false;
    const pl_value *v = &g->value[n->cache_write.cache];
    const uint64_t places = (uint64_t)v->shape.dim[1], all = pl_value_bytes(g, n->cache_write.cache);
    c->at = pl_session_value(s, v->name);
    c->bytes = n->cache_write.ring || tokens > places ? all : all / places * tokens;
    return true;
}

static uint64_t body_bytes(const pl_session *s, uint64_t tokens)
{
    uint64_t bytes = tokens * sizeof(uint32_t);
    cache c;
    for (size_t i = 0; i < s->o.plan->graph->node_count; i++)
        if (find_cache(s, i, tokens, &c)) bytes += c.bytes;
    return bytes;
}

static void add_value(pl_checksum *sum, const pl_session *s, pl_id id)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_value *v = &g->value[id];
    const uint64_t kind[] = {v->role, v->dtype, v->encoding};
    pl_checksum_update(sum, v->name, strlen(v->name));
    pl_checksum_update(sum, kind, sizeof kind);
    pl_checksum_update(sum, v->shape.dim, v->shape.rank * sizeof *v->shape.dim);
    if (v->role == PL_ROLE_WEIGHT) pl_checksum_update(sum, pl_session_value(s, v->name), pl_value_bytes(g, id));
}

static bool is_part_of_model(const pl_graph *g, pl_id id)
{
    const pl_role role = g->value[id].role;
    return (role == PL_ROLE_WEIGHT || role == PL_ROLE_STATE) && pl_value_root(g, id) == id;
}

/* All that decides what the caches hold: the weights themselves, what is computed with them, the caches' form. */
static uint64_t find_identity(const pl_prompt_cache *p, const pl_session *s)
{
    const pl_graph *g = s->o.plan->graph;
    const uint64_t sizes[] = {p->context, p->chunk};
    pl_checksum sum;
    pl_checksum_init(&sum);
    pl_checksum_update(&sum, sizes, sizeof sizes);
    for (size_t i = 0; i < g->value_count; i++)
        if (is_part_of_model(g, (pl_id)i)) add_value(&sum, s, (pl_id)i);
    for (size_t i = 0; i < g->node_count; i++) {
        pl_checksum_update(&sum, &g->node[i].op, sizeof g->node[i].op);
        pl_checksum_update(&sum, g->node[i].attr, sizeof g->node[i].attr);
    }
    return pl_checksum_value(&sum);
}

/* ---- reading ---- */

typedef struct reading {
    const char *path;
    int fd;
    uint64_t bytes, at;
    pl_checksum sum;
} reading;

static pl_status fail_damaged(const reading *r, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: this prompt's cache is damaged; remove the file, and it is made again",
                   r->path);
}

static pl_status read_next(reading *r, void *to, uint64_t bytes, pl_error *err)
{
    PL_TRY(pl_file_read_at(r->fd, r->path, r->at, to, bytes, err));
    pl_checksum_update(&r->sum, to, bytes);
    r->at += bytes;
    return PL_OK;
}

static pl_status read_head(pl_prompt_cache *p, const pl_session *s, reading *r, uint64_t *content, pl_error *err)
{
    uint8_t head[HEAD_BYTES];
    if (r->bytes < HEAD_BYTES) return fail_damaged(r, err);
    PL_TRY(pl_file_read_at(r->fd, r->path, 0, head, HEAD_BYTES, err));
    if (memcmp(head, MAGIC, IDENTITY) != 0)
        return pl_fail(err, PL_E_DATA, "%s: is no prompt's cache; give another name with `generate.prompt_cache`",
                       r->path);
    if (pl_get_u64(head, HEAD) != pl_checksum_of(head, HEAD)) return fail_damaged(r, err);
    if (pl_get_u64(head, IDENTITY) != p->identity)
        return pl_fail(
            err, PL_E_DATA,
            "%s: is the cache of another model, or of another `model.encoding`, `model.context`, "
            "`generate.activations`, `generate.cache_type` or `generate.prefill_tokens` (which a budget may lower); "
            "give another name with `generate.prompt_cache`",
            r->path);
    p->tokens = pl_get_u64(head, TOKENS), *content = pl_get_u64(head, CONTENT), r->at = HEAD_BYTES;
    const bool is_whole = p->tokens <= p->context && pl_get_u64(head, BODY) == r->bytes - HEAD_BYTES &&
                          pl_get_u64(head, BODY) == body_bytes(s, p->tokens);
    return is_whole ? PL_OK : fail_damaged(r, err);
}

static pl_status count_same(const pl_prompt_cache *p, reading *r, const uint32_t *id, size_t count, size_t *same,
                            pl_error *err)
{
    uint32_t stored[IDS];
    *same = 0;
    for (uint64_t at = 0, n; at < p->tokens; at += n) {
        n = p->tokens - at < IDS ? p->tokens - at : IDS;
        PL_TRY(read_next(r, stored, n * sizeof *stored, err));
        for (uint64_t i = 0; i < n && *same == at + i && at + i < count; i++) *same += stored[i] == id[at + i];
    }
    *same -= *same % p->chunk;
    return PL_OK;
}

static pl_status read_all(pl_prompt_cache *p, pl_session *s, reading *r, const uint32_t *id, size_t count,
                          size_t *cached, pl_error *err)
{
    uint64_t content = 0;
    cache c;
    size_t same;
    PL_TRY(read_head(p, s, r, &content, err));
    PL_TRY(count_same(p, r, id, count, &same, err));
    for (size_t i = 0; i < s->o.plan->graph->node_count; i++)
        if (find_cache(s, i, p->tokens, &c)) PL_TRY(read_next(r, c.at, c.bytes, err));
    if (pl_checksum_value(&r->sum) != content) return fail_damaged(r, err);
    *cached = same;
    return PL_OK;
}

pl_status pl_prompt_cache_read(pl_prompt_cache *p, pl_session *s, const uint32_t *id, size_t count, size_t *cached,
                               pl_error *err)
{
    bool is_there;
    reading r = {.path = p->path};
    *cached = 0;
    p->tokens = 0, p->identity = find_identity(p, s);
    PL_TRY(pl_file_look(p->path, &is_there, err));
    if (!is_there) return PL_OK;
    PL_TRY(pl_file_open(p->path, &r.fd, &r.bytes, err));
    pl_checksum_init(&r.sum);
    const pl_status status = read_all(p, s, &r, id, count, cached, err);
    (void)pl_file_drop(r.fd, 0, r.bytes);
    close(r.fd);
    return status;
}

/* ---- writing ---- */

static pl_status write_next(pl_prompt_cache *p, pl_checksum *sum, const void *data, uint64_t bytes, pl_error *err)
{
    pl_checksum_update(sum, data, bytes);
    return pl_file_write(&p->file, data, bytes, err);
}

static pl_status write_all(pl_prompt_cache *p, pl_session *s, const uint32_t *id, size_t count, pl_error *err)
{
    uint8_t head[HEAD_BYTES] = MAGIC;
    pl_checksum sum;
    cache c;
    pl_checksum_init(&sum);
    PL_TRY(pl_file_write(&p->file, head, HEAD_BYTES, err));
    PL_TRY(write_next(p, &sum, id, count * sizeof *id, err));
    for (size_t i = 0; i < s->o.plan->graph->node_count; i++)
        if (find_cache(s, i, count, &c)) PL_TRY(write_next(p, &sum, c.at, c.bytes, err));
    pl_put_u64(head, IDENTITY, p->identity), pl_put_u64(head, TOKENS, count);
    pl_put_u64(head, BODY, body_bytes(s, count)), pl_put_u64(head, CONTENT, pl_checksum_value(&sum));
    pl_put_u64(head, HEAD, pl_checksum_of(head, HEAD));
    PL_TRY(pl_file_write_at(&p->file, 0, head, HEAD_BYTES, err));
    return pl_file_commit(&p->file, err);
}

pl_status pl_prompt_cache_begin(pl_prompt_cache *p, pl_error *err) { return pl_file_create(&p->file, p->path, err); }

pl_status pl_prompt_cache_write(pl_prompt_cache *p, pl_session *s, const uint32_t *id, size_t count, pl_error *err)
{
    const pl_status status = write_all(p, s, id, count, err);
    if (status != PL_OK) pl_file_abandon(&p->file);
    return status;
}
