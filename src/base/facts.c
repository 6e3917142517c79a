#include "base/facts.h"

#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

bool pl_facts_add(pl_facts *facts, const char *name, uint64_t value)
{
    size_t bytes = strlen(name);
    if (facts->count == PL_FACTS_MAX || bytes == 0 || bytes >= PL_FACT_NAME_BYTES || strspn(name, letters) != bytes)
        return false;
    for (uint32_t i = 0; i < facts->count; i++)
        if (strcmp(facts->fact[i].name, name) == 0) return false;
    pl_fact *f = &facts->fact[facts->count++];
    memcpy(f->name, name, bytes + 1);
    f->value = value;
    return true;
}

uint64_t pl_facts_value(const pl_facts *facts, const char *name, uint64_t otherwise)
{
    for (uint32_t i = 0; i < facts->count; i++)
        if (strcmp(facts->fact[i].name, name) == 0) return facts->fact[i].value;
    return otherwise;
}

bool pl_facts_differ(const pl_facts *then, const pl_facts *now, const char *name)
{
    const uint64_t was = pl_facts_value(then, name, 0);
    return was && was != pl_facts_value(now, name, 0);
}

bool pl_facts_equal(const pl_facts *a, const pl_facts *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->fact[i].name, b->fact[i].name) != 0 || a->fact[i].value != b->fact[i].value) return false;
    return true;
}
