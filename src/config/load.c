/* YAML into a config, from libyaml's events with their positions. A mapping is a section, which has keys and, as the
 * table says, further sections; so the reader goes no deeper than the table, and any other nesting is refused at its
 * first event. Anchors, aliases, tags and further documents are refused too: they would let a small file mean something
 * large or something else.
 *
 * Invariant: the caller's config changes only when the whole text is right. The text is checked to be UTF-8 that YAML
 * can carry before libyaml sees it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <yaml.h>

#include "base/str.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "config/schema.h"

enum { DEPTH_MAX = 4, FIELDS_MAX = 8, PLACES = PL_CONFIG_SECTION_COUNT + PL_CONFIG_PLACE_COUNT };

/* A section by its name, which may be only the beginning of names in the table: "parameter_space". The names are those
 * of the sections, and those of the places where other programs have them. */
typedef struct place {
    const char *name; /* of the first section that is it, or lies in it */
    size_t bytes;
    int first; /* the number of that one */
    uint32_t depth;
    const pl_config_section *section; /* NULL: it holds sections only */
} place;

typedef struct loader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; deleted when the next is read */
    bool has_event;
    const char *name, *text;
    size_t bytes;
    pl_config *cfg;
    /* Lines, 0 = not seen; a section's by the first of the table that lies in it, and its depth. */
    const pl_config_alias *seen_as[PL_CONFIG_KEY_COUNT]; /* the key was given by this word */
    uint32_t seen_key[PL_CONFIG_KEY_COUNT], seen_section[PLACES][DEPTH_MAX];
    char where[PL_CONFIG_WHERE_BYTES];
    pl_error *err;
} loader;

/* "name:line:col" of the mark, both from 1. */
static const char *at(loader *l, yaml_mark_t mark)
{
    snprintf(l->where, sizeof l->where, "%s:%zu:%zu", l->name, mark.line + 1, mark.column + 1);
    return l->where;
}

#define FAIL_HERE(l, ...) pl_fail((l)->err, PL_E_CONFIG, __VA_ARGS__)

/* ---- what libyaml itself refuses ---- */

/* The byte offset of the mark, which counts characters. */
static char byte_at(const loader *l, yaml_mark_t mark)
{
    size_t i = 0;
    for (size_t characters = 0; i < l->bytes; i++)
        if (((unsigned char)l->text[i] & 0xc0) != 0x80 && characters++ == mark.index) return l->text[i];
    return 0;
}

/* libyaml asks the system by itself. */
static pl_status no_memory(const loader *l)
{
    pl_alloc_note_refusal(pl_config_parser_bytes(l->bytes));
    return pl_fail(l->err, PL_E_NOMEM, "%s: no memory to read it", l->name);
}

static pl_status syntax_error(loader *l)
{
    const yaml_parser_t *p = &l->parser;
    if (p->error == YAML_MEMORY_ERROR) return no_memory(l);
    const char *problem = p->problem ? p->problem : "it cannot be read";
    if (strcmp(problem, "could not find expected ':'") == 0)
        return FAIL_HERE(l, "%s: this is not a \"key: value\" line", at(l, p->context_mark));
    const yaml_mark_t mark = p->problem_mark;
    if (byte_at(l, mark) == '\t') return FAIL_HERE(l, "%s: a tab: YAML indents with spaces", at(l, mark));
    return FAIL_HERE(l, "%s: not YAML: %s%s%s%s", at(l, mark), problem, p->context ? " (" : "",
                     p->context ? p->context : "", p->context ? ")" : "");
}

static pl_status refuse_extras(loader *l)
{
    const yaml_event_t *e = &l->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (e->type == YAML_ALIAS_EVENT)
        return FAIL_HERE(l, "%s: an alias (*%.40s) is not allowed here; write the value out", at(l, e->start_mark),
                         (const char *)e->data.alias.anchor);
    if (e->type == YAML_SCALAR_EVENT) anchor = e->data.scalar.anchor, tag = e->data.scalar.tag;
    if (e->type == YAML_MAPPING_START_EVENT) anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag;
    if (e->type == YAML_SEQUENCE_START_EVENT) anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag;
    if (anchor)
        return FAIL_HERE(l, "%s: an anchor (&%.40s) is not allowed here; take it away", at(l, e->start_mark),
                         (const char *)anchor);
    if (tag)
        return FAIL_HERE(l, "%s: a tag (%.40s) is not allowed here; the key alone says the type", at(l, e->start_mark),
                         (const char *)tag);
    return PL_OK;
}

static pl_status next(loader *l)
{
    if (l->has_event) yaml_event_delete(&l->event);
    l->has_event = yaml_parser_parse(&l->parser, &l->event);
    if (!l->has_event) return syntax_error(l);
    return refuse_extras(l);
}

/* ---- keys ---- */

static pl_config_scalar scalar_of(const yaml_event_t *e)
{
    return (pl_config_scalar){(const char *)e->data.scalar.value, e->data.scalar.length,
                              e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? PL_CONFIG_PLAIN : PL_CONFIG_QUOTED};
}

static bool is_null_event(const yaml_event_t *e)
{
    return e->type == YAML_SCALAR_EVENT && pl_config_is_null(scalar_of(e));
}

/* The current event as a word, or NULL when it is not a word (a list as a key, a word with a zero byte in it). */
static const char *word_here(const loader *l)
{
    if (l->event.type != YAML_SCALAR_EVENT) return NULL;
    const char *word = (const char *)l->event.data.scalar.value;
    return strlen(word) == l->event.data.scalar.length ? word : NULL;
}

static void join(char *buf, size_t room, const char *item, bool first)
{
    size_t used = strlen(buf);
    snprintf(buf + used, room - used, "%s%s", first ? "" : ", ", item);
}

static const char *name_of_place(int i)
{
    return i < PL_CONFIG_SECTION_COUNT ? pl_config_sections[i].name
                                       : pl_config_places[i - PL_CONFIG_SECTION_COUNT].path;
}

/* The section that other programs have at this place. */
static void go_to_section(int i, place *p)
{
    const char *name = pl_config_places[i - PL_CONFIG_SECTION_COUNT].section;
    const pl_config_section *section = pl_config_find_section(name, strlen(name));
    *p = (place){name, strlen(name), (int)(section - pl_config_sections), pl_config_depth(name), section};
}

/* The section called `word` in that one; at the top, where the depth is 0, too. */
static bool find_inner(const place *outer, const char *word, place *inner)
{
    for (int i = 0; i < PLACES; i++) {
        size_t bytes;
        const char *name = name_of_place(i);
        if (pl_config_depth(name) <= outer->depth) continue;
        if (outer->depth && (strncmp(name, outer->name, outer->bytes) != 0 || name[outer->bytes] != '.')) continue;
        const char *level = pl_config_level_of(name, outer->depth, &bytes);
        if (strlen(word) != bytes || memcmp(level, word, bytes) != 0) continue;
        bytes += (size_t)(level - name);
        *inner = (place){name, bytes, i, outer->depth + 1, pl_config_find_section(name, bytes)};
        if (i >= PL_CONFIG_SECTION_COUNT && !name[bytes]) go_to_section(i, inner);
        return true;
    }
    return false;
}

/* "sampling" for "sobol": the section in which one of this name lies; else "". */
static void print_outer(const char *word, char *buf, size_t room)
{
    buf[0] = 0;
    for (int i = 0; i < PL_CONFIG_SECTION_COUNT; i++)
        for (uint32_t k = 1; k < pl_config_depth(pl_config_sections[i].name); k++) {
            size_t bytes;
            const char *name = pl_config_sections[i].name, *level = pl_config_level_of(name, k, &bytes);
            if (strlen(word) != bytes || memcmp(level, word, bytes) != 0) continue;
            snprintf(buf, room, "%.*s", (int)(level - name - 1), name);
            return;
        }
}

/* What could stand in a section: its keys, and the sections in it. */
typedef struct candidates {
    const char *word, *near;
    size_t best;
    char held[64]; /* a section's word, which ends with a dot in the table */
    char list[PL_ERROR_TEXT_BYTES];
} candidates;

static void consider(candidates *c, const char *name)
{
    join(c->list, sizeof c->list, name, c->list[0] == 0);
    if (!pl_nearer(c->word, name, &c->best)) return;
    snprintf(c->held, sizeof c->held, "%s", name);
    c->near = c->held;
}

static void consider_sections(candidates *c, const place *p)
{
    const char *last = "";
    size_t last_bytes = 0;
    /* Places of other programs are listed only where nothing else could stand. */
    for (int i = 0; i < (p->depth && !p->section ? PLACES : PL_CONFIG_SECTION_COUNT); i++) {
        char word[64];
        size_t bytes;
        const char *name = name_of_place(i);
        if (pl_config_depth(name) <= p->depth) continue;
        if (p->depth && (strncmp(name, p->name, p->bytes) != 0 || name[p->bytes] != '.')) continue;
        const char *level = pl_config_level_of(name, p->depth, &bytes);
        if (bytes == last_bytes && memcmp(level, last, bytes) == 0) continue; /* sections in one follow each other */
        snprintf(word, sizeof word, "%.*s", (int)bytes, level);
        consider(c, word);
        last = level, last_bytes = bytes;
    }
}

/* A key that stands outside of any section, nearer than the best so far, or NULL. */
static const char *nearest_outside(const char *word, size_t *best)
{
    const char *near = NULL;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (!key->section->name[0] && pl_nearer(word, key->name, best)) near = key->name;
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++)
        if (alias->key && !strchr(alias->path, '.') && pl_nearer(word, alias->path, best)) near = alias->path;
    return near;
}

static pl_status unknown_section(loader *l, const char *word)
{
    char shown[64], outer[96];
    candidates c = {.word = word, .best = SIZE_MAX};
    const pl_config_key *key = pl_config_find_in(NULL, word);
    pl_config_shown(word, strlen(word), shown);
    print_outer(word, outer, sizeof outer);
    consider_sections(&c, &(place){.depth = 0});
    const char *outside = nearest_outside(word, &c.best);
    at(l, l->event.start_mark);
    if (outer[0]) return FAIL_HERE(l, "%s: unknown section \"%s\"; it belongs in %s", l->where, shown, outer);
    if (key) return FAIL_HERE(l, "%s: unknown section \"%s\"; it is a key of %s", l->where, shown, key->section->name);
    if (outside) return FAIL_HERE(l, "%s: unknown key \"%s\"; did you mean \"%s\"?", l->where, shown, outside);
    if (c.near) return FAIL_HERE(l, "%s: unknown section \"%s\"; did you mean \"%s\"?", l->where, shown, c.near);
    return FAIL_HERE(l, "%s: unknown section \"%s\"; the sections are %s", l->where, shown, c.list);
}

static pl_status unknown_key(loader *l, const place *p, const char *word)
{
    char shown[64], outer[96];
    candidates c = {.word = word, .best = SIZE_MAX};
    const pl_config_key *elsewhere = pl_config_find_in(NULL, word);
    const char *kind = p->section ? "key" : "section";
    pl_config_shown(word, strlen(word), shown);
    for (const pl_config_key *key = pl_config_keys; p->section && key < PL_CONFIG_KEYS_END; key++)
        if (key->section == p->section) consider(&c, key->name);
    for (const pl_config_alias *a = pl_config_aliases; p->section && a < PL_CONFIG_ALIASES_END; a++) {
        const char *here = a->key ? pl_config_alias_in(a, p->section->name) : NULL;
        if (here) consider(&c, here);
    }
    consider_sections(&c, p);
    print_outer(word, outer, sizeof outer);
    at(l, l->event.start_mark);
    if (outer[0] && (!elsewhere || !pl_config_is_used(l->cfg, elsewhere)))
        return FAIL_HERE(l, "%s: unknown %s \"%s\" in %.*s; it belongs in %s", l->where, kind, shown, (int)p->bytes,
                         p->name, outer);
    if (elsewhere && !elsewhere->section->is_dimension)
        return FAIL_HERE(l, "%s: unknown %s \"%s\" in %.*s; it is a key of %s", l->where, kind, shown, (int)p->bytes,
                         p->name, elsewhere->section->name);
    if (c.near)
        return FAIL_HERE(l, "%s: unknown %s \"%s\" in %.*s; did you mean \"%s\"?", l->where, kind, shown, (int)p->bytes,
                         p->name, c.near);
    return FAIL_HERE(l, "%s: unknown %s \"%s\" in %.*s; its %ss are %s", l->where, kind, shown, (int)p->bytes, p->name,
                     kind, c.list);
}

static pl_status not_twice(loader *l, uint32_t *seen, const char *kind, const char *name, size_t bytes)
{
    const yaml_mark_t mark = l->event.start_mark;
    if (*seen)
        return FAIL_HERE(l, "%s: %s \"%.*s\" is here a second time; the first is on line %u", at(l, mark), kind,
                         (int)bytes, name, *seen);
    *seen = (uint32_t)mark.line + 1;
    return PL_OK;
}

/* ---- values ---- */

static pl_status nested(loader *l, const pl_config_key *key)
{
    char expected[320];
    const char *found = l->event.type == YAML_MAPPING_START_EVENT ? "a mapping" : "a list";
    const char *hint = key->type == PL_CONFIG_RECORDS ? "" : "; a config has sections and keys and nothing deeper";
    return FAIL_HERE(l, "%s: %s must be %s, not %s%s", at(l, l->event.start_mark), key->path,
                     pl_config_expected(key, expected, sizeof expected), found, hint);
}

static pl_status read_list(loader *l, const pl_config_key *key, yaml_mark_t begin, pl_config_value *value)
{
    for (;;) {
        PL_TRY(next(l));
        if (l->event.type == YAML_SEQUENCE_END_EVENT) return pl_config_check_items(key, value, at(l, begin), l->err);
        if (l->event.type != YAML_SCALAR_EVENT) return nested(l, key);
        at(l, l->event.start_mark);
        PL_TRY(pl_config_parse_item(key, scalar_of(&l->event), value, l->where, l->err));
    }
}

/* ---- lists of paths ---- */

/* Lines are what the value is, so no path may have several. */
static pl_status add_path(loader *l, const pl_config_key *key, pl_str *lines)
{
    pl_config_value one = {0};
    const pl_config_scalar s = scalar_of(&l->event);
    at(l, l->event.start_mark);
    if (l->event.type != YAML_SCALAR_EVENT) return nested(l, key);
    if (memchr(s.text, '\n', s.bytes) || s.bytes == 0)
        return FAIL_HERE(l, "%s: an item of %s must be one path", l->where, key->path);
    PL_TRY(pl_config_parse_value(key, s, &one, l->where, l->err));
    pl_str_printf(lines, "%s%.*s", lines->bytes ? "\n" : "", (int)s.bytes, s.text);
    return PL_OK;
}

static pl_status read_paths(loader *l, const pl_config_key *key, const pl_config_origin *from)
{
    char text[PL_CONFIG_TEXT_BYTES], where[sizeof l->where];
    pl_str lines = pl_str_fixed(text, sizeof text);
    memcpy(where, at(l, l->event.start_mark), sizeof where);
    for (;;) {
        PL_TRY(next(l));
        if (l->event.type == YAML_SEQUENCE_END_EVENT) break;
        PL_TRY(add_path(l, key, &lines));
    }
    if (lines.failed)
        return FAIL_HERE(l, "%s: the paths of %s are too long together; put them into a file (@FILE)", where,
                         key->path);
    return pl_config_assign(l->cfg, key, (pl_config_scalar){pl_str_text(&lines), lines.bytes, PL_CONFIG_QUOTED}, from,
                            where, l->err);
}

/* ---- lists of records ---- */

static const pl_config_field *find_field(const pl_config_key *key, const char *word)
{
    for (size_t i = 0; i < key->field_count; i++)
        if (strcmp(key->fields[i].name, word) == 0) return &key->fields[i];
    return NULL;
}

static pl_status unknown_field(loader *l, const pl_config_key *key, const char *record, const char *word)
{
    char shown[64];
    candidates c = {.word = word, .best = SIZE_MAX};
    pl_config_shown(word, strlen(word), shown);
    for (size_t i = 0; i < key->field_count; i++) consider(&c, key->fields[i].name);
    at(l, l->event.start_mark);
    if (c.near)
        return FAIL_HERE(l, "%s: unknown key \"%s\" in %s; did you mean \"%s\"?", l->where, shown, record, c.near);
    return FAIL_HERE(l, "%s: unknown key \"%s\" in %s; its keys are %s", l->where, shown, record, c.list);
}

/* A key at the current event, and its text. seen: lines of the fields. */
static pl_status read_field(loader *l, const pl_config_key *key, int64_t i, uint32_t *seen)
{
    pl_config_record_path path;
    const char *word = word_here(l);
    pl_config_print_record_path(key, i, NULL, path);
    if (!word) return FAIL_HERE(l, "%s: a key of %s must be a word", at(l, l->event.start_mark), path);
    const pl_config_field *field = find_field(key, word);
    if (!field) return unknown_field(l, key, path, word);
    pl_config_print_record_path(key, i, field, path);
    PL_TRY(not_twice(l, &seen[field - key->fields], "key", path, strlen(path)));
    PL_TRY(next(l));
    at(l, l->event.start_mark);
    if (l->event.type != YAML_SCALAR_EVENT)
        return FAIL_HERE(l, "%s: %s must be text, not %s", l->where, path,
                         l->event.type == YAML_MAPPING_START_EVENT ? "a mapping" : "a list");
    return pl_config_parse_field(key, i, field, scalar_of(&l->event), (char *)l->cfg + key->offset, l->where, l->err);
}

static pl_status read_record(loader *l, const pl_config_key *key)
{
    const yaml_mark_t begin = l->event.start_mark;
    void *value = (char *)l->cfg + key->offset;
    uint32_t seen[FIELDS_MAX] = {0}, given = 0;
    char expected[320];
    if (l->event.type != YAML_MAPPING_START_EVENT)
        return FAIL_HERE(l, "%s: %s must be %s; this is no mapping, such as \"- %s: …\"", at(l, begin), key->path,
                         pl_config_expected(key, expected, sizeof expected), key->fields[0].name);
    if (pl_config_record_count(value) == key->max_items)
        return FAIL_HERE(l, "%s: %s must be %s, and this is one too many", at(l, begin), key->path,
                         pl_config_expected(key, expected, sizeof expected));
    for (;;) {
        PL_TRY(next(l));
        if (l->event.type == YAML_MAPPING_END_EVENT) break;
        PL_TRY(read_field(l, key, pl_config_record_count(value), seen));
    }
    for (size_t i = 0; i < key->field_count; i++) given |= (uint32_t)(seen[i] != 0) << i;
    return pl_config_close_record(key, given, value, at(l, begin), l->err);
}

/* Written straight into the config, which is a copy until the whole text is right: only files have records. */
static pl_status read_records(loader *l, const pl_config_key *key, const pl_config_origin *from)
{
    char expected[320];
    const yaml_mark_t begin = l->event.start_mark;
    void *value = (char *)l->cfg + key->offset;
    memset(value, 0, key->bytes);
    for (;;) {
        PL_TRY(next(l));
        if (l->event.type == YAML_SEQUENCE_END_EVENT) break;
        PL_TRY(read_record(l, key));
    }
    if (pl_config_record_count(value) == 0)
        return FAIL_HERE(l, "%s: %s must be %s, not an empty list", at(l, begin), key->path,
                         pl_config_expected(key, expected, sizeof expected));
    pl_config_assign_items(l->cfg, key, value, from);
    return PL_OK;
}

static pl_config_origin origin_here(const loader *l, const pl_config_alias *alias)
{
    const yaml_mark_t mark = l->event.start_mark;
    pl_config_origin from = {
        .level = PL_CONFIG_FROM_FILE, .line = (uint32_t)mark.line + 1, .column = (uint32_t)mark.column + 1};
    if (alias) snprintf(from.by, sizeof from.by, "%s", alias->path);
    return from;
}

/* alias: the name used in place of the key's, or NULL. */
static pl_status read_value(loader *l, const pl_config_key *key, const pl_config_alias *alias)
{
    PL_TRY(next(l));
    const yaml_mark_t mark = l->event.start_mark;
    const pl_config_origin from = origin_here(l, alias);
    if (l->event.type == YAML_SEQUENCE_START_EVENT && (key->type == PL_CONFIG_SET || key->type == PL_CONFIG_LIST)) {
        pl_config_value value = {0};
        PL_TRY(read_list(l, key, mark, &value));
        return pl_config_assign_items(l->cfg, key, &value, &from), PL_OK;
    }
    if (l->event.type == YAML_SEQUENCE_START_EVENT && key->type == PL_CONFIG_RECORDS)
        return read_records(l, key, &from);
    if (l->event.type == YAML_SEQUENCE_START_EVENT && key->type == PL_CONFIG_PATH && key->flags & PL_CONFIG_FLAG_LINES)
        return read_paths(l, key, &from);
    if (l->event.type != YAML_SCALAR_EVENT) return nested(l, key);
    at(l, mark);
    const pl_config_scalar s = scalar_of(&l->event);
    return pl_config_assign(l->cfg, key, s, &from, l->where, l->err);
}

/* ---- the levels ---- */

static pl_status read_section(loader *, const place *);

/* A key may stand there once, by whichever name. */
static pl_status not_again(loader *l, const pl_config_key *key, const pl_config_alias *alias)
{
    const size_t i = (size_t)(key - pl_config_keys);
    const pl_config_alias *before = l->seen_as[i];
    if (l->seen_key[i] && alias != before)
        return FAIL_HERE(l, "%s: %s is here a second time, as \"%s\"; the first, \"%s\", is on line %u; take one out",
                         at(l, l->event.start_mark), key->path, alias ? alias->path : key->name,
                         before ? before->path : key->name, l->seen_key[i]);
    const char *name = alias ? alias->path : key->path;
    PL_TRY(not_twice(l, &l->seen_key[i], "key", name, strlen(name)));
    l->seen_as[i] = alias;
    return PL_OK;
}

static pl_status read_key(loader *l, const pl_config_key *key, const pl_config_alias *alias)
{
    PL_TRY(not_again(l, key, alias));
    return read_value(l, key, alias);
}

static pl_status no_key(loader *l, const pl_config_alias *alias, const char *word)
{
    return FAIL_HERE(l, "%s: \"%s\" is no key here: %s", at(l, l->event.start_mark), word, alias->help);
}

static bool is_value(const loader *l, const char *word)
{
    return l->event.type == YAML_SCALAR_EVENT && strcasecmp((const char *)l->event.data.scalar.value, word) == 0;
}

/* "bf16: true" gives a key's value; "device: cpu" says what holds anyway. */
static pl_status read_meaning(loader *l, const pl_config_alias *alias)
{
    PL_TRY(next(l));
    if (!alias->key) return is_value(l, alias->means) ? PL_OK : no_key(l, alias, alias->path);
    if (is_value(l, "false")) return PL_OK;
    if (!is_value(l, "true"))
        return FAIL_HERE(l, "%s: %s must be true or false", at(l, l->event.start_mark), alias->path);
    PL_TRY(not_again(l, alias->key, alias));
    const pl_config_origin from = origin_here(l, alias);
    const pl_config_scalar s = {alias->means, strlen(alias->means), PL_CONFIG_PLAIN};
    return pl_config_assign(l->cfg, alias->key, s, &from, at(l, l->event.start_mark), l->err);
}

/* A key, or a section in this one, at the current event. */
static pl_status read_entry(loader *l, const place *p)
{
    place inner;
    const char *word = word_here(l);
    if (!word && p->depth == 0)
        return FAIL_HERE(l, "%s: the name of a section must be a word", at(l, l->event.start_mark));
    if (!word)
        return FAIL_HERE(l, "%s: a key of %.*s must be a word", at(l, l->event.start_mark), (int)p->bytes, p->name);
    const pl_config_key *key = p->section ? pl_config_find_in(p->section, word) : NULL;
    if (key) return read_key(l, key, NULL);
    const pl_config_alias *alias = pl_config_find_alias_in(p->section, word);
    if (alias && alias->means) return read_meaning(l, alias);
    if (alias && alias->key) return read_key(l, alias->key, alias);
    const bool is_section = find_inner(p, word, &inner);
    if (alias && !is_section) return no_key(l, alias, word);
    if (!is_section) return p->depth ? unknown_key(l, p, word) : unknown_section(l, word);
    PL_TRY(not_twice(l, &l->seen_section[inner.first][inner.depth - 1], "section", inner.name, inner.bytes));
    return read_section(l, &inner);
}

static pl_status read_entries(loader *l, const place *p)
{
    for (;;) {
        PL_TRY(next(l));
        if (l->event.type == YAML_MAPPING_END_EVENT) return PL_OK;
        PL_TRY(read_entry(l, p));
    }
}

/* Goes as deep as names in the table do. */
static pl_status read_section(loader *l, const place *p)
{
    PL_TRY(next(l));
    if (is_null_event(&l->event)) return PL_OK; /* "train:" with nothing under it */
    if (l->event.type == YAML_MAPPING_START_EVENT) return read_entries(l, p);
    const pl_config_alias *alias = p->depth == 1 ? pl_config_find_alias_at(p->name) : NULL; /* "dataset: NAME" */
    if (alias) return no_key(l, alias, alias->path);
    return FAIL_HERE(
        l,
        "%s: %.*s is a section: its keys stand under it, indented, one \"key: value\" a line, a space after the colon",
        at(l, l->event.start_mark), (int)p->bytes, p->name);
}

static pl_status read_document(loader *l)
{
    PL_TRY(next(l));
    if (l->event.type == YAML_MAPPING_START_EVENT) {
        PL_TRY(read_entries(l, &(place){.section = pl_config_find_section("", 0)}));
    } else if (!is_null_event(&l->event)) {
        return FAIL_HERE(l, "%s: a config begins with a section, such as \"train:\", and keys indented under it",
                         at(l, l->event.start_mark));
    }
    return next(l); /* the end of the document */
}

static pl_status read_stream(loader *l)
{
    PL_TRY(next(l)); /* the start of the stream */
    PL_TRY(next(l));
    if (l->event.type == YAML_STREAM_END_EVENT) return PL_OK; /* an empty file: all defaults */
    PL_TRY(read_document(l));
    PL_TRY(next(l));
    if (l->event.type == YAML_STREAM_END_EVENT) return PL_OK;
    return FAIL_HERE(l, "%s: a second document begins; a config is one document", at(l, l->event.start_mark));
}

static pl_status parse(loader *l)
{
    if (!yaml_parser_initialize(&l->parser)) return no_memory(l);
    yaml_parser_set_encoding(&l->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&l->parser, (const unsigned char *)l->text, l->bytes);
    pl_status status = read_stream(l);
    if (l->has_event) yaml_event_delete(&l->event);
    yaml_parser_delete(&l->parser);
    return status;
}

/* ---- before the parser ---- */

static pl_status bad_byte(const char *name, const char *text, size_t bad, pl_error *err)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < bad; i++) {
        if (text[i] == '\n')
            line++, column = 1;
        else if (((unsigned char)text[i] & 0xc0) != 0x80)
            column++;
    }
    unsigned char c = (unsigned char)text[bad];
    if (c < 0x80)
        return pl_fail(err, PL_E_CONFIG, "%s:%zu:%zu: the control character 0x%02x at byte %zu; take it out", name,
                       line, column, c, bad);
    return pl_fail(err, PL_E_CONFIG, "%s:%zu:%zu: byte %zu (0x%02x) is not printable UTF-8; save the file as UTF-8",
                   name, line, column, bad, c);
}

static pl_status check_input(const pl_config *cfg, const char *name, const char *text, size_t bytes, pl_error *err)
{
    size_t bad;
    if (cfg->file[0])
        return pl_fail(err, PL_E_USAGE, "%s: a config file was read already (%s); one command takes one", name,
                       cfg->file);
    if (strlen(name) == 0 || strlen(name) >= PL_CONFIG_TEXT_BYTES)
        return pl_fail(err, PL_E_USAGE, "the name of a config file has 1 to %d bytes", PL_CONFIG_TEXT_BYTES - 1);
    if (bytes > PL_CONFIG_FILE_MAX_BYTES)
        return pl_fail(err, PL_E_CONFIG, "%s: has %zu bytes; a config has at most %d: is this the right file?", name,
                       bytes, PL_CONFIG_FILE_MAX_BYTES);
    return pl_config_is_text(text, bytes, &bad) ? PL_OK : bad_byte(name, text, bad, err);
}

/* libyaml (0.2) has buffers of 16 and 48 KiB for raw and decoded text, its initial queues, and buffers that double for
 * what is being read (tests/unit/config/test_parser.c measures it). */
uint64_t pl_config_parser_bytes(size_t text_bytes) { return (72 << 10) + 4 * (uint64_t)text_bytes; }

pl_status pl_config_load_text(pl_config *cfg, const char *name, const char *text, size_t bytes, pl_error *err)
{
    PL_TRY(pl_config_check_sealed(name, text, bytes, err));
    PL_TRY(check_input(cfg, name, text, bytes, err));
    pl_config *fresh = pl_alloc(1, sizeof *fresh);
    if (!fresh) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name);
    *fresh = *cfg;
    const size_t mark = pl_utf8_mark(text, bytes); /* libyaml would take what follows for a second document */
    loader l = {.name = name, .text = text + mark, .bytes = bytes - mark, .cfg = fresh, .err = err};
    const bool counted = pl_alloc_count_taken(pl_config_parser_bytes(bytes));
    pl_status status = parse(&l);
    pl_alloc_count_given(pl_config_parser_bytes(bytes), counted);
    if (status == PL_OK) status = pl_config_settle(fresh, err);
    if (status == PL_OK) {
        memcpy(fresh->file, name, strlen(name));
        *cfg = *fresh;
    }
    pl_free(fresh);
    return status;
}

bool pl_config_is_pretrained(const char *path)
{
    char name[PL_FILE_PATH_MAX], head[4];
    pl_error ignored = {0};
    uint64_t bytes;
    int fd;
    if (pl_path_join(name, sizeof name, path, "config.json", &ignored) == PL_OK && access(name, F_OK) == 0) return true;
    if (pl_file_open(path, &fd, &bytes, &ignored) != PL_OK) return false;
    const bool is_gguf = bytes >= sizeof head && pread(fd, head, sizeof head, 0) == sizeof head &&
                         memcmp(head, "GGUF", sizeof head) == 0;
    close(fd);
    return is_gguf;
}

static pl_status load_pretrained(pl_config *cfg, const char *path, pl_error *err)
{
    pl_str text = {0};
    pl_str_printf(&text, "model:\n  arch: decoder\n  source: \"");
    pl_json_escape(&text, path, strlen(path));
    pl_str_printf(&text, "\"\n");
    pl_status status = text.failed ? pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", path)
                                   : pl_config_load_text(cfg, path, text.data, text.bytes, err);
    pl_str_deinit(&text);
    return status;
}

/* Files of a pretrained model that do not stand for it. */
static pl_status check_model_file(const char *path, pl_error *err)
{
    const bool is_there = access(path, F_OK) == 0;
    if (is_there && pl_ends_in_any_case(path, ".gguf"))
        return pl_fail(err, PL_E_DATA, "%s: is no GGUF file, which begins with the letters GGUF; fetch it again", path);
    if (is_there && (pl_ends_with(path, ".safetensors") || pl_ends_with(path, "/config.json")))
        return pl_fail(err, PL_E_USAGE, "%s: is one file of a pretrained model; give its folder", path);
    return PL_OK;
}

pl_status pl_config_load_file(pl_config *cfg, const char *path, pl_error *err)
{
    char *text;
    size_t bytes;
    if (pl_config_is_pretrained(path)) return load_pretrained(cfg, path, err);
    PL_TRY(check_model_file(path, err));
    pl_status status = pl_file_read_all(path, PL_CONFIG_FILE_MAX_BYTES, &text, &bytes, err);
    if (status == PL_E_DATA) return pl_fail_prefix(err, PL_E_CONFIG, "config file");
    PL_TRY(status);
    status = pl_config_load_text(cfg, path, text, bytes, err);
    pl_free(text);
    return status;
}
