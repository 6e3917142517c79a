/* plimsoll verify: does every plan make the same update? And numbers for others to check. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "out.h"
#include "planning.h"
#include "signals.h"
#include "stages.h"

enum { GRADIENTS, CHECKPOINT, ALL, JSON, LEDGER };
enum { CHOICES = 48 }; /* where the last column begins */
static const pl_cli_option options[] = {
    [GRADIENTS] = {"--gradients", "FILE", "instead: write a batch, its loss and every gradient as safetensors"},
    [CHECKPOINT] = {"--checkpoint", "DIR",
                    "a checkpoint's folder; default: the run's best, else its latest, else first weights"},
    [ALL] = {"--all", NULL, "every combination of choices, instead of all of one or two changes"},
    [JSON] = {"--json", NULL, "print the table as JSON (schema plimsoll.verify/1)", true},
    [LEDGER] = {"--ledger", NULL, "with --gradients: print planned and measured memory at the end, to stderr"},
};

static const char about[] =
    "Makes two training steps with the plain plan (everything kept, the whole batch at once where this machine can "
    "hold that) and with each choice that saves memory or time, alone and combined: micro-batches, recompute, "
    "layer-major, feed-forward layers in chunks, updates in the backward pass, threads. Prints for each how far loss "
    "and gradients are from the plain plan's, whether weights and optimizer state are the same bits after the two "
    "steps, and whether a second run gives the same bits. Mixed precision rounds: its plain plan (mixed_precision "
    "bf16 alone) has a bound of its own, printed with it, and the choices with it are compared with that plan. "
    "Nothing is written, and no budget binds. What else changes numbers on purpose (train.optimizer_state) stays as "
    "it is. Each update is also compared with the optimizer's, computed separately in double. Exit 6 when a plan makes "
    "another update: more than 2^-12 of a gradient's largest number, 2^-16 of the loss, other bits the second time, or "
    "an update further from the optimizer's than roundings explain.\n"
    "\n"
    "With --gradients FILE: writes one batch (inputs, targets), the loss and the gradient of every weight at the "
    "weights of the checkpoint's model.safetensors (the averages, where train.ema_rate keeps some), so that anyone can "
    "compare them with another framework, and prints what is in the file.\n";

/* ---- the table ---- */

typedef struct view {
    bool json;
    uint64_t rows;
    char refused[320]; /* the newest sentence */
    pl_status status;  /* of standard output */
    pl_error error;
} view;

static const char *verdict(const pl_verify_row *r)
{
    return !r->repeats               ? "NOT REPEATED"
           : !(r->update_share <= 1) ? "WRONG UPDATE"
           : r->same_bits            ? "same bits"
           : r->within               ? "within bounds"
                                     : "DIFFERS";
}

/* Consecutive rows refused for the same reason show it once. */
static pl_status print_refused(view *v, const pl_verify_row *r)
{
    char now[sizeof v->refused];
    snprintf(now, sizeof now, "%.300s", r->refused);
    bool again = strcmp(now, v->refused) == 0;
    strcpy(v->refused, now);
    char text[sizeof now + 256];
    snprintf(text, sizeof text, "%.200s: %s", r->choices, again ? "for the same reason" : now);
    pl_status status = pl_put_format(&v->error, "%*s  ", CHOICES - 2, "not planned");
    return status == PL_OK ? pl_put_words(text, strlen(text), CHOICES, "\n", &v->error) : status;
}

static pl_status print_row(view *v, const pl_verify_row *r)
{
    char arena[PL_FORMAT_BYTES], text[400], share[32] = "-"; /* a 16-bit state does not tell */
    if (r->refused) return print_refused(v, r);
    if (!isnan(r->gradient_share)) snprintf(share, sizeof share, "%.2g", r->gradient_share);
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line, "%.200s", r->choices);
    if (!(r->update_share <= 1))
        pl_line_add(&line, " (%.80s is %.3g times as far from its definition as roundings explain)", r->update,
                    r->update_share);
    else if (!r->same_bits)
        pl_line_add(&line, " (%s%.80s; bound %.2g)", r->gradient[0] ? "most in " : "all gradients", r->gradient,
                    r->bound);
    pl_status status = pl_put_format(&v->error, "%9s  %9.2g  %9s  %-13s  ", pl_show_bytes(r->arena_bytes, arena),
                                     r->loss_difference, share, verdict(r));
    return status == PL_OK ? pl_put_words(text, line.bytes, CHOICES, "\n", &v->error) : status;
}

/* NaN and infinities are null. */
static void add_number(pl_line *line, const char *key, double number)
{
    pl_line_add(line, isfinite(number) ? ",\"%s\":%.9g" : ",\"%s\":null", key, number);
}

static void add_text(pl_line *line, const char *key, const char *text)
{
    pl_line_add(line, "\"%s\":\"", key);
    pl_line_json(line, text, strlen(text));
    pl_line_add(line, "\"");
}

static pl_status print_json_row(view *v, const pl_verify_row *r)
{
    char text[2048];
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line, "%s{", v->rows ? ",\n" : "");
    add_text(&line, "choices", r->choices);
    if (r->refused) {
        pl_line_add(&line, ",");
        add_text(&line, "refused", r->refused);
    } else {
        pl_line_add(&line, ",\"arena_bytes\":%llu", (unsigned long long)r->arena_bytes);
        add_number(&line, "loss", r->loss);
        add_number(&line, "loss_difference", r->loss_difference);
        add_number(&line, "gradient_difference", r->gradient_difference);
        add_number(&line, "gradient_share", r->gradient_share);
        add_number(&line, "bound", r->bound);
        pl_line_add(&line, ",");
        add_text(&line, "gradient", r->gradient);
        add_number(&line, "update_share", r->update_share);
        pl_line_add(&line, ",");
        add_text(&line, "update", r->update);
        pl_line_add(&line, ",\"same_bits\":%s,\"repeats\":%s,\"within\":%s", r->same_bits ? "true" : "false",
                    r->repeats ? "true" : "false", r->within ? "true" : "false");
    }
    pl_line_add(&line, "}");
    return pl_put(text, line.bytes, &v->error);
}

static pl_status print_head(view *v)
{
    if (v->json) return pl_put_text("{\"schema\":\"plimsoll.verify/1\",\"rows\":[\n", &v->error);
    return pl_put_text("    arena       loss   gradient  verdict        choices\n", &v->error);
}

static void hear_row(void *context, const pl_verify_row *r)
{
    view *v = context;
    if (v->status == PL_OK && v->rows == 0) v->status = print_head(v);
    if (v->status == PL_OK) v->status = v->json ? print_json_row(v, r) : print_row(v, r);
    v->rows++;
}

static pl_status print_end(view *v, const pl_verify_result *r)
{
    if (v->json)
        return pl_put_format(
            &v->error, "\n],\"plans\":%llu,\"same_bits\":%llu,\"within\":%llu,\"failed\":%llu,\"refused\":%llu}\n",
            (unsigned long long)r->plans, (unsigned long long)r->same_bits, (unsigned long long)r->within,
            (unsigned long long)r->failed, (unsigned long long)r->refused);
    return pl_put_format(&v->error,
                         "%llu plan%s: %llu the same bits, %llu within bounds, %llu failed; %llu not planned\n",
                         (unsigned long long)r->plans, pl_show_plural(r->plans), (unsigned long long)r->same_bits,
                         (unsigned long long)r->within, (unsigned long long)r->failed, (unsigned long long)r->refused);
}

static pl_status compare(const pl_cli_input *in, pl_error *err)
{
    view v = {.json = in->arguments.value[JSON] != NULL};
    pl_verify_result result = {0};
    pl_verify_options o = {.checkpoint = in->arguments.value[CHECKPOINT],
                           .everything = in->arguments.value[ALL] != NULL,
                           .stop = &pl_signal_stop,
                           .row = hear_row,
                           .context = &v};
    pl_signals_catch();
    pl_status status = pl_prepare(in->config, PL_COMMAND_GRADIENTS, NULL, NULL, err);
    pl_signals_leave(); /* nothing is written, so there is nothing to wait for */
    if (status == PL_OK) status = pl_verify(in->config, &o, &result, err);
    if (v.status == PL_OK && v.rows) v.status = print_end(&v, &result);
    if (v.status != PL_OK && (status == PL_OK || status == PL_E_MISMATCH)) {
        *err = v.error;
        return v.status;
    }
    return status;
}

/* ---- the command ---- */

static pl_status check_words(const pl_cli_input *in, pl_error *err)
{
    const char *to = in->arguments.value[GRADIENTS];
    if (pl_is_stdout(to))
        return pl_cli_error(err, PL_E_USAGE, "gradients are binary and cannot go to stdout; give the name of a file");
    if (to && (in->arguments.value[ALL] || in->arguments.value[JSON]))
        return pl_cli_error(
            err, PL_E_USAGE,
            "--all and --json belong to the comparison, which --gradients does not make: leave one out");
    if (!to && in->arguments.value[LEDGER])
        return pl_cli_error(err, PL_E_USAGE, "--ledger needs --gradients FILE: the comparison has no single plan");
    return in->arguments.value[CHECKPOINT] ? pl_cli_require_trained(in, in->arguments.value[CHECKPOINT], false, err)
                                           : PL_OK;
}

static int write_gradients(const pl_cli_command *command, const pl_cli_input *in)
{
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.command = command};
    call.word[PL_CALL_TO] = in->arguments.value[GRADIENTS];
    call.word[PL_CALL_CHECKPOINT] = in->arguments.value[CHECKPOINT];
    call.word[PL_CALL_LEDGER] = in->arguments.value[LEDGER] ? "1" : NULL;
    pl_status status = pl_talk_read(in->config, false, false, &talk, &err);
    return status == PL_OK ? pl_cli_start(in, &talk, false, &call) : pl_cli_complain(command->name, status, &err);
}

static bool compares(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--gradients", 11) == 0) return false;
    return true;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_cli_command as = *command;
    const bool does_compare = compares(argc, argv);
    if (does_compare) as.config = PL_CLI_READS; /* more than the gradients of a batch: asked below */
    pl_status status = pl_cli_load(&as, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_command_require(command->command, in.config, &err);
    if (status == PL_OK && does_compare) status = pl_verify_check_options(in.config, &err);
    if (status == PL_OK) status = pl_cli_plan_stage(command, &in, &err);
    if (status == PL_OK) status = check_words(&in, &err);
    if (status == PL_OK && !in.arguments.value[GRADIENTS]) status = compare(&in, &err);
    int code = status != PL_OK                 ? pl_cli_complain(command->name, status, &err)
               : in.arguments.value[GRADIENTS] ? write_gradients(command, &in)
                                               : 0;
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_verify = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
