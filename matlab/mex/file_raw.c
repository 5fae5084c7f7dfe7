/* Raw data in files: k-space with its trajectory, noise, and fields of the header. */
#include "file_io.h"

static const placed vectors[] = {{"fov", offsetof(recon_scan_properties, encoded_fov_mm)},
                                 {"reconFov", offsetof(recon_scan_properties, recon_fov_mm)},
                                 {"position", offsetof(recon_scan_properties, position)},
                                 {"readDir", offsetof(recon_scan_properties, read_dir)},
                                 {"phaseDir", offsetof(recon_scan_properties, phase_dir)},
                                 {"sliceDir", offsetof(recon_scan_properties, slice_dir)},
                                 {"tablePosition", offsetof(recon_scan_properties, table_position)},
                                 {NULL, 0}};

static const placed counts[] = {{"encoding", offsetof(recon_scan_properties, encoding)},
                                {"slice", offsetof(recon_scan_properties, slice)},
                                {"repetition", offsetof(recon_scan_properties, repetition)},
                                {"contrast", offsetof(recon_scan_properties, contrast)},
                                {"phase", offsetof(recon_scan_properties, phase)},
                                {"set", offsetof(recon_scan_properties, set)},
                                {"average", offsetof(recon_scan_properties, average)},
                                {"measurement", offsetof(recon_scan_properties, measurement_uid)},
                                {"timeStamp", offsetof(recon_scan_properties, acquisition_time_stamp)},
                                {NULL, 0}};

static const char *scan_names[] = {
    "k",        "d",        "matrix",     "reconMatrix",   "weights",  "times",     "shots",      "skipped",
    "dwell",    "trajectory", "whitened", "calibration",   "fov",      "reconFov",  "position",   "readDir",
    "phaseDir", "sliceDir", "tablePosition", "encoding",   "slice",    "repetition", "contrast",  "phase",
    "set",      "average",  "measurement", "timeStamp",    "physiologyTimeStamp"};

/* Returns single numbers of a file, [rows columns]. */
static mxArray *floats(size_t rows, size_t columns) {
    shape s = {2, {(mwSize)rows, (mwSize)columns}, rows * columns};
    return new_real(&s, mxSINGLE_CLASS);
}

static mxArray *column_of(const float *numbers, size_t count) {
    mxArray *column = floats(numbers ? count : 0, numbers ? 1 : 0);
    if (numbers && count) {
        memcpy(mxGetData(column), numbers, count * sizeof(float));
    }
    return column;
}

static mxArray *numbers_of(const uint64_t *numbers, size_t count) {
    mxArray *column = mxCreateDoubleMatrix((mwSize)count, 1, mxREAL);
    for (size_t i = 0; i < count; i++) {
        ((double *)mxGetData(column))[i] = (double)numbers[i];
    }
    return column;
}

static mxArray *sizes_of(const uint64_t sizes[3]) {
    double numbers[3] = {(double)sizes[0], (double)sizes[1], (double)sizes[2]};
    return row_of(numbers, 3);
}

/* Writes the data of an image, or of its calibration, to a structure. */
static void put_scan(mxArray *to, mwIndex i, const recon_scan_properties *p) {
    size_t samples = (size_t)p->samples, shots = (size_t)p->shots;
    mxArray *k = floats(samples, p->ndim);
    for (size_t axis = 0; axis < p->ndim && samples; axis++) {
        memcpy((float *)mxGetData(k) + axis * samples, p->coordinates[axis], samples * sizeof(float));
    }
    mxSetField(to, i, "k", k);
    mwSize sizes[2] = {(mwSize)samples, (mwSize)p->coils};
    mxSetField(to, i, "d", complex_array(p->kspace, 2, sizes));
    mxSetField(to, i, "matrix", sizes_of(p->encoded_matrix));
    mxSetField(to, i, "reconMatrix", sizes_of(p->recon_matrix));
    mxSetField(to, i, "weights", column_of(p->weights, samples));
    mxSetField(to, i, "times", column_of(p->times, samples));
    mxSetField(to, i, "shots", numbers_of(p->samples_per_shot, shots));
    mxSetField(to, i, "skipped", numbers_of(p->skipped_per_shot, shots));
    mxSetField(to, i, "dwell", mxCreateDoubleScalar(p->dwell));
    mxSetField(to, i, "trajectory", mxCreateString(recon_choice_word("trajectory", p->trajectory)));
    mxSetField(to, i, "whitened", mxCreateLogicalScalar(p->is_whitened != 0));
    put_vectors(to, i, vectors, p);
    put_counts(to, i, counts, p);
    double stamps[3] = {p->physiology_time_stamp[0], p->physiology_time_stamp[1], p->physiology_time_stamp[2]};
    mxSetField(to, i, "physiologyTimeStamp", row_of(stamps, 3));
}

static void put_text(mxArray *to, const char *name, const char *text) {
    mxSetField(to, 0, name, mxCreateString(text ? text : ""));
}

static mxArray *header_structure(void) {
    const char *names[] = {"xml", "vendor", "model", "patientPosition", "echoTimes", "repetitionTimes",
                           "noiseBandwidth", "fieldStrength", "frequency"};
    recon_files_header header;
    recon_files_header_of(held.raw, &header);
    mxArray *made = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    /* MATLAB code converts the bytes of UTF-8. */
    size_t length = strlen(header.xml);
    mxArray *xml = mxCreateNumericMatrix(1, (mwSize)length, mxUINT8_CLASS, mxREAL);
    if (length) {
        memcpy(mxGetData(xml), header.xml, length);
    }
    mxSetField(made, 0, "xml", xml);
    put_text(made, "vendor", header.vendor);
    put_text(made, "model", header.model);
    put_text(made, "patientPosition", header.patient_position);
    mxSetField(made, 0, "echoTimes", row_of(header.echo_times_ms, (size_t)header.echo_time_count));
    mxSetField(made, 0, "repetitionTimes", row_of(header.repetition_times_ms, (size_t)header.repetition_time_count));
    set_number(made, "noiseBandwidth", header.noise_bandwidth);
    set_number(made, "fieldStrength", header.field_strength_tesla);
    set_number(made, "frequency", header.frequency_hz);
    return made;
}

static mxArray *noise_structures(void) {
    const char *names[] = {"d", "dwell"};
    recon_files_noise noise;
    mwSize count = 0;
    for (recon_files_noise_of(held.raw, 0, &noise); noise.samples; recon_files_noise_of(held.raw, count, &noise)) {
        count++;
    }
    mxArray *made = mxCreateStructMatrix(count, 1, 2, names);
    for (mwIndex i = 0; i < count; i++) {
        recon_files_noise_of(held.raw, i, &noise);
        mwSize sizes[2] = {(mwSize)noise.samples, (mwSize)noise.coils};
        mxSetField(made, i, "d", complex_array(noise.data, 2, sizes));
        mxSetField(made, i, "dwell", mxCreateDoubleScalar(noise.dwell));
    }
    return made;
}

/* Writes what held.raw has to the outputs, and frees it image by image. */
static void put_raw(mxArray **out) {
    mwSize count = (mwSize)recon_files_scan_count(held.raw);
    mwSize names = sizeof scan_names / sizeof *scan_names;
    out[0] = mxCreateStructMatrix(count, 1, (int)names, scan_names);
    for (mwIndex i = 0; i < count; i++) {
        recon_scan_properties properties;
        check_files(recon_files_scan(held.raw, i, 0, &properties));
        put_scan(out[0], i, &properties);
        check_files(recon_files_scan(held.raw, i, 1, &properties));
        if (properties.samples) {
            mxArray *calibration = mxCreateStructMatrix(1, 1, (int)names, scan_names);
            mxSetField(out[0], i, "calibration", calibration);
            put_scan(calibration, 0, &properties);
        }
        recon_files_free_scan(held.raw, i);
    }
    out[1] = header_structure();
    out[2] = noise_structures();
    release_files();
}

static void read_scan_options(recon_scan_options *options, const mxArray *structure) {
    static const struct {
        const char *name, *words;
        size_t offset;
    } words[] = {{"HeaderTrajectory", "header_trajectory", offsetof(recon_scan_options, header_trajectory)},
                 {"Convention", "convention", offsetof(recon_scan_options, convention)},
                 {"SpokeNumber", "spoke_number", offsetof(recon_scan_options, spoke_number)},
                 {"SpiralExtent", "spiral_extent", offsetof(recon_scan_options, spiral_extent)}};
    static const placed whole[] = {{"SpokeCount", offsetof(recon_scan_options, spoke_count)},
                                   {"FramesPerRotation", offsetof(recon_scan_options, frames_per_rotation)},
                                   {"ReadoutSamples", offsetof(recon_scan_options, readout_samples)}};
    static const placed real[] = {{"AngleRangeDegrees", offsetof(recon_scan_options, angle_range_degrees)},
                                  {"FirstAngleDegrees", offsetof(recon_scan_options, first_angle_degrees)},
                                  {"CenterSample", offsetof(recon_scan_options, center_sample)},
                                  {"GradientDelayUs", offsetof(recon_scan_options, gradient_delay_us)},
                                  {"SampleTimeUs", offsetof(recon_scan_options, sample_time_us)},
                                  {"AcquisitionDelayUs", offsetof(recon_scan_options, acquisition_delay_us)}};
    need_structure(structure, "the options of recon.read");
    check(recon_scan_options_init(options, sizeof *options));
    char *to = (char *)options;
    const mxArray *value;
    if ((value = field(structure, "Conjugate"))) {
        options->conjugate = flag_of(value, "Conjugate");
    }
    if ((value = field(structure, "Whiten"))) {
        options->whiten = flag_of(value, "Whiten");
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if ((value = field(structure, words[i].name))) {
            *(uint32_t *)(to + words[i].offset) = option_value(value, words[i].name, words[i].words);
        }
    }
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        if ((value = field(structure, whole[i].name))) {
            uint64_t count = count_of(value, whole[i].name);
            if (count < 1 || count > UINT32_MAX) {
                fail(INVALID, "%s is %llu: give a whole number from 1 to 4294967295", whole[i].name,
                     (unsigned long long)count);
            }
            *(uint32_t *)(to + whole[i].offset) = (uint32_t)count;
        }
    }
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        if ((value = field(structure, real[i].name))) {
            double number = real_scalar(value, real[i].name);
            if (number != number) {
                fail(INVALID, "%s is NaN: give a number, or leave the option out", real[i].name);
            }
            *(double *)(to + real[i].offset) = number;
        }
    }
    if ((value = field(structure, "GoldenAngle"))) {
        double number = real_scalar(value, "GoldenAngle");
        if (!(number >= INT32_MIN && number <= INT32_MAX) || number != (double)(int32_t)number || number == 0) {
            fail(INVALID, "GoldenAngle is %g: give a whole number other than 0", number);
        }
        options->golden_angle = (int32_t)number;
    }
}

/* text = file_contents(file, group): 'raw', 'images' or '' */
void contents_of_file(mxArray **out, const mxArray **in) {
    static const char *const words[] = {"", "raw", "images"};
    char *path = utf8_of(in[0], "the file's name"), *group = utf8_of(in[1], "Group");
    uint32_t contents = 0;
    check_files(recon_files_contents(path, group, &contents));
    out[0] = mxCreateString(words[contents < 3 ? contents : 0]);
}

/* [scans, header, noise, warnings] = read_raw(file, group, options, counters): the counters encoding, slice,
 * repetition, contrast, phase and set of the images to read, -1 for all. */
void read_raw_file(mxArray **out, const mxArray **in) {
    char *path = utf8_of(in[0], "the file's name"), *group = utf8_of(in[1], "Group");
    recon_scan_options options;
    read_scan_options(&options, in[2]);
    need_count(in[3], 6, "the counters");
    const double *numbers = real_data(in[3], RECON_F64, "the counters");
    int64_t counters[6];
    for (size_t i = 0; i < 6; i++) {
        counters[i] = numbers[i] == -1.0 ? -1 : (int64_t)whole_number(numbers[i], "a counter");
    }
    recon_files_selection selection = {counters[0], counters[1], counters[2], counters[3], counters[4], counters[5]};
    check_files(recon_files_read_raw(path, group, &options, &selection, &held.raw));
    out[3] = warnings_of_files();
    put_raw(out);
}

/* [scans, header, noise, warnings] = read_bart(k-space file, trajectory file, matrix) */
void read_bart_files(mxArray **out, const mxArray **in) {
    char *kspace = utf8_of(in[0], "the file's name"), *trajectory = utf8_of(in[1], "Trajectory");
    uint64_t matrix[3];
    read_sizes(matrix, in[2], "Matrix");
    check_files(recon_files_read_bart(kspace, trajectory, matrix, &held.raw));
    out[3] = warnings_of_files();
    put_raw(out);
}

static const uint64_t *shots_of(const mxArray *array, size_t count, const char *what) {
    need_count(array, count, what);
    const double *numbers = real_data(array, RECON_F64, what);
    uint64_t *shots = allocate(count, sizeof *shots);
    for (size_t i = 0; i < count; i++) {
        shots[i] = whole_number(numbers[i], what);
    }
    return shots;
}

/* Returns a column of the structure's numbers; NULL if the field is empty and may be. */
static const float *column(const mxArray *from, mwIndex i, const char *name, size_t samples) {
    const mxArray *value = mxGetField(from, i, name);
    if (!value || mxIsEmpty(value)) {
        return NULL;
    }
    need_count(value, samples, name);
    return real_data(value, RECON_F32, name);
}

/* Reads the structure that put_scan writes. */
static void get_scan(recon_scan_properties *p, const mxArray *from, mwIndex i) {
    check(recon_scan_properties_init(p, sizeof *p));
    const mxArray *k = need_item(from, i, "k"), *d = need_item(from, i, "d");
    need_real(k, "k");
    size_t samples = (size_t)mxGetM(k), ndim = (size_t)mxGetN(k);
    if (mxGetNumberOfDimensions(k) != 2 || (ndim != 2 && ndim != 3)) {
        fail("recon:SizeMismatch", "k is %s: [samples 2] or [samples 3] is required", describe(k));
    }
    if (mxGetNumberOfDimensions(d) != 2 || mxGetM(d) != mxGetM(k)) {
        fail("recon:SizeMismatch", "d is %s: [%llu samples, coils] is required", describe(d),
             (unsigned long long)samples);
    }
    const float *coordinates = real_data(k, RECON_F32, "k");
    p->ndim = (uint32_t)ndim;
    p->samples = samples;
    p->coils = mxGetN(d);
    for (size_t axis = 0; axis < ndim; axis++) {
        p->coordinates[axis] = coordinates + axis * samples;
    }
    p->kspace = complex_data(d, RECON_F32, "d");
    read_sizes(p->encoded_matrix, need_item(from, i, "matrix"), "info.matrix");
    read_sizes(p->recon_matrix, need_item(from, i, "reconMatrix"), "info.reconMatrix");
    p->weights = column(from, i, "weights", samples);
    p->times = column(from, i, "times", samples);
    const mxArray *shots = need_item(from, i, "shots");
    p->shots = mxGetNumberOfElements(shots);
    p->samples_per_shot = shots_of(shots, (size_t)p->shots, "info.shots");
    p->skipped_per_shot = shots_of(need_item(from, i, "skipped"), (size_t)p->shots, "info.skipped");
    get_vectors(from, i, vectors, p);
    get_counts(from, i, counts, p);
    uint64_t stamps[3];
    read_sizes(stamps, need_item(from, i, "physiologyTimeStamp"), "physiologyTimeStamp");
    for (size_t t = 0; t < 3; t++) {
        p->physiology_time_stamp[t] = (uint32_t)stamps[t];
    }
}

/* warnings = write_raw(file, header, scans, noise): the structures of read_raw, the header as bytes of UTF-8 or []. */
void write_raw_file(mxArray **out, const mxArray **in) {
    char *path = utf8_of(in[0], "the file's name");
    const char *xml = mxIsEmpty(in[1]) ? NULL : utf8_of(in[1], "info.header");
    if (!mxIsStruct(in[2]) || !(mxIsStruct(in[3]) || mxIsEmpty(in[3]))) {
        fail(INVALID, "the scans or the noise are not structures");
    }
    size_t count = mxGetNumberOfElements(in[2]), groups = mxIsStruct(in[3]) ? mxGetNumberOfElements(in[3]) : 0;
    recon_scan_properties *scans = allocate(count, sizeof *scans), *calibration = allocate(count, sizeof *scans);
    for (size_t i = 0; i < count; i++) {
        get_scan(&scans[i], in[2], (mwIndex)i);
        const mxArray *own = mxGetField(in[2], (mwIndex)i, "calibration");
        check(recon_scan_properties_init(&calibration[i], sizeof *calibration));
        if (own && !mxIsEmpty(own)) {
            need_structure(own, "info.calibration");
            get_scan(&calibration[i], own, 0);
        }
    }
    recon_files_noise *noise = allocate(groups, sizeof *noise);
    for (size_t i = 0; i < groups; i++) {
        const mxArray *d = need_item(in[3], (mwIndex)i, "d");
        noise[i].samples = mxGetM(d);
        noise[i].coils = mxGetN(d);
        noise[i].data = complex_data(d, RECON_F32, "info.noise.d");
        noise[i].dwell = real_scalar(need_item(in[3], (mwIndex)i, "dwell"), "info.noise.dwell");
    }
    check_files(recon_files_write_raw(path, xml, scans, calibration, count, noise, groups));
    out[0] = warnings_of_files();
}
