#include "texts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "format.h"
#include "out.h"
#include "signals.h"

enum { LINE_BYTES = 4096, PIECE_BYTES = 512, ESCAPED = 6 /* bytes that a byte becomes in JSON, at most */ };

/* Bytes at the end that begin a character of which more follows. */
static size_t count_cut(const char *text, size_t bytes)
{
    size_t n = 0;
    while (n < 3 && n < bytes && ((unsigned char)text[bytes - 1 - n] & 0xc0) == 0x80) n++;
    const unsigned lead = n < bytes ? (unsigned char)text[bytes - 1 - n] : 0;
    const size_t of = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return of > n + 1 ? n + 1 : 0;
}

/* ---- as JSON ---- */

static void put(pl_view *v, const char *text, size_t bytes)
{
    if (v->status == PL_OK) v->status = pl_put(text, bytes, &v->error);
}

static void put_json_piece(pl_view *v, const char *text, size_t bytes)
{
    char escaped[ESCAPED * PIECE_BYTES];
    for (size_t n; bytes; text += n, bytes -= n) {
        pl_line line = {escaped, sizeof escaped, 0};
        n = bytes > PIECE_BYTES ? PIECE_BYTES - count_cut(text, PIECE_BYTES) : bytes;
        pl_line_json(&line, text, n);
        put(v, escaped, line.bytes);
    }
}

static double find_rate(const pl_text_told *t)
{
    const double seconds = t->seconds - t->first_seconds;
    return t->tokens > 1 && seconds > 0 ? (double)(t->tokens - 1) / seconds : 0;
}

static void put_json_end(pl_view *v, const pl_text_told *t)
{
    static const char *const ended[] = {[PL_TEXT_AT_LENGTH] = "length",
                                        [PL_TEXT_AT_STOP] = "stop",
                                        [PL_TEXT_AT_END] = "end",
                                        [PL_TEXT_AT_CONTEXT] = "context",
                                        [PL_TEXT_INTERRUPTED] = "interrupt"};
    char text[512];
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line,
                "\",\"ended_by\":\"%s\",\"prompt_tokens\":%llu,\"tokens\":%llu,\"first_token_seconds\":%.6g,"
                "\"seconds\":%.6g,\"tokens_per_second\":%.6g}\n",
                ended[t->ended], (unsigned long long)t->prompt_tokens, (unsigned long long)t->tokens, t->first_seconds,
                t->seconds, find_rate(t));
    put(v, text, line.bytes);
}

static void begin_json(const pl_texts *t)
{
    char text[128];
    pl_line line = {text, sizeof text, 0};
    const uint64_t samples = t->samples ? t->samples : UINT64_MAX;
    pl_line_add(&line, "{\"schema\":\"plimsoll.generate/1\",");
    if (t->samples) pl_line_add(&line, "\"prompt\":%llu,", (unsigned long long)(t->number / samples));
    pl_line_add(&line, "\"sample\":%llu,\"text\":\"", (unsigned long long)(t->number % samples));
    put(t->view, text, line.bytes);
}

/* ---- as text ---- */

/* Without one line break at its end, as the job takes it. */
static void show_file(pl_view *v, int fd)
{
    char piece[PIECE_BYTES];
    size_t held = 0;
    for (ssize_t n; (n = read(fd, piece + held, sizeof piece - held)) > 0;) {
        const size_t bytes = held + (size_t)n;
        size_t out = bytes - count_cut(piece, bytes);
        if (out == bytes && piece[out - 1] == '\n') out--;
        if (out > 0 && out < bytes && piece[out - 1] == '\r') out--;
        if (out) pl_view_text(v, piece, out);
        memmove(piece, piece + out, held = bytes - out);
    }
    const bool is_end = (held == 1 && piece[0] == '\n') || (held == 2 && piece[0] == '\r' && piece[1] == '\n');
    if (held && !is_end) pl_view_text(v, piece, held);
}

static void show_prompt(const pl_texts *t)
{
    if (t->prompt && t->prompt[0]) pl_view_text(t->view, t->prompt, strlen(t->prompt));
    const int fd = t->prompt_file ? open(t->prompt_file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return; /* the job has read it */
    show_file(t->view, fd);
    close(fd);
}

static void begin(pl_texts *t)
{
    static const char line[] = "---------------\n";
    if (t->begun) return;
    t->begun = true;
    if (t->json) return begin_json(t);
    if (t->number > 0 && (t->prompt || t->prompt_file || t->samples)) put(t->view, line, sizeof line - 1);
    show_prompt(t);
}

static void say_speed(const pl_view *v, const pl_text_told *t)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES], c[PL_FORMAT_BYTES];
    if (v->quiet || t->tokens == 0) return;
    pl_say("%s token%s in %s", pl_show_count(t->tokens, a), pl_show_plural(t->tokens), pl_show_seconds(t->seconds, b));
    if (find_rate(t) > 0) pl_say(", %s tok/s", pl_show_rate(find_rate(t), a));
    pl_say("; the first after %s (prompt: %s token%s)\n", pl_show_seconds(t->first_seconds, b),
           pl_show_count(t->prompt_tokens, c), pl_show_plural(t->prompt_tokens));
}

static void end(pl_texts *t, const pl_text_told *told)
{
    begin(t);
    if (t->json)
        put_json_end(t->view, told);
    else
        pl_view_text_end(t->view);
    t->tokens += told->tokens;
    if (!t->samples) say_speed(t->view, told);
    t->begun = false;
    t->number++;
}

bool pl_texts_event(pl_texts *t, const pl_event *e)
{
    if (!t->view || (e->kind != PL_EVENT_TEXT && e->kind != PL_EVENT_TEXT_END)) return false;
    if (e->kind == PL_EVENT_TEXT_END) return end(t, e->told), true;
    if (t->json && e->text_bytes == 0) return true; /* an object begins when there is something to say */
    begin(t);
    if (t->json)
        put_json_piece(t->view, e->text, e->text_bytes);
    else
        pl_view_text(t->view, e->text, e->text_bytes);
    return true;
}

/* A text that failed ends its line, so that the sentence that says why has one of its own. */
static pl_status find_status(const pl_texts *t, pl_status status, pl_error *err)
{
    if (status != PL_OK && t->begun && !t->json) pl_view_text_end(t->view);
    if (status != PL_OK || t->view->status == PL_OK) return status;
    *err = t->view->error;
    return t->view->status;
}

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void say_all(const pl_texts *t, double seconds)
{
    char a[PL_FORMAT_BYTES], b[PL_FORMAT_BYTES], c[PL_FORMAT_BYTES], d[PL_FORMAT_BYTES];
    if (t->view->quiet || !(seconds > 0)) return;
    pl_say("%s text%s, %s token%s in %s, %s tok/s\n", pl_show_count(t->number, a), pl_show_plural(t->number),
           pl_show_count(t->tokens, b), pl_show_plural(t->tokens), pl_show_seconds(seconds, c),
           pl_show_rate((double)t->tokens / seconds, d));
}

pl_status pl_texts_write(pl_texts *t, pl_run *run, pl_error *err)
{
    const double began = seconds_now();
    const pl_status status = find_status(t, pl_run_generate(run, err), err);
    if (t->samples) say_all(t, seconds_now() - began);
    return status;
}

/* ---- line by line ---- */

typedef struct input {
    char text[LINE_BYTES];
    size_t begin, end; /* of what was read and not yet taken */
    bool ended;
} input;

static pl_status read_more(input *in, pl_error *err)
{
    memmove(in->text, in->text + in->begin, in->end - in->begin);
    in->end -= in->begin, in->begin = 0;
    if (in->end == sizeof in->text)
        return pl_cli_error(err, PL_E_USAGE, "a line has more than %d bytes; give a shorter one", LINE_BYTES - 1);
    ssize_t n;
    do n = read(STDIN_FILENO, in->text + in->end, sizeof in->text - in->end);
    while (n < 0 && errno == EINTR);
    if (n < 0) return pl_cli_error(err, PL_E_STORAGE, "standard input cannot be read: %s", strerror(errno));
    in->ended = n == 0;
    in->end += (size_t)n;
    return PL_OK;
}

/* NULL: there are no more. */
static pl_status take_line(input *in, const char **line, size_t *bytes, pl_error *err)
{
    const char *end;
    while (!(end = memchr(in->text + in->begin, '\n', in->end - in->begin)) && !in->ended) {
        const pl_status status = read_more(in, err);
        if (status != PL_OK) return status;
    }
    *line = in->begin < in->end ? in->text + in->begin : NULL;
    *bytes = (size_t)((end ? end : in->text + in->end) - (in->text + in->begin));
    in->begin += *bytes + (end != NULL);
    if (*line && *bytes > 0 && (*line)[*bytes - 1] == '\r') --*bytes;
    return PL_OK;
}

/* What cannot be answered is said, and the next line may be; but a chat that is full has no next line. *refused: why
 * the first such line was. */
static pl_status answer(pl_texts *t, pl_run *run, const char *line, size_t bytes, pl_status *refused, pl_error *err)
{
    pl_signals_forget();
    pl_signals_catch();
    pl_status status = find_status(t, pl_run_answer(run, line, bytes, err), err);
    const bool is_one = status == PL_E_STOPPED && pl_signal_exit_code() == 128 + SIGINT;
    const bool is_refused = status == PL_E_DATA || (status == PL_E_USAGE && !t->chats);
    if (is_refused) pl_say("%s\n", err->text);
    if (is_refused && *refused == PL_OK) *refused = status;
    return is_one || is_refused ? PL_OK : status;
}

pl_status pl_texts_answer(pl_texts *t, pl_run *run, pl_error *err)
{
    static input in;
    pl_status refused = PL_OK;
    const bool asks = pl_is_terminal(STDIN_FILENO);
    if (asks && !t->view->quiet)
        pl_say("type %s, and Ctrl-D the command\n",
               t->chats ? "a message; Ctrl-C ends an answer" : "what is to be continued; Ctrl-C ends a text");
    for (;;) {
        const char *line;
        size_t bytes;
        pl_signals_leave();
        if (asks) pl_say("> ");
        pl_status status = take_line(&in, &line, &bytes, err);
        if (status != PL_OK) return status;
        if (!line) break;
        status = answer(t, run, line, bytes, &refused, err);
        if (status != PL_OK) return status;
    }
    if (asks) pl_say("\n"); /* a person has seen what was refused; a script sees the exit code */
    return asks || refused == PL_OK ? PL_OK : pl_cli_error(err, refused, "not every line was answered, as said above");
}
