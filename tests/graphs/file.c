#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs/graphs.h"

void subject_broken(const subject *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s: ", s->path);
    vfprintf(stderr, format, args);
    fprintf(stderr, " (PLIMSOLL_TEST_SEED=%llu)\n", (unsigned long long)s->seed);
    va_end(args);
    exit(1);
}

/* ---- reading ---- */

static char *read_all(const subject *s)
{
    FILE *file = fopen(s->path, "rb");
    if (!file) subject_broken(s, "cannot be opened");
    char *text = calloc(1, 1 << 20);
    size_t bytes = text ? fread(text, 1, (1 << 20) - 1, file) : 0;
    if (bytes == 0 || bytes == (1 << 20) - 1 || ferror(file)) subject_broken(s, "cannot be read, or is no small file");
    fclose(file);
    return text;
}

/* The next word of a line of them, cut out of it; NULL: none. */
static char *next_word(char **at, const char *separators)
{
    *at += strspn(*at, separators);
    char *word = *at, *end = word + strcspn(word, separators);
    if (word == end) return NULL;
    *at = *end ? end + 1 : end;
    *end = 0;
    return word;
}

static void read_steps(subject *s, const char *line)
{
    char *at = s->steps;
    snprintf(s->steps, sizeof s->steps, "%s", line);
    for (char *word; (word = next_word(&at, ",")) != NULL;) {
        if (s->step_count == STEPS_MAX) subject_broken(s, "more than %d steps", STEPS_MAX);
        s->step[s->step_count++] = word + strspn(word, " ");
    }
}

static pl_dtype read_dtype(const subject *s, const char *text)
{
    pl_dtype type;
    if (pl_dtype_parse(text, &type)) subject_broken(s, "with: %s is no dtype", text);
    return type;
}

/* "4@7/5@7": node 4 once more before node 7, and 5. */
static void read_listed(subject *s, const char *text)
{
    pl_error err = {0};
    for (char *end; *text; text = end + (*end == '/')) {
        unsigned long node = strtoul(text, &end, 10), before = *end == '@' ? strtoul(end + 1, &end, 10) : 0;
        if (*end && *end != '/') subject_broken(s, "with: %s is none of nothing, cheap, full or NODE@BEFORE/…", text);
        if (pl_recompute_decision_add(&s->listed, (pl_id)node, (pl_id)before, &err) != PL_OK)
            subject_broken(s, "%s", err.text);
    }
    s->with.decision = &s->listed;
    s->with.recompute = PL_RECOMPUTE_LISTED;
}

static void read_recompute(subject *s, const char *text)
{
    static const char *const rules[] = {"nothing", "cheap", "full"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, rules[i]) == 0) {
            s->with.recompute = (pl_recompute_rule)i;
            return;
        }
    read_listed(s, text);
}

static const struct {
    const char *key;
    size_t at;
} numbers[] = {
    {"micro_batch", offsetof(pl_rewrites, micro_batch)},
    {"trips", offsetof(pl_rewrites, trips)},
    {"feed_forward_rows", offsetof(pl_rewrites, feed_forward_rows)},
    {"convolution_limit", offsetof(pl_rewrites, convolution_limit)},
    {"layer_major", offsetof(pl_rewrites, layer_major)},
    {"layer_major_keep", offsetof(pl_rewrites, layer_major_keep)},
};

static void read_setting(subject *s, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(key, numbers[i].key) == 0) {
            *(int64_t *)((char *)&s->with + numbers[i].at) = strtoll(value, NULL, 10);
            return;
        }
    if (strcmp(key, "shared_sums") == 0)
        s->with.shared_sums = strcmp(value, "0") != 0;
    else if (strcmp(key, "update_early") == 0)
        s->with.update_early = strcmp(value, "0") != 0;
    else if (strcmp(key, "clip") == 0)
        s->clip = strtod(value, NULL);
    else if (strcmp(key, "angle") == 0)
        s->angle = strcmp(value, "0") != 0;
    else if (strcmp(key, "ema_rate") == 0)
        s->ema_rate = strtod(value, NULL);
    else if (strcmp(key, "precision") == 0)
        s->with.precision = read_dtype(s, value);
    else if (strcmp(key, "moments") == 0)
        s->with.moments = read_dtype(s, value);
    else if (strcmp(key, "frozen") == 0)
        s->with.frozen = read_dtype(s, value);
    else if (strcmp(key, "recompute") == 0)
        read_recompute(s, value);
    else
        subject_broken(s, "with: there is no %s", key);
}

static void read_settings(subject *s, char *line)
{
    for (char *word; (word = next_word(&line, " ")) != NULL;) {
        char *value = strchr(word, '=');
        if (!value) subject_broken(s, "with: %s is no key=value", word);
        *value = 0;
        read_setting(s, word, value + 1);
    }
}

/* The parser of graphs gets the file up to "expect:", blank above the graph: so it counts the lines of the file. */
static void read_graph(subject *s, size_t begin, size_t end)
{
    pl_error err = {0};
    char *copy = calloc(1, end + 1);
    if (!copy) subject_broken(s, "no memory");
    for (size_t i = 0; i < end; i++) copy[i] = i < begin && s->text[i] != '\n' ? ' ' : s->text[i];
    pl_status status = pl_graph_parse(s->name, copy, end, &s->graph, &err);
    if (status != PL_OK) pl_str_printf(&s->out, "refused, %s: %s\n", pl_status_name(status), err.text);
    free(copy);
}

static void find_expected(subject *s, size_t begin)
{
    const char *mark = strstr(s->text + begin, "\nexpect:\n");
    if (!mark) subject_broken(s, "there is no line \"expect:\"");
    s->expect_at = (size_t)(mark - s->text) + strlen("\nexpect:\n");
    s->expect_line = 1;
    for (size_t i = 0; i < s->expect_at; i++) s->expect_line += s->text[i] == '\n';
    read_graph(s, begin, (size_t)(mark - s->text) + 1);
}

/* The lines above the graph; returns where that begins. */
static size_t read_head(subject *s)
{
    for (size_t at = 0, bytes; s->text[at]; at += bytes + (s->text[at + bytes] != 0)) {
        char line[400];
        bytes = strcspn(s->text + at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)bytes, s->text + at);
        if (strncmp(line, "graph ", 6) == 0) return at;
        if (strncmp(line, "steps: ", 7) == 0)
            read_steps(s, line + 7);
        else if (strncmp(line, "with: ", 6) == 0)
            read_settings(s, line + 6);
        else if (line[0] != '#')
            subject_broken(s, "a line above the graph is no comment, and neither \"steps:\" nor \"with:\": %s", line);
    }
    subject_broken(s, "there is no graph");
}

void subject_read(subject *s, const char *path, uint64_t seed)
{
    const char *slash = strrchr(path, '/');
    *s = (subject){.path = path, .name = slash ? slash + 1 : path, .seed = seed};
    s->with = (pl_rewrites){.micro_batch = 1, .trips = 1};
    s->text = read_all(s);
    if (s->text[0] != '#') subject_broken(s, "begins with no comment that says what it shows");
    find_expected(s, read_head(s));
    if (s->step_count == 0) subject_broken(s, "there is no line \"steps:\"");
}

void subject_release(subject *s)
{
    pl_graph_destroy(s->graph);
    pl_str_deinit(&s->out);
    pl_recompute_decision_deinit(&s->listed);
    free(s->text);
}

/* ---- the expected text ---- */

void subject_write(const subject *s, const pl_str *got)
{
    FILE *file = fopen(s->path, "wb");
    if (!file) subject_broken(s, "cannot be written");
    fwrite(s->text, 1, s->expect_at, file);
    fwrite(pl_str_text(got), 1, got->bytes, file);
    if (fclose(file)) subject_broken(s, "cannot be written");
}

/* Lines of a text; ends where the text does. */
typedef struct line {
    const char *at;
    size_t bytes;
} line;

static size_t split(const char *text, line **lines)
{
    size_t count = 0, room = 1;
    for (const char *c = text; *c; c++) room += *c == '\n';
    *lines = calloc(room, sizeof **lines);
    for (const char *at = text; *lines && *at; count++) {
        (*lines)[count] = (line){at, strcspn(at, "\n")};
        at += (*lines)[count].bytes + (at[(*lines)[count].bytes] != 0);
    }
    return count;
}

static bool same(const line *a, const line *b) { return a->bytes == b->bytes && memcmp(a->at, b->at, a->bytes) == 0; }

/* common[i][j]: how many lines the two have in common from i and j on, in their order. */
static void count_common(const line *a, size_t n, const line *b, size_t m, unsigned *common)
{
    for (size_t i = n; i-- > 0;)
        for (size_t j = m; j-- > 0;) {
            unsigned below = common[(i + 1) * (m + 1) + j], beside = common[i * (m + 1) + j + 1];
            common[i * (m + 1) + j] = same(&a[i], &b[j]) ? 1 + common[(i + 1) * (m + 1) + j + 1]
                                      : below >= beside  ? below
                                                         : beside;
        }
}

static void say(const subject *s, size_t number, char sign, const line *l)
{
    fprintf(stderr, "%s:%zu: %c %.*s\n", s->path, number, sign, (int)l->bytes, l->at);
}

/* A line that is expected and did not come has a -, one that came instead a +, at the place where it should stand. */
static void say_differences(const subject *s, const line *a, size_t n, const line *b, size_t m)
{
    unsigned *common = calloc((n + 1) * (m + 1), sizeof *common);
    if (!common) subject_broken(s, "no memory");
    count_common(a, n, b, m, common);
    for (size_t i = 0, j = 0; i < n || j < m;) {
        size_t number = (size_t)s->expect_line + i;
        if (i < n && j < m && same(&a[i], &b[j]))
            i++, j++;
        else if (i < n && (j == m || common[(i + 1) * (m + 1) + j] >= common[i * (m + 1) + j + 1]))
            say(s, number, '-', &a[i++]);
        else
            say(s, number, '+', &b[j++]);
    }
    free(common);
}

bool subject_differs(const subject *s, const pl_str *got)
{
    line *a, *b;
    const char *expected = s->text + s->expect_at;
    if (strcmp(expected, pl_str_text(got)) == 0) return false;
    size_t n = split(expected, &a), m = split(pl_str_text(got), &b);
    if (!a || !b) subject_broken(s, "no memory");
    fprintf(stderr, "%s:%d: not as expected (- expected, + came):\n", s->path, s->expect_line);
    say_differences(s, a, n, b, m);
    free(a);
    free(b);
    return true;
}
