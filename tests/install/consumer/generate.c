/* A program of somebody else, ten lines long: goes on from a prompt with a model of Hugging Face or GGUF. */
#include <plimsoll/plimsoll.h>
#include <stdio.h>

static void hear(void *context, const pl_event *e)
{
    (void)context;
    if (e->kind == PL_EVENT_TEXT) fwrite(e->text, 1, e->text_bytes, stdout);
    if (e->kind == PL_EVENT_TEXT_END) puts("");
}

int main(int argc, char **argv)
{
    pl_error error = {0};
    pl_plan *plan = NULL;
    pl_run *run = NULL;
    pl_config *config = pl_config_create();
    (void)(argc == 3 && !pl_config_load_file(config, argv[1], &error) &&
           !pl_config_set(config, "generate.prompt", argv[2], "the host", &error) &&
           !pl_plan_make(config, PL_COMMAND_GENERATE, NULL, NULL, NULL, &plan, &error) &&
           !pl_run_open(plan, &(pl_run_options){.host = true, .listener = hear}, &run, &error) &&
           !pl_run_generate(run, &error));
    return fputs(error.text, stderr), pl_run_close(run), pl_status_exit_code(error.status);
}
