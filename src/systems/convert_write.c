/* What is written is known to the byte before anything is: first the memory for it is taken, and the room on the disk
 * looked at; then nothing asks for memory. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "base/size.h"
#include "systems/convert.h"

enum { COPIED_MAX = PL_TOKENIZER_FILE_MAX };

/* ---- what it will take ---- */

static pl_status side_bytes(const pl_side_file *s, uint64_t *bytes, pl_error *err)
{
    struct stat st;
    *bytes = s->text.bytes;
    if (s->text.failed) return pl_fail(err, PL_E_NOMEM, "no memory for %s", s->name);
    if (!s->copied) return PL_OK;
    if (stat(s->copied, &st) != 0)
        return pl_fail(err, PL_E_DATA, "%s: cannot be examined: %s", s->copied, strerror(errno));
    *bytes = (uint64_t)st.st_size;
    return PL_OK;
}

static pl_status plan_folder(pl_conversion *c, pl_error *err)
{
    const uint64_t most = c->o->shard_bytes ? c->o->shard_bytes : UINT64_C(5000000000);
    PL_TRY(pl_shards_init(&c->shards, &c->list, most, err));
    if (c->shards.count > 1)
        pl_shards_print_index(&c->shards, &pl_convert_add_side(c, "model.safetensors.index.json")->text);
    c->file_bytes = c->shards.bytes;
    for (size_t i = 0; i < c->sides; i++) {
        uint64_t bytes;
        PL_TRY(side_bytes(&c->side[i], &bytes, err));
        if (pl_size_add(c->file_bytes, bytes, &c->file_bytes)) return pl_fail(err, PL_E_DATA, "too many bytes");
    }
    c->files = c->shards.count + c->sides;
    return PL_OK;
}

static pl_status plan_file(pl_conversion *c, pl_error *err)
{
    const pl_gguf_vector *divisors = c->words.divisors.numbers ? &c->words.divisors : NULL;
    c->files = 1;
    return pl_gguf_lay_out(&c->keys, divisors, &c->list, &c->header, &c->file_bytes, err);
}

/* The folder in which the new files come to lie. */
static void find_parent(const char *out, char parent[PL_FILE_PATH_MAX])
{
    size_t bytes = strlen(out);
    while (bytes > 1 && out[bytes - 1] == '/') bytes--;
    while (bytes > 0 && out[bytes - 1] != '/') bytes--;
    snprintf(parent, PL_FILE_PATH_MAX, "%.*s", bytes ? (int)bytes : 1, bytes ? out : ".");
}

static pl_status check_disk(const pl_conversion *c, pl_error *err)
{
    char parent[PL_FILE_PATH_MAX];
    struct statvfs disk;
    find_parent(c->out, parent);
    if (statvfs(parent, &disk) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be used as a folder: %s", parent, strerror(errno));
    uint64_t free_bytes;
    if (pl_size_mul(disk.f_bavail, disk.f_frsize, &free_bytes) || free_bytes >= c->file_bytes) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: takes %" PRIu64 " bytes, but only %" PRIu64 " are free there", c->out,
                   c->file_bytes, free_bytes);
}

pl_status pl_convert_plan(pl_conversion *c, pl_error *err)
{
    PL_TRY(c->to_gguf ? plan_file(c, err) : plan_folder(c, err));
    PL_TRY(check_disk(c, err));
    c->room = pl_written_room_plan(c->from, &c->list);
    c->done->prepared_bytes = c->meter.peak_bytes;
    c->done->planned_bytes = c->meter.held_bytes + pl_written_room_bytes(&c->room) +
                             pl_alloc_block_bytes(c->files * sizeof *c->file) +
                             pl_alloc_block_bytes(c->list.count * sizeof *c->told);
    c->done->files = c->files, c->done->file_bytes = c->file_bytes;
    c->meter.peak_bytes = c->meter.held_bytes;
    PL_TRY(pl_written_room_init(&c->room, err));
    c->file = pl_alloc(c->files, sizeof *c->file);
    c->done->tensor = c->told = pl_alloc(c->list.count, sizeof *c->told);
    return c->file && c->told ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for %zu files", c->files);
}

/* ---- writing ---- */

static void tell(void *context, const pl_written *w, const pl_written_loss *loss)
{
    pl_conversion *c = context;
    pl_converted *done = c->done;
    const bool is_rounded = loss->error_squares > 0;
    const double relative = is_rounded ? sqrt(loss->error_squares / loss->squares) : 0;
    pl_converted_tensor *told = &c->told[done->tensors++];
    *told = (pl_converted_tensor){.from = pl_encoding_name(w->part[0]->encoding),
                                  .to = pl_encoding_name(w->encoding),
                                  .numbers = (uint64_t)(w->rows * w->columns),
                                  .bytes = w->bytes,
                                  .relative_error = relative,
                                  .largest_error = loss->largest};
    snprintf(told->name, sizeof told->name, "%s", w->name);
    done->rounded += is_rounded, done->numbers += told->numbers;
    if (relative > done->worst_relative_error) done->worst_relative_error = relative, done->worst = told->name;
    if (is_rounded) c->squares += loss->squares, c->error_squares += loss->error_squares;
}

static pl_status write_gguf(pl_conversion *c, pl_error *err)
{
    pl_file_writer *f = c->file;
    const pl_gguf_vector *v = &c->words.divisors;
    PL_TRY(pl_file_create_alone(f, c->out, err));
    PL_TRY(pl_convert_check_free(c, err));
    PL_TRY(pl_file_write(f, pl_str_text(&c->header), c->header.bytes, err));
    if (v->numbers) {
        PL_TRY(pl_file_write(f, v->numbers, v->count * sizeof *v->numbers, err));
        PL_TRY(pl_gguf_pad(f, err));
    }
    for (size_t i = 0; i < c->list.count; i++) {
        pl_written_loss loss;
        PL_TRY(pl_written_put(c->from, &c->list.of[i], &c->room, f, &loss, err));
        PL_TRY(pl_gguf_pad(f, err));
        tell(c, &c->list.of[i], &loss);
    }
    return PL_OK;
}

static pl_status copy(const pl_conversion *c, const pl_side_file *s, pl_file_writer *f, pl_error *err)
{
    int fd;
    uint64_t bytes;
    if (!s->copied) return pl_file_write(f, pl_str_text(&s->text), s->text.bytes, err);
    PL_TRY(pl_file_open(s->copied, &fd, &bytes, err));
    pl_status status = PL_OK;
    for (uint64_t at = 0, some; at < bytes && status == PL_OK; at += some) {
        some = bytes - at < c->room.staging_bytes ? bytes - at : c->room.staging_bytes;
        status = pl_file_read_at(fd, s->copied, at, c->room.staging, (size_t)some, err);
        if (status == PL_OK) status = pl_file_write(f, c->room.staging, (size_t)some, err);
    }
    pl_io_close(fd);
    return status;
}

static pl_status create(const pl_conversion *c, const char *name, pl_file_writer *f, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, c->out, name, err));
    return pl_file_create_alone(f, path, err);
}

/* What a killed conversion left, whatever number of files it had. `held`: the one that is ours already. */
static pl_status remove_left(const pl_conversion *c, const char *held, pl_error *err)
{
    int error = 0;
    DIR *d = opendir(c->out);
    for (const struct dirent *e; d && !error && (e = readdir(d));)
        if (pl_ends_with(e->d_name, PL_FILE_TEMPORARY) && strcmp(e->d_name, held) != 0)
            error = pl_remove_at(dirfd(d), e->d_name);
    if (d) closedir(d);
    return error ? pl_fail(err, PL_E_STORAGE, "%s: cannot be emptied: %s; move it away", c->out, strerror(error))
                 : PL_OK;
}

/* Every conversion into a folder begins with config.json: who holds it has the folder. The writer is its own later. */
static pl_status take_folder(pl_conversion *c, pl_file_writer *sides, pl_error *err)
{
    PL_TRY(pl_folder_create(c->out, err));
    for (size_t i = 0; i < c->sides; i++)
        if (strcmp(c->side[i].name, "config.json") == 0) PL_TRY(create(c, c->side[i].name, &sides[i], err));
    PL_TRY(pl_convert_check_free(c, err));
    return remove_left(c, "config.json" PL_FILE_TEMPORARY, err);
}

static pl_status write_folder(pl_conversion *c, pl_error *err)
{
    char name[PL_SHARD_NAME_BYTES];
    pl_file_writer *f = c->file;
    PL_TRY(take_folder(c, f + c->shards.count, err));
    for (uint32_t i = 0; i < c->shards.count; i++, f++) {
        PL_TRY(create(c, pl_shards_name(&c->shards, i, name), f, err));
        PL_TRY(pl_shards_write(&c->shards, i, c->from, &c->room, f, tell, c, err));
    }
    for (size_t i = 0; i < c->sides; i++, f++) {
        if (!f->temporary[0]) PL_TRY(create(c, c->side[i].name, f, err));
        PL_TRY(copy(c, &c->side[i], f, err));
    }
    return PL_OK;
}

static pl_status check_size(const pl_conversion *c, pl_error *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->files; i++) bytes += c->file[i].bytes;
    if (bytes == c->file_bytes) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: %" PRIu64 " bytes were written, but %" PRIu64
                   " were planned; a file of the model changed meanwhile",
                   c->out, bytes, c->file_bytes);
}

pl_status pl_convert_write(pl_conversion *c, pl_error *err)
{
    pl_status status = c->to_gguf ? write_gguf(c, err) : write_folder(c, err);
    if (status == PL_OK) status = check_size(c, err);
    if (status == PL_OK) status = pl_file_commit_all(c->file, c->files, err);
    for (size_t i = 0; i < c->files && status != PL_OK; i++) pl_file_abandon(&c->file[i]);
    if (status != PL_OK && !c->to_gguf) (void)pl_remove_made(c->out, NULL);
    c->done->measured_bytes = c->meter.peak_bytes;
    if (c->squares > 0) c->done->relative_error = sqrt(c->error_squares / c->squares);
    return status;
}
