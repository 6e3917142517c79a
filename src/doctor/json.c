/* Schema "plimsoll.doctor/1", docs/doctor.md. */
#include <stdio.h>

#include "doctor/doctor.h"

static void put_sizes(pl_json *j, const uint64_t *bytes)
{
    for (int k = 0; k < PL_SMAPS_FIELDS; k++) pl_json_kv_uint(j, pl_smaps_field_name((pl_smaps_field)k), bytes[k]);
}

static void put_limit(pl_json *j, const char *key, uint64_t bytes)
{
    pl_json_kv_uint_if(j, bytes < PL_CGROUP_UNKNOWN, key, bytes);
}

static void put_row(pl_json *j, const pl_doctor_row *row)
{
    pl_json_kv_uint(j, "mappings", row->maps);
    pl_json_kv_uint(j, "reserved_bytes", row->reserved_bytes);
    put_sizes(j, row->bytes);
}

static void put_rows(pl_json *j, const pl_doctor_view *v)
{
    pl_json_key(j, "rows");
    pl_json_array(j);
    for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++) {
        if (v->row[k].maps == 0) continue;
        pl_json_object(j);
        pl_json_kv_string(j, "kind", pl_doctor_kind_word((pl_doctor_kind)k));
        put_row(j, &v->row[k]);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_key(j, "sum");
    if (v->process->permitted) {
        pl_json_object(j);
        put_row(j, &v->total);
        pl_json_object_end(j);
    } else {
        pl_json_null(j);
    }
    pl_json_key(j, "rollup");
    if (v->process->rollup_known) {
        pl_json_object(j);
        put_sizes(j, v->process->rollup);
        pl_json_object_end(j);
    } else {
        pl_json_null(j);
    }
    pl_json_key(j, "unexplained_bytes");
    if (v->process->permitted && v->process->rollup_known)
        pl_json_int(j, v->unexplained_bytes);
    else
        pl_json_null(j);
}

static void put_stacks(pl_json *j, const pl_doctor_view *v)
{
    pl_json_key(j, "stacks");
    pl_json_array(j);
    for (size_t i = 0; i < v->stack_count; i++) {
        const pl_doctor_stack *s = &v->stack[i];
        pl_json_object(j);
        pl_json_key(j, "thread");
        if (s->thread)
            pl_json_int(j, s->thread);
        else
            pl_json_null(j);
        pl_json_kv_string(j, "name", s->name);
        pl_json_kv_string(j, "found", s->main ? "main" : s->thread ? "stack_pointer" : "guess");
        pl_json_kv_uint(j, "begin", s->begin);
        pl_json_kv_uint(j, "reserved_bytes", s->reserved_bytes);
        pl_json_kv_uint(j, "touched_bytes", s->touched_bytes);
        pl_json_kv_uint(j, "swap_bytes", s->swap_bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_kv_uint(j, "threads_without_stack_pointer", v->threads_unknown);
    pl_json_kv_uint(j, "threads_on_other_memory", v->threads_elsewhere);
}

static void put_groups(pl_json *j, const pl_doctor_view *v)
{
    pl_json_key(j, "names");
    pl_json_array(j);
    for (size_t i = 0; i < v->group_count; i++) {
        pl_json_object(j);
        pl_json_kv_string(j, "name", v->group[i].name);
        pl_json_kv_string(j, "kind", pl_doctor_kind_word(v->group[i].kind));
        put_row(j, &v->group[i].sum);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_key(j, "malloc_arenas");
    pl_json_array(j);
    for (size_t i = 0; i < v->arena_count; i++) {
        pl_json_object(j);
        pl_json_kv_uint(j, "begin", v->arena[i].begin);
        pl_json_kv_uint(j, "reserved_bytes", v->arena[i].reserved_bytes);
        pl_json_kv_uint(j, "resident_bytes", v->arena[i].resident_bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void put_causes(pl_json *j, const pl_doctor_view *v, pl_str *notes)
{
    pl_doctor_cause causes[PL_DOCTOR_CAUSES_MAX];
    size_t count = pl_doctor_find_causes(v, causes);
    uint64_t whole = pl_doctor_charged_bytes(v);
    pl_json_key(j, "causes");
    pl_json_array(j);
    for (size_t i = 0; i < count; i++) {
        pl_json_object(j);
        pl_json_kv_uint(j, "bytes", causes[i].bytes);
        pl_json_kv_uint(j, "resident_bytes", causes[i].resident_bytes);
        pl_json_kv_double(j, "share", whole ? (double)causes[i].bytes / (double)whole : 0);
        pl_json_kv_string(j, "title", causes[i].title);
        pl_json_kv_string(j, "text", causes[i].text);
        pl_json_kv_string(j, "remedy", causes[i].remedy[0] ? causes[i].remedy : NULL);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_doctor_notes(v, notes);
    pl_json_kv_string(j, "notes", pl_str_text(notes));
}

static void put_status(pl_json *j, const pl_doctor_process *p)
{
    const pl_doctor_status *s = &p->status;
    pl_json_key(j, "status");
    pl_json_object(j);
    pl_json_kv_uint(j, "resident_bytes", s->resident_bytes);
    pl_json_kv_uint(j, "anonymous_bytes", s->anonymous_bytes);
    pl_json_kv_uint(j, "file_bytes", s->file_bytes);
    pl_json_kv_uint(j, "shared_memory_bytes", s->shared_memory_bytes);
    pl_json_kv_uint(j, "peak_bytes", s->peak_bytes);
    pl_json_kv_uint(j, "virtual_bytes", s->virtual_bytes);
    pl_json_kv_uint(j, "virtual_peak_bytes", s->virtual_peak_bytes);
    pl_json_kv_uint(j, "page_table_bytes", s->page_table_bytes);
    pl_json_kv_uint(j, "swap_bytes", s->swap_bytes);
    pl_json_kv_uint(j, "locked_bytes", s->locked_bytes);
    pl_json_kv_uint(j, "hugetlb_bytes", s->hugetlb_bytes);
    pl_json_kv_uint(j, "threads", s->threads);
    pl_json_kv_uint(j, "kernel_stack_bytes", s->threads * PL_DOCTOR_KERNEL_STACK_BYTES);
    pl_json_object_end(j);
}

static void put_cgroup(pl_json *j, const pl_cgroup_account *c)
{
    pl_json_key(j, "cgroup");
    pl_json_object(j);
    pl_json_kv_int(j, "version", c->version);
    pl_json_key(j, "levels");
    pl_json_array(j);
    for (size_t i = 0; i < c->level_count; i++) {
        const pl_cgroup_level *l = &c->level[i];
        pl_json_object(j);
        pl_json_kv_string(j, "path", l->path);
        pl_json_kv_bool(j, "holds", i == c->binding);
        put_limit(j, "limit_bytes", l->limit_bytes);
        put_limit(j, "high_bytes", l->high_bytes);
        put_limit(j, "swap_limit_bytes", l->swap_limit_bytes);
        put_limit(j, "charged_bytes", l->usage_bytes);
        put_limit(j, "peak_bytes", l->peak_bytes);
        put_limit(j, "swap_bytes", l->swap_bytes);
        put_limit(j, "oom_kills", l->oom_kills);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_json_key(j, "charged");
    pl_json_object(j);
    for (size_t i = 0; i < c->charge_count; i++) pl_json_kv_uint(j, c->charge[i].name, c->charge[i].bytes);
    pl_json_object_end(j);
    pl_json_object_end(j);
}

static void put_surroundings(pl_json *j, const pl_doctor_process *p)
{
    pl_json_key(j, "limits");
    pl_json_object(j);
    for (int i = 0; i < PL_DOCTOR_LIMITS; i++) put_limit(j, pl_doctor_limit_name((pl_doctor_limit)i), p->limit[i]);
    pl_json_object_end(j);
    put_cgroup(j, &p->cgroup);
    pl_json_key(j, "machine");
    pl_json_object(j);
    pl_json_kv_uint(j, "memory_bytes", p->machine.ram_bytes);
    pl_json_kv_uint(j, "available_bytes", p->machine.available_bytes);
    pl_json_kv_uint(j, "swap_bytes", p->machine.swap_bytes);
    pl_json_kv_int(j, "overcommit", p->overcommit);
    pl_json_kv_uint(j, "commit_limit_bytes", p->commit_limit_bytes);
    pl_json_kv_uint(j, "committed_bytes", p->committed_bytes);
    pl_json_kv_string(j, "transparent_huge_pages", p->machine.transparent_huge_pages);
    pl_json_object_end(j);
}

static void put_members(pl_json *j, const pl_doctor_moment *m)
{
    pl_json_key(j, "processes");
    pl_json_array(j);
    for (size_t i = 0; i < m->member_count; i++) {
        pl_json_object(j);
        pl_json_kv_int(j, "id", m->member[i].id);
        pl_json_kv_int(j, "parent", m->member[i].parent);
        pl_json_kv_string(j, "name", m->member[i].name);
        pl_json_kv_uint(j, "resident_bytes", m->member[i].resident_bytes);
        pl_json_kv_uint(j, "proportional_bytes", m->member[i].proportional_bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void put_process(pl_json *j, const pl_doctor_process *p)
{
    pl_json_kv_int(j, "id", p->id);
    pl_json_kv_int(j, "parent", p->parent);
    pl_json_kv_uint(j, "user", p->user);
    pl_json_kv_string(j, "name", p->name);
    pl_json_kv_string(j, "command", p->command);
    pl_json_kv_string(j, "executable", p->executable[0] ? p->executable : NULL);
    pl_json_kv_string(j, "plimsoll_run", p->run_folder);
    pl_json_kv_bool(j, "permitted", p->permitted);
    pl_json_kv_double(j, "reading_seconds", p->cost_seconds);
}

static pl_status put_moment(pl_json *j, const char *key, const pl_doctor_moment *m, pl_error *err)
{
    pl_doctor_view v;
    pl_str notes = {0};
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    pl_json_key(j, key);
    pl_json_object(j);
    pl_json_kv_double(j, "seconds", m->seconds);
    pl_json_kv_uint(j, "bytes", m->bytes);
    put_process(j, &m->process);
    put_status(j, &m->process);
    put_rows(j, &v);
    put_stacks(j, &v);
    put_groups(j, &v);
    put_causes(j, &v, &notes);
    put_members(j, m);
    put_surroundings(j, &m->process);
    pl_json_object_end(j);
    if (notes.failed) j->out->failed = 1;
    pl_str_deinit(&notes);
    pl_doctor_view_deinit(&v);
    return PL_OK;
}

static void put_samples(pl_json *j, const pl_doctor *d)
{
    pl_json_key(j, "samples");
    pl_json_array(j);
    for (size_t i = 0; i < d->sample_count; i++) {
        pl_json_object(j);
        pl_json_kv_double(j, "seconds", d->sample[i].seconds);
        pl_json_kv_uint(j, "bytes", d->sample[i].bytes);
        pl_json_kv_uint(j, "processes", d->sample[i].processes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

pl_status pl_doctor_write_json(const pl_doctor *d, pl_str *out, pl_error *err)
{
    pl_json json = pl_json_document(out, false, "plimsoll.doctor/1"), *j = &json;
    pl_json_kv_bool(j, "tree", d->tree);
    pl_json_kv_uint(j, "looks", d->looks);
    pl_json_kv_uint(j, "peak_bytes", d->most_bytes);
    pl_json_kv_double(j, "peak_seconds", d->most_seconds);
    put_limit(j, "kernel_peak_bytes", d->command_peak_bytes ? d->command_peak_bytes : PL_CGROUP_UNKNOWN);
    PL_TRY(put_moment(j, "peak", d->peak.known ? &d->peak : &d->last, err));
    PL_TRY(put_moment(j, "last", &d->last, err));
    put_samples(j, d);
    pl_json_document_end(j);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the report") : PL_OK;
}
