#include "signals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "out.h"
#include "plimsoll/status.h"

volatile int pl_signal_stop;
static volatile sig_atomic_t stopped_by, ledger_wanted;
static struct timespec stopped_at; /* by the first signal; the others only read it */
typedef struct last_words {
    const char *text;
    size_t bytes;
    bool is_saved;
} last_words;
static const last_words *volatile last; /* NULL: there is nothing that could be lost */
static sigset_t changed;                /* by pl_signals_ignore; what was ignored before is not in it */

static int exit_code(int number)
{
    return number == SIGINT || number == SIGTERM ? 128 + number : pl_status_exit_code(PL_E_STOPPED);
}

/* Steps that nobody can go on from are a failure, not a stop. */
static _Noreturn void leave(int number)
{
    const last_words *said = last;
    pl_say_end_line();
    if (said) pl_say_bytes(said->text, said->bytes);
    _exit(!said || said->is_saved ? exit_code(number) : 1);
}

static void on_leave(int number) { leave(number); }

/* One end is often told twice at once: timeout(1) signals its child and then its group. */
static bool is_echo(const struct timespec *now)
{
    double apart = (double)(now->tv_sec - stopped_at.tv_sec) + 1e-9 * (double)(now->tv_nsec - stopped_at.tv_nsec);
    return apart < PL_SIGNAL_ECHO_SECONDS;
}

static void on_note(int number)
{
    int kept = errno;
    if (!stopped_by) clock_gettime(CLOCK_MONOTONIC, &stopped_at);
    stopped_by = stopped_by ? stopped_by : number;
    pl_signal_stop = 1;
    errno = kept;
}

static void on_stop(int number)
{
    struct timespec now;
    int kept = errno;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (stopped_by && number != SIGHUP && !is_echo(&now)) leave(number);
    errno = kept;
    on_note(number);
}

static void on_ledger(int number)
{
    (void)number;
    ledger_wanted = 1;
}

static void install(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    (void)sigemptyset(&action.sa_mask);
    /* nohup and shells without job control have good reasons to ignore these. */
    bool inherited = sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN && number != SIGUSR1;
    if (!inherited) (void)sigaction(number, &action, NULL);
}

static void ignore(int number)
{
    if (signal(number, SIG_IGN) != SIG_IGN) (void)sigaddset(&changed, number);
}

void pl_signals_ignore(void)
{
    (void)sigemptyset(&changed);
    ignore(SIGUSR1); /* asks a runner for its ledger; must not end what plans, or a runner that begins */
    ignore(SIGXFSZ); /* a file at its limit (ulimit -f) is a write that fails, with a sentence */
}

const sigset_t *pl_signals_changed(void) { return &changed; }

static sigset_t ends(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    return set;
}

static void install_ends(void (*handler)(int))
{
    install(SIGINT, handler);
    install(SIGTERM, handler);
    install(SIGHUP, handler);
}

static void hear_ends(void (*handler)(int))
{
    const sigset_t set = ends();
    install_ends(handler);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* what pl_signals_hold kept back is delivered here */
}

/* A thread other than the main one, which blocks the signal, is about to disappear; the main thread carries it over. */
static void on_hold(int number) { (void)syscall(SYS_tgkill, getpid(), getpid(), number); }

void pl_signals_leave(void) { hear_ends(on_leave); }
void pl_signals_catch(void) { hear_ends(on_stop); }
void pl_signals_note(void) { hear_ends(on_note); }

void pl_signals_forget(void)
{
    stopped_by = 0;
    pl_signal_stop = 0;
}

/* A blocked signal stays pending through exec, while handlers do not: without this, one that comes between exec and the
 * next program's handlers would end the process as if it had none. */
void pl_signals_hold(void)
{
    const sigset_t set = ends();
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    install_ends(on_hold);
    if (stopped_by) on_hold(stopped_by); /* it came after the last look at pl_signal_stop */
}

void pl_signals_outlive_readers(void) { (void)signal(SIGPIPE, SIG_IGN); }

void pl_signals_ledger(void) { install(SIGUSR1, on_ledger); }

/* ---- mapped files ---- */

static const char *(*file_at)(const void *address);
static const char *command_name;

static void say_text(const char *text) { pl_say_bytes(text, strlen(text)); }

/* The first thread speaks; others, which meet the same at once, wait for the end. */
static void on_lost_page(int number, siginfo_t *info, void *context)
{
    static atomic_flag spoken = ATOMIC_FLAG_INIT;
    const char *file = file_at(info->si_addr);
    (void)context;
    if (!file) {
        (void)signal(number, SIG_DFL); /* the same access again ends the process */
        return;
    }
    while (atomic_flag_test_and_set(&spoken)) (void)pause();
    pl_say_end_line();
    say_text("plimsoll ");
    say_text(command_name);
    say_text(": ");
    say_text(file);
    say_text(": became shorter, or cannot be read any more, while it was mapped (--weights mmap)\n"
             "  start again when it is whole\n");
    _exit(pl_status_exit_code(PL_E_STORAGE));
}

void pl_signals_name_files(const char *command, const char *(*find)(const void *address))
{
    struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&action.sa_mask);
    command_name = command;
    file_at = find;
    (void)sigaction(SIGBUS, &action, NULL);
}

void pl_signals_last_words(const char *text, size_t bytes, bool is_saved)
{
    static last_words both[2];
    last_words *next = last == &both[0] ? &both[1] : &both[0];
    *next = (last_words){text, bytes, is_saved};
    last = next;
}

bool pl_signal_take_ledger(void)
{
    bool wanted = ledger_wanted;
    ledger_wanted = 0;
    return wanted;
}

int pl_signal_exit_code(void) { return exit_code(stopped_by); }
