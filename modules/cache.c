/* The cache of pages: SQLite in memory that is given to it. Values lie in one table, and in another, which is small, by
 * key when each was used last: a clock that ticks with every use. What they take is bounded before a value is put, and
 * SQLite is told how many pages the file may have at most, so the bound does not hang on the sum being right.
 *
 * What goes first is what was not used for longest; but of values that were never asked for again, a cache that is
 * full has only a sixteenth of itself on trial. So a scan of more than it holds does not wash out what is used, and one
 * that comes again and again finds most of what fits, where plain LRU finds nothing. A value on trial that is asked for
 * stays. That a cache whose values are not asked for any more fills with others all the same, one in 32 new ones stays
 * at once (bimodal insertion: Qureshi et al., Adaptive insertion policies for high performance caching, 2007).
 *
 * In the table the clock of a value on trial is negative, less by TRIAL: so one order has those on trial first.
 *
 * Uses are collected in a transaction that ends after so many or so many bytes; then the file leaves the kernel's
 * cache. Nothing waits for the disk: after a failure of power the file may be damaged, which whoever reads a value must
 * find out (data/pages/cache.c has a checksum in each). */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/pages/cache_module.h"
#include "data/pages/heap.h"

enum {
    PAGE_BYTES = 4096,
    OVERFLOW_BYTES = PAGE_BYTES - 4, /* of a value in each further page */
    CACHED_PAGES = 40,
    TRIAL_SHARE = 16,        /* of the bytes are for values on trial: one part in so many */
    STAYS_AT_ONCE = 32,      /* one of so many new ones */
    VACUUM_PAGES = 64,       /* given back at once */
    USES_MAX = 128,          /* of a transaction, */
    CHANGED_MAX = 1 << 20,   /* and bytes */
    APPLICATION = 0x506c6d70 /* "Plmp" */
};

#define TRIAL ((int64_t)1 << 62)

enum { GET, READ, TOUCH, PUT, PUT_PAGE, OLDEST, OLDEST_STAYING, DROP, DROP_PAGE, BEGIN, COMMIT, STATEMENTS };
static const char *const texts[STATEMENTS] = {
    [GET] = "SELECT page, used, bytes FROM entry WHERE key = ?1",
    [READ] = "SELECT packed FROM page WHERE id = ?1",
    [TOUCH] = "UPDATE entry SET used = ?2 WHERE key = ?1",
    [PUT] = "INSERT INTO entry(key, used, bytes, page) VALUES(?1, ?2, ?3, ?4)",
    [PUT_PAGE] = "INSERT INTO page(packed) VALUES(?1)",
    [OLDEST] = "SELECT key, page, bytes, used FROM entry ORDER BY used LIMIT 1",
    [OLDEST_STAYING] = "SELECT key, page, bytes, used FROM entry WHERE used > 0 ORDER BY used LIMIT 1",
    [DROP] = "DELETE FROM entry WHERE key = ?1",
    [DROP_PAGE] = "DELETE FROM page WHERE id = ?1",
    [BEGIN] = "BEGIN",
    [COMMIT] = "COMMIT",
};

struct pl_cache_store {
    pl_page_heap heap;
    sqlite3 *db;
    sqlite3_stmt *statement[STATEMENTS];
    int fd; /* of the file, for the kernel's cache; closed last, for that lets go of the file's locks */
    uint64_t bytes_max, bytes, values;
    uint64_t trial_bytes; /* of them on trial */
    int64_t clock;
    uint32_t turn;       /* counts new ones up to STAYS_AT_ONCE */
    uint32_t uses, full; /* of the transaction; how often the file was */
    uint64_t changed;
    bool in_transaction;
    char why[160];
};

/* ---- SQLite's memory ---- */

static pl_cache_store *memory_of; /* whose heap it is: one at a time */

/* The size stands before the block. */
enum { SIZE_BYTES = 16 };

static void *give(int bytes)
{
    uint8_t *block = pl_page_heap_alloc(&memory_of->heap, (size_t)bytes + SIZE_BYTES, SIZE_BYTES);
    if (!block) return NULL;
    memcpy(block, &bytes, sizeof bytes);
    return block + SIZE_BYTES;
}

static int size_of(void *block)
{
    int bytes = 0;
    if (block) memcpy(&bytes, (uint8_t *)block - SIZE_BYTES, sizeof bytes);
    return bytes;
}

static void take_back(void *block)
{
    if (block) pl_page_heap_free(&memory_of->heap, (uint8_t *)block - SIZE_BYTES);
}

static void *resize(void *block, int bytes)
{
    void *larger = give(bytes);
    if (!larger) return NULL;
    memcpy(larger, block, (size_t)(size_of(block) < bytes ? size_of(block) : bytes));
    take_back(block);
    return larger;
}

static int round_up(int bytes) { return (bytes + 15) & ~15; }
static int begin_memory(void *unused) { return (void)unused, SQLITE_OK; }
static void end_memory(void *unused) { (void)unused; }

static int begin_sqlite(void)
{
    static const sqlite3_mem_methods methods = {give,     take_back,    resize,     size_of,
                                                round_up, begin_memory, end_memory, NULL};
    int status = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    if (status == SQLITE_OK) status = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    if (status == SQLITE_OK) status = sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    if (status == SQLITE_OK) status = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (status == SQLITE_OK) status = sqlite3_initialize();
    return status;
}

/* ---- statements ---- */

/* What the machine cannot do now is a failure; all else comes of what stands in the file. */
static bool is_failure(int status)
{
    static const uint8_t failures[] = {SQLITE_PERM,  SQLITE_BUSY,     SQLITE_LOCKED, SQLITE_NOMEM,
                                       SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL,   SQLITE_NOLFS};
    return memchr(failures, status & 0xff, sizeof failures) != NULL;
}

/* A file that SQLite only reads may be closed to us, which is no damage; or its header asks for that, which is. */
static bool is_closed_to_us(const pl_cache_store *s, int status)
{
    const char *path = s->db ? sqlite3_db_filename(s->db, "main") : NULL;
    return (status & 0xff) == SQLITE_READONLY && path && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0;
}

static pl_cache_answer answer_of(pl_cache_store *s, int status)
{
    const bool is_own = s->db && sqlite3_errcode(s->db) == status;
    if (is_closed_to_us(s, status)) {
        snprintf(s->why, sizeof s->why, "its file cannot be written: %s", strerror(errno));
        return PL_CACHE_FAILED;
    }
    snprintf(s->why, sizeof s->why, "%s", is_own ? sqlite3_errmsg(s->db) : sqlite3_errstr(status));
    return is_failure(status) ? PL_CACHE_FAILED : PL_CACHE_DAMAGED;
}

/* A step of what was bound; rows are read before the statement is done. */
static pl_cache_answer step(pl_cache_store *s, int which)
{
    const int status = sqlite3_step(s->statement[which]);
    if (status == SQLITE_ROW) return PL_CACHE_OK;
    const pl_cache_answer answer = status == SQLITE_DONE ? PL_CACHE_NONE : answer_of(s, status);
    sqlite3_reset(s->statement[which]);
    return answer;
}

/* Of one without rows. */
static pl_cache_answer run(pl_cache_store *s, int which)
{
    const pl_cache_answer answer = step(s, which);
    sqlite3_reset(s->statement[which]);
    return answer == PL_CACHE_NONE ? PL_CACHE_OK : answer;
}

static void bind_key(pl_cache_store *s, int which, const uint8_t *key)
{
    sqlite3_bind_blob(s->statement[which], 1, key, PL_CACHE_KEY_BYTES, SQLITE_STATIC);
}

static int64_t number_of(pl_cache_store *s, const char *text)
{
    sqlite3_stmt *q = NULL;
    int64_t number = -1;
    if (sqlite3_prepare_v2(s->db, text, -1, &q, NULL) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
        number = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return number;
}

/* ---- transactions ---- */

static pl_cache_answer begin(pl_cache_store *s)
{
    if (s->in_transaction) return PL_CACHE_OK;
    const pl_cache_answer answer = run(s, BEGIN);
    s->in_transaction = answer == PL_CACHE_OK;
    return answer;
}

/* What was written goes to the disk and what was read out of the kernel's cache. */
static void leave_cache(const pl_cache_store *s)
{
    if (s->fd < 0) return;
    (void)sync_file_range(s->fd, 0, 0,
                          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    (void)posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
}

static pl_cache_answer commit(pl_cache_store *s)
{
    if (!s->in_transaction) return PL_CACHE_OK;
    const pl_cache_answer answer = run(s, COMMIT);
    s->in_transaction = false;
    s->uses = 0, s->changed = 0;
    leave_cache(s);
    return answer;
}

static pl_cache_answer count_use(pl_cache_store *s, uint64_t bytes)
{
    s->changed += bytes;
    return ++s->uses >= USES_MAX || s->changed >= CHANGED_MAX ? commit(s) : PL_CACHE_OK;
}

/* ---- opening ---- */

static const char schema[] = "CREATE TABLE IF NOT EXISTS entry(key BLOB PRIMARY KEY, used INTEGER NOT NULL, "
                             "bytes INTEGER NOT NULL, page INTEGER NOT NULL) WITHOUT ROWID;"
                             "CREATE INDEX IF NOT EXISTS by_use ON entry(used);"
                             "CREATE TABLE IF NOT EXISTS page(id INTEGER PRIMARY KEY, packed BLOB NOT NULL);";

static int execute(pl_cache_store *s, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sqlite3_exec(s->db, text, NULL, NULL, NULL);
}

/* Its first transaction opens the journal, for good: locked alone and truncated it is never opened again. */
static int begin_file(pl_cache_store *s, uint64_t file_bytes)
{
    int status = execute(s,
                         "PRAGMA locking_mode=EXCLUSIVE; PRAGMA page_size=%d; PRAGMA auto_vacuum=INCREMENTAL; "
                         "PRAGMA journal_mode=TRUNCATE; "
                         "PRAGMA synchronous=OFF; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA "
                         "secure_delete=OFF; PRAGMA cache_size=%d; PRAGMA cache_spill=%d;",
                         PAGE_BYTES, CACHED_PAGES, CACHED_PAGES);
    if (status == SQLITE_OK)
        status = execute(s, "PRAGMA max_page_count=%llu;", (unsigned long long)(file_bytes / PAGE_BYTES));
    if (status != SQLITE_OK) return status;
    const int64_t application = number_of(s, "PRAGMA application_id"),
                  tables = number_of(s, "SELECT count(*) FROM sqlite_schema");
    if (tables < 0) return sqlite3_errcode(s->db) == SQLITE_OK ? SQLITE_CORRUPT : sqlite3_errcode(s->db);
    if (tables > 0 && application != APPLICATION) return SQLITE_NOTADB;
    status = execute(s, "BEGIN; PRAGMA application_id=%d; %s PRAGMA user_version=%d; COMMIT;", APPLICATION, schema,
                     (int)(number_of(s, "PRAGMA user_version") % 1000000 + 1));
    for (int i = 0; i < STATEMENTS && status == SQLITE_OK; i++)
        status = sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statement[i], NULL);
    return status;
}

/* Of those on trial where there are any, or of those that stay. */
static pl_cache_answer drop_oldest(pl_cache_store *s, int which)
{
    uint8_t key[PL_CACHE_KEY_BYTES];
    const pl_cache_answer found = step(s, which);
    if (found != PL_CACHE_OK) return found == PL_CACHE_NONE ? answer_of(s, SQLITE_CORRUPT) : found;
    sqlite3_stmt *q = s->statement[which];
    const bool whole = sqlite3_column_bytes(q, 0) == PL_CACHE_KEY_BYTES;
    if (whole) memcpy(key, sqlite3_column_blob(q, 0), sizeof key);
    const int64_t page = sqlite3_column_int64(q, 1), bytes = sqlite3_column_int64(q, 2);
    const bool on_trial = sqlite3_column_int64(q, 3) < 0;
    sqlite3_reset(q);
    if (!whole || bytes < 0 || (uint64_t)bytes > (on_trial ? s->trial_bytes : s->bytes) || s->values == 0)
        return answer_of(s, SQLITE_CORRUPT);
    bind_key(s, DROP, key);
    sqlite3_bind_int64(s->statement[DROP_PAGE], 1, page);
    pl_cache_answer answer = run(s, DROP);
    if (answer == PL_CACHE_OK) answer = run(s, DROP_PAGE);
    s->bytes -= (uint64_t)bytes;
    s->trial_bytes -= on_trial ? (uint64_t)bytes : 0;
    s->values--;
    return answer;
}

/* Who goes for a new value: of its own kind the oldest, unless those on trial have not their share yet. */
static int choose_victim(const pl_cache_store *s, uint64_t bytes, bool on_trial)
{
    const bool trial_is_full = s->trial_bytes + bytes > s->bytes_max / TRIAL_SHARE;
    if (s->trial_bytes == s->bytes) return OLDEST; /* all are */
    return on_trial && trial_is_full && s->trial_bytes ? OLDEST : OLDEST_STAYING;
}

/* Until so many bytes more have room. */
static pl_cache_answer make_room(pl_cache_store *s, uint64_t bytes, bool on_trial)
{
    pl_cache_answer answer = begin(s);
    while (answer == PL_CACHE_OK && s->bytes + bytes > s->bytes_max && s->values)
        answer = drop_oldest(s, choose_victim(s, bytes, on_trial));
    return answer;
}

/* Until it has its bound: of any number, so in several transactions, that the journal keeps its own. */
static pl_cache_answer give_up_more(pl_cache_store *s)
{
    pl_cache_answer answer = PL_CACHE_OK;
    while (answer == PL_CACHE_OK && s->bytes > s->bytes_max && s->values) {
        answer = begin(s);
        if (answer == PL_CACHE_OK) answer = drop_oldest(s, OLDEST);
        if (answer == PL_CACHE_OK) answer = count_use(s, 0);
    }
    return answer == PL_CACHE_OK ? commit(s) : answer;
}

static pl_cache_answer count_all(pl_cache_store *s)
{
    const int64_t values = number_of(s, "SELECT count(*) FROM entry"),
                  bytes = number_of(s, "SELECT coalesce(sum(bytes), 0) FROM entry"),
                  trial = number_of(s, "SELECT coalesce(sum(bytes), 0) FROM entry WHERE used < 0"),
                  clock = number_of(s, "SELECT coalesce(max(used), 0) FROM entry WHERE used > 0"),
                  on_trial = number_of(s, "SELECT coalesce(max(used) + (1 << 62), 0) FROM entry WHERE used < 0");
    if (values < 0 || bytes < 0 || trial < 0 || trial > bytes || clock < 0 || on_trial < 0)
        return answer_of(s, SQLITE_CORRUPT);
    s->values = (uint64_t)values, s->bytes = (uint64_t)bytes, s->trial_bytes = (uint64_t)trial;
    s->clock = clock > on_trial ? clock : on_trial;
    return give_up_more(s); /* the file may have been allowed more */
}

static void close_store(pl_cache_store *s)
{
    if (s->in_transaction) (void)commit(s);
    for (int i = 0; i < STATEMENTS; i++) sqlite3_finalize(s->statement[i]);
    sqlite3_close(s->db);
    if (s->fd >= 0) close(s->fd);
    sqlite3_shutdown();
    memory_of = NULL;
}

static pl_cache_answer open_file(pl_cache_store *s, const char *path, uint64_t file_bytes)
{
    int status = begin_sqlite();
    if (status == SQLITE_OK) status = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (status == SQLITE_OK) status = begin_file(s, file_bytes);
    if (status != SQLITE_OK) return answer_of(s, status);
    s->fd = open(path, O_RDONLY | O_CLOEXEC);
    return count_all(s);
}

static pl_cache_answer open_store(void *memory, uint64_t bytes, const char *path, uint64_t file_bytes,
                                  pl_cache_store **store, char *why, size_t room)
{
    pl_cache_store *s = memory;
    snprintf(why, room, "another is open in this process");
    if (memory_of) return PL_CACHE_FAILED;
    snprintf(why, room, "its memory is too small");
    if (bytes < sizeof *s + PAGE_BYTES) return PL_CACHE_FAILED;
    /* Of the file a sixteenth is for what SQLite keeps beside the values. */
    *s = (pl_cache_store){.fd = -1, .bytes_max = file_bytes - file_bytes / 16 - 16 * PAGE_BYTES};
    pl_page_heap_init(&s->heap, s + 1, bytes - sizeof *s);
    memory_of = s;
    const pl_cache_answer answer = open_file(s, path, file_bytes);
    snprintf(why, room, "%s", s->why);
    if (answer != PL_CACHE_OK) return close_store(s), answer;
    *store = s;
    return PL_CACHE_OK;
}

/* ---- values ---- */

static pl_cache_answer read_page(pl_cache_store *s, int64_t page, void *to, uint64_t room, uint64_t *bytes)
{
    sqlite3_bind_int64(s->statement[READ], 1, page);
    pl_cache_answer answer = step(s, READ);
    if (answer == PL_CACHE_NONE) return answer_of(s, SQLITE_CORRUPT); /* an entry without its page */
    if (answer != PL_CACHE_OK) return answer;
    const void *value = sqlite3_column_blob(s->statement[READ], 0);
    *bytes = (uint64_t)sqlite3_column_bytes(s->statement[READ], 0);
    if (*bytes > room)
        answer = answer_of(s, SQLITE_CORRUPT);
    else if (*bytes && !value)
        answer = answer_of(s, sqlite3_errcode(s->db));
    else if (*bytes)
        memcpy(to, value, *bytes);
    sqlite3_reset(s->statement[READ]);
    return answer;
}

static pl_cache_answer get(pl_cache_store *s, const uint8_t *key, void *to, uint64_t room, uint64_t *bytes)
{
    bind_key(s, GET, key);
    pl_cache_answer answer = step(s, GET);
    if (answer != PL_CACHE_OK) return answer;
    const int64_t page = sqlite3_column_int64(s->statement[GET], 0), cost = sqlite3_column_int64(s->statement[GET], 2);
    const bool on_trial = sqlite3_column_int64(s->statement[GET], 1) < 0;
    sqlite3_reset(s->statement[GET]);
    if (cost < 0 || (on_trial && (uint64_t)cost > s->trial_bytes)) return answer_of(s, SQLITE_CORRUPT);
    answer = read_page(s, page, to, room, bytes);
    if (answer == PL_CACHE_OK) answer = begin(s);
    if (answer != PL_CACHE_OK) return answer;
    bind_key(s, TOUCH, key);
    sqlite3_bind_int64(s->statement[TOUCH], 2, ++s->clock); /* and it stays */
    answer = run(s, TOUCH);
    if (answer != PL_CACHE_OK) return answer;
    s->trial_bytes -= on_trial ? (uint64_t)cost : 0;
    return count_use(s, *bytes);
}

/* What a value takes of the file: as the file's format has it, its further pages, what is left of it in a leaf (which
 * holds whole pieces, so that half of one may be empty), and its places in the two indices. */
static uint64_t cost_of(uint64_t bytes)
{
    enum {
        ENTRY_BYTES = 160,
        CELL_BYTES = 16,
        LOCAL_MAX = PAGE_BYTES - 35,
        LOCAL_MIN = (PAGE_BYTES - 12) * 32 / 255 - 23
    };
    uint64_t local = bytes;
    if (bytes > LOCAL_MAX) {
        local = LOCAL_MIN + (bytes - LOCAL_MIN) % OVERFLOW_BYTES;
        if (local > LOCAL_MAX) local = LOCAL_MIN;
    }
    const uint64_t overflow = (bytes - local + OVERFLOW_BYTES - 1) / OVERFLOW_BYTES, in_leaf = local + CELL_BYTES;
    return overflow * PAGE_BYTES + (in_leaf > PAGE_BYTES / 2 ? PAGE_BYTES : in_leaf * 4 / 3) + ENTRY_BYTES;
}

static pl_cache_answer put_value(pl_cache_store *s, const uint8_t *key, const void *value, uint64_t bytes,
                                 uint64_t cost, bool on_trial)
{
    sqlite3_bind_blob(s->statement[PUT_PAGE], 1, value, (int)bytes, SQLITE_STATIC);
    pl_cache_answer answer = run(s, PUT_PAGE);
    if (answer != PL_CACHE_OK) return answer;
    bind_key(s, PUT, key);
    sqlite3_bind_int64(s->statement[PUT], 2, ++s->clock - (on_trial ? TRIAL : 0));
    sqlite3_bind_int64(s->statement[PUT], 3, (int64_t)cost);
    sqlite3_bind_int64(s->statement[PUT], 4, sqlite3_last_insert_rowid(s->db));
    answer = run(s, PUT);
    if (answer != PL_CACHE_OK) return answer;
    s->bytes += cost;
    s->trial_bytes += on_trial ? cost : 0;
    s->values++;
    return count_use(s, cost);
}

/* What comes first stays; of what comes to a full cache, one in so many. */
static bool goes_on_trial(pl_cache_store *s, uint64_t cost)
{
    if (s->bytes + cost <= s->bytes_max || cost > s->bytes_max / TRIAL_SHARE) return false;
    s->turn = (s->turn + 1) % STAYS_AT_ONCE;
    return s->turn != 0;
}

/* The file has as many pages as it may, though the sum said that there was room: less is kept from now on. SQLite has
 * undone the transaction, or does so now. */
static pl_cache_answer keep_less(pl_cache_store *s)
{
    enum { TIMES_MAX = 16 };
    if (++s->full > TIMES_MAX) return PL_CACHE_FAILED;
    if (!sqlite3_get_autocommit(s->db)) (void)execute(s, "ROLLBACK");
    s->in_transaction = false;
    s->bytes_max -= s->bytes_max / 8;
    return count_all(s);
}

static pl_cache_answer put(pl_cache_store *s, const uint8_t *key, const void *value, uint64_t bytes)
{
    const uint64_t cost = cost_of(bytes);
    if (cost > s->bytes_max || bytes > PL_CACHE_VALUE_BYTES_MAX) return PL_CACHE_NONE;
    bind_key(s, GET, key);
    pl_cache_answer answer = step(s, GET); /* another thread may have put it meanwhile */
    sqlite3_reset(s->statement[GET]);
    if (answer != PL_CACHE_NONE) return answer;
    const bool on_trial = goes_on_trial(s, cost);
    answer = make_room(s, cost, on_trial); /* drops as much as it puts */
    if (answer == PL_CACHE_OK) answer = put_value(s, key, value, bytes, cost, on_trial);
    return answer == PL_CACHE_FAILED && sqlite3_errcode(s->db) == SQLITE_FULL ? keep_less(s) : answer;
}

/* ---- a smaller file ---- */

/* Pages that no value has go from the end of the file, some at once, so that the journal keeps its bound. */
static pl_cache_answer give_back_pages(pl_cache_store *s)
{
    int status = SQLITE_OK;
    for (int64_t spare = number_of(s, "PRAGMA freelist_count"), before = spare + 1;
         status == SQLITE_OK && spare > 0 && spare < before; spare = number_of(s, "PRAGMA freelist_count")) {
        before = spare;
        status = execute(s, "PRAGMA incremental_vacuum(%d);", VACUUM_PAGES);
    }
    return status == SQLITE_OK ? PL_CACHE_OK : answer_of(s, status);
}

static pl_cache_answer shrink(void *memory, uint64_t bytes, const char *path, uint64_t file_bytes, char *why,
                              size_t room)
{
    pl_cache_store *s;
    pl_cache_answer answer = open_store(memory, bytes, path, file_bytes, &s, why, room);
    if (answer != PL_CACHE_OK) return answer;
    const bool can = number_of(s, "PRAGMA auto_vacuum") == 2;
    snprintf(why, room, "an earlier version made it, which cannot be made smaller");
    answer = can ? give_back_pages(s) : PL_CACHE_NONE;
    if (answer == PL_CACHE_OK && (uint64_t)number_of(s, "PRAGMA page_count") * PAGE_BYTES > file_bytes)
        answer = answer_of(s, SQLITE_CORRUPT);
    if (answer == PL_CACHE_FAILED || answer == PL_CACHE_DAMAGED) snprintf(why, room, "%s", s->why);
    close_store(s);
    return answer;
}

static const char *why(const pl_cache_store *s) { return s->why; }

static void tell(pl_cache_store *s, pl_cache_facts *f)
{
    *f = (pl_cache_facts){.values = s->values,
                          .bytes = s->bytes,
                          .used_bytes = s->heap.used,
                          .peak_bytes = s->heap.peak,
                          .refused = s->heap.refused};
}

extern const pl_cache_module pl_cache_functions;
__attribute__((visibility("default"))) const pl_cache_module pl_cache_functions = {.version = PL_CACHE_VERSION,
                                                                                   .open = open_store,
                                                                                   .get = get,
                                                                                   .put = put,
                                                                                   .why = why,
                                                                                   .tell = tell,
                                                                                   .shrink = shrink,
                                                                                   .close = close_store};
