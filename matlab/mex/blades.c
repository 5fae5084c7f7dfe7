/* PROPELLER: the motion of blades, and the corrected image. */
#include "plans.h"

/* Number of values per blade in the library's report. */
enum { NUMBERS = 6 };

static void read_propeller_options(recon_propeller_options *options, const mxArray *structure) {
    need_structure(structure, "the options of recon.propeller");
    check(recon_propeller_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Lines"))) {
        options->lines = count_of(value, "Lines");
    }
    if ((value = field(structure, "Phase"))) {
        options->phase = option_value(value, "Phase", "phase");
    }
    if ((value = field(structure, "Rotation"))) {
        options->rotation = flag_of(value, "Rotation");
    }
    if ((value = field(structure, "Translation"))) {
        options->translation = flag_of(value, "Translation");
    }
    if ((value = field(structure, "Weighting"))) {
        options->weighting = flag_of(value, "Weighting");
    }
}

/* [image, found, warnings] = propeller(geometry, options, how, kspace, image shape)
 *
 * found is a structure with these fields:
 *   blades, lines, readout   sizes
 *   motion                   [6, blades frames], the values of recon_propeller_report
 *   k                        [samples frames, 2]
 *   w                        [samples frames, 1]
 *   d                        the corrected data */
void correct_blades(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    recon_options options;
    recon_propeller_options how;
    recon_propeller_report report;
    uint32_t indices[64];
    read_geometry(&geometry, in[0]);
    read_plan_options(&options, indices, in[1]);
    read_propeller_options(&how, in[2]);
    shape s = shape_of(in[4], "the image's shape");
    size_t of_coil = (size_t)geometry.samples * (size_t)geometry.frames;
    size_t images = (size_t)(geometry.coil_maps ? 1 : geometry.coils) * (size_t)geometry.frames;
    need_elements(&s, (size_t)need_voxels(&geometry) * images, "the image's shape");
    need_floats(in[3], "the k-space data");
    need_count(in[3], of_coil * (size_t)geometry.coils, "the k-space data");
    shape pairs = {2, {(mwSize)of_coil, 2}, 2 * of_coil}, column = {2, {(mwSize)of_coil, 1}, of_coil};
    shape data = {2, {(mwSize)mxGetNumberOfElements(in[3]), 1}, mxGetNumberOfElements(in[3])};
    const void *kspace = complex_data(in[3], geometry.precision, "the k-space data");
    complex_output image = new_complex(&s, mxGetClassID(in[3]), geometry.precision);
    complex_output corrected = new_complex(&data, mxGetClassID(in[3]), geometry.precision);
    mxArray *k = new_real(&pairs, class_of(geometry.precision)), *w = new_real(&column, class_of(geometry.precision));
    /* A blade has at least two lines of two samples. */
    size_t room = NUMBERS * (of_coil / 4);
    double *motion = allocate(room, sizeof *motion);
    check(recon_propeller_report_init(&report, sizeof report));
    report.motion = motion;
    report.motion_capacity = room;
    report.coordinates[0] = mxGetData(k);
    report.coordinates[1] = (char *)mxGetData(k) + of_coil * bytes_of(geometry.precision);
    report.weights = mxGetData(w);
    report.kspace = corrected.data;
    check(recon_propeller(&geometry, &options, &how, kspace, image.data, &report));
    out[2] = warnings_of_call();
    out[0] = finish_complex(image);
    const char *names[] = {"blades", "lines", "readout", "motion", "k", "w", "d"};
    out[1] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_number(out[1], "blades", (double)report.blades);
    set_number(out[1], "lines", (double)report.lines);
    set_number(out[1], "readout", (double)report.readout);
    size_t columns = (size_t)report.blades * (size_t)geometry.frames;
    shape numbers = {2, {NUMBERS, (mwSize)columns}, NUMBERS * columns};
    mxArray *found = new_real(&numbers, mxDOUBLE_CLASS);
    memcpy(mxGetData(found), motion, numbers.elements * sizeof *motion);
    mxSetField(out[1], 0, "motion", found);
    mxSetField(out[1], 0, "k", k);
    mxSetField(out[1], 0, "w", w);
    mxSetField(out[1], 0, "d", finish_complex(corrected));
}
