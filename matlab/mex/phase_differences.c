/* Differences of phases, and velocity from them. */
#include "plans.h"

/* Returns `count` numbers of an option, or NULL if the option is not given. */
static const double *numbers_of(const mxArray *options, const char *name, size_t count, const char *form) {
    const mxArray *value = field(options, name);
    if (!value) {
        return NULL;
    }
    need_real(value, name);
    if (mxGetNumberOfElements(value) != count) {
        fail("recon:SizeMismatch", "%s is %s: give %s", name, describe(value), form);
    }
    return real_data(value, RECON_F64, name);
}

/* [difference, warnings] = phase_difference(geometry, images, reference, options, shape) */
void subtract_phases(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    read_image_geometry(&geometry, in[0]);
    need_structure(in[3], "the options of recon.phasedifference");
    shape s = shape_of(in[4], "the result's shape");
    need_elements(&s, (size_t)need_voxels(&geometry) * (size_t)geometry.frames, "the result's shape");
    need_floats(in[1], "the images");
    need_floats(in[2], "the reference");
    need_count(in[1], s.elements * (size_t)geometry.coils, "the images");
    need_count(in[2], s.elements * (size_t)geometry.coils, "the reference");
    const void *images = complex_data(in[1], geometry.precision, "the images");
    const void *reference = complex_data(in[2], geometry.precision, "the reference");
    double venc = 0.0;
    const mxArray *value = field(in[3], "Venc");
    if (value) {
        venc = real_scalar(value, "Venc");
        if (!(venc > 0.0)) {
            /* 0 means radians in C. */
            fail(INVALID, "Venc is %g: it must be the positive velocity that causes a phase of pi", venc);
        }
    }
    const double *maxwell = numbers_of(in[3], "Maxwell", 4, "four coefficients");
    const double *origin = numbers_of(in[3], "Origin", 3, "[x y z] in mm");
    const double *steps = numbers_of(in[3], "Steps", 9, "a 3 x 3 matrix in mm");
    mxArray *difference = new_real(&s, class_of(geometry.precision));
    check(recon_phase_difference(&geometry, images, reference, venc, maxwell, origin, steps, mxGetData(difference)));
    out[1] = warnings_of_call();
    out[0] = difference;
}
