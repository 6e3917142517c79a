#include "base/machine_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_read.h"

#define SCHEMA "plimsoll.machine/1"

typedef enum kind {
    WORDS,  /* text of at most `room` bytes with its end */
    YES_NO, /* bool */
    LEVEL,  /* pl_isa */
    FLAGS,  /* names of pl_isa_extra, in a list */
    COUNT,  /* int, from 1 on */
    SIZE,   /* uint64_t */
    LIMIT,  /* the same; null: PL_MACHINE_UNLIMITED */
    QUOTA,  /* double; null: infinity */
    RATE,   /* double; null: 0 */
} kind;

typedef struct field {
    const char *key;
    kind kind;
    size_t offset, room;
} field;

#define FIELD(key, kind, member)                                                                                       \
    {                                                                                                                  \
        key, kind, offsetof(pl_machine_file, member), sizeof((pl_machine_file *)0)->member                             \
    }
#define MACHINE(key, kind, member) FIELD(key, kind, machine.member)
static const field fields[] = {MACHINE("processor", WORDS, cpu_name),
                               MACHINE("virtual", YES_NO, is_virtual),
                               MACHINE("isa", LEVEL, isa),
                               FIELD("isa_fastest", LEVEL, fastest),
                               FIELD("isa_extras", FLAGS, extras),
                               MACHINE("clock_hertz", RATE, hertz),
                               MACHINE("cache_bytes", SIZE, cache_bytes),
                               MACHINE("cores_online", COUNT, cores_online),
                               MACHINE("cores_allowed", COUNT, cores_allowed),
                               MACHINE("cores_quota", QUOTA, cores_quota),
                               MACHINE("memory_bytes", SIZE, ram_bytes),
                               MACHINE("memory_available_bytes", SIZE, available_bytes),
                               MACHINE("swap_bytes", SIZE, swap_bytes),
                               MACHINE("swap_free_bytes", SIZE, swap_free_bytes),
                               MACHINE("cgroup", WORDS, cgroup_path),
                               MACHINE("cgroup_limit_bytes", LIMIT, cgroup_limit_bytes),
                               MACHINE("cgroup_room_bytes", LIMIT, cgroup_room_bytes),
                               MACHINE("address_space_limit_bytes", LIMIT, address_space_limit_bytes),
                               MACHINE("data_limit_bytes", LIMIT, data_limit_bytes),
                               MACHINE("stack_limit_bytes", LIMIT, stack_limit_bytes),
                               MACHINE("kernel", WORDS, kernel),
                               MACHINE("transparent_huge_pages", WORDS, transparent_huge_pages),
                               FIELD("f32_operations_per_second", RATE, f32_operations),
                               FIELD("bf16_operations_per_second", RATE, bf16_operations),
                               FIELD("memory_bytes_per_second", RATE, memory_bytes)};
enum { FIELDS = sizeof fields / sizeof *fields };

static const struct {
    pl_isa_extra flag;
    const char *name;
} extras[] = {{PL_ISA_VNNI, "vnni"}, {PL_ISA_VPOPCNTDQ, "vpopcntdq"}, {PL_ISA_AMX_INT8, "amx_int8"}};
enum { EXTRAS = sizeof extras / sizeof *extras };

/* ---- of this machine ---- */

pl_status pl_machine_file_fill(pl_machine_file *f, pl_error *err)
{
    *f = (pl_machine_file){.fastest = pl_isa_fastest()};
    f->extras = (uint64_t)pl_isa_extras(f->fastest);
    return pl_machine_read("", &f->machine, err);
}

/* ---- print ---- */

static void print_flags(uint64_t flags, pl_json *j)
{
    pl_json_array(j);
    for (size_t i = 0; i < EXTRAS; i++)
        if (flags & (uint64_t)extras[i].flag) pl_json_string(j, extras[i].name);
    pl_json_array_end(j);
}

static void print_number(kind k, double x, pl_json *j)
{
    if (k == RATE ? x > 0 : isfinite(x))
        pl_json_double(j, x);
    else
        pl_json_null(j);
}

static void print_size(kind k, uint64_t x, pl_json *j)
{
    if (k == LIMIT && x == PL_MACHINE_UNLIMITED)
        pl_json_null(j);
    else
        pl_json_uint(j, x);
}

static void print_field(const field *f, const void *at, pl_json *j)
{
    pl_json_key(j, f->key);
    switch (f->kind) {
    case WORDS:
        return pl_json_string(j, at);
    case YES_NO:
        return pl_json_bool(j, *(const bool *)at);
    case LEVEL:
        return pl_json_string(j, pl_isa_name(*(const pl_isa *)at));
    case FLAGS:
        return print_flags(*(const uint64_t *)at, j);
    case COUNT:
        return pl_json_int(j, *(const int *)at);
    case SIZE:
    case LIMIT:
        return print_size(f->kind, *(const uint64_t *)at, j);
    default:
        return print_number(f->kind, *(const double *)at, j);
    }
}

void pl_machine_file_print(const pl_machine_file *m, pl_str *out)
{
    pl_json j = pl_json_document(out, false, SCHEMA);
    for (size_t i = 0; i < FIELDS; i++) print_field(&fields[i], (const char *)m + fields[i].offset, &j);
    pl_json_document_end(&j);
}

/* ---- parse ---- */

static bool take_words(const json_t *v, size_t room, char *to)
{
    if (!json_is_string(v) || json_string_length(v) >= room || strlen(json_string_value(v)) != json_string_length(v))
        return false;
    return memcpy(to, json_string_value(v), json_string_length(v) + 1), true;
}

static bool take_flags(const json_t *v, uint64_t *to)
{
    size_t k;
    const json_t *name;
    *to = 0;
    json_array_foreach(v, k, name)
    {
        size_t i = 0;
        while (i < EXTRAS && !(json_is_string(name) && strcmp(json_string_value(name), extras[i].name) == 0)) i++;
        if (i == EXTRAS) return false;
        *to |= (uint64_t)extras[i].flag;
    }
    return json_is_array(v);
}

static bool take_count(const json_t *v, int *to)
{
    enum { CORES_MAX = 1 << 16 };
    const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;
    *to = (int)(n < CORES_MAX ? n : CORES_MAX);
    return n >= 1 && n <= CORES_MAX;
}

static bool take_size(const json_t *v, kind k, uint64_t *to)
{
    *to = k == LIMIT && json_is_null(v) ? PL_MACHINE_UNLIMITED : (uint64_t)json_integer_value(v);
    return (k == LIMIT && json_is_null(v)) || (json_is_integer(v) && json_integer_value(v) >= 0);
}

static bool take_number(const json_t *v, kind k, double *to)
{
    *to = json_is_null(v) ? k == RATE ? 0 : INFINITY : json_number_value(v);
    return json_is_null(v) || (json_is_number(v) && *to > 0 && isfinite(*to));
}

static bool take_field(const json_t *v, const field *f, void *to)
{
    switch (f->kind) {
    case WORDS:
        return take_words(v, f->room, to);
    case YES_NO:
        return *(bool *)to = json_is_true(v), json_is_boolean(v);
    case LEVEL:
        return json_is_string(v) && pl_isa_parse(json_string_value(v), to) == 0;
    case FLAGS:
        return take_flags(v, to);
    case COUNT:
        return take_count(v, to);
    case SIZE:
    case LIMIT:
        return take_size(v, f->kind, to);
    default:
        return take_number(v, f->kind, to);
    }
}

static const char *what_of(kind k)
{
    static const char *const what[] = {[WORDS] = "a short text",
                                       [YES_NO] = "true or false",
                                       [LEVEL] = "one of ref, baseline, avx2, avx512, avx512_bf16 and amx",
                                       [FLAGS] = "a list of vnni, vpopcntdq and amx_int8",
                                       [COUNT] = "a number from 1 to 65536",
                                       [SIZE] = "a number of bytes",
                                       [LIMIT] = "a number of bytes, or null",
                                       [QUOTA] = "a number above 0, or null",
                                       [RATE] = "a number above 0, or null"};
    return what[k];
}

static const field *find_field(const char *key)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].key, key) == 0) return &fields[i];
    return NULL;
}

static pl_status check_keys(const char *name, const json_t *root, pl_error *err)
{
    const char *key, *schema = json_string_value(json_object_get(root, "schema"));
    json_t *value;
    if (!schema || strcmp(schema, SCHEMA) != 0)
        return pl_fail(err, PL_E_DATA,
                       "%s: its schema is %.60s, but " SCHEMA " was expected; write it with plimsoll machine of this "
                       "version",
                       name, schema ? schema : "missing");
    json_object_foreach((json_t *)root, key, value)
    {
        if (strcmp(key, "schema") != 0 && !find_field(key))
            return pl_fail(err, PL_E_DATA, "%s: the key %.60s is not known; write it with plimsoll machine", name, key);
    }
    return PL_OK;
}

static pl_status take_all(const char *name, const json_t *root, pl_machine_file *m, pl_error *err)
{
    PL_TRY(check_keys(name, root, err));
    for (const field *f = fields; f < fields + FIELDS; f++) {
        const json_t *v = json_object_get(root, f->key);
        if (!v)
            return pl_fail(err, PL_E_DATA, "%s: the key %s is missing; write it with plimsoll machine", name, f->key);
        if (!take_field(v, f, (char *)m + f->offset))
            return pl_fail(err, PL_E_DATA, "%s: %s is not %s", name, f->key, what_of(f->kind));
    }
    if (m->fastest > m->machine.isa)
        return pl_fail(err, PL_E_DATA, "%s: isa_fastest is %s, which a processor of isa %s does not have", name,
                       pl_isa_name(m->fastest), pl_isa_name(m->machine.isa));
    pl_machine_find_cores(&m->machine);
    return PL_OK;
}

pl_status pl_machine_file_parse(const char *name, const char *text, size_t bytes, pl_machine_file *m, pl_error *err)
{
    json_error_t why;
    json_t *root;
    *m = (pl_machine_file){0};
    pl_status status = pl_json_read(text, bytes, JSON_REJECT_DUPLICATES, &root, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory to read %s", name);
    if (status != PL_OK)
        return pl_fail(err, PL_E_DATA, "%s:%d:%d: is not valid JSON: %s", name, why.line, why.column, why.text);
    status = json_is_object(root) ? take_all(name, root, m, err)
                                  : pl_fail(err, PL_E_DATA, "%s: is not an object in JSON", name);
    json_decref(root);
    return status;
}

/* ---- plans for it ---- */

static pl_machine_file described;
static bool is_described;

void pl_machine_describe(const pl_machine_file *m)
{
    described = *m;
    is_described = true;
    pl_isa_describe(m->machine.isa, m->fastest, (int)m->extras);
}

const pl_machine_file *pl_machine_described(void) { return is_described ? &described : NULL; }

const char *pl_machine_words(void) { return is_described ? "that machine" : "this machine"; }

pl_status pl_machine_planned(pl_machine *m, pl_error *err)
{
    if (!is_described) return pl_machine_read("", m, err);
    *m = described.machine;
    return PL_OK;
}
