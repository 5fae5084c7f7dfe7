// Products of f32 matrices on tensor cores: each number is split in two of f16, a high and a low part, of 22 bits in
// total; three products of these have the accuracy of f32. The host puts this file in front of exact_grid.cu and
// spreading.cu.

// Rounds two numbers to f16.
__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned d;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
#else
    asm("{.reg .f16 a, b; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; mov.b32 %0, {a, b};}"
        : "=r"(d) : "f"(low), "f"(high));
#endif
    return d;
}

// Two numbers as two f16 each: the high parts in x, the low parts in y.
__device__ __forceinline__ uint2 split(float a, float b)
{
    uint2 parts;
    float high_a, high_b;
    parts.x = pack(a, b);
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}"
        : "=f"(high_a), "=f"(high_b) : "r"(parts.x));
    parts.y = pack(a - high_a, b - high_b);
    return parts;
}

// c += a b, tiles of 16 x 16 and 16 x 8.
__device__ __forceinline__ void product(float (&c)[4], uint4 a, unsigned b0, unsigned b1)
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.x), "r"(a.y), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a.z), "r"(a.w), "r"(b1));
#endif
}
