/* Error measures of an image against the truth. */
#include "recon_mex.h"

/* Returns one byte per voxel, 1 if the voxel counts. NULL for an empty mask: all voxels count. */
static uint8_t *mask_of(const mxArray *array, size_t count) {
    if (mxIsEmpty(array)) {
        return NULL;
    }
    if (!mxIsLogical(array) || mxIsSparse(array)) {
        fail(INVALID, "Mask is %s: give a full logical array", describe(array));
    }
    need_count(array, count, "Mask");
    uint8_t *mask = allocate(count, 1);
    for (size_t i = 0; i < count; i++) {
        mask[i] = ((const mxLogical *)mxGetData(array))[i] ? 1 : 0;
    }
    return mask;
}

/* structure = metrics(image, truth, mask, part, scale) */
void image_metrics(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    recon_quality quality;
    need_floats(in[0], "the image");
    need_floats(in[1], "the truth");
    size_t count = mxGetNumberOfElements(in[0]);
    if (mxGetNumberOfElements(in[1]) != count) {
        fail("recon:SizeMismatch", "the image has %llu elements, the truth %llu", (unsigned long long)count,
             (unsigned long long)mxGetNumberOfElements(in[1]));
    }
    uint8_t *mask = mask_of(in[2], count);
    check(recon_geometry_init(&geometry, sizeof geometry));
    geometry.precision = mxIsDouble(in[0]) && mxIsDouble(in[1]) ? RECON_F64 : RECON_F32;
    geometry.dims[0] = count;
    geometry.dims[1] = 1;
    check(recon_quality_init(&quality, sizeof quality));
    check(recon_metrics(&geometry, complex_data(in[0], geometry.precision, "the image"),
                        complex_data(in[1], geometry.precision, "the truth"), mask, option_value(in[3], "Part", "part"),
                        option_value(in[4], "Scale", "scale"), &quality));
    const char *names[] = {"percent_error", "mse", "psnr_db", "snr_db", "scale"};
    out[0] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_number(out[0], "percent_error", quality.percent_error);
    set_number(out[0], "mse", quality.mse);
    set_number(out[0], "psnr_db", quality.psnr_db);
    set_number(out[0], "snr_db", quality.snr_db);
    shape one = {2, {1, 1}, 1};
    complex_output scale = new_complex(&one, mxDOUBLE_CLASS, RECON_F64);
    ((double *)scale.data)[0] = quality.scale_re;
    ((double *)scale.data)[1] = quality.scale_im;
    mxSetField(out[0], 0, "scale", finish_complex(scale));
}
