/* Transforms: forward, adjoint, E^H W E, gridding and filtered back-projection, on the host or on gpuArrays. */
#include "plans.h"

void open_operands(operands *a, const plan_entry *e, const mxArray *input, const shape *out, const char *what) {
    uint32_t precision = e->properties.precision;
    memset(a, 0, sizeof *a);
#ifdef RECON_GPUARRAY
    if (mxIsGPUArray(input) != e->on_gpu) {
        fail(INVALID, e->on_gpu ? "%s is %s: this operator takes gpuArrays"
                                : "%s is %s: make the operator with 'GpuArray', true, or gather it",
             what, describe(input));
    }
    if (e->on_gpu) {
        a->gpu_in = mxGPUCreateFromMxArray(input);
        bool fit = mxGPUGetClassID(a->gpu_in) == class_of(precision) && mxGPUGetComplexity(a->gpu_in) == mxCOMPLEX;
        if (!fit) {
            mxGPUDestroyGPUArray(a->gpu_in);
            fail(INVALID, "%s: give a complex gpuArray of the operator's precision, as by complex(x)", what);
        }
        a->gpu_out =
            mxGPUCreateGPUArray(out->count, out->size, class_of(precision), mxCOMPLEX, MX_GPU_DO_NOT_INITIALIZE);
        a->in = mxGPUGetDataReadOnly(a->gpu_in);
        a->out = mxGPUGetData(a->gpu_out);
        return;
    }
#endif
    need_floats(input, what);
    a->in = complex_data(input, precision, what);
    a->host = new_complex(out, mxGetClassID(input), precision);
    a->out = a->host.data;
}

mxArray *close_operands(operands *a, recon_status status) {
#ifdef RECON_GPUARRAY
    if (a->gpu_out) {
        mxArray *result = status == RECON_OK ? mxGPUCreateMxArrayOnGPU(a->gpu_out) : NULL;
        mxGPUDestroyGPUArray(a->gpu_in);
        mxGPUDestroyGPUArray(a->gpu_out);
        return result;
    }
#endif
    return status == RECON_OK ? finish_complex(a->host) : NULL;
}

size_t elements_in(const mxArray *input) {
#ifdef RECON_GPUARRAY
    if (mxIsGPUArray(input)) {
        const mxGPUArray *array = mxGPUCreateFromMxArray(input);
        size_t count = mxGPUGetNumberOfElements(array);
        mxGPUDestroyGPUArray(array);
        return count;
    }
#endif
    return mxGetNumberOfElements(input);
}

enum { FORWARD, FHD, WEIGHTED_FHD, NORMAL, GRID, FBP };

/* Transforms all images or all data of the input, one after the other. `s` is the output's shape. Only
 * back-projection has a filter. */
static mxArray *transformed(const plan_entry *e, uint32_t which, uint32_t filter, const mxArray *input,
                            const shape *s) {
    static recon_status (*const calls[])(const recon_plan *plan, const void *in, void *out) = {
        recon_forward, recon_fhd, recon_weighted_fhd, recon_normal, recon_grid};
    bool image_in = which == FORWARD || which == NORMAL;
    const char *what = image_in ? "the image" : "the k-space data";
    const recon_plan_properties *p = &e->properties;
    uint64_t in_elements = image_in ? p->image_elements : p->kspace_elements;
    uint64_t out_elements = which == FORWARD ? p->kspace_elements : p->image_elements;
    size_t elements = elements_in(input);
    if (elements == 0 || elements % in_elements != 0) {
        fail("recon:SizeMismatch", "%s has %llu elements: %llu are required, or a multiple", what,
             (unsigned long long)elements, (unsigned long long)in_elements);
    }
    size_t repeats = elements / (size_t)in_elements;
    need_elements(s, repeats * (size_t)out_elements, "the output's shape");
    operands a;
    open_operands(&a, e, input, s, what);
    size_t bytes = 2 * bytes_of(p->precision);
    recon_status status = RECON_OK;
    for (size_t r = 0; r < repeats && status == RECON_OK; r++) {
        const char *from = a.in + r * in_elements * bytes;
        char *to = a.out + r * out_elements * bytes;
        status = which == FBP ? recon_fbp(e->plan, filter, from, to) : calls[which](e->plan, from, to);
    }
    mxArray *result = close_operands(&a, status);
    check(status);
    return result;
}

/* output = apply(handle, which, input, output shape, filter): the filter of a filtered backprojection, else any text */
void apply_transform(mxArray **out, const mxArray **in) {
    static const choice names[] = {{"forward", FORWARD}, {"fhd", FHD},   {"weighted_fhd", WEIGHTED_FHD},
                                   {"normal", NORMAL},   {"grid", GRID}, {"fbp", FBP},
                                   {NULL, 0}};
    plan_entry *e = need_plan(in[0]);
    uint32_t which = choose(in[1], "the transform", names);
    shape s = shape_of(in[3], "the output's shape");
    uint32_t filter = which == FBP ? option_value(in[4], "Filter", "filter") : 0;
    out[0] = transformed(e, which, filter, in[2], &s);
}

static bool has_shape(const mxArray *array, const shape *s) {
    if (mxGetNumberOfDimensions(array) != s->count) {
        return false;
    }
    return memcmp(mxGetDimensions(array), s->size, (size_t)s->count * sizeof *s->size) == 0;
}

/* output = multiply(key, input, what): E * x or E' * y ('product'), E^H W E x ('normal'), E^H W y ('rhs').
 *
 * key is [handle, whether adjoint, whether to return columns]. The input has the operator's own shape, and that of
 * E^H W E may also be a column. For any other shape the output is [], and the caller finds the output's shape and calls
 * apply. Iterations consist of these products: one call without arithmetic in MATLAB keeps them fast. */
void multiply(mxArray **out, const mxArray **in) {
    static const choice names[] = {{"product", FORWARD}, {"normal", NORMAL}, {"rhs", WEIGHTED_FHD}, {NULL, 0}};
    if (mxGetClassID(in[0]) != mxUINT64_CLASS || mxIsComplex(in[0]) || mxGetNumberOfElements(in[0]) != 3) {
        fail(INVALID, "the key is %s: only recon.Encoding makes keys", describe(in[0]));
    }
    const uint64_t *key = mxGetData(in[0]);
    plan_entry *e = need_plan_by_id(key[0]);
    uint32_t which = choose(in[2], "the product", names);
    if (which == FORWARD && key[1] != 0) {
        which = FHD;
    }
    const shape *from = which == FORWARD || which == NORMAL ? &e->image_shape : &e->kspace_shape;
    const shape *to = which == FORWARD ? &e->kspace_shape : &e->image_shape;
    shape column_from = {2, {from->elements, 1}, from->elements}, column_to = {2, {to->elements, 1}, to->elements};
    if (key[2] != 0 || (which == NORMAL && has_shape(in[1], &column_from))) {
        from = &column_from;
        to = &column_to;
    }
    if (e->on_gpu || from->count == 0 || !has_shape(in[1], from)) {
        out[0] = mxCreateDoubleMatrix(0, 0, mxREAL);
        return;
    }
    out[0] = transformed(e, which, 0, in[1], to);
}
