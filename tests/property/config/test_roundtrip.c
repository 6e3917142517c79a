/* Random configs: printed (YAML, JSON, JSON on one line) and loaded again they are equal, byte for byte, and print the
 * same again; set key by key through --set as well. Random bytes and damaged configs: a sentence or a success, never a
 * crash. PLIMSOLL_TEST_SEED=N repeats a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/schema.h"
#include "support/program.h"
#include "support/seed.h"

/* Under sanitizers one in four of the random cases: all are in the plain tree's `make soak`. */
#if defined(__SANITIZE_ADDRESS__)
enum { SHARE = 4 };
#else
enum { SHARE = 1 };
#endif

static uint64_t seed, rng;

/* xorshift64*: the tests need variety, not quality. */
static uint64_t draw(uint64_t below)
{
    rng ^= rng >> 12, rng ^= rng << 25, rng ^= rng >> 27;
    return (rng * UINT64_C(2685821657736338717) >> 11) % below;
}

/* ---- random values, as text that the key accepts ---- */

static void random_int(const pl_config_key *key, char *text)
{
    uint64_t span = (uint64_t)key->max_int - (uint64_t)key->min_int;
    uint64_t step = draw(3) == 0 ? span - draw(span < 9 ? span + 1 : 9)
                    : draw(3)    ? draw(span < 100 ? span + 1 : 100)
                                 : draw(span);
    if (key->flags & PL_CONFIG_FLAG_AUTO && draw(4) == 0)
        strcpy(text, "auto");
    else if (key->flags & PL_CONFIG_FLAG_NONE && draw(4) == 0)
        strcpy(text, "none");
    else
        sprintf(text, "%lld", (long long)(key->min_int + (int64_t)step));
}

static void random_real(const pl_config_key *key, char *text)
{
    double unit = ((double)draw(1u << 30) + 0.5) / (1u << 30), low = key->min_real, high = key->max_real;
    double x = draw(3) ? low + (high - low) * unit : low + (high - low) * unit * 1e-12;
    if (draw(8) == 0 && !(key->flags & PL_CONFIG_FLAG_OVER_MIN)) x = low;
    if (draw(8) == 0 && !(key->flags & PL_CONFIG_FLAG_UNDER_MAX)) x = high;
    if (x == low && key->flags & PL_CONFIG_FLAG_OVER_MIN) x = nextafter(low, high); /* what is added may be lost */
    if (x == high && key->flags & PL_CONFIG_FLAG_UNDER_MAX) x = nextafter(high, low);
    sprintf(text, "%.17g", x);
}

/* Words that YAML could take for something else, every printable character and the awkward ones beyond ASCII. */
static void random_text(char *text)
{
    static const char *const words[] = {"null",
                                        "~",
                                        "true",
                                        "1e3",
                                        "0x1f",
                                        "auto",
                                        "none",
                                        "-",
                                        "a: b",
                                        "# c",
                                        "'",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "\t",
                                        "\r",
                                        " ",
                                        "*a",
                                        "&a",
                                        "!t",
                                        "|",
                                        ">",
                                        "%",
                                        "@",
                                        "`",
                                        "{",
                                        "]",
                                        ",",
                                        "é",
                                        "\xc2\x85",
                                        "\xe2\x80\xa8",
                                        "\xe2\x80\xa9",
                                        "\xef\xbb\xbf",
                                        "\xc2\xa0",
                                        "😀",
                                        "€",
                                        "/",
                                        ".",
                                        "./x",
                                        "---",
                                        "...",
                                        "\n\n",
                                        "? ",
                                        ":",
                                        "=",
                                        "<<",
                                        "yes",
                                        ".inf",
                                        "2024-01-01"};
    size_t pieces = 1 + draw(6), used = 0;
    for (size_t i = 0; i < pieces; i++) {
        if (draw(2))
            text[used++] = (char)(0x20 + draw(0x5f));
        else
            used += (size_t)sprintf(text + used, "%s", words[draw(sizeof words / sizeof *words)]);
    }
    text[used] = 0;
}

/* With or without brackets; words of a list need no quotes. */
static void random_list(const pl_config_key *key, char *text)
{
    const bool brackets = draw(2);
    const uint32_t count = key->min_items + (uint32_t)draw(key->max_items - key->min_items + 1);
    uint32_t used = 0;
    strcpy(text, brackets ? "[" : "");
    for (uint32_t i = 0; i < count; i++) {
        char item[40];
        if (key->names) {
            const size_t word = draw(key->name_count);
            if (used >> word & 1) continue; /* comes but once */
            used |= 1u << word;
            sprintf(item, draw(2) ? "%s" : "\"%s\"", key->names[word]);
        } else if (key->flags & PL_CONFIG_FLAG_WHOLE) {
            const double step = key->flags & PL_CONFIG_FLAG_ODD ? 2 : 1, number = key->min_real + step * i;
            if (number > key->max_real) break;
            sprintf(item, "%.0f", number);
        } else if (key->flags & PL_CONFIG_FLAG_DISTINCT) {
            const double unit = (i + (double)draw(1000) / 1001 + 1e-4) / (count + 1);
            sprintf(item, "%.17g", key->min_real + (key->max_real - key->min_real) * unit);
        } else {
            random_real(key, item);
        }
        strcat(strcat(text, text[brackets] ? ", " : ""), item);
    }
    strcat(text, brackets ? "]" : "");
}

static void random_value(const pl_config_key *key, char *text)
{
    text[0] = 0;
    switch (key->type) {
    case PL_CONFIG_INT:
    case PL_CONFIG_BYTES:
        random_int(key, text);
        break;
    case PL_CONFIG_REAL:
        random_real(key, text);
        break;
    case PL_CONFIG_BOOL:
        strcpy(text, draw(2) ? "true" : "false");
        break;
    case PL_CONFIG_ENUM:
        strcpy(text, key->names[draw(key->name_count)]);
        break;
    case PL_CONFIG_SET:
        for (size_t i = 0; i < key->name_count; i++)
            if (draw(2)) strcat(strcat(text, *text ? "," : ""), key->names[i]);
        if (!*text) strcpy(text, "none");
        break;
    case PL_CONFIG_LIST:
        random_list(key, text);
        break;
    case PL_CONFIG_TEXT:
    case PL_CONFIG_PATH:
        random_text(text);
        break;
    case PL_CONFIG_NAME_OR_PATH:
        if (draw(2)) {
            strcpy(text, key->names[draw(key->name_count)]);
        } else {
            random_text(text);
            strcat(text, "/t.json");
        }
        break;
    case PL_CONFIG_RECORDS: /* no option gives them: random_records */
        break;
    }
}

/* Names with a number, so that they differ; any text in the other fields. */
static void random_records(const pl_config_key *key, void *value)
{
    static const char characters[] = "abcXYZ_0123456789.-";
    const int64_t count = 1 + (int64_t)draw(key->max_items);
    for (int64_t i = 0; i < count; i++)
        for (size_t f = 0; f < key->field_count; f++) {
            char text[640], *to = (char *)pl_config_record_text(key, value, i, &key->fields[f]);
            if (f == 0) {
                size_t used = (size_t)sprintf(text, "%d_", (int)i);
                for (size_t n = draw(20); n; n--) text[used++] = characters[draw(sizeof characters - 1)];
                text[used] = 0;
            } else {
                do random_text(text);
                while (strlen(text) >= key->fields[f].bytes);
            }
            memcpy(to, text, strlen(text));
        }
    memcpy(value, &count, sizeof count);
}

static void random_config(pl_config *cfg)
{
    pl_config_default(cfg);
    for (size_t i = 0; i < PL_CONFIG_KEY_COUNT; i++) {
        char text[640];
        pl_error err = {0};
        if (draw(3) == 0) continue;
        if (pl_config_keys[i].type == PL_CONFIG_RECORDS) {
            random_records(&pl_config_keys[i], (char *)cfg + pl_config_keys[i].offset);
            pl_config_origin_of(cfg, &pl_config_keys[i])->level = PL_CONFIG_FROM_FILE;
            continue;
        }
        random_value(&pl_config_keys[i], text);
        if (pl_config_set(cfg, pl_config_keys[i].path, text, "--set", &err) != PL_OK)
            fail_msg("seed %llu: %s = %s: %s", (unsigned long long)seed, pl_config_keys[i].path, text, err.text);
    }
}

/* ---- the properties ---- */

static void must_read_back(const pl_config *cfg, const pl_str *text, const char *what)
{
    pl_config again;
    pl_error err = {0};
    assert_false(text->failed);
    pl_config_default(&again);
    pl_status status = pl_config_load_text(&again, "printed", pl_str_text(text), text->bytes, &err);
    if (status != PL_OK) fail_msg("seed %llu: %s: %s\n%s", (unsigned long long)seed, what, err.text, pl_str_text(text));
    if (memcmp(cfg, &again, offsetof(pl_config, file)) != 0 || !pl_config_equal(cfg, &again))
        fail_msg("seed %llu: %s reads back differently\n%s", (unsigned long long)seed, what, pl_str_text(text));
    assert_true(pl_config_hash_numerics(cfg) == pl_config_hash_numerics(&again));
}

static void check_one(const pl_config *cfg)
{
    pl_str yaml = {0}, json = {0}, line = {0};
    pl_json writer = pl_json_begin(&json, false);
    pl_config_print_yaml(cfg, &yaml);
    pl_config_json(cfg, &writer);
    writer = pl_json_begin(&line, true);
    pl_config_json(cfg, &writer);
    must_read_back(cfg, &yaml, "YAML");
    must_read_back(cfg, &json, "JSON");
    must_read_back(cfg, &line, "JSON on one line");
    pl_str_deinit(&yaml);
    pl_str_deinit(&json);
    pl_str_deinit(&line);
}

static void printing_then_loading_is_the_identity(void **state)
{
    (void)state;
    pl_config cfg;
    pl_config_default(&cfg);
    check_one(&cfg);
    for (int i = 0; i < 700 / SHARE; i++) {
        random_config(&cfg);
        check_one(&cfg);
    }
}

/* In a locale that writes 0,5 numbers still have points; skipped where the machine has none (LOCPATH can name a folder
 * of locales made with localedef). */
static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !name; i++)
        name = setlocale(LC_ALL, names[i]) ? names[i] : NULL;
    setlocale(LC_ALL, "C");
    if (!name) skip();
    for (int i = 0; i < 50 / SHARE; i++) {
        pl_config cfg;
        random_config(&cfg); /* its numbers are printed with a point */
        setlocale(LC_ALL, name);
        check_one(&cfg);
        setlocale(LC_ALL, "C");
    }
}

/* A printed config with a few bytes changed, taken out or doubled, and plain random bytes. */
static void damaged_text_never_crashes(void **state)
{
    (void)state;
    static const char alphabet[] = "abc:{}[],-?*&!|>'\"%@`#~ \n\t\\\x80\xff\xc3\x00";
    for (int i = 0; i < 2500 / SHARE; i++) {
        pl_config cfg, before;
        pl_str text = {0};
        pl_error err = {0};
        random_config(&cfg);
        if (draw(3))
            pl_config_print_yaml(&cfg, &text);
        else
            for (size_t n = draw(300); n; n--) pl_str_append_bytes(&text, &alphabet[draw(sizeof alphabet - 1)], 1);
        for (size_t n = draw(5); n && text.bytes; n--) {
            char *at = text.data + draw(text.bytes);
            if (draw(3) == 0)
                memmove(at, at + 1, (size_t)(text.data + --text.bytes - at));
            else
                *at = draw(2) ? alphabet[draw(sizeof alphabet - 1)] : (char)draw(256);
        }
        pl_config_default(&before);
        cfg = before;
        pl_status status = pl_config_load_text(&cfg, "damaged", text.bytes ? text.data : "", text.bytes, &err);
        if (status == PL_OK) {
            status = pl_config_check(&cfg, &err);
            assert_true(status == PL_OK || err.text[0]);
        } else {
            if (status != PL_E_CONFIG || strncmp(err.text, "damaged:", 8) != 0)
                fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
            assert_memory_equal(&cfg, &before, sizeof cfg);
        }
        pl_str_deinit(&text);
    }
}

/* Random words as command line and environment. */
static void random_words_never_crash(void **state)
{
    (void)state;
    for (int i = 0; i < 3000 / SHARE; i++) {
        char words[4][900], *argv[5] = {words[0], words[1], words[2], words[3], NULL};
        pl_config cfg;
        pl_error err = {0};
        for (int w = 0; w < 4; w++) {
            const pl_config_key *key = &pl_config_keys[draw(PL_CONFIG_KEY_COUNT)];
            char value[640];
            if (draw(2))
                random_value(key, value);
            else
                random_text(value);
            if (draw(8) == 0) memset(value, 'x', 255), value[255] = 0;
            static const char *const forms[] = {"--set=%s=%s", "PLIMSOLL_%s=%s", "%s%s", "--"};
            if (draw(2) && key->option)
                snprintf(words[w], sizeof words[w], draw(4) ? "--%s=%s" : "--%s", key->option, value);
            else
                snprintf(words[w], sizeof words[w], forms[draw(4)], key->path, value);
        }
        int argc = 4;
        pl_config_default(&cfg);
        pl_status status =
            draw(2) ? pl_config_apply_env(&cfg, argv, &err) : pl_config_apply_args(&cfg, &argc, argv, &err);
        assert_true(status == PL_OK || ((status == PL_E_CONFIG || status == PL_E_USAGE) && err.text[0]));
        (void)pl_config_unknown_option(words[0], NULL, 0, &err);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    rng = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing_then_loading_is_the_identity),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(damaged_text_never_crashes),
        cmocka_unit_test(random_words_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
