// Transforms of the lines of an array along one axis, and kernels for convolution by FFT.
//
// A line of N points is transformed in PASSES passes of butterflies in registers, in Stockham's order, which needs no
// reversal. Between passes, points are exchanged through shared memory. A side of a transform may be pruned: then only
// the n points of the image are loaded or stored. Image index i is point (i - origin) mod N, and each point may be
// multiplied by a factor. All transforms are forward, exp(-i). For the inverse, real and imaginary parts are exchanged
// when points are loaded and stored.
//
// With RADICES, lines in shared memory:
//   RADICES   radices of the passes, as 16,10: their product is N
//   LINES     lines per block
//   THREADS   threads per block; with ROWS=0 a multiple of LINES
//   BLOCKS    blocks that a multiprocessor must hold (limits registers)
//   ROWS      1 if the points of a line are neighbours in memory, 0 if neighbouring lines are
//   IMAGE     number of points of the image on a line
//   ORIGIN    index of the image's point 0
//   PROGRAM   the kernels of this program (enum `Step` of the host): 1 fft_up and fft_down, 2 fft_whole, 3 fft_kernel,
//             4 fft_convolve, 5 fft_up_maps, 6 fft_down_maps. Each is a program of its own, because the compiler takes
//             up to 0.4 s for one, and programs are compiled in parallel.
//
// They need LINES * PITCH complex numbers of shared memory (see `Exchange`), or none with one pass.
//
// With RADIX instead: one pass at a time through global memory, for lines that do not fit.
// With neither: the kernel that places Q on the doubled grid.
//
// REAL and DOUBLE are the precision. Any RADICES, LINES and THREADS give correct results; the host selects fast ones.

// ---- Roots of unity, known to the compiler ----

// Taylor's series on [0, pi / 4].
__device__ constexpr double small_cosine(double a) {
    double term = 1, sum = 0;
    for (int k = 1; k < 24; k += 2) {
        sum += term;
        term *= -a * a / (k * (k + 1));
    }
    return sum;
}

__device__ constexpr double small_sine(double a) {
    double term = a, sum = 0;
    for (int k = 2; k < 24; k += 2) {
        sum += term;
        term *= -a * a / (k * (k + 1));
    }
    return sum;
}

// cos(2 pi k / r).
__device__ constexpr double cosine(int k, int r) {
    const double eighth = 0.78539816339744830961566084581988;
    int quadrant = 4 * (k % r) / r, rest = 4 * (k % r) % r;
    bool odd = quadrant & 1;
    // cos or sin of rest / r quarter turns.
    bool high = 2 * rest > r;
    double angle = 2 * eighth * (high ? r - rest : rest) / r;
    double value = odd == high ? small_cosine(angle) : small_sine(angle);
    return quadrant == 1 || quadrant == 2 ? -value : value;
}

// sin(2 pi k / r) = cos(2 pi (k / r - 1/4)).
__device__ constexpr double sine(int k, int r) {
    return cosine(4 * k + 3 * r, 4 * r);
}

// cos and sin of 2 pi k / R. In unrolled loops indices are constants, so no table remains.
template <int R>
struct Roots {
    real c[R], s[R];
    __device__ constexpr Roots() : c(), s() {
        for (int k = 0; k < R; k++) {
            c[k] = (real)cosine(k, R);
            s[k] = (real)sine(k, R);
        }
    }
};

__device__ __forceinline__ cplx make(real x, real y) {
    cplx z;
    z.x = x;
    z.y = y;
    return z;
}

__device__ __forceinline__ cplx times(cplx a, cplx b) {
    return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

// -i z.
__device__ __forceinline__ cplx quarter_turned(cplx z) {
    return make(z.y, -z.x);
}

// z exp(-i 2 pi k / R).
template <int R>
__device__ __forceinline__ cplx turned(cplx z, int k, const Roots<R> &roots) {
    const real h = (real)0.70710678118654752440084436210485;
    if (k == 0) return z;
    if (4 * k == R) return quarter_turned(z);
    if (2 * k == R) return make(-z.x, -z.y);
    if (4 * k == 3 * R) return make(-z.y, z.x);
    if (8 * k == R) return make(h * (z.x + z.y), h * (z.y - z.x));
    if (8 * k == 3 * R) return make(h * (z.y - z.x), -h * (z.x + z.y));
    return make(z.x * roots.c[k] + z.y * roots.s[k], z.y * roots.c[k] - z.x * roots.s[k]);
}

// ---- The transform of R numbers in registers ----

// Returns a factor of R: 4 if it is a proper factor, otherwise the smallest prime.
__device__ constexpr int factor_of(int r) {
    if (r % 4 == 0 && r > 4) return 4;
    for (int p = 2; p * p <= r; p++)
        if (r % p == 0) return p;
    return r;
}

// Which of R numbers are zero. Where the compiler knows it, there is no arithmetic on them.
template <int R>
struct Zeros {
    bool is[R];
};

// a + b.
__device__ __forceinline__ cplx sum(cplx a, bool a_is_zero, cplx b, bool b_is_zero) {
    return a_is_zero ? b : b_is_zero ? a : make(a.x + b.x, a.y + b.y);
}

// a - b.
__device__ __forceinline__ cplx difference(cplx a, cplx b, bool b_is_zero) {
    return b_is_zero ? a : make(a.x - b.x, a.y - b.y);
}

template <int R>
__device__ __forceinline__ void transform(cplx (&v)[R], const Zeros<R> &zeros);

// A prime R: inputs j and R - j together, outputs k and R - k together.
template <int R>
__device__ __forceinline__ void transform_prime(cplx (&v)[R], const Zeros<R> &zeros) {
    constexpr int H = (R - 1) / 2;
    constexpr Roots<R> roots;
    cplx sums[H], differences[H], zero = v[0];
#pragma unroll
    for (int j = 1; j <= H; j++) {
        sums[j - 1] = sum(v[j], zeros.is[j], v[R - j], zeros.is[R - j]);
        differences[j - 1] = difference(v[j], v[R - j], zeros.is[R - j]);
        v[0] = make(v[0].x + sums[j - 1].x, v[0].y + sums[j - 1].y);
    }
#pragma unroll
    for (int k = 1; k <= H; k++) {
        cplx a = zero, b = make(0, 0);
#pragma unroll
        for (int j = 1; j <= H; j++) {
            a.x += roots.c[j * k % R] * sums[j - 1].x;
            a.y += roots.c[j * k % R] * sums[j - 1].y;
            b.x += roots.s[j * k % R] * differences[j - 1].x;
            b.y += roots.s[j * k % R] * differences[j - 1].y;
        }
        v[k] = make(a.x + b.y, a.y - b.x);
        v[R - k] = make(a.x - b.y, a.y + b.x);
    }
}

// A product R = A B: input B a + b, output a + A b.
template <int R>
__device__ __forceinline__ void transform_product(cplx (&v)[R], const Zeros<R> &zeros) {
    constexpr int A = factor_of(R), B = R / A;
    constexpr Roots<R> roots;
    cplx t[A][B];
    Zeros<B> rest;
#pragma unroll
    for (int b = 0; b < B; b++) {
        cplx u[A];
        Zeros<A> some;
        rest.is[b] = true;
#pragma unroll
        for (int a = 0; a < A; a++) {
            u[a] = v[B * a + b];
            some.is[a] = zeros.is[B * a + b];
            rest.is[b] &= some.is[a];
        }
        transform<A>(u, some);
#pragma unroll
        for (int a = 0; a < A; a++) t[a][b] = turned<R>(u[a], a * b, roots);
    }
#pragma unroll
    for (int a = 0; a < A; a++) {
        transform<B>(t[a], rest);
#pragma unroll
        for (int b = 0; b < B; b++) v[a + A * b] = t[a][b];
    }
}

template <int R>
__device__ __forceinline__ void transform(cplx (&v)[R], const Zeros<R> &zeros) {
    const bool(&z)[R] = zeros.is;
    if constexpr (R == 1) {
    } else if constexpr (R == 2) {
        cplx a = v[0], b = v[1];
        v[0] = sum(a, z[0], b, z[1]);
        v[1] = difference(a, b, z[1]);
    } else if constexpr (R == 4) {
        cplx a = sum(v[0], z[0], v[2], z[2]), b = difference(v[0], v[2], z[2]);
        cplx c = sum(v[1], z[1], v[3], z[3]), d = quarter_turned(difference(v[1], v[3], z[3]));
        bool even = z[0] && z[2], odd = z[1] && z[3];
        v[0] = sum(a, even, c, odd);
        v[1] = sum(b, even, d, odd);
        v[2] = difference(a, c, odd);
        v[3] = difference(b, d, odd);
    } else if constexpr (factor_of(R) == R) {
        transform_prime<R>(v, zeros);
    } else {
        transform_product<R>(v, zeros);
    }
}

// ---- Lines in memory ----

// Line q is line (q mod n0, q / n0 mod n1, q / (n0 n1)) of three axes.
struct Lines {
    unsigned count, n0, n1;
};

// One side of a transform: the distances, in elements, between lines on each of those axes and between points of a
// line; the number of points, and which of them is point 0.
struct Side {
    long long across[3];
    unsigned along;
    int n, origin;
};

__device__ __forceinline__ long long start(const Lines &lines, const Side &side, unsigned q) {
    unsigned rest = q / lines.n0, last = rest / lines.n1;
    return (q - rest * lines.n0) * side.across[0] + (rest - last * lines.n1) * side.across[1] + last * side.across[2];
}

// The image index of point e; outside [0, n) the point is not in the image.
__device__ __forceinline__ int image_index(const Side &side, int e, int points) {
    return e < side.n - side.origin ? e + side.origin : e + side.origin - points;
}

__device__ __forceinline__ cplx exchanged(cplx z, bool inverse) {
    return inverse ? make(z.y, z.x) : z;
}

#if defined(RADICES)

constexpr int RADIX[] = {RADICES};
constexpr int PASSES = sizeof(RADIX) / sizeof(int);

// The radix of pass P. On the way BACK the passes are reversed: the first one starts from the points of the last one.
template <bool BACK, int P>
__device__ constexpr int radix() {
    return RADIX[BACK ? PASSES - 1 - P : P];
}

// The product of the radices of the passes before P.
__device__ constexpr int product_before(bool back, int p) {
    int product = 1;
    for (int i = 0; i < p; i++) product *= RADIX[back ? PASSES - 1 - i : i];
    return product;
}

constexpr int N = product_before(false, PASSES);

// Butterflies of a thread in a pass of radix R.
template <int R>
constexpr int EACH = (N / R * LINES + THREADS - 1) / THREADS;

// A butterfly of radix R: points j + m N / R of a line.
struct Butterfly {
    int line, j;
    bool exists;
};

template <int R>
__device__ __forceinline__ Butterfly butterfly(int b) {
    constexpr int M = N / R;
    int i = threadIdx.x + b * THREADS;
    bool exists = M * LINES % THREADS == 0 || i < M * LINES;
    if constexpr (ROWS) return {i / M, i % M, exists};
    else return {i % LINES, i / LINES, exists};
}

// Where points are in shared memory. After the first pass, neighbouring threads write points at a distance of its
// radix. Where these would be in the same banks, there is one unused place after each FIRST points.
template <bool BACK>
struct Exchange {
    static constexpr int FIRST = radix<BACK, 0>();
    static constexpr bool PADDED = FIRST % 2 == 0 && (ROWS || LINES * sizeof(cplx) < 128);
    // The place of a point. place(a + b) = place(a) + place(b) where a is a multiple of FIRST.
    __device__ static constexpr int place(int e) {
        return PADDED ? e + e / FIRST : e;
    }
    static constexpr int PITCH = place(N);
    __device__ static int address(int line, int place) {
        return ROWS ? line * PITCH + place : place * LINES + line;
    }
    static constexpr int STEP = ROWS ? 1 : LINES;
};

extern __shared__ __align__(16) unsigned char memory[];

// Points m M + j of a line, for butterflies j < M of radix R. With PRUNED, only the image's points exist: 0 to LOW - 1
// and HIGH to N - 1. For most m, that is known to the compiler.
template <bool PRUNED, int R>
struct Points {
    static constexpr int LOW = IMAGE - ORIGIN, HIGH = N - ORIGIN, M = N / R;
    // Whether none of the points with this m exist.
    __device__ static constexpr bool never(int m) {
        return PRUNED && m * M >= LOW && m * M + M <= HIGH;
    }
    __device__ static constexpr bool exist(int m, int j) {
        if (!PRUNED || m * M + M <= LOW || m * M >= HIGH) return true;
        return !never(m) && (m * M + j < LOW || m * M + j >= HIGH);
    }
    // The index of the point in the line, less j.
    __device__ static constexpr int offset(int m, int j) {
        if (!PRUNED) return m * M;
        bool low = m * M + M <= LOW || m * M < HIGH && m * M + j < LOW;
        return m * M + (low ? ORIGIN : ORIGIN - N);
    }
};

// The point `offset` points after `from`. The product of two numbers of 32 bits is one instruction.
template <class T>
__device__ __forceinline__ T *point_at(T *from, const Side &side, int offset) {
    if constexpr (ROWS) return from + offset;
    return (T *)((char *)from + (long long)(int)side.along * (offset * (int)sizeof(T)));
}

// Point j of line q.
template <class T>
__device__ __forceinline__ T *first_point(T *array, const Lines &lines, const Side &side, unsigned q, int j) {
    return array + start(lines, side, q) + (ROWS ? j : (long long)side.along * j);
}

// Passes P and later of the transforms of a block's lines, whose points are in v in the order of pass P. `end` is
// called with the registers of the last pass, where v[b][k] is point j + k N / R of butterfly b.
template <bool BACK, int P, bool DIRTY, bool PADDED, int R, class End>
__device__ __forceinline__ void passes(cplx (&v)[EACH<R>][R], const cplx *__restrict__ twiddle, const End &end) {
    constexpr int S = product_before(BACK, P);
    Zeros<R> zeros;
#pragma unroll
    for (int m = 0; m < R; m++) zeros.is[m] = PADDED && Points<true, R>::never(m);
#pragma unroll
    for (int b = 0; b < EACH<R>; b++) transform<R>(v[b], zeros);
    if constexpr (P + 1 == PASSES) {
        end(v);
    } else {
        using X = Exchange<BACK>;
        cplx *points = reinterpret_cast<cplx *>(memory);
        // Wait until all threads have read the points of the previous pass.
        if constexpr (DIRTY) __syncthreads();
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
            if (f.exists) {
                // Point j / S * S R + j mod S + k S; the first two terms are one address.
                int at = S == 1 ? f.j * (X::PADDED ? R + 1 : R) : X::place(f.j / S * S * R) + X::place(f.j % S);
                cplx *to = points + X::address(f.line, at);
#pragma unroll
                for (int k = 0; k < R; k++) to[(S == 1 ? k : X::place(k * S)) * X::STEP] = v[b][k];
            }
        }
        __syncthreads();
        constexpr int NEXT = radix<BACK, P + 1>(), M = N / NEXT, T = S * R;
        cplx u[EACH<NEXT>][NEXT];
#pragma unroll
        for (int b = 0; b < EACH<NEXT>; b++) {
            Butterfly f = butterfly<NEXT>(b);
            if (f.exists) {
                const cplx *from = points + X::address(f.line, X::place(f.j));
                // exp(-i 2 pi k (j mod T) / (T NEXT)) for k from 1.
                const cplx *root = twiddle + (T - X::FIRST) + f.j % T;
                u[b][0] = from[0];
#pragma unroll
                for (int k = 1; k < NEXT; k++) u[b][k] = times(from[X::place(k * M) * X::STEP], root[(k - 1) * T]);
            }
        }
        passes<BACK, P + 1, true, false>(u, twiddle, end);
    }
}

// Loads the points of the first pass.
template <bool PRUNED, int R>
__device__ __forceinline__ void load(cplx (&v)[EACH<R>][R], const cplx *in, const Lines &lines, const Side &side,
                                     const real *__restrict__ factor, bool inverse, const input_check &check) {
    typedef Points<PRUNED, R> Taken;
#pragma unroll
    for (int b = 0; b < EACH<R>; b++) {
        Butterfly f = butterfly<R>(b);
        unsigned q = blockIdx.x * LINES + f.line;
        bool exists = f.exists && q < lines.count;
        const cplx *from = first_point(in, lines, side, q, f.j);
#pragma unroll
        for (int m = 0; m < R; m++) {
            cplx z = make(0, 0);
            if (Taken::exist(m, f.j) && exists) z = *point_at(from, side, Taken::offset(m, f.j));
            v[b][m] = exchanged(z, inverse);
        }
    }
    if (check.state) {
#pragma unroll
        for (int b = 0; b < EACH<R>; b++)
#pragma unroll
            for (int m = 0; m < R; m++) check_number(check, v[b][m]);
        __syncthreads();
        if (threadIdx.x == 0) end_check(check, gridDim.x);
    }
    // After all loads, so that these are in flight together.
    if (PRUNED && factor) {
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
#pragma unroll
            for (int m = 0; m < R; m++) {
                if (!f.exists || !Taken::exist(m, f.j)) continue;
                real c = factor[f.j + Taken::offset(m, f.j)];
                v[b][m] = make(c * v[b][m].x, c * v[b][m].y);
            }
        }
    }
}

// Stores the points of the last pass. (A lambda here would need NVRTC 13.1.)
template <bool PRUNED>
struct Store {
    cplx *out;
    const Lines &lines;
    const Side &side;
    const real *factor;
    bool inverse;
    const input_check &check;

    template <int R>
    __device__ __forceinline__ void operator()(cplx (&v)[EACH<R>][R]) const {
        typedef Points<PRUNED, R> Taken;
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
            unsigned q = blockIdx.x * LINES + f.line;
            if (f.exists && q < lines.count && !has_failed(check)) {
                cplx *to = first_point(out, lines, side, q, f.j);
#pragma unroll
                for (int k = 0; k < R; k++) {
                    if (!Taken::exist(k, f.j)) continue;
                    cplx z = exchanged(v[b][k], inverse);
                    if (PRUNED && factor) {
                        real c = __ldg(factor + f.j + Taken::offset(k, f.j));
                        z = make(c * z.x, c * z.y);
                    }
                    *point_at(to, side, Taken::offset(k, f.j)) = z;
                }
            }
        }
    }
};

#if PROGRAM == 1
// From lines of the image, each point times its factor, to whole lines, with exp(-i). May work in place. The check is
// of `in`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_up(const cplx *in, cplx *out, Lines lines, Side from, Side to, const real *__restrict__ factor,
           const cplx *__restrict__ twiddle, input_check check) {
    begin_kernel();
    constexpr int R = radix<false, 0>();
    cplx v[EACH<R>][R];
    load<true>(v, in, lines, from, factor, false, check);
    passes<false, 0, false, true>(v, twiddle, Store<false>{out, lines, to, nullptr, false, {}});
}

// From whole lines to lines of the image, each point times its factor, with exp(+i). May work in place. Writes nothing
// if the check has failed.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_down(const cplx *in, cplx *out, Lines lines, Side from, Side to, const real *__restrict__ factor,
             const cplx *__restrict__ twiddle, input_check check) {
    begin_kernel();
    constexpr int R = radix<false, 0>();
    cplx v[EACH<R>][R];
    load<false>(v, in, lines, from, nullptr, true, {});
    passes<false, 0, false, false>(v, twiddle, Store<true>{out, lines, to, factor, true, check});
}
#endif

#if PROGRAM == 2
// Whole columns in place, with exp(-i).
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_whole(cplx *data, Lines lines, Side side, const cplx *__restrict__ twiddle) {
    begin_kernel();
    constexpr int R = radix<false, 0>();
    cplx v[EACH<R>][R];
    load<false>(v, data, lines, side, nullptr, false, {});
    passes<false, 0, false, false>(v, twiddle, Store<false>{data, lines, side, nullptr, false, {}});
}
#endif

#if PROGRAM == 5 || PROGRAM == 6
// Maps of one coil after the other, `step` elements apart, each in the arrangement of the image.
struct Maps {
    const cplx *of;
    long long step;
};
#endif

#if PROGRAM == 5
// From lines of one image times the maps of the coils, line axis 1, to whole lines, with exp(-i).
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_up_maps(const cplx *__restrict__ in, Maps maps, cplx *out, Lines lines, Side from, Side to,
                const cplx *__restrict__ twiddle) {
    begin_kernel();
    constexpr int R = radix<false, 0>();
    cplx v[EACH<R>][R];
    load<true>(v, in, lines, from, nullptr, false, {});
#pragma unroll
    for (int b = 0; b < EACH<R>; b++) {
        Butterfly f = butterfly<R>(b);
        unsigned q = blockIdx.x * LINES + f.line;
        const cplx *map = first_point(maps.of, lines, from, q, f.j) + q / lines.n0 * maps.step;
#pragma unroll
        for (int m = 0; m < R; m++) {
            if (Points<true, R>::exist(m, f.j) && f.exists && q < lines.count)
                v[b][m] = times(*point_at(map, from, Points<true, R>::offset(m, f.j)), v[b][m]);
        }
    }
    passes<false, 0, false, true>(v, twiddle, Store<false>{out, lines, to, nullptr, false, {}});
}
#endif

#if PROGRAM == 6
// Adds the last pass' points, times the conjugate of a coil's map, to lines of the image.
struct AddMapped {
    cplx *out;
    const cplx *__restrict__ map;
    const Lines &lines;
    const Side &side;

    template <int R>
    __device__ __forceinline__ void operator()(cplx (&v)[EACH<R>][R]) const {
        typedef Points<true, R> Taken;
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
            unsigned q = blockIdx.x * LINES + f.line;
            if (!f.exists || q >= lines.count) continue;
            const cplx *from = first_point(map, lines, side, q, f.j);
            cplx *to = first_point(out, lines, side, q, f.j);
            // All loads before the first store, so that they are in flight together.
            cplx s[R], y[R];
#pragma unroll
            for (int k = 0; k < R; k++) {
                if (!Taken::exist(k, f.j)) continue;
                s[k] = *point_at(from, side, Taken::offset(k, f.j));
                y[k] = *point_at(to, side, Taken::offset(k, f.j));
            }
#pragma unroll
            for (int k = 0; k < R; k++) {
                if (!Taken::exist(k, f.j)) continue;
                cplx z = exchanged(v[b][k], true);
                y[k].x += s[k].x * z.x + s[k].y * z.y;
                y[k].y += s[k].x * z.y - s[k].y * z.x;
                *point_at(to, side, Taken::offset(k, f.j)) = y[k];
            }
        }
    }
};

// From whole lines of `coils` images, `step` elements apart, with exp(+i), times the conjugate maps, added to lines of
// one image in the order of the coils.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_down_maps(const cplx *in, Maps maps, cplx *out, Lines lines, Side from, Side to, int coils, long long step,
                  const cplx *__restrict__ twiddle) {
    begin_kernel();
    constexpr int R = radix<false, 0>();
    for (int c = 0; c < coils; c++) {
        cplx v[EACH<R>][R];
        load<false>(v, in + c * step, lines, from, nullptr, true, {});
        passes<false, 0, true, false>(v, twiddle, AddMapped{out, maps.of + c * maps.step, lines, to});
    }
}
#endif

#if PROGRAM == 3
// Stores the real parts of the last pass' points, times `scale`.
struct StoreReals {
    real *out;
    const Lines &lines;
    const Side &side;
    real scale;

    template <int R>
    __device__ __forceinline__ void operator()(cplx (&v)[EACH<R>][R]) const {
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
            unsigned q = blockIdx.x * LINES + f.line;
            if (f.exists && q < lines.count) {
                real *to = first_point(out, lines, side, q, f.j);
#pragma unroll
                for (int k = 0; k < R; k++) *point_at(to, side, k * (N / R)) = scale * v[b][k].x;
            }
        }
    }
};

// From lines of one half of a Hermitian kernel to the real parts of its whole transformed lines, times `scale`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_kernel(const cplx *in, real *out, Lines lines, Side from, Side to, real scale,
               const cplx *__restrict__ twiddle) {
    begin_kernel();
    constexpr int R = radix<false, 0>();
    cplx v[EACH<R>][R];
    load<true>(v, in, lines, from, nullptr, false, {});
    passes<false, 0, false, true>(v, twiddle, StoreReals{out, lines, to, scale});
}
#endif

#if PROGRAM == 4
// A real spectrum, in natural order of its points.
struct Spectrum {
    const real *factors;
    const Lines &lines;
    const Side &side;

    // Fetches to the cache, while the passes run, the factors of the points that this thread and its neighbours have
    // after the last pass. The lines that share 32 bytes take turns.
    template <int R>
    __device__ __forceinline__ void prefetch() const {
        constexpr int TURNS = 32 / sizeof(real) < LINES ? 32 / sizeof(real) : LINES;
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
            unsigned q = blockIdx.x * LINES + f.line;
            if (f.exists && q < lines.count) {
                const real *line = first_point(factors, lines, side, q, f.j);
#pragma unroll
                for (int k = 0; k < R; k += TURNS) {
                    int mine = k + f.line % TURNS;
                    if (mine < R) {
                        const real *at = point_at(line, side, mine * (N / R));
                        asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
                    }
                }
            }
        }
    }

    // Multiplies by the factors, and exchanges real and imaginary parts for the inverse.
    template <int R>
    __device__ __forceinline__ void multiply(cplx (&v)[EACH<R>][R]) const {
#pragma unroll
        for (int b = 0; b < EACH<R>; b++) {
            Butterfly f = butterfly<R>(b);
            unsigned q = blockIdx.x * LINES + f.line;
            if (f.exists && q < lines.count) {
                const real *line = first_point(factors, lines, side, q, f.j);
#pragma unroll
                for (int k = 0; k < R; k++) {
                    real s = *point_at(line, side, k * (N / R));
                    v[b][k] = make(s * v[b][k].y, s * v[b][k].x);
                }
            }
        }
    }
};

// The inverse transform. The last pass leaves the points in the order of the first pass with the radices reversed.
struct Back {
    cplx *out;
    const Lines &lines;
    const Side &image;
    const Spectrum &spectrum;
    const cplx *twiddle;

    template <int R>
    __device__ __forceinline__ void operator()(cplx (&v)[EACH<R>][R]) const {
        spectrum.multiply<R>(v);
        passes<true, 0, (PASSES > 1), false>(v, twiddle, Store<true>{out, lines, image, nullptr, true, {}});
    }
};

// Convolves lines of the image: padded with zeros, transformed, multiplied by a real spectrum, transformed back. May
// work in place. `twiddle` is followed by the table for the reversed radices.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    fft_convolve(const cplx *in, cplx *out, Lines lines, Side image, const real *factors, Side whole,
                 const cplx *__restrict__ twiddle) {
    begin_kernel();
    constexpr int R = radix<false, 0>(), LAST = radix<false, PASSES - 1>();
    cplx v[EACH<R>][R];
    load<true>(v, in, lines, image, nullptr, false, {});
    Spectrum spectrum{factors, lines, whole};
    spectrum.prefetch<LAST>();
    passes<false, 0, false, true>(v, twiddle, Back{out, lines, image, spectrum, twiddle + (N - R)});
}
#endif

#elif defined(RADIX)

// One pass of lines of `points` points; `done` is the product of the earlier radices. Transforms lines `first` and
// later. With IN_SCRATCH or OUT_SCRATCH these are next to one another. The last pass multiplies by the image's factors,
// by the spectrum or by `scale`. If `reals` is not null, it receives the real parts, and `out` is not written. Nothing
// is written if the check has failed.
#define IN_SCRATCH 1
#define OUT_SCRATCH 2
#define INVERSE 4
extern "C" __global__ void __launch_bounds__(256)
    fft_pass(const cplx *in, cplx *out, Lines lines, unsigned first, Side from, Side to, Side whole,
             const real *__restrict__ from_factor, const real *__restrict__ to_factor,
             const real *spectrum, real *reals, real scale, int points, int done, int flags,
             const cplx *__restrict__ roots, input_check check) {
    begin_kernel();
    if (has_failed(check)) return;
    bool inverse = flags & INVERSE;
    int butterflies = points / RADIX;
    unsigned index = blockIdx.x * blockDim.x + threadIdx.x, q = first + index;
    if (q >= lines.count || index >= from.along && (flags & IN_SCRATCH) || index >= to.along && (flags & OUT_SCRATCH))
        return;
    long long line = flags & IN_SCRATCH ? index : start(lines, from, q);
    long long other = flags & OUT_SCRATCH ? index : start(lines, to, q);
    for (int j = blockIdx.y * blockDim.y + threadIdx.y; j < butterflies; j += gridDim.y * blockDim.y) {
        cplx v[RADIX];
        // exp(-i 2 pi m (j mod done) / (done RADIX)) from the table of all roots of order `points`.
        int turn = j % done * (butterflies / done);
#pragma unroll
        for (int m = 0; m < RADIX; m++) {
            int i = image_index(from, j + m * butterflies, points);
            v[m] = make(0, 0);
            if ((unsigned)i < (unsigned)from.n) {
                real c = from_factor ? from_factor[i] : (real)1;
                cplx z = exchanged(in[line + (long long)i * from.along], inverse);
                v[m] = times(make(c * z.x, c * z.y), roots[m * turn]);
            }
        }
        transform<RADIX>(v, {});
#pragma unroll
        for (int k = 0; k < RADIX; k++) {
            int i = image_index(to, j / done * done * RADIX + j % done + k * done, points);
            if ((unsigned)i < (unsigned)to.n) {
                real c = to_factor ? to_factor[i] : scale;
                if (spectrum) c = spectrum[start(lines, whole, q) + (long long)i * whole.along];
                cplx z = exchanged(make(c * v[k].x, c * v[k].y), inverse);
                long long at = other + (long long)i * to.along;
                if (reals) reals[at] = z.x;
                else out[at] = z;
            }
        }
    }
}

#else

// Puts one part of Q, [nz][ny][nx], in its place on the doubled grid [gz][gy][nx]: displacements 0 to n - 1 on an axis,
// or -n to -1 if the axis' bit of `half` is set. Q at -x is the conjugate of Q at x, and so are their transforms:
// their sum is twice the real part. Displacement -n has no partner +n, and images of n voxels never need it.
extern "C" __global__ void __launch_bounds__(256)
    place_kernel(const cplx *q, cplx *grid, int nx, int ny, int nz, int gy, int gz, int half) {
    begin_kernel();
    bool low = half & 2, deep = half & 4;
    long long voxels = (long long)nx * ny * nz;
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < voxels; i += gridDim.x * 256ll) {
        int x = (int)(i % nx), y = (int)(i / nx % ny), z = (int)(i / nx / ny);
        if ((low && y == 0) || (deep && z == 0)) continue;
        long long to_y = low ? gy - ny + y : y, to_z = deep ? gz - nz + z : z;
        real c = x == 0 ? 1 : 2;
        grid[(to_z * gy + to_y) * nx + x] = make(c * q[i].x, c * q[i].y);
    }
}

#endif
