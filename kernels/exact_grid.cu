// Direct sums between samples and a Cartesian grid of voxels in f32, on tensor cores.
//
// exp(i 2 pi k.r) is a product over the axes. On axis 0, the voxels at c and -c from the middle of the grid are a pair.
// With b = d exp(i 2 pi (k1 y + k2 z)), C = sum cos(k0 c) b and S = sum sin(k0 c) b, the image there is C +- iS. So the
// sum over samples is the product of a real matrix, [cos and sin of each pair][samples], and a complex matrix,
// [samples][columns (y, z)]. Each is split in two of f16, a high and a low part; three products of these on tensor
// cores have the accuracy of f32. Tensor cores truncate when they add, so their sums are short, and are added in f32.
//
// The host chooses which axis of the image is axis 0 (Shape has strides). With even n0, c is +-1/2, +-3/2, ..., and the
// phase of half a voxel goes to the samples; with odd n0, c is 0, +-1, +-2, ...
//
// Macros, to image:   MI, MW, NW: a block of 32 MW NW threads computes MI MW tiles of 8 pairs, in 16 NW columns.
//                     KT: samples per stage, 16, 32 or 64. A block needs 2 STAGE 16 bytes of shared memory.
//                     PROMOTE: stages that tensor cores sum before f32 does, 64 / KT.
// Macros, to samples: KR: tiles of 8 pairs at once, up to 8. NS: tiles of 4 columns per stage: 2, 4, 6 or 8.
// All may be changed together with the host's values. The order of the sums depends only on them.

// A sample prepared for the columns of its stage.
struct __align__(16) PreparedSample {
    float re, im;           // data, scaled, with the phase of half a voxel
    float k1, k2;
    float turn_re, turn_im; // exp(i 2 pi k1), from one column to the next
    float none[2];
};

// Copies 16 bytes to shared memory. The copy is complete after arrive() and a barrier.
__device__ __forceinline__ void fetch(uint4 *shared, const uint4 *global)
{
#if __CUDA_ARCH__ >= 800
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
#else
    *shared = *global;
#endif
}
__device__ __forceinline__ void arrive()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Finds the largest real or imaginary part of each block's part of the data.
extern "C" __global__ void __launch_bounds__(256) largest(const cplx *data, long long len, float *out)
{
    begin_kernel();
    __shared__ float shared[256];
    float most = 0;
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < len; i += gridDim.x * 256LL)
        most = fmaxf(most, fmaxf(fabsf(data[i].x), fabsf(data[i].y)));
    shared[threadIdx.x] = most;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = shared[0];
}

// For one block. scale = the power of two that brings the largest part to about 2^13, well within f16, and its inverse.
extern "C" __global__ void __launch_bounds__(256) choose_scale(const float *most_of, int count, float *scale)
{
    begin_kernel();
    __shared__ float shared[256];
    float most = 0;
    for (int i = threadIdx.x; i < count; i += 256)
        most = fmaxf(most, most_of[i]);
    shared[threadIdx.x] = most;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) {
        int exponent = 0;
        if (shared[0] > 0)
            frexpf(shared[0], &exponent);
        int up = min(13 - exponent, 126);
        scale[0] = ldexpf(1.0f, up);
        scale[1] = ldexpf(1.0f, -up);
    }
}

// Prepares samples first .. first + padded; from `count` on they are zeros.
extern "C" __global__ void __launch_bounds__(256)
ready_samples(Shape shape, const float *k0, const float *k1, const float *k2, const cplx *data, long long first,
              long long count, int padded, const float *scale, PreparedSample *out)
{
    begin_kernel();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= padded)
        return;
    PreparedSample s = {0, 0, 0, 0, 1, 0, {0, 0}};
    if (first + i < count) {
        cplx d = data[first + i], turn;
        d.x *= scale[0];
        d.y *= scale[0];
        if (shape.even)
            d = times(d, wave(-0.5f * k0[first + i]));
        s.re = d.x;
        s.im = d.y;
        s.k1 = k1 ? k1[first + i] : 0;
        s.k2 = k2 ? k2[first + i] : 0;
        turn = wave(s.k1);
        s.turn_re = turn.x;
        s.turn_im = turn.y;
    }
    out[i] = s;
}

// The real matrix of these samples as tensor cores read it, [sample / 16][tile of 8 pairs][high, low][lane]: rows 0 to
// 7 of a tile are cosines, 8 to 15 sines.
extern "C" __global__ void __launch_bounds__(256)
ready_waves(Shape shape, const float *k0, long long first, long long count, int padded, int tiles, uint4 *out)
{
    begin_kernel();
    long long i = blockIdx.x * 256LL + threadIdx.x;
    int lane = i & 31;
    int tile = (int)((i >> 5) % tiles);
    long long step = (i >> 5) / tiles;
    if (step * 16 >= padded)
        return;
    int h = tile * 8 + lane / 4;
    cplx w[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        long long m = first + step * 16 + lane % 4 * 2 + j / 2 * 8 + j % 2;
        w[j].x = w[j].y = 0;
        if (h < pairs(shape) && m < count)
            w[j] = wave(fraction(k0[m], position(shape, h)));
    }
    uint2 a0 = split(w[0].x, w[1].x), a1 = split(w[0].y, w[1].y);
    uint2 a2 = split(w[2].x, w[3].x), a3 = split(w[2].y, w[3].y);
    uint4 *to = out + (step * tiles + tile) * 64 + lane;
    to[0] = make_uint4(a0.x, a1.x, a2.x, a3.x);
    to[32] = make_uint4(a0.y, a1.y, a2.y, a3.y);
}

#ifdef MI
#define NI 4                         // tiles of 4 columns of a warp
#define THREADS (32 * MW * NW)
#define COLUMNS (NW * NI * 4)        // of a block
#define STEPS (KT / 16)              // of 16 samples, in a stage
#define ROWS_STAGE (STEPS * MI * MW * 64)
#define STAGE (ROWS_STAGE + STEPS * NW * NI * 32) // in 16 bytes; there are two
#define Y (KT / 2 * COLUMNS / THREADS)            // columns that a thread makes, for two samples

// A column of the complex matrix, voxel (y, z) of the image's axes 1 and 2.
struct Column {
    int y, z;
};

// The first of Y neighbouring columns, group `group` of this block.
__device__ __forceinline__ Column first_column(Shape const &shape, int group)
{
    int groups = (shape.n[1] + Y - 1) / Y;
    long long id = (long long)blockIdx.x * (COLUMNS / Y) + group;
    return {(int)(id % groups) * Y, (int)(id / groups)};
}

// Computes a thread's part of the complex matrix in each stage: two samples in Y columns that are neighbours along axis
// 1.
struct Maker {
    cplx value[2], turn[2]; // the samples in the next column, and the phase from one column to the next
    float y, z;
};

__device__ __forceinline__ void begin(Maker &maker, const float4 (&s)[4])
{
#pragma unroll
    for (int j = 0; j < 2; j++) {
        float4 a = s[2 * j], b = s[2 * j + 1];
        cplx d = {a.x, a.y};
        maker.value[j] = times(d, wave(fraction(a.z, maker.y) + fraction(a.w, maker.z)));
        maker.turn[j].x = b.x;
        maker.turn[j].y = b.y;
    }
}

// Writes one column, and moves on to the next. In 4-byte words: `flip` exchanges the places of real and imaginary
// parts, `swap` those of high and low parts, so that the words of a warp are in different banks.
__device__ __forceinline__ void make(Maker &maker, unsigned *to, int flip, int swap)
{
    uint2 re = split(maker.value[0].x, maker.value[1].x), im = split(maker.value[0].y, maker.value[1].y);
    to[flip + swap] = re.x;
    to[flip + (swap ^ 2)] = re.y;
    to[(flip ^ 16) + swap] = im.x;
    to[(flip ^ 16) + (swap ^ 2)] = im.y;
    maker.value[0] = times(maker.value[0], maker.turn[0]);
    maker.value[1] = times(maker.value[1], maker.turn[1]);
}

__device__ __forceinline__ void fetch_stage(uint4 *shared, const uint4 *waves, int tiles)
{
    const int step = MI * MW * 64;
#pragma unroll
    for (int n = 0; n < (STEPS * step + THREADS - 1) / THREADS; n++) {
        int i = n * THREADS + threadIdx.x;
        if (STEPS * step % THREADS == 0 || i < STEPS * step) {
            if (step % THREADS == 0) // n alone gives the step
                fetch(shared + i, waves + (n * THREADS / step) * tiles * 64 + (n * THREADS % step + threadIdx.x));
            else
                fetch(shared + i, waves + (i / step) * tiles * 64 + i % step);
        }
    }
}

__device__ __forceinline__ void load_samples(float4 (&s)[4], const float4 *samples)
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        s[i] = samples[i];
}

// run += the product of 16 samples, at a the warp's rows of step i, at b its columns.
__device__ __forceinline__ void multiply_step(float (&run)[MI][NI][4], const uint4 *a, const uint4 *b, int i)
{
    uint4 right[NI];
#pragma unroll
    for (int j = 0; j < NI; j++) {
        right[j] = b[j * 32];
        if (i & 2)
            right[j] = make_uint4(right[j].z, right[j].w, right[j].x, right[j].y);
    }
#pragma unroll
    for (int r = 0; r < MI; r++) {
        uint4 high = a[r * 64], low = a[r * 64 + 32];
#pragma unroll
        for (int j = 0; j < NI; j++)
            product(run[r][j], low, right[j].x, right[j].y);
#pragma unroll
        for (int j = 0; j < NI; j++)
            product(run[r][j], high, right[j].z, right[j].w);
#pragma unroll
        for (int j = 0; j < NI; j++)
            product(run[r][j], high, right[j].x, right[j].y);
    }
}

// Writes a warp's sums, its tiles of pairs from `row` and of columns from `column` on, to the image.
__device__ __forceinline__ void write_image(Shape const &shape, float (&sum)[MI][NI][4], int row, int column,
                                            float unscale, int add, cplx *image)
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < NI; j++) {
        int c = (column + j) * 4 + lane % 4;
        Column first = first_column(shape, c / Y);
        int y = first.y + c % Y, z = first.z;
        if (y >= shape.n[1] || z >= shape.n[2])
            continue;
        cplx *line = image + y * shape.stride[1] + z * shape.stride[2];
#pragma unroll
        for (int i = 0; i < MI; i++) {
            int h = ((int)blockIdx.y * MW * MI + row + i) * 8 + lane / 4;
            if (h >= pairs(shape))
                continue;
            float(&s)[4] = sum[i][j];
            cplx a = {(s[0] - s[3]) * unscale, (s[1] + s[2]) * unscale};
            cplx b = {(s[0] + s[3]) * unscale, (s[1] - s[2]) * unscale};
            write_pair(shape, line, h, a, b, add);
        }
    }
}

// image = image + sum over the prepared samples, or only the sum if add is 0. Blocks: (tiles of columns, tiles of
// pairs, parts of the samples); part p writes to image + p part_stride. `stages` is the number of stages of all parts.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
grid_to_image(Shape shape, const uint4 *waves, const float4 *samples, int stages, int tiles, const float *scale,
              int add, cplx *image, long long part_stride)
{
    begin_kernel();
    extern __shared__ uint4 memory[];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int row = warp % MW * MI, column = warp / MW * NI;
    int from = (int)((long long)stages * blockIdx.z / gridDim.z);
    int to = (int)((long long)stages * (blockIdx.z + 1) / gridDim.z);
    waves += (long long)blockIdx.y * (MW * MI * 64);

    // The samples and columns that this thread computes, and their position in a stage.
    int pair = threadIdx.x % (KT / 2), group = threadIdx.x / (KT / 2);
    Column first = first_column(shape, group);
    Maker maker;
    maker.y = (float)(first.y - shape.n[1] / 2);
    maker.z = (float)(first.z - shape.n[2] / 2);
    int step = pair / 8, flip = (step & 1) * 16, swap = (step & 2);
    int make_at = (ROWS_STAGE + step * (NW * NI * 32)) * 4 + group * Y * 32 + (pair & 3) * 4 + (pair / 4 & 1);
    samples += pair * 4;

    float4 s[4];
    float sum[MI][NI][4], run[MI][NI][4];
#pragma unroll
    for (int i = 0; i < MI * NI * 4; i++)
        sum[i / NI / 4][i / 4 % NI][i % 4] = 0;
    if (from < to) {
        fetch_stage(memory, waves + (long long)from * STEPS * tiles * 64, tiles);
        load_samples(s, samples + (long long)from * (KT * 2));
        begin(maker, s);
#pragma unroll
        for (int j = 0; j < Y; j++)
            make(maker, (unsigned *)memory + make_at + j * 32, flip, swap);
    }
    for (int stage = from; stage < to; stage++) {
        arrive();
        __syncthreads();
        int parity = (stage - from) & 1;
        uint4 *now = memory + parity * STAGE, *next = memory + (parity ^ 1) * STAGE;
        long long after = min(stage + 1, to - 1); // the last stage is computed twice, which saves branches
        fetch_stage(next, waves + after * STEPS * tiles * 64, tiles);
        load_samples(s, samples + after * (KT * 2));
        if (PROMOTE == 1 || (stage - from) % PROMOTE == 0) {
#pragma unroll
            for (int i = 0; i < MI * NI * 4; i++)
                run[i / NI / 4][i / 4 % NI][i % 4] = 0;
        }
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            const uint4 *a = now + (i * MI * MW + row) * 64 + lane;
            const uint4 *b = now + ROWS_STAGE + (i * NW * NI + column) * 32 + (lane ^ (i & 1) * 4);
            multiply_step(run, a, b, i);
            // The next stage's columns are computed while the tensor cores work.
            if (i == 0)
                begin(maker, s);
#pragma unroll
            for (int j = i * Y / STEPS; j < (i + 1) * Y / STEPS; j++)
                make(maker, (unsigned *)next + make_at + j * 32, flip, swap);
        }
        if (PROMOTE == 1 || (stage - from) % PROMOTE == PROMOTE - 1 || stage + 1 == to) {
#pragma unroll
            for (int i = 0; i < MI * NI * 4; i++)
                sum[i / NI / 4][i / 4 % NI][i % 4] += run[i / NI / 4][i / 4 % NI][i % 4];
        }
    }
    arrive();
    write_image(shape, sum, row, column, scale[1], add, image + blockIdx.z * part_stride);
}
#endif

#ifdef KR
// The image as tensor cores read it, [block of KR tiles of pairs][z][tile of 4 columns][tile of 8 pairs][lane], high
// and low parts. For a pair x, x' (at c and -c), the row of cosines has x + x', the row of sines -i (x - x').
extern "C" __global__ void __launch_bounds__(256)
fold_image(Shape shape, const cplx *image, const float *scale, int column_tiles, long long len, uint4 *out)
{
    begin_kernel();
    long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i >= len)
        return;
    int lane = i & 31;
    long long rest = i >> 5;
    int step = (int)(rest % KR);
    rest /= KR;
    int y = (int)(rest % column_tiles) * 4 + lane / 8;
    rest /= column_tiles;
    int z = (int)(rest % shape.n[2]), block = (int)(rest / shape.n[2]);
    uint2 b[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int h = (block * KR + step) * 8 + lane % 4 + j * 4;
        cplx up = {0, 0}, down = {0, 0};
        if (h < pairs(shape) && y < shape.n[1])
            load_pair(shape, image + y * shape.stride[1] + z * shape.stride[2], h, up, down);
        float s = scale[0];
        if (lane & 4)
            b[j] = split(s * up.y + s * down.y, s * down.x - s * up.x);
        else
            b[j] = split(s * up.x + s * down.x, s * up.y - s * down.y);
    }
    out[i] = make_uint4(b[0].x, b[1].x, b[0].y, b[1].y);
}

#define MS 2 // tiles of 16 samples of a warp

__device__ __forceinline__ void fetch_columns(uint4 *shared, const uint4 *folded)
{
#pragma unroll
    for (int n = 0; n < (NS * KR * 32 + 255) / 256; n++) {
        int i = n * 256 + threadIdx.x;
        if (NS * KR * 32 % 256 == 0 || i < NS * KR * 32)
            fetch(shared + i, folded + i);
    }
}

// The real matrix of a warp's samples and a block of KR tiles of pairs.
__device__ __forceinline__ void make_rows(Shape const &shape, const float *k0, long long first, long long count,
                                          int block, uint4 (&high)[MS][KR], uint4 (&low)[MS][KR])
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < MS; i++)
#pragma unroll
        for (int r = 0; r < KR; r++) {
            uint2 a[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                long long m = first + i * 16 + j % 2 * 8;
                int h = (block * KR + r) * 8 + lane % 4 + j / 2 * 4;
                cplx w = wave(m < count ? fraction(k0[m], position(shape, h)) : 0.0f);
                a[j] = split(w.x, w.y);
            }
            high[i][r] = make_uint4(a[0].x, a[1].x, a[2].x, a[3].x);
            low[i][r] = make_uint4(a[0].y, a[1].y, a[2].y, a[3].y);
        }
}

// s = s turn^2 + the products with two tiles of columns, at b.
__device__ __forceinline__ void add_two_tiles(cplx (&s)[2 * MS], const cplx (&turn)[2 * MS],
                                              const uint4 (&high)[MS][KR], const uint4 (&low)[MS][KR], const uint4 *b)
{
    float main[2][MS][4], rest[2][MS][4];
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int i = 0; i < MS; i++)
#pragma unroll
            for (int l = 0; l < 4; l++)
                main[t][i][l] = rest[t][i][l] = 0;
#pragma unroll
    for (int r = 0; r < KR; r++) {
        uint4 right[2];
#pragma unroll
        for (int t = 0; t < 2; t++)
            right[t] = b[(t * KR + r) * 32];
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < MS; i++)
                product(rest[t][i], low[i][r], right[t].x, right[t].y);
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < MS; i++)
                product(main[t][i], high[i][r], right[t].x, right[t].y);
#pragma unroll
        for (int t = 0; t < 2; t++)
#pragma unroll
            for (int i = 0; i < MS; i++)
                product(rest[t][i], high[i][r], right[t].z, right[t].w);
    }
#pragma unroll
    for (int t = 1; t >= 0; t--)
#pragma unroll
        for (int i = 0; i < 2 * MS; i++) {
            float re = main[t][i / 2][i % 2 * 2] + rest[t][i / 2][i % 2 * 2];
            float im = main[t][i / 2][i % 2 * 2 + 1] + rest[t][i / 2][i % 2 * 2 + 1];
            cplx p;
            p.x = fma(s[i].x, turn[i].x, fma(-s[i].y, turn[i].y, re));
            p.y = fma(s[i].x, turn[i].y, fma(s[i].y, turn[i].x, im));
            s[i] = p;
        }
}

// The samples' values: sums over the lanes that share a sample, with the scale and the half voxel's phase.
__device__ __forceinline__ void write_samples(Shape const &shape, cplx (&total)[2 * MS], const float *k0,
                                              long long first, long long count, const float *scale, cplx *values)
{
#pragma unroll
    for (int i = 0; i < 2 * MS; i++) {
#pragma unroll
        for (int l = 1; l < 4; l *= 2) {
            total[i].x += __shfl_xor_sync(~0u, total[i].x, l);
            total[i].y += __shfl_xor_sync(~0u, total[i].y, l);
        }
        long long m = first + i * 8;
        if (m < count && (threadIdx.x & 31) % 4 == 0) {
            cplx v = {total[i].x * scale[1], total[i].y * scale[1]};
            if (shape.even)
                v = times(v, wave(0.5f * k0[m]));
            values[m] = v;
        }
    }
}

// Computes values(m) for 256 samples per block, summed over stages of NS tiles of columns. Part p = blockIdx.y of the
// stages writes to values + p part_stride.
extern "C" __global__ void __launch_bounds__(256, 1)
grid_to_samples(Shape shape, const float *k0, const float *k1, const float *k2, long long count, const uint4 *folded,
                int column_tiles, long long stages, const float *scale, cplx *values, long long part_stride)
{
    begin_kernel();
    extern __shared__ uint4 memory[];
    int lane = threadIdx.x & 31;
    long long first = blockIdx.x * 256LL + (threadIdx.x >> 5) * (16 * MS) + lane / 4;
    long long stage = stages * blockIdx.y / gridDim.y, to = stages * (blockIdx.y + 1) / gridDim.y;
    int groups = column_tiles / NS;
    cplx total[2 * MS], turn[2 * MS];
#pragma unroll
    for (int i = 0; i < 2 * MS; i++) {
        long long m = first + i * 8;
        total[i].x = total[i].y = 0;
        turn[i] = wave(-(k1 && m < count ? 4 * k1[m] : 0.0f));
    }
    // There are buffers for two stages; each stage uses that of its parity.
    if (stage < to)
        fetch_columns(memory + (stage & 1) * (NS * KR * 32), folded + stage * (NS * KR * 32));
    while (stage < to) {
        long long block = stage / ((long long)shape.n[2] * groups);
        long long end = min(to, (block + 1) * shape.n[2] * groups);
        int group = (int)(stage % groups), plane = (int)(stage / groups % shape.n[2]);
        uint4 high[MS][KR], low[MS][KR];
        make_rows(shape, k0, first, count, (int)block, high, low);
#pragma unroll 1
        for (; stage < end; stage++) {
            arrive();
            __syncthreads();
            if (stage + 1 < to)
                fetch_columns(memory + (~stage & 1) * (NS * KR * 32), folded + (stage + 1) * (NS * KR * 32));
            const uint4 *b = memory + (stage & 1) * (NS * KR * 32) + lane;
            // Horner's scheme along axis 1: s = sum over tiles of turn^tile times the tile's product.
            cplx s[2 * MS];
#pragma unroll
            for (int i = 0; i < 2 * MS; i++)
                s[i].x = s[i].y = 0;
#pragma unroll 1
            for (int tile = NS - 2; tile >= 0; tile -= 2)
                add_two_tiles(s, turn, high, low, b + tile * KR * 32);
            float y = (float)(group * (NS * 4) + lane % 4 - shape.n[1] / 2), z = (float)(plane - shape.n[2] / 2);
            if (++group == groups) {
                group = 0;
                plane++;
            }
#pragma unroll
            for (int i = 0; i < 2 * MS; i++) {
                long long m = min(first + i * 8, count - 1);
                float turns = k1 ? -fraction(k1[m], y) : 0.0f;
                if (k2)
                    turns -= fraction(k2[m], z);
                cplx p = times(s[i], wave(turns));
                total[i].x += p.x;
                total[i].y += p.y;
            }
        }
    }
    write_samples(shape, total, k0, first, count, scale, values + blockIdx.y * part_stride);
}
#endif
