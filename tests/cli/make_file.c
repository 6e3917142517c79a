/* Files for the tests of infer, by the libraries themselves and nothing of ours:
 *   make_file jpeg FILE WIDTH HEIGHT grey|rgb|cmyk [progressive]   of bytes on stdin
 *   make_file pixels FILE                                          what libjpeg reads of it, onto stdout
 *   make_file hdf5 FILE NAME TYPE DIM…                             adds a dataset of numbers (of libhdf5's native type
 *                                                                  TYPE, see below) on stdin; in chunks, compressed
 *                                                                  where TYPE ends with ",gzip"; "text": a text */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hdf5.h>
#include <jpeglib.h>

static void fail(const char *what)
{
    fprintf(stderr, "make_file: %s\n", what);
    exit(1);
}

static unsigned char *take(size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    if (!data || fread(data, 1, bytes, stdin) != bytes) fail("too few bytes on stdin");
    return data;
}

/* ---- JPEG ---- */

static void write_jpeg(const char *path, unsigned width, unsigned height, const char *colours, int progressive)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    const int count = strcmp(colours, "grey") == 0 ? 1 : strcmp(colours, "rgb") == 0 ? 3 : 4;
    unsigned char *data = take((size_t)width * height * (size_t)count);
    FILE *file = fopen(path, "wb");
    if (!file) fail(path);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, file);
    c.image_width = width, c.image_height = height, c.input_components = count;
    c.in_color_space = count == 1 ? JCS_GRAYSCALE : count == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 90, TRUE);
    if (progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    for (unsigned y = 0; y < height; y++) {
        JSAMPROW row = data + (size_t)y * width * (size_t)count;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    if (fclose(file)) fail(path);
    free(data);
}

static void write_pixels(const char *path)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_stdio_src(&d, file);
    jpeg_read_header(&d, TRUE);
    jpeg_start_decompress(&d);
    unsigned char *row = malloc((size_t)d.output_width * 4);
    while (row && d.output_scanline < d.output_height) {
        JSAMPROW rows = row;
        jpeg_read_scanlines(&d, &rows, 1);
        fwrite(row, 1, (size_t)d.output_width * (size_t)d.output_components, stdout);
    }
    free(row);
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    fclose(file);
}

/* ---- HDF5 ---- */

static hid_t type_named(const char *name, size_t bytes)
{
    const struct {
        const char *name;
        hid_t type;
    } types[] = {{"f32", H5T_IEEE_F32LE}, {"f64", H5T_IEEE_F64LE}, {"f32be", H5T_IEEE_F32BE}, {"u8", H5T_STD_U8LE},
                 {"i8", H5T_STD_I8LE},    {"u16", H5T_STD_U16LE},  {"i16", H5T_STD_I16LE},    {"u32", H5T_STD_U32LE},
                 {"i32", H5T_STD_I32LE},  {"i64", H5T_STD_I64LE},  {"u64", H5T_STD_U64LE},    {"i32be", H5T_STD_I32BE}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == bytes && memcmp(types[i].name, name, bytes) == 0) return H5Tcopy(types[i].type);
    if (bytes >= 3 && memcmp(name, "f16", 3) == 0) {
        hid_t half = H5Tcopy(H5T_IEEE_F32LE);
        if (H5Tset_fields(half, 15, 10, 5, 0, 10) < 0 || H5Tset_size(half, 2) < 0 || H5Tset_ebias(half, 15) < 0 ||
            (bytes > 3 && H5Tset_order(half, H5T_ORDER_BE) < 0))
            fail(name);
        return half;
    }
    if (bytes != 4 || memcmp(name, "text", 4) != 0) fail("no such type");
    hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, 4);
    return text;
}

static void write_hdf5(const char *path, const char *name, const char *type, int rank, char **dims)
{
    hsize_t shape[8], chunk[8], all = 1;
    const char *comma = strchr(type, ',');
    const hid_t of = type_named(type, comma ? (size_t)(comma - type) : strlen(type));
    for (int i = 0; i < rank; i++) all *= shape[i] = chunk[i] = strtoull(dims[i], NULL, 10);
    if (rank && shape[0] > 1) chunk[0] = shape[0] > 1000000 ? 1 : (shape[0] + 1) / 2;
    const hid_t file = access(path, F_OK) ? H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)
                                          : H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
    const hid_t space = rank ? H5Screate_simple(rank, shape, NULL) : H5Screate(H5S_SCALAR);
    H5Pset_create_intermediate_group(links, 1);
    if (comma && (H5Pset_chunk(how, rank, chunk) < 0 || (strcmp(comma, ",gzip") == 0 && H5Pset_deflate(how, 6) < 0)))
        fail("chunks");
    const hid_t set = H5Dcreate2(file, name, of, space, links, how, H5P_DEFAULT);
    if (set < 0) fail(name);
    /* ",hollow": nothing is written, and what was claimed reads as zeros. */
    if (!comma || strcmp(comma, ",hollow") != 0) {
        unsigned char *data = take(all * H5Tget_size(of));
        if (H5Dwrite(set, of, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) fail("write");
        free(data);
    }
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(links);
    H5Pclose(how);
    H5Tclose(of);
    if (H5Fclose(file) < 0) fail(path);
}

int main(int argc, char **argv)
{
    if (argc >= 6 && strcmp(argv[1], "jpeg") == 0)
        write_jpeg(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]), argv[5], argc > 6);
    else if (argc == 3 && strcmp(argv[1], "pixels") == 0)
        write_pixels(argv[2]);
    else if (argc >= 5 && strcmp(argv[1], "hdf5") == 0)
        write_hdf5(argv[2], argv[3], argv[4], argc - 5, argv + 5);
    else
        fail("jpeg, pixels or hdf5, with their words");
    return 0;
}
