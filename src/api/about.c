/* What this build is, and what it finds on this machine: for `plimsoll --version` and bug reports. */
#include <stdio.h>

#include "base/isa.h"
#include "base/json.h"
#include "base/module.h"
#include "plimsoll/version.h"

extern const char pl_build_commit[]; /* cmake/commit.cmake writes it; "": not known */

/* Each is loaded for a moment; where it cannot be, the reason is shown. */
static const char *const modules[] = {"cache", "draw", "gzip", "hdf5", "onnx", "pictures"};
enum { MODULES = sizeof modules / sizeof *modules, FILE_BYTES = 64 };

static const struct {
    int flag;
    const char *name;
} extras[] = {{PL_ISA_VNNI, "vnni"}, {PL_ISA_VPOPCNTDQ, "vpopcntdq"}, {PL_ISA_AMX_INT8, "amx_int8"}};
enum { EXTRAS = sizeof extras / sizeof *extras };

static pl_status try_module(const char *name, pl_error *err)
{
    char file[FILE_BYTES];
    snprintf(file, sizeof file, "plimsoll-%s.so", name);
    return pl_module_try(file, err);
}

/* A module that cannot be tried for lack of memory is not listed as missing. */
static void print_modules(pl_str *out)
{
    pl_error why[MODULES] = {{0}};
    const char *between = "";
    pl_str_append(out, "modules   ");
    for (size_t i = 0; i < MODULES; i++)
        if (try_module(modules[i], &why[i]) == PL_OK) {
            pl_str_printf(out, "%s%s", between, modules[i]);
            between = ", ";
        }
    pl_str_append(out, *between ? "\n" : "none\n");
    for (size_t i = 0; i < MODULES; i++)
        if (why[i].status == PL_E_NOMEM)
            out->failed = 1;
        else if (why[i].status != PL_OK)
            pl_str_printf(out, "missing   %s: %s\n", modules[i], why[i].text);
}

static void print_text(pl_str *out)
{
    const pl_isa isa = pl_isa_fastest();
    pl_str_printf(out, "plimsoll %s\n", pl_version());
    pl_str_printf(out, "commit    %s\n", *pl_build_commit ? pl_build_commit : "not known");
    pl_str_printf(out, "build     %s, %s\n", PL_BUILD_TYPE, PL_BUILD_COMPILER);
    pl_str_printf(out, "kernels   %s", pl_isa_name(isa));
    for (size_t i = 0; i < EXTRAS; i++)
        if (pl_isa_extras(isa) & extras[i].flag) pl_str_printf(out, ", %s", extras[i].name);
    pl_str_append(out, "\n");
    print_modules(out);
}

static void write_json(pl_str *out)
{
    const pl_isa isa = pl_isa_fastest();
    pl_json j = pl_json_document(out, false, "plimsoll.version/1");
    pl_json_kv_string(&j, "version", pl_version());
    pl_json_kv_string(&j, "commit", *pl_build_commit ? pl_build_commit : NULL);
    pl_json_kv_string(&j, "build_type", PL_BUILD_TYPE);
    pl_json_kv_string(&j, "compiler", PL_BUILD_COMPILER);
    pl_json_kv_string(&j, "isa", pl_isa_name(isa));
    pl_json_key(&j, "isa_extras");
    pl_json_array(&j);
    for (size_t i = 0; i < EXTRAS; i++)
        if (pl_isa_extras(isa) & extras[i].flag) pl_json_string(&j, extras[i].name);
    pl_json_array_end(&j);
    pl_json_key(&j, "modules");
    pl_json_object(&j);
    for (size_t i = 0; i < MODULES; i++) {
        pl_error why = {0};
        const bool loads = try_module(modules[i], &why) == PL_OK;
        if (why.status == PL_E_NOMEM) out->failed = 1;
        pl_json_kv_string(&j, modules[i], loads ? "loads" : why.text);
    }
    pl_json_object_end(&j);
    pl_json_document_end(&j);
}

pl_status pl_version_text(pl_version_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str out = {0};
    *text = NULL;
    if (form == PL_VERSION_JSON)
        write_json(&out);
    else
        print_text(&out);
    if (out.failed) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "no memory to say what this build is");
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}
