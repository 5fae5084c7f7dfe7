// Sorts the samples of a plan by bins of the grid, and lists for each tile of spreading the samples whose windows touch
// it.
//
// Macros: DIM is 2 or 3. ROUNDS is the maximum number of samples per thread of a pass. If WIDE is 1, counts may exceed
// 30 bits. LOOK_BACK is the number of blocks before its own whose counts a thread reads at once. If BUCKETS is 1, there
// are the kernels for many samples, of which a thread has up to BUCKET_ROUNDS. With STAGED_BUCKETS 1 they copy records
// to shared memory. FIXED_POINT is described in segments.cuh.
// PROGRAM is 1 for the passes of the sort, 2 for the other kernels, and 0 for all. These are two programs because their
// compilation, in parallel, then takes half of the time.
//
// A bin is a part of one plane of a tile of interpolation, small enough that all windows which start in it touch the
// same tiles of spreading. The samples are sorted by bins with a stable radix sort from the lowest digit to the highest
// (Adinets and Merrill, "Onesweep", 2022). A block ranks its samples and publishes its counts. It adds the counts of
// the blocks before it, and moves the coordinates. Only the blocks of the first pass need not wait for others: the
// counts of its blocks are known from the kernel that counts all digits. If there are many samples, blocks sort buckets
// of them by the lowest bits at the end instead. The list of a tile then consists of runs of consecutive samples, whose
// ends are known from the starts of the bins. Equal keys keep their order and all sums are of integers, so the result
// depends only on the input.
//
// Coordinates move together with the keys, so that no pass reads them at random.
//
// In 2D, interpolation may take the samples of a tile in the order of the input instead, see `write_tile_samples`.

// Digits of a pass.
#define DIGIT_BITS 8
#define DIGITS 256
#define MAX_PASSES 4
// Nanoseconds between two reads of counts that are not there yet. Without a pause, the blocks that wait delay those
// that they wait for: with five instead of four blocks per multiprocessor, a pass on an H200 took four times as long.
#define PAUSE 40

extern __shared__ __align__(16) unsigned char shared[];

#if WIDE
typedef u64 state;
#define FLAG_SHIFT 62
#else
typedef u32 state;
#define FLAG_SHIFT 30
#endif
#define PARTIAL ((state)1 << FLAG_SHIFT)
#define INCLUSIVE ((state)2 << FLAG_SHIFT)
#define COUNT_OF(s) ((s) & (PARTIAL - 1))

// A number, and 2^32 divided by it, rounded down (for 1, 2^32 - 1).
struct divisor {
    u32 value, reciprocal;
};

// x divided by the divisor, rounded down. The first quotient is at most 1 too small.
__device__ __forceinline__ u32 quotient_of(u32 x, const divisor &by)
{
    const u32 quotient = __umulhi(x, by.reciprocal);
    return quotient + (x - quotient * by.value >= by.value);
}

// The grid, the length of windows, and the number of bins of a tile of interpolation. Their keys follow one another.
struct bin_layout {
    u32 size[3], width;
    divisor tile;
};

// A sample on its way. In fixed point it is a point with CELL_BITS bits for each of x, y and z, and its index is in
// another array. Otherwise it has coordinates and index, and its key if there is room.
#if FIXED_POINT
#define HAS_KEY 0
struct __align__(16) record {
    fraction t[3];
    u32 cells;
};
#else
#define HAS_KEY (DOUBLE || DIM == 2)
struct __align__(4 * sizeof(real)) record {
    real k[DIM];
    u32 index;
#if HAS_KEY
    u32 key;
#endif
};
#endif

// The lanes of the warp whose digit has the same bit.
template <u32 BIT>
__device__ __forceinline__ u32 same_bit(u32 digit)
{
#ifdef __CUDA_ARCH__
    // Otherwise the compiler tests the bit twice, which takes three more instructions.
    u32 same;
    asm volatile("{ .reg .pred is_set; and.b32 %0, %1, %2; setp.ne.u32 is_set, %0, 0;"
                 "  vote.sync.ballot.b32 %0, is_set, 0xffffffff; @!is_set not.b32 %0, %0; }"
                 : "=&r"(same) : "r"(digit), "n"(BIT));
    return same;
#else
    const u32 set = __ballot_sync(0xffffffffu, digit & BIT);
    return digit & BIT ? set : ~set;
#endif
}

// The existing lanes of the warp with the same digit. Faster than __match_any_sync for many digits.
__device__ __forceinline__ u32 peers_of(u32 digit, bool exists)
{
    return __ballot_sync(0xffffffffu, exists) & same_bit<1>(digit) & same_bit<2>(digit) & same_bit<4>(digit)
        & same_bit<8>(digit) & same_bit<16>(digit) & same_bit<32>(digit) & same_bit<64>(digit) & same_bit<128>(digit);
}

// Computes the first cell of a sample's window on one axis, and the sample's offset in it.
__device__ __forceinline__ void locate(real k, u32 size, u32 width, u32 *cell, fraction *t)
{
#if DOUBLE && !FIXED_POINT
    const double position = k * size - 0.5 * width, first = ceil(position);
    const int start = (int)first;
    *t = 2 * (first - position) - 1;
#else
    // The position in units of 2^-32 of a cell: its addition to 3 2^51 rounds it, and it is in the sum's lower bits. It
    // is shorter than 2^48. (A position in single precision would cost two digits of the offset.)
    const double unit = 4294967296.0, sum = fma((double)k, unit * size, 6755399441055744.0 - 0.5 * unit * width);
    const u64 bits = (u64)__double_as_longlong(sum);
    const u32 below = (u32)bits;
    const int start = (int)(bits >> 32) - 0x43380000 + (below != 0);
    *t = fraction_of(0u - below);
#endif
    // A grid is at least two windows long, so adding one period is enough.
    *cell = start < 0 ? start + size : start;
}

struct located {
    point p;
    u32 plane;
};

__device__ __forceinline__ located locate_sample(const bin_layout &b, const real k[DIM])
{
    located at;
    u32 x, y = 0;
    at.p.t[1] = 0;
    locate(k[0], b.size[0], b.width, &x, &at.p.t[0]);
    if (DIM == 3) locate(k[1], b.size[1], b.width, &y, &at.p.t[1]);
    locate(k[DIM - 1], b.size[2], b.width, &at.plane, &at.p.t[2]);
    at.p.xy = x | y << 16;
#if DOUBLE && !FIXED_POINT
    at.p.unused = 0;
#endif
    return at;
}

// The same for sample m of the input. In 2D there is no ky.
__device__ __forceinline__ located locate_input(const bin_layout &b, const real *kx, const real *ky, const real *kz,
                                                u64 m)
{
    real k[DIM];
    k[0] = kx[m];
    if (DIM == 3) k[1] = ky[m];
    k[DIM - 1] = kz[m];
    return locate_sample(b, k);
}

// The same for a record.
__device__ __forceinline__ located locate_record(const bin_layout &b, const record &r)
{
#if FIXED_POINT
    constexpr u32 mask = (1u << CELL_BITS) - 1;
    return {{{r.t[0], r.t[1], r.t[2]}, (r.cells & mask) | (r.cells >> CELL_BITS & mask) << 16},
            r.cells >> 2 * CELL_BITS};
#else
    return locate_sample(b, r.k);
#endif
}

// The key of a sample's bin: the sum of the parts that belong to the first cells of its window. `keys` has those of all
// cells of x, then y, then z.
__device__ __forceinline__ u32 key_of(const bin_layout &b, const u32 *keys, const located &at)
{
    const u32 x = at.p.xy & 0xffff, y = b.size[0] + (at.p.xy >> 16), z = b.size[0] + b.size[1] + at.plane;
    return keys[x] + keys[y] + keys[z];
}

#if DIM == 2

// The lanes that start a run: samples of one tile that follow one another in a warp.
__device__ __forceinline__ u32 run_starts(u32 tile)
{
    const u32 before = __shfl_up_sync(0xffffffffu, tile, 1);
    return __ballot_sync(0xffffffffu, (threadIdx.x & 31) == 0 || tile != before);
}

#endif

// Copies `count` entries of the table of keys to shared memory, where the lookups of a warp's lanes at random are
// faster. The block must synchronise before it uses the result. If `count` is 0, there is no room for the table.
__device__ __forceinline__ const u32 *keys_in_shared(const u32 *keys, u32 count, u32 *room)
{
    if (count == 0) return keys;
    for (u32 i = threadIdx.x; i < count; i += SORT_THREADS) room[i] = keys[i];
    return room;
}

// How many samples of each digit of the first pass come before a block: the number in earlier parts of the input,
// [part][digit], plus the number in earlier blocks of the block's part, [block][digit]. A part has `length` blocks.
struct first_counts {
    u32 *of_parts, *in_part;
    u32 length;
};

// Parts of the input whose counts a thread reads at once.
#define PARTS 32

// Replaces the counts of this thread's digit in each part by its count in all earlier ones.
__device__ __forceinline__ void add_parts(u32 *of_parts)
{
    volatile u32 *at = of_parts + threadIdx.x;
    u32 sum = 0;
    for (u32 first = 0; first < gridDim.x; first += PARTS) {
        u32 counts[PARTS];
        #pragma unroll
        for (u32 i = 0; i < PARTS; i++) counts[i] = at[min(first + i, gridDim.x - 1) * DIGITS];
        #pragma unroll
        for (u32 i = 0; i < PARTS && first + i < gridDim.x; i++) {
            at[(first + i) * DIGITS] = sum;
            sum += counts[i];
        }
    }
}

#if PROGRAM != 1

// Counts the digits of all passes, [pass][digit], which are those of the keys' buckets. Each block has a part of the
// input, as blocks of the first pass with `rounds` samples per thread. The last one replaces the counts of digits by
// their exclusive prefix sums, and completes `before`. In 2D the runs of samples are counted, too.
extern "C" __global__ void __launch_bounds__(SORT_THREADS, 3)
count_digits(const real *kx, const real *ky, const real *kz, u64 n, bin_layout b, const u32 *keys, u32 table,
             divisor size, u32 passes, u32 rounds, first_counts before, u32 *digits, u32 *done, u64 *runs)
{
    begin_kernel();
    __shared__ u32 bins[MAX_PASSES * DIGITS];
    __shared__ bool last;
    const u32 d = threadIdx.x, of_block = SORT_THREADS * rounds;
    const u64 part = (u64)of_block * before.length, end = min(n, (blockIdx.x + 1) * part);
    keys = keys_in_shared(keys, table, (u32 *)shared);
    for (u32 i = d; i < passes * DIGITS; i += SORT_THREADS) bins[i] = 0;
    u32 seen_runs = 0;
    u32 *in_part = before.in_part + (u64)blockIdx.x * before.length * DIGITS + d;
    for (u64 first = blockIdx.x * part; first < end; first += of_block, in_part += DIGITS) {
        const u32 count = (u32)min((u64)of_block, n - first);
        real k[ROUNDS][DIM];
        #pragma unroll
        for (u32 r = 0; r < ROUNDS; r++) {
            if (r >= rounds) break;
            const u64 m = first + min(d + SORT_THREADS * r, count - 1);
            k[r][0] = kx[m];
            if (DIM == 3) k[r][1] = ky[m];
            k[r][DIM - 1] = kz[m];
        }
        __syncthreads();
        *in_part = bins[d];
        __syncthreads();
        #pragma unroll
        for (u32 r = 0; r < ROUNDS; r++) {
            const u32 number = d + SORT_THREADS * r;
            if (r >= rounds || (number & ~31u) >= count) break;
            const u32 key = key_of(b, keys, locate_sample(b, k[r])), bucket = quotient_of(key, size);
            for (u32 p = 0; number < count && p < passes; p++)
                atomicAdd(&bins[p * DIGITS + (bucket >> DIGIT_BITS * p & (DIGITS - 1))], 1u);
#if DIM == 2
            seen_runs += __popc(run_starts(quotient_of(key, b.tile)));
#endif
        }
    }
    if (seen_runs && (d & 31) == 0) atomicAdd(runs, (u64)seen_runs);
    __syncthreads();
    before.of_parts[blockIdx.x * DIGITS + d] = bins[d];
    for (u32 i = d; i < passes * DIGITS; i += SORT_THREADS)
        if (bins[i]) atomicAdd(&digits[i], bins[i]);
    __threadfence();
    __syncthreads();
    if (d == 0) last = atomicAdd(done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (u32 p = 0; p < passes; p++) {
        volatile u32 *of = digits + p * DIGITS + d;
        *of = block_exclusive(*of);
    }
    add_parts(before.of_parts);
}

#endif

// Records, and their indices if these are in another array. Both take RECORD_BYTES.
#define RECORD_BYTES ((u32)sizeof(record) + 4 * FIXED_POINT)
struct record_arrays {
    record *records;
    u32 *indices;
};

// Input and output of a pass; arrays that it does not use are null.
struct sort_arrays {
    const real *k[3];
    record_arrays from, to;
};

// A record as units of 16 bytes.
struct __align__(16) sixteen_bytes {
    u32 of[4];
};
#define UNITS (sizeof(record) / 16)

__device__ __forceinline__ void copy_record(record *to, const record *from)
{
    #pragma unroll
    for (u32 i = 0; i < UNITS; i++) ((sixteen_bytes *)to)[i] = ((const sixteen_bytes *)from)[i];
}

// Begins a copy from global to shared memory, which goes on while the thread continues.
template <u32 BYTES>
__device__ __forceinline__ void begin_copy(void *to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    const u32 at = (u32)__cvta_generic_to_shared(to);
    if (BYTES == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(at), "l"(from), "n"(BYTES) : "memory");
#else
    #pragma unroll
    for (u32 i = 0; i < BYTES / 4; i++) ((u32 *)to)[i] = ((const u32 *)from)[i];
#endif
}

__device__ __forceinline__ void end_copies()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// Begins a copy of record m, with its index.
__device__ __forceinline__ void begin_record(const record_arrays &to, u32 number, const record_arrays &from, u64 m)
{
    #pragma unroll
    for (u32 i = 0; i < UNITS; i++)
        begin_copy<16>((sixteen_bytes *)(to.records + number) + i, (const sixteen_bytes *)(from.records + m) + i);
#if FIXED_POINT
    begin_copy<4>(to.indices + number, from.indices + m);
#endif
}

// Samples of a block in shared memory, by their number. `begin_sample` starts the copy of sample m, `take_key` returns
// its key and completes its record in the first pass, and `write_sample` writes it to its place.
#define BLOCK_SAMPLES (SORT_THREADS * ROUNDS)
#define BLOCK_RECORDS ((record *)shared)
#define BLOCK_INDICES ((u32 *)(BLOCK_RECORDS + BLOCK_SAMPLES))

#if FIXED_POINT

// The first pass has the coordinates of each axis. Records, which are shorter, take the place of those of x and y, with
// 8 bytes each. Later passes have records and indices.
#define BLOCK_BYTES (BLOCK_SAMPLES * 3 * (u32)sizeof(real))
#define BLOCK_COORDINATES(axis) ((real *)shared + (axis) * BLOCK_SAMPLES)
#define BLOCK_HALVES(half) ((uint2 *)shared + (half) * BLOCK_SAMPLES)

template <bool FIRST>
__device__ __forceinline__ void begin_sample(const sort_arrays &a, u64 m, u32 number)
{
    if (FIRST) {
        #pragma unroll
        for (u32 axis = 0; axis < 3; axis++)
            begin_copy<sizeof(real)>(BLOCK_COORDINATES(axis) + number, a.k[axis] + m);
    } else {
        begin_record({BLOCK_RECORDS, BLOCK_INDICES}, number, a.from, m);
    }
}

template <bool FIRST>
__device__ __forceinline__ u32 take_key(const bin_layout &b, const u32 *keys, u64, u32 number)
{
    if (!FIRST) return key_of(b, keys, locate_record(b, BLOCK_RECORDS[number]));
    const real k[3] = {BLOCK_COORDINATES(0)[number], BLOCK_COORDINATES(1)[number], BLOCK_COORDINATES(2)[number]};
    const located at = locate_sample(b, k);
    const u32 x = at.p.xy & 0xffff, y = at.p.xy >> 16;
    BLOCK_HALVES(0)[number] = make_uint2(at.p.t[0], at.p.t[1]);
    BLOCK_HALVES(1)[number] = make_uint2(at.p.t[2], x | y << CELL_BITS | at.plane << 2 * CELL_BITS);
    return key_of(b, keys, at);
}

template <bool FIRST>
__device__ __forceinline__ void write_sample(const sort_arrays &a, u64 to, u32 number, u64 block_first)
{
    if (FIRST) {
        const uint2 first = BLOCK_HALVES(0)[number], second = BLOCK_HALVES(1)[number];
        const record r = {{first.x, first.y, second.x}, second.y};
        copy_record(a.to.records + to, &r);
        a.to.indices[to] = (u32)block_first + number;
    } else {
        copy_record(a.to.records + to, BLOCK_RECORDS + number);
        a.to.indices[to] = BLOCK_INDICES[number];
    }
}

#else

#define BLOCK_BYTES (BLOCK_SAMPLES * (u32)sizeof(record))

template <bool FIRST>
__device__ __forceinline__ void begin_sample(const sort_arrays &a, u64 m, u32 number)
{
    record *to = BLOCK_RECORDS + number;
    if (FIRST) {
        begin_copy<sizeof(real)>(&to->k[0], a.k[0] + m);
        if (DIM == 3) begin_copy<sizeof(real)>(&to->k[1], a.k[1] + m);
        begin_copy<sizeof(real)>(&to->k[DIM - 1], a.k[2] + m);
    } else {
        begin_record({BLOCK_RECORDS, BLOCK_INDICES}, number, a.from, m);
    }
}

template <bool FIRST>
__device__ __forceinline__ u32 take_key(const bin_layout &b, const u32 *keys, u64 block_first, u32 number)
{
    record *r = BLOCK_RECORDS + number;
#if HAS_KEY
    if (!FIRST) return r->key;
#endif
    const u32 key = key_of(b, keys, locate_sample(b, r->k));
    if (FIRST) {
        r->index = (u32)block_first + number;
#if HAS_KEY
        r->key = key;
#endif
    }
    return key;
}

template <bool FIRST>
__device__ __forceinline__ void write_sample(const sort_arrays &a, u64 to, u32 number, u64)
{
    copy_record(a.to.records + to, BLOCK_RECORDS + number);
}

#endif

// Counts the digits of a warp's next samples, one per lane, and returns the digit times 2^16 plus the number of the
// warp's samples before this one that have it.
__device__ __forceinline__ u32 count_digit(u32 digit, bool exists, u32 counts_of_warp[DIGITS])
{
    const u32 peers = peers_of(digit, exists), before = __popc(peers & ((1u << (threadIdx.x & 31)) - 1));
    u32 seen = 0;
    if (exists) seen = counts_of_warp[digit];
    __syncwarp();
    if (exists && before == 0) counts_of_warp[digit] = seen + __popc(peers);
    __syncwarp();
    return digit << 16 | (seen + before);
}

// Replaces the warps' counts of this thread's digit by the counts of the warps before, and returns the sum of all.
__device__ __forceinline__ u32 sum_over_warps(u32 counts[SORT_WARPS][DIGITS])
{
    u32 sum = 0;
    #pragma unroll
    for (u32 w = 0; w < SORT_WARPS; w++) {
        const u32 count = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = sum;
        sum += count;
    }
    return sum;
}

// Returns the sum of the counts that the blocks before this one have published. `own` is this block's state of the
// thread's digit.
__device__ __forceinline__ u32 counts_before(volatile state *own)
{
    u32 before = 0;
    for (bool is_complete = false; !is_complete;) {
        state seen[LOOK_BACK];
        #pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) seen[i] = own[-(i + 1) * DIGITS];
        u32 taken = 0;
        bool is_there = true;
        #pragma unroll
        for (int i = 0; i < LOOK_BACK; i++) {
            is_there = is_there && !is_complete && seen[i] >= PARTIAL;
            before += is_there ? (u32)COUNT_OF(seen[i]) : 0;
            taken += is_there;
            is_complete = is_complete || (is_there && seen[i] >= INCLUSIVE);
        }
        own -= taken * DIGITS;
        if (taken == 0) __nanosleep(PAUSE);
    }
    return before;
}

// Finds the places of a block's digits. A thread has one digit: `local` is its first place in the block's sorted
// samples, and `base` the distance from there to its place in the output. The first pass knows the number `before` of
// samples in earlier blocks. Others publish the block's count and add those of the blocks before. `states` has those of
// LOOK_BACK blocks before the first one, which stay 0.
template <bool FIRST>
__device__ __forceinline__ void place_digits(u32 counts[SORT_WARPS][DIGITS], u32 block, const u32 *digits, u32 before,
                                             volatile state *states, u32 *local, u32 *base)
{
    const u32 d = threadIdx.x, count = sum_over_warps(counts);
    volatile state *own = states + (u64)(block + LOOK_BACK) * DIGITS + d;
    if (!FIRST) *own = (block ? PARTIAL : INCLUSIVE) | count;
    const u32 first = block_exclusive(count);
    if (!FIRST && block) {
        before = counts_before(own);
        *own = INCLUSIVE | (state)before + count;
    }
    local[d] = first;
    base[d] = digits[d] + before - first;
}

// Writes the number of each of a thread's samples, from `own` on, to its place in the sorted samples of a block of
// `count` samples, and its digit. `places` are those of `count_digit`.
template <u32 MOST>
__device__ __forceinline__ void sort_numbers(const u32 (&places)[MOST], u32 own, u32 rounds, u32 count,
                                             const u32 *local, const u32 counts_of_warp[DIGITS],
                                             unsigned short *source, unsigned char *digit_of)
{
    #pragma unroll
    for (u32 r = 0; r < MOST; r++) {
        if (r >= rounds || own + 32 * r >= count) break;
        const u32 digit = places[r] >> 16, to = local[digit] + counts_of_warp[digit] + (places[r] & 0xffff);
        source[to] = (unsigned short)(own + 32 * r);
        digit_of[to] = (unsigned char)digit;
    }
}

// Ranks the samples of a block, sorts their numbers in shared memory, and moves the records to their places. Each warp
// has samples that follow one another, up to ROUNDS per lane. They are copied to shared memory directly, because in
// registers they would leave too few for loads and ranks.
template <bool FIRST>
__device__ __forceinline__ void sort_pass(const sort_arrays &a, u64 n, const bin_layout &b, const u32 *keys, u32 table,
                                          divisor size, u32 shift, u32 rounds, const u32 *digits,
                                          const first_counts &of_first, volatile state *states, u32 *ticket)
{
    // The sample that comes to each place, and its digit.
    unsigned short *source = (unsigned short *)(shared + BLOCK_BYTES);
    unsigned char *digit_of = (unsigned char *)(source + BLOCK_SAMPLES);
    __shared__ u32 counts[SORT_WARPS][DIGITS], local[DIGITS], base[DIGITS], started;
    const u32 d = threadIdx.x, warp = d >> 5, lane = d & 31;
    // Blocks that wait for others take their numbers when they start, so that these run.
    if (!FIRST && d == 0) started = atomicAdd(ticket, 1u);
    for (u32 w = 0; w < SORT_WARPS; w++) counts[w][d] = 0;
    if (FIRST || !HAS_KEY) keys = keys_in_shared(keys, table, (u32 *)(digit_of + BLOCK_SAMPLES));
    __syncthreads();
    const u32 block = FIRST ? blockIdx.x : started, own = warp * 32 * rounds + lane;
    const u64 block_first = (u64)block * SORT_THREADS * rounds;
    const u32 count = (u32)min((u64)SORT_THREADS * rounds, n - block_first);
    #pragma unroll
    for (u32 r = 0; r < ROUNDS; r++) {
        if (r >= rounds) break;
        const u32 number = own + 32 * r;
        begin_sample<FIRST>(a, block_first + min(number, count - 1), number);
    }
    u32 before = 0;
    if (FIRST)
        before = of_first.of_parts[block / of_first.length * DIGITS + d] + of_first.in_part[(u64)block * DIGITS + d];
    end_copies();
    u32 place[ROUNDS];
    #pragma unroll
    for (u32 r = 0; r < ROUNDS; r++) {
        if (r >= rounds) break;
        const u32 number = own + 32 * r, key = take_key<FIRST>(b, keys, block_first, number);
        place[r] = count_digit(quotient_of(key, size) >> shift & (DIGITS - 1), number < count, counts[warp]);
    }
    __syncthreads();
    place_digits<FIRST>(counts, block, digits, before, states, local, base);
    __syncthreads();
    sort_numbers(place, own, rounds, count, local, counts[warp], source, digit_of);
    __syncthreads();
    for (u32 i = d; i < count; i += SORT_THREADS)
        write_sample<FIRST>(a, base[digit_of[i]] + i, source[i], block_first);
}

// Without the number of blocks the compiler would use 32 registers, and a pass in double precision take a fifth longer.
#define SORT_PASS(NAME, FIRST)                                                                                         \
    extern "C" __global__ void __launch_bounds__(SORT_THREADS, 2)                                                      \
    NAME(sort_arrays a, u64 n, bin_layout b, const u32 *keys, u32 table, divisor size, u32 shift, u32 rounds,          \
         const u32 *digits, first_counts of_first, state *states, u32 *ticket)                                         \
    {                                                                                                                  \
        begin_kernel();                                                                                                \
        sort_pass<FIRST>(a, n, b, keys, table, size, shift, rounds, digits, of_first, states, ticket);                 \
    }
#if PROGRAM != 2
SORT_PASS(sort_first, true)
SORT_PASS(sort_next, false)
#endif

#if PROGRAM != 1

// Sorted samples, as interpolation and spreading read them.
struct sorted_points {
    point *points;
    unsigned short *planes;
    u32 *order;
};

// Writes a point. It is not read again soon, so it must not take the place of other data in the cache.
__device__ __forceinline__ void write_point(const sorted_points &to, u64 i, const located &at, u32 index)
{
    union whole_point {
        point p;
        uint4 units[sizeof(point) / 16];
        __device__ whole_point() {}
    } whole;
    whole.p = at.p;
    #pragma unroll
    for (u32 u = 0; u < sizeof(point) / 16; u++) __stcs((uint4 *)(to.points + i) + u, whole.units[u]);
    __stcs(to.planes + i, (unsigned short)at.plane);
    __stcs(to.order + i, index);
}

// The index of record i.
__device__ __forceinline__ u32 index_of(const record_arrays &sorted, u64 i, const record &r)
{
#if FIXED_POINT
    return sorted.indices[i];
#else
    return r.index;
#endif
}

// Writes the points of sorted samples and their order, and marks the first sample of each bin. Bins without samples
// keep 0xffffffff: the starts of bins are the minima of all following bins, see `fill_starts`.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
settle(record_arrays sorted, u64 n, bin_layout b, const u32 *keys, sorted_points to, u32 *starts)
{
    begin_kernel();
    __shared__ u32 of_thread[SORT_THREADS];
    const u64 i = (u64)blockIdx.x * SORT_THREADS + threadIdx.x;
    u32 key = 0;
    if (i < n) {
        const record r = sorted.records[i];
        const located at = locate_record(b, r);
        key = key_of(b, keys, at);
        write_point(to, i, at, index_of(sorted, i, r));
    }
    of_thread[threadIdx.x] = key;
    __syncthreads();
    if (i >= n) return;
    bool first = i == 0;
    if (threadIdx.x > 0) first = of_thread[threadIdx.x - 1] != key;
    else if (i > 0) first = key_of(b, keys, locate_record(b, sorted.records[i - 1])) != key;
    if (first) starts[key] = (u32)i;
}

#if BUCKETS

// Many samples need one pass less. The passes sort by buckets of up to DIGITS bins only. A block then sorts a bucket,
// and writes its points and the starts of its bins.
#define BUCKET_SAMPLES (SORT_THREADS * BUCKET_ROUNDS)
// Loads of a thread that are in flight together.
#define LOADS 4

// Estimates the samples of the longest bucket: `most` of `drawn` samples are in one bucket. Each is drawn from another
// part of the input. Places within the parts vary, because spokes are periodic.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
draw_samples(const real *kx, const real *ky, const real *kz, u64 n, bin_layout b, const u32 *keys, divisor size,
             u32 drawn, u32 *counts, u32 *most)
{
    begin_kernel();
    const u32 i = blockIdx.x * SORT_THREADS + threadIdx.x;
    if (i >= drawn) return;
    const u64 part = n / drawn, m = i * part + (i * 2654435761u >> 8) % part;
    const u32 bucket = quotient_of(key_of(b, keys, locate_input(b, kx, ky, kz, m)), size);
    const u32 count = atomicAdd(&counts[bucket], 1u) + 1;
    if (count > *(volatile u32 *)most) atomicMax(most, count);
}

__device__ __forceinline__ u32 key_at(const record *r, const bin_layout &b, const u32 *keys)
{
#if HAS_KEY
    return r->key;
#else
    record copy;
    copy_record(&copy, r);
    return key_of(b, keys, locate_record(b, copy));
#endif
}

// Finds the first sample of each bucket by bisection; begins[buckets] = n.
extern "C" __global__ void __launch_bounds__(SORT_THREADS)
find_buckets(const record *sorted, u64 n, bin_layout b, const u32 *keys, divisor size, u32 buckets, u32 *begins)
{
    begin_kernel();
    const u32 bucket = blockIdx.x * SORT_THREADS + threadIdx.x;
    if (bucket > buckets) return;
    u64 low = 0, high = n;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (quotient_of(key_at(sorted + middle, b, keys), size) < bucket) low = middle + 1;
        else high = middle;
    }
    begins[bucket] = (u32)low;
}

// Sorts the samples of a bucket by their bins: it sorts their numbers, and reads the records again. These are in shared
// memory, if it has room for two blocks, or in the level-2 cache. Then the number of blocks that run at once is limited
// by their registers, so that the cache has room for their records. Longer buckets are sorted in parts, after counting
// the samples of each bin.
extern "C" __global__ void __launch_bounds__(SORT_THREADS, STAGED_BUCKETS ? 2 : sizeof(record) == 32 ? 3 : 4)
sort_buckets(record_arrays sorted, u64 n, bin_layout b, const u32 *keys, u32 table, const u32 *begins,
             divisor size, u64 bins, sorted_points to, u32 *starts)
{
    begin_kernel();
    __shared__ unsigned short source[BUCKET_SAMPLES];
    __shared__ unsigned char digit_of[BUCKET_SAMPLES];
    __shared__ u32 counts[SORT_WARPS][DIGITS], local[DIGITS], base[DIGITS];
    const u32 d = threadIdx.x, warp = d >> 5, lane = d & 31, bucket = blockIdx.x, first_bin = bucket * size.value;
    const u32 begin = begins[bucket], end = begins[bucket + 1];
    const bool is_long = end - begin > BUCKET_SAMPLES;
    record_arrays part_of = {(record *)shared, (u32 *)((record *)shared + BUCKET_SAMPLES)};
    keys = keys_in_shared(keys, table, (u32 *)(shared + STAGED_BUCKETS * BUCKET_SAMPLES * RECORD_BYTES));
    base[d] = 0;
    __syncthreads();
    for (u32 i = begin + d; is_long && i < end; i += SORT_THREADS)
        atomicAdd(&base[key_at(sorted.records + i, b, keys) - first_bin], 1u);
    for (u32 part = begin;; part += BUCKET_SAMPLES) {
        const u32 count = min(end - part, BUCKET_SAMPLES), rounds = (count + SORT_THREADS - 1) / SORT_THREADS;
        const u32 own = warp * 32 * rounds + lane;
        for (u32 w = 0; w < SORT_WARPS; w++) counts[w][d] = 0;
        __syncthreads();
#if STAGED_BUCKETS
        for (u32 i = own; i < min(own + 32 * rounds, count); i += 32) begin_record(part_of, i, sorted, part + i);
        end_copies();
#else
        part_of = {sorted.records + part, sorted.indices + part};
#endif
        u32 place[BUCKET_ROUNDS];
        #pragma unroll
        for (u32 first = 0; first < BUCKET_ROUNDS; first += LOADS) {
            if (first >= rounds) break;
            u32 digits[LOADS];
            bool exists[LOADS];
            #pragma unroll
            for (u32 r = 0; r < LOADS; r++) {
                const u32 number = own + 32 * (first + r);
                exists[r] = first + r < rounds && number < count;
                digits[r] = exists[r] ? key_at(part_of.records + number, b, keys) - first_bin : 0;
            }
            #pragma unroll
            for (u32 r = 0; r < LOADS && first + r < BUCKET_ROUNDS; r++)
                place[first + r] = count_digit(digits[r], exists[r], counts[warp]);
        }
        __syncthreads();
        const u32 total = sum_over_warps(counts);
        local[d] = block_exclusive(total);
        if (part == begin) {
            base[d] = begin + (is_long ? block_exclusive(base[d]) : local[d]);
            const u64 bin = (u64)first_bin + d;
            if (d < size.value && bin < bins) starts[bin] = base[d];
            if (bucket == 0 && d == 0) starts[bins] = (u32)n;
        }
        __syncthreads();
        sort_numbers(place, own, rounds, count, local, counts[warp], source, digit_of);
        __syncthreads();
        #pragma unroll 4
        for (u32 i = d; i < count; i += SORT_THREADS) {
            record r;
            copy_record(&r, part_of.records + source[i]);
            const u32 digit = digit_of[i];
            write_point(to, base[digit] + i - local[digit], locate_record(b, r), index_of(part_of, source[i], r));
        }
        if (end - part <= BUCKET_SAMPLES) break;
        __syncthreads();
        base[d] += total;
    }
}

#endif

#if DIM == 2

// Writes the samples of each tile of interpolation, a run after the other, so that neighbours in the input stay
// neighbours. The order of runs may differ from time to time, since the sums of a sample do not depend on it. `starts`
// has the first place of each bin; that of a tile's first bin counts the samples that have been written.
extern "C" __global__ void __launch_bounds__(256)
write_tile_samples(const real *kx, const real *kz, u64 n, bin_layout b, const u32 *keys, u32 *starts,
                   tile_sample *samples)
{
    begin_kernel();
    const u64 m = (u64)blockIdx.x * 256 + threadIdx.x;
    const u32 lane = threadIdx.x & 31;
    located at;
    u32 tile = 0xffffffff;
    if (m < n) {
        at = locate_input(b, kx, nullptr, kz, m);
        tile = quotient_of(key_of(b, keys, at), b.tile);
    }
    const u32 heads = run_starts(tile), up_to_lane = 0xffffffff >> (31 - lane);
    const u32 head = 31 - __clz(heads & up_to_lane), later = heads & ~up_to_lane;
    u32 place = 0;
    if (m < n && lane == head) place = atomicAdd(&starts[tile * b.tile.value], (later ? __ffs(later) - 1 : 32) - lane);
    place = __shfl_sync(0xffffffffu, place, head) + lane - head;
    if (m < n) samples[place] = {{at.p.t[0], at.p.t[2]}, at.p.xy | at.plane << 16, (u32)m};
}

#endif

// Spreading: tiles, the number of start planes of a tile, and the runs of samples of each of these planes.
struct run_layout {
    u32 size_z, depth, width;
    u32 tiles[3];
    u32 runs_y;
    divisor runs_x, runs_of_plane;
};

// A run of samples that touch a tile.
struct run {
    u32 first, count;
};

// The runs of one tile, its first plane, and the number of planes in which windows that touch it start. A row is the
// part of the keys of a run's bins that comes from y. A column is that from x, times 2^8, plus the number of bins. Runs
// that the tile does not have are 0xffffffff.
struct runs_of_tile {
    const u32 *rows, *columns;
    u32 first_plane, planes;
};

// `rows` and `columns` have those of all tiles, [tile][runs_y] and [tile][runs_x].
__device__ __forceinline__ runs_of_tile find_runs(const run_layout &l, const u32 *rows, const u32 *columns, u32 tile)
{
    const u32 tile_x = tile % l.tiles[0], yz = tile / l.tiles[0];
    const u32 tile_y = yz % l.tiles[1], first_plane = yz / l.tiles[1] * l.depth;
    return {rows + tile_y * l.runs_y, columns + tile_x * l.runs_x.value, first_plane,
            min(l.depth, l.size_z - first_plane) + l.width - 1};
}

// The `nth` run of a tile. `keys_z` are the keys of cells of z.
__device__ __forceinline__ run run_of(const run_layout &l, const runs_of_tile &of, const u32 *keys_z, const u32 *starts,
                                      u32 nth)
{
    const u32 plane = quotient_of(nth, l.runs_of_plane), rest = nth - plane * l.runs_of_plane.value;
    if (plane >= of.planes) return {0, 0};
    const u32 j = quotient_of(rest, l.runs_x), row = of.rows[j], column = of.columns[rest - j * l.runs_x.value];
    if (row == 0xffffffffu || column == 0xffffffffu) return {0, 0};
    int z = (int)(of.first_plane + plane) - (int)(l.width - 1);
    if (z < 0) z += l.size_z;
    const u32 bin = keys_z[z] + row + (column >> 8), first = starts[bin];
    return {first, starts[bin + (column & 0xff)] - first};
}

// Counts the samples that touch each tile of spreading; a warp counts one tile.
extern "C" __global__ void __launch_bounds__(256)
count_touching(run_layout l, const u32 *keys_z, const u32 *rows, const u32 *columns, const u32 *starts, u32 *counts)
{
    begin_kernel();
    const u32 tile = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (tile >= l.tiles[0] * l.tiles[1] * l.tiles[2]) return;
    const runs_of_tile of = find_runs(l, rows, columns, tile);
    const u32 runs = of.planes * l.runs_of_plane.value;
    u32 sum = 0;
    #pragma unroll 4
    for (u32 r = lane; r < runs; r += 32) sum += run_of(l, of, keys_z, starts, r).count;
    #pragma unroll
    for (u32 step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) counts[tile] = sum;
}

// The lane of the run that contains entry `i` of the runs of a warp's lanes, whose inclusive sums are `sums`. All lanes
// have the same `i`.
__device__ __forceinline__ u32 lane_of(u32 sums, u32 i) { return __popc(__ballot_sync(0xffffffffu, sums <= i)); }

// The bits of all lanes of the warp.
__device__ __forceinline__ u32 bits_of_warp(u32 bits)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(0xffffffffu, bits);
#else
    #pragma unroll
    for (u32 step = 16; step; step /= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, step);
    return bits;
#endif
}

// Writes entries `low` to `high` of the runs of a warp's lanes to `list`; a lane's run begins with entry `start`. The
// runs of 32 entries are found by the bits of those with which they begin. `differences` is shared memory of the warp.
__device__ __forceinline__ void list_runs(const run &mine, u32 start, u32 low, u32 high, u32 *list, u32 *differences)
{
    const u32 lane = threadIdx.x & 31, up_to_lane = 0xffffffff >> (31 - lane);
    const u32 filled = __ballot_sync(0xffffffffu, mine.count > 0);
    if (mine.count > 0) differences[__popc(filled & up_to_lane) - 1] = mine.first - start;
    __syncwarp();
    // Of the lane's run among those that are not empty.
    const u32 difference = differences[lane];
    __syncwarp();
    // The run of the entry before those of the warp, or -1.
    u32 previous = __popc(__ballot_sync(0xffffffffu, mine.count > 0 && start < low)) - 1;
    // The place of the run's first entry relative to those of the warp. An empty run begins with the next one.
    u32 place = start - low;
    u32 *to = list + low + lane;
    for (u32 entry = low + lane; entry - lane < high; entry += 32) {
        const u32 starts = bits_of_warp(place < 32 ? 1u << place : 0);
        const u32 sample = __shfl_sync(0xffffffffu, difference, previous + __popc(starts & up_to_lane)) + entry;
        if (entry < high) *to = sample;
        previous += __popc(starts);
        place -= 32;
        to += 32;
    }
}

// Writes the list of each segment of a tile of spreading, sorted by the windows' first planes, and the segment; a warp
// writes one. Segments past the last one are empty. `planes` has the numbers of planes that segments share with others.
// Tiles of 2 to `few` segments go to the front of `cut`, tiles of more to its end, in any order: tiles share no cells.
// `cuts` has the numbers of both, and the most segments of a tile.
extern "C" __global__ void __launch_bounds__(256)
list_touching(run_layout l, const u32 *keys_z, const u32 *rows, const u32 *columns, const u32 *starts,
              const u64 *tile_starts, const u64 *firsts, u64 room, u32 few, u32 *list, segment *segments, u32 *planes,
              cut_tile *cut, u64 *cuts)
{
    begin_kernel();
    __shared__ u32 differences[8][32];
    const u64 s = (u64)blockIdx.x * 8 + threadIdx.x / 32;
    const u32 lane = threadIdx.x & 31, tiles = l.tiles[0] * l.tiles[1] * l.tiles[2];
    if (s >= room) return;
    segment out = {};
    u32 shared = 0;
    if (s < firsts[tiles]) {
        const u32 tile = tile_of_segment(firsts, tiles, s);
        const u64 begin = tile_starts[tile];
        const u32 nth = (u32)(s - firsts[tile]), pieces = (u32)(firsts[tile + 1] - firsts[tile]);
        const u32 all = (u32)(tile_starts[tile + 1] - begin);
        // Pieces of equal length: all / pieces or one more.
        const u32 part = all / pieces, more = all % pieces;
        const u32 from = nth * part + (nth < more ? nth : more), end = from + part + (nth < more);
        const runs_of_tile of = find_runs(l, rows, columns, tile);
        const u32 runs = of.planes * l.runs_of_plane.value;
        // The last entry before the segment, its first and last, and the first after it; and the planes where their
        // windows start, counted from the first plane from which a window reaches the tile.
        const u32 entries[4] = {from - 1, from, end - 1, end};
        u32 starts_of[4] = {0, 0, 0, 0};
        u32 done = 0;
        for (u32 r = 0; r < runs && done < min(end + 1, all); r += 32) {
            const run mine = run_of(l, of, keys_z, starts, r + lane);
            const u32 sums = warp_inclusive(mine.count), total = __shfl_sync(0xffffffffu, sums, 31);
            #pragma unroll
            for (int e = 0; e < 4; e++)
                if (entries[e] - done < total)
                    starts_of[e] = quotient_of(r + lane_of(sums, entries[e] - done), l.runs_of_plane);
            const u32 low = from > done ? from - done : 0, high = end > done ? min(total, end - done) : 0;
            if (low < high)
                list_runs(mine, sums - mine.count, low, high, list + begin + done, differences[threadIdx.x / 32]);
            done += total;
        }
        out.first = begin + from;
        out.count = end - from;
        out.tile = tile;
        if (pieces > 1) {
            // First planes of the first window and of the next segment's, and planes after the last window and after
            // the previous segment's.
            const u32 first = max(starts_of[1], l.width - 1) - (l.width - 1), last = min(starts_of[2] + 1, l.depth);
            const u32 next = max(starts_of[3], l.width - 1) - (l.width - 1), before = min(starts_of[0] + 1, l.depth);
            const u32 own = nth > 0 ? max(first, before) : first, own_end = nth + 1 < pieces ? min(last, next) : last;
            out.plane = first;
            out.end = last;
            out.own = own < own_end ? own : last;
            out.own_end = own < own_end ? own_end : last;
            shared = last - first - (out.own_end - out.own);
            if (nth == 0 && lane == 0) {
                const bool dense = pieces > few;
                atomicMax(cuts + 2, (u64)pieces);
                const u64 number = atomicAdd(cuts + dense, 1ull), i = dense ? tiles - 1 - number : number;
                cut[i].segment = s;
                cut[i].segments = pieces;
                cut[i].tile = tile;
            }
        }
    }
    if (lane == 0) {
        segments[s] = out;
        planes[s] = shared;
    }
}

#endif
