/* Inputs for a model that runs on files, where none are given: samples of its system's data as the program that
 * evaluates (or encodes) loads them, which is what files would contain; else random numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/philox.h"
#include "store/npy.h"
#include "systems/system.h"

enum { ALIGNMENT = 64 };

/* ---- an array ---- */

static const char *array_path(const char *prefix, const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    const int n = snprintf(path, PL_FILE_PATH_MAX, "%s.%s.npy", prefix, name);
    if (n > 0 && n < PL_FILE_PATH_MAX) return path;
    (void)pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", prefix);
    return NULL;
}

static pl_status begin_array(pl_file_writer *w, const char *prefix, const pl_infer_port *p, pl_dtype dtype,
                             uint64_t items, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], header[PL_NPY_HEADER_MAX];
    uint64_t shape[PL_INFER_RANK_MAX + 1] = {items};
    const bool grey = dtype == PL_DTYPE_U8 && p->rank == 3; /* the same in all three colours */
    const uint32_t skip = grey ? 1 : 0;
    for (uint32_t i = skip; i < p->rank; i++) shape[i + 1 - skip] = p->dim[i];
    if (!array_path(prefix, p->name, path, err)) return err->status;
    PL_TRY(pl_file_create(w, path, err));
    return pl_file_write(w, header, pl_npy_header(dtype, 0, p->rank + 1 - skip, shape, header), err);
}

/* ---- samples ---- */

typedef struct sampler {
    const pl_source *source;
    pl_source_layout layout;
    pl_slot slot;
    char *memory, *scratch;
    uint64_t samples; /* as many as there are, as far as is known */
} sampler;

static pl_part part_of(const pl_source *s)
{
    return s->steps_per_epoch[PL_PART_VALIDATION] ? PL_PART_VALIDATION : PL_PART_TRAIN;
}

static uint64_t samples_of(const pl_source *s)
{
    const pl_part part = part_of(s);
    return s->samples[part] ? s->samples[part] : s->steps_per_epoch[part] * s->batch;
}

static char *aligned(char *at) { return at + (ALIGNMENT - (uintptr_t)at % ALIGNMENT) % ALIGNMENT; }

/* Scratch first, then the ports. */
static pl_status open_sampler(const pl_source *source, sampler *m, pl_error *err)
{
    *m = (sampler){.source = source, .samples = samples_of(source)};
    PL_TRY(source->kind->describe(source, 1, &m->layout, err));
    uint64_t bytes = m->layout.scratch_bytes + 2 * ALIGNMENT;
    for (uint32_t k = 0; k < m->layout.ports; k++) bytes += m->layout.port[k].bytes + ALIGNMENT;
    m->memory = pl_alloc(bytes, 1);
    if (!m->memory) return pl_fail(err, PL_E_NOMEM, "no memory for a sample, %" PRIu64 " bytes", bytes);
    m->scratch = aligned(m->memory);
    if (source->kind->prepare) source->kind->prepare(source, m->scratch);
    m->slot = (pl_slot){.ports = m->layout.ports, .part = part_of(source), .micro_count = source->batch, .rows = 1};
    char *at = m->scratch + m->layout.scratch_bytes;
    for (uint32_t k = 0; k < m->layout.ports; k++) {
        m->slot.port[k] = m->layout.port[k];
        m->slot.port[k].at = at = aligned(at);
        at += m->layout.port[k].bytes;
    }
    return PL_OK;
}

static pl_status fill(sampler *m, uint64_t sample, pl_error *err)
{
    m->slot.step = sample / m->source->batch;
    m->slot.micro = (uint32_t)(sample % m->source->batch);
    m->slot.first_sample = sample;
    return m->source->kind->fill(m->source, m->scratch, &m->slot, err);
}

/* Rows past the last sample count nothing, which tells how many samples there are. After the last they start over. */
static pl_status draw(sampler *m, uint64_t sample, pl_error *err)
{
    sample %= m->samples;
    PL_TRY(fill(m, sample, err));
    if (m->slot.counted || sample == 0) return PL_OK;
    m->samples = sample;
    return fill(m, 0, err);
}

/* Index of the data's port that brings the input; −1: none does. */
static int port_of(const pl_face *face, const char *input)
{
    for (int k = 0; k < PL_FACE_IN_MAX && face->in[k].name; k++)
        if (strcmp(face->in[k].name, input) == 0) return k;
    return -1;
}

/* Can the port's data go into a file: numbers as they are, or the bytes of a grey page? */
static bool fits(const pl_infer_port *p, const pl_port *port)
{
    const bool page = p->picture && p->rank == 3 && port->dtype == PL_DTYPE_U8;
    return page ? port->bytes == p->dim[1] * p->dim[2]
                : port->dtype == p->dtype && port->bytes == pl_infer_port_bytes(p);
}

/* As a file would have it, since files are scaled when read. What is scaled by its own mean may be so again. */
static void unscale(const pl_infer_port *p, float *x)
{
    for (uint64_t i = 0; p->scaler && i < pl_infer_port_elems(p); i++)
        x[i] = (float)pl_unscale(&p->scaler[i], (double)x[i]);
}

static pl_status write_samples(sampler *m, int port, const pl_infer_port *p, uint64_t items, const char *prefix,
                               pl_error *err)
{
    pl_file_writer w = {0};
    const pl_port *of = &m->slot.port[port];
    pl_status status = begin_array(&w, prefix, p, of->dtype, items, err);
    for (uint64_t i = 0; i < items && status == PL_OK; i++) {
        status = draw(m, i, err);
        unscale(p, of->at);
        if (status == PL_OK) status = pl_file_write(&w, of->at, (size_t)of->bytes, err);
    }
    if (status == PL_OK) return pl_file_commit(&w, err);
    pl_file_abandon(&w);
    return status;
}

static pl_status write_all_samples(const pl_config *c, const pl_source *source, const pl_infer_data *of, uint64_t items,
                                   const char *prefix, uint64_t *there, pl_error *err)
{
    sampler m;
    const pl_face *face = &pl_model_family(c)->face;
    if (samples_of(source) == 0) return pl_fail(err, PL_E_DATA, "there are no samples");
    pl_status status = open_sampler(source, &m, err);
    for (uint32_t k = 0; k < of->setup.ports && status == PL_OK; k++) {
        const pl_infer_port *p = &of->setup.port[k];
        const int port = port_of(face, p->name);
        if (port < 0 || port >= (int)m.slot.ports || !fits(p, &m.slot.port[port]))
            status = pl_fail(err, PL_E_DATA, "samples have no %s as files have them", p->name);
        else
            status = write_samples(&m, port, p, items, prefix, err);
    }
    *there = m.samples;
    pl_free(m.memory);
    return status;
}

/* The command whose samples the model judges or works on. */
static pl_command command_of(const pl_config *c)
{
    return pl_task_of(c)->job[PL_COMMAND_EVALUATE] ? PL_COMMAND_EVALUATE : pl_model_family(c)->used_for;
}

static pl_status take_samples(const pl_config *c, const pl_infer_data *of, uint64_t items, const char *prefix,
                              char said[PL_INPUTS_SAID_BYTES], pl_error *err)
{
    pl_data *data = NULL;
    uint64_t there = 0;
    if (!pl_model_family(c)->face.in[0].name) return pl_fail(err, PL_E_DATA, "its samples are made as it runs");
    const pl_command command = command_of(c);
    PL_TRY(pl_dataset_of(c, command)->open(c, command, PL_DATA_FOR_RUN, NULL, &data, err));
    pl_status status = data->source ? write_all_samples(c, data->source, of, items, prefix, &there, err)
                                    : pl_fail(err, PL_E_DATA, "it has no samples");
    if (status == PL_OK)
        snprintf(said, PL_INPUTS_SAID_BYTES, "%" PRIu64 " %s %s%s", items, pl_system_words(c)->samples,
                 part_of(data->source) == PL_PART_VALIDATION ? "of what is held out"
                                                             : "of the config's data, the first",
                 there < items ? ", some more than once" : "");
    pl_data_close(data);
    return status;
}

/* ---- random numbers ---- */

static void make_item(const pl_infer_port *p, uint64_t item, void *to)
{
    const pl_philox random = pl_philox_init(1, pl_stream_id(p->name));
    const uint64_t elems = pl_infer_port_elems(p);
    float *real = to;
    int32_t *id = to;
    uint32_t bits[4];
    if (p->dtype == PL_DTYPE_F32 && !p->picture) {
        pl_philox_normal_f32(&random, 0, item, 0, elems, real);
        return;
    }
    for (uint64_t i = 0; i < elems; i++) {
        if (i % 4 == 0) pl_philox_block(&random, 0, item, (uint32_t)(i / 4), bits);
        if (p->picture)
            real[i] = pl_uniform_f32(bits[i % 4]);
        else
            id[i] = p->below > 0 ? (int32_t)(bits[i % 4] % (uint64_t)p->below) : 0;
    }
}

static pl_status make_input(const pl_infer_port *p, uint64_t items, const char *prefix, pl_error *err)
{
    pl_file_writer w = {0};
    const uint64_t bytes = pl_infer_port_bytes(p);
    void *item = pl_alloc(bytes, 1);
    if (!item) return pl_fail(err, PL_E_NOMEM, "no memory for an item of %s, %" PRIu64 " bytes", p->name, bytes);
    pl_status status = begin_array(&w, prefix, p, p->dtype, items, err);
    for (uint64_t i = 0; i < items && status == PL_OK; i++) {
        make_item(p, i, item);
        status = pl_file_write(&w, item, (size_t)bytes, err);
    }
    pl_free(item);
    if (status == PL_OK) return pl_file_commit(&w, err);
    pl_file_abandon(&w);
    return status;
}

pl_status pl_system_write_inputs(const pl_config *c, const pl_infer_data *of, uint64_t items, const char *prefix,
                                 char said[PL_INPUTS_SAID_BYTES], pl_error *err)
{
    pl_error why = {0};
    pl_status status = take_samples(c, of, items, prefix, said, &why);
    if (status == PL_OK || status == PL_E_NOMEM || status == PL_E_STORAGE) {
        if (status != PL_OK) *err = why;
        return status;
    }
    for (uint32_t k = 0; k < of->setup.ports; k++) PL_TRY(make_input(&of->setup.port[k], items, prefix, err));
    snprintf(said, PL_INPUTS_SAID_BYTES, "%" PRIu64 " items of random numbers (%.600s)", items, why.text);
    return PL_OK;
}
