/* What lies beside a file of results, NAME.blocks or NAME.h5 or a folder NAME: NAME.html, the page about it; of systems
 * whose page asks for it NAME.yaml, the whole config that it was made with last; and NAME.processes.jsonl, in which
 * each process that worked on it and came to its end left a line of what it planned and measured; and NAME.times.json,
 * where the time of the last of them went. */
#ifndef PL_STORE_BESIDE_H
#define PL_STORE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

#define PL_BESIDE_PAGE      ".html"
#define PL_BESIDE_CONFIG    ".yaml"
#define PL_BESIDE_PROCESSES ".processes.jsonl"
#define PL_BESIDE_TIMES     ".times.json"

/* A process: which of the groups of its work it was planned for, and how it went. */
typedef struct pl_process_told {
    uint64_t group;
    uint64_t planned_bytes, measured_bytes, peak_bytes; /* resident; resident, the kernel's own mark */
    bool as_planned;
    uint64_t items; /* that it made */
    double seconds; /* since all memory was in hand */
} pl_process_told;

/* The path of what lies beside; PL_E_USAGE when it is too long. */
pl_status pl_beside_path(const char *results, const char *ending, char path[PL_FILE_PATH_MAX], pl_error *);
/* Appends a line. Asks for no memory. */
pl_status pl_beside_append(const char *results, const pl_process_told *, pl_error *);
/* The results are new: what others told is no longer theirs. */
pl_status pl_beside_forget(const char *results, pl_error *);
/* What a kill left of the table of times goes: of results that are finished no other table takes its place. What cannot
 * be removed stays. */
void pl_beside_sweep(const char *results);
/* All lines, in a block for pl_free; what is no such line (a process was killed while it wrote) is passed over. None
 * where there is no such file. */
pl_status pl_beside_read(const char *results, pl_process_told **told, size_t *count, pl_error *);

#endif
