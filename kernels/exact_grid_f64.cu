// Direct sums between samples and a Cartesian grid of voxels in f64: the factored sums of exact_grid.cu on plain FP64 units.
//
// To image: a block of 128 threads owns 32 pairs of axis 0 and 64 columns (y, z); each warp 8 pairs, each lane 2 columns.
// To samples: a thread owns 2 samples, and takes 8 pairs of axis 0 at a time.
// The constants below give the registers (128 hold sums) and may be changed together with the host's geometry.

#define PAIRS 32   // to image: of a block
#define COLUMNS 64
#define KT 16      // samples a stage
#define OWN 8      // pairs a thread
#define STRETCH 16 // to samples: columns a stage

struct __align__(16) Ready {
    cplx value; // data with the half voxel's phase
    cplx turn;  // exp(i 2 pi k1)
    real k1, k2;
};

// Samples first .. first + padded, those from count on being zeros.
extern "C" __global__ void __launch_bounds__(256)
ready_samples(Shape shape, const real *k0, const real *k1, const real *k2, const cplx *data, long long first, long long count,
              int padded, Ready *out)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= padded)
        return;
    Ready s = {{0, 0}, {1, 0}, 0, 0};
    if (first + i < count) {
        s.value = data[first + i];
        if (shape.even)
            s.value = times(s.value, wave((real)-0.5 * k0[first + i]));
        s.k1 = k1 ? k1[first + i] : 0;
        s.k2 = k2 ? k2[first + i] : 0;
        s.turn = wave(s.k1);
    }
    out[i] = s;
}

// Their waves along axis 0, [sample][width], width being the pairs padded with zeros.
extern "C" __global__ void __launch_bounds__(256)
ready_waves(Shape shape, const real *k0, long long first, long long count, int padded, int width, cplx *out)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    long long m = i / width;
    int h = (int)(i % width);
    if (m >= padded)
        return;
    cplx w = {0, 0};
    if (first + m < count && h < pairs(shape))
        w = wave(fraction(k0[first + m], position(shape, h)));
    out[i] = w;
}

// image = image + sum over the samples made ready, or the sum alone where add is 0. Blocks: (tiles of columns, tiles of pairs,
// parts of the samples); part p writes to image + p part_stride. stages is those of all parts.
extern "C" __global__ void __launch_bounds__(128)
grid_to_image(Shape shape, const cplx *waves, const Ready *samples, int stages, int width, int add, cplx *image,
              long long part_stride)
{
    __shared__ cplx left[KT][PAIRS];
    __shared__ cplx right[KT][COLUMNS + 1]; // the odd length spreads a column's samples over the banks
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int stage = (int)((long long)stages * blockIdx.z / gridDim.z), to = (int)((long long)stages * (blockIdx.z + 1) / gridDim.z);
    int sample = threadIdx.x % KT, group = threadIdx.x / KT;
    int groups = (shape.n[1] + 7) / 8;
    long long id = (long long)blockIdx.x * (COLUMNS / 8) + group;
    real y = (int)(id % groups) * 8 - shape.n[1] / 2, z = (int)(id / groups) - shape.n[2] / 2;
    real sum[OWN][2][4];
#pragma unroll
    for (int i = 0; i < OWN * 8; i++)
        sum[i / 8][i / 4 % 2][i % 4] = 0;
    for (; stage < to; stage++) {
        __syncthreads();
        for (int i = threadIdx.x; i < KT * PAIRS; i += 128)
            left[i / PAIRS][i % PAIRS] = waves[((long long)stage * KT + i / PAIRS) * width + blockIdx.y * PAIRS + i % PAIRS];
        Ready s = samples[(long long)stage * KT + sample];
        cplx value = times(s.value, wave(fraction(s.k1, y) + fraction(s.k2, z)));
#pragma unroll
        for (int j = 0; j < 8; j++) {
            right[sample][group * 8 + j] = value;
            value = times(value, s.turn);
        }
        __syncthreads();
#pragma unroll 1
        for (int m = 0; m < KT; m++) {
            cplx b[2] = {right[m][lane], right[m][lane + 32]};
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                cplx a = left[m][warp * OWN + i];
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    sum[i][j][0] = fma(a.x, b[j].x, sum[i][j][0]);
                    sum[i][j][1] = fma(a.x, b[j].y, sum[i][j][1]);
                    sum[i][j][2] = fma(a.y, b[j].x, sum[i][j][2]);
                    sum[i][j][3] = fma(a.y, b[j].y, sum[i][j][3]);
                }
            }
        }
    }
    image += blockIdx.z * part_stride;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int c = lane + 32 * j;
        id = (long long)blockIdx.x * (COLUMNS / 8) + c / 8;
        int row = (int)(id % groups) * 8 + c % 8, plane = (int)(id / groups);
        if (row >= shape.n[1] || plane >= shape.n[2])
            continue;
        cplx *line = image + row * shape.stride[1] + plane * shape.stride[2];
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            int h = (int)blockIdx.y * PAIRS + warp * OWN + i;
            if (h >= pairs(shape))
                continue;
            real(&s)[4] = sum[i][j];
            cplx *up = line + (shape.n[0] / 2 + h) * shape.stride[0];
            cplx *down = line + (shape.n[0] / 2 - h - shape.even) * shape.stride[0];
            cplx a = {s[0] - s[3], s[1] + s[2]}, b = {s[0] + s[3], s[1] - s[2]};
            if (add) {
                cplx before = *up;
                a.x += before.x;
                a.y += before.y;
                before = *down;
                b.x += before.x;
                b.y += before.y;
            }
            *up = a;
            if (up != down)
                *down = b;
        }
    }
}

// The image as [block of 8 pairs][z][y][pair] of x + x' and x - x', x and x' being the voxels of the pair.
extern "C" __global__ void __launch_bounds__(256) fold_image(Shape shape, const cplx *image, long long len, cplx *out)
{
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    long long rest = i / OWN;
    int y = (int)(rest % shape.n[1]);
    rest /= shape.n[1];
    int z = (int)(rest % shape.n[2]), h = (int)(rest / shape.n[2]) * OWN + (int)(i % OWN);
    cplx up = {0, 0}, down = {0, 0};
    if (h < pairs(shape)) {
        const cplx *line = image + y * shape.stride[1] + z * shape.stride[2];
        up = line[(shape.n[0] / 2 + h) * shape.stride[0]];
        if (shape.even || h > 0)
            down = line[(shape.n[0] / 2 - h - shape.even) * shape.stride[0]];
    }
    cplx even = {up.x + down.x, up.y + down.y}, odd = {up.x - down.x, up.y - down.y};
    out[2 * i] = even;
    out[2 * i + 1] = odd;
}

// values(m) of 256 samples a block, summed over stages of up to STRETCH columns: those of part blockIdx.y, which writes to
// values + part part_stride.
extern "C" __global__ void __launch_bounds__(128)
grid_to_samples(Shape shape, const real *k0, const real *k1, const real *k2, long long count, const cplx *folded,
                long long stages, cplx *values, long long part_stride)
{
    __shared__ cplx columns[STRETCH * OWN * 2];
    long long stage = stages * blockIdx.y / gridDim.y, to = stages * (blockIdx.y + 1) / gridDim.y;
    int groups = (shape.n[1] + STRETCH - 1) / STRETCH;
    cplx total[2], turn[2], own[2][OWN];
    real at1[2], at2[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        long long m = min(blockIdx.x * 256LL + i * 128 + threadIdx.x, count - 1);
        total[i].x = total[i].y = 0;
        at1[i] = k1 ? k1[m] : 0;
        at2[i] = k2 ? k2[m] : 0;
        turn[i] = wave(-at1[i]);
    }
    long long block = -1;
    for (; stage < to; stage++) {
        int y = (int)(stage % groups) * STRETCH, z = (int)(stage / groups % shape.n[2]);
        if (stage / groups / shape.n[2] != block) {
            block = stage / groups / shape.n[2];
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < OWN; j++) {
                    long long m = min(blockIdx.x * 256LL + i * 128 + threadIdx.x, count - 1);
                    own[i][j] = wave(fraction(k0[m], position(shape, (int)block * OWN + j)));
                }
        }
        int here = min(STRETCH, shape.n[1] - y);
        const cplx *from = folded + ((block * shape.n[2] + z) * shape.n[1] + y) * (OWN * 2);
        __syncthreads();
        for (int i = threadIdx.x; i < here * OWN * 2; i += 128)
            columns[i] = from[i];
        __syncthreads();
        cplx s[2] = {{0, 0}, {0, 0}};
#pragma unroll 1
        for (int c = here - 1; c >= 0; c--) {
            cplx p[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                p[i].x = fma(s[i].x, turn[i].x, -(s[i].y * turn[i].y));
                p[i].y = fma(s[i].x, turn[i].y, s[i].y * turn[i].x);
            }
#pragma unroll
            for (int j = 0; j < OWN; j++) {
                cplx even = columns[(c * OWN + j) * 2], odd = columns[(c * OWN + j) * 2 + 1];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    p[i].x = fma(own[i][j].x, even.x, fma(own[i][j].y, odd.y, p[i].x));
                    p[i].y = fma(own[i][j].x, even.y, fma(-own[i][j].y, odd.x, p[i].y));
                }
            }
            s[0] = p[0];
            s[1] = p[1];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            cplx p = times(s[i], wave(-fraction(at1[i], (real)(y - shape.n[1] / 2)) - fraction(at2[i], (real)(z - shape.n[2] / 2))));
            total[i].x += p.x;
            total[i].y += p.y;
        }
    }
    values += blockIdx.y * part_stride;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        long long m = blockIdx.x * 256LL + i * 128 + threadIdx.x;
        if (m < count)
            values[m] = shape.even ? times(total[i], wave((real)0.5 * k0[m])) : total[i];
    }
}
