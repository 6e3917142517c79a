#include "again.h"

#include <stdlib.h>
#include <string.h>

#include "out.h"

extern char **environ;

static const char *few[PL_AGAIN_WORDS + 1];
static const char **words = few;
static int word_count; /* 0: too many */

void pl_again_note(int argc, char **argv)
{
    if (argc > PL_AGAIN_WORDS) words = malloc(((size_t)argc + 1) * sizeof *words);
    for (word_count = 0; words && word_count < argc; word_count++) words[word_count] = argv[word_count];
    if (words) words[word_count] = NULL;
}

int pl_again_words(const char *const **list)
{
    *list = words;
    return word_count;
}

static bool is_plain(const char *word)
{
    static const char others[] = "_-./:,=@%+";
    for (const char *p = word; *p; p++)
        if (!(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') && !(*p >= '0' && *p <= '9') && !strchr(others, *p))
            return false;
    return *word != 0;
}

/* What would act on the terminal when it is shown is written as an escape, which bash, zsh and ksh read back. */
static bool acts_on_terminals(const char *word)
{
    for (size_t bytes = strlen(word), n; bytes; word += n, bytes -= n) {
        n = pl_character_bytes(word, bytes);
        if (n == 0 || *word == '\n' || *word == '\t') return true;
    }
    return false;
}

static void add_escaped(pl_line *line, const char *word)
{
    pl_line_add(line, "$'");
    for (; *word; word++) {
        unsigned char byte = (unsigned char)*word;
        if (byte < 0x20 || byte >= 0x7f || byte == '\'' || byte == '\\')
            pl_line_add(line, "\\%03o", byte);
        else
            pl_line_bytes(line, word, 1);
    }
    pl_line_add(line, "'");
}

static void add_quoted(pl_line *line, const char *word)
{
    pl_line_add(line, "'");
    for (; *word; word++) pl_line_bytes(line, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    pl_line_add(line, "'");
}

void pl_again_add_word(pl_line *line, const char *word)
{
    if (is_plain(word))
        pl_line_bytes(line, word, strlen(word));
    else if (acts_on_terminals(word))
        add_escaped(line, word);
    else
        add_quoted(line, word);
}

/* NAME=value in front of the command; of a name a shell takes no quotes. */
static void add_variables(pl_line *line)
{
    for (char **v = environ; *v; v++) {
        if (!pl_config_is_variable(*v)) continue;
        const char *equals = strchr(*v, '=');
        pl_line_bytes(line, *v, (size_t)(equals + 1 - *v));
        pl_again_add_word(line, equals + 1);
        pl_line_add(line, " ");
    }
}

/* The last of two options counts, so --resume stands at the end; behind "--" it would be no option. */
static int place_of_resume(void)
{
    for (int i = 2; i < word_count; i++)
        if (strcmp(words[i], "--") == 0) return i;
    return word_count;
}

const char *pl_again_print(const char *resume, char text[PL_AGAIN_BYTES])
{
    pl_line line = {text, PL_AGAIN_BYTES, 0};
    text[0] = 0;
    if (word_count == 0) return text;
    int at = resume && strcmp(resume, "false") == 0 ? place_of_resume() : -1;
    add_variables(&line);
    for (int i = 0; i <= word_count; i++) {
        if (i == at) pl_line_add(&line, " --resume");
        if (i == word_count) break;
        if (resume && strcmp(words[i], "--overwrite") == 0) continue; /* it was done */
        if (i) pl_line_add(&line, " ");
        pl_again_add_word(&line, words[i]);
    }
    if (line.bytes + 1 >= line.room) text[0] = 0;
    return text;
}
