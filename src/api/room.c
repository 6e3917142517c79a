/* What is refused before it costs anything: a model whose weights and state alone are too large, and a plan that this
 * machine cannot hold whatever else is done. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/choice.h"
#include "api/compiler.h"
#include "base/machine_file.h"
#include "base/size.h"
#include "config/schema.h"
#include "fit/result.h"
#include "models/model.h"
#include "run/threads.h"
#include "store/folder.h"

#define FEWEST_BITS "q4_0"

/* The least bytes of the two moments of so many bytes of weights: 4 bytes a number, 2, or 260 for 256 numbers
 * (base/block8.h; those of small weights stay larger). -1 on overflow. */
static int count_moments(const pl_config *c, uint64_t weights, uint64_t *bytes)
{
    const pl_config_optimizer_state state = c->train.optimizer_state;
    const uint32_t allow = state == PL_OPTIMIZER_STATE_AUTO ? c->fit.allow : 0;
    if (state == PL_OPTIMIZER_STATE_8BIT || (allow & PL_ALLOW_OPTIMIZER_8BIT))
        *bytes = weights / 1024 * 2 * 260;
    else if (state == PL_OPTIMIZER_STATE_BF16 || (allow & PL_ALLOW_OPTIMIZER_BF16))
        *bytes = weights;
    else
        return pl_size_mul(weights, 2, bytes);
    return 0;
}

/* Weights that are not trained can be stored in half the bytes. */
static uint64_t count_frozen(const pl_config *c, uint64_t bytes)
{
    char text[PL_CHOICE_TEXT_BYTES];
    const uint32_t either = PL_ALLOW_FROZEN_BF16 | PL_ALLOW_FROZEN_FP16;
    if (!pl_choice_is_used(c, PL_CHOICE_FROZEN)) return bytes;
    pl_choice_text(c, PL_CHOICE_FROZEN, text);
    const bool half = strcmp(text, "auto") == 0 ? c->fit.allow & either : strcmp(text, "f32") != 0;
    return half ? bytes / 2 : bytes;
}

/* Are all gradients complete before the first update? A norm over all of them needs that, and so does a config without
 * early updates, unless it asks for layer_major, which updates early. */
static bool holds_gradients(const pl_config *c, pl_command command)
{
    if (!pl_command_does(command, PL_USES_UPDATE)) return pl_command_does(command, PL_USES_GRADIENT);
    bool late = c->train.update_in_backward == PL_EARLY_OFF && c->train.layer_major <= 0;
    return late || c->train.grad_clip > 0;
}

/* What is alive at the same time, at an update where there is one: no plan needs less. -1 on overflow. */
static int count_state(const pl_compiler *of, uint64_t *bytes, const char **what)
{
    const bool updates = pl_command_does(of->command, PL_USES_UPDATE);
    uint64_t moments = 0, gradients = holds_gradients(of->config, of->command) ? of->trained_bytes : 0;
    const uint64_t averages = updates && of->config->train.ema_rate > 0 ? of->trained_bytes : 0;
    *what = !updates    ? gradients ? "weights and gradients alone" : "the weights alone"
            : gradients ? "weights, gradients and optimizer state alone"
                        : "weights and optimizer state alone";
    if (updates && count_moments(of->config, of->trained_bytes, &moments)) return -1;
    uint64_t weights = of->trained_bytes + count_frozen(of->config, of->weight_bytes - of->trained_bytes);
    if (pl_compiler_is_narrow(of)) weights /= 2;
    const int over = pl_size_add(weights, averages, bytes) || pl_size_add(*bytes, gradients, bytes) ||
                     pl_size_add(*bytes, moments, bytes);
    return over ? -1 : 0;
}

/* What a process holds of its plan for each layer: its heap grows by 35 kB a layer for the smallest gpt and 5 kB for
 * the smallest mlp (measured for generate and evaluate, whose plans are the shortest). Half of that is safe to ask for,
 * and keeps the planner from building a graph of 100,000 layers for a budget that could not hold its text. */
static uint64_t plan_bytes_at_least(const pl_config *c)
{
    return (uint64_t)c->model.layers * pl_model_plan_bytes_per_layer(c);
}

/* Would the same weights take less in 8 bits? A named file of weights may hold them so already. */
static bool can_be_in_8_bits(const pl_compiler *of)
{
    return pl_task_of(of->config)->job[PL_COMMAND_QUANTIZE] && !of->data->weights &&
           !pl_command_does(of->command, PL_USES_UPDATE) && !pl_command_does(of->command, PL_USES_GRADIENT) &&
           !pl_command_does(of->command, PL_USES_CALIBRATION);
}

static bool has_value(const pl_config *c, const pl_config_key *key, const char *word)
{
    pl_str is = {0};
    pl_config_print_value(key, pl_config_value_of(c, key), &is);
    const bool has = strcmp(pl_str_text(&is), word) == 0;
    pl_str_deinit(&is);
    return has;
}

/* The key that would turn the model into bf16; NULL where none does, or it is bf16 already. */
static const char *find_narrow(const pl_compiler *of)
{
    const pl_config *c = of->config;
    const pl_config_key *key = pl_config_find_for(c, "<precision>");
    if (!key || of->data->weights || c->model.binary != PL_CONFIG_BINARY_NONE) return NULL;
    return has_value(c, key, "f32") && pl_config_is_read(c, key, (pl_config_reader)(1u << of->command)) ? key->path
                                                                                                        : NULL;
}

/* The key that would hold the matrices in the fewest bits, where it does not do so already; else NULL. */
static const char *find_encoding(const pl_compiler *of)
{
    const pl_config_key *key = pl_config_find_for(of->config, "<encoding>");
    return key && !has_value(of->config, key, FEWEST_BITS) ? key->path : NULL;
}

bool pl_is_brought(const pl_config *c) { return pl_config_find_for(c, "<encoding>") != NULL; }

void pl_room_find_less(pl_compiler *of)
{
    const char *narrow = find_narrow(of), *encoding = find_encoding(of);
    const bool packed = can_be_in_8_bits(of);
    if (encoding)
        snprintf(of->less, sizeof of->less, "`%s` " FEWEST_BITS, encoding);
    else
        snprintf(of->less, sizeof of->less, "%s%s%s%s%s", narrow ? "`" : "", narrow ? narrow : "",
                 narrow ? "` bf16" : "", narrow && packed ? " or " : "",
                 packed ? "weights in 8 bits (plimsoll quantize)" : "");
}

bool pl_room_is_trained(const pl_compiler *of)
{
    const uint32_t uses = pl_command_row_of(of->command)->uses;
    return (uses & (PL_USES_WEIGHTS | PL_USES_GRADIENT)) == PL_USES_WEIGHTS &&
           pl_task_of(of->config)->job[PL_COMMAND_TRAIN];
}

pl_status pl_room_check_state(const pl_compiler *of, const pl_room *room, pl_error *err)
{
    char remedy[288];
    const pl_config *c = of->config;
    const char *what, *keys = of->settings.run.words->weight_keys;
    uint64_t bytes;
    if (count_state(of, &bytes, &what))
        return pl_fail(err, PL_E_BUDGET, "%s are more than 2^64 bytes; make %s smaller", what, keys);
    if (bytes <= room->bytes && room->bytes >= room->floor_bytes && plan_bytes_at_least(c) > room->bytes)
        return pl_fail(err, PL_E_BUDGET,
                       "the plan alone of %" PRIi64 " layers takes more than %" PRIu64 " bytes, and %s %" PRIu64
                       " bytes is smaller; take fewer model.layers",
                       c->model.layers, plan_bytes_at_least(c), room->words, room->bytes);
    if (bytes <= room->bytes) return PL_OK;
    if (room->bytes < room->floor_bytes)
        snprintf(remedy, sizeof remedy, PL_FIT_NO_MODEL("%llu"), (unsigned long long)room->floor_bytes);
    else if (pl_is_brought(c))
        snprintf(remedy, sizeof remedy, "raise the budget");
    else if (of->less[0] && pl_room_is_trained(of))
        snprintf(remedy, sizeof remedy, "take %s", of->less);
    else
        snprintf(remedy, sizeof remedy, "make %s smaller%s%s", keys, of->less[0] ? ", or take " : "", of->less);
    return pl_fail(err, PL_E_BUDGET, "%s are %" PRIu64 " bytes, %" PRIu64 " bytes more than %s %" PRIu64 " bytes; %s",
                   what, bytes, bytes - room->bytes, room->words, room->bytes, remedy);
}

/* Addresses: what is reserved, alignment and guards around an arena, a guard page per stack, and what the libraries map
 * for a moment. Data are private writable pages, without the modules': their small part is left to the run. */
static pl_machine_need need_of(const pl_plan *p)
{
    enum { FOR_A_MOMENT = 1 << 20, AROUND_ARENA = PL_HUGE_PAGE_BYTES + 2 * PL_PAGE_BYTES };
    pl_machine_need n = {.charged_bytes = pl_plan_charged_bytes(p),
                         .resident_bytes = pl_plan_resident_bytes(p),
                         .address_bytes = FOR_A_MOMENT,
                         .at_once_key = pl_plan_words_of(p)->at_once_key};
    for (size_t i = 0; i < p->ledger.row_count; i++) {
        const pl_memory_row *r = &p->ledger.row[i];
        bool stacks = r->kind == PL_MEMORY_THREAD_STACK, arena = r->kind == PL_MEMORY_ARENA;
        n.address_bytes += r->reserved_bytes + (arena ? AROUND_ARENA : stacks ? r->count * PL_PAGE_BYTES : 0);
        if (stacks || arena || r->kind == PL_MEMORY_HEAP) n.data_bytes += r->reserved_bytes;
    }
    return n;
}

pl_status pl_plan_check_machine(const pl_plan *plan, pl_error *err)
{
    pl_machine machine;
    pl_machine_need need = need_of(plan);
    PL_TRY(pl_machine_planned(&machine, err));
    return pl_machine_check_limits(&machine, &need, err);
}

pl_status pl_runner_check(const pl_plan *plan, const char *files, pl_error *err)
{
    const uint64_t own = pl_folder_memory_bytes(files), counted = plan->writer_cache_bytes;
    pl_machine machine;
    pl_machine_need need = need_of(plan);
    pl_threads_end(); /* kernels were measured with them */
    PL_TRY(pl_machine_read("", &machine, err));
    PL_TRY(pl_machine_check_limits(&machine, &need, err));
    machine.own_bytes += own < counted ? own : counted;
    return pl_machine_check_free(&machine, &need, err);
}

pl_status pl_room_check_beside(const pl_plan *plan, uint64_t bytes, pl_error *err)
{
    pl_machine machine;
    pl_machine_need need = need_of(plan);
    uint64_t *const figures[] = {&need.charged_bytes, &need.resident_bytes, &need.address_bytes, &need.data_bytes};
    for (int i = 0; i < 4; i++) *figures[i] += bytes;
    PL_TRY(pl_machine_read("", &machine, err));
    machine.own_bytes = 0;
    PL_TRY(pl_machine_check_limits(&machine, &need, err));
    return pl_machine_check_free(&machine, &need, err);
}

/* ---- the planner's own memory ---- */

static int threads_of(const pl_config *c, const pl_machine *m)
{
    return c->run.threads == PL_CONFIG_AUTO ? m->cores : (int)c->run.threads;
}

pl_status pl_planner_fence(const pl_config *config, pl_error *err)
{
    enum { KERNEL_BYTES = 256 << 10 }; /* page tables, a stack, files that are open */
    pl_machine machine;
    pl_process_planned image;
    pl_process_options o = pl_process_options_default();
    PL_TRY(pl_machine_read("", &machine, err));
    if (machine.cgroup_room_bytes == PL_MACHINE_UNLIMITED) return PL_OK;
    o.parts = PL_PART(planner) | pl_model_family(config)->parts | pl_parts_of_isa(pl_config_find_isa(config));
    PL_TRY(pl_process_plan(&o, 1, 0, NULL, 0, &image, err));
    uint64_t room = machine.cgroup_room_bytes + machine.own_bytes + pl_process_modules_written_bytes();
    uint64_t beside = KERNEL_BYTES;
    for (size_t i = 0; i < image.row_count; i++)
        if (image.row[i].kind == PL_MEMORY_PROGRAM || image.row[i].kind == PL_MEMORY_LIBRARY)
            beside += image.row[i].resident_bytes;
    if (pl_machine_is_tight(&machine)) PL_TRY(pl_process_read_pages_singly(err));
    pl_process_fence(room > beside ? room - beside : 0, threads_of(config, &machine));
    return PL_OK;
}

bool pl_planner_fence_struck(void) { return pl_process_fence_struck(); }
