// Direct sums between samples and a Cartesian grid of voxels in f64: the method of exact_grid.cu, without tensor cores.
//
// To image: a block of 128 threads computes 32 pairs of axis 0 in 64 columns (y, z), a warp 8 of the pairs, a lane 2 of
// the columns. To samples: a thread computes 2 samples, from 8 pairs of axis 0 at a time.
// The constants below determine the number of registers (128 hold sums). They may be changed together with the host's.

#define PAIRS 32   // to image: pairs of a block
#define COLUMNS 64 // to image: columns of a block
#define KT 16      // to image: samples of a stage
#define OWN 8      // pairs of a thread
#define STRETCH 16 // to samples: columns of a stage

struct __align__(16) PreparedSample {
    cplx value; // data with the phase of half a voxel
    cplx turn;  // exp(i 2 pi k1), from one column to the next
    real k1, k2;
};

// Prepares samples first .. first + padded; from `count` on they are zeros.
extern "C" __global__ void __launch_bounds__(256)
ready_samples(Shape shape, const real *k0, const real *k1, const real *k2, const cplx *data, long long first,
              long long count, int padded, PreparedSample *out)
{
    begin_kernel();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= padded)
        return;
    PreparedSample s = {{0, 0}, {1, 0}, 0, 0};
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

// The waves of these samples along axis 0, [sample][width]: the pairs, padded with zeros to `width`.
extern "C" __global__ void __launch_bounds__(256)
ready_waves(Shape shape, const real *k0, long long first, long long count, int padded, int width, cplx *out)
{
    begin_kernel();
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

// The first of 8 neighbouring columns (y, z), group `group` of this block.
struct Column {
    int y, z;
};

__device__ __forceinline__ Column first_column(Shape const &shape, int group)
{
    int groups = (shape.n[1] + 7) / 8;
    long long id = (long long)blockIdx.x * (COLUMNS / 8) + group;
    return {(int)(id % groups) * 8, (int)(id / groups)};
}

// sum += one sample: its waves along axis 0 times its values b in two columns.
__device__ __forceinline__ void add_sample(real (&sum)[OWN][2][4], const cplx *waves, const cplx (&b)[2])
{
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        cplx a = waves[i];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            sum[i][j][0] = fma(a.x, b[j].x, sum[i][j][0]);
            sum[i][j][1] = fma(a.x, b[j].y, sum[i][j][1]);
            sum[i][j][2] = fma(a.y, b[j].x, sum[i][j][2]);
            sum[i][j][3] = fma(a.y, b[j].y, sum[i][j][3]);
        }
    }
}

// Writes a lane's sums to the image.
__device__ __forceinline__ void write_image(Shape const &shape, real (&sum)[OWN][2][4], int add, cplx *image)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int c = lane + 32 * j;
        Column first = first_column(shape, c / 8);
        int y = first.y + c % 8;
        if (y >= shape.n[1] || first.z >= shape.n[2])
            continue;
        cplx *line = image + y * shape.stride[1] + first.z * shape.stride[2];
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            int h = (int)blockIdx.y * PAIRS + warp * OWN + i;
            if (h >= pairs(shape))
                continue;
            real(&s)[4] = sum[i][j];
            cplx a = {s[0] - s[3], s[1] + s[2]}, b = {s[0] + s[3], s[1] - s[2]};
            write_pair(shape, line, h, a, b, add);
        }
    }
}

// image = image + sum over the prepared samples, or only the sum if add is 0. Blocks: (tiles of columns, tiles of
// pairs, parts of the samples); part p writes to image + p part_stride. `stages` is the number of stages of all parts.
extern "C" __global__ void __launch_bounds__(128)
grid_to_image(Shape shape, const cplx *waves, const PreparedSample *samples, int stages, int width, int add,
              cplx *image, long long part_stride)
{
    begin_kernel();
    __shared__ cplx left[KT][PAIRS];
    __shared__ cplx right[KT][COLUMNS + 1]; // an odd length, so that samples use different banks
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int stage = (int)((long long)stages * blockIdx.z / gridDim.z);
    int to = (int)((long long)stages * (blockIdx.z + 1) / gridDim.z);
    int sample = threadIdx.x % KT, group = threadIdx.x / KT;
    Column first = first_column(shape, group);
    real y = first.y - shape.n[1] / 2, z = first.z - shape.n[2] / 2;
    real sum[OWN][2][4];
#pragma unroll
    for (int i = 0; i < OWN * 8; i++)
        sum[i / 8][i / 4 % 2][i % 4] = 0;
    for (; stage < to; stage++) {
        __syncthreads();
        for (int i = threadIdx.x; i < KT * PAIRS; i += 128)
            left[i / PAIRS][i % PAIRS] =
                waves[((long long)stage * KT + i / PAIRS) * width + blockIdx.y * PAIRS + i % PAIRS];
        PreparedSample s = samples[(long long)stage * KT + sample];
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
            add_sample(sum, &left[m][warp * OWN], b);
        }
    }
    write_image(shape, sum, add, image + blockIdx.z * part_stride);
}

// The image as [block of 8 pairs][z][y][pair] of x + x' and x - x', where x and x' are the voxels of the pair.
extern "C" __global__ void __launch_bounds__(256) fold_image(Shape shape, const cplx *image, long long len, cplx *out)
{
    begin_kernel();
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    long long rest = i / OWN;
    int y = (int)(rest % shape.n[1]);
    rest /= shape.n[1];
    int z = (int)(rest % shape.n[2]), h = (int)(rest / shape.n[2]) * OWN + (int)(i % OWN);
    cplx up = {0, 0}, down = {0, 0};
    if (h < pairs(shape))
        load_pair(shape, image + y * shape.stride[1] + z * shape.stride[2], h, up, down);
    cplx even = {up.x + down.x, up.y + down.y}, odd = {up.x - down.x, up.y - down.y};
    out[2 * i] = even;
    out[2 * i + 1] = odd;
}

// s = s turn + the sum over the pairs of one column.
__device__ __forceinline__ void add_column(cplx (&s)[2], const cplx (&turn)[2], const cplx (&own)[2][OWN],
                                           const cplx *column)
{
    cplx p[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        p[i].x = fma(s[i].x, turn[i].x, -(s[i].y * turn[i].y));
        p[i].y = fma(s[i].x, turn[i].y, s[i].y * turn[i].x);
    }
#pragma unroll
    for (int j = 0; j < OWN; j++) {
        cplx even = column[2 * j], odd = column[2 * j + 1];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            p[i].x = fma(own[i][j].x, even.x, fma(own[i][j].y, odd.y, p[i].x));
            p[i].y = fma(own[i][j].x, even.y, fma(-own[i][j].y, odd.x, p[i].y));
        }
    }
    s[0] = p[0];
    s[1] = p[1];
}

// Computes values(m) for 256 samples per block, summed over stages of up to STRETCH columns. Part p = blockIdx.y of the
// stages writes to values + p part_stride.
extern "C" __global__ void __launch_bounds__(128)
grid_to_samples(Shape shape, const real *k0, const real *k1, const real *k2, long long count, const cplx *folded,
                long long stages, cplx *values, long long part_stride)
{
    begin_kernel();
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
        for (int c = here - 1; c >= 0; c--)
            add_column(s, turn, own, columns + c * OWN * 2);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            real phase1 = fraction(at1[i], (real)(y - shape.n[1] / 2));
            real phase2 = fraction(at2[i], (real)(z - shape.n[2] / 2));
            cplx p = times(s[i], wave(-phase1 - phase2));
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
