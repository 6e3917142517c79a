// The headers from C++: every function is the C library's, and one of them is called.
#include <plimsoll/plimsoll.h>

int main()
{
    pl_config *config = pl_config_create();
    pl_error error = pl_error();
    pl_place_buffer buffer = pl_place_buffer_make(0, 1, 64);
    pl_status status = pl_config_check(config, &error);
    pl_config_destroy(config);
    return status == PL_OK && buffer.size == 64 ? 0 : 1;
}
