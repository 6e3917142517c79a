/* Every mapping gets exactly one kind, so the rows add up by construction. */
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

/* A library's zeroed data (.bss) follows its file's last mapping as anonymous memory. Where the file's headers cannot
 * be read, a larger neighbour is taken for a stranger. */
#define BSS_BYTES_MAX ((uintptr_t)256 << 10)

#define X(constant, json, text, what) json,
const char *pl_doctor_kind_word(pl_doctor_kind kind)
{
    static const char *const words[PL_DOCTOR_KIND_COUNT] = {PL_DOCTOR_KINDS(X)};
    return (unsigned)kind < PL_DOCTOR_KIND_COUNT ? words[kind] : "?";
}
#undef X
#define X(constant, json, text, what) text,
const char *pl_doctor_kind_title(pl_doctor_kind kind)
{
    static const char *const titles[PL_DOCTOR_KIND_COUNT] = {PL_DOCTOR_KINDS(X)};
    return (unsigned)kind < PL_DOCTOR_KIND_COUNT ? titles[kind] : "?";
}
#undef X
#define X(constant, json, text, what) what,
const char *pl_doctor_kind_what(pl_doctor_kind kind)
{
    static const char *const texts[PL_DOCTOR_KIND_COUNT] = {PL_DOCTOR_KINDS(X)};
    return (unsigned)kind < PL_DOCTOR_KIND_COUNT ? texts[kind] : "?";
}
#undef X

/* ---- one mapping ---- */

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (begins(name, *list)) return true;
    return false;
}

/* "libm.so.6", "x.so": a library's file even where none of its code is mapped. */
static bool has_library_name(const char *name)
{
    const char *dot = strstr(name, ".so");
    return dot && (dot[3] == 0 || dot[3] == '.' || dot[3] == ' ');
}

static bool same_file(const char *name, const char *file)
{
    size_t bytes = strlen(file);
    return bytes && strncmp(name, file, bytes) == 0 && (name[bytes] == 0 || strcmp(name + bytes, " (deleted)") == 0);
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

typedef struct code_files {
    const char **name; /* sorted: files of which code is mapped */
    size_t count;
} code_files;

static pl_status list_code_files(const pl_doctor_process *p, code_files *c, pl_error *err)
{
    *c = (code_files){.name = pl_alloc(p->map_count + 1, sizeof *c->name)};
    if (!c->name) return pl_fail(err, PL_E_NOMEM, "no memory to sort %zu mappings", p->map_count);
    for (size_t i = 0; i < p->map_count; i++) {
        const pl_doctor_map *m = &p->map[i];
        bool again = c->count && strcmp(c->name[c->count - 1], m->name) == 0;
        if (m->protection[2] == 'x' && m->name[0] == '/' && !again) c->name[c->count++] = m->name;
    }
    if (c->count) qsort(c->name, c->count, sizeof *c->name, by_text);
    return PL_OK;
}

/* Most of it is pages that the process has written, and so copied: no longer the file's. */
static bool is_copied(const pl_doctor_map *m)
{
    return m->protection[3] == 'p' && m->bytes[PL_SMAPS_ANONYMOUS] > m->bytes[PL_SMAPS_RSS] / 2;
}

/* Code before shared memory: a program or library can lie on a tmpfs or in a memory file. Where that is mapped shared,
 * a runtime writes its code there. */
static pl_doctor_kind kind_of_file(const pl_doctor_process *p, const code_files *c, const pl_doctor_map *m)
{
    static const char *const in_memory[] = {"/dev/shm/", "/SYSV", "/memfd:", "/dev/zero", NULL};
    bool is_private = m->protection[3] == 'p', memory = m->tmpfs || is_one_of(m->name, in_memory);
    if (m->bytes[PL_SMAPS_SHARED_HUGETLB] || m->bytes[PL_SMAPS_PRIVATE_HUGETLB] || begins(m->name, "/anon_hugepage"))
        return PL_DOCTOR_HUGETLB;
    if (is_private && begins(m->name, "/dev/zero")) return PL_DOCTOR_ANONYMOUS;
    if (same_file(m->name, p->executable)) return PL_DOCTOR_PROGRAM;
    if (begins(m->name, "/dev/") && !memory) return PL_DOCTOR_DEVICES;
    bool code = c->count && bsearch(&m->name, c->name, c->count, sizeof *c->name, by_text);
    if ((code || has_library_name(m->name)) && (is_private || !memory)) return PL_DOCTOR_LIBRARIES;
    if (memory && !is_copied(m)) return PL_DOCTOR_SHARED_MEMORY;
    return is_private ? PL_DOCTOR_FILES_PRIVATE : PL_DOCTOR_FILES_SHARED;
}

/* Is this the zeroed data of the file mapped before it? It may be several mappings, where a program has given some of
 * its pages other properties. When the kernel has joined it with a neighbour, the larger part decides. */
static bool follows_code(const pl_doctor_view *v, size_t i)
{
    const pl_doctor_map *m = &v->process->map[i], *before = m - 1;
    if (i == 0 || before->end != m->begin || *m->name || m->protection[1] != 'w') return false;
    for (size_t k = i - 1; k > 0 && !*before->name && v->kind[k] == v->kind[i - 1] && before[-1].end == before->begin;
         k--)
        before--;
    bool code = v->kind[i - 1] == PL_DOCTOR_PROGRAM || v->kind[i - 1] == PL_DOCTOR_LIBRARIES;
    if (!code || before->name[0] != '/' || before->protection[1] != 'w') return false;
    if (!before->image_end) return m->end - m->begin <= BSS_BYTES_MAX;
    return before->image_end > m->begin && before->image_end - m->begin >= (m->end - m->begin) / 2;
}

static pl_doctor_kind kind_of(const pl_doctor_view *v, const code_files *c, size_t i)
{
    static const char *const lent[] = {"[vdso]", "[vvar", "[vsyscall]", "[uprobes]", "[sigpage]", NULL};
    const pl_doctor_map *m = &v->process->map[i];
    if (m->name[0] == '/') return kind_of_file(v->process, c, m);
    if (strcmp(m->name, "[heap]") == 0) return PL_DOCTOR_HEAP;
    if (is_one_of(m->name, lent)) return PL_DOCTOR_KERNEL;
    if (m->protection[3] == 's' || begins(m->name, "[anon_shmem:")) return PL_DOCTOR_SHARED_MEMORY;
    if (begins(m->name, "anon_inode:") || begins(m->name, "socket:")) return PL_DOCTOR_DEVICES;
    if (strcmp(m->protection, "---p") == 0) return PL_DOCTOR_NO_ACCESS;
    if (follows_code(v, i)) return v->kind[i - 1];
    return PL_DOCTOR_ANONYMOUS;
}

static pl_status sort_mappings(pl_doctor_view *v, pl_error *err)
{
    code_files files;
    PL_TRY(list_code_files(v->process, &files, err));
    for (size_t i = 0; i < v->process->map_count; i++)
        if (v->kind[i] == PL_DOCTOR_KIND_COUNT) v->kind[i] = kind_of(v, &files, i);
    pl_free(files.name);
    return PL_OK;
}

/* ---- sums ---- */

static void add_map(pl_doctor_row *row, const pl_doctor_map *m)
{
    row->maps++;
    row->reserved_bytes += m->end - m->begin;
    for (int k = 0; k < PL_SMAPS_FIELDS; k++) row->bytes[k] += m->bytes[k];
}

static void add_rows(pl_doctor_view *v)
{
    const pl_doctor_process *p = v->process;
    for (size_t i = 0; i < p->map_count; i++) {
        add_map(&v->row[v->kind[i]], &p->map[i]);
        add_map(&v->total, &p->map[i]);
    }
    if (p->rollup_known) v->unexplained_bytes = (int64_t)(p->rollup[PL_SMAPS_RSS] - v->total.bytes[PL_SMAPS_RSS]);
}

typedef struct named {
    const char *name;
    pl_doctor_kind kind;
    const pl_doctor_map *map;
} named;

static int by_name(const void *a, const void *b)
{
    const named *x = a, *y = b;
    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : strcmp(x->name, y->name);
}

static int by_resident(const void *a, const void *b)
{
    const pl_doctor_group *x = a, *y = b;
    uint64_t left = x->sum.bytes[PL_SMAPS_RSS], right = y->sum.bytes[PL_SMAPS_RSS];
    return left != right ? (left < right) - (left > right) : strcmp(x->name, y->name);
}

static void add_groups(pl_doctor_view *v, const named *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || by_name(&list[i - 1], &list[i]) != 0)
            v->group[v->group_count++] = (pl_doctor_group){.name = list[i].name, .kind = list[i].kind};
        add_map(&v->group[v->group_count - 1].sum, list[i].map);
    }
    if (v->group_count) qsort(v->group, v->group_count, sizeof *v->group, by_resident);
}

/* Mappings of the same name; zeroed data goes with the file before it. */
static pl_status group_mappings(pl_doctor_view *v, pl_error *err)
{
    const pl_doctor_process *p = v->process;
    named *list = pl_alloc(p->map_count + 1, sizeof *list);
    v->group = pl_alloc(p->map_count + 1, sizeof *v->group);
    pl_status status = list && v->group ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to sort the mappings");
    size_t count = 0;
    for (size_t i = 0; i < p->map_count && status == PL_OK; i++) {
        const char *name = p->map[i].name;
        bool code = v->kind[i] == PL_DOCTOR_PROGRAM || v->kind[i] == PL_DOCTOR_LIBRARIES;
        if (!*name && code) name = p->map[i - 1].name;
        if (*name && v->kind[i] != PL_DOCTOR_KERNEL) list[count++] = (named){name, v->kind[i], &p->map[i]};
    }
    if (count) qsort(list, count, sizeof *list, by_name);
    if (status == PL_OK) add_groups(v, list, count);
    pl_free(list);
    return status;
}

static pl_status build(pl_doctor_view *v, pl_error *err)
{
    size_t maps = v->process->map_count;
    v->kind = pl_alloc(maps + 1, sizeof *v->kind);
    if (!v->kind) return pl_fail(err, PL_E_NOMEM, "no memory to sort %zu mappings", maps);
    for (size_t i = 0; i < maps; i++) v->kind[i] = PL_DOCTOR_KIND_COUNT;
    PL_TRY(pl_doctor_find_arenas(v, err));
    PL_TRY(pl_doctor_find_stacks(v, err));
    PL_TRY(sort_mappings(v, err));
    add_rows(v);
    return group_mappings(v, err);
}

pl_status pl_doctor_view_build(const pl_doctor_process *p, pl_doctor_view *v, pl_error *err)
{
    *v = (pl_doctor_view){.process = p};
    pl_status status = build(v, err);
    if (status != PL_OK) pl_doctor_view_deinit(v);
    return status;
}

void pl_doctor_view_deinit(pl_doctor_view *v)
{
    pl_free(v->kind);
    pl_free(v->group);
    pl_free(v->stack);
    pl_free(v->arena);
    *v = (pl_doctor_view){0};
}
