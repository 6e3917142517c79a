/* Patches and positions against loops straight from the definition: every level of this machine, f32, bf16 and f16,
 * several teams, in place, guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/tokens.h"
#include "support/guarded.h"
#include "support/program.h"

static const pl_real types[] = {PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16};
static const int teams[] = {1, 2, 5};
enum { TYPES = 3, TEAMS = 3 };

static void *guarded(pl_real type, int64_t count) { return guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0); }

/* An array of numbers of this type. */
static void *numbers(pl_real type, int64_t count, uint64_t stream)
{
    const float *from = guarded_normal(count, stream);
    void *to = guarded(type, count);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, to, i, from[i]);
    return to;
}

static void *copy_of(pl_real type, const void *from, int64_t count)
{
    return memcpy(guarded(type, count), from, (size_t)(count * pl_real_bytes(type)));
}

/* ---- patches ---- */

static uint8_t pixel(int64_t i) { return (uint8_t)((uint64_t)i * 2654435761u >> 13); }

static float patch_element(const pl_patches_call *c, int64_t index)
{
    int64_t p = c->patch, q = index % p, r = index / p % p, channel = index / p / p % c->channels,
            patch = index / p / p / c->channels, columns = c->width / p, gx = patch % columns,
            gy = patch / columns % (c->height / p), b = patch / columns / (c->height / p);
    int64_t at = (b * c->height + gy * p + r) * c->width + gx * p + q;
    return (float)c->x[at * c->depth + (c->depth > 1 ? channel : 0)] / 255.0f;
}

static void check_patches(pl_patches_call c)
{
    int64_t bytes = c.samples * c.height * c.width * c.depth, count = bytes / c.depth * c.channels;
    uint8_t *x = guarded_bytes((uint64_t)bytes, 3);
    for (int64_t i = 0; i < bytes; i++) x[i] = pixel(i);
    c.x = x;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < TEAMS; t++) {
            c.y = guarded_f32(count);
            pl_patches_exec(&c, (pl_team){teams[t], isa});
            for (int64_t i = 0; i < count; i++)
                if (c.y[i] != patch_element(&c, i)) fail_msg("patch of %d: element %d", (int)c.patch, (int)i);
        }
    guarded_check_all();
    guarded_free_all();
}

static void patches(void **state)
{
    (void)state;
    check_patches((pl_patches_call){.samples = 3, .height = 32, .width = 48, .depth = 1, .patch = 16, .channels = 3});
    check_patches((pl_patches_call){.samples = 2, .height = 48, .width = 32, .depth = 3, .patch = 16, .channels = 3});
    check_patches((pl_patches_call){.samples = 5, .height = 46, .width = 69, .depth = 1, .patch = 23, .channels = 2});
    check_patches((pl_patches_call){.samples = 2, .height = 5, .width = 3, .depth = 1, .patch = 1, .channels = 1});
    check_patches((pl_patches_call){.samples = 1, .height = 6, .width = 9, .depth = 4, .patch = 3, .channels = 4});
}

/* The image that is drawn: white is 1, black 0, and every channel of a patch is the same. */
static void a_page(void **state)
{
    (void)state;
    static uint8_t page[224 * 224];
    static float y[196 * 768];
    memset(page, 255, sizeof page);
    page[17 * 224 + 34] = 0; /* row 1, column 2 of the patches; there row 1, column 2 */
    pl_patches_call c = {.samples = 1, .height = 224, .width = 224, .depth = 1, .patch = 16, .channels = 3, .x = page};
    c.y = y;
    pl_patches_exec(&c, (pl_team){2, pl_isa_of_machine()});
    for (int64_t i = 0; i < 196 * 768; i++) {
        bool black = i / 768 == 16 && i % 256 == 18;
        assert_true(y[i] == (black ? 0 : 1));
    }
}

/* ---- positions ---- */

static void check_positions(pl_real type, pl_isa isa, int64_t samples, int64_t elems)
{
    int64_t count = samples * elems;
    void *x = numbers(type, count, 1);
    float *p = guarded_normal(elems, 2);
    for (int t = 0; t < TEAMS; t++)
        for (int in_place = 0; in_place < 2; in_place++) {
            void *from = copy_of(type, x, count), *y = in_place ? from : guarded(type, count);
            pl_add_positions_call c = {samples, elems, from, p, y, type};
            pl_add_positions_exec(&c, (pl_team){teams[t], isa});
            for (int64_t i = 0; i < count; i++) {
                float want = 0;
                pl_real_put(type, &want, 0, pl_real_get(type, x, i) + p[i % elems]);
                assert_true(pl_real_get(type, y, i) == pl_real_get(type, &want, 0));
            }
        }
    guarded_check_all();
    guarded_free_all();
}

static void positions(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < TYPES; t++) {
            check_positions(types[t], isa, 1, 1);
            check_positions(types[t], isa, 7, 33);
            check_positions(types[t], isa, 3, 5000);
        }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(patches), cmocka_unit_test(a_page),
                                       cmocka_unit_test(positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
