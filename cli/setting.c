/* Reads single keys back out of a config: its JSON form is the library's own, so this walks well-formed text. */
#include <stdlib.h>
#include <string.h>

#include "load.h"

static const char *skip_space(const char *p) { return p + strspn(p, " \t\r\n,:"); }

/* From the opening quote to behind the closing one. */
static const char *skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1]) p++;
    return *p ? p + 1 : p;
}

static const char *skip_value(const char *p)
{
    int depth = 0;
    do {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        if (*p == '{' || *p == '[') depth++;
        if (*p == '}' || *p == ']') depth--;
        p++;
    } while (*p && (depth > 0 || !strchr(",}]", *p)));
    return p;
}

/* The value of a member of the object at p, or NULL. */
static const char *find_member(const char *p, const char *name)
{
    size_t bytes = strlen(name);
    for (p = skip_space(p + 1); *p == '"'; p = skip_space(skip_value(p))) {
        const char *key = p + 1;
        p = skip_string(p);
        bool found = (size_t)(p - key) == bytes + 1 && strncmp(key, name, bytes) == 0;
        p = skip_space(p);
        if (found) return p;
    }
    return NULL;
}

typedef struct target {
    char *text;
    size_t room, bytes;
} target;

static void put_byte(target *t, unsigned byte)
{
    if (t->bytes + 1 < t->room) t->text[t->bytes++] = (char)byte;
}

/* \uXXXX at p (behind the u); characters beyond the first plane are not escaped by the library. */
static const char *put_escaped_unicode(target *t, const char *p)
{
    char hex[5] = {0};
    strncpy(hex, p, 4);
    unsigned long code = strtoul(hex, NULL, 16);
    if (code < 0x80)
        put_byte(t, (unsigned)code);
    else if (code < 0x800)
        put_byte(t, 0xc0u | (unsigned)(code >> 6)), put_byte(t, 0x80u | (unsigned)(code & 63));
    else {
        put_byte(t, 0xe0u | (unsigned)(code >> 12));
        put_byte(t, 0x80u | (unsigned)(code >> 6 & 63));
        put_byte(t, 0x80u | (unsigned)(code & 63));
    }
    return p + strlen(hex);
}

static const char *put_escaped(target *t, const char *p)
{
    static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
    const char *letter = strchr(letters, *p);
    if (*p == 'u') return put_escaped_unicode(t, p + 1);
    put_byte(t, (unsigned char)(letter ? values[letter - letters] : *p));
    return p + 1;
}

static void copy_value(const char *p, char *text, size_t room)
{
    target t = {text, room, 0};
    if (*p == '"') {
        for (p++; *p && *p != '"';) {
            if (*p == '\\' && p[1])
                p = put_escaped(&t, p + 1);
            else
                put_byte(&t, (unsigned char)*p++);
        }
    } else {
        const char *end = skip_value(p);
        while (end > p && strchr(" \t\r\n", end[-1])) end--; /* the layout behind the last of a section */
        while (p < end) put_byte(&t, (unsigned char)*p++);
    }
    text[t.bytes] = 0;
}

pl_status pl_cli_setting(const pl_config *config, const char *section, const char *key, char *text, size_t room,
                         pl_error *err)
{
    char *json = NULL;
    text[0] = 0;
    pl_status status = pl_config_text(config, PL_CONFIG_JSON, &json, NULL, err);
    const char *at = status == PL_OK ? find_member(skip_space(json), section) : NULL;
    if (at) at = find_member(at, key);
    if (at) copy_value(at, text, room);
    pl_text_free(json);
    return status;
}
