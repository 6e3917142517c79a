#include "scored.h"

#include "format.h"
#include "out.h"
#include "progress.h"

enum { COLUMN = 14, TEXT_BYTES = 2048 };

static double share(uint64_t right, const pl_text_score *s) { return (double)right / (double)s->answers; }

/* ---- for programs ---- */

static void add_items(pl_line *line, const pl_text_score *s)
{
    pl_line_add(line, ",\"items\":%llu,\"choices\":%llu,\"answers\":%llu", (unsigned long long)s->items,
                (unsigned long long)s->choices, (unsigned long long)s->answers);
    if (s->answers)
        pl_line_add(line, ",\"accuracy\":%.9g,\"accuracy_normalized\":%.9g", share(s->right, s),
                    share(s->right_normalized, s));
}

static void add_texts(pl_line *line, const pl_text_score *s)
{
    pl_line_add(line, ",\"protocol\":\"%s\",\"window\":%llu", s->stride ? "windows" : "chunks",
                (unsigned long long)s->window);
    if (s->stride) pl_line_add(line, ",\"stride\":%llu", (unsigned long long)s->stride);
    pl_line_add(line, ",\"loss\":%.9g,\"perplexity\":%.9g,\"standard_error\":%.9g,\"bits_per_byte\":%.9g", s->loss,
                s->perplexity, s->error, s->bits_per_byte);
    pl_line_add(line, ",\"texts\":%llu,\"text_tokens\":%llu", (unsigned long long)s->texts,
                (unsigned long long)s->text_tokens);
}

static void add_json(pl_line *line, const pl_text_score *s, const pl_run_verdict *v)
{
    pl_line_add(line, "{\"schema\":\"plimsoll.eval/1\"");
    s->has_choices ? add_items(line, s) : add_texts(line, s);
    pl_line_add(line, ",\"tokens\":%llu,\"seconds\":%.6g,\"tokens_per_second\":%.6g", (unsigned long long)s->judged,
                s->seconds, s->tokens_per_second);
    pl_line_add(line, ",\"planned_bytes\":%llu,\"measured_bytes\":%llu", (unsigned long long)v->planned_bytes,
                (unsigned long long)v->measured_bytes);
    if (v->mapped_files_bytes)
        pl_line_add(line, ",\"mapped_files_bytes\":%llu", (unsigned long long)v->mapped_files_bytes);
    pl_line_add(line, "}\n");
}

/* ---- for people ---- */

static void say_items(pl_line *line, const pl_text_score *s)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES];
    pl_line_add(line, "%-*s  %s, with %s choices\n", COLUMN, "prompts", pl_show_count(s->items, a),
                pl_show_count(s->choices, b));
    if (s->answers == 0) return;
    pl_line_add(line, "%-*s  %.4f: the likeliest choice is the answer to %llu of %llu\n", COLUMN, "accuracy",
                share(s->right, s), (unsigned long long)s->right, (unsigned long long)s->answers);
    pl_line_add(line, "%-*s  %.4f: the likeliest for its number of characters, to %llu\n", COLUMN, "normalized",
                share(s->right_normalized, s), (unsigned long long)s->right_normalized);
}

static void say_texts(pl_line *line, const pl_text_score *s)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES];
    if (s->stride)
        pl_line_add(line, "%-*s  windows of %llu tokens, %llu apart; of each, its new tokens (transformers)\n", COLUMN,
                    "protocol", (unsigned long long)s->window, (unsigned long long)s->stride);
    else
        pl_line_add(line, "%-*s  chunks of %llu tokens; of each, its second half (llama.cpp)\n", COLUMN, "protocol",
                    (unsigned long long)s->window);
    pl_line_add(line, "%-*s  %.5f nats per token\n", COLUMN, "loss", s->loss);
    pl_line_add(line, "%-*s  %.4f +/- %.5f\n", COLUMN, "perplexity", s->perplexity, s->error);
    pl_line_add(line, "%-*s  %.4f\n", COLUMN, "bits per byte", s->bits_per_byte);
    pl_line_add(line, "%-*s  %s tokens of %s", COLUMN, "judged", pl_show_count(s->judged, a),
                pl_show_count(s->text_tokens, b));
    if (s->texts > 1) pl_line_add(line, ", of %s texts", pl_show_count(s->texts, a));
    pl_line_add(line, "\n");
}

static void add_words(pl_line *line, const pl_text_score *s, const pl_run_verdict *v)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES];
    s->has_choices ? say_items(line, s) : say_texts(line, s);
    pl_line_add(line, "%-*s  %s, %.4g tok/s\n", COLUMN, "time", pl_show_seconds(s->seconds, a), s->tokens_per_second);
    pl_line_add(line, "%-*s  %s, %s", COLUMN, "memory", pl_show_bytes(v->measured_bytes, a),
                v->measured_bytes == v->planned_bytes ? "as planned, to the byte" : pl_show_bytes(v->planned_bytes, b));
    if (v->mapped_files_bytes) pl_line_add(line, "; mapped files: %s", pl_show_bytes(v->mapped_files_bytes, a));
    pl_line_add(line, "\n");
}

/* Lines of the items are on standard output: what people read of them all goes to the other one. */
pl_status pl_put_scored(const pl_text_score *s, const pl_run_verdict *v, bool as_json, pl_error *err)
{
    char text[TEXT_BYTES];
    pl_line line = {text, sizeof text, 0};
    as_json ? add_json(&line, s, v) : add_words(&line, s, v);
    if (!s->has_choices || as_json) return pl_put(text, line.bytes, err);
    pl_say_bytes(text, line.bytes);
    return PL_OK;
}
