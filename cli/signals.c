#include "signals.h"

#include <stddef.h>
#include <unistd.h>

#include "plimsoll/status.h"

volatile int pl_signal_stop;
static volatile sig_atomic_t stopped_by, ledger_wanted;
static sigset_t changed; /* by pl_signals_ignore; what was ignored before is not in it */

static void on_stop(int number)
{
    if (stopped_by && number != SIGHUP) _exit(128 + number);
    stopped_by = number;
    pl_signal_stop = 1;
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

void pl_signals_install(void)
{
    install(SIGINT, on_stop);
    install(SIGTERM, on_stop);
    install(SIGHUP, on_stop);
    install(SIGUSR1, on_ledger);
}

bool pl_signal_take_ledger(void)
{
    bool wanted = ledger_wanted;
    ledger_wanted = 0;
    return wanted;
}

int pl_signal_exit_code(void)
{
    bool asked = stopped_by == SIGINT || stopped_by == SIGTERM;
    return asked ? 128 + stopped_by : pl_status_exit_code(PL_E_STOPPED);
}
