#include "base/words.h"

#include <stddef.h>

const pl_words pl_words_plain = {"item",     "items", "sample", "samples",           "items/s",
                                 "data",     "step",  "part",   "train.micro_batch", "the model",
                                 "the model"};
