/* Matrices for virtual coils: whitening and compression. */
#include "recon_mex.h"

static uint32_t precision_of(const mxArray *array) {
    return mxIsDouble(array) ? RECON_F64 : RECON_F32;
}

/* Numbers of samples before the coils and of frames after them, in an array. */
typedef struct {
    uint64_t samples, coils, frames;
    uint32_t precision;
    const void *data;
} coil_array;

static coil_array coils_of(const mxArray *array, uint64_t samples, uint64_t coils, const char *what) {
    need_floats(array, what);
    size_t elements = mxGetNumberOfElements(array);
    if (samples == 0 || coils == 0 || elements == 0 || elements / samples < coils ||
        elements % ((size_t)samples * (size_t)coils) != 0) {
        fail("recon:SizeMismatch", "%s: %llu elements are not [%llu samples, %llu coils, frames]", what,
             (unsigned long long)elements, (unsigned long long)samples, (unsigned long long)coils);
    }
    uint32_t precision = precision_of(array);
    coil_array made = {samples, coils, elements / ((size_t)samples * (size_t)coils), precision,
                       complex_data(array, precision, what)};
    return made;
}

static complex_output new_matrix(size_t rows, size_t columns) {
    shape s = {2, {rows, columns}, rows * columns};
    return new_complex(&s, mxDOUBLE_CLASS, RECON_F64);
}

/* [covariance, warnings] = noise_covariance(noise, coils, noise_dwell, dwell, bandwidth) */
void noise_covariance(mxArray **out, const mxArray **in) {
    uint64_t coils = count_of(in[1], "the coils of the noise");
    size_t elements = mxGetNumberOfElements(in[0]);
    coil_array noise = coils_of(in[0], coils ? elements / coils : 0, coils, "the noise");
    double noise_dwell = real_scalar(in[2], "NoiseDwell");
    double dwell = real_scalar(in[3], "Dwell");
    double bandwidth = real_scalar(in[4], "NoiseBandwidth");
    if (noise_dwell == 0 || dwell == 0 || bandwidth == 0) {
        fail(INVALID, "NoiseDwell, Dwell and NoiseBandwidth must be above 0");
    }
    complex_output covariance = new_matrix((size_t)coils, (size_t)coils);
    check(recon_noise_covariance(noise.precision, noise.data, noise.samples, coils, noise_dwell, dwell, bandwidth,
                                 covariance.data));
    out[1] = warnings_of_call();
    out[0] = finish_complex(covariance);
}

/* matrix = whitening(covariance) */
void whitening_matrix(mxArray **out, const mxArray **in) {
    need_floats(in[0], "the noise covariance");
    size_t coils = mxGetM(in[0]);
    if (mxGetNumberOfDimensions(in[0]) != 2 || mxGetN(in[0]) != coils) {
        fail("recon:SizeMismatch", "the noise covariance is %s: give [coils coils]", describe(in[0]));
    }
    complex_output matrix = new_matrix(coils, coils);
    check(recon_whitening(complex_data(in[0], RECON_F64, "the noise covariance"), coils, matrix.data));
    out[0] = finish_complex(matrix);
}

/* [matrix, energies, warnings] = compression(data, samples, coils, keep, energy) */
void compression_matrix(mxArray **out, const mxArray **in) {
    uint64_t samples = count_of(in[1], "the samples"), coils = count_of(in[2], "the coils of the data");
    coil_array data = coils_of(in[0], samples, coils, "the data");
    uint64_t keep = count_of(in[3], "the virtual coils"), kept = 0;
    double energy = real_scalar(in[4], "Energy");
    /* Memory for all coils: the number of kept coils is known only afterwards. */
    size_t rows = keep > coils ? (size_t)keep : (size_t)coils;
    double *entries = allocate(2 * rows * (size_t)coils, sizeof(double));
    shape column = {2, {1, (mwSize)coils}, (size_t)coils};
    mxArray *energies = new_real(&column, mxDOUBLE_CLASS);
    check(recon_compression(data.precision, data.data, samples, coils, data.frames, keep, energy, entries, &kept,
                            mxGetData(energies)));
    out[2] = warnings_of_call();
    complex_output matrix = new_matrix((size_t)kept, (size_t)coils);
    memcpy(matrix.data, entries, 2 * (size_t)kept * (size_t)coils * sizeof(double));
    out[0] = finish_complex(matrix);
    out[1] = energies;
}

/* array = virtual_coils(matrix, data, samples, shape) */
void make_virtual_coils(mxArray **out, const mxArray **in) {
    need_floats(in[0], "the matrix");
    size_t rows = mxGetM(in[0]), coils = mxGetN(in[0]);
    coil_array data = coils_of(in[1], count_of(in[2], "the samples"), coils, "the data");
    shape s = shape_of(in[3], "the result's shape");
    need_elements(&s, (size_t)data.samples * rows * (size_t)data.frames, "the result's shape");
    complex_output made = new_complex(&s, class_of(data.precision), data.precision);
    check(recon_virtual_coils(complex_data(in[0], RECON_F64, "the matrix"), rows, coils, data.precision, data.data,
                              data.samples, data.frames, made.data));
    out[0] = finish_complex(made);
}
