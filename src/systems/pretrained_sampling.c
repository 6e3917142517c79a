/* How the files of a pretrained model want its texts to be drawn. */
#include "systems/pretrained.h"

#include <string.h>

#include "base/locale.h"
#include "base/str.h"

typedef struct setting {
    const char *key, *name; /* the config's, and the file's */
    bool is_there;
    double value;
} setting;

static pl_status take(pl_config *c, const setting *s, pl_str *said, pl_error *err)
{
    char value[40];
    if (!s->is_there || pl_config_is_set(c, s->key)) return PL_OK;
    pl_print(value, sizeof value, "%.10g", s->value);
    PL_TRY(pl_config_set(c, s->key, value, "generation_config.json", err));
    pl_str_printf(said, "%s%s %s", said->bytes ? ", " : "", s->name, value);
    return PL_OK;
}

pl_status pl_pretrained_take_sampling(pl_config *c, char *said, size_t room, pl_error *err)
{
    pl_pretrained *p;
    pl_status status = PL_OK;
    pl_str text = pl_str_fixed(said, room);
    PL_TRY(pl_pretrained_open(c->model.source, &p, err));
    const pl_pretrained_defaults *d = pl_pretrained_generation(p);
    const setting settings[] = {
        {"generate.temperature", "temperature", d->has_temperature, d->temperature},
        {"generate.top_k", "top_k", d->has_top_k, (double)d->top_k},
        {"generate.top_p", "top_p", d->has_top_p, d->top_p},
        {"generate.repeat_penalty", "repetition_penalty", d->has_repetition_penalty, d->repetition_penalty}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings && status == PL_OK; i++)
        status = take(c, &settings[i], &text, err);
    pl_pretrained_close(p);
    return status;
}
