/* C = A·B with epilogue. */
#include "backend/calls.h"
