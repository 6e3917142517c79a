/* Encoding as a stream: bytes go in by any portions, ids come out through a sink; the portions have no influence on the
 * ids. Memory is fixed when the encoder is made, whatever the text.
 *
 * A piece of the text that no merge may leave (a run of letters, of blanks, …; without a pattern whatever lies between
 * places where no token could go on) and that is longer than the encoder was made for is cut there and each part merged
 * for itself; up to that length the ids are those of Hugging Face's library, and for a GGUF file those of llama.cpp.
 *
 * Where the tokenizer looks at characters (all but bytes, chars, words and GPT-2's), other bytes than UTF-8 are
 * PL_E_DATA. */
#ifndef PL_DATA_ENCODER_H
#define PL_DATA_ENCODER_H

#include <stdbool.h>

#include "data/text/tokenizer.h"

enum {
    PL_ENCODER_PIECE_MAX = 16384, /* what a piece may have unless an encoder is made for longer texts */
    PL_ENCODER_HELD_MAX =
        70000, /* ids that wait in it, or in the bytes that do: so many may come later than their text */
    PL_NFC_CLUSTER_MAX = 1024, /* characters: a longer run of marks is normalized in parts */
};

typedef struct pl_encoder pl_encoder;

/* Takes ids; what it returns besides PL_OK stops the encoding and is handed on. */
typedef pl_status (*pl_id_sink)(void *context, const uint32_t *ids, size_t count, pl_error *);

typedef struct pl_encode_options {
    bool adds_special;  /* puts the ids of pl_tokenizer_template around the text */
    bool ignores_added; /* the text is plain: what looks like an added token in it is none */
    bool continues;     /* the text goes on after another one: no blank is put before its beginning */
} pl_encode_options;

/* The tokenizer must live as long. */
pl_status pl_encoder_create(const pl_tokenizer *, pl_id_sink, void *context, pl_encoder **, pl_error *);
/* For texts of up to so many bytes: none of their pieces is cut. */
pl_status pl_encoder_create_for(const pl_tokenizer *, size_t text_bytes, pl_id_sink, void *context, pl_encoder **,
                                pl_error *);
/* Heap that such an encoder takes; what its longest pieces need is touched only by them. */
uint64_t pl_encoder_bytes(const pl_tokenizer *, size_t text_bytes);
/* Between texts; at first none is set. */
void pl_encoder_set_options(pl_encoder *, pl_encode_options);
pl_status pl_encoder_feed(pl_encoder *, const void *text, size_t bytes, pl_error *);
/* The text ends here: gives out what was held back. The encoder can then be fed another text. */
pl_status pl_encoder_finish(pl_encoder *, pl_error *);
void pl_encoder_destroy(pl_encoder *);

/* A text that is whole in memory; *ids is a block for pl_free. */
pl_status pl_encode(const pl_tokenizer *, const void *text, size_t bytes, uint32_t **ids, size_t *count, pl_error *);
pl_status pl_encode_with(const pl_tokenizer *, pl_encode_options, const void *text, size_t bytes, uint32_t **ids,
                         size_t *count, pl_error *);

#endif
