#include "data/text/text_data.h"

#include <stdio.h>

#include "base/alloc.h"

/* Ids mean nothing under another tokenizer, and a run resumed with another text is no longer the same run. */
static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    const pl_text_data *t = pl_text_data_of(data);
    const uint64_t tokenizer = pl_facts_value(saved, "tokenizer", 0);
    const char *path = t->tokens_open ? t->tokens.path : t->tokenizer_path;
    if (tokenizer && tokenizer != pl_facts_value(&data->identity, "tokenizer", tokenizer))
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: was trained with another tokenizer than that of %.350s; take the folder of the run "
                       "that it belongs to, or put that run's tokenizer.json back",
                       saved_path, path);
    if (trains && pl_facts_differ(saved, &data->identity, "text"))
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: was trained on another text than the one in %.350s; resume with that text, or train on "
                       "this one in another folder with `run.out`",
                       saved_path, path);
    return PL_OK;
}

static void close_text(pl_data *data)
{
    pl_text_data *t = (pl_text_data *)data;
    if (t->tokens_open) pl_tokens_close(&t->tokens);
    pl_tokenizer_destroy(t->tokenizer);
    pl_free(t);
}

static const pl_data_kind text = {match, close_text};

static pl_status open_tokens(pl_text_data *t, const pl_text_data_options *o, pl_error *err)
{
    PL_TRY(pl_tokens_open(&t->tokens, o->tokens_path, err));
    t->tokens_open = true;
    const pl_tokens_info *i = &t->tokens.info;
    t->data.path = t->tokens.path;
    t->data.file = "token file";
    t->data.file_bytes = pl_tokens_file_bytes(i);
    pl_facts_add(&t->data.identity, "text", i->source.content);
    pl_facts_add(&t->data.identity, "tokenizer", i->tokenizer_hash);
    pl_facts_add(&t->data.extents, "vocab", i->vocab);
    pl_sampler_options sampler = o->sampler;
    sampler.whole = sampler.whole || (o->own && o->own != i->source.content);
    if (sampler.whole) pl_facts_add(&t->data.identity, PL_FACT_WHOLE, 1);
    PL_TRY(pl_text_source_init(&t->source, &t->tokens, &sampler, err));
    t->data.source = &t->source.source;
    return PL_OK;
}

static pl_status open_tokenizer(pl_text_data *t, const pl_text_data_options *o, pl_error *err)
{
    PL_TRY(pl_tokenizer_load(o->tokenizer_path, &t->tokenizer, err));
    if (t->tokens_open) return PL_OK;
    pl_facts_add(&t->data.identity, "tokenizer", pl_tokenizer_hash(t->tokenizer));
    pl_facts_add(&t->data.extents, "vocab", pl_tokenizer_vocab_size(t->tokenizer));
    return PL_OK;
}

pl_status pl_text_data_open(const pl_text_data_options *o, pl_text_data **data, pl_error *err)
{
    pl_text_data *t = pl_alloc(1, sizeof *t);
    if (!t) return pl_fail(err, PL_E_NOMEM, "no memory for the text's data");
    t->data.kind = &text;
    t->tokens.fd = -1;
    t->end[0] = PL_TOKEN_NONE;
    snprintf(t->tokenizer_path, sizeof t->tokenizer_path, "%s", o->tokenizer_path);
    pl_status status = o->tokens_path ? open_tokens(t, o, err) : PL_OK;
    if (status == PL_OK && o->tokenizer) status = open_tokenizer(t, o, err);
    if (status != PL_OK) return close_text(&t->data), status;
    *data = t;
    return PL_OK;
}
