/* Images of k-space with a missing side. */
#include "plans.h"

static void read_partial_fourier_options(recon_partial_fourier_options *options, const mxArray *structure) {
    need_structure(structure, "the options of recon.partialfourier");
    check(recon_partial_fourier_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Algorithm"))) {
        options->method = option_value(value, "Algorithm", "partial_fourier");
    }
    if ((value = field(structure, "Iterations"))) {
        options->iterations = count_of(value, "Iterations");
    }
    if ((value = field(structure, "Change"))) {
        options->tolerance = real_scalar(value, "Change");
    }
}

/* [image, report, warnings] = partial_fourier(geometry, options, how, kspace, image shape) */
void fill_partial_fourier(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    recon_options options;
    recon_partial_fourier_options how;
    recon_partial_fourier_report report;
    uint32_t indices[64];
    read_geometry(&geometry, in[0]);
    read_plan_options(&options, indices, in[1]);
    read_partial_fourier_options(&how, in[2]);
    shape s = shape_of(in[4], "the image's shape");
    size_t images = (size_t)(geometry.coil_maps ? 1 : geometry.coils) * (size_t)geometry.frames;
    need_elements(&s, (size_t)need_voxels(&geometry) * images, "the image's shape");
    need_floats(in[3], "the k-space data");
    need_count(in[3], (size_t)geometry.samples * (size_t)geometry.frames * (size_t)geometry.coils, "the k-space data");
    const void *kspace = complex_data(in[3], geometry.precision, "the k-space data");
    complex_output image = new_complex(&s, mxGetClassID(in[3]), geometry.precision);
    check(recon_partial_fourier_report_init(&report, sizeof report));
    check(recon_partial_fourier(&geometry, &options, &how, kspace, image.data, &report));
    out[2] = warnings_of_call();
    out[0] = finish_complex(image);
    const char *names[] = {"axis", "extent", "iterations", "change", "residual"};
    out[1] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_number(out[1], "axis", (double)report.axis + 1);
    shape pair = {2, {1, 2}, 2};
    mxArray *extent = new_real(&pair, mxDOUBLE_CLASS);
    memcpy(mxGetData(extent), report.extent, sizeof report.extent);
    mxSetField(out[1], 0, "extent", extent);
    set_number(out[1], "iterations", (double)report.iterations);
    set_number(out[1], "change", report.change);
    set_number(out[1], "residual", report.residual);
}
