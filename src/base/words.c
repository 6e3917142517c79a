#include "base/words.h"

#include <stddef.h>

const pl_words pl_words_plain = {.item = "item",
                                 .items = "items",
                                 .sample = "sample",
                                 .samples = "samples",
                                 .rate = "items/s",
                                 .data = "data",
                                 .step = "step",
                                 .part = "part",
                                 .loss = "",
                                 .at_once_key = "train.micro_batch",
                                 .size_keys = "the model",
                                 .weight_keys = "the model"};
