/* A program of somebody else: places two buffers that never live together on one offset. */
#include <plimsoll/plimsoll.h>
#include <stdio.h>

int main(void)
{
    pl_place_buffer buffers[] = {pl_place_buffer_make(0, 2, 100), pl_place_buffer_make(2, 4, 60)};
    uint64_t offsets[2];
    pl_place_problem problem = {.buffers = buffers, .buffer_count = 2, .capacity = PL_PLACE_NONE};
    pl_place_solution solution = {.offsets = offsets};
    pl_place_options options = pl_place_options_default();
    pl_error error = {0};
    pl_status status = pl_place(&problem, &options, &solution, &error);
    printf("%s %d\n", pl_status_name(status), (int)solution.peak);
    return status == PL_OK && solution.peak == 100 ? 0 : 1;
}
