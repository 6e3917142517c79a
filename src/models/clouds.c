#include "models/model.h"
static pl_status build(pl_model *m) { return pl_fail(m->err, PL_E_CONFIG, "not yet"); }
static pl_status check(const pl_config *c, pl_error *err) { (void)c; (void)err; return PL_OK; }
const pl_arch pl_arch_clouds = {.build = build, .check = check, .plan_bytes_per_layer = 1 << 10};
