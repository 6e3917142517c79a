#include "store/block_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* ---- check ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters, in parts divided by "/" where that is allowed; at most room − 1 of them. */
static bool is_name(const char *name, size_t room, bool parts)
{
    size_t n = name ? strnlen(name, room) : 0;
    if (n == 0 || n == room) return false;
    for (size_t i = 0; i < n; i++) {
        bool divides = parts && name[i] == '/' && i > 0 && i + 1 < n && name[i - 1] != '/';
        if (!is_letter(name[i]) && !divides) return false;
    }
    return true;
}

static pl_status check_kind(const pl_block_kind *k, uint32_t index, pl_error *err)
{
    uint64_t count = 1;
    if (!is_name(k->name, PL_BLOCK_WORD_BYTES, false))
        return pl_fail(err, PL_E_USAGE, "kind %u of blocks has no name of at most %d letters", index,
                       PL_BLOCK_WORD_BYTES - 1);
    if (k->axes > PL_BLOCK_AXES_MAX)
        return pl_fail(err, PL_E_USAGE, "%s: has %u axes, at most %d are allowed", k->name, k->axes, PL_BLOCK_AXES_MAX);
    for (uint32_t i = 0; i < k->axes; i++) {
        const pl_block_axis *a = &k->axis[i];
        if (!is_name(a->name, PL_BLOCK_WORD_BYTES, false))
            return pl_fail(err, PL_E_USAGE, "%s: axis %u has no name of at most %d letters", k->name, i,
                           PL_BLOCK_WORD_BYTES - 1);
        if (a->extent == 0 || a->step == 0 || (i + 1 < k->axes && a->step != 1))
            return pl_fail(err, PL_E_USAGE,
                           "%s: axis %s has extent %" PRIu64 " and step %" PRIu64
                           "; both must be at least 1, and the step 1 but for the last axis",
                           k->name, a->name, a->extent, a->step);
        if (pl_size_mul(count, a->extent, &count) || count > INT64_MAX)
            return pl_fail(err, PL_E_USAGE, "%s: its axes multiply to more than 2^63", k->name);
    }
    return PL_OK;
}

static pl_status wrong_shape(const pl_block_dataset *d, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_USAGE, "dataset %.64s: %s", d->name, what);
}

static pl_status check_bytes(const pl_block_dataset *d, pl_error *err)
{
    uint64_t bytes = pl_dtype_bytes(d->dtype);
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->shape[i] == 0 || pl_size_mul(bytes, d->shape[i], &bytes) || bytes > INT64_MAX)
            return wrong_shape(d, "its shape holds a 0 or multiplies to more bytes than a file can hold", err);
    return PL_OK;
}

static pl_status check_dataset(const pl_block_layout *l, uint32_t index, pl_error *err)
{
    const pl_block_dataset *d = &l->dataset[index];
    if (!is_name(d->name, PL_BLOCK_NAME_BYTES, true))
        return pl_fail(err, PL_E_USAGE,
                       "dataset %u has no name of at most %d letters, digits and _, in parts divided by /", index,
                       PL_BLOCK_NAME_BYTES - 1);
    if ((unsigned)d->dtype >= PL_DTYPE_COUNT) return wrong_shape(d, "its dtype is unknown", err);
    if (d->rank < 1 || d->rank > PL_BLOCK_RANK_MAX) return wrong_shape(d, "1 to 8 dimensions were expected", err);
    if (d->is_text && d->dtype != PL_DTYPE_U8) return wrong_shape(d, "a text is of dtype u8", err);
    if (d->kind == PL_BLOCK_NO_KIND)
        return d->constant ? check_bytes(d, err) : wrong_shape(d, "no block makes it, and it is no constant", err);
    if (d->kind >= l->kinds) return wrong_shape(d, "its kind of blocks is not there", err);
    const pl_block_kind *k = &l->kind[d->kind];
    if (d->rank < k->axes || (d->is_text && d->rank == k->axes))
        return wrong_shape(d, "it has fewer dimensions than its blocks have axes", err);
    for (uint32_t i = 0; i < k->axes; i++)
        if (d->shape[i] != k->axis[i].extent) return wrong_shape(d, "its shape is not that of its axes", err);
    return check_bytes(d, err);
}

/* One name may not be the folder of another, either: HDF5 has groups for that. */
static pl_status check_names(const pl_block_layout *l, pl_error *err)
{
    for (uint32_t i = 0; i < l->datasets; i++)
        for (uint32_t j = 0; j < l->datasets; j++) {
            const char *a = l->dataset[i].name, *b = l->dataset[j].name;
            size_t n = strlen(a);
            if (i != j && strncmp(a, b, n) == 0 && (b[n] == 0 || b[n] == '/'))
                return pl_fail(err, PL_E_USAGE, "dataset %s: has the name, or is in the group, of another one", b);
        }
    return PL_OK;
}

static pl_status check_used(const pl_block_layout *l, pl_error *err)
{
    for (uint32_t i = 0; i < l->kinds; i++) {
        bool used = false;
        for (uint32_t k = 0; k < l->datasets; k++) used |= pl_block_is_made(&l->dataset[k]) && l->dataset[k].kind == i;
        if (!used) return pl_fail(err, PL_E_USAGE, "%s: blocks of this kind make no dataset", l->kind[i].name);
    }
    return PL_OK;
}

static pl_status check_part(const pl_block_layout *l, pl_error *err)
{
    uint64_t share = 0, end;
    for (uint32_t i = 0; i < l->kinds && l->whole; i++) {
        uint64_t extent = l->kind[i].axes ? l->kind[i].axis[0].extent : 0;
        if (i == 0) share = extent;
        if (extent == 0 || extent != share)
            return pl_fail(err, PL_E_USAGE, "%s: a part has one first axis, the same for each kind", l->kind[i].name);
    }
    if (l->whole && (pl_size_add(l->first, share, &end) || end > l->whole))
        return pl_fail(err, PL_E_USAGE, "a part of %" PRIu64 " from %" PRIu64 " on is more than the whole, %" PRIu64,
                       share, l->first, l->whole);
    return PL_OK;
}

static pl_status check_totals(const pl_block_layout *l, pl_error *err)
{
    uint64_t bytes = 0, blocks = 0;
    int over = 0;
    for (uint32_t i = 0; i < l->datasets; i++)
        over |= pl_size_add(bytes, pl_block_dataset_bytes(&l->dataset[i]), &bytes);
    for (uint32_t i = 0; i < l->kinds; i++) over |= pl_size_add(blocks, pl_block_count_of(&l->kind[i]), &blocks);
    if (over || bytes > INT64_MAX / 2 || blocks > INT64_MAX / 64)
        return pl_fail(err, PL_E_USAGE, "the datasets together are more than a file can hold");
    if (l->carry_slots && (l->carry_bytes == 0 || l->carry_bytes > INT64_MAX / 64 / l->carry_slots))
        return pl_fail(err, PL_E_USAGE, "%u slots of %" PRIu64 " bytes to go on from are more than a file can hold",
                       l->carry_slots, l->carry_bytes);
    return PL_OK;
}

pl_status pl_block_layout_check(const pl_block_layout *l, pl_error *err)
{
    if (l->kinds < 1 || l->kinds > PL_BLOCK_KINDS_MAX || l->datasets < 1 || l->datasets > PL_BLOCK_DATASETS_MAX)
        return pl_fail(err, PL_E_USAGE, "1 to %d kinds of blocks and 1 to %d datasets were expected, not %u and %u",
                       PL_BLOCK_KINDS_MAX, PL_BLOCK_DATASETS_MAX, l->kinds, l->datasets);
    if (strnlen(l->text, PL_BLOCK_TEXT_MAX + 1) > PL_BLOCK_TEXT_MAX)
        return pl_fail(err, PL_E_USAGE, "the text that says what made a file has more than %d bytes",
                       PL_BLOCK_TEXT_MAX);
    if (l->attributes > PL_BLOCK_ATTRIBUTES_MAX)
        return pl_fail(err, PL_E_USAGE, "%u attributes are more than %d", l->attributes, PL_BLOCK_ATTRIBUTES_MAX);
    for (uint32_t i = 0; i < l->kinds; i++) PL_TRY(check_kind(&l->kind[i], i, err));
    for (uint32_t i = 0; i < l->datasets; i++) PL_TRY(check_dataset(l, i, err));
    PL_TRY(check_names(l, err));
    PL_TRY(check_used(l, err));
    PL_TRY(check_part(l, err));
    return check_totals(l, err);
}

/* ---- numbers ---- */

/* Blocks along the last axis. */
static uint64_t pieces_of(const pl_block_kind *k)
{
    if (k->axes == 0) return 1;
    const pl_block_axis *last = &k->axis[k->axes - 1];
    return (last->extent - 1) / last->step + 1;
}

uint64_t pl_block_count_of(const pl_block_kind *k)
{
    uint64_t count = pieces_of(k);
    for (uint32_t i = 0; i + 1 < k->axes; i++) count *= k->axis[i].extent;
    return count;
}

uint64_t pl_block_count(const pl_block_layout *l)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < l->kinds; i++) count += pl_block_count_of(&l->kind[i]);
    return count;
}

uint64_t pl_block_at(const pl_block_layout *l, uint32_t kind, const uint64_t place[])
{
    const pl_block_kind *k = &l->kind[kind];
    uint64_t base = 0, at = 0;
    for (uint32_t i = 0; i < kind; i++) base += pl_block_count_of(&l->kind[i]);
    for (uint32_t i = 0; i < k->axes; i++)
        at = i + 1 < k->axes ? at * k->axis[i].extent + place[i] : at * pieces_of(k) + place[i] / k->axis[i].step;
    return base + at;
}

uint32_t pl_block_ranges(const pl_block_layout *l, uint64_t block, uint64_t begin[PL_BLOCK_AXES_MAX],
                         uint64_t end[PL_BLOCK_AXES_MAX])
{
    uint32_t kind = 0;
    for (uint64_t n; kind + 1 < l->kinds && block >= (n = pl_block_count_of(&l->kind[kind])); kind++) block -= n;
    const pl_block_kind *k = &l->kind[kind];
    for (uint32_t i = k->axes; i-- > 0;) {
        const pl_block_axis *a = &k->axis[i];
        uint64_t count = (a->extent - 1) / a->step + 1;
        begin[i] = block % count * a->step;
        end[i] = a->extent - begin[i] < a->step ? a->extent : begin[i] + a->step;
        block /= count;
    }
    return kind;
}

uint64_t pl_block_dataset_bytes(const pl_block_dataset *d)
{
    uint64_t bytes = pl_dtype_bytes(d->dtype);
    for (uint32_t i = 0; i < d->rank; i++) bytes *= d->shape[i];
    return bytes;
}

bool pl_block_piece(const pl_block_layout *l, uint64_t block, uint32_t dataset, uint64_t *offset, uint64_t *bytes)
{
    const pl_block_dataset *d = &l->dataset[dataset];
    uint64_t begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX], row = 0, rows = 1, row_bytes = pl_dtype_bytes(d->dtype);
    uint32_t kind = pl_block_ranges(l, block, begin, end);
    *offset = *bytes = 0;
    if (!pl_block_is_made(d) || d->kind != kind) return false;
    const pl_block_kind *k = &l->kind[kind];
    for (uint32_t i = 0; i < k->axes; i++) {
        row = row * k->axis[i].extent + begin[i];
        rows = end[i] - begin[i]; /* of the last: all others are of one */
    }
    for (uint32_t i = k->axes; i < d->rank; i++) row_bytes *= d->shape[i];
    *offset = row * row_bytes;
    *bytes = rows * row_bytes;
    return true;
}

const char *pl_block_name(const pl_block_layout *l, uint64_t block, char text[PL_BLOCK_SENTENCE_BYTES])
{
    uint64_t begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX];
    const pl_block_kind *k = &l->kind[pl_block_ranges(l, block, begin, end)];
    size_t used = (size_t)snprintf(text, PL_BLOCK_SENTENCE_BYTES, "%s", k->name);
    for (uint32_t i = 0; i < k->axes; i++) {
        uint64_t shift = i == 0 ? l->first : 0;
        used += (size_t)snprintf(text + used, PL_BLOCK_SENTENCE_BYTES - used, "%s%s %" PRIu64, i == 0 ? " of " : ", ",
                                 k->axis[i].name, begin[i] + shift);
        if (end[i] - begin[i] > 1)
            used += (size_t)snprintf(text + used, PL_BLOCK_SENTENCE_BYTES - used, " to %" PRIu64, end[i] - 1 + shift);
    }
    return text;
}

uint32_t pl_block_find(const pl_block_layout *l, const char *dataset)
{
    for (uint32_t i = 0; i < l->datasets; i++)
        if (strcmp(l->dataset[i].name, dataset) == 0) return i;
    return PL_BLOCK_NO_KIND;
}

uint64_t pl_block_done_bytes(const pl_block_layout *l, const uint64_t *bitmap)
{
    const uint64_t blocks = pl_block_count(l);
    uint64_t row_bytes[PL_BLOCK_KINDS_MAX] = {0}, begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX], bytes = 0;
    for (uint32_t i = 0; i < l->datasets; i++) {
        const pl_block_dataset *d = &l->dataset[i];
        if (!pl_block_is_made(d)) continue;
        uint64_t rows = 1;
        for (uint32_t a = 0; a < l->kind[d->kind].axes; a++) rows *= d->shape[a];
        row_bytes[d->kind] += pl_block_dataset_bytes(d) / rows;
    }
    for (uint64_t b = 0; b < blocks; b++) {
        if (!(bitmap[b / 64] >> b % 64 & 1)) continue;
        uint32_t kind = pl_block_ranges(l, b, begin, end), axes = l->kind[kind].axes;
        bytes += (axes ? end[axes - 1] - begin[axes - 1] : 1) * row_bytes[kind];
    }
    return bytes;
}
