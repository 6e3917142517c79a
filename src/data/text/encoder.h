/* Encoding as a stream: bytes go in by any portions, ids come out through a sink; the portions have no influence on the
 * ids. Memory is fixed when the encoder is made, whatever the text.
 *
 * A piece of the pattern longer than PL_ENCODER_PIECE_MAX bytes (a run of that many letters, blanks, …) is cut there
 * and each part merged for itself; up to that length the ids are those of Hugging Face's library. */
#ifndef PL_DATA_ENCODER_H
#define PL_DATA_ENCODER_H

#include "data/text/tokenizer.h"

enum {
    PL_ENCODER_PIECE_MAX = 16384,
    PL_ENCODER_HELD_MAX =
        70000, /* ids that wait in it, or in the bytes that do: so many may come later than their text */
};

typedef struct pl_encoder pl_encoder;

/* Takes ids; what it returns besides PL_OK stops the encoding and is handed on. */
typedef pl_status (*pl_id_sink)(void *context, const uint32_t *ids, size_t count, pl_error *);

/* The tokenizer must live as long. */
pl_status pl_encoder_create(const pl_tokenizer *, pl_id_sink, void *context, pl_encoder **, pl_error *);
pl_status pl_encoder_feed(pl_encoder *, const void *text, size_t bytes, pl_error *);
/* The text ends here: gives out what was held back. The encoder can then be fed another text. */
pl_status pl_encoder_finish(pl_encoder *, pl_error *);
void pl_encoder_destroy(pl_encoder *);

/* A text that is whole in memory; *ids is a block for pl_free. */
pl_status pl_encode(const pl_tokenizer *, const void *text, size_t bytes, uint32_t **ids, size_t *count, pl_error *);

#endif
