/* Geometry: trajectory, image size, weights, coil maps, and maps of off-resonance and decay, from a MATLAB structure to
 * a recon_geometry. */
#include "plans.h"

/* `k` is [samples, ndim] and real, or complex, kx + 1i*ky. */
void set_trajectory(recon_geometry *geometry, const mxArray *k) {
    need_floats(k, "the trajectory");
    parts from = parts_of(k);
    bool complex_k = mxIsComplex(k);
    size_t elements = mxGetNumberOfElements(k), ndim = complex_k ? 2 : geometry->ndim;
    if (ndim != geometry->ndim) {
        fail("recon:SizeMismatch", "a complex trajectory (kx + 1i*ky) is 2D, the image is 3D: give [samples 3] reals");
    }
    if (!complex_k && elements % ndim != 0) {
        fail("recon:SizeMismatch", "the trajectory is %s: its last dimension must be %u", describe(k), (unsigned)ndim);
    }
    size_t samples = complex_k ? elements : elements / ndim;
    for (size_t axis = 0; axis < ndim; axis++) {
        void *coordinates = allocate(samples, bytes_of(geometry->precision));
        for (size_t i = 0; i < samples; i++) {
            double value = !complex_k ? real_part(&from, axis * samples + i)
                           : axis     ? imaginary_part(&from, i)
                                      : real_part(&from, i);
            set_element(coordinates, geometry->precision == RECON_F64, i, value);
        }
        geometry->coordinates[axis] = coordinates;
    }
    geometry->samples = samples;
}

static void set_dims(recon_geometry *geometry, const mxArray *dims) {
    need_real(dims, "the image size");
    size_t count = mxGetNumberOfElements(dims);
    if (count != 2 && count != 3) {
        fail("recon:InvalidSize", "the image size has %llu entries: give [nx ny] or [nx ny nz]",
             (unsigned long long)count);
    }
    geometry->ndim = (uint32_t)count;
    for (size_t d = 0; d < count; d++) {
        geometry->dims[d] = whole_number(element(mxGetData(dims), mxIsDouble(dims), d), "the image size");
    }
}

uint64_t voxels_of(const recon_geometry *geometry) {
    if (geometry->voxel_count) {
        return geometry->voxel_count;
    }
    uint64_t product = 1;
    for (uint32_t d = 0; d < geometry->ndim; d++) {
        uint64_t n = geometry->dims[d];
        if (n == 0 || product > (uint64_t)1 << 48 || n > (uint64_t)1 << 48 || product * n > (uint64_t)1 << 48) {
            return 0;
        }
        product *= n;
    }
    return product;
}

uint64_t need_voxels(const recon_geometry *geometry) {
    uint64_t voxels = voxels_of(geometry);
    if (!voxels) {
        fail("recon:InvalidSize",
             "an image of %llu x %llu x %llu voxels is empty or does not fit in the address space",
             (unsigned long long)geometry->dims[0], (unsigned long long)geometry->dims[1],
             (unsigned long long)(geometry->ndim == 3 ? geometry->dims[2] : 1));
    }
    return voxels;
}

void read_image_geometry(recon_geometry *geometry, const mxArray *structure) {
    need_structure(structure, "the geometry");
    check(recon_geometry_init(geometry, sizeof *geometry));
    geometry->precision = option_value(need_field(structure, "precision"), "Precision", "precision");
    set_dims(geometry, need_field(structure, "dims"));
    const mxArray *value;
    if ((value = field(structure, "coils"))) {
        geometry->coils = count_of(value, "Coils");
    }
    if ((value = field(structure, "frames"))) {
        geometry->frames = count_of(value, "Frames");
    }
}

static void set_voxels(recon_geometry *geometry, const mxArray *voxels) {
    const char *positions = real_data(voxels, geometry->precision, "Voxels");
    if (mxGetNumberOfDimensions(voxels) != 2 || mxGetN(voxels) != geometry->ndim) {
        fail("recon:SizeMismatch", "Voxels is %s: give [voxels %u]", describe(voxels), (unsigned)geometry->ndim);
    }
    geometry->voxel_count = mxGetNumberOfElements(voxels) / geometry->ndim;
    for (uint32_t d = 0; d < geometry->ndim; d++) {
        geometry->voxels[d] = positions + d * geometry->voxel_count * bytes_of(geometry->precision);
    }
}

void set_off_resonance(recon_geometry *geometry, const mxArray *structure) {
    const mxArray *value;
    if ((value = field(structure, "field_map"))) {
        need_count(value, need_voxels(geometry), "FieldMap (one number a voxel)");
        geometry->field_map = real_data(value, geometry->precision, "FieldMap");
    }
    if ((value = field(structure, "decay_map"))) {
        need_count(value, need_voxels(geometry), "DecayMap (one number a voxel)");
        geometry->decay_map = real_data(value, geometry->precision, "DecayMap");
    }
    if ((value = field(structure, "times"))) {
        need_count(value, geometry->samples, "Times (one number a sample of the trajectory)");
        geometry->times = real_data(value, geometry->precision, "Times");
    }
}

void read_geometry(recon_geometry *geometry, const mxArray *structure) {
    read_image_geometry(geometry, structure);
    const mxArray *value;
    if ((value = field(structure, "basis"))) {
        geometry->basis = option_value(value, "Basis", "basis");
    }
    if ((value = field(structure, "voxels"))) {
        set_voxels(geometry, value);
    }
    set_trajectory(geometry, need_field(structure, "k"));
    if ((value = field(structure, "weights"))) {
        need_count(value, geometry->samples, "Weights (one number a sample of the trajectory)");
        geometry->weights = real_data(value, geometry->precision, "Weights");
    }
    if ((value = field(structure, "maps"))) {
        need_count(value, need_voxels(geometry) * geometry->coils, "Maps ([nx ny coils] or [nx ny nz coils])");
        geometry->coil_maps = complex_data(value, geometry->precision, "Maps");
    }
    set_off_resonance(geometry, structure);
}
