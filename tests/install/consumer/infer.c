/* A program of somebody else, ten lines long: the byte that a trained model of bytes expects behind 32 of them. */
#include <plimsoll/plimsoll.h>
#include <stdio.h>

static int likeliest(const float *logit, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++) best = logit[i] > logit[best] ? i : best;
    return best;
}

int main(int argc, char **argv)
{
    static int32_t tokens[32];
    static float logits[32][256];
    pl_error error = {0};
    pl_infer *model = NULL;
    for (int i = 0; argc == 3 && i < 32 && argv[2][i]; i++) tokens[i] = (unsigned char)argv[2][i];
    if (!pl_infer_open(&(pl_infer_options){.model = argv[1]}, &model, &error) &&
        !pl_infer_bind(model, "tokens", tokens, sizeof tokens, &error) &&
        !pl_infer_bind(model, "logits", logits, sizeof logits, &error) && !pl_infer_step(model, &error))
        printf("%c\n", likeliest(logits[31], 256));
    return fputs(error.text, stderr), pl_infer_close(model), pl_status_exit_code(error.status);
}
