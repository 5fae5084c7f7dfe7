// The last step of Schiwietz et al. 2006 on a GPU: one image from the images of the coils.

// Sets image(i) to the root of the sum over coils of |images(coil, i)|^2.
extern "C" __global__ void root_sum_of_squares(const cplx *images, real *image, u32 voxels, u32 coils) {
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= voxels) return;
    real sum = 0;
    for (u32 coil = 0; coil < coils; coil++) {
        cplx z = images[coil * voxels + i];
        sum += z.x * z.x + z.y * z.y;
    }
    image[i] = sqrt(sum);
}
