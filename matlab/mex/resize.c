/* Images on a different matrix. */
#include "plans.h"

/* images = resize(geometry, field of view, dims, their field of view, images, shape) */
void resize_images(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    read_image_geometry(&geometry, in[0]);
    need_count(in[1], geometry.ndim, "the field of view");
    need_count(in[2], geometry.ndim, "the new matrix");
    need_count(in[3], geometry.ndim, "the new field of view");
    const double *fov = real_data(in[1], RECON_F64, "the field of view");
    const double *numbers = real_data(in[2], RECON_F64, "the new matrix");
    const double *dims_fov = real_data(in[3], RECON_F64, "the new field of view");
    uint64_t dims[3] = {1, 1, 1};
    size_t voxels = 1;
    for (uint32_t axis = 0; axis < geometry.ndim; axis++) {
        dims[axis] = whole_number(numbers[axis], "the new matrix");
        if (dims[axis] == 0 || dims[axis] > ((size_t)1 << 48) / voxels) {
            fail("recon:InvalidSize", "the new matrix has %llu voxels along an axis", (unsigned long long)dims[axis]);
        }
        voxels *= (size_t)dims[axis];
    }
    size_t images = (size_t)geometry.coils * (size_t)geometry.frames;
    need_floats(in[4], "the images");
    need_count(in[4], (size_t)need_voxels(&geometry) * images, "the images");
    shape s = shape_of(in[5], "the result's shape");
    if (images == 0 || s.elements / images != voxels || s.elements % images != 0) {
        fail("recon:SizeMismatch", "the result's shape does not have %llu voxels", (unsigned long long)voxels);
    }
    const void *from = complex_data(in[4], geometry.precision, "the images");
    complex_output resized = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_resize(&geometry, fov, dims, dims_fov, from, resized.data));
    out[0] = finish_complex(resized);
}
