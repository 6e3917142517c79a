/* A plan as text. The graph is in the middle, placements follow as one line a block; the last line is a checksum of all
 * those before, for a bit that flips may leave a text that reads well and computes something else. */
#include <inttypes.h>

#include "base/checksum.h"
#include "base/lex.h"
#include "base/locale.h"
#include "plan/plan.h"

static void print_block(pl_str *out, const char *what, size_t id, const pl_block *b)
{
    if (b->bytes == 0) return;
    const struct {
        const char *key;
        uint64_t number;
    } fields[] = {
        {" ", id}, {" offset=", b->offset}, {" bytes=", b->bytes}, {" first=", b->first}, {" last=", b->last}};
    pl_str_append(out, what);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        pl_str_append(out, fields[i].key);
        pl_str_uint(out, fields[i].number);
    }
    pl_str_append(out, "\n");
}

static void print_rows(const pl_plan *p, pl_str *out)
{
    for (size_t i = 0; i < p->ledger.row_count; i++) {
        const pl_memory_row *r = &p->ledger.row[i];
        pl_str_printf(out, "row %d ", (int)r->kind);
        pl_lex_quote(out, r->name);
        pl_str_printf(out, " count=%" PRIu32 " reserved=%" PRIu64 " resident=%" PRIu64 "\n", r->count,
                      r->reserved_bytes, r->resident_bytes);
    }
    pl_str_printf(out,
                  "totals resident=%" PRIu64 " tables=%" PRIu64 " kernel=%" PRIu64 " charged=%" PRIu64 " cache=%" PRIu64
                  "\n",
                  p->ledger.resident_bytes, p->ledger.page_table_bytes, p->ledger.kernel_bytes, p->ledger.charged_bytes,
                  p->writer_cache_bytes);
    for (size_t i = 0; i < p->disk_count; i++) {
        pl_str_append(out, "disk ");
        pl_lex_quote(out, p->disk[i].name);
        pl_str_printf(out, " bytes=%" PRIu64 "\n", p->disk[i].bytes);
    }
}

/* The config a line at a time, so that no field is long. */
static void print_config(const char *text, pl_str *out)
{
    char line[250]; /* in four bytes each when quoted, still a field */
    while (text && *text) {
        size_t n = 0;
        while (text[n] && text[n] != '\n' && n + 1 < sizeof line) line[n] = text[n], n++;
        line[n] = 0;
        pl_str_append(out, text[n] == '\n' || !text[n] ? "config " : "config_part ");
        pl_lex_quote(out, line);
        pl_str_append(out, "\n");
        text += n + (text[n] == '\n');
    }
}

/* The arena of a further space. */
static void print_space(const pl_plan_arena *a, uint32_t space, pl_str *out)
{
    pl_str_printf(out, "arena_of %" PRIu32 " bytes=%" PRIu64 " lower=%" PRIu64 " peak=%" PRIu64 " by=", space, a->bytes,
                  a->lower_bound_bytes, a->peak_position);
    pl_lex_quote(out, a->heuristic);
    pl_str_append(out, "\n");
}

static void print_facts(const char *word, const pl_facts *facts, pl_str *out)
{
    if (facts->count) pl_str_append(out, word);
    for (uint32_t i = 0; i < facts->count; i++)
        pl_str_printf(out, " %s=%" PRIu64, facts->fact[i].name, facts->fact[i].value);
    if (facts->count) pl_str_append(out, "\n");
}

/* Always as long, as times are: known at the end, and in the text whose length is known before. */
static void print_rates(const pl_plan *p, pl_str *out)
{
    const double *rate = p->rates.operations;
    const double number[] = {rate[PL_ARITHMETIC_F32],   rate[PL_ARITHMETIC_BF16], rate[PL_ARITHMETIC_INT8],
                             rate[PL_ARITHMETIC_SIGNS], p->rates.bytes,           p->rates.cache_bytes,
                             p->estimated_share};
    char text[40];
    pl_str_append(out, "rates");
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        pl_print(text, sizeof text, " %.6e", number[i]);
        pl_str_append(out, text);
    }
    pl_str_append(out, "\n");
}

void pl_plan_print(const pl_plan *p, pl_str *out)
{
    char parts[PL_PARTS_NAMES_BYTES];
    char time[40]; /* always as long: the text, which its reader holds, does not depend on what was measured */
    char checksum[PL_CHECKSUM_TEXT_BYTES];
    const size_t begin = out->bytes;
    pl_str_append(out, "plan 2\n");
    pl_str_printf(out, "command %s\n", pl_command_name(p->command));
    pl_str_printf(out, "team threads=%d isa=%s\n", p->team.threads, pl_isa_name(p->team.isa));
    pl_str_printf(out,
                  "process heap=%" PRIu64 " main_stack=%" PRIu64 " stack_reserved=%" PRIu64 " stack_touched=%" PRIu64,
                  p->process.heap_bytes, p->process.main_stack_bytes, p->process.thread_stack_reserved_bytes,
                  p->process.thread_stack_touched_bytes);
    if (p->process.parts != PL_PARTS_ALL) {
        pl_parts_print(p->process.parts, parts);
        pl_str_printf(out, " parts=%s", parts);
    }
    pl_str_append(out, "\n");
    pl_str_printf(
        out, "arena bytes=%" PRIu64 " lower=%" PRIu64 " peak=%" PRIu64 " huge=%d hash=%" PRIu64 " by=", p->arena->bytes,
        p->arena->lower_bound_bytes, p->arena->peak_position, p->huge_pages, p->numerics_hash);
    pl_lex_quote(out, p->arena->heuristic);
    pl_str_append(out, "\n");
    for (uint32_t k = 1; k < p->graph->space_count; k++) print_space(&p->arena[k], k, out);
    print_facts("data", &p->identity, out);
    print_facts("validation", &p->validation, out);
    if (p->batch) pl_str_printf(out, "batch %" PRIu64 "\n", p->batch);
    print_rates(p, out);
    print_rows(p, out);
    print_config(p->config, out);
    pl_graph_print(p->graph, out);
    for (size_t i = 0; i < p->graph->value_count; i++) print_block(out, "block", i, &p->value[i]);
    for (size_t i = 0; i < p->graph->node_count; i++) print_block(out, "workspace", i, &p->workspace[i]);
    for (size_t i = 0; i < p->graph->node_count; i++) {
        if (p->seconds[i] < 0) continue;
        pl_print(time, sizeof time, "%.6e", p->seconds[i]);
        pl_str_printf(out, "time %zu %s\n", i, time);
    }
    pl_str_append(out, "end plan\n");
    if (out->failed) return;
    pl_checksum_print(pl_checksum_of(out->data + begin, out->bytes - begin), checksum);
    pl_str_printf(out, "checksum %s\n", checksum);
}
