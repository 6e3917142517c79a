/* modes HEIGHT WIDTH MODES: an image, its low Fourier modes, the image that has those and no others; white noise, and
 * the same correlated: a line of numbers each, for modes.py. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/calls.h"
#include "base/philox.h"
#include "base/rollout.h"

enum { MOST = 1 << 16 };

static float image[MOST], spectrum[MOST], noise[MOST], zeros[MOST];
static _Alignas(64) unsigned char workspace[1 << 22];

static void print(const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) printf("%.9g ", (double)x[i]);
    printf("\n");
}

static void print_noise(int64_t height, int64_t width, float correlation, pl_team team)
{
    float row[PL_ROLLOUT_COLUMNS] = {[PL_ROLLOUT_NOISE_SCALE] = 1, [PL_ROLLOUT_NOISE_CORRELATION] = correlation};
    int64_t ids[PL_ROLLOUT_IDS] = {5, 6}, step = 7;
    pl_noise_call c = {1, height, width, 1, 1, 1, 2, row, ids, &step, zeros, noise, PL_REAL_F32};
    if (pl_noise_workspace_bytes(&c, team) > sizeof workspace) exit(2);
    pl_noise_exec(&c, workspace, team);
    print(noise, height * width);
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    int64_t height = atoll(argv[1]), width = atoll(argv[2]), modes = atoll(argv[3]);
    if (height * width > MOST) return 2;
    pl_team team = {2, pl_isa_of_machine()};
    pl_philox p = pl_philox_init(3, 4);
    pl_philox_normal_f32(&p, 0, 0, 0, (uint64_t)(height * width), image);
    pl_spectrum_call c = {1, height, width, 1, modes, 0, image, NULL, spectrum, PL_REAL_F32};
    if (pl_spectrum_workspace_bytes(&c, team) > sizeof workspace) return 2;
    print(image, height * width);
    pl_spectrum_exec(&c, workspace, team);
    print(spectrum, 4 * modes * modes);
    c.inverse_factors = 1;
    pl_spectrum_back_exec(&c, workspace, team);
    print(image, height * width);
    print_noise(height, width, 0, team);
    print_noise(height, width, 0.05f, team);
    return 0;
}
