/* The words for shell completion and docs/config.md, read off the table. */
#include <stdio.h>
#include <string.h>

#include "config/schema.h"

static void print_default_in(const pl_config_key *key, pl_config_system system, pl_str *out)
{
    pl_config_value value;
    if (key->type == PL_CONFIG_RECORDS) {
        pl_str_append(out, "none");
        return;
    }
    pl_config_default_value(key, system, &value);
    pl_config_print_value(key, &value, out);
}

void pl_config_print_default(const pl_config_key *key, pl_str *out)
{
    print_default_in(key, pl_config_first_system(), out);
}

/* "; clouds: 0.001": what it is in systems that have another one, each in quotes of this kind. */
static void print_other_defaults(const pl_config_key *key, const char *quote, pl_str *out)
{
    for (pl_config_system system = 0; system < PL_SYSTEM_COUNT; system++) {
        if (!pl_config_find_default(key, system)) continue;
        pl_str_append(out, "; ");
        pl_config_print_archs(pl_config_archs_in(1u << system), out);
        pl_str_printf(out, ": %s", quote);
        print_default_in(key, system, out);
        pl_str_append(out, quote);
    }
}

void pl_config_describe(const pl_config_key *key, pl_str *out)
{
    pl_str_printf(out, "%s (", key->help);
    if (key->type == PL_CONFIG_ENUM || key->type == PL_CONFIG_SET) {
        for (size_t i = 0; i < key->name_count; i++) pl_str_printf(out, "%s%s", i ? ", " : "", key->names[i]);
        pl_str_append(out, "; ");
    }
    if (key->type == PL_CONFIG_SET) {
        pl_str_append(out, "default none)");
        return;
    }
    pl_str_append(out, "default ");
    pl_config_print_default(key, out);
    print_other_defaults(key, "", out);
    pl_str_append(out, ")");
}

void pl_config_print_options(pl_str *out)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        pl_str_printf(out, "%s %s%s", key->path, key->option ? "--" : "-", key->option ? key->option : "");
        for (size_t i = 0; i < key->name_count; i++) pl_str_printf(out, " %s", key->names[i]);
        pl_str_append(out, key->type == PL_CONFIG_BOOL ? " true false\n" : "\n");
    }
}

/* ---- docs/config.md ---- */

/* A bar would end the cell. */
static void cell(pl_str *out, const char *text)
{
    for (; *text; text++) pl_str_printf(out, *text == '|' ? "\\|" : "%c", *text);
}

/* "cosine or linear" */
static void print_names(const pl_config_key *by, uint32_t values, pl_str *out)
{
    const char *comma = "";
    for (size_t i = 0; i < by->name_count; i++) {
        if (!(values >> i & 1)) continue;
        pl_str_printf(out, "%s%s", comma, by->names[i]);
        comma = " or ";
    }
}

/* "only when `train.schedule` is cosine or linear" */
static void used_when(const pl_config_key *by, uint32_t values, pl_str *out)
{
    pl_str_printf(out, "only when `%s` is ", by->path);
    print_names(by, values, out);
}

/* "The optimisation; only when `model.arch` is gpt or mlp." */
static void section_help(const pl_config_section *section, pl_str *out)
{
    const uint32_t archs = pl_config_archs_of_section(section);
    const int bytes = (int)strlen(section->help);
    if (archs == (1u << PL_ARCH_COUNT) - 1) {
        pl_str_append(out, section->help);
        return;
    }
    pl_str_printf(out, "%.*s; ", bytes - 1, section->help);
    used_when(&pl_config_keys[PL_CONFIG_KEY_model_arch], archs, out);
    pl_str_append(out, ".");
}

static void markdown_row(const pl_config_key *key, pl_str *out)
{
    char expected[320];
    const uint32_t archs = pl_config_archs_of(key);
    pl_str_printf(out, "| `%s` | ", key->name);
    cell(out, key->help);
    if (archs != pl_config_archs_of_section(key->section)) {
        pl_str_append(out, "; ");
        used_when(&pl_config_keys[PL_CONFIG_KEY_model_arch], archs, out);
    }
    if (key->use.by) {
        pl_str_append(out, "; ");
        used_when(key->use.by, key->use.values, out);
    }
    pl_str_append(out, " | ");
    cell(out, pl_config_expected(key, expected, sizeof expected));
    pl_str_append(out, " | `");
    pl_config_print_default(key, out);
    pl_str_append(out, "`");
    print_other_defaults(key, "`", out);
    pl_str_append(out, " | ");
    if (key->option) pl_str_printf(out, "`--%s`", key->option);
    pl_str_append(out, key->flags & PL_CONFIG_FLAG_MODEL      ? " | model |\n"
                       : key->flags & PL_CONFIG_FLAG_BEGUN    ? " | numbers, from the first step |\n"
                       : key->flags & PL_CONFIG_FLAG_NUMERICS ? " | numbers |\n"
                                                              : " | |\n");
}

/* The default of a dimension: "`integer`, `[2, 5]`". */
static void dimension_default(const pl_config_section *section, pl_str *out)
{
    const pl_config_key *type = pl_config_find_in(section, "type");
    const bool choice = type->default_int == PL_CONFIG_DIMENSION_CHOICE;
    pl_str_append(out, "`");
    pl_config_print_default(type, out);
    pl_str_append(out, "`, `");
    pl_config_print_default(pl_config_find_in(section, choice ? "choices" : "bounds"), out);
    pl_str_append(out, "`");
}

static void field_row(const pl_config_key *key, pl_str *out)
{
    pl_str_printf(out, "| `%s` | ", key->name);
    cell(out, key->help);
    if (key->use.by) {
        pl_str_append(out, "; only when its type is ");
        print_names(key->use.by, key->use.values, out);
    }
    pl_str_append(out, key->flags & PL_CONFIG_FLAG_BEGUN ? " | numbers, from the first step |\n" : " | |\n");
}

static uint32_t archs_of_dimensions(void)
{
    uint32_t archs = 0;
    for (const pl_config_section *s = pl_config_sections; s < pl_config_sections + PL_CONFIG_SECTION_COUNT; s++)
        if (s->is_dimension) archs |= pl_config_archs_of_section(s);
    return archs;
}

/* All dimensions in one table, and what their keys are, which is the same for all, in another. */
static void markdown_dimensions(const pl_config_section *first, pl_str *out)
{
    pl_str_append(out, "\n## parameter_space\n\nWhat operators are drawn from; ");
    const uint32_t archs = archs_of_dimensions();
    used_when(&pl_config_keys[PL_CONFIG_KEY_model_arch], archs, out);
    pl_str_append(out, ".\nEach dimension is a section with the keys below, such as\n"
                       "`parameter_space.architecture.num_layers`.\n\n"
                       "| dimension | what it is | choices, and bounds within these | default |\n|---|---|---|---|\n");
    for (const pl_config_section *s = pl_config_sections; s < pl_config_sections + PL_CONFIG_SECTION_COUNT; s++) {
        char expected[320];
        if (!s->is_dimension) continue;
        pl_str_printf(out, "| `%s` | ", strchr(s->name, '.') + 1);
        if (pl_config_archs_of_section(s) == archs)
            pl_str_append(out, s->help);
        else
            section_help(s, out);
        pl_str_printf(out, " | %s | ", pl_config_expected(pl_config_find_in(s, "choices"), expected, sizeof expected));
        dimension_default(s, out);
        pl_str_append(out, " |\n");
    }
    pl_str_append(out, "\n| key | what it is | decides |\n|---|---|---|\n");
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->section == first) field_row(key, out);
}

static const char markdown_head[] =
    "# Configuration reference\n"
    "\n"
    "<!-- Generated from src/config/sections.def; a test compares. Do not edit. -->\n"
    "\n"
    "This page lists every key of a config, with its values, its default, its option and what it decides. A\n"
    "config is a YAML file with the sections and keys below; an empty file means all defaults. It is read\n"
    "strictly: an unknown key, a key given twice, a wrong type or a value out of range is an error that names\n"
    "line and column. So is a key that nothing would read, such as `heads` in a perceptron. Types follow the\n"
    "YAML 1.2 core schema: `\"32\"` is text, not a number; `yes` is not a truth value. Sizes are in bytes, with\n"
    "or without a unit: `500MB` is 500·10⁶, `500MiB` is 500·2²⁰. A dot in a section's name stands for nesting:\n"
    "`seed` of `sampling.sobol` goes under `sobol:`, and that under `sampling:`. Anchors, aliases, tags and\n"
    "multiple documents are not allowed. Paths are relative to the current folder.\n"
    "\n"
    "A config without `model.arch` is for text (gpt), unless it has keys that text does not have. Then it is\n"
    "for the only arch that reads all of its keys, or for rollouts the first one. The run's config records\n"
    "which.\n"
    "\n"
    "Values come from these sources; a later one overrides an earlier one: the default, the file, the\n"
    "environment, the command line.\n"
    "\n"
    "- Command line: `--batch_size 8` or `--batch-size=8` for keys with an option; `--set train.batch_size=8`\n"
    "  for every key; `--resume` and `--no-resume` for truth values. The last one counts. A command refuses\n"
    "  options for keys that it does not read (`plimsoll help COMMAND` lists those it reads); in a file such\n"
    "  keys are fine, since several commands share it. A word such as `--quiet` is always an option, not the\n"
    "  value of the option before it; to use it as a value, write `--out=--quiet`.\n"
    "- Environment: `PLIMSOLL_TRAIN_BATCH_SIZE=8` for every key, and `PLIMSOLL_BATCH_SIZE=8` for keys with an\n"
    "  option. An empty variable counts as not set. An unknown `PLIMSOLL_` variable is an error, except those\n"
    "  that Kubernetes and Docker set for a service called plimsoll ([cluster.md](cluster.md#kubernetes)).\n";

/* The rule of src/config/resume.c, in words. */
static const char markdown_rule[] =
    "\n"
    "The last column says what a key decides, and so whether it may change when a run is resumed:\n"
    "\n"
    "- *model*: which weights fit and what they mean. Another value is refused.\n"
    "- *numbers, from the first step*: what a run computes, settled when it begins (the first weights, the\n"
    "  order of the data, the form of the optimizer's state). Another value is refused; for the text the\n"
    "  contents count, not the path.\n"
    "- *numbers*: what a run computes from here on. Another value is accepted; when the run resumes, it\n"
    "  reports the new value and the old one.\n"
    "- nothing: only how it runs. Another value is accepted.\n"
    "\n"
    "A resume to fewer steps than were already made is refused. A resume to exactly as many has nothing left\n"
    "to do, says so and ends with 0.\n";

static void alias_row(const pl_config_alias *alias, pl_str *out)
{
    if (!alias->key && alias->means) {
        pl_str_printf(out, "| `%s` | `%s` is fine | | %s |\n", alias->path, alias->means, alias->help);
        return;
    }
    if (!alias->key) {
        pl_str_printf(out, "| `%s` | refused | | %s |\n", alias->path, alias->help);
        return;
    }
    pl_str_printf(out, "| `%s%s` | `%s%s%s` | ", alias->path, alias->means ? ": true" : "", alias->key->path,
                  alias->means ? ": " : "", alias->means ? alias->means : "");
    const pl_config_section *section = pl_config_section_of(alias);
    pl_config_print_archs(pl_config_archs_of(alias->key) & (section ? pl_config_archs_of_section(section) : UINT32_MAX),
                          out);
    pl_str_printf(out, " | %s |\n", alias->help);
}

static void markdown_places(pl_str *out)
{
    const char *comma = "";
    pl_str_append(out, "\nSections may also be placed where other programs have them: ");
    for (const pl_config_place *p = pl_config_places; p < pl_config_places + PL_CONFIG_PLACE_COUNT; p++, comma = ", ")
        pl_str_printf(out, "%s`%s` is `%s`", comma, p->path, p->section);
    pl_str_append(out, ".\n");
}

static void markdown_words(pl_str *out)
{
    pl_str_append(out,
                  "\nThese words, in upper or lower case, are also accepted as values, in a file and as options:\n\n"
                  "| key | word | value | |\n|---|---|---|---|\n");
    for (const pl_config_word *w = pl_config_other_words; w < PL_CONFIG_OTHER_WORDS_END; w++) {
        const char *quote = w->means ? "`" : "";
        pl_str_printf(out, "| `%s` | `%s` | %s%s%s | %s |\n", w->key->path, w->word, quote,
                      w->means ? w->means : "refused", quote, w->help);
    }
}

static void markdown_aliases(pl_str *out)
{
    pl_str_append(
        out,
        "\n"
        "## Other names\n"
        "\n"
        "Many keys may also be given under the names that other programs use: Hugging Face's Trainer, nanoGPT,\n"
        "Lightning, llama.cpp and the write-ups of other programs. A name with a dot goes in that section of a\n"
        "file; one without a dot goes outside of any section, in the key's own section, or is an option\n"
        "(`--max_steps`, `--max-steps`). A file may give each key once. A name is accepted where it means the\n"
        "same; others are refused, with what to write instead.\n"
        "\n"
        "Some keys and words used to have other names (`hidden_size`, `num_heads`, `num_layers` of `encoder`,\n"
        "`vision_encoder` and `reasoning`; `float32`, `bfloat16`, `float16`). JSON still uses those names, and so\n"
        "do runs, plans and results, so that those of earlier builds can go on.\n"
        "\n"
        "| word | key | when `model.arch` is | |\n|---|---|---|---|\n");
    for (const pl_config_alias *alias = pl_config_aliases; alias < PL_CONFIG_ALIASES_END; alias++)
        alias_row(alias, out);
    markdown_places(out);
    markdown_words(out);
}

void pl_config_print_markdown(pl_str *out)
{
    const pl_config_section *section = NULL;
    pl_str_append(out, markdown_head);
    pl_str_append(out, markdown_rule);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        const bool begins = key->section != section, first = !section || !section->is_dimension;
        section = key->section;
        if (section->is_dimension) {
            if (first) markdown_dimensions(section, out);
            continue;
        }
        if (begins) {
            pl_str_printf(out, "\n## %s\n\n", section->name[0] ? section->name : "(outside)");
            section_help(section, out);
            pl_str_append(
                out, "\n\n| key | what it is | values | default | option | decides |\n|---|---|---|---|---|---|\n");
        }
        markdown_row(key, out);
    }
    markdown_aliases(out);
}
