/* The user's files as the data of a command that runs a model on them: item n is row n of each input, whose files
 * follow each other. They come in batches, one a step. Without files there is no source, and whoever runs the program
 * brings a batch at a time. What the model is made from beside them (a tokenizer, sizes) is the system's own data,
 * which these hold. */
#ifndef PL_DATA_INFER_DATA_H
#define PL_DATA_INFER_DATA_H

#include "base/json.h"
#include "data/infer/names.h"
#include "data/infer/staging.h"
#include "stream/data.h"

/* What a person wants to know of an item, as further keys of its line: of the system's own data. Of one in parts it is
 * called for each, and has NULL to write to before the last. Asks for no memory. */
typedef void pl_infer_say(const pl_data *of, const pl_infer_item *, pl_json *);

typedef struct pl_infer_setup {
    pl_infer_port port[PL_INFER_PORTS_MAX];
    uint32_t ports;
    const char *files;   /* as names.h has them; "": none. Needed while the data are opened */
    const char *scratch; /* folder for what is made ready; needed likewise */
    bool scratch_is_memory;
    const pl_staging_told *told; /* of that; needed likewise; or NULL */
    uint64_t staged;             /* what the plan says of that (PL_FACT_STAGED); 0: nothing */
    uint64_t batch;              /* items at once; 0: as the planner finds it */
    bool latency;                /* item by item, and how long each takes */
    bool looks;                  /* at every number, before anything runs */
    const char *to;              /* the file that the lines go to; NULL: to who listens */
    const char *arrays;          /* what the names of .npy files begin with; NULL: there are none, but lines */
    bool brief;                  /* lines without what the model gives out: only what `say` says of it */
    pl_infer_say *say;           /* NULL: nothing */
} pl_infer_setup;

typedef struct pl_infer_files {
    pl_rows *rows;
    uint64_t *first;      /* [count + 1] rows before each */
    uint64_t *first_item; /* [count + 1] items before each */
    uint64_t count, begun;
    uint8_t *remark;    /* of the items that are at work, each in its place by its number; and one that is being read */
    pl_rows_part *part; /* likewise */
} pl_infer_files;

typedef struct pl_infer_data {
    pl_data data; /* first: this is one */
    pl_source source;
    pl_data *of; /* the system's own */
    pl_infer_setup setup;
    char *to, *arrays; /* what the setup points into */
    pl_infer_names names;
    pl_infer_files input[PL_INFER_PORTS_MAX];
    uint64_t rows, items; /* a row is an item, or a part of one */
} pl_infer_data;

enum { PL_INFER_BATCH_AUTO = 16 /* items at once, at most, where nobody says how many */ };

/* Takes `of`, also when it fails. PL_E_DATA where a file does not fit, PL_E_USAGE where one is missing or too many. */
pl_status pl_infer_data_open(const pl_infer_setup *, pl_data *of, pl_infer_data **, pl_error *);
static inline const pl_infer_data *pl_infer_data_of(const pl_data *d) { return (const pl_infer_data *)d; }
/* What was remarked of a row that is at work: how many, of the remarks of its files' kinds. */
size_t pl_infer_data_remarks(const pl_infer_data *, uint64_t row, const pl_rows_remark *[PL_ROWS_REMARKS_MAX]);
/* Which part of which item such a row is: the item by its number among those of all files. */
pl_rows_part pl_infer_data_part(const pl_infer_data *, uint64_t row);
/* Items of each remark that was made, in the order in which they came first. */
typedef struct pl_infer_remarked {
    const pl_rows_remark *remark[PL_ROWS_REMARKS_MAX];
    uint64_t items[PL_ROWS_REMARKS_MAX];
} pl_infer_remarked;
void pl_infer_remarked_add(pl_infer_remarked *, const pl_rows_remark *const *list, size_t count);
/* "1 are empty lines; 2 are longer than a page"; nothing where there are none. */
void pl_infer_remarked_print(const pl_infer_remarked *, pl_str *);
/* "a.npy[3]", or the path alone where it has one item. */
void pl_infer_data_name(const pl_infer_data *, uint64_t item, pl_str *);

#endif
