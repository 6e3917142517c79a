#include "store/block_index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "store/checksum.h"

static const char magic[8] = {'P', 'L', 'B', 'L', 'O', 'C', 'K', 'S'};
static const unsigned char hdf5_magic[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
static const char *const forms[PL_BLOCK_FORMS] = {"native", "hdf5", "npy"};

const char *pl_block_form_name(pl_block_form form) { return (unsigned)form < PL_BLOCK_FORMS ? forms[form] : "?"; }

int pl_block_form_parse(const char *text, pl_block_form *form)
{
    for (int i = 0; i < PL_BLOCK_FORMS; i++)
        if (strcmp(text, forms[i]) == 0) return *form = (pl_block_form)i, 0;
    return -1;
}

/* ---- sizes ---- */

uint64_t pl_block_header_bytes(uint32_t kinds, uint32_t datasets, uint64_t text_bytes)
{
    return pl_align_up(sizeof(pl_block_head) + kinds * sizeof(pl_block_kind_record) +
                           datasets * sizeof(pl_block_dataset_record) + text_bytes,
                       PL_BLOCK_ALIGN);
}

uint64_t pl_block_marks_bytes(uint64_t blocks)
{
    return pl_align_up((blocks + 1) * sizeof(pl_block_mark), PL_BLOCK_ALIGN);
}

uint64_t pl_block_carry_stride(uint64_t carry_bytes)
{
    return pl_align_up(sizeof(pl_block_carry_head) + carry_bytes, PL_BLOCK_ALIGN);
}

uint64_t pl_block_carry_at(const pl_block_head *h, uint32_t slot, uint32_t place)
{
    return pl_block_marks_at(h) + pl_block_marks_bytes(h->blocks) +
           (2 * (uint64_t)slot + place) * pl_block_carry_stride(h->carry_bytes);
}

uint64_t pl_block_file_end(const pl_block_index *ix, uint32_t dataset)
{
    const pl_block_dataset_record *r = &ix->record[dataset];
    return ix->head.form == PL_BLOCK_NPY ? r->offset + r->bytes : ix->head.file_bytes;
}

/* ---- from a layout ---- */

/* Names were checked; what is behind them stays zero, because it is part of the checksum. */
static void copy_name(char *to, const char *from, size_t room)
{
    memset(to, 0, room);
    memcpy(to, from, strnlen(from, room - 1));
}

static void fill_kind(pl_block_kind_record *r, const pl_block_kind *k)
{
    *r = (pl_block_kind_record){.axes = k->axes};
    copy_name(r->name, k->name, sizeof r->name);
    for (uint32_t i = 0; i < k->axes; i++) {
        copy_name(r->axis[i].name, k->axis[i].name, sizeof r->axis[i].name);
        r->axis[i].extent = k->axis[i].extent;
        r->axis[i].step = k->axis[i].step;
    }
}

static void fill_dataset(pl_block_dataset_record *r, const pl_block_dataset *d)
{
    *r = (pl_block_dataset_record){.rank = d->rank, .kind = d->kind, .bytes = pl_block_dataset_bytes(d)};
    copy_name(r->name, d->name, sizeof r->name);
    copy_name(r->dtype, pl_dtype_name(d->dtype), sizeof r->dtype);
    r->flags = (d->is_text ? PL_BLOCK_FLAG_TEXT : 0) | (d->constant ? PL_BLOCK_FLAG_CONSTANT : 0);
    for (uint32_t i = 0; i < d->rank; i++) r->shape[i] = d->shape[i];
    if (d->constant) r->constant_hash = pl_checksum_of(d->constant, r->bytes);
}

void pl_block_index_fill(pl_block_index *ix, const pl_block_layout *l, pl_block_form form)
{
    const uint64_t text_bytes = strlen(l->text), blocks = pl_block_count(l);
    pl_block_head *h = &ix->head;
    *h = (pl_block_head){.version = PL_BLOCK_VERSION,
                         .form = form,
                         .header_bytes = pl_block_header_bytes(l->kinds, l->datasets, text_bytes),
                         .blocks = blocks,
                         .kinds = l->kinds,
                         .datasets = l->datasets,
                         .text_bytes = text_bytes,
                         .first = l->first,
                         .whole = l->whole,
                         .carry_slots = l->carry_slots,
                         .carry_bytes = l->carry_bytes};
    memcpy(h->magic, magic, sizeof magic);
    h->index_bytes = pl_block_carry_at(h, l->carry_slots, 0);
    for (uint32_t i = 0; i < l->kinds; i++) fill_kind(&ix->kind_record[i], &l->kind[i]);
    for (uint32_t i = 0; i < l->datasets; i++) fill_dataset(&ix->record[i], &l->dataset[i]);
}

static void sum_records(const pl_block_index *ix, pl_checksum *sum)
{
    pl_block_head head = ix->head;
    head.checksum = 0;
    pl_checksum_init(sum);
    pl_checksum_update(sum, &head, sizeof head);
    pl_checksum_update(sum, ix->kind_record, head.kinds * sizeof *ix->kind_record);
    pl_checksum_update(sum, ix->record, head.datasets * sizeof *ix->record);
}

uint64_t pl_block_index_checksum(const pl_block_index *ix, const char *text)
{
    pl_checksum sum;
    sum_records(ix, &sum);
    pl_checksum_update(&sum, text, ix->head.text_bytes);
    return pl_checksum_value(&sum);
}

pl_status pl_block_index_write(pl_block_index *ix, const char *text, pl_error *err)
{
    pl_block_head *h = &ix->head;
    const uint64_t kinds = h->at + sizeof *h, datasets = kinds + h->kinds * sizeof *ix->kind_record;
    const uint64_t words = datasets + h->datasets * sizeof *ix->record;
    h->checksum = pl_block_index_checksum(ix, text);
    PL_TRY(pl_file_put(ix->fd, ix->path, kinds, ix->kind_record, h->kinds * sizeof *ix->kind_record, err));
    PL_TRY(pl_file_put(ix->fd, ix->path, datasets, ix->record, h->datasets * sizeof *ix->record, err));
    PL_TRY(pl_file_put(ix->fd, ix->path, words, text, h->text_bytes, err));
    return pl_file_put(ix->fd, ix->path, h->at, h, sizeof *h, err);
}

/* ---- from the disk ---- */

static pl_status damaged(const pl_block_index *ix, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s: the header of its index at byte %" PRIu64
                   " is damaged (%s): nothing in it can be trusted; move "
                   "the file away and make it anew",
                   ix->path, ix->head.at, what);
}

/* Numbers that decide how much is read. */
static pl_status check_head(const pl_block_index *ix, pl_error *err)
{
    const pl_block_head *h = &ix->head;
    if (h->version != PL_BLOCK_VERSION)
        return pl_fail(err, PL_E_DATA, "%s: is a block file of version %u, this program knows version %d", ix->path,
                       h->version, PL_BLOCK_VERSION);
    if (h->form >= PL_BLOCK_FORMS) return damaged(ix, "its form is unknown", err);
    if (h->kinds < 1 || h->kinds > PL_BLOCK_KINDS_MAX || h->datasets < 1 || h->datasets > PL_BLOCK_DATASETS_MAX)
        return damaged(ix, "its count of kinds or datasets is out of range", err);
    if (h->text_bytes > PL_BLOCK_TEXT_MAX) return damaged(ix, "its text is too long", err);
    if (h->header_bytes != pl_block_header_bytes(h->kinds, h->datasets, h->text_bytes))
        return damaged(ix, "its length does not fit what is in it", err);
    return PL_OK;
}

static pl_status check_checksum(const pl_block_index *ix, uint64_t text_at, pl_error *err)
{
    unsigned char buffer[4096];
    pl_checksum sum;
    sum_records(ix, &sum);
    for (uint64_t at = 0; at < ix->head.text_bytes; at += sizeof buffer) {
        uint64_t left = ix->head.text_bytes - at, n = left < sizeof buffer ? left : sizeof buffer;
        PL_TRY(pl_file_read_at(ix->fd, ix->path, text_at + at, buffer, n, err));
        if (memchr(buffer, 0, n)) return damaged(ix, "its text holds a zero byte", err);
        pl_checksum_update(&sum, buffer, n);
    }
    return pl_checksum_value(&sum) == ix->head.checksum ? PL_OK : damaged(ix, "its checksum is another", err);
}

static bool ends(const char *name, size_t room) { return memchr(name, 0, room) != NULL; }

static pl_status view_kind(pl_block_index *ix, uint32_t i, pl_error *err)
{
    const pl_block_kind_record *r = &ix->kind_record[i];
    bool sound = ends(r->name, sizeof r->name) && r->axes <= PL_BLOCK_AXES_MAX;
    for (uint32_t a = 0; sound && a < r->axes; a++) sound = ends(r->axis[a].name, sizeof r->axis[a].name);
    if (!sound) return damaged(ix, "a kind of blocks is none", err);
    ix->kind[i] = (pl_block_kind){.name = r->name, .axes = r->axes};
    for (uint32_t a = 0; a < r->axes; a++)
        ix->kind[i].axis[a] = (pl_block_axis){r->axis[a].name, r->axis[a].extent, r->axis[a].step};
    return PL_OK;
}

static pl_status view_dataset(pl_block_index *ix, uint32_t i, pl_error *err)
{
    const pl_block_dataset_record *r = &ix->record[i];
    pl_dtype dtype;
    if (!ends(r->name, sizeof r->name) || !ends(r->dtype, sizeof r->dtype) || pl_dtype_parse(r->dtype, &dtype) ||
        r->rank > PL_BLOCK_RANK_MAX)
        return damaged(ix, "a dataset is none", err);
    ix->dataset[i] = (pl_block_dataset){.name = r->name,
                                        .dtype = dtype,
                                        .is_text = r->flags & PL_BLOCK_FLAG_TEXT,
                                        .rank = r->rank,
                                        .kind = r->kind,
                                        .constant = r->flags & PL_BLOCK_FLAG_CONSTANT ? r : NULL};
    for (uint32_t d = 0; d < r->rank; d++) ix->dataset[i].shape[d] = r->shape[d];
    return PL_OK;
}

/* A dataset lies in its file, and on nothing else. */
static pl_status check_place(const pl_block_index *ix, uint32_t i, pl_error *err)
{
    const pl_block_head *h = &ix->head;
    const pl_block_dataset_record *r = &ix->record[i];
    uint64_t end;
    if (r->bytes != pl_block_dataset_bytes(&ix->dataset[i]) || pl_size_add(r->offset, r->bytes, &end) ||
        end > INT64_MAX)
        return damaged(ix, "a dataset has other bytes than its shape", err);
    if (h->form == PL_BLOCK_NPY)
        return r->offset <= PL_BLOCK_ALIGN ? PL_OK : damaged(ix, "a dataset lies too far", err);
    if (end > h->file_bytes || (r->offset < h->at + h->index_bytes && end > h->at))
        return damaged(ix, "a dataset lies outside the file or on the index", err);
    for (uint32_t j = 0; j < i; j++) {
        const pl_block_dataset_record *o = &ix->record[j];
        if (r->offset < o->offset + o->bytes && o->offset < end) return damaged(ix, "two datasets overlap", err);
    }
    return PL_OK;
}

/* The layout as records say it is, checked as a caller's is. */
static pl_status view(pl_block_index *ix, pl_error *err)
{
    const pl_block_head *h = &ix->head;
    uint64_t end;
    pl_error why = {0};
    for (uint32_t i = 0; i < h->kinds; i++) PL_TRY(view_kind(ix, i, err));
    for (uint32_t i = 0; i < h->datasets; i++) PL_TRY(view_dataset(ix, i, err));
    ix->layout = (pl_block_layout){.text = "",
                                   .kind = ix->kind,
                                   .kinds = h->kinds,
                                   .dataset = ix->dataset,
                                   .datasets = h->datasets,
                                   .first = h->first,
                                   .whole = h->whole,
                                   .carry_slots = h->carry_slots,
                                   .carry_bytes = h->carry_bytes};
    if (pl_block_layout_check(&ix->layout, &why) != PL_OK) return damaged(ix, why.text, err);
    ix->layout.text = NULL;
    if (h->blocks != pl_block_count(&ix->layout)) return damaged(ix, "its count of blocks is another", err);
    if (h->index_bytes != pl_block_carry_at(h, h->carry_slots, 0) - h->at || pl_size_add(h->at, h->index_bytes, &end) ||
        end > h->file_bytes || h->file_bytes > INT64_MAX)
        return damaged(ix, "its length does not fit what is in it", err);
    for (uint32_t i = 0; i < h->datasets; i++) PL_TRY(check_place(ix, i, err));
    return PL_OK;
}

static pl_status read_header(pl_block_index *ix, pl_error *err)
{
    const pl_block_head *h = &ix->head;
    const uint64_t kinds = h->at + sizeof *h, datasets = kinds + h->kinds * sizeof *ix->kind_record;
    PL_TRY(check_head(ix, err));
    PL_TRY(pl_file_read_at(ix->fd, ix->path, kinds, ix->kind_record, h->kinds * sizeof *ix->kind_record, err));
    PL_TRY(pl_file_read_at(ix->fd, ix->path, datasets, ix->record, h->datasets * sizeof *ix->record, err));
    PL_TRY(check_checksum(ix, datasets + h->datasets * sizeof *ix->record, err));
    return view(ix, err);
}

/* Reads the head at this place; false when there is none, or one that says it is elsewhere. */
static pl_status read_head(pl_block_index *ix, uint64_t at, uint64_t file_bytes, bool *is_one, pl_error *err)
{
    *is_one = false;
    if (at + sizeof ix->head > file_bytes) return PL_OK;
    PL_TRY(pl_file_read_at(ix->fd, ix->path, at, &ix->head, sizeof ix->head, err));
    *is_one = memcmp(ix->head.magic, magic, sizeof magic) == 0 && ix->head.at == at;
    return PL_OK;
}

static pl_status find_head(pl_block_index *ix, uint64_t file_bytes, pl_error *err)
{
    unsigned char start[8] = {0};
    bool is_one;
    if (file_bytes >= sizeof start) PL_TRY(pl_file_read_at(ix->fd, ix->path, 0, start, sizeof start, err));
    if (memcmp(start, hdf5_magic, sizeof start) != 0) {
        PL_TRY(read_head(ix, 0, file_bytes, &is_one, err));
        if (is_one) return PL_OK;
        return pl_fail(err, PL_E_DATA, "%s: does not begin as a block file or an HDF5 file does; is it one of results?",
                       ix->path);
    }
    for (uint64_t at = PL_BLOCK_ALIGN; at < PL_BLOCK_SEARCH_BYTES; at += PL_BLOCK_ALIGN) {
        PL_TRY(read_head(ix, at, file_bytes, &is_one, err));
        if (is_one) return PL_OK;
    }
    return pl_fail(err, PL_E_DATA,
                   "%s: is an HDF5 file without the index of a run in its place: parts that were joined tell by their "
                   "own files, and what was repacked or is another program's is for tools for HDF5",
                   ix->path);
}

/* ---- open ---- */

pl_status pl_block_path_of(const char *path, pl_block_form form, const char *dataset, char room[PL_FILE_PATH_MAX],
                           pl_error *err)
{
    char name[PL_BLOCK_NAME_BYTES + 8];
    if (form != PL_BLOCK_NPY) {
        if (strlen(path) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
        return strcpy(room, path), PL_OK;
    }
    snprintf(name, sizeof name, "%s%s", dataset ? dataset : "index", dataset ? ".npy" : "");
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '.';
    return pl_path_join(room, PL_FILE_PATH_MAX, path, name, err);
}

static pl_status open_one(const char *path, bool writable, int *fd, uint64_t *bytes, pl_error *err)
{
    struct stat st;
    if (!writable) return pl_file_open(path, fd, bytes, err);
    *fd = pl_io_open(path, O_RDWR | O_NONBLOCK);
    int error = errno;
    if (*fd < 0 && error == ENOENT) return pl_fail(err, PL_E_DATA, "%s: cannot be opened: %s", path, strerror(error));
    if (*fd < 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened for writing: %s%s", path, strerror(error),
                       pl_io_hint(error));
    const bool known = fstat(*fd, &st) == 0;
    if (known && S_ISREG(st.st_mode)) return *bytes = (uint64_t)st.st_size, PL_OK;
    error = errno;
    close(*fd);
    *fd = -1;
    return known ? pl_fail(err, PL_E_DATA, "%s: is not a regular file", path)
                 : pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(error));
}

static pl_status check_index_length(pl_block_index *ix, uint64_t index_file_bytes, pl_error *err)
{
    if (index_file_bytes < ix->head.at + ix->head.index_bytes)
        return pl_fail(err, PL_E_DATA,
                       "%s: ends at byte %" PRIu64 ", within its index, which ends at %" PRIu64
                       "; the file is truncated: move it away and make it anew",
                       ix->path, index_file_bytes, ix->head.at + ix->head.index_bytes);
    ix->short_files = index_file_bytes < ix->head.file_bytes;
    return PL_OK;
}

static pl_status open_data(pl_block_index *ix, bool writable, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    for (uint32_t i = 0; i < ix->head.datasets; i++) {
        uint64_t bytes;
        ix->data_fd[i] = ix->fd;
        if (ix->head.form != PL_BLOCK_NPY) continue;
        ix->data_fd[i] = -1;
        PL_TRY(pl_block_path_of(ix->path, PL_BLOCK_NPY, ix->record[i].name, path, err));
        PL_TRY(open_one(path, writable, &ix->data_fd[i], &bytes, err));
        ix->short_files += bytes < pl_block_file_end(ix, i);
    }
    return PL_OK;
}

void pl_block_index_init(pl_block_index *ix, const char *path)
{
    ix->path = path;
    ix->fd = -1;
    ix->head = (pl_block_head){0};
    ix->layout = (pl_block_layout){0};
    for (uint32_t i = 0; i < PL_BLOCK_DATASETS_MAX; i++) ix->data_fd[i] = -1;
}

/* What no file of results can be, nor become. otherwise: of a path that could be one. */
static pl_status check_path(const char *path, pl_status otherwise, bool *is_folder, bool *is_there, pl_error *err)
{
    char file[PL_FILE_PATH_MAX];
    struct stat st, link;
    const int found = stat(path, &st), error = found == 0 ? 0 : errno;
    *is_there = error != ENOENT;
    *is_folder = found == 0 && S_ISDIR(st.st_mode);
    if (!path[0]) return pl_fail(err, PL_E_USAGE, "an empty name is no file of results");
    if (error == ENOTDIR)
        return pl_fail(err, otherwise, "%s: is no path: what stands before a slash is no folder", path);
    if (error && lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
        return pl_fail(err, otherwise, "%s: is a link that leads nowhere; remove it, or give another name", path);
    if (error == EIO) return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(error));
    if (!*is_folder) return PL_OK;
    PL_TRY(pl_block_path_of(path, PL_BLOCK_NPY, NULL, file, err));
    if (access(file, F_OK) == 0 || errno != ENOENT) return PL_OK;
    return pl_fail(err, otherwise,
                   "%s: is a folder, but none of results, for it has no index; those of a run are in its folder as "
                   "results.blocks, results.h5 or results",
                   path);
}

pl_status pl_block_index_open_head(pl_block_index *ix, const char *path, bool writable, bool *is_there, pl_error *err)
{
    char file[PL_FILE_PATH_MAX];
    bool is_folder, there;
    uint64_t bytes;
    pl_block_index_init(ix, path);
    PL_TRY(check_path(path, is_there ? PL_E_STORAGE : PL_E_DATA, &is_folder, &there, err));
    if (is_there) *is_there = there;
    if (is_there && !there) return PL_OK;
    PL_TRY(pl_block_path_of(path, is_folder ? PL_BLOCK_NPY : PL_BLOCK_NATIVE, NULL, file, err));
    PL_TRY(open_one(file, writable, &ix->fd, &bytes, err));
    PL_TRY(find_head(ix, bytes, err));
    PL_TRY(read_header(ix, err));
    if (is_folder != (ix->head.form == PL_BLOCK_NPY))
        return pl_fail(err, PL_E_DATA, "%s: is %s of results in the form %s; it was renamed or moved", path,
                       is_folder ? "a folder with the index" : "the index", pl_block_form_name(ix->head.form));
    return check_index_length(ix, bytes, err);
}

pl_status pl_block_index_open(pl_block_index *ix, const char *path, bool writable, bool *is_there, pl_error *err)
{
    PL_TRY(pl_block_index_open_head(ix, path, writable, is_there, err));
    return ix->fd < 0 ? PL_OK : open_data(ix, writable, err);
}

void pl_block_index_close(pl_block_index *ix)
{
    if (ix->fd < 0) return;
    for (uint32_t i = 0; ix->head.form == PL_BLOCK_NPY && i < ix->layout.datasets; i++)
        if (ix->data_fd[i] >= 0) close(ix->data_fd[i]);
    close(ix->fd);
    ix->fd = -1;
}

/* A lock of the open file, on the range of its index (F_OFD_SETLK): it goes with the descriptor, however the process
 * ends. Not flock: programs that read HDF5 take that themselves, and may read while a run writes. */
pl_status pl_block_index_lock(const pl_block_index *ix, pl_error *err)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)ix->head.at, .l_len = 1};
    int rc = pl_block_is_held(ix->fd);
    if (rc > 0) return PL_OK;
    if (rc < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", ix->path, strerror(errno));
    do rc = fcntl(ix->fd, F_OFD_SETLK, &range);
    while (rc != 0 && errno == EINTR);
    if (rc == 0) return PL_OK;
    if (errno == EAGAIN || errno == EACCES)
        return pl_fail(err, PL_E_STORAGE,
                       "%s: another process is writing this file; wait for it, stop it, or choose another name",
                       ix->path);
    if (pl_io_has_no_locks(errno))
        return pl_fail(err, PL_E_STORAGE,
                       "%s: " PL_IO_NO_LOCKS "it is not known whether another process is writing this file; nothing of "
                       "it is removed or mended",
                       ix->path);
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be locked: %s", ix->path, strerror(errno));
}

bool pl_block_index_has_locks(const pl_block_index *ix)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)ix->head.at, .l_len = 1};
    return fcntl(ix->fd, F_OFD_GETLK, &range) == 0 || !pl_io_has_no_locks(errno);
}

pl_status pl_block_index_lock_to_write(const pl_block_index *ix, pl_error *err)
{
    return pl_block_index_has_locks(ix) ? pl_block_index_lock(ix, err) : PL_OK;
}

/* ---- is it the same? ---- */

enum { AROUND = 160 }; /* bytes of a text that are shown */

static pl_status differs(const pl_block_index *ix, const char *what, const char *there, const char *wanted,
                         pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG,
                   "%s: holds results of another configuration: %s is %.200s there and %.200s here; choose another "
                   "file, or the configuration that made this one",
                   ix->path, what, there, wanted);
}

static pl_status number_differs(const pl_block_index *ix, const char *what, uint64_t there, uint64_t wanted,
                                pl_error *err)
{
    char a[24], b[24];
    snprintf(a, sizeof a, "%" PRIu64, there);
    snprintf(b, sizeof b, "%" PRIu64, wanted);
    return differs(ix, what, a, b, err);
}

/* The line of the text in which the first difference lies, from its beginning on. */
static void line_at(const char *text, size_t at, char *line, size_t room)
{
    size_t begin = at, n = 0;
    while (begin > 0 && text[begin - 1] != '\n') begin--;
    while (text[begin + n] && text[begin + n] != '\n') n++;
    if (n >= room || at - begin > room / 2) { /* a long line: what is around */
        begin = at - begin > room / 2 ? at - room / 4 : begin;
        n = strnlen(text + begin, room - 1);
    }
    snprintf(line, room, "\"%.*s\"", (int)n, text + begin);
}

/* An entry of a flat object of texts, {"KEY":"VALUE",…}, which is how systems say what made their results. */
typedef struct entry {
    uint64_t begin, key, key_end, value, value_end; /* begin: its '{' or ',' */
} entry;

/* From a quotation mark to behind the next. */
static bool skip_quoted(const char *text, uint64_t *at)
{
    if (text[*at] != '"') return false;
    for (++*at; text[*at] && text[*at] != '"'; ++*at)
        if (text[*at] == '\\' && text[*at + 1]) ++*at;
    return text[*at] && ++*at;
}

/* The entry that begins at `at`, which goes behind it. */
static bool next_entry(const char *text, uint64_t *at, entry *e)
{
    if (text[*at] != (*at ? ',' : '{')) return false;
    e->begin = (*at)++;
    e->key = *at + 1;
    if (!skip_quoted(text, at) || text[*at] != ':') return false;
    e->key_end = *at - 1;
    e->value = ++*at + 1;
    if (!skip_quoted(text, at)) return false;
    e->value_end = *at - 1;
    return true;
}

/* The one in whose value that place lies. */
static bool find_entry(const char *text, uint64_t place, entry *e)
{
    for (uint64_t at = 0; next_entry(text, &at, e);)
        if (place < at) return place >= e->value;
    return false;
}

static bool has_key(const char *text, const char *key, uint64_t length)
{
    entry e;
    for (uint64_t at = 0; next_entry(text, &at, &e);)
        if (e.key_end - e.key == length && memcmp(text + e.key, key, length) == 0) return true;
    return false;
}

/* From `from` on, to its closing mark or as far as there is room. */
static void print_value(const char *from, bool from_within, char *value, size_t room)
{
    size_t n = 0;
    while (from[n] && from[n] != '"' && n + 8 < room) n += from[n] == '\\' && from[n + 1] ? 2 : 1;
    if (n == 0 && !from_within)
        snprintf(value, room, "empty");
    else
        snprintf(value, room, "%s%.*s%s", from_within ? "…" : "", (int)n, from, from[n] == '"' ? "" : "…");
}

static pl_status entry_differs(const pl_block_index *ix, uint64_t text_at, const char *text, const entry *e,
                               uint64_t place, pl_error *err)
{
    char key[AROUND], buffer[AROUND + 1] = "", there[AROUND], here[AROUND];
    const bool is_long = place - e->value > AROUND / 2;
    const uint64_t from = is_long ? place - AROUND / 4 : e->value, left = ix->head.text_bytes - from;
    snprintf(key, sizeof key, "%.*s", (int)(e->key_end - e->key), text + e->key);
    PL_TRY(pl_file_read_at(ix->fd, ix->path, text_at + from, buffer, left < AROUND ? left : AROUND, err));
    print_value(buffer, is_long, there, sizeof there);
    print_value(text + from, is_long, here, sizeof here);
    return differs(ix, key, there, here, err);
}

/* "key is value there and not set here", or the other way about. */
static pl_status entry_lacks(const pl_block_index *ix, const char *text, const entry *e, bool is_here, pl_error *err)
{
    static const char not_set[] = "not set";
    char key[AROUND], value[AROUND];
    snprintf(key, sizeof key, "%.*s", (int)(e->key_end - e->key), text + e->key);
    print_value(text + e->value, false, value, sizeof value);
    return differs(ix, key, is_here ? not_set : value, is_here ? value : not_set, err);
}

/* Where the first difference is a key, one side has one that the other lacks. PL_OK: it is not. */
static pl_status match_keys(const pl_block_index *ix, uint64_t text_at, const char *text, uint64_t place, pl_error *err)
{
    char buffer[1024] = "";
    entry here, there;
    uint64_t at = 0, zero = 0;
    bool is_here;
    while ((is_here = next_entry(text, &at, &here)) && place >= at) {
    }
    const uint64_t begin = is_here ? here.begin : at, left = ix->head.text_bytes - begin;
    if (place < begin || begin >= ix->head.text_bytes || (is_here && place >= here.value)) return PL_OK;
    PL_TRY(pl_file_read_at(ix->fd, ix->path, text_at + begin, buffer,
                           left < sizeof buffer - 1 ? left : sizeof buffer - 1, err));
    if (buffer[0] == ',') buffer[0] = '{'; /* as if it were the first */
    const bool is_there = next_entry(buffer, &zero, &there);
    if (is_there && !has_key(text, buffer + there.key, there.key_end - there.key))
        return entry_lacks(ix, buffer, &there, false, err);
    return is_here ? entry_lacks(ix, text, &here, true, err) : PL_OK;
}

pl_status pl_block_index_match_text(const pl_block_index *ix, const char *text, pl_error *err)
{
    const pl_block_head *h = &ix->head;
    entry e;
    const uint64_t text_at = pl_block_marks_at(h) - h->header_bytes + sizeof *h + h->kinds * sizeof *ix->kind_record +
                             h->datasets * sizeof *ix->record;
    const uint64_t length = strlen(text);
    char buffer[1024], there[AROUND], here[AROUND];
    for (uint64_t at = 0; at < h->text_bytes || at < length; at += sizeof buffer / 2) {
        uint64_t left = h->text_bytes > at ? h->text_bytes - at : 0;
        uint64_t n = left < sizeof buffer - 1 ? left : sizeof buffer - 1, same = 0;
        PL_TRY(pl_file_read_at(ix->fd, ix->path, text_at + at, buffer, n, err));
        buffer[n] = 0;
        while (same < n && at + same < length && buffer[same] == text[at + same]) same++;
        if (same == n && (at + n == length || n == sizeof buffer - 1)) continue;
        if (find_entry(text, at + same, &e)) return entry_differs(ix, text_at, text, &e, at + same, err);
        PL_TRY(match_keys(ix, text_at, text, at + same, err));
        line_at(buffer, same, there, sizeof there);
        line_at(text, at + same, here, sizeof here);
        return differs(ix, "the text that says what made it", there, here, err);
    }
    return PL_OK;
}

static pl_status match_kind(const pl_block_index *ix, uint32_t i, const pl_block_kind *k, pl_error *err)
{
    const pl_block_kind_record *r = &ix->kind_record[i];
    char what[2 * PL_BLOCK_WORD_BYTES + 32];
    if (strcmp(r->name, k->name) != 0) return differs(ix, "a kind of blocks", r->name, k->name, err);
    snprintf(what, sizeof what, "the number of axes of %s", k->name);
    if (r->axes != k->axes) return number_differs(ix, what, r->axes, k->axes, err);
    for (uint32_t a = 0; a < k->axes; a++) {
        snprintf(what, sizeof what, "axis %u of %s", a, k->name);
        if (strcmp(r->axis[a].name, k->axis[a].name) != 0)
            return differs(ix, what, r->axis[a].name, k->axis[a].name, err);
        snprintf(what, sizeof what, "the extent of the axis %s of %s", k->axis[a].name, k->name);
        if (r->axis[a].extent != k->axis[a].extent)
            return number_differs(ix, what, r->axis[a].extent, k->axis[a].extent, err);
        snprintf(what, sizeof what, "%s in a block of %s", k->axis[a].name, k->name);
        if (r->axis[a].step != k->axis[a].step) return number_differs(ix, what, r->axis[a].step, k->axis[a].step, err);
    }
    return PL_OK;
}

static const char *print_shape(const char *dtype, uint32_t rank, const uint64_t *shape, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s [", dtype);
    for (uint32_t i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRIu64, i ? "," : "", shape[i]);
    snprintf(text + used, room - used, "]");
    return text;
}

static pl_status match_dataset(const pl_block_index *ix, uint32_t i, const pl_block_dataset *d, pl_error *err)
{
    const pl_block_dataset_record *r = &ix->record[i];
    const uint32_t flags = (d->is_text ? PL_BLOCK_FLAG_TEXT : 0) | (d->constant ? PL_BLOCK_FLAG_CONSTANT : 0);
    char there[192], here[192];
    if (strcmp(r->name, d->name) != 0) return differs(ix, "a dataset", r->name, d->name, err);
    if (strcmp(r->dtype, pl_dtype_name(d->dtype)) != 0 || r->rank != d->rank ||
        memcmp(r->shape, d->shape, d->rank * sizeof *d->shape) != 0)
        return differs(ix, d->name, print_shape(r->dtype, r->rank, r->shape, there, sizeof there),
                       print_shape(pl_dtype_name(d->dtype), d->rank, d->shape, here, sizeof here), err);
    if (r->kind == d->kind && r->flags == flags &&
        (!d->constant || r->constant_hash == pl_checksum_of(d->constant, r->bytes)))
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: holds results of another configuration: %s has other contents there, or other blocks make it; "
                   "choose another file, or the configuration that made this one",
                   ix->path, d->name);
}

pl_status pl_block_index_match(const pl_block_index *ix, const pl_block_layout *l, pl_error *err)
{
    const pl_block_head *h = &ix->head;
    PL_TRY(pl_block_index_match_text(ix, l->text, err));
    if (h->first != l->first) return number_differs(ix, "the beginning of its part", h->first, l->first, err);
    if (h->whole != l->whole) return number_differs(ix, "the whole of its parts", h->whole, l->whole, err);
    if (h->kinds != l->kinds) return number_differs(ix, "the number of kinds of blocks", h->kinds, l->kinds, err);
    for (uint32_t i = 0; i < l->kinds; i++) PL_TRY(match_kind(ix, i, &l->kind[i], err));
    if (h->datasets != l->datasets) return number_differs(ix, "the number of datasets", h->datasets, l->datasets, err);
    for (uint32_t i = 0; i < l->datasets; i++) PL_TRY(match_dataset(ix, i, &l->dataset[i], err));
    if (h->carry_bytes != l->carry_bytes && h->carry_slots && l->carry_slots)
        return number_differs(ix, "the bytes to go on from", h->carry_bytes, l->carry_bytes, err);
    return PL_OK;
}
