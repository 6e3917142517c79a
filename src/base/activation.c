#include "base/activation.h"

#include <string.h>

static const char *const names[PL_ACT_COUNT] = {"none",       "gelu",    "silu",       "tanh",     "relu",
                                                "leaky_relu", "sigmoid", "quick_gelu", "gelu_tanh"};

const char *pl_activation_name(pl_activation a) { return names[a]; }

int pl_activation_parse(const char *text, pl_activation *a)
{
    for (int i = 0; i < PL_ACT_COUNT; i++)
        if (strcmp(text, names[i]) == 0) return *a = (pl_activation)i, 0;
    return -1;
}
