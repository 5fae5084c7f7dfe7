/* Arrays: memory, and numbers from MATLAB's layout and class to the library's and back. */
#include "recon_mex.h"

/* Checks whether this amount of memory is available, since errors of mxMalloc and mxCreate... have no identifier. */
static void need_memory(size_t bytes) {
    if (bytes > (size_t)1 << 24) {
        void *probe = malloc(bytes);
        if (!probe) {
            fail("recon:OutOfHostMemory", "no memory for %llu bytes", (unsigned long long)bytes);
        }
        free(probe);
    }
}

void *allocate(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) {
        fail("recon:SizeOverflow", "%llu elements of %llu bytes do not fit in the address space",
             (unsigned long long)count, (unsigned long long)size);
    }
    need_memory(count * size);
    void *memory = mxMalloc(count && size ? count * size : 1);
    if (!memory) {
        fail("recon:OutOfHostMemory", "no memory for %llu bytes", (unsigned long long)(count * size));
    }
    return memory;
}

mxClassID class_of(uint32_t precision) {
    return precision == RECON_F64 ? mxDOUBLE_CLASS : mxSINGLE_CLASS;
}

size_t bytes_of(uint32_t precision) {
    return precision == RECON_F64 ? sizeof(double) : sizeof(float);
}

const void *real_data(const mxArray *array, uint32_t precision, const char *what) {
    need_real(array, what);
    if (mxGetClassID(array) == class_of(precision)) {
        return mxGetData(array);
    }
    size_t count = mxGetNumberOfElements(array);
    void *converted = allocate(count, bytes_of(precision));
    for (size_t i = 0; i < count; i++) {
        set_element(converted, precision == RECON_F64, i, element(mxGetData(array), mxIsDouble(array), i));
    }
    return converted;
}

/* Whether the library can use the data of a complex array in place. */
static bool usable_in_place(const mxArray *array, uint32_t precision) {
    return MX_HAS_INTERLEAVED_COMPLEX && mxIsComplex(array) && mxGetClassID(array) == class_of(precision);
}

const void *complex_data(const mxArray *array, uint32_t precision, const char *what) {
    need_floats(array, what);
    if (usable_in_place(array, precision)) {
        return mxGetData(array);
    }
    size_t count = mxGetNumberOfElements(array);
    parts from = parts_of(array);
    void *converted = allocate(count, 2 * bytes_of(precision));
    for (size_t i = 0; i < count; i++) {
        set_element(converted, precision == RECON_F64, 2 * i, real_part(&from, i));
        set_element(converted, precision == RECON_F64, 2 * i + 1, imaginary_part(&from, i));
    }
    return converted;
}

parts parts_of(const mxArray *array) {
    parts p = {mxGetData(array), NULL, 1, mxIsDouble(array)};
    if (mxIsComplex(array)) {
#if MX_HAS_INTERLEAVED_COMPLEX
        p.imaginary = (const char *)p.real + (p.is_double ? sizeof(double) : sizeof(float));
        p.step = 2;
#else
        p.imaginary = mxGetImagData(array);
#endif
    }
    return p;
}

shape shape_of(const mxArray *array, const char *what) {
    need_real(array, what);
    shape s = {mxGetNumberOfElements(array), {0}, 1};
    if (s.count < 2 || s.count > 32) {
        fail(INVALID, "%s has %llu entries: give 2 to 32", what, (unsigned long long)s.count);
    }
    for (mwSize d = 0; d < s.count; d++) {
        uint64_t n = whole_number(element(mxGetData(array), mxIsDouble(array), d), what);
        if (n && s.elements > (SIZE_MAX / 16) / n) {
            fail("recon:SizeOverflow", "%s: the array does not fit in the address space", what);
        }
        s.size[d] = (mwSize)n;
        s.elements *= (size_t)n;
    }
    return s;
}

void need_elements(const shape *s, size_t elements, const char *what) {
    if (s->elements != elements) {
        fail("recon:SizeMismatch", "%s asks for %llu elements where there are %llu", what,
             (unsigned long long)s->elements, (unsigned long long)elements);
    }
}

complex_output new_complex(const shape *s, mxClassID class, uint32_t precision) {
    complex_output made;
    size_t bytes = class == mxDOUBLE_CLASS ? 2 * sizeof(double) : 2 * sizeof(float);
#if defined(RECON_OCTAVE) && MX_HAS_INTERLEAVED_COMPLEX
    /* Octave 7.3 allocates only half of an interleaved array: an empty array gets memory allocated here. */
    mwSize none[2] = {0, 0};
    void *memory = allocate(s->elements, bytes);
    made.array = mxCreateNumericArray(2, none, class, mxCOMPLEX);
    mxFree(mxGetData(made.array));
    mxSetData(made.array, memory);
    mxSetDimensions(made.array, s->size, s->count);
#else
    need_memory(s->elements * bytes);
    made.array = mxCreateUninitNumericArray((size_t)s->count, (mwSize *)s->size, class, mxCOMPLEX);
#endif
    made.precision = precision;
    made.data = usable_in_place(made.array, precision) ? mxGetData(made.array)
                                                       : allocate(s->elements, 2 * bytes_of(precision));
    return made;
}

mxArray *finish_complex(complex_output made) {
    if (!usable_in_place(made.array, made.precision)) {
        size_t count = mxGetNumberOfElements(made.array);
        bool from = made.precision == RECON_F64, to = mxIsDouble(made.array);
        for (size_t i = 0; i < count; i++) {
            double re = element(made.data, from, 2 * i), im = element(made.data, from, 2 * i + 1);
#if MX_HAS_INTERLEAVED_COMPLEX
            set_element(mxGetData(made.array), to, 2 * i, re);
            set_element(mxGetData(made.array), to, 2 * i + 1, im);
#else
            set_element(mxGetData(made.array), to, i, re);
            set_element(mxGetImagData(made.array), to, i, im);
#endif
        }
        mxFree(made.data);
    }
    return made.array;
}

mxArray *new_real(const shape *s, mxClassID class) {
    need_memory(s->elements * (class == mxDOUBLE_CLASS ? sizeof(double) : sizeof(float)));
    return mxCreateNumericArray(s->count, (mwSize *)s->size, class, mxREAL);
}

void set_number(mxArray *structure, const char *name, double value) {
    mxSetField(structure, 0, name, mxCreateDoubleScalar(value));
}

void set_text(mxArray *structure, const char *name, const char *value) {
    mxSetField(structure, 0, name, mxCreateString(value));
}
