#include "data/text/chain_data.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/permutation.h"
#include "base/size.h"
#include "base/str.h"
#include "base/units.h"

enum { TOKENS_PORT, TARGETS_PORT, ANSWERS_PORT, PORTS, ALIGNED = 16 };
enum { READER_BYTES = (sizeof(pl_tokens_reader) + ALIGNED - 1) / ALIGNED * ALIGNED };

static const pl_chain_data *chains_of(const pl_source *source)
{
    return (const pl_chain_data *)((const char *)source - offsetof(pl_chain_data, source));
}

/* ---- the source; the scratch of its thread is a record, then its reader ---- */

static uint64_t record_bytes(const pl_chain_data *c)
{
    return pl_align_up(pl_chain_record(&c->layout) * sizeof(int32_t), ALIGNED);
}

static pl_tokens_reader *reader_in(const pl_chain_data *c, void *scratch)
{
    return (pl_tokens_reader *)(void *)((char *)scratch + record_bytes(c));
}

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_chain_data *c = chains_of(source);
    const uint64_t rest = (uint64_t)pl_chain_rest(&c->layout);
    uint64_t bytes;
    if (pl_size_mul(micro_batch, c->layout.sequence * sizeof(int32_t), &bytes) || bytes > INT64_MAX)
        return pl_fail(err, PL_E_CONFIG, "a micro-batch of %u chains of %u tokens is absurdly large", micro_batch,
                       c->layout.sequence);
    *l = (pl_source_layout){
        .port = {{"tokens", PL_DTYPE_I32, bytes, PL_CHAIN_VOCAB, NULL},
                 {"targets", PL_DTYPE_I32, micro_batch * rest * sizeof(int32_t), PL_CHAIN_VOCAB, NULL},
                 {"answers", PL_DTYPE_I32, micro_batch * rest * sizeof(int32_t), PL_CHAIN_VOCAB, NULL}},
        .ports = PORTS,
        .scratch_bytes = record_bytes(c) + READER_BYTES + pl_tokens_reader_bytes(&c->tokens.info)};
    return PL_OK;
}

static void prepare(const pl_source *source, void *scratch)
{
    const pl_chain_data *c = chains_of(source);
    pl_tokens_reader *reader = reader_in(c, scratch);
    pl_tokens_reader_init(reader, &c->tokens, (char *)reader + READER_BYTES);
}

/* Which chain a sample is; false: there is none. Each epoch has an order of its own. */
static bool find_chain(const pl_chain_data *c, pl_part part, uint64_t step, uint64_t in_step, uint64_t *chain)
{
    uint64_t number = step % c->source.steps_per_epoch[part] * c->source.batch + in_step;
    if (in_step >= c->source.batch || number >= c->count[part]) return false;
    if (part == PL_PART_TRAIN) {
        const pl_permutation order =
            pl_permutation_init(c->count[part], pl_philox_init(c->seed, pl_stream_id("data/chain/order")));
        number = pl_permutation_at(&order, step / c->source.steps_per_epoch[part], number);
    }
    *chain = c->first[part] + number;
    return true;
}

/* record: as in the file. The last token of all is only a target. */
static void fill_tokens(const pl_chain_layout *l, const int32_t *record, int32_t *tokens)
{
    const size_t rest = (size_t)pl_chain_rest(l);
    memcpy(tokens, record, l->question * sizeof *tokens);
    tokens += l->question;
    *tokens++ = PL_CHAIN_BOT;
    for (uint32_t i = 0; i < l->latents; i++) *tokens++ = -1;
    *tokens++ = PL_CHAIN_EOT;
    memcpy(tokens, record + l->question, (rest - 1) * sizeof *tokens);
}

static void fill_targets(const int32_t *rest, uint32_t counted, uint32_t length, int32_t *targets, int32_t *answers)
{
    bool is_answer = false;
    for (uint32_t i = 0; i < length; i++) {
        targets[i] = i < counted ? rest[i] : -1;
        answers[i] = is_answer ? targets[i] : -1;
        is_answer |= rest[i] == PL_CHAIN_ANSWER;
    }
}

/* Rows past the last chain are padding, and count nothing. */
static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_chain_data *c = chains_of(source);
    const uint64_t width = pl_chain_record(&c->layout);
    const uint32_t rest = (uint32_t)pl_chain_rest(&c->layout);
    int32_t *record = scratch, *tokens = slot->port[TOKENS_PORT].at, *targets = slot->port[TARGETS_PORT].at,
            *answers = slot->port[ANSWERS_PORT].at;
    slot->counted = 0;
    for (uint32_t i = 0; i < slot->rows; i++, tokens += c->layout.sequence, targets += rest, answers += rest) {
        uint64_t chain;
        uint32_t counted = 0;
        if (find_chain(c, slot->part, slot->step, (uint64_t)slot->micro * slot->rows + i, &chain)) {
            PL_TRY(pl_tokens_read(reader_in(c, scratch), chain * width, (chain + 1) * width, record, err));
            counted = c->counted[chain];
        } else {
            for (uint64_t k = 0; k < width; k++) record[k] = PL_CHAIN_PAD;
        }
        fill_tokens(&c->layout, record, tokens);
        fill_targets(record + c->layout.question, counted, rest, targets, answers);
        slot->counted += counted;
    }
    pl_tokens_trim_cache(reader_in(c, scratch));
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    const pl_chain_data *c = chains_of(source);
    uint64_t tokens = 0, chain;
    for (uint64_t i = 0; i < source->batch; i++)
        if (find_chain(c, part, step, i, &chain)) tokens += c->counted[chain];
    return tokens;
}

static const pl_source_kind kind_of_source = {
    .name = "chains", .describe = describe, .prepare = prepare, .fill = fill, .count = count};

/* ---- the data ---- */

/* A run resumed with other chains is no longer the same run; a new run that begins with its weights may have others. */
static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    if (!trains || !pl_facts_differ(saved, &data->identity, "chains")) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%.300s: was trained on other chains than those of chain.file; resume with its file, or train on "
                   "this one in another folder with `run.out`",
                   saved_path);
}

static void close_data(pl_data *data)
{
    pl_chain_data *c = (pl_chain_data *)data;
    if (c->tokens.fd >= 0) pl_tokens_close(&c->tokens);
    pl_free(c->counted);
    pl_free(c);
}

static const pl_data_kind kind = {.match = match, .close = close_data};

/* The numbers after the records. */
static pl_status read_counted(pl_chain_data *c, uint64_t chains, pl_error *err)
{
    const uint64_t begin = chains * pl_chain_record(&c->layout);
    pl_tokens_reader reader;
    void *memory = pl_alloc(1, pl_tokens_reader_bytes(&c->tokens.info));
    c->counted = pl_alloc(chains, sizeof *c->counted);
    pl_status status =
        memory && c->counted ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for %" PRIu64 " chains of thought", chains);
    if (status == PL_OK) {
        pl_tokens_reader_init(&reader, &c->tokens, memory);
        status = pl_tokens_read(&reader, begin, begin + chains, (int32_t *)c->counted, err);
    }
    pl_free(memory);
    for (uint64_t i = 0; status == PL_OK && i < chains; i++)
        if (c->counted[i] > (uint64_t)pl_chain_rest(&c->layout))
            status = pl_fail(err, PL_E_DATA,
                             "%.300s: says more tokens of a chain than it has; delete it, and it is "
                             "made again",
                             c->tokens.path);
    return status;
}

static pl_status part_chains(pl_chain_data *c, const pl_chain_setup *s, uint64_t chains, pl_error *err)
{
    const uint64_t held_out = (uint64_t)((double)chains * s->held_out);
    c->count[PL_PART_TRAIN] = chains - held_out;
    c->first[PL_PART_VALIDATION] = chains - held_out, c->count[PL_PART_VALIDATION] = held_out;
    if (c->count[PL_PART_TRAIN] && (held_out || s->held_out <= 0)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "of %" PRIu64 " chains of thought, chain.held_out %g leaves none to %s; give more of them", chains,
                   s->held_out, held_out ? "train with" : "evaluate");
}

static void describe_data(pl_chain_data *c, const pl_chain_setup *s)
{
    char all[32], held_out[32];
    pl_str said = pl_str_fixed(c->data.said, sizeof c->data.said);
    c->source = (pl_source){.kind = &kind_of_source, .batch = s->batch};
    for (int part = 0; part < 2; part++) {
        c->source.steps_per_epoch[part] = (c->count[part] + s->batch - 1) / s->batch;
        c->source.samples[part] = c->count[part];
    }
    c->data.source = &c->source;
    c->data.path = c->tokens.path;
    c->data.file = "chains of thought";
    c->data.file_bytes = pl_tokens_file_bytes(&c->tokens.info);
    pl_facts_add(&c->data.identity, "chains", c->tokens.info.source.content);
    pl_facts_add(&c->data.validation, "samples", c->count[PL_PART_VALIDATION]);
    pl_str_printf(&said, "%s chains of thought, %s of them held out; %u latents",
                  pl_format_count(c->count[0] + c->count[1], all, sizeof all),
                  pl_format_count(c->count[PL_PART_VALIDATION], held_out, sizeof held_out), c->layout.latents);
}

static pl_status fill_data(pl_chain_data *c, const pl_chain_setup *s, pl_error *err)
{
    const uint64_t one = pl_chain_record(&s->layout) + 1;
    PL_TRY(pl_tokens_open(&c->tokens, s->path, err));
    const pl_tokens_info *i = &c->tokens.info;
    if (i->recipe != pl_chain_recipe(&s->layout) || i->count % one != 0)
        return pl_fail(err, PL_E_DATA,
                       "%.300s: was made for other places of question, latents and steps; when another command uses "
                       "this folder too, start this one again",
                       s->path);
    PL_TRY(read_counted(c, i->count / one, err));
    PL_TRY(part_chains(c, s, i->count / one, err));
    describe_data(c, s);
    return PL_OK;
}

pl_status pl_chain_data_open(const pl_chain_setup *s, pl_chain_data **data, pl_error *err)
{
    pl_chain_data *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for chains of thought");
    c->data.kind = &kind;
    c->tokens.fd = -1;
    c->layout = s->layout;
    c->seed = s->seed;
    const pl_status status = fill_data(c, s, err);
    if (status != PL_OK) return close_data(&c->data), status;
    *data = c;
    return PL_OK;
}
