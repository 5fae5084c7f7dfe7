/* Coils: sensitivity maps from the data, and the combination of coil images. */
#include "plans.h"

/* maps = coil_maps(handle, kspace, calibration, shape) */
void estimate_coil_maps(mxArray **out, const mxArray **in) {
    plan_entry *e = need_plan(in[0]);
    shape s = shape_of(in[3], "the maps' shape");
    need_elements(&s, (size_t)(e->voxels * e->coils), "the maps' shape");
    need_floats(in[1], "the k-space data");
    need_count(in[1], (size_t)e->properties.kspace_elements, "the k-space data");
    uint64_t calibration = count_of(in[2], "Calibration");
    const void *kspace = complex_data(in[1], e->properties.precision, "the k-space data");
    complex_output maps = new_complex(&s, mxGetClassID(in[1]), e->properties.precision);
    check(recon_coil_maps(e->plan, kspace, calibration, maps.data));
    out[0] = finish_complex(maps);
}

/* image = combine(geometry, images, method, shape) */
void combine_coils(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    read_image_geometry(&geometry, in[0]);
    uint32_t method = option_value(in[2], "the method", "combine");
    shape s = shape_of(in[3], "the image's shape");
    need_elements(&s, (size_t)need_voxels(&geometry) * (size_t)geometry.frames, "the image's shape");
    need_floats(in[1], "the coil images");
    need_count(in[1], s.elements * (size_t)geometry.coils, "the coil images");
    const void *images = complex_data(in[1], geometry.precision, "the coil images");
    complex_output image = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_combine(&geometry, method, images, image.data));
    out[0] = finish_complex(image);
}
