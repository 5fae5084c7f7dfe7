// The host puts this file in front of every kernel file.
// Macros from the host: REAL (float or double), DOUBLE (0 or 1).

typedef REAL real;
typedef unsigned int u32;
typedef unsigned long long u64;

struct __align__(2 * sizeof(real)) cplx {
    real x, y;
};
