/* A host program with a locale of its own: host LOCALE TEXT FOLDER CACHE. Plans, prints and trains under it; what comes
 * out must be the same bytes under any locale (special.py compares). Exit 2 when the locale does not exist. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plimsoll/plimsoll.h>

static void hear(void *context, const pl_event *e)
{
    const char *locale = context;
    if (e->kind != PL_EVENT_STEP) return;
    setlocale(LC_ALL, "C"); /* the comparison is of the library's numbers, not of this printf's */
    printf("step %llu loss %.9g lr %.9g\n", (unsigned long long)e->step, e->loss, e->lr);
    setlocale(LC_ALL, locale);
}

static pl_status set_all(pl_config *config, const char *text, const char *folder, pl_error *err)
{
    const char *const keys[][2] = {{"data.text", text},
                                   {"run.out", folder},
                                   {"data.tokenizer", "bytes"},
                                   {"data.cache", folder},
                                   {"model.width", "16"},
                                   {"model.sequence", "16"},
                                   {"train.batch_size", "4"},
                                   {"train.steps", "4"},
                                   {"train.log_every", "1"},
                                   {"train.learning_rate", "2.5e-3"},
                                   {"model.dropout", "0.125"},
                                   {"data.validation_fraction", "0.125"},
                                   {"run.threads", "1"},
                                   {"memory.budget", "0.5GB"},
                                   {"train.checkpoint_every", "2"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        pl_status status = pl_config_set(config, keys[i][0], keys[i][1], "host", err);
        if (status != PL_OK) return status;
    }
    return pl_config_check(config, err);
}

/* The forms that carry numbers; predicted seconds differ from run to run and are left out. */
static pl_status print_config(const pl_config *config, pl_error *err)
{
    const pl_config_form forms[] = {PL_CONFIG_YAML, PL_CONFIG_JSON, PL_CONFIG_SCHEMA, PL_CONFIG_KEPT};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char *text = NULL;
        pl_status status = pl_config_text(config, forms[i], &text, NULL, err);
        if (status != PL_OK) return status;
        puts(text);
        pl_text_free(text);
    }
    return PL_OK;
}

/* A page with a decimal comma in its drawings would be no SVG; a lock with one would not read back. */
static pl_status check_plan(const pl_plan *plan, const char *folder, pl_error *err)
{
    char path[4096], *page = NULL, *lock = NULL;
    size_t bytes = 0;
    pl_plan *again = NULL;
    pl_status status = pl_plan_text(plan, PL_PLAN_HTML, &page, NULL, err);
    if (status == PL_OK) printf("decimal commas in the page: %s\n", strstr(page, "width='0,") ? "yes" : "no");
    pl_text_free(page);
    snprintf(path, sizeof path, "%s.lock", folder);
    if (status == PL_OK) status = pl_plan_text(plan, PL_PLAN_LOCK, &lock, &bytes, err);
    if (status == PL_OK) status = pl_text_save(path, lock, bytes, err);
    if (status == PL_OK) status = pl_plan_load(path, &again, err);
    if (status == PL_OK) printf("arena %llu\n", (unsigned long long)pl_plan_arena_bytes(again));
    pl_plan_destroy(again);
    pl_text_free(lock);
    return status;
}

static pl_status train(const pl_plan *plan, char *locale, pl_error *err)
{
    pl_run *run = NULL;
    pl_run_options options = {.host = true, .listener = hear, .context = locale};
    pl_status status = pl_run_open(plan, &options, &run, err);
    if (status == PL_OK) status = pl_run_train(run, err);
    pl_run_close(run);
    return status;
}

int main(int argc, char **argv)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    if (argc != 5 || !setlocale(LC_ALL, argv[1])) return fprintf(stderr, "host: no locale %s\n", argv[1]), 2;
    char command[4200];
    snprintf(command, sizeof command, "rm -rf '%s'", argv[3]);
    if (system(command)) return 1;
    pl_config *config = pl_config_create();
    pl_status status = config ? set_all(config, argv[2], argv[3], &err) : PL_E_NOMEM;
    if (status == PL_OK) status = print_config(config, &err);
    if (status == PL_OK) status = pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &err);
    if (status == PL_OK) status = pl_plan_make(config, PL_COMMAND_TRAIN, argv[4], NULL, NULL, &plan, &err);
    if (status == PL_OK) status = check_plan(plan, argv[3], &err);
    if (status == PL_OK) status = train(plan, argv[1], &err);
    if (status != PL_OK) fprintf(stderr, "host: %s\n", err.text);
    pl_plan_destroy(plan);
    pl_config_destroy(config);
    return pl_status_exit_code(status);
}
