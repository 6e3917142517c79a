/* A tokenizer in the words of a GGUF file, and one of its kind "llama" in those of tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/tokenizer_gguf.h"
#include "data/text/tokenizer_impl.h"

static const pl_added_token *find_added(const pl_tokenizer *t, uint32_t id)
{
    if (!(t->added_bit[id / 8] >> id % 8 & 1)) return NULL;
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].id == id) return &t->added[i];
    return NULL;
}

/* ---- words ---- */

static const char *pre_of(const pl_tokenizer *t)
{
    const pl_pipeline *p = &t->pipeline;
    const pl_gguf_pre *k = pl_gguf_pres;
    while (k->name && (p->pretoken.scanner != k->rule.scanner || p->pretoken.precut != k->rule.precut ||
                       p->has_nfc != k->has_nfc || t->ignore_merges != k->ignore_merges))
        k++;
    return k->name;
}

static void note(pl_gguf_tokenizer_words *w, const char *what)
{
    const size_t used = strlen(w->note);
    snprintf(w->note + used, sizeof w->note - used, "%s%s", used ? "; " : "", what);
}

/* The token that is put at an end of texts is bos, or eos. 0: there are several, or it is another one. */
static int take_end(const uint32_t *ids, uint32_t count, uint32_t named, uint32_t *id)
{
    *id = count ? ids[0] : named;
    return count <= 1 && (named == PL_TOKEN_NONE || *id == named);
}

static void note_differences(const pl_tokenizer *t, pl_gguf_tokenizer_words *w)
{
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].strips_left || t->added[i].strips_right) {
            note(w, "special tokens that take blanks next to them with them do so no longer");
            break;
        }
    const pl_prefix prefix = t->pipeline.prefix;
    if (!t->pipeline.is_bytes && (prefix == PL_PREFIX_FIRST || prefix == PL_PREFIX_MISSING))
        note(w, "a blank is put before each text between special tokens, also where it begins with one");
    if (t->pipeline.cuts_blanks) note(w, "words are no longer cut apart first");
}

/* With scores, any two tokens that make a third are merged. Is each such pair one of the merges, and do those of a
 * token follow each other? */
static int is_of_scores(const pl_tokenizer *t)
{
    uint32_t pairs = 0;
    for (uint32_t i = 1; i < t->merge_count; i++) {
        const uint32_t before = t->merge[i - 1].id, id = t->merge[i].id;
        if (id == before) continue;
        for (uint32_t k = i + 1; k < t->merge_count && k < i + 64; k++)
            if (t->merge[k].id == before) return 0;
    }
    for (uint32_t id = 0; id < t->vocab; id++) {
        const uint8_t *text = t->text + t->offset[id];
        const uint32_t bytes = t->offset[id + 1] - t->offset[id];
        for (uint32_t k = 1; k < bytes && pl_tokenizer_find(t, text, bytes) == id; k++)
            pairs += pl_tokenizer_find(t, text, k) != PL_TOKEN_NONE &&
                     pl_tokenizer_find(t, text + k, bytes - k) != PL_TOKEN_NONE;
    }
    return pairs == t->merge_count;
}

static pl_status name_scores(const pl_tokenizer *t, const char *name, pl_gguf_tokenizer_words *w, pl_error *err)
{
    const pl_pipeline *p = &t->pipeline;
    if (!p->has_blanks || !p->byte_fallback || p->has_nfc)
        return pl_fail(
            err, PL_E_UNSUPPORTED,
            "%s: a GGUF file has no place for a tokenizer of characters without a fallback to bytes, or with "
            "blanks of its own",
            name);
    w->model = "llama", w->pre = "default", w->has_scores = 1;
    w->add_space_prefix = p->prefix != PL_PREFIX_NONE;
    if (!t->score && !is_of_scores(t)) note(w, "merges become scores, which can join tokens in another order");
    return PL_OK;
}

pl_status pl_tokenizer_name_gguf(const pl_tokenizer *t, const char *name, pl_gguf_tokenizer_words *w, pl_error *err)
{
    const pl_pipeline *p = &t->pipeline;
    *w = (pl_gguf_tokenizer_words){.model = "gpt2", .pre = pre_of(t)};
    if (t->kind != PL_TOKENIZER_BPE)
        return pl_fail(err, PL_E_UNSUPPORTED, "%s: a GGUF file has no place for a tokenizer of the kind %s", name,
                       pl_tokenizer_kind_name(t->kind));
    if (!take_end(p->before, p->before_count, t->special_id[PL_SPECIAL_BOS], &w->bos) ||
        !take_end(p->after, p->after_count, t->special_id[PL_SPECIAL_EOS], &w->eos))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: a GGUF file has no place for other special tokens around a text than bos and eos", name);
    w->add_bos = p->before_count > 0, w->add_eos = p->after_count > 0;
    if (!p->is_bytes) PL_TRY(name_scores(t, name, w, err));
    if (!w->pre || (p->is_bytes && p->prefix != PL_PREFIX_NONE))
        return pl_fail(err, PL_E_UNSUPPORTED, "%s: a GGUF file has no name for this pre-tokenizer", name);
    note_differences(t, w);
    return PL_OK;
}

/* ---- tokens, merges, scores ---- */

int32_t pl_tokenizer_gguf_token(const pl_tokenizer *t, uint32_t id, pl_str *text)
{
    const uint32_t bytes = id < t->vocab ? t->offset[id + 1] - t->offset[id] : 0;
    const pl_added_token *a = bytes ? find_added(t, id) : NULL;
    pl_str_clear(text);
    if (!bytes) {
        pl_str_printf(text, "[PAD%u]", id);
        return PL_GGUF_TOKEN_UNUSED;
    }
    if (a)
        pl_tokenizer_append_added(t, a, text);
    else
        pl_tokenizer_append_token(t, id, text);
    if (id == t->unknown && !t->pipeline.is_bytes) return PL_GGUF_TOKEN_UNKNOWN;
    if (a) return a->special ? PL_GGUF_TOKEN_CONTROL : PL_GGUF_TOKEN_USER_DEFINED;
    return t->pipeline.byte_fallback && pl_byte_of_name(t->text + t->offset[id], bytes) >= 0 ? PL_GGUF_TOKEN_BYTE
                                                                                             : PL_GGUF_TOKEN_NORMAL;
}

uint32_t pl_tokenizer_gguf_merges(const pl_tokenizer *t) { return t->merge_count; }

void pl_tokenizer_gguf_merge(const pl_tokenizer *t, uint32_t i, pl_str *text)
{
    pl_str_clear(text);
    pl_tokenizer_append_token(t, t->merge[i].left, text);
    pl_str_append(text, " ");
    pl_tokenizer_append_token(t, t->merge[i].right, text);
}

void pl_tokenizer_gguf_scores(const pl_tokenizer *t, float *score, uint32_t vocab)
{
    for (uint32_t id = 0; id < vocab; id++)
        score[id] = t->score && id < t->vocab ? t->score[id] : -(float)t->merge_count - 1;
    for (uint32_t i = t->score ? 0 : t->merge_count; i-- > 0;) score[t->merge[i].id] = -(float)i;
}

/* ---- from scores to merges ---- */

typedef struct scored {
    pl_merge merge;
    float score;
} scored;

/* Where two pairs make the same token, the one with the lower ids goes first, as in transformers' converter. */
static int by_score(const void *left, const void *right)
{
    const scored *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->merge.id != b->merge.id) return a->merge.id < b->merge.id ? -1 : 1;
    if (a->merge.left != b->merge.left) return a->merge.left < b->merge.left ? -1 : 1;
    return a->merge.right < b->merge.right ? -1 : a->merge.right > b->merge.right;
}

static pl_status list_pairs(const pl_tokenizer *t, scored **list, size_t *count, pl_error *err)
{
    size_t room = 0;
    for (uint32_t id = 0; id < t->vocab; id++) {
        const uint8_t *text = t->text + t->offset[id];
        const uint32_t bytes = t->offset[id + 1] - t->offset[id];
        for (uint32_t k = 1; k < bytes && pl_tokenizer_find(t, text, bytes) == id; k++) {
            const uint32_t l = pl_tokenizer_find(t, text, k), r = pl_tokenizer_find(t, text + k, bytes - k);
            if (l == PL_TOKEN_NONE || r == PL_TOKEN_NONE) continue;
            if (pl_grow(list, &room, *count, sizeof **list)) return pl_fail(err, PL_E_NOMEM, "no memory for merges");
            (*list)[(*count)++] = (scored){{l, r, id}, t->score[id]};
        }
    }
    return PL_OK;
}

pl_status pl_tokenizer_merge_by_scores(pl_tokenizer *t, pl_error *err)
{
    scored *list = NULL;
    size_t count = 0;
    if (!t->score) return PL_OK;
    pl_status status = list_pairs(t, &list, &count, err);
    pl_merge *merge = status == PL_OK ? pl_alloc(count + 1, sizeof *merge) : NULL;
    if (status == PL_OK && !merge) status = pl_fail(err, PL_E_NOMEM, "no memory for merges");
    if (status == PL_OK) {
        if (count) qsort(list, count, sizeof *list, by_score);
        for (size_t i = 0; i < count; i++) merge[i] = list[i].merge;
        pl_free(t->merge);
        t->merge = merge, t->merge_count = (uint32_t)count;
    }
    pl_free(list);
    return status;
}
