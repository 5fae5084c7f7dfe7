// The CPU baseline of Stone et al. 2008, our own version: F^H d by direct sums.
//
//     image(r) = sum_m d_m exp(i 2 pi k_m.r)
//
// Blocks of samples and of voxels stay in the L1 cache. For each sample, first the phases of a block of voxels are
// computed, then their cosines and sines by the compiler's vector mathematics, then the products are added. With -O3
// -ffast-math, GCC takes its vector mathematics from libmvec; Stone et al. used icpc with SVML. Blocks of voxels are
// divided among OpenMP threads.
//
// REAL is float or double. With -march=native GCC uses the widest vectors that it considers worthwhile.
#include <math.h>

#define VOXELS 512
#define SAMPLES 256

#define COS(x) _Generic((x), float: cosf, double: cos)(x)
#define SIN(x) _Generic((x), float: sinf, double: sin)(x)

static long least(long a, long b) { return a < b ? a : b; }

void seed_fhd(long samples, long voxels, int threads,
              const REAL *kx, const REAL *ky, const REAL *kz,
              const REAL *x, const REAL *y, const REAL *z,
              const REAL *data_re, const REAL *data_im,
              REAL *image_re, REAL *image_im)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (long first = 0; first < voxels; first += VOXELS) {
        const int count = least(VOXELS, voxels - first);
        REAL phase[VOXELS] = {0}, cosine[VOXELS], sine[VOXELS], re[VOXELS] = {0}, im[VOXELS] = {0};
        for (long block = 0; block < samples; block += SAMPLES) {
            const long end = least(block + SAMPLES, samples);
            for (long m = block; m < end; m++) {
                for (int n = 0; n < count; n++)
                    phase[n] = (REAL)6.283185307179586 *
                               (kx[m] * x[first + n] + ky[m] * y[first + n] + kz[m] * z[first + n]);
#pragma omp simd
                for (int n = 0; n < VOXELS; n++)
                    cosine[n] = COS(phase[n]);
                // Without this barrier GCC joins both loops into one loop of scalar sincos calls.
                __asm__ volatile("" ::: "memory");
#pragma omp simd
                for (int n = 0; n < VOXELS; n++)
                    sine[n] = SIN(phase[n]);
                for (int n = 0; n < VOXELS; n++) {
                    re[n] += data_re[m] * cosine[n] - data_im[m] * sine[n];
                    im[n] += data_im[m] * cosine[n] + data_re[m] * sine[n];
                }
            }
        }
        for (int n = 0; n < count; n++) {
            image_re[first + n] = re[n];
            image_im[first + n] = im[n];
        }
    }
}
