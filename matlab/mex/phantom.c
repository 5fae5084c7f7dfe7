/* Simulated data: the phantom's image, its exact k-space data and coil maps, and noise. */
#include "plans.h"

/* Returns the ellipses of the phantom, one row each, from MATLAB's [shapes, 10]. NULL if the array is empty: the
 * Shepp-Logan phantom. */
static const double *shapes_of(const mxArray *array, uint64_t *count) {
    *count = 0;
    if (mxIsEmpty(array)) {
        return NULL;
    }
    need_real(array, "Shapes");
    if (mxGetNumberOfDimensions(array) != 2 || mxGetN(array) != 10) {
        fail("recon:SizeMismatch", "Shapes is %s: give [shapes 10]", describe(array));
    }
    size_t rows = mxGetM(array);
    double *shapes = allocate(rows * 10, sizeof *shapes);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < 10; c++) {
            shapes[10 * r + c] = element(mxGetData(array), mxIsDouble(array), c * rows + r);
        }
    }
    *count = rows;
    return shapes;
}

/* image = phantom_image(geometry, shapes, supersample, shape): real, as the phantom is. */
void phantom_image(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    uint64_t count;
    read_image_geometry(&geometry, in[0]);
    const double *shapes = shapes_of(in[1], &count);
    uint64_t supersample = count_of(in[2], "Supersample");
    shape s = shape_of(in[3], "the image's shape");
    need_elements(&s, (size_t)need_voxels(&geometry), "the image's shape");
    void *image = allocate(s.elements, 2 * bytes_of(geometry.precision));
    check(recon_phantom_image(&geometry, shapes, count, supersample, image));
    bool is_double = geometry.precision == RECON_F64;
    out[0] = new_real(&s, class_of(geometry.precision));
    for (size_t i = 0; i < s.elements; i++) {
        set_element(mxGetData(out[0]), is_double, i, element(image, is_double, 2 * i));
    }
}

/* kspace = phantom_kspace(geometry, shapes, coil model, threads, shape) */
void phantom_kspace(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    uint64_t count;
    read_image_geometry(&geometry, in[0]);
    set_trajectory(&geometry, need_field(in[0], "k"));
    set_off_resonance(&geometry, in[0]);
    const double *shapes = shapes_of(in[1], &count);
    uint32_t model = option_value(in[2], "the coils' model", "coil_model");
    uint64_t threads = count_of(in[3], "Threads");
    shape s = shape_of(in[4], "the data's shape");
    if (geometry.coils > s.elements) {
        fail("recon:SizeMismatch", "the shape of the data is not a multiple of %llu coils",
             (unsigned long long)geometry.coils);
    }
    need_elements(&s, (size_t)(geometry.samples * geometry.coils), "the data's shape");
    complex_output kspace = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_phantom_kspace(&geometry, shapes, count, model, threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads,
                               kspace.data));
    out[0] = finish_complex(kspace);
}

/* maps = phantom_coil_maps(geometry, shape) */
void phantom_coil_maps(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    read_image_geometry(&geometry, in[0]);
    shape s = shape_of(in[1], "the maps' shape");
    if (geometry.coils > s.elements) {
        fail("recon:SizeMismatch", "the shape of the maps is not a multiple of %llu coils",
             (unsigned long long)geometry.coils);
    }
    need_elements(&s, (size_t)(need_voxels(&geometry) * geometry.coils), "the maps' shape");
    complex_output maps = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_phantom_coil_maps(&geometry, maps.data));
    out[0] = finish_complex(maps);
}

/* [noisy, deviation] = add_noise(kspace, snr, seed, shape) */
void add_noise(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    need_floats(in[0], "the k-space data");
    double snr = real_scalar(in[1], "the SNR"), deviation;
    uint64_t seed = count_of(in[2], "Seed");
    shape s = shape_of(in[3], "the data's shape");
    need_elements(&s, mxGetNumberOfElements(in[0]), "the data's shape");
    check(recon_geometry_init(&geometry, sizeof geometry));
    geometry.precision = mxIsDouble(in[0]) ? RECON_F64 : RECON_F32;
    geometry.samples = s.elements;
    complex_output noisy = new_complex(&s, mxGetClassID(in[0]), geometry.precision);
    memcpy(noisy.data, complex_data(in[0], geometry.precision, "the k-space data"),
           s.elements * 2 * bytes_of(geometry.precision));
    check(recon_add_noise(&geometry, snr, seed, noisy.data, &deviation));
    out[0] = finish_complex(noisy);
    out[1] = mxCreateDoubleScalar(deviation);
}
