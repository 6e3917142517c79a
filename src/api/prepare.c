/* From a text to its tokenizer and token file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"

static pl_tokenizer_kind kind_of(const pl_config *c)
{
    switch (c->data.tokenizer.kind) {
    case PL_CONFIG_TOKENIZER_BYTES:
        return PL_TOKENIZER_BYTES;
    case PL_CONFIG_TOKENIZER_CHARS:
        return PL_TOKENIZER_CHARS;
    default:
        return PL_TOKENIZER_BPE;
    }
}

/* A folder that holds a run keeps the tokenizer its weights were trained with: another text (or another wish) in a
 * later command must not replace it. */
static bool holds_a_run(const pl_settings *s)
{
    char path[PL_FILE_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/checkpoints/latest", s->out);
    return access(path, F_OK) == 0 && access(s->tokenizer_path, F_OK) == 0;
}

pl_status pl_prepare_text(const pl_config *c, pl_progress progress, void *context, pl_error *err)
{
    static const char what[] = "this command";
    pl_status status = PL_OK;
    pl_tokenizer *tokenizer = NULL;
    pl_text_result result = {0};
    pl_settings *s = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "no memory to prepare the text");
    PL_TRY_DONE(pl_config_require(c, "data.text", what, err));
    PL_TRY_DONE(pl_settings_paths(c, s, err));
    PL_TRY_DONE(pl_folder_create(c->data.cache[0] ? c->data.cache : s->out, err));
    pl_text_options o = {.text = c->data.text,
                         .tokenizer_path = s->tokenizer_path,
                         .tokens_path = s->tokens_path,
                         .given = c->data.tokenizer.kind == PL_CONFIG_TOKENIZER_FILE || holds_a_run(s),
                         .kind = kind_of(c),
                         .vocab = (uint32_t)c->data.vocab_size,
                         .progress = progress,
                         .context = context};
    PL_TRY_DONE(pl_text_prepare(&o, &tokenizer, &result, err));
done:
    pl_tokenizer_destroy(tokenizer);
    pl_free(s);
    return status;
}
