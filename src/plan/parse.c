/* Reads what print.c writes; damage is an error with a position. What was read is then judged by check.c. */
#include <string.h>

#include "base/checksum.h"
#include "base/lex.h"
#include "ir/parse.h"
#include "plan/plan.h"

typedef struct number_field {
    const char *key;
    uint64_t *to;
} number_field;

/* The rest of the line: key=number fields, each required once. */
static pl_status parse_numbers(pl_lex *l, const number_field *fields, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        PL_TRY(pl_lex_expect(l, fields[i].key, err));
        PL_TRY(pl_lex_uint(l, UINT64_MAX, fields[i].to, err));
    }
    return PL_OK;
}

static pl_status parse_text(pl_lex *l, const char *key, char *to, size_t room, pl_error *err)
{
    PL_TRY(pl_lex_expect(l, key, err));
    if (strlen(l->value) >= room) return pl_lex_fail(l, err, "this text is longer than %zu bytes", room - 1);
    strcpy(to, l->value);
    return PL_OK;
}

static pl_status parse_team(pl_lex *l, pl_plan *p, pl_error *err)
{
    int64_t threads;
    PL_TRY(pl_lex_expect(l, "threads", err));
    PL_TRY(pl_lex_int(l, 1, 1024, &threads, err));
    p->team.threads = (int)threads;
    PL_TRY(pl_lex_expect(l, "isa", err));
    return pl_isa_parse(l->value, &p->team.isa) ? pl_lex_fail(l, err, "unknown instruction set \"%.20s\"", l->value)
                                                : PL_OK;
}

static pl_status parse_heuristic(pl_lex *l, pl_plan *p, pl_plan_arena *a, pl_error *err)
{
    PL_TRY(pl_lex_expect(l, "by", err));
    a->heuristic = pl_pool_strdup(p->names, l->value);
    return a->heuristic ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the plan");
}

static pl_status parse_arena(pl_lex *l, pl_plan *p, pl_error *err)
{
    uint64_t huge;
    number_field fields[] = {{"bytes", &p->arena->bytes},
                             {"lower", &p->arena->lower_bound_bytes},
                             {"peak", &p->arena->peak_position},
                             {"huge", &huge},
                             {"hash", &p->numerics_hash}};
    PL_TRY(parse_numbers(l, fields, 5, err));
    p->huge_pages = huge != 0;
    return parse_heuristic(l, p, p->arena, err);
}

/* The arena of a further space. */
static pl_status parse_arena_of(pl_lex *l, pl_plan *p, pl_error *err)
{
    uint64_t space;
    PL_TRY(pl_lex_expect(l, NULL, err));
    PL_TRY(pl_lex_uint(l, PL_SPACES_MAX - 1, &space, err));
    pl_plan_arena *a = &p->arena[space];
    number_field fields[] = {{"bytes", &a->bytes}, {"lower", &a->lower_bound_bytes}, {"peak", &a->peak_position}};
    PL_TRY(parse_numbers(l, fields, 3, err));
    return parse_heuristic(l, p, a, err);
}

/* Every space of the graph has one, and there are no others. */
static pl_status check_arenas(pl_lex *l, const pl_plan *p, pl_error *err)
{
    for (uint32_t k = 0; k < PL_SPACES_MAX; k++)
        if ((p->arena[k].heuristic != NULL) != (k < p->graph->space_count))
            return pl_lex_fail(l, err, "the graph has %u spaces, and %s line \"arena\" for space %u",
                               p->graph->space_count, p->arena[k].heuristic ? "there is a" : "there is no", k);
    return PL_OK;
}

static pl_status parse_row(pl_lex *l, pl_plan *p, pl_error *err)
{
    if (p->ledger.row_count == PL_MEMORY_ROWS_MAX) return pl_lex_fail(l, err, "more than %d rows", PL_MEMORY_ROWS_MAX);
    pl_memory_row *r = &p->ledger.row[p->ledger.row_count];
    uint64_t kind, count;
    PL_TRY(pl_lex_expect(l, NULL, err));
    PL_TRY(pl_lex_uint(l, PL_MEMORY_KIND_COUNT - 1, &kind, err));
    PL_TRY(parse_text(l, NULL, r->name, sizeof r->name, err));
    number_field fields[] = {{"count", &count}, {"reserved", &r->reserved_bytes}, {"resident", &r->resident_bytes}};
    PL_TRY(parse_numbers(l, fields, 3, err));
    if (count > UINT32_MAX) return pl_lex_fail(l, err, "a row counts at most %u", UINT32_MAX);
    r->kind = (pl_memory_kind)kind;
    r->count = (uint32_t)count;
    p->ledger.row_count++;
    return PL_OK;
}

static pl_status parse_disk(pl_lex *l, pl_plan *p, pl_error *err)
{
    if (p->disk_count == PL_PLAN_DISK_ROWS_MAX)
        return pl_lex_fail(l, err, "more than %d disk rows", PL_PLAN_DISK_ROWS_MAX);
    pl_plan_disk_row *r = &p->disk[p->disk_count];
    PL_TRY(parse_text(l, NULL, r->name, sizeof r->name, err));
    PL_TRY(parse_numbers(l, (number_field[]){{"bytes", &r->bytes}}, 1, err));
    p->disk_count++;
    return PL_OK;
}

static pl_status parse_graph(pl_lex *l, pl_plan *p, pl_error *err)
{
    if (p->graph) return pl_lex_fail(l, err, "a second graph");
    PL_TRY(pl_graph_parse_lines(l, &p->graph, err));
    p->value = pl_alloc(p->graph->value_count + 1, sizeof *p->value);
    p->workspace = pl_alloc(p->graph->node_count + 1, sizeof *p->workspace);
    p->seconds = pl_alloc(p->graph->node_count + 1, sizeof *p->seconds);
    if (!p->value || !p->workspace || !p->seconds) return pl_fail(err, PL_E_NOMEM, "no memory for the plan");
    for (size_t i = 0; i < p->graph->node_count; i++) p->seconds[i] = -1;
    return PL_OK;
}

static pl_status parse_index(pl_lex *l, const pl_plan *p, bool node, uint64_t *id, pl_error *err)
{
    if (!p->graph) return pl_lex_fail(l, err, "this line comes before the graph");
    size_t count = node ? p->graph->node_count : p->graph->value_count;
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (count == 0) return pl_lex_fail(l, err, "the graph has none of these");
    return pl_lex_uint(l, count - 1, id, err);
}

static pl_status parse_block(pl_lex *l, pl_plan *p, bool workspace, pl_error *err)
{
    uint64_t id;
    PL_TRY(parse_index(l, p, workspace, &id, err));
    pl_block *b = workspace ? &p->workspace[id] : &p->value[id];
    uint64_t first, last, nodes = p->graph->node_count;
    number_field fields[] = {{"offset", &b->offset}, {"bytes", &b->bytes}, {"first", &first}, {"last", &last}};
    PL_TRY(parse_numbers(l, fields, 4, err));
    if (last > nodes || first > nodes) return pl_lex_fail(l, err, "this life ends after the last node");
    b->first = (uint32_t)first, b->last = (uint32_t)last;
    b->space = workspace ? pl_plan_workspace_space(p->graph, &p->graph->node[id]) : p->graph->value[id].space;
    return PL_OK;
}

static pl_status parse_time(pl_lex *l, pl_plan *p, pl_error *err)
{
    uint64_t id;
    PL_TRY(parse_index(l, p, true, &id, err));
    PL_TRY(pl_lex_expect(l, NULL, err));
    return pl_lex_double(l, &p->seconds[id], err);
}

/* In the order of print.c. Who runs what was planned before there was such a line knows no rates. */
static pl_status parse_rates(pl_lex *l, pl_plan *p, pl_error *err)
{
    double *rate = p->rates.operations;
    double *const number[] = {&rate[PL_ARITHMETIC_F32],   &rate[PL_ARITHMETIC_BF16], &rate[PL_ARITHMETIC_INT8],
                              &rate[PL_ARITHMETIC_SIGNS], &p->rates.bytes,           &p->rates.cache_bytes,
                              &p->estimated_share};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        PL_TRY(pl_lex_expect(l, NULL, err));
        PL_TRY(pl_lex_double(l, number[i], err));
        if (!(*number[i] >= 0)) return pl_lex_fail(l, err, "a rate is not negative");
    }
    return PL_OK;
}

/* The rest of the line: name=number, at least one. */
static pl_status parse_facts(pl_lex *l, pl_facts *facts, pl_error *err)
{
    uint64_t value;
    int more;
    while ((more = pl_lex_field(l, err)) > 0) {
        PL_TRY(pl_lex_uint(l, UINT64_MAX, &value, err));
        if (!pl_facts_add(facts, l->key, value))
            return pl_lex_fail(l, err, "a field name=number was expected, at most %d of them", PL_FACTS_MAX);
    }
    if (more < 0) return err->status;
    return facts->count ? PL_OK : pl_lex_fail(l, err, "a field name=number was expected");
}

/* A plan that names no parts is of a process that holds the whole program. */
static pl_status parse_process(pl_lex *l, pl_plan *p, pl_error *err)
{
    number_field fields[] = {{"heap", &p->process.heap_bytes},
                             {"main_stack", &p->process.main_stack_bytes},
                             {"stack_reserved", &p->process.thread_stack_reserved_bytes},
                             {"stack_touched", &p->process.thread_stack_touched_bytes}};
    PL_TRY(parse_numbers(l, fields, 4, err));
    p->process.parts = PL_PARTS_ALL;
    const int more = pl_lex_field(l, err);
    if (more <= 0) return more < 0 ? err->status : PL_OK;
    if (strcmp(l->key, "parts") == 0 && pl_parts_parse(l->value, &p->process.parts) == 0) return PL_OK;
    return pl_lex_fail(l, err, "parts of the program were expected; this is a plan of another program: plan again");
}

static pl_status parse_line(pl_lex *l, pl_plan *p, pl_str *config, pl_error *err)
{
    const char *word = l->value;
    if (strcmp(word, "block") == 0) return parse_block(l, p, false, err);
    if (strcmp(word, "workspace") == 0) return parse_block(l, p, true, err);
    if (strcmp(word, "time") == 0) return parse_time(l, p, err);
    if (strcmp(word, "rates") == 0) return parse_rates(l, p, err);
    if (strcmp(word, "row") == 0) return parse_row(l, p, err);
    if (strcmp(word, "disk") == 0) return parse_disk(l, p, err);
    if (strcmp(word, "team") == 0) return parse_team(l, p, err);
    if (strcmp(word, "command") == 0) {
        PL_TRY(pl_lex_expect(l, NULL, err));
        return pl_command_parse(l->value, &p->command) ? PL_OK
                                                       : pl_lex_fail(l, err, "unknown command \"%.20s\"", l->value);
    }
    if (strcmp(word, "arena") == 0) return parse_arena(l, p, err);
    if (strcmp(word, "arena_of") == 0) return parse_arena_of(l, p, err);
    if (strcmp(word, "batch") == 0) {
        PL_TRY(pl_lex_expect(l, NULL, err));
        return pl_lex_uint(l, UINT32_MAX, &p->batch, err);
    }
    if (strcmp(word, "graph") == 0) return parse_graph(l, p, err);
    if (strcmp(word, "data") == 0) return parse_facts(l, &p->identity, err);
    if (strcmp(word, "validation") == 0) return parse_facts(l, &p->validation, err);
    if (strcmp(word, "config") == 0 || strcmp(word, "config_part") == 0) {
        bool whole = word[6] == 0;
        PL_TRY(pl_lex_expect(l, NULL, err));
        pl_str_append(config, l->value);
        if (whole) pl_str_append(config, "\n");
        return PL_OK;
    }
    if (strcmp(word, "process") == 0) return parse_process(l, p, err);
    if (strcmp(word, "totals") == 0) {
        number_field fields[] = {{"resident", &p->ledger.resident_bytes},
                                 {"tables", &p->ledger.page_table_bytes},
                                 {"kernel", &p->ledger.kernel_bytes},
                                 {"charged", &p->ledger.charged_bytes},
                                 {"cache", &p->writer_cache_bytes}};
        return parse_numbers(l, fields, 5, err);
    }
    return pl_lex_fail(l, err, "unknown line \"%.40s\" in a plan", word);
}

/* The last line, of all that stands before it in the text. */
static pl_status parse_checksum(pl_lex *l, const char *text, pl_error *err)
{
    uint64_t expected;
    if (!pl_lex_line(l)) return pl_lex_fail(l, err, "the text ends before its checksum; it is truncated");
    const size_t bytes = (size_t)(l->line_start - text);
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (strcmp(l->value, "checksum") != 0)
        return pl_lex_fail(l, err, "expected \"checksum\", found \"%.40s\"", l->value);
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (pl_checksum_parse(l->value, &expected)) return pl_lex_fail(l, err, "16 hexadecimal digits were expected");
    PL_TRY(pl_lex_end(l, err));
    if (expected == pl_checksum_of(text, bytes)) return PL_OK;
    return pl_lex_fail(l, err, "the plan is not the one that was written: it is damaged or was changed; plan again");
}

static pl_status parse_end(pl_lex *l, const pl_plan *p, const char *text, pl_error *err)
{
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (strcmp(l->value, "plan") != 0)
        return pl_lex_fail(l, err, "expected \"end plan\", found \"end %.40s\"", l->value);
    PL_TRY(pl_lex_end(l, err));
    if (!p->graph) return pl_lex_fail(l, err, "a plan without a graph");
    if (p->command == PL_COMMAND_COUNT) return pl_lex_fail(l, err, "a plan without a line \"command\"; plan again");
    if (p->team.threads == 0) return pl_lex_fail(l, err, "a plan without a line \"team\"");
    if (!p->arena->heuristic) return pl_lex_fail(l, err, "a plan without a line \"arena\"");
    PL_TRY(check_arenas(l, p, err));
    if (text) PL_TRY(parse_checksum(l, text, err));
    return pl_lex_line(l) ? pl_lex_fail(l, err, "text after the end of the plan") : PL_OK;
}

/* Version 1 had no checksum. */
static pl_status parse_version(pl_lex *l, bool *has_checksum, pl_error *err)
{
    PL_TRY(pl_lex_expect(l, NULL, err));
    *has_checksum = strcmp(l->value, "2") == 0;
    if (!*has_checksum && strcmp(l->value, "1") != 0)
        return pl_lex_fail(l, err, "this program reads versions 1 and 2 of the plan text, found %.20s", l->value);
    return pl_lex_end(l, err);
}

static pl_status parse_lines(pl_lex *l, pl_plan *p, pl_str *config, pl_error *err)
{
    const char *text = l->at;
    bool has_checksum;
    if (!pl_lex_line(l)) return pl_lex_fail(l, err, "the text is empty, a plan was expected");
    PL_TRY(pl_lex_expect(l, NULL, err));
    if (strcmp(l->value, "plan") != 0) return pl_lex_fail(l, err, "expected \"plan 2\", found \"%.40s\"", l->value);
    PL_TRY(parse_version(l, &has_checksum, err));
    for (;;) {
        if (!pl_lex_line(l)) return pl_lex_fail(l, err, "the text ends before \"end plan\"; it is truncated");
        PL_TRY(pl_lex_expect(l, NULL, err));
        if (strcmp(l->value, "end") == 0) return parse_end(l, p, has_checksum ? text : NULL, err);
        PL_TRY(parse_line(l, p, config, err));
        PL_TRY(pl_lex_end(l, err));
    }
}

pl_status pl_plan_parse(const char *name, const char *text, size_t bytes, pl_plan **plan, pl_error *err)
{
    pl_lex l = pl_lex_begin(name, text, bytes);
    pl_status status = PL_OK;
    pl_str config = {0};
    pl_plan *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name);
    p->command = PL_COMMAND_COUNT;
    p->names = pl_pool_create();
    if (!p->names) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name));
    PL_TRY_DONE(parse_lines(&l, p, &config, err));
    if (config.failed) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name));
    p->config = pl_strdup(pl_str_text(&config));
    if (!p->config) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name));
    *plan = p;
    p = NULL;
done:
    pl_str_deinit(&config);
    pl_plan_destroy(p);
    return status;
}
