/* Recorded /proc texts in, known rows out. */
#include <errno.h>

#include <jansson.h>

#include "base/io.h"

#include "support/program.h"
#include "unit/doctor/fixture.h"

static pl_error err;

static int begin(void **state)
{
    if (fake_root_begin(state)) return -1;
    fixture_put();
    err = (pl_error){0};
    return 0;
}

static void read_77(pl_doctor_process *p, pl_doctor_view *v)
{
    if (pl_doctor_process_read(fake_root, 77, p, &err) != PL_OK) fail_msg("%s", err.text);
    if (pl_doctor_view_build(p, v, &err) != PL_OK) fail_msg("%s", err.text);
}

static void release(pl_doctor_process *p, pl_doctor_view *v)
{
    pl_doctor_view_deinit(v);
    pl_doctor_process_deinit(p);
}

static void assert_row(const pl_doctor_view *v, pl_doctor_kind kind, uint32_t maps, uint64_t reserved_kb, uint64_t kb)
{
    const pl_doctor_row *row = &v->row[kind];
    if (row->maps != maps || row->reserved_bytes != reserved_kb * 1024 || row->bytes[PL_SMAPS_RSS] != kb * 1024)
        fail_msg("%s: %u mappings, %llu reserved, %llu resident", pl_doctor_kind_word(kind), row->maps,
                 (unsigned long long)row->reserved_bytes / 1024, (unsigned long long)row->bytes[PL_SMAPS_RSS] / 1024);
}

static void test_rows(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    read_77(&p, &v);
    assert_row(&v, PL_DOCTOR_PROGRAM, 3, 20, 20);
    assert_row(&v, PL_DOCTOR_HEAP, 1, 1024, 1000);
    assert_row(&v, PL_DOCTOR_ARENAS, 2, 65536, 400);
    assert_row(&v, PL_DOCTOR_THREAD_STACKS, 2, 16384, 20);
    assert_row(&v, PL_DOCTOR_MAIN_STACK, 1, 132, 20);
    assert_row(&v, PL_DOCTOR_NO_ACCESS, 2, 8, 0);
    assert_row(&v, PL_DOCTOR_ANONYMOUS, 2, 1028, 1028);
    assert_row(&v, PL_DOCTOR_FILES_PRIVATE, 1, 64, 40);
    assert_row(&v, PL_DOCTOR_FILES_SHARED, 1, 64, 64);
    assert_row(&v, PL_DOCTOR_SHARED_MEMORY, 3, 192, 40);
    assert_row(&v, PL_DOCTOR_LIBRARIES, 2, 68, 64);
    assert_row(&v, PL_DOCTOR_KERNEL, 1, 8, 4);
    assert_int_equal(v.total.bytes[PL_SMAPS_RSS], FIXTURE_RSS_KB * 1024);
    assert_int_equal(v.total.bytes[PL_SMAPS_SWAP], 24 * 1024);
    assert_int_equal(v.unexplained_bytes, 0);
    assert_int_equal(v.arena_count, 1);
    release(&p, &v);
}

static void test_facts(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    read_77(&p, &v);
    assert_string_equal(p.name, "server");
    assert_string_equal(p.command, "/opt/bin/server --port 80");
    assert_string_equal(p.executable, "/opt/bin/server");
    assert_int_equal(p.inner_id, 5);
    assert_int_equal(p.user, 1000);
    assert_int_equal(p.start_ticks, 4242); /* behind a name of two lines, with a bracket */
    assert_int_equal(p.status.peak_bytes, 3000 * 1024);
    assert_int_equal(p.status.threads, 3);
    assert_int_equal(p.limit[PL_DOCTOR_LIMIT_AS], 1000000000);
    assert_true(p.limit[PL_DOCTOR_LIMIT_DATA] == PL_MACHINE_UNLIMITED);
    assert_int_equal(p.overcommit, 1);
    assert_null(p.run_folder);
    release(&p, &v);
}

static void test_stacks(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    read_77(&p, &v);
    assert_int_equal(v.stack_count, 3);
    assert_int_equal(v.guessed, 1);
    assert_int_equal(v.threads_unknown, 1); /* 79 runs all the time */
    assert_int_equal(v.stack[0].thread, 78);
    assert_string_equal(v.stack[0].name, "worker");
    assert_int_equal(v.stack[0].touched_bytes, 12 * 1024);
    assert_int_equal(v.stack[1].thread, 0);
    assert_true(v.stack[2].main);
    pl_str notes = {0};
    pl_doctor_notes(&v, &notes);
    assert_non_null(strstr(pl_str_text(&notes), "2 thread stacks reserve 16.8 MB and touch 20.5 kB"));
    assert_non_null(strstr(pl_str_text(&notes), "an untouched stack costs no memory"));
    pl_str_deinit(&notes);
    release(&p, &v);
}

/* Two threads in one mapping: it is no thread's own stack, and nobody claims it. */
static void test_shared_stack_is_none(void **state)
{
    (void)state;
    fake_root_put("/proc/77/task/79/syscall", "-1 0x7f0005700000 0x7f000a000545\n");
    pl_doctor_process p;
    pl_doctor_view v;
    read_77(&p, &v);
    assert_int_equal(v.threads_elsewhere, 2);
    assert_int_equal(v.stack[0].thread, 0); /* still shaped like one: a guess */
    release(&p, &v);
}

static void test_names(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    pl_str text = {0};
    read_77(&p, &v);
    bool found = false;
    for (size_t i = 0; i < p.map_count; i++) found = found || strcmp(p.map[i].name, "/srv/odd\nname (deleted)") == 0;
    assert_true(found);
    pl_doctor d = {.id = 77, .asked_id = 77, .looks = 1, .last = {.known = true, .process = p}};
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_REPORT_LONG, &d.last, &text, &err), PL_OK);
    assert_non_null(strstr(text.data, "/srv/odd?name (deleted)")); /* harmless on a terminal */
    assert_non_null(strstr(text.data, "[anon: my pool]"));
    pl_str_deinit(&text);
    release(&p, &v);
}

static void test_unexplained_is_named(void **state)
{
    (void)state;
    fake_root_put("/proc/77/smaps_rollup", "00400000-7ffc00102000 ---p 00000000 00:00 0   [rollup]\nRss: 2712 kB\n");
    pl_doctor_process p;
    pl_doctor_view v;
    pl_str text = {0};
    read_77(&p, &v);
    assert_int_equal(v.unexplained_bytes, 12 * 1024);
    pl_doctor d = {.id = 77, .asked_id = 77, .looks = 1, .last = {.known = true, .process = p}};
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_REPORT, &d.last, &text, &err), PL_OK);
    assert_non_null(strstr(text.data, "+12,288"));
    pl_str_deinit(&text);
    release(&p, &v);
}

static void test_json(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_str text = {0};
    assert_int_equal(pl_doctor_process_read(fake_root, 77, &p, &err), PL_OK);
    pl_doctor d = {.id = 77, .asked_id = 77, .looks = 1, .last = {.known = true, .process = p}};
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_JSON, &d.last, &text, &err), PL_OK);
    json_error_t why;
    json_t *whole = json_loads(text.data, 0, &why);
    if (!whole) fail_msg("line %d: %s", why.line, why.text);
    assert_string_equal(json_string_value(json_object_get(whole, "schema")), "plimsoll.doctor/1");
    json_t *rows = json_object_get(json_object_get(whole, "peak"), "rows"), *row;
    size_t i;
    json_int_t sum = 0;
    json_array_foreach(rows, i, row) sum += json_integer_value(json_object_get(row, "resident_bytes"));
    assert_int_equal(sum, FIXTURE_RSS_KB * 1024);
    json_decref(whole);
    pl_str_deinit(&text);
    pl_doctor_process_deinit(&p);
}

static void test_causes(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    pl_doctor_cause cause[PL_DOCTOR_CAUSES_MAX];
    read_77(&p, &v);
    assert_int_equal(pl_doctor_find_causes(&v, cause), 3);
    assert_int_equal(cause[0].bytes, 1028 * 1024);
    assert_int_equal(cause[1].bytes, 1000 * 1024);
    assert_non_null(strstr(cause[1].text, "cannot be known from outside"));
    assert_int_equal(cause[2].bytes, 400 * 1024);
    assert_string_equal(cause[2].remedy, ""); /* a single arena: no remedy is invented */
    release(&p, &v);
}

/* The fixture's status with one figure changed. */
static void put_status(const char *line, const char *instead)
{
    char text[sizeof fixture_status + 64];
    const char *at = strstr(fixture_status, line);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - fixture_status), fixture_status, instead, at + strlen(line));
    fake_root_put("/proc/77/status", text);
}

/* Linux 6.1 counts up to 64 pages late for each thread: what is resident was reached all the same. */
static void test_mark_that_lags(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    put_status("VmHWM:\t    3000", "VmHWM:\t    1676");
    read_77(&p, &v);
    assert_int_equal(p.status.peak_bytes, 2700 * 1024);
    release(&p, &v);
    fake_root_put("/proc/77/status", fixture_status);
}

/* What the kernel spends on a process beside its resident pages ranks with them. */
static void test_causes_beside_resident(void **state)
{
    (void)state;
    static const struct {
        const char *line, *instead, *title, *remedy;
        uint64_t bytes;
    } cases[] = {{"VmPTE:\t     100 kB", "VmPTE:\t 84100 kB", "page tables", "densely", 84100 * 1024},
                 {"Threads:\t3", "Threads:\t4000", "kernel stacks", "fewer threads", 4000 * 16384},
                 {"VmSwap:\t      24 kB", "VmSwap:\t 50000 kB", "swap", "", 50000 * 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_doctor_process p;
        pl_doctor_view v;
        pl_doctor_cause cause[PL_DOCTOR_CAUSES_MAX];
        put_status(cases[i].line, cases[i].instead);
        read_77(&p, &v);
        assert_int_equal(pl_doctor_find_causes(&v, cause), 3);
        if (!strstr(cause[0].title, cases[i].title)) fail_msg("%s: %s", cases[i].title, cause[0].title);
        assert_int_equal(cause[0].bytes, cases[i].bytes);
        assert_int_equal(cause[0].resident_bytes, 0);
        assert_non_null(strstr(cause[0].remedy, cases[i].remedy));
        assert_int_equal(cause[1].bytes, 1028 * 1024);
        assert_int_equal(pl_doctor_charged_bytes(&v), v.total.bytes[PL_SMAPS_RSS] + p.status.page_table_bytes +
                                                          p.status.swap_bytes +
                                                          p.status.threads * PL_DOCTOR_KERNEL_STACK_BYTES);
        release(&p, &v);
    }
}

/* Process 77 with these mappings alone, run from this file. */
static void read_mapped(const char *smaps, const char *executable, pl_doctor_process *p, pl_doctor_view *v)
{
    char link[128];
    snprintf(link, sizeof link, "%s/proc/77/exe", fake_root);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(executable, link), 0);
    fake_root_put("/proc/77/smaps", smaps);
    read_77(p, v);
}

/* Whether memory is shared, the mapping says, not its file alone. */
static void test_private_mappings_of_shared_files(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    read_mapped(MAP("7f0000000000-7f0000010000 rw-p 00000000 00:01 14    /dev/zero", 64, 60, 60, 0) /* anonymous */
                MAP("7f0000100000-7f0000110000 rw-p 00000000 00:20 15    /dev/shm/copied", 64, 56, 48, 0) /* copies */
                MAP("7f0000200000-7f0000210000 r--p 00000000 00:20 16    /dev/shm/read", 64, 40, 0, 0)
                    MAP("7f0000300000-7f0000310000 rw-s 00000000 00:20 17    /dev/shm/shared", 64, 20, 0, 0),
                "/opt/bin/server", &p, &v);
    assert_row(&v, PL_DOCTOR_ANONYMOUS, 1, 64, 60);
    assert_row(&v, PL_DOCTOR_FILES_PRIVATE, 1, 64, 56);
    assert_row(&v, PL_DOCTOR_SHARED_MEMORY, 2, 128, 60);
    release(&p, &v);
}

/* A program and a library in memory files are what they are; code that a runtime writes into one it shares is not. */
static void test_program_in_memory(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    read_mapped(MAP("00400000-00410000 r-xp 00000000 00:01 14    /memfd:tool (deleted)", 64, 60, 0, 0)
                    MAP("7f0000000000-7f0000010000 r-xp 00000000 00:20 15    /dev/shm/plug.so", 64, 32, 0, 0)
                        MAP("7f0000100000-7f0000110000 r-xs 00000000 00:01 16    /memfd:jit (deleted)", 64, 16, 0, 0),
                "/memfd:tool (deleted)", &p, &v);
    assert_row(&v, PL_DOCTOR_PROGRAM, 1, 64, 60);
    assert_row(&v, PL_DOCTOR_LIBRARIES, 1, 64, 32);
    assert_row(&v, PL_DOCTOR_SHARED_MEMORY, 1, 64, 16);
    release(&p, &v);
}

static void assert_cause(const pl_doctor_view *v, const char *says, const char *not_this)
{
    pl_doctor_cause c[PL_DOCTOR_CAUSES_MAX];
    char text[2048];
    assert_true(pl_doctor_find_causes(v, c) > 0);
    snprintf(text, sizeof text, "%s; %s; %s", c[0].title, c[0].text, c[0].remedy);
    if (!strstr(text, says) || strstr(text, not_this)) fail_msg("%s", text);
}

/* A heap of ZGC is a memory file: the runtime's words, and no advice about /dev/shm. */
static void test_java_heap_in_a_memory_file(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    static const char smaps[] =
        MAP("7f0000000000-7f0001000000 rw-s 00000000 00:01 14    /memfd:java_heap (deleted)", 16384, 16384, 0, 0)
            MAP("7f0100000000-7f0101000000 rw-s 00000000 00:01 14    /memfd:java_heap (deleted)", 16384, 16384, 0, 0)
                MAP("7f0200000000-7f0200010000 r-xp 00000000 fe:00 15    /opt/libjvm.so", 64, 32, 0, 0);
    static char halved[sizeof smaps];
    memcpy(halved, smaps, sizeof smaps);
    for (char *at = halved; (at = strstr(at, "Pss:   16384"));) memcpy(at, "Pss:   08192", 12);
    read_mapped(halved, "/opt/bin/java", &p, &v);
    assert_cause(&v, "memory of a JVM", "ipcrm");
    assert_cause(&v, "-Xmx", "/dev/shm");
    assert_cause(&v, "mapped 2 times", "/dev/shm");
    release(&p, &v);
    read_mapped(MAP("7f0000000000-7f0001000000 rw-s 00000000 00:20 14    /dev/shm/x", 16384, 16384, 0, 0), "/x", &p,
                &v);
    assert_cause(&v, "until it is removed", "ipcrm");
    release(&p, &v);
    read_mapped(MAP("7f0000000000-7f0001000000 rw-s 00000000 00:01 14    /SYSV00000000 (deleted)", 16384, 16384, 0, 0),
                "/x", &p, &v);
    assert_cause(&v, "ipcrm", "/dev/shm");
    release(&p, &v);
    read_mapped(MAP("7f0000000000-7f0001000000 rw-s 00000000 00:01 14    /memfd:x (deleted)", 16384, 16384, 0, 0), "/x",
                &p, &v);
    assert_cause(&v, "shared memory", "until");
    release(&p, &v);
}

static void test_replaced_runtime(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    read_mapped(MAP("7f0000000000-7f0001000000 rw-p 00000000 00:00 0 ", 16384, 16384, 16384, 0),
                "/usr/bin/python3.11 (deleted)", &p, &v);
    assert_cause(&v, "memory of Python", "heaptrack");
    release(&p, &v);
}

static void assert_note(const pl_doctor_view *v, const char *text, bool there)
{
    pl_str notes = {0};
    pl_doctor_notes(v, &notes);
    if ((strstr(pl_str_text(&notes), text) != NULL) != there) fail_msg("%s", pl_str_text(&notes));
    pl_str_deinit(&notes);
}

/* As NumPy 2.4 maps them: two for one thread; one more for two, which the kernel joins to its neighbour; and so on. */
static void test_openblas(void **state)
{
#define BLAS                                                                                                           \
    MAP("7f0000000000-7f0000010000 r-xp 00000000 fe:00 15    /opt/libscipy_openblas64_-32a4.so", 64, 32, 0, 0)         \
    MAP("7f0004000000-7f0006000000 rw-p 00000000 00:00 0 ", 32768, 64, 64, 0)
    static const char *const of[][2] = {
        {BLAS, "1 mapping of whole 32 MiB looks like buffers of OpenBLAS (libscipy_openblas64_-32a4.so): 33.6 MB"},
        {BLAS MAP("7f0014000000-7f0016000000 rw-p 00000000 00:00 0 ", 32768, 64, 64, 0), "2 mappings of whole 32 MiB"},
        {BLAS MAP("7f0014000000-7f0018000000 rw-p 00000000 00:00 0 ", 65536, 64, 64, 0), "): 100.7 MB"},
        {BLAS MAP("7f0014000000-7f0034000000 rw-p 00000000 00:00 0 ", 524288, 64, 64, 0), "): 570.4 MB"}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        pl_doctor_process p;
        pl_doctor_view v;
        read_mapped(of[i][0], "/usr/bin/python3.11", &p, &v);
        assert_note(&v, of[i][1], true);
        assert_note(&v, "OPENBLAS_NUM_THREADS=1 leaves one or two buffers", i >= 2);
        release(&p, &v);
    }
}

/* Two threads that always run, and no mapping shaped like their stacks. */
static void test_hidden_stacks_are_noted(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    fake_root_put("/proc/77/task/78/syscall", "running\n");
    read_77(&p, &v); /* two shapes, two threads: both guessed */
    assert_note(&v, "no stack in this report", false);
    release(&p, &v);
    read_mapped(MAP("7f0000000000-7f0001000000 rw-p 00000000 00:00 0 ", 16384, 16384, 16384, 0), "/x", &p, &v);
    assert_note(&v, "At least 2 threads have no stack in this report", true);
    release(&p, &v);
}

static void test_forked_and_huge(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    char text[2048];
    static const char *const settings[] = {"always [madvise] never\n", "[always] madvise never\n"};
    snprintf(text, sizeof text, "%s", MAP("7f0000000000-7f0001000000 rw-p 00000000 00:00 0 ", 16384, 16384, 16384, 0));
    memcpy(strstr(text, "AnonHugePages:         0"), "AnonHugePages:     16384", 24);
    for (int always = 0; always < 2; always++) {
        fake_root_put("/sys/kernel/mm/transparent_hugepage/enabled", settings[always]);
        read_mapped(text, "/x", &p, &v);
        assert_note(&v, "MADV_NOHUGEPAGE", true);
        assert_note(&v, "enabled = madvise", always);
        assert_note(&v, "since fork", false);
        release(&p, &v);
    }
    memcpy(strstr(text, "Pss:   16384"), "Pss:    5000", 12);
    read_mapped(text, "/x", &p, &v);
    assert_note(&v, "Pss is only 5.12 MB: processes have shared them since fork", true);
    release(&p, &v);
}

/* What is locked, nobody takes back. */
static void test_locked_files(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_view v;
    static const char *const smaps[] = {
        MAP("7f0000000000-7f0001000000 r--s 00000000 fe:00 14    /srv/index", 16384, 16384, 0, 0),
        MAP("7f0000000000-7f0001000000 r-xp 00000000 fe:00 14    /srv/libx.so", 16384, 16384, 0, 0)};
    for (size_t i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s", smaps[i]);
        memcpy(strstr(text, "Private_Dirty:         16384"), "Private_Clean:         16384", 28);
        read_mapped(text, "/x", &p, &v);
        assert_cause(&v, i ? "can drop it" : "takes it back", "locked");
        release(&p, &v);
        memcpy(strstr(text, "Locked:                0"), "Locked:            16384", 24);
        read_mapped(text, "/x", &p, &v);
        assert_cause(&v, "locked", i ? "can drop" : "takes it back");
        release(&p, &v);
    }
}

/* Another user's process: the public figures are shown, and who may see the rest. */
static void test_not_permitted(void **state)
{
    (void)state;
    char path[128];
    pl_doctor_process p;
    pl_str text = {0};
    snprintf(path, sizeof path, "%s/proc/77/smaps", fake_root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pl_doctor_process_read(fake_root, 77, &p, &err), PL_OK);
    assert_false(p.permitted);
    pl_doctor d = {.id = 77, .asked_id = 77, .looks = 1, .last = {.known = true, .process = p}};
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_REPORT, &d.last, &text, &err), PL_OK);
    assert_non_null(strstr(text.data, "2,543,616")); /* RssAnon */
    assert_non_null(strstr(text.data, "its user (1000) and root"));
    pl_str_deinit(&text);
    text = (pl_str){0};
    assert_int_equal(pl_doctor_write(&d, PL_DOCTOR_JSON, &d.last, &text, &err), PL_OK);
    assert_non_null(strstr(text.data, "\"sum\": null")); /* not known is not 0 */
    assert_non_null(strstr(text.data, "\"unexplained_bytes\": null"));
    pl_str_deinit(&text);
    pl_doctor_process_deinit(&p);
}

static void assert_refused(int id, const char *says)
{
    pl_doctor_process p;
    err = (pl_error){0};
    assert_int_equal(pl_doctor_process_read(fake_root, id, &p, &err), PL_E_DATA);
    if (!strstr(err.text, says)) fail_msg("%s", err.text);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused(78, "there is no process 78");
    fake_root_put("/proc/90/status", "Name:\tdead\nState:\tZ (zombie)\nTgid:\t90\nPPid:\t77\nThreads:\t1\n");
    assert_refused(90, "zombie until its parent 77");
    fake_root_put("/proc/91/status",
                  "Name:\tkworker/0:1\nState:\tI (idle)\nTgid:\t91\nPPid:\t2\nKthread:\t1\nThreads:\t1\n");
    assert_refused(91, "thread of the kernel");
    fake_root_put("/proc/92/status", "");
    assert_refused(92, "there is no process 92");
}

/* What cannot be opened is no process that is gone. */
static void test_no_descriptors(void **state)
{
    (void)state;
    pl_doctor_process p;
    pl_doctor_member *list;
    size_t count;
    pl_io_fail_at(PL_IO_OPEN, 1, EMFILE, 1);
    assert_int_equal(pl_doctor_process_read(fake_root, 77, &p, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "/proc/77/status cannot be read: Too many open files"));
    assert_int_equal(pl_doctor_tree_read(fake_root, 77, true, &list, &count, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "/proc/77/stat cannot be read: Too many open files"));
    pl_io_fail_at(PL_IO_OPEN, 0, 0, 0);
}

static void test_thread_leads_to_process(void **state)
{
    (void)state;
    char text[sizeof fixture_status + 8];
    pl_doctor_process p;
    snprintf(text, sizeof text, "%s", fixture_status);
    fake_root_put("/proc/78/status", text);
    assert_int_equal(pl_doctor_process_read(fake_root, 78, &p, &err), PL_OK);
    assert_int_equal(p.id, 77);
    assert_int_equal(p.asked_id, 78);
    pl_doctor_process_deinit(&p);
}

static void test_plimsoll_run(void **state)
{
    (void)state;
    static const char words[] = "/usr/bin/plimsoll\0__run\0train\0--lock=/proc/self/fd/3\0--out=runs/tiny";
    pl_doctor_process p;
    pl_doctor_view v;
    pl_doctor_cause cause[PL_DOCTOR_CAUSES_MAX];
    fake_root_put_bytes("/proc/77/cmdline", words, sizeof words);
    read_77(&p, &v);
    assert_string_equal(p.run_folder, "runs/tiny");
    assert_int_equal(pl_doctor_find_causes(&v, cause), 3);
    assert_non_null(strstr(cause[0].text, "runs/tiny/plan.lock"));
    release(&p, &v);
}

static void test_cgroup_levels(void **state)
{
    (void)state;
    pl_cgroup_account a;
    fake_root_put("/proc/77/cgroup", "0::/a/b\n");
    fake_root_put("/proc/self/mountinfo", "36 25 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fake_root_put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    fake_root_put("/sys/fs/cgroup/a/b/memory.high", "800\n");
    fake_root_put("/sys/fs/cgroup/a/b/memory.current", "500\n");
    fake_root_put("/sys/fs/cgroup/a/b/memory.peak", "700\n");
    fake_root_put("/sys/fs/cgroup/a/b/memory.stat", "anon 300\nfile 150\nkernel 50\nshmem 10\n");
    fake_root_put("/sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 0\nmax 4\noom 2\noom_kill 1\n");
    fake_root_put("/sys/fs/cgroup/a/memory.max", "1000\n");
    fake_root_put("/sys/fs/cgroup/a/memory.current", "900\n");
    pl_cgroup_account_read(fake_root, "77", &a);
    assert_int_equal(a.version, 2);
    assert_int_equal(a.level_count, 2);
    assert_int_equal(a.binding, 1);
    assert_true(a.level[0].limit_bytes == PL_MACHINE_UNLIMITED);
    assert_int_equal(a.level[0].high_bytes, 800);
    assert_int_equal(a.level[0].peak_bytes, 700);
    assert_int_equal(a.level[0].oom_kills, 1);
    assert_true(a.level[1].peak_bytes == PL_CGROUP_UNKNOWN);
    assert_int_equal(a.charge_count, 4);
    assert_string_equal(a.charge[0].name, "anon");
    assert_int_equal(a.charge[0].bytes, 300);
}

/* Linux 5.4: no memory.peak, and no sum of the kernel's memory. Nothing in sight is limited. */
static void test_cgroup_of_an_older_kernel(void **state)
{
    (void)state;
    pl_cgroup_account a;
    uint64_t sum = 0;
    fake_root_put("/proc/77/cgroup", "12:pids:/x\n0::/a\n");
    fake_root_put("/proc/self/mountinfo", "36 25 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
    fake_root_put("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    fake_root_put("/sys/fs/cgroup/a/memory.max", "max\n");
    fake_root_put("/sys/fs/cgroup/a/memory.high", "max\n");
    fake_root_put("/sys/fs/cgroup/a/memory.current", "1000\n");
    fake_root_put("/sys/fs/cgroup/a/memory.swap.max", "0\n");
    fake_root_put("/sys/fs/cgroup/a/memory.swap.current", "0\n");
    fake_root_put("/sys/fs/cgroup/a/memory.stat", "anon 600\nfile 300\nkernel_stack 40\nslab 50\nsock 10\nshmem 5\n"
                                                  "anon_thp 0\nslab_reclaimable 30\nslab_unreclaimable 20\n");
    fake_root_put("/sys/fs/cgroup/a/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
    pl_cgroup_account_read(fake_root, "77", &a);
    assert_int_equal(a.version, 2);
    assert_int_equal(a.level_count, 1); /* the root has no such files */
    assert_int_equal(a.binding, a.level_count);
    assert_true(a.level[0].high_bytes == PL_MACHINE_UNLIMITED);
    assert_true(a.level[0].peak_bytes == PL_CGROUP_UNKNOWN);
    assert_int_equal(a.level[0].swap_limit_bytes, 0);
    assert_int_equal(a.level[0].oom_kills, 0);
    for (size_t i = 0; i < a.charge_count; i++) sum += a.charge[i].part ? 0 : a.charge[i].bytes;
    assert_int_equal(sum, 1000);
}

static void test_cgroup_version_1(void **state)
{
    (void)state;
    pl_cgroup_account a;
    fake_root_put("/proc/77/cgroup", "4:memory:/x\n0::/\n");
    fake_root_put("/proc/self/mountinfo", "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n");
    fake_root_put("/cg/memory/x/memory.limit_in_bytes", "5000\n");
    fake_root_put("/cg/memory/x/memory.usage_in_bytes", "4000\n");
    fake_root_put("/cg/memory/x/memory.max_usage_in_bytes", "4500\n");
    fake_root_put("/cg/memory/x/memory.memsw.usage_in_bytes", "4100\n");
    fake_root_put("/cg/memory/x/memory.stat", "rss 1\ntotal_rss 3000\ntotal_cache 900\n");
    fake_root_put("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_put("/cg/memory/memory.usage_in_bytes", "100000\n");
    pl_cgroup_account_read(fake_root, "77", &a);
    assert_int_equal(a.version, 1);
    assert_int_equal(a.level_count, 2);
    assert_int_equal(a.binding, 0);
    assert_int_equal(a.level[0].swap_bytes, 100);
    assert_true(a.level[1].limit_bytes == PL_MACHINE_UNLIMITED);
    assert_int_equal(a.charge[0].bytes, 3000);
}

static void test_tree(void **state)
{
    (void)state;
    pl_doctor_member *list;
    size_t count;
    fake_root_put("/proc/80/stat", "80 (child) S 77 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 50 1 10 0\n");
    fake_root_put("/proc/81/stat", "81 (a\nb) c) R 80 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 60 1 20 0\n");
    fake_root_put("/proc/82/stat", "82 (dead) Z 77 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 60 1 20 0\n");
    fake_root_put("/proc/83/stat", "83 (stranger) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 60 1 20 0\n");
    fake_root_put("/proc/81/smaps_rollup", "0-1000 ---p 00000000 00:00 0 [rollup]\nRss: 80 kB\nPss: 60 kB\n");
    put_status("VmRSS:\t    2700", "VmRSS:\t    2704");
    assert_int_equal(pl_doctor_tree_read(fake_root, 77, true, &list, &count, &err), PL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(list[0].id, 77);
    assert_int_equal(list[0].resident_bytes, 2704 * 1024); /* of status; the 675 pages of stat are approximate */
    assert_string_equal(list[0].name, "ser)\nver");
    assert_int_equal(list[1].id, 80);
    assert_string_equal(list[2].name, "a\nb) c");
    assert_int_equal(list[2].resident_bytes, 20 * sysconf(_SC_PAGESIZE));
    assert_int_equal(list[2].proportional_bytes, 60 * 1024);
    pl_free(list);
    assert_int_equal(pl_doctor_tree_read(fake_root, 77, false, &list, &count, &err), PL_OK);
    assert_int_equal(count, 1);
    pl_free(list);
    assert_int_equal(pl_doctor_tree_read(fake_root, 82, true, &list, &count, &err), PL_E_DATA);
    for (uint64_t n = 1;; n++) { /* no smaller sum for want of memory */
        pl_alloc_fail_at(n, 0);
        pl_status status = pl_doctor_tree_read(fake_root, 77, true, &list, &count, &err);
        pl_alloc_fail_at(0, 0);
        if (status == PL_OK) break;
        assert_int_equal(status, PL_E_NOMEM);
        assert_null(list);
    }
    assert_int_equal(count, 3);
    pl_free(list);
}

/* Refused memory anywhere: a sentence or a whole answer, and nothing is left behind. */
static void test_memory_refused(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 400; n++) {
        pl_doctor_process p;
        pl_str text = {0};
        uint64_t blocks = pl_alloc_live_blocks();
        err = (pl_error){0};
        pl_alloc_fail_at(n, 1);
        pl_status status = pl_doctor_process_read(fake_root, 77, &p, &err);
        if (status == PL_OK) {
            pl_doctor d = {.id = 77, .asked_id = 77, .looks = 1, .last = {.known = true, .process = p}};
            status = pl_doctor_write(&d, PL_DOCTOR_REPORT, &d.last, &text, &err);
            if (status == PL_OK) status = pl_doctor_write(&d, PL_DOCTOR_JSON, &d.last, &text, &err);
            pl_doctor_process_deinit(&p);
        }
        pl_alloc_fail_at(0, 0);
        pl_str_deinit(&text);
        assert_int_equal(pl_alloc_live_blocks(), blocks);
        assert_true(status == PL_OK || (status == PL_E_NOMEM && err.text[0]));
        if (status == PL_OK) return;
    }
    fail_msg("it never succeeds");
}

PL_TEST_PROGRAM(argc, argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, fake_root_end)
    const struct CMUnitTest tests[] = {TEST(test_rows),
                                       TEST(test_facts),
                                       TEST(test_mark_that_lags),
                                       TEST(test_stacks),
                                       TEST(test_shared_stack_is_none),
                                       TEST(test_names),
                                       TEST(test_unexplained_is_named),
                                       TEST(test_json),
                                       TEST(test_causes),
                                       TEST(test_causes_beside_resident),
                                       TEST(test_private_mappings_of_shared_files),
                                       TEST(test_program_in_memory),
                                       TEST(test_java_heap_in_a_memory_file),
                                       TEST(test_locked_files),
                                       TEST(test_hidden_stacks_are_noted),
                                       TEST(test_forked_and_huge),
                                       TEST(test_replaced_runtime),
                                       TEST(test_openblas),
                                       TEST(test_not_permitted),
                                       TEST(test_refusals),
                                       TEST(test_no_descriptors),
                                       TEST(test_thread_leads_to_process),
                                       TEST(test_plimsoll_run),
                                       TEST(test_cgroup_levels),
                                       TEST(test_cgroup_of_an_older_kernel),
                                       TEST(test_cgroup_version_1),
                                       TEST(test_tree),
                                       TEST(test_memory_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
