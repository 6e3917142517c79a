/* Reading a problem from a .dag file (docs/recompute.md). Strict: every refusal says file:line:column, what was found
 * and what was expected. A comment behind a node is its name. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "plimsoll/recompute.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/lex.h"

enum { TEXT_MAX = 1 << 30, NODES_MAX = 1 << 24 };

struct pl_recompute_dag {
    pl_pool *pool; /* names, dependencies */
    char *name;
    pl_recompute_node *nodes;
    size_t count, capacity;
    uint64_t fixed;
};

typedef struct reader {
    pl_lex lex;
    pl_recompute_dag *dag;
    uint64_t promised; /* nodes, by the header */
    bool has_header, has_fixed;
    pl_error *err;
} reader;

static pl_status no_memory(const reader *r)
{
    return pl_fail(r->err, PL_E_NOMEM, "%s: no memory for line %d", r->lex.name, r->lex.line);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* The next field of the line: 1 one was read, 0 the line ends or a comment begins, -1 malformed. */
static int next_field(reader *r)
{
    pl_lex *l = &r->lex;
    while (l->at < l->end && is_blank(*l->at)) l->at++;
    l->column = (int)(l->at - l->line_start) + 1;
    if (l->at < l->end && *l->at == '#') return 0;
    return pl_lex_field(l, r->err);
}

static pl_status expect(reader *r, const char *what)
{
    int got = next_field(r);
    if (got < 0) return PL_E_DATA;
    if (got == 0) return pl_lex_fail(&r->lex, r->err, "the line ends where %s was expected", what);
    if (r->lex.key[0])
        return pl_lex_fail(&r->lex, r->err, "expected %s, found \"%s=%.40s\"", what, r->lex.key, r->lex.value);
    return PL_OK;
}

/* Most of a large file are numbers in plain digits: they need no copy. Anything else is left to the lexer. */
static bool read_digits(pl_lex *l, uint64_t most, uint64_t *value)
{
    enum { DIGITS_MAX = 18 };
    const char *from = l->at, *to;
    uint64_t number = 0;
    while (from < l->end && is_blank(*from)) from++;
    for (to = from; to < l->end && *to >= '0' && *to <= '9'; to++) {
        if (to - from == DIGITS_MAX) return false;
        number = 10 * number + (uint64_t)(*to - '0');
    }
    if (to == from || to == l->end || (!is_blank(*to) && *to != '\n') || number > most) return false;
    l->column = (int)(from - l->line_start) + 1;
    l->at = to;
    *value = number;
    return true;
}

static pl_status expect_uint(reader *r, const char *what, uint64_t most, uint64_t *value)
{
    if (read_digits(&r->lex, most, value)) return PL_OK;
    PL_TRY(expect(r, what));
    if (pl_lex_uint(&r->lex, most, value, r->err) == PL_OK) return PL_OK;
    return pl_lex_fail(&r->lex, r->err, "%s is \"%.40s\"; expected a whole number from 0 to %" PRIu64, what,
                       r->lex.value, most);
}

static pl_status expect_end(reader *r)
{
    int got = next_field(r);
    if (got < 0) return PL_E_DATA;
    if (got == 0) return PL_OK;
    return pl_lex_fail(&r->lex, r->err, "expected the end of the line, found \"%.40s\"", r->lex.value);
}

static pl_status read_header(reader *r)
{
    if (r->has_header) return pl_lex_fail(&r->lex, r->err, "a second header; one file holds one dag");
    r->has_header = true;
    PL_TRY(expect_uint(r, "the number of nodes", NODES_MAX, &r->promised));
    PL_TRY(expect(r, "a name"));
    r->dag->name = pl_pool_strdup(r->dag->pool, r->lex.value);
    return r->dag->name ? expect_end(r) : no_memory(r);
}

static pl_status read_fixed(reader *r)
{
    if (r->has_fixed) return pl_lex_fail(&r->lex, r->err, "\"fixed\" appears twice");
    r->has_fixed = true;
    PL_TRY(expect_uint(r, "the fixed bytes", INT64_MAX, &r->dag->fixed));
    return expect_end(r);
}

static pl_status read_cost(reader *r, double *cost)
{
    PL_TRY(expect(r, "the cost"));
    if (pl_lex_double(&r->lex, cost, r->err) == PL_OK && isfinite(*cost) && *cost >= 0) return PL_OK;
    return pl_lex_fail(&r->lex, r->err, "the cost is \"%.40s\"; expected a finite number, not negative", r->lex.value);
}

static pl_status read_deps(reader *r, pl_recompute_node *node)
{
    uint64_t count, dep, own = r->dag->count;
    PL_TRY(expect_uint(r, "the number of inputs", own, &count)); /* there are no more that it could read */
    uint32_t *deps = pl_pool_alloc(r->dag->pool, count, sizeof *deps);
    if (!deps) return no_memory(r);
    for (uint64_t k = 0; k < count; k++) {
        PL_TRY(expect_uint(r, "the id of an input", NODES_MAX, &dep));
        if (dep >= own)
            return pl_lex_fail(&r->lex, r->err,
                               "node %" PRIu64 " reads node %" PRIu64 "; a node comes after what it "
                               "reads, in topological order",
                               own, dep);
        deps[k] = (uint32_t)dep;
    }
    node->deps = deps;
    node->dep_count = count;
    return PL_OK;
}

/* What stands behind the # of a node, without blanks around it. */
static pl_status read_name(reader *r, pl_recompute_node *node)
{
    PL_TRY(expect_end(r));
    const char *from = r->lex.at, *to;
    if (from == r->lex.end || *from != '#') return PL_OK;
    for (from++; from < r->lex.end && is_blank(*from);) from++;
    for (to = from; to < r->lex.end && *to != '\n';) to++;
    while (to > from && is_blank(to[-1])) to--;
    if (to == from || memchr(from, 0, (size_t)(to - from))) return PL_OK;
    node->name = pl_pool_strndup(r->dag->pool, from, (size_t)(to - from));
    return node->name ? PL_OK : no_memory(r);
}

static pl_status read_node(reader *r)
{
    pl_recompute_dag *d = r->dag;
    pl_recompute_node node = {0};
    uint64_t id;
    if (!r->has_header) return pl_lex_fail(&r->lex, r->err, "a node before the header; expected \"dag N NAME\" first");
    PL_TRY(expect_uint(r, "the id of the node", NODES_MAX, &id));
    if (id != d->count)
        return pl_lex_fail(&r->lex, r->err, "node %" PRIu64 " stands where node %zu was expected; ids count from 0", id,
                           d->count);
    if (id >= r->promised)
        return pl_lex_fail(&r->lex, r->err, "node %" PRIu64 ", but the header promises %" PRIu64 " nodes", id,
                           r->promised);
    PL_TRY(read_cost(r, &node.cost));
    PL_TRY(expect_uint(r, "the size", INT64_MAX, &node.size));
    PL_TRY(expect_uint(r, "the work bytes", INT64_MAX, &node.work));
    PL_TRY(read_deps(r, &node));
    PL_TRY(read_name(r, &node));
    if (pl_grow(&d->nodes, &d->capacity, d->count, sizeof *d->nodes)) return no_memory(r);
    d->nodes[d->count++] = node;
    return PL_OK;
}

static pl_status read_keep(reader *r)
{
    int got;
    while ((got = next_field(r)) > 0) {
        uint64_t id;
        if (r->lex.key[0] || pl_lex_uint(&r->lex, NODES_MAX, &id, r->err) != PL_OK || id >= r->dag->count)
            return pl_lex_fail(&r->lex, r->err, "\"%.40s\" is to be kept; expected the id of a node above this line",
                               r->lex.value);
        r->dag->nodes[id].keep = true;
    }
    return got < 0 ? PL_E_DATA : PL_OK;
}

static pl_status read_line(reader *r)
{
    static const struct {
        const char *word;
        pl_status (*read)(reader *);
    } kinds[] = {{"dag", read_header}, {"fixed", read_fixed}, {"node", read_node}, {"keep", read_keep}};
    PL_TRY(expect(r, "dag, fixed, node or keep"));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(r->lex.value, kinds[k].word) == 0) return kinds[k].read(r);
    return pl_lex_fail(&r->lex, r->err, "a line begins with \"%.40s\"; expected dag, fixed, node or keep",
                       r->lex.value);
}

static pl_status read_all(reader *r)
{
    while (pl_lex_line(&r->lex)) PL_TRY(read_line(r));
    if (!r->has_header) return pl_fail(r->err, PL_E_DATA, "%s: has no header; expected \"dag N NAME\"", r->lex.name);
    if (r->dag->count < r->promised)
        return pl_fail(r->err, PL_E_DATA, "%s: ends after %zu nodes; the header promises %" PRIu64, r->lex.name,
                       r->dag->count, r->promised);
    return PL_OK;
}

pl_status pl_recompute_dag_parse(const char *text, size_t bytes, const char *name, pl_recompute_dag **out,
                                 pl_error *err)
{
    *out = NULL;
    pl_recompute_dag *d = pl_alloc(1, sizeof *d);
    if (d) d->pool = pl_pool_create();
    if (!d || !d->pool) {
        pl_recompute_dag_destroy(d);
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name);
    }
    reader r = {.lex = pl_lex_begin(name, text, bytes), .dag = d, .err = err};
    pl_status status = read_all(&r);
    if (status == PL_OK)
        *out = d;
    else
        pl_recompute_dag_destroy(d);
    return status;
}

pl_status pl_recompute_dag_read(const char *path, pl_recompute_dag **out, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    *out = NULL;
    pl_status status = pl_file_read_input(path, TEXT_MAX, &text, &bytes, err);
    if (status == PL_OK) status = pl_recompute_dag_parse(text, bytes, strcmp(path, "-") ? path : "stdin", out, err);
    pl_free(text);
    return status;
}

pl_recompute_problem pl_recompute_dag_problem(const pl_recompute_dag *d)
{
    return (pl_recompute_problem){
        .nodes = d->nodes, .node_count = d->count, .fixed = d->fixed, .budget = PL_RECOMPUTE_NONE};
}

const char *pl_recompute_dag_name(const pl_recompute_dag *d) { return d->name; }

void pl_recompute_dag_destroy(pl_recompute_dag *d)
{
    if (!d) return;
    pl_pool_destroy(d->pool);
    pl_free(d->nodes);
    pl_free(d);
}
