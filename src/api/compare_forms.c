/* Which forms of a model there are, how each is made, and what part of its work signs do, or could do. */
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "config/schema.h"
#include "ir/properties.h"
#include "rewrite/rewrite.h"

/* ---- which there are ---- */

const pl_compare_pretrained pl_compare_pretrained_forms[PL_COMPARE_FORMS_MAX] = {
    {"stored", "stored", "f32"},   {"bf16", "bf16", "f32"}, {"q8_0", "q8_0", "f32"},
    {"q8_0-int8", "q8_0", "int8"}, {"q4_0", "q4_0", "f32"}, {"q4_0-int8", "q4_0", "int8"}};

static void refuse(pl_compare *p, int v, const char *format, const char *arch)
{
    p->report.row[v].why[0] = 0;
    pl_str s = pl_str_fixed(p->report.row[v].why, sizeof p->report.row[v].why);
    pl_str_printf(&s, "arch %s ", arch);
    pl_str_append(&s, format);
}

static void remark(pl_compare *p, int v, const char *text)
{
    snprintf(p->report.row[v].remark, sizeof p->report.row[v].remark, "%s", text);
}

/* Where there is nothing to judge by, outputs are compared with those of f32. */
static void find_judged(pl_compare *p)
{
    char text[PL_COMPARE_NAME + 160];
    const bool judges = pl_task_of(p->config)->job[PL_COMMAND_EVALUATE] != NULL;
    snprintf(text, sizeof text,
             "arch %s has no command eval, since nobody knows what is right; how near to %s is what comes out stands "
             "above",
             p->report.arch, p->report.row[PL_VARIANT_F32].name);
    for (int v = 0; v < p->report.rows; v++)
        if (pl_compare_runs(p, v) && !judges) pl_compare_refuse_judged(p, v, text);
    if (judges && p->report.is_binary)
        pl_compare_refuse_judged(p, PL_VARIANT_F32, "its weights are first values, which were not trained");
}

static void find_encodings(pl_compare *p)
{
    for (int v = 0; v < p->report.rows; v++) {
        p->by[v] = PL_COMPARE_BY_KEY;
        if (strcmp(pl_compare_pretrained_forms[v].activations, "int8") == 0)
            remark(p, v, "what meets matrices in blocks is in 8 bits, too (--activations int8)");
    }
    remark(p, 0, "matrices as the files have them; all is computed in f32");
}

static void find_forms(pl_compare *p)
{
    const char *arch = p->report.arch;
    const bool binary = p->report.is_binary, can = p->report.possible_flops >= 0;
    p->by[PL_VARIANT_F32] = binary ? PL_COMPARE_BY_SEEDED : PL_COMPARE_BY_EXPORT;
    p->by[PL_VARIANT_INT8] = PL_COMPARE_BY_QUANTIZE;
    p->by[PL_VARIANT_BINARY] = PL_COMPARE_BY_PACKED;
    if (binary)
        remark(p, PL_VARIANT_F32,
               "the same sizes with model.binary none and first values, for the time and the "
               "bytes: what was trained multiplies signs");
    if (binary)
        refuse(p, PL_VARIANT_BF16, "has nothing in 16 bits beside layers of signs (docs/binary.md)", arch);
    else if (pl_task_of(p->config)->job[PL_COMMAND_TRAIN])
        remark(p, PL_VARIANT_BF16, "matrices and what flows between layers; sums, norms and what comes out are in f32");
    if (!pl_task_of(p->config)->job[PL_COMMAND_QUANTIZE])
        refuse(p, PL_VARIANT_INT8, "has no command quantize: no weights in 8 bits", arch);
    if (binary) remark(p, PL_VARIANT_INT8, "layers of signs stay as they were trained, the others are in 8 bits");
    if (!can)
        refuse(p, PL_VARIANT_BINARY, "has no layers of signs (model.binary)", arch);
    else if (!binary)
        refuse(p, PL_VARIANT_BINARY,
               "can have layers of signs, and this model has none: they come of a training of its "
               "own with model.binary: blocks, which is another model",
               arch);
}

/* ---- what signs could do of its work ---- */

static pl_status count_work(const pl_config *c, const pl_facts *extents, pl_work_share *share, pl_error *err)
{
    pl_graph *g = NULL;
    const pl_status status = pl_build_graph(c, PL_COMMAND_INFER, extents, &g, err);
    if (status == PL_OK) *share = pl_program_binary_share(g, pl_graph_find_program(g, PL_INFER_PROGRAM));
    pl_graph_destroy(g); /* also what was built before it failed */
    return status;
}

static pl_status count_possible(pl_compare *p, pl_error *err)
{
    pl_work_share share = {0};
    p->report.possible_flops = -1;
    if (!pl_config_is_used(p->config, pl_config_find("model.binary"))) return PL_OK;
    pl_config *c = pl_config_copy(p->config);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = pl_config_set(c, "model.binary", "blocks", "the comparison", err);
    if (status == PL_OK) status = count_work(c, &p->data->extents, &share, err);
    pl_config_destroy(c);
    if (status == PL_OK) p->report.possible_flops = share.binary_flops;
    return status;
}

static pl_status look_at_work(pl_compare *p, pl_error *err)
{
    pl_work_share share;
    PL_TRY(pl_open_data(p->config, PL_COMMAND_INFER, PL_DATA_FOR_RUN, NULL, &p->data, err));
    PL_TRY(count_work(p->config, &p->data->extents, &share, err));
    p->report.flops = share.flops;
    p->report.binary_flops = share.binary_flops;
    p->report.is_binary = share.binary_flops > 0;
    return count_possible(p, err);
}

pl_status pl_compare_find_forms(pl_compare *p, pl_error *err)
{
    PL_TRY(look_at_work(p, err));
    p->encoding ? find_encodings(p) : find_forms(p);
    find_judged(p);
    return PL_OK;
}
