/* The tokenizer and the tokens of a config, and what is known of them before the run. */
#include <unistd.h>

#include "api/compiler.h"
#include "base/alloc.h"
#include "data/encoder.h"
#include "data/tokenizer.h"

/* jansson's tree of a tokenizer.json: a node, a hash entry and a key for each short string, under 16 times the text. */
static pl_status tree_bytes(const char *path, uint64_t *bytes, pl_error *err)
{
    int fd;
    PL_TRY(pl_file_open(path, &fd, bytes, err));
    close(fd);
    *bytes *= 16;
    return PL_OK;
}

/* In a folder that others use too the token file may already be another one than was prepared. */
static pl_status open_tokens(pl_compiler *c, uint64_t tokenizer_hash, pl_error *err)
{
    int same;
    PL_TRY(pl_tokens_open(&c->tokens, c->settings.tokens_path, err));
    c->tokens_open = true;
    PL_TRY(pl_text_match(c->config->data.text, &c->tokens.info, &same, err));
    if (same && c->tokens.info.tokenizer_hash == tokenizer_hash) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%.350s: was made from another text than %.300s, or with another tokenizer than %.300s; when another "
        "command uses this folder too, start this one again",
        c->settings.tokens_path, c->config->data.text, c->settings.tokenizer_path);
}

/* For bits per byte: the text behind the targets that this command evaluates, and no other, for elsewhere in the text a
 * token may stand for more or fewer bytes. They come from front to back, so they are one range of the token file. */
static pl_status count_validation(pl_compiler *c, const pl_tokenizer *t, pl_error *err)
{
    pl_sampler sampler;
    pl_tokens_reader reader;
    uint64_t begin, end;
    bool evaluates = pl_command_does(c->command, PL_USES_VALIDATION);
    pl_sampler_options o = pl_settings_sampler(c->config, c->tokens.info.count);
    if (!evaluates || o.validation_fraction <= 0) return PL_OK;
    PL_TRY(pl_sampler_init(&sampler, &o, PL_PART_VALIDATION, err));
    uint64_t batches = pl_command_does(c->command, PL_USES_UPDATE) ? c->settings.run.eval_batches : 0;
    pl_sampler_targets(&sampler, batches, &begin, &end);
    void *memory = pl_alloc(1, pl_tokens_reader_bytes(&c->tokens.info));
    if (!memory) return pl_fail(err, PL_E_NOMEM, "no memory to read %s", c->tokens.path);
    pl_tokens_reader_init(&reader, &c->tokens, memory);
    pl_status status = pl_text_count_bytes(&reader, t, begin, end, &c->validation_bytes, err);
    c->validation_tokens = end - begin;
    pl_free(memory);
    return status;
}

static pl_status read_data(pl_compiler *c, const pl_tokenizer *tokenizer, pl_error *err)
{
    c->vocab = pl_tokenizer_vocab_size(tokenizer);
    if (pl_command_does(c->command, PL_USES_DATA)) PL_TRY(open_tokens(c, pl_tokenizer_hash(tokenizer), err));
    PL_TRY(pl_settings_fill(c->config, c->command, c->tokens_open ? &c->tokens : NULL, c->vocab, &c->settings, err));
    return c->tokens_open ? count_validation(c, tokenizer, err) : PL_OK;
}

pl_status pl_compiler_open_data(pl_compiler *c, pl_error *err)
{
    pl_tokenizer *tokenizer = NULL;
    PL_TRY(pl_settings_paths(c->config, &c->settings, err));
    PL_TRY(pl_tokenizer_load(c->settings.tokenizer_path, &tokenizer, err));
    uint64_t held = pl_tokenizer_bytes(tokenizer), encoder = pl_encoder_bytes(tokenizer), tree = 0;
    pl_status status = read_data(c, tokenizer, err);
    pl_tokenizer_destroy(tokenizer);
    if (status != PL_OK) return status;
    PL_TRY(tree_bytes(c->settings.tokenizer_path, &tree, err));
    if (c->settings.run.tokenizer_path) c->tokenizer_bytes = held + (tree > encoder ? tree : encoder);
    return PL_OK;
}
