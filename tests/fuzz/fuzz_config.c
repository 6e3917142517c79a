/* A configuration as YAML (JSON is YAML too), as it is and as a run keeps it, between its mark and its checksum. */
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "fuzz/fuzz.h"

static void load_again(const pl_config *config, pl_str *text, const char *form)
{
    static pl_config again;
    pl_error err = {0};
    FUZZ_CHECK(!text->failed, "no memory to print");
    pl_config_default(&again);
    pl_status status = pl_config_load_text(&again, "again", pl_str_text(text), text->bytes, &err);
    FUZZ_CHECK(status == PL_OK, "%s that was printed is refused: %s", form, err.text);
    FUZZ_CHECK(pl_config_equal(config, &again), "%s that was printed loads as another config:\n%s", form,
               pl_str_text(text));
    FUZZ_CHECK(pl_config_hash_model(config) == pl_config_hash_model(&again) &&
                   pl_config_hash_numerics(config) == pl_config_hash_numerics(&again),
               "equal configs with other hashes");
    FUZZ_CHECK(pl_config_check_same_model(config, &again, &err) == PL_OK, "%s", err.text);
    pl_str_deinit(text);
}

static void check_accepted(const pl_config *config)
{
    pl_error err = {0};
    char path[PL_CONFIG_TEXT_BYTES];
    pl_str yaml = {0}, text = {0};
    pl_config_print_yaml(config, &yaml);
    load_again(config, &yaml, "YAML");
    pl_json json = pl_json_begin(&text, false);
    pl_config_json(config, &json);
    load_again(config, &text, "JSON");
    pl_status status = pl_config_check(config, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
    status = pl_config_run_folder(config, path, sizeof path, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
}

/* What loads alone loads so, too; but for a byte order mark, which must come first. */
static void check_sealed(const pl_config *config, const uint8_t *data, size_t size)
{
    static pl_config sealed;
    pl_error err = {0};
    pl_str text = {0};
    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) return;
    pl_config_begin_sealed(&text);
    pl_str_append_bytes(&text, data, size);
    pl_str_append(&text, "\n");
    pl_config_end_sealed(&text);
    FUZZ_CHECK(!text.failed, "no memory to print");
    pl_config_default(&sealed);
    if (text.bytes <= PL_CONFIG_FILE_MAX_BYTES) {
        pl_status status = pl_config_load_text(&sealed, "sealed", pl_str_text(&text), text.bytes, &err);
        FUZZ_CHECK(status == PL_OK && pl_config_equal(config, &sealed), "sealed it is another config: %s", err.text);
    }
    pl_str_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pl_config config, fresh;
    pl_error err = {0};
    uint64_t before = pl_alloc_live_blocks();
    pl_config_default(&config);
    pl_config_default(&fresh);
    pl_status status = pl_config_load_text(&config, "input", (const char *)data, size, &err);
    if (status == PL_OK) {
        check_accepted(&config);
        check_sealed(&config, data, size);
    } else {
        fuzz_refused(status, &err, "input", FUZZ_LINE_COLUMN);
        FUZZ_CHECK(pl_config_equal(&config, &fresh), "a text that was refused changed the config");
    }
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
