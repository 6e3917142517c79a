#include "store/record.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_read.h"

#define SCHEMA       "plimsoll.run/1"
#define HASH_ENDING  "_hash"
#define CHECKSUM_KEY "\n  \"checksum\": \""

enum { TAIL_BYTES = sizeof CHECKSUM_KEY - 1 + 16 + sizeof "\"\n}\n" - 1 };

/* ---- print ---- */

static void print_hash(pl_json *j, const char *key, uint64_t value)
{
    char text[PL_CHECKSUM_TEXT_BYTES];
    pl_json_kv_string(j, key, pl_checksum_print(value, text));
}

static void print_file(pl_json *j, const char *name, const pl_record_file *file)
{
    pl_json_key(j, name);
    pl_json_object(j);
    pl_json_kv_uint(j, "bytes", file->bytes);
    print_hash(j, "xxh64", file->checksum);
    pl_json_object_end(j);
}

static void print_best(pl_json *j, const pl_record *r)
{
    pl_json_key(j, "best");
    pl_json_object(j);
    pl_json_kv_string(j, "metric", r->best_metric);
    pl_json_kv_double(j, "value", r->has_best ? r->best_value : NAN);
    pl_json_kv_uint(j, "step", r->has_best ? r->best_step : 0);
    pl_json_object_end(j);
}

static void print_identity(pl_json *j, const pl_fact *f)
{
    char key[PL_FACT_NAME_BYTES + sizeof HASH_ENDING];
    snprintf(key, sizeof key, "%s" HASH_ENDING, f->name);
    print_hash(j, key, f->value);
}

/* All but the padding and the checksum. */
static void print_body(pl_str *out, const pl_record *r)
{
    pl_json j = pl_json_begin(out, false);
    pl_json_object(&j);
    pl_json_kv_string(&j, "schema", SCHEMA);
    pl_json_kv_uint(&j, "step", r->step);
    pl_json_kv_uint(&j, "epoch", r->epoch);
    pl_json_kv_uint(&j, "sample", r->sample);
    print_hash(&j, "model_hash", r->model_hash);
    print_hash(&j, "plan_hash", r->plan_hash);
    for (uint32_t i = 0; i < r->identity.count; i++) print_identity(&j, &r->identity.fact[i]);
    print_best(&j, r);
    pl_json_key(&j, "counters");
    pl_json_object(&j);
    for (size_t i = 0; i < r->counter_count; i++) pl_json_kv_double(&j, r->counters[i].key, r->counters[i].value);
    pl_json_object_end(&j);
    pl_json_key(&j, "files");
    pl_json_object(&j);
    print_file(&j, "model.safetensors", &r->model);
    print_file(&j, "state.safetensors", &r->state);
    pl_json_object_end(&j);
    pl_json_kv_string(&j, "config", r->config);
    pl_str_append(out, ",");
}

/* Printed once with the longest numbers there are: 20 digits, 24 characters of a double. */
uint64_t pl_record_bytes(const pl_record *record)
{
    enum { LONGEST_DOUBLE = 24 };
    pl_record r = *record;
    pl_str text = {0};
    r.step = r.epoch = r.sample = r.best_step = r.model.bytes = r.state.bytes = UINT64_MAX;
    r.has_best = true;
    r.best_value = -1.7976931348623157e308;
    r.counter_count = 0;
    print_body(&text, &r);
    for (size_t i = 0; i < record->counter_count; i++) {
        pl_json j = pl_json_begin(&text, true);
        pl_json_string(&j, record->counters[i].key);
        pl_str_pad(&text, ' ', LONGEST_DOUBLE + 2 + 1 + 8); /* ": " "," newline and indentation */
    }
    uint64_t bytes = text.failed ? 0 : text.bytes + TAIL_BYTES;
    pl_str_deinit(&text);
    return bytes;
}

pl_status pl_record_print(const pl_record *r, char *text, uint64_t bytes, pl_error *err)
{
    char checksum[PL_CHECKSUM_TEXT_BYTES];
    pl_str out = pl_str_fixed(text, (size_t)bytes + 1);
    print_body(&out, r);
    if (out.failed || out.bytes + TAIL_BYTES > bytes)
        return pl_fail(err, PL_E_INTERNAL, "run.json needs more than the %" PRIu64 " bytes planned for it", bytes);
    pl_str_pad(&out, ' ', (size_t)bytes - TAIL_BYTES - out.bytes);
    pl_checksum_print(pl_checksum_of(out.data, out.bytes), checksum);
    pl_str_printf(&out, CHECKSUM_KEY "%s\"\n}\n", checksum);
    return PL_OK;
}

/* ---- parse ---- */

/* A parsed record and what it points into. */
typedef struct owned_record {
    pl_record record; /* first: destroy gets its address */
    json_t *json;
    pl_record_counter *counters;
} owned_record;

static pl_status missing(const char *name, const char *key, const char *expected, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: \"%s\" is missing or not %s", name, key, expected);
}

static pl_status get_uint(const json_t *object, const char *name, const char *key, uint64_t *value, pl_error *err)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) return missing(name, key, "a whole number from 0", err);
    *value = (uint64_t)json_integer_value(v);
    return PL_OK;
}

static pl_status get_hash(const json_t *object, const char *name, const char *key, uint64_t *value, pl_error *err)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || pl_checksum_parse(text, value)) return missing(name, key, "16 hexadecimal digits", err);
    return PL_OK;
}

/* NAME_hash, but those that every record has. */
static pl_status get_identity(const json_t *root, const char *name, const char *key, pl_facts *identity, pl_error *err)
{
    char fact[PL_FACT_NAME_BYTES];
    uint64_t value;
    size_t bytes = strlen(key), ending = sizeof HASH_ENDING - 1;
    if (bytes <= ending || strcmp(key + bytes - ending, HASH_ENDING) != 0) return PL_OK;
    if (strcmp(key, "model" HASH_ENDING) == 0 || strcmp(key, "plan" HASH_ENDING) == 0) return PL_OK;
    PL_TRY(get_hash(root, name, key, &value, err));
    snprintf(fact, sizeof fact, "%.*s", (int)(bytes - ending < sizeof fact ? bytes - ending : 0), key);
    if (pl_facts_add(identity, fact, value)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: \"%.60s\" is one hash too many, or has no name; another version wrote it", name,
                   key);
}

static pl_status get_identities(const json_t *root, const char *name, pl_facts *identity, pl_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value) PL_TRY(get_identity(root, name, key, identity, err));
    return PL_OK;
}

static pl_status get_file(const json_t *root, const char *name, const char *key, pl_record_file *file, pl_error *err)
{
    const json_t *entry = json_object_get(json_object_get(root, "files"), key);
    if (!json_is_object(entry)) return missing(name, key, "an object with bytes and xxh64", err);
    PL_TRY(get_uint(entry, name, "bytes", &file->bytes, err));
    return get_hash(entry, name, "xxh64", &file->checksum, err);
}

static pl_status get_best(const json_t *root, const char *name, pl_record *r, pl_error *err)
{
    const json_t *best = json_object_get(root, "best"), *value = json_object_get(best, "value");
    if (!json_is_object(best)) return missing(name, "best", "an object", err);
    r->best_metric = json_string_value(json_object_get(best, "metric"));
    r->has_best = json_is_number(value);
    r->best_value = json_number_value(value);
    return get_uint(best, name, "step", &r->best_step, err);
}

static pl_status get_counters(owned_record *o, const char *name, pl_error *err)
{
    json_t *counters = json_object_get(o->json, "counters"), *value;
    const char *key;
    if (!json_is_object(counters)) return missing(name, "counters", "an object", err);
    o->counters = pl_alloc(json_object_size(counters), sizeof *o->counters);
    if (!o->counters) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name);
    o->record.counters = o->counters;
    json_object_foreach(counters, key, value)
    {
        if (!json_is_number(value) && !json_is_null(value)) return missing(name, key, "a number", err);
        o->counters[o->record.counter_count++] =
            (pl_record_counter){key, json_is_null(value) ? NAN : json_number_value(value)};
    }
    return PL_OK;
}

/* The last TAIL_BYTES bytes are the checksum of those before. */
static pl_status check_checksum(const char *text, size_t bytes, const char *name, pl_error *err)
{
    char digits[PL_CHECKSUM_TEXT_BYTES] = {0};
    size_t key_bytes = sizeof CHECKSUM_KEY - 1;
    uint64_t expected;
    const char *tail = bytes < TAIL_BYTES ? NULL : text + bytes - TAIL_BYTES;
    if (!tail || memcmp(tail, CHECKSUM_KEY, key_bytes) != 0)
        return pl_fail(err, PL_E_DATA, "%s: does not end with its checksum; it is truncated or was changed", name);
    memcpy(digits, tail + key_bytes, 16);
    if (pl_checksum_parse(digits, &expected) || expected != pl_checksum_of(text, bytes - TAIL_BYTES))
        return pl_fail(err, PL_E_DATA, "%s: its contents do not match its checksum; it is damaged or was changed",
                       name);
    return PL_OK;
}

static pl_status get_all(owned_record *o, const char *name, pl_error *err)
{
    pl_record *r = &o->record;
    const char *schema = json_string_value(json_object_get(o->json, "schema"));
    if (!schema || strcmp(schema, SCHEMA) != 0)
        return pl_fail(err, PL_E_DATA,
                       "%s: its schema is \"%.40s\", but \"" SCHEMA "\" was expected; another version wrote it", name,
                       schema ? schema : "");
    PL_TRY(get_uint(o->json, name, "step", &r->step, err));
    PL_TRY(get_uint(o->json, name, "epoch", &r->epoch, err));
    PL_TRY(get_uint(o->json, name, "sample", &r->sample, err));
    PL_TRY(get_hash(o->json, name, "model_hash", &r->model_hash, err));
    PL_TRY(get_hash(o->json, name, "plan_hash", &r->plan_hash, err));
    PL_TRY(get_identities(o->json, name, &r->identity, err));
    PL_TRY(get_best(o->json, name, r, err));
    PL_TRY(get_file(o->json, name, "model.safetensors", &r->model, err));
    PL_TRY(get_file(o->json, name, "state.safetensors", &r->state, err));
    r->config = json_string_value(json_object_get(o->json, "config"));
    if (!r->config) return missing(name, "config", "a text", err);
    return get_counters(o, name, err);
}

pl_status pl_record_parse(const char *text, size_t bytes, const char *name, pl_record **out, pl_error *err)
{
    json_error_t why;
    *out = NULL;
    PL_TRY(check_checksum(text, bytes, name, err));
    owned_record *o = pl_alloc(1, sizeof *o);
    if (!o) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name);
    pl_status status = pl_json_read(text, bytes, JSON_REJECT_DUPLICATES, &o->json, &why);
    if (status == PL_OK)
        status = get_all(o, name, err);
    else if (status == PL_E_NOMEM)
        (void)pl_fail(err, status, "%s: no memory to read it", name);
    else
        (void)pl_fail(err, status, "%s:%d:%d: is not valid JSON: %s", name, why.line, why.column, why.text);
    if (status != PL_OK) {
        pl_record_destroy(&o->record);
        return status;
    }
    *out = &o->record;
    return PL_OK;
}

pl_status pl_record_read(const char *path, pl_record **out, pl_error *err)
{
    char *text;
    size_t bytes;
    *out = NULL;
    PL_TRY(pl_file_read_all(path, PL_RECORD_BYTES_MAX, &text, &bytes, err));
    pl_status status = pl_record_parse(text, bytes, path, out, err);
    pl_free(text);
    return status;
}

void pl_record_destroy(pl_record *record)
{
    owned_record *o = (owned_record *)record;
    if (!o) return;
    json_decref(o->json);
    pl_free(o->counters);
    pl_free(o);
}

double pl_record_counter_value(const pl_record *r, const char *key, double otherwise)
{
    for (size_t i = 0; i < r->counter_count; i++)
        if (strcmp(r->counters[i].key, key) == 0) return r->counters[i].value;
    return otherwise;
}
