/* A frame file: as it is, and with every checksum made right, so that the fuzzer gets behind them. Of what is accepted
 * all is read, and what it says of itself holds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/clouds/frames.h"
#include "fuzz/fuzz.h"

static void put_u64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }

/* The checksums of pictures, of their table, of the records and of the header, where the header's numbers are those of
 * the file. */
static void mend(uint8_t *file, size_t size)
{
    pl_error err = {0};
    pl_frames_info i;
    if (size < PL_FRAMES_HEADER_BYTES) return;
    put_u64(file + 120, XXH64(file, 120, 0));
    if (pl_frames_parse_header("x", file, size, &i, &err) != PL_OK) return;
    const uint64_t records = pl_frames_records_offset(&i), of = pl_frames_picture_bytes(&i);
    const uint64_t table = pl_frames_sources_offset(&i) - i.pictures * sizeof(uint64_t);
    for (uint64_t k = 0; k < i.pictures; k++)
        put_u64(file + table + 8 * k, XXH64(file + records - (i.pictures - k) * of, of, 0));
    put_u64(file + 56, XXH64(file + records, table - records, 0));
    put_u64(file + 64, XXH64(file + table, i.pictures * sizeof(uint64_t), 0));
    put_u64(file + 120, XXH64(file, 120, 0));
}

/* ---- what was accepted ---- */

static void check_records(const pl_frames *f)
{
    pl_error err = {0};
    pl_frames_flight *flight = malloc(f->info.flights * sizeof *flight);
    uint64_t pictures = 0, at = 0;
    FUZZ_CHECK(flight, "no memory");
    FUZZ_CHECK(pl_frames_read_flights(f, flight, &err) == PL_OK, "%s", err.text);
    for (uint32_t n = 0; n < f->info.flights; n++) {
        uint64_t labels = 0;
        FUZZ_CHECK(flight[n].first == at && memchr(flight[n].name, 0, sizeof flight[n].name), "flight %u", n);
        for (at += flight[n].frames; flight[n].first < at; flight[n].first++) {
            pl_frames_record r;
            FUZZ_CHECK(pl_frames_read_records(f, flight[n].first, flight[n].first + 1, &r, &err) == PL_OK, "%s",
                       err.text);
            FUZZ_CHECK(r.picture == PL_FRAMES_NONE || r.picture == pictures, "pictures in another order");
            FUZZ_CHECK(isnan(r.label_km) ? r.profile == PL_FRAMES_NONE : r.picture != PL_FRAMES_NONE, "label");
            pictures += r.picture != PL_FRAMES_NONE, labels += !isnan(r.label_km);
        }
        FUZZ_CHECK(labels == flight[n].labels, "labels of flight %u", n);
    }
    FUZZ_CHECK(at == f->info.frames && pictures == f->info.pictures, "frames or pictures are missing");
    free(flight);
}

static void read_pictures(const pl_frames *f)
{
    pl_error err = {0};
    uint8_t *bytes = malloc(pl_frames_picture_bytes(&f->info));
    float *picture = malloc((uint64_t)f->info.height * f->info.width * sizeof *picture);
    FUZZ_CHECK(bytes && picture, "no memory");
    for (uint64_t k = 0; k < f->info.pictures; k++) {
        const pl_status status = pl_frames_read_picture(f, k, bytes, picture, &err);
        if (status != PL_OK) fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
    }
    FUZZ_CHECK(pl_frames_read_picture(f, f->info.pictures, bytes, NULL, &err) == PL_E_INTERNAL, "one too many");
    free(picture);
    free(bytes);
}

static void check_file(const uint8_t *file, size_t size)
{
    pl_error err = {0};
    pl_frames f;
    const pl_status status = pl_frames_open(&f, fuzz_file(0, file, size), &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    check_records(&f);
    /* Without pictures the sides are only a claim, and may be large. */
    if (f.info.pictures) read_pictures(&f);
    pl_frames_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t before = pl_alloc_live_blocks();
    uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy, "no memory");
    memcpy(copy, data, size);
    check_file(copy, size);
    mend(copy, size);
    check_file(copy, size);
    free(copy);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
