/* The reference's table, one slot per row of kernels.def. */
#include "kernels/kernels.h"

const pl_kernels PL_KERNEL(table) = {
#define PL_ROW(type, name, arguments) .name = PL_KERNEL(name),
#include "kernels/kernels.def"
#undef PL_ROW
};
