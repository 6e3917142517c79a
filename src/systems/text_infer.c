/* What a language model has to say of an item: the tokens that are likeliest behind its last one, with their
 * probabilities, and the mean loss of those that it has, each foretold from what is before it. */
#include <math.h>

#include "data/text/text_data.h"
#include "systems/text.h"

enum { SHOWN = 5 };

static double log_sum(const float *logit, uint64_t classes)
{
    double most = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < classes; i++) most = fmax(most, (double)logit[i]);
    for (uint64_t i = 0; i < classes; i++) sum += exp((double)logit[i] - most);
    return most + log(sum);
}

/* The likeliest `SHOWN` first; of two alike the smaller id. Returns how many there are. */
static uint64_t find_likeliest(const float *logit, uint64_t classes, uint64_t best[SHOWN])
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < classes; i++) {
        uint64_t at = count;
        while (at > 0 && logit[i] > logit[best[at - 1]]) at--;
        if (at == SHOWN) continue;
        if (count < SHOWN) count++;
        for (uint64_t k = count - 1; k > at; k--) best[k] = best[k - 1];
        best[at] = i;
    }
    return count;
}

static void say_next(const pl_tokenizer *t, const float *logit, uint64_t classes, pl_json *j)
{
    uint64_t best[SHOWN];
    const double all = log_sum(logit, classes);
    const uint64_t count = find_likeliest(logit, classes, best);
    pl_json_key(j, "next");
    pl_json_array(j);
    for (uint64_t i = 0; i < count; i++) {
        size_t bytes = 0;
        const uint8_t *token = t ? pl_tokenizer_token(t, (uint32_t)best[i], &bytes) : NULL;
        pl_json_object(j);
        pl_json_key(j, "token");
        pl_json_string_bytes(j, bytes ? (const char *)token : "", bytes);
        pl_json_kv_uint(j, "id", best[i]);
        pl_json_kv_double(j, "probability", (double)(float)exp((double)logit[best[i]] - all));
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

/* Of the token behind each that is followed by one, and that the part before has not judged; places without a token
 * foretell nothing. */
static void add_loss(const pl_infer_item *item, const float *logits, uint64_t classes)
{
    for (uint64_t i = item->again ? item->again - 1 : 0; i + 1 < item->id_count; i++) {
        const int32_t next = item->ids[i + 1];
        const float *logit = logits + i * classes;
        if (item->ids[i] < 0 || next < 0 || (uint64_t)next >= classes) continue;
        item->sums->loss += log_sum(logit, classes) - (double)logit[next];
        item->sums->count++;
    }
}

static void say_loss(const pl_infer_sums *sums, pl_json *j)
{
    if (sums->count == 0) return;
    pl_json_kv_double(j, "loss", (double)(float)(sums->loss / (double)sums->count));
    pl_json_kv_double(j, "perplexity", (double)(float)exp(sums->loss / (double)sums->count));
}

void pl_text_say_inferred(const pl_data *of, const pl_infer_item *item, pl_json *j)
{
    const pl_infer_output *o;
    const float *logits = pl_infer_item_find(item, "logits", &o);
    if (!logits || o->rank != 2 || o->dim[0] != item->id_count) return;
    uint64_t tokens = item->id_count;
    while (tokens > 0 && item->ids[tokens - 1] < 0) tokens--;
    add_loss(item, logits, o->dim[1]);
    item->sums->ids += tokens - item->again;
    if (!j) return;
    pl_json_kv_uint(j, "tokens", item->sums->ids);
    if (tokens == 0) return;
    say_loss(item->sums, j);
    say_next(pl_text_data_of(of)->tokenizer, logits + (tokens - 1) * o->dim[1], o->dim[1], j);
}
