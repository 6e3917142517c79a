/* A process whose memory is known by construction, as an oracle for the doctor:
 *
 *     known_memory KEY=NUMBER…
 *
 *     threads=K stack=BYTES pages=T   K threads with stacks of so many bytes, T pages of each touched and no fewer
 *     anonymous=M untouched=R         private anonymous memory: M bytes touched, R more only reserved
 *     bss=B                           B bytes (at most 3 MiB) of the program's zeroed data touched
 *     maps=N                          N mappings of a page, each touched
 *     heap=B                          the heap grown by B bytes, all touched
 *     huge=H                          H bytes with MADV_HUGEPAGE, touched
 *     arenas=1                        each thread asks malloc for a block
 *     shared=S memfd=S sysv=S         MAP_SHARED anonymous, a memory file, a System V segment
 *     file=F written=W                FILE (in the current folder, "mapped.bin") of F bytes: mapped shared and read;
 *                                     mapped privately, W bytes written
 *     joined=B                        a thread on the lowest MiB of one mapping, of which B bytes more are touched
 *     sparse=R                        R bytes of which one in every 2 MiB is read: page tables, and hardly a page
 *     spin=1                          one more thread, that never sleeps
 *
 * It says on one line of JSON what it holds, with the pages of each thread's stack as /proc/self/pagemap tells them,
 * and waits to be killed. Sizes are multiples of the page size. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, THREADS_MAX = 256, HUGE_PAGE = 2 << 20, ZEROED = 3 << 20 };

static char zeroed[ZEROED] __attribute__((aligned(4096)));

static uint64_t value_of(int argc, char **argv, const char *key)
{
    size_t bytes = strlen(key);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], key, bytes) == 0 && argv[i][bytes] == '=') return strtoull(argv[i] + bytes + 1, NULL, 10);
    return 0;
}

static void *must(void *memory)
{
    if (memory == MAP_FAILED) perror("known_memory: mmap"), exit(1);
    return memory;
}

static void touch(char *memory, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PAGE) memory[at] = 1;
}

/* Between two pages without access, so that the kernel joins it with nothing. */
static char *map_alone(uint64_t bytes)
{
    char *whole = must(mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (mprotect(whole + PAGE, bytes, PROT_READ | PROT_WRITE)) perror("known_memory: mprotect"), exit(1);
    return whole + PAGE;
}

/* ---- threads ---- */

typedef struct thread {
    uint64_t pages;
    int arena;
    pid_t id;
    char *low;
    size_t bytes;
    void *block;
} thread;

static thread threads[THREADS_MAX];
static pthread_barrier_t ready;

/* Touches the pages of its stack down from where it stands. */
static __attribute__((noinline)) void touch_stack(const thread *t)
{
    volatile char *here = (volatile char *)__builtin_frame_address(0);
    char *page = (char *)((uintptr_t)here & ~(uintptr_t)(PAGE - 1));
    for (uint64_t i = 1; i <= t->pages && page - i * PAGE > t->low; i++) *(volatile char *)(page - i * PAGE) = 1;
}

static void *wait_for_ever(void *argument)
{
    thread *t = argument;
    pthread_attr_t attributes;
    void *low;
    t->id = (pid_t)syscall(SYS_gettid);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &t->bytes);
        (void)pthread_attr_destroy(&attributes);
        t->low = low;
    }
    touch_stack(t);
    if (t->arena) t->block = malloc(1000);
    pthread_barrier_wait(&ready);
    while (pause()) continue; /* it always fails, with EINTR */
    return NULL;
}

static void *spin(void *argument)
{
    volatile uint64_t count = 0;
    for (;;) count++;
    return argument;
}

static void start(uint64_t count, uint64_t stack_bytes, uint64_t pages, int arena)
{
    pthread_attr_t attributes;
    pthread_t handle;
    (void)pthread_attr_init(&attributes);
    if (stack_bytes) (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    (void)pthread_barrier_init(&ready, NULL, (unsigned)count + 1);
    for (uint64_t i = 0; i < count; i++) {
        threads[i] = (thread){.pages = pages, .arena = arena};
        if (pthread_create(&handle, &attributes, wait_for_ever, &threads[i])) perror("known_memory: thread"), exit(1);
    }
    pthread_barrier_wait(&ready);
    usleep(100000); /* all of them sleep now, and touch nothing more */
}

static uint64_t count_present(const char *low, size_t bytes)
{
    uint64_t entry, present = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY);
    for (size_t at = 0; at < bytes; at += PAGE)
        if (pread(fd, &entry, sizeof entry, (off_t)(((uintptr_t)low + at) / PAGE * sizeof entry)) == sizeof entry)
            present += entry >> 63;
    close(fd);
    return present * PAGE;
}

/* ---- the rest ---- */

static void map_file(uint64_t bytes, uint64_t written)
{
    if (bytes == 0) return;
    int fd = open("mapped.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)bytes)) perror("known_memory: mapped.bin"), exit(1);
    char *shared = must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    touch(shared, bytes);
    char *own = must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    (void)madvise(own, bytes, MADV_RANDOM); /* no more pages around than the ones touched */
    touch(own, written);
    close(fd);
}

static void map_shared(uint64_t anonymous, uint64_t memfd, uint64_t sysv)
{
    if (anonymous)
        touch(must(mmap(NULL, anonymous, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), anonymous);
    if (memfd) {
        int fd = memfd_create("known", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, (off_t)memfd)) perror("known_memory: memfd"), exit(1);
        touch(must(mmap(NULL, memfd, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)), memfd);
        close(fd);
    }
    if (sysv) {
        int id = shmget(IPC_PRIVATE, sysv, IPC_CREAT | 0600);
        char *memory = id < 0 ? (char *)MAP_FAILED : shmat(id, NULL, 0);
        if (memory == MAP_FAILED) perror("known_memory: shmget"), exit(1);
        (void)shmctl(id, IPC_RMID, NULL);
        touch(memory, sysv);
    }
}

static void map_anonymous(uint64_t touched, uint64_t untouched, uint64_t huge)
{
    if (touched + untouched) touch(map_alone(touched + untouched), touched);
    if (!huge) return;
    char *memory = map_alone(huge + 2 * HUGE_PAGE);
    char *aligned = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    (void)madvise(aligned, huge, MADV_HUGEPAGE);
    touch(aligned, huge);
}

/* Neighbours differ in what they allow, so the kernel cannot join them. */
static void map_many(uint64_t count)
{
    if (count == 0) return;
    char *memory = must(mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    touch(memory, count * PAGE);
    for (uint64_t i = 0; i < count; i += 2)
        if (mprotect(memory + i * PAGE, PAGE, PROT_READ)) perror("known_memory: mprotect"), exit(1);
}

static void *sleep_for_ever(void *argument)
{
    pthread_barrier_wait(&ready);
    while (pause()) continue;
    return argument;
}

static void start_joined(uint64_t bytes)
{
    enum { OWN = 1 << 20 };
    pthread_attr_t attributes;
    pthread_t handle;
    if (bytes == 0) return;
    char *memory = map_alone(OWN + bytes);
    touch(memory + OWN, bytes);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstack(&attributes, memory, OWN);
    (void)pthread_barrier_init(&ready, NULL, 2);
    if (pthread_create(&handle, &attributes, sleep_for_ever, NULL)) perror("known_memory: thread"), exit(1);
    pthread_barrier_wait(&ready);
    usleep(100000);
}

static void read_sparsely(uint64_t bytes)
{
    volatile char sum = 0;
    if (bytes == 0) return;
    char *memory = must(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (uint64_t at = 0; at < bytes; at += HUGE_PAGE) sum = (char)(sum + memory[at]);
}

static void grow_heap(uint64_t bytes)
{
    char *old = sbrk((intptr_t)bytes);
    if (old == (char *)-1) perror("known_memory: sbrk"), exit(1);
    touch(old, bytes);
}

int main(int argc, char **argv)
{
#define VALUE(key) value_of(argc, argv, key)
    uint64_t count = VALUE("threads");
    pthread_t spinner;
    if (count > THREADS_MAX) return 1;
    setvbuf(stdout, malloc(1 << 16), _IOFBF, 1 << 16);
    map_anonymous(VALUE("anonymous"), VALUE("untouched"), VALUE("huge"));
    map_shared(VALUE("shared"), VALUE("memfd"), VALUE("sysv"));
    map_file(VALUE("file"), VALUE("written"));
    if (VALUE("bss") <= ZEROED) touch(zeroed, VALUE("bss"));
    map_many(VALUE("maps"));
    grow_heap(VALUE("heap"));
    start_joined(VALUE("joined"));
    read_sparsely(VALUE("sparse"));
    if (count) start(count, VALUE("stack"), VALUE("pages"), VALUE("arenas") != 0);
    if (VALUE("spin") && pthread_create(&spinner, NULL, spin, NULL)) return 1;
    printf("{\"stacks\": [");
    for (uint64_t i = 0; i < count; i++)
        printf("%s{\"thread\": %d, \"begin\": %ju, \"reserved_bytes\": %zu, \"touched_bytes\": %ju}", i ? ", " : "",
               (int)threads[i].id, (uintmax_t)(uintptr_t)threads[i].low, threads[i].bytes,
               (uintmax_t)count_present(threads[i].low, threads[i].bytes));
    printf("]}\n");
    fflush(stdout);
    for (;;) pause();
}
