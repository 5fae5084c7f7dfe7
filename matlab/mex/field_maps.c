/* Field maps from images of several echoes. */
#include "plans.h"

static void read_field_map_options(recon_field_map_options *options, const mxArray *structure) {
    need_structure(structure, "the options of recon.fieldmap");
    check(recon_field_map_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Smoothing"))) {
        options->smoothing = real_scalar(value, "Smoothing");
    }
    if ((value = field(structure, "Threshold"))) {
        options->threshold = real_scalar(value, "Threshold");
    }
    if ((value = field(structure, "Unwrap"))) {
        options->unwrap = flag_of(value, "Unwrap");
    }
    if ((value = field(structure, "Threads"))) {
        uint64_t threads = count_of(value, "Threads");
        options->threads = threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads;
    }
    options->interrupt = on_interrupt;
}

/* [map, decay, report, warnings] = field_map(images, dims, coils, echo times, options, whether to estimate decay)
 *
 * decay is empty if it is not requested. */
void make_field_map(mxArray **out, const mxArray **in) {
    recon_field_map_options options;
    recon_field_map_report report;
    need_floats(in[0], "the images");
    uint32_t precision = mxIsDouble(in[0]) ? RECON_F64 : RECON_F32;
    shape s = shape_of(in[1], "the image size");
    if (s.count > 3) {
        fail("recon:InvalidSize", "the image size has %llu entries: give 2 or 3", (unsigned long long)s.count);
    }
    uint64_t dims[3] = {0};
    for (mwSize d = 0; d < s.count; d++) {
        dims[d] = (uint64_t)s.size[d];
    }
    uint64_t coils = count_of(in[2], "the coils"), echoes = (uint64_t)mxGetNumberOfElements(in[3]);
    const double *times = real_data(in[3], RECON_F64, "the echo times");
    read_field_map_options(&options, in[4]);
    bool wants_decay = flag_of(in[5], "whether decay is wanted");
    size_t elements = mxGetNumberOfElements(in[0]);
    if (coils == 0 || echoes == 0 || s.elements == 0 || elements / s.elements / echoes != coils ||
        elements != s.elements * (size_t)coils * (size_t)echoes) {
        fail("recon:SizeMismatch", "the images have %llu elements: [dims, coils, echoes] is required",
             (unsigned long long)elements);
    }
    const void *images = complex_data(in[0], precision, "the images");
    shape none = {2, {0, 0}, 0};
    mxArray *map = new_real(&s, class_of(precision));
    mxArray *decay = new_real(wants_decay ? &s : &none, class_of(precision));
    check(recon_field_map_report_init(&report, sizeof report));
    check(recon_field_map(precision, (uint32_t)s.count, dims, coils, echoes, times, images, &options, mxGetData(map),
                          wants_decay ? mxGetData(decay) : NULL, &report));
    out[3] = warnings_of_call();
    out[0] = map;
    out[1] = decay;
    const char *names[] = {"limit", "signal", "change", "jumps", "unwrapped", "unresolved", "period", "pieces", "undecided"};
    out[2] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_number(out[2], "limit", report.limit);
    set_number(out[2], "signal", report.signal);
    set_number(out[2], "change", report.change);
    set_number(out[2], "jumps", (double)report.jumps);
    set_number(out[2], "unwrapped", (double)report.unwrapped);
    set_number(out[2], "unresolved", (double)report.unresolved);
    set_number(out[2], "period", report.period);
    set_number(out[2], "pieces", (double)report.pieces);
    set_number(out[2], "undecided", (double)report.undecided);
}
