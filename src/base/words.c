#include "base/words.h"

const pl_words pl_words_plain = {"item", "items", "sample", "samples", "items/s"};
