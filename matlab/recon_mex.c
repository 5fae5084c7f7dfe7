/* The MEX file behind the +recon package: librecon's C API for MATLAB (R2018a and newer) and GNU Octave.
 *
 *     [outputs] = recon_mex(command, arguments...)
 *
 * The commands are the table at the end; each takes and returns plain arrays, structures and texts. Users call the
 * functions of +recon, which know about shapes; here every type, length and value is checked again, so that no call,
 * however wrong, harms the process. Built by `make matlab` or recon.build, with librecon linked statically.
 *
 * Complex arrays are interleaved (MATLAB with -R2018a, Octave 7 and newer) or separate (older Octave), as mex.h says by
 * MX_HAS_INTERLEAVED_COMPLEX: interleaved arrays of the plan's precision are used in place, all others are converted.
 *
 * What may be changed: anything, so long as an error leaves through fail() or check() only when no resource but
 * mxMalloc'd memory and mxArrays is held: both are freed by MATLAB then, as everything else is not.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "mex.h"

#include <recon.h>

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#ifdef RECON_GPUARRAY
#include "gpu/mxGPUArray.h"
#endif

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

#define INVALID "recon:InvalidArgument"

/* Ends the call with a MATLAB error. */
static void fail(const char *identifier, const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    mexErrMsgIdAndTxt(identifier, "%s", message);
}

/* The identifier of a status, as in catch e, switch e.identifier. */
static const char *identifier_of(recon_status status) {
    switch (status) {
    case RECON_OK: break;
    case RECON_NULL_POINTER: return "recon:NullPointer";
    case RECON_INVALID_SIZE: return "recon:InvalidSize";
    case RECON_SIZE_OVERFLOW: return "recon:SizeOverflow";
    case RECON_SIZE_MISMATCH: return "recon:SizeMismatch";
    case RECON_NOT_FINITE: return "recon:NotFinite";
    case RECON_COORDINATE_OUT_OF_RANGE: return "recon:CoordinateOutOfRange";
    case RECON_TOLERANCE_OUT_OF_RANGE: return "recon:ToleranceOutOfRange";
    case RECON_UNKNOWN_VALUE: return "recon:UnknownValue";
    case RECON_UNKNOWN_STRUCT_SIZE: return "recon:UnknownStructSize";
    case RECON_INVALID_ARGUMENT: return INVALID;
    case RECON_MEMORY_LIMIT: return "recon:MemoryLimit";
    case RECON_OUT_OF_HOST_MEMORY: return "recon:OutOfHostMemory";
    case RECON_OUT_OF_DEVICE_MEMORY: return "recon:OutOfDeviceMemory";
    case RECON_NO_DEVICE: return "recon:NoDevice";
    case RECON_DRIVER_INCOMPLETE: return "recon:DriverIncomplete";
    case RECON_CANCELLED: return "recon:Cancelled";
    case RECON_UNSUPPORTED: return "recon:Unsupported";
    case RECON_IO: return "recon:IO";
    case RECON_BAD_FILE: return "recon:BadFile";
    case RECON_INTERNAL: return "recon:Internal";
    case RECON_DEVICE_FAILED: return "recon:DeviceFailed";
    }
    return "recon:Error";
}

/* Ends the call with a MATLAB error when one of the library's calls failed. */
static void check(recon_status status) {
    if (status == RECON_OK) {
        return;
    }
    if (status == RECON_CANCELLED) {
        fail(identifier_of(status), "cancelled by Ctrl-C");
    }
    /* The library counts as C does. */
    bool index = status == RECON_NOT_FINITE || status == RECON_COORDINATE_OUT_OF_RANGE;
    fail(identifier_of(status), "%s%s", recon_last_error_message(), index ? " (indices count from 0)" : "");
}

/* ---- Arguments ------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    uint32_t value;
} choice;

static bool is_real_number(const mxArray *array) {
    return (mxIsDouble(array) || mxIsSingle(array)) && !mxIsSparse(array);
}

/* What an argument is, for messages: "a 3 x 4 cell". */
static const char *describe(const mxArray *array) {
    static char text[160];
    mwSize count = mxGetNumberOfDimensions(array);
    const mwSize *dims = mxGetDimensions(array);
    size_t used = (size_t)snprintf(text, sizeof text, "a ");
    for (mwSize d = 0; d < count && used < sizeof text; d++) {
        used += (size_t)snprintf(text + used, sizeof text - used, d ? " x %llu" : "%llu", (unsigned long long)dims[d]);
    }
    if (used < sizeof text) {
        bool numeric = mxIsNumeric(array);
        snprintf(text + used, sizeof text - used, " %s%s%s array", mxIsSparse(array) ? "sparse " : "",
                 numeric && mxIsComplex(array) ? "complex " : "", mxGetClassName(array));
    }
    return text;
}

/* An array of single or double, which the caller reads by its class. */
static void need_numbers(const mxArray *array, const char *what) {
    if (!is_real_number(array)) {
        fail(INVALID, "%s is %s: give a full array of single or double", what, describe(array));
    }
}

static void need_real(const mxArray *array, const char *what) {
    need_numbers(array, what);
    if (mxIsComplex(array)) {
        fail(INVALID, "%s is %s: give real numbers", what, describe(array));
    }
}

static void need_count(const mxArray *array, size_t count, const char *what) {
    if (mxGetNumberOfElements(array) != count) {
        fail("recon:SizeMismatch", "%s is %s: %llu elements are wanted", what, describe(array), (unsigned long long)count);
    }
}

static double scalar(const mxArray *array, const char *what) {
    bool numeric = (mxIsNumeric(array) || mxIsLogical(array)) && !mxIsComplex(array) && !mxIsSparse(array);
    if (!numeric || mxGetNumberOfElements(array) != 1) {
        fail(INVALID, "%s is %s: give one real number", what, describe(array));
    }
    return mxGetScalar(array);
}

/* An integer from 0 that a double holds exactly. */
static uint64_t whole(double value, const char *what) {
    if (!(value >= 0.0 && value <= 9007199254740992.0) || value != (double)(uint64_t)value) {
        fail(INVALID, "%s is %g: give a whole number from 0", what, value);
    }
    return (uint64_t)value;
}

static uint64_t count_of(const mxArray *array, const char *what) {
    return whole(scalar(array, what), what);
}

static void text_of(const mxArray *array, const char *what, char *text, size_t size) {
    if (!mxIsChar(array) || mxGetM(array) > 1 || mxGetNumberOfDimensions(array) > 2) {
        fail(INVALID, "%s is %s: give a text", what, describe(array));
    }
    if (mxGetString(array, text, (mwSize)size) != 0) {
        fail(INVALID, "%s is a text of %llu characters: at most %llu are read", what,
             (unsigned long long)mxGetNumberOfElements(array), (unsigned long long)size - 1);
    }
}

static uint32_t choose(const mxArray *array, const char *what, const choice *choices) {
    char text[64], known[400] = "";
    text_of(array, what, text, sizeof text);
    for (const choice *c = choices; c->name; c++) {
        if (strcmp(text, c->name) == 0) {
            return c->value;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s'%s'", used ? ", " : "", c->name);
    }
    fail("recon:UnknownValue", "%s is '%s': give one of %s", what, text, known);
    return 0;
}

/* A field of a structure, or NULL where it is missing or empty. */
static const mxArray *field(const mxArray *structure, const char *name) {
    const mxArray *value = mxGetField(structure, 0, name);
    return value && !mxIsEmpty(value) ? value : NULL;
}

static void need_structure(const mxArray *array, const char *what) {
    if (!mxIsStruct(array) || mxGetNumberOfElements(array) != 1) {
        fail(INVALID, "%s is %s: give one structure", what, describe(array));
    }
}

static const mxArray *need_field(const mxArray *structure, const char *name) {
    const mxArray *value = field(structure, name);
    if (!value) {
        fail(INVALID, "%s is missing or empty", name);
    }
    return value;
}

/* Whether so much memory can be had: asked first, since the errors of mxMalloc and its like have no identifier. */
static void need_memory(size_t bytes) {
    if (bytes > (size_t)1 << 24) {
        void *probe = malloc(bytes);
        if (!probe) {
            fail("recon:OutOfHostMemory", "no memory for %llu bytes", (unsigned long long)bytes);
        }
        free(probe);
    }
}

static void *allocate(size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) {
        fail("recon:SizeOverflow", "%llu elements of %llu bytes do not fit the memory's addresses",
             (unsigned long long)count, (unsigned long long)size);
    }
    need_memory(count * size);
    void *memory = mxMalloc(count && size ? count * size : 1);
    if (!memory) {
        fail("recon:OutOfHostMemory", "no memory for %llu bytes", (unsigned long long)(count * size));
    }
    return memory;
}

static const choice precisions[] = {{"single", RECON_F32}, {"double", RECON_F64}, {NULL, 0}};

static mxClassID class_of(uint32_t precision) {
    return precision == RECON_F64 ? mxDOUBLE_CLASS : mxSINGLE_CLASS;
}

static size_t bytes_of(uint32_t precision) {
    return precision == RECON_F64 ? sizeof(double) : sizeof(float);
}

/* ---- Numbers in and out ---------------------------------------------------------------------------------------- */

static double element(const void *data, bool wide, size_t i) {
    return wide ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static void set_element(void *data, bool wide, size_t i, double value) {
    if (wide) {
        ((double *)data)[i] = value;
    } else {
        ((float *)data)[i] = (float)value;
    }
}

/* Real numbers in this precision: the array's own where it has it, else converted. */
static const void *reals(const mxArray *array, uint32_t precision, const char *what) {
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

#if MX_HAS_INTERLEAVED_COMPLEX
#define REAL_PART(array, i) element(mxGetData(array), mxIsDouble(array), 2 * (i))
#define IMAG_PART(array, i) element(mxGetData(array), mxIsDouble(array), 2 * (i) + 1)
#else
#define REAL_PART(array, i) element(mxGetData(array), mxIsDouble(array), i)
#define IMAG_PART(array, i) element(mxGetImagData(array), mxIsDouble(array), i)
#endif

/* Whether the library can use the data of a complex array as they are. */
static bool fits(const mxArray *array, uint32_t precision) {
    return MX_HAS_INTERLEAVED_COMPLEX && mxIsComplex(array) && mxGetClassID(array) == class_of(precision);
}

/* Complex numbers, interleaved and in this precision: the array's own where it has them so, else converted. */
static const void *complexes(const mxArray *array, uint32_t precision, const char *what) {
    need_numbers(array, what);
    if (fits(array, precision)) {
        return mxGetData(array);
    }
    size_t count = mxGetNumberOfElements(array);
    bool wide = precision == RECON_F64;
    void *converted = allocate(count, 2 * bytes_of(precision));
    if (mxIsComplex(array)) {
        for (size_t i = 0; i < count; i++) {
            set_element(converted, wide, 2 * i, REAL_PART(array, i));
            set_element(converted, wide, 2 * i + 1, IMAG_PART(array, i));
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            set_element(converted, wide, 2 * i, element(mxGetData(array), mxIsDouble(array), i));
            set_element(converted, wide, 2 * i + 1, 0.0);
        }
    }
    return converted;
}

typedef struct {
    mwSize count;
    mwSize size[32];
    size_t elements;
} shape;

/* The shape that an output is to have: a vector of whole numbers. */
static shape shape_of(const mxArray *array, const char *what) {
    need_real(array, what);
    shape s = {mxGetNumberOfElements(array), {0}, 1};
    if (s.count < 2 || s.count > 32) {
        fail(INVALID, "%s has %llu entries: give 2 to 32", what, (unsigned long long)s.count);
    }
    for (mwSize d = 0; d < s.count; d++) {
        uint64_t n = whole(element(mxGetData(array), mxIsDouble(array), d), what);
        if (n && s.elements > (SIZE_MAX / 16) / n) {
            fail("recon:SizeOverflow", "%s: the array does not fit the memory's addresses", what);
        }
        s.size[d] = (mwSize)n;
        s.elements *= (size_t)n;
    }
    return s;
}

static void need_elements(const shape *s, size_t elements, const char *what) {
    if (s->elements != elements) {
        fail("recon:SizeMismatch", "%s asks for %llu elements where there are %llu", what, (unsigned long long)s->elements,
             (unsigned long long)elements);
    }
}

/* An array being made: its data in the library's form, which are the array's own where `fits` says so. */
typedef struct {
    mxArray *array;
    void *data;
    uint32_t precision;
} output;

static output new_complex(const shape *s, mxClassID class, uint32_t precision) {
    output made;
    size_t bytes = class == mxDOUBLE_CLASS ? 2 * sizeof(double) : 2 * sizeof(float);
#if defined(RECON_OCTAVE) && MX_HAS_INTERLEAVED_COMPLEX
    /* Octave 7.3 makes room for half of an interleaved array: the room is made here, and the array given it. */
    mwSize none[2] = {0, 0};
    void *room = allocate(s->elements, bytes);
    made.array = mxCreateNumericArray(2, none, class, mxCOMPLEX);
    mxFree(mxGetData(made.array));
    mxSetData(made.array, room);
    mxSetDimensions(made.array, s->size, s->count);
#else
    need_memory(s->elements * bytes);
    made.array = mxCreateUninitNumericArray((size_t)s->count, (mwSize *)s->size, class, mxCOMPLEX);
#endif
    made.precision = precision;
    made.data = fits(made.array, precision) ? mxGetData(made.array)
                                            : allocate(mxGetNumberOfElements(made.array), 2 * bytes_of(precision));
    return made;
}

static mxArray *finish(output made) {
    if (!fits(made.array, made.precision)) {
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

/* Real numbers, whose form is the same everywhere. */
static mxArray *new_real(const shape *s, mxClassID class) {
    need_memory(s->elements * (class == mxDOUBLE_CLASS ? sizeof(double) : sizeof(float)));
    return mxCreateNumericArray(s->count, (mwSize *)s->size, class, mxREAL);
}

static void set_number(mxArray *structure, const char *name, double value) {
    mxSetField(structure, 0, name, mxCreateDoubleScalar(value));
}

static void set_text(mxArray *structure, const char *name, const char *value) {
    mxSetField(structure, 0, name, mxCreateString(value));
}

/* ---- Plans ----------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t id;
    recon_plan *plan;
    recon_plan_properties properties;
    uint64_t samples, coils, voxels;
    /* Of the arrays that the plan transforms in one piece, as MATLAB sees them; empty where the caller did not say. */
    shape image_shape, kspace_shape;
    bool on_gpu;
    /* Solutions under way, whose progress functions may do anything: a plan that is deleted meanwhile goes with the last. */
    unsigned in_use;
    bool deleted;
} entry;

static struct {
    entry *entries;
    size_t count;
    /* No id of an earlier load of this file is used again, so that what `clear mex` freed is never mistaken. */
    uint64_t next;
} plans;

static void forget(entry *e) {
    recon_plan_destroy(e->plan);
    *e = plans.entries[--plans.count];
    if (plans.count == 0) {
        free(plans.entries);
        plans.entries = NULL;
    }
}

/* `clear mex`, `clear all`, and the end of the session. */
static void forget_all(void) {
    while (plans.count) {
        forget(&plans.entries[plans.count - 1]);
    }
}

static const char was_deleted[] = "the operator was deleted (by delete, clear all or clear mex): make it again";

static uint64_t id_of(const mxArray *array) {
    if (mxIsEmpty(array)) {
        fail("recon:Deleted", "%s", was_deleted);
    }
    if (mxGetClassID(array) != mxUINT64_CLASS || mxIsComplex(array) || mxGetNumberOfElements(array) != 1) {
        fail(INVALID, "the handle is %s: only recon.Encoding makes handles", describe(array));
    }
    return *(const uint64_t *)mxGetData(array);
}

static entry *find(uint64_t id) {
    for (size_t i = 0; i < plans.count; i++) {
        if (plans.entries[i].id == id) {
            return &plans.entries[i];
        }
    }
    return NULL;
}

static entry *need_id(uint64_t id) {
    entry *e = find(id);
    if (!e || e->deleted) {
        fail("recon:Deleted", "%s", was_deleted);
    }
    return e;
}

static entry *need_plan(const mxArray *array) {
    return need_id(id_of(array));
}

/* ---- Ctrl-C and progress ------------------------------------------------------------------------------------------ */

/* A symbol of the host program, or NULL: MATLAB tells of Ctrl-C in functions that no header has, Octave in a variable. */
static void *host_symbol(const char *name) {
#ifdef _WIN32
    HMODULE module = GetModuleHandleA("libut.dll");
    return module ? (void *)GetProcAddress(module, name) : NULL;
#else
    void *symbol = dlsym(RTLD_DEFAULT, name);
#ifndef RECON_OCTAVE
    if (!symbol) {
        /* MATLAB may have loaded its library for itself alone. */
        void *library = dlopen("libut.so", RTLD_LAZY | RTLD_NOLOAD);
        symbol = library ? dlsym(library, name) : NULL;
    }
#endif
    return symbol;
#endif
}

#ifdef RECON_OCTAVE

/* What Octave counts up at SIGINT alone: above 0 while an interrupt is pending, below while one is being handled (its
 * quit.h). octave_signal_caught, which its octave_quit looks at, is set by any signal: by SIGCHLD, when a child of
 * "system" ends. */
static bool interrupt_pending(void) {
    static const volatile sig_atomic_t *state;
    static bool looked;
    if (!looked) {
        looked = true;
        state = host_symbol("octave_interrupt_state");
    }
    return state && *state > 0;
}

static volatile sig_atomic_t held_interrupts;

static void note_interrupt(int signal) {
    (void)signal;
    held_interrupts = 1;
}

#else

typedef union {
    void *address;
    bool (*pending)(void);
    bool (*enable)(bool);
} host_function;

static bool interrupt_pending(void) {
    static host_function f;
    static bool looked;
    if (!looked) {
        looked = true;
        f.address = host_symbol("utIsInterruptPending");
    }
    return f.address && f.pending();
}

#endif

typedef struct {
    const mxArray *function;
    bool interrupted;
    mxArray *error;
} progress_state;

/* Calls state->function(p), which catches its errors and returns them, [] if there was none. Octave throws an exception at
 * Ctrl-C while it interprets, which must not pass through the solver: until the function has returned, Ctrl-C is only
 * noted. */
static void call_function(progress_state *state, const recon_progress *p) {
#ifdef RECON_OCTAVE
    struct sigaction noting, usual;
    memset(&noting, 0, sizeof noting);
    noting.sa_handler = note_interrupt;
    held_interrupts = 0;
    sigaction(SIGINT, &noting, &usual);
#else
    host_function f = {host_symbol("utSetInterruptEnabled")};
    bool enabled = f.address ? f.enable(false) : false;
#endif
    if (interrupt_pending()) {
        state->interrupted = true;
    } else {
        const char *names[] = {"image", "images", "iteration", "iterations", "residual"};
        mxArray *arguments[2] = {(mxArray *)state->function, mxCreateStructMatrix(1, 1, 5, names)};
        set_number(arguments[1], "image", (double)p->image + 1.0);
        set_number(arguments[1], "images", (double)p->images);
        set_number(arguments[1], "iteration", (double)p->iteration);
        set_number(arguments[1], "iterations", (double)p->iterations);
        set_number(arguments[1], "residual", p->residual);
        mxArray *caught = NULL;
        state->error = mexCallMATLABWithTrap(1, &caught, 2, arguments, "feval");
        if (!state->error && caught && !mxIsEmpty(caught)) {
            state->error = caught;
        }
        mxDestroyArray(arguments[1]);
    }
#ifdef RECON_OCTAVE
    sigaction(SIGINT, &usual, NULL);
    if (held_interrupts) {
        state->interrupted = true;
        raise(SIGINT);
    }
#else
    if (f.address) {
        f.enable(enabled);
    }
#endif
}

/* Runs within recon_cg, so that no MATLAB error may pass: they are kept, and returned once the solver has. */
static int on_progress(const recon_progress *p, void *user_data) {
    progress_state *state = user_data;
    call_function(state, p);
    return state->interrupted || state->error ? 1 : 0;
}

/* What every plan asks during its calls. */
static int on_interrupt(void *user_data) {
    (void)user_data;
    return interrupt_pending() ? 1 : 0;
}

/* ---- Commands: plans ------------------------------------------------------------------------------------------- */

/* The trajectory as separate coordinates, from [samples, ndim] reals or from complex kx + i ky. */
static void set_trajectory(recon_geometry *geometry, const mxArray *k) {
    need_numbers(k, "the trajectory");
    bool wide = geometry->precision == RECON_F64, from = mxIsDouble(k);
    size_t elements = mxGetNumberOfElements(k), ndim = mxIsComplex(k) ? 2 : geometry->ndim;
    if (ndim != geometry->ndim) {
        fail("recon:SizeMismatch", "a complex trajectory (kx + 1i*ky) is 2D, the image is 3D: give [samples 3] reals");
    }
    if (!mxIsComplex(k) && elements % ndim != 0) {
        fail("recon:SizeMismatch", "the trajectory is %s: its last dimension must be %u", describe(k), (unsigned)ndim);
    }
    size_t samples = mxIsComplex(k) ? elements : elements / ndim;
    for (size_t axis = 0; axis < ndim; axis++) {
        void *coordinates = allocate(samples, bytes_of(geometry->precision));
        for (size_t i = 0; i < samples; i++) {
            double value;
            if (mxIsComplex(k)) {
                value = axis ? IMAG_PART(k, i) : REAL_PART(k, i);
            } else {
                value = element(mxGetData(k), from, axis * samples + i);
            }
            set_element(coordinates, wide, i, value);
        }
        geometry->coordinates[axis] = coordinates;
    }
    geometry->samples = samples;
}

static void set_dims(recon_geometry *geometry, const mxArray *dims) {
    need_real(dims, "the image size");
    size_t count = mxGetNumberOfElements(dims);
    if (count != 2 && count != 3) {
        fail("recon:InvalidSize", "the image size has %llu entries: give [nx ny] or [nx ny nz]", (unsigned long long)count);
    }
    geometry->ndim = (uint32_t)count;
    for (size_t d = 0; d < count; d++) {
        geometry->dims[d] = whole(element(mxGetData(dims), mxIsDouble(dims), d), "the image size");
    }
}

/* Voxels of an image, 0 where the product does not fit. */
static uint64_t voxels_of(const recon_geometry *geometry) {
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

static uint64_t need_voxels(const recon_geometry *geometry) {
    uint64_t voxels = voxels_of(geometry);
    if (!voxels) {
        fail("recon:InvalidSize", "an image of %llu x %llu x %llu voxels is empty or does not fit the memory's addresses",
             (unsigned long long)geometry->dims[0], (unsigned long long)geometry->dims[1],
             (unsigned long long)(geometry->ndim == 3 ? geometry->dims[2] : 1));
    }
    return voxels;
}

static void start_geometry(recon_geometry *geometry, const mxArray *structure) {
    need_structure(structure, "the geometry");
    check(recon_geometry_init(geometry, sizeof *geometry));
    geometry->precision = choose(need_field(structure, "precision"), "Precision", precisions);
    set_dims(geometry, need_field(structure, "dims"));
    const mxArray *value;
    if ((value = field(structure, "coils"))) {
        geometry->coils = count_of(value, "Coils");
    }
    if ((value = field(structure, "frames"))) {
        geometry->frames = count_of(value, "Frames");
    }
}

static void read_geometry(recon_geometry *geometry, const mxArray *structure) {
    static const choice bases[] = {{"point", RECON_BASIS_POINT}, {"box", RECON_BASIS_BOX}, {NULL, 0}};
    start_geometry(geometry, structure);
    const mxArray *value;
    if ((value = field(structure, "basis"))) {
        geometry->basis = choose(value, "Basis", bases);
    }
    if ((value = field(structure, "voxels"))) {
        const void *positions = reals(value, geometry->precision, "Voxels");
        size_t elements = mxGetNumberOfElements(value);
        if (mxGetNumberOfDimensions(value) != 2 || mxGetN(value) != geometry->ndim) {
            fail("recon:SizeMismatch", "Voxels is %s: give [voxels %u]", describe(value), (unsigned)geometry->ndim);
        }
        geometry->voxel_count = elements / geometry->ndim;
        for (uint32_t d = 0; d < geometry->ndim; d++) {
            geometry->voxels[d] = (const char *)positions + d * geometry->voxel_count * bytes_of(geometry->precision);
        }
    }
    set_trajectory(geometry, need_field(structure, "k"));
    if ((value = field(structure, "weights"))) {
        need_count(value, geometry->samples, "Weights (one number a sample of the trajectory)");
        geometry->weights = reals(value, geometry->precision, "Weights");
    }
    if ((value = field(structure, "maps"))) {
        need_count(value, need_voxels(geometry) * geometry->coils, "Maps ([nx ny coils] or [nx ny nz coils])");
        geometry->coil_maps = complexes(value, geometry->precision, "Maps");
    }
}

static void read_options(recon_options *options, uint32_t indices[64], const mxArray *structure) {
    static const choice methods[] = {
        {"auto", RECON_METHOD_AUTO}, {"exact", RECON_METHOD_EXACT}, {"nufft", RECON_METHOD_NUFFT}, {NULL, 0}};
    static const choice normals[] = {{"auto", RECON_NORMAL_AUTO},
                                     {"toeplitz", RECON_NORMAL_TOEPLITZ},
                                     {"transforms", RECON_NORMAL_TRANSFORMS},
                                     {NULL, 0}};
    static const choice windows[] = {{"kaiser-bessel", RECON_WINDOW_KAISER_BESSEL},
                                     {"gaussian", RECON_WINDOW_GAUSSIAN},
                                     {"bilinear", RECON_WINDOW_BILINEAR},
                                     {NULL, 0}};
    static const choice devices[] = {
        {"auto", RECON_DEVICE_AUTO}, {"cpu", RECON_DEVICE_CPU}, {"cuda", RECON_DEVICE_CUDA}, {NULL, 0}};
    static const choice levels[] = {{"auto", RECON_SIMD_AUTO},
                                    {"baseline", RECON_SIMD_BASELINE},
                                    {"avx2", RECON_SIMD_AVX2},
                                    {"avx512", RECON_SIMD_AVX512},
                                    {NULL, 0}};
    need_structure(structure, "the options");
    check(recon_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Method"))) {
        options->method = choose(value, "Method", methods);
    }
    if ((value = field(structure, "Normal"))) {
        options->normal = choose(value, "Normal", normals);
    }
    if ((value = field(structure, "Window"))) {
        options->window = choose(value, "Window", windows);
    }
    if ((value = field(structure, "Device"))) {
        options->device = choose(value, "Device", devices);
    }
    if ((value = field(structure, "Gpus"))) {
        need_real(value, "Gpus");
        size_t count = mxGetNumberOfElements(value);
        if (count > 64) {
            fail(INVALID, "Gpus lists %llu GPUs: at most 64 are known", (unsigned long long)count);
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t index = whole(element(mxGetData(value), mxIsDouble(value), i), "Gpus");
            if (index < 1 || index > UINT32_MAX) {
                fail(INVALID, "Gpus holds %llu: GPUs are counted from 1, as recon.devices lists them",
                     (unsigned long long)index);
            }
            indices[i] = (uint32_t)(index - 1);
        }
        options->device = RECON_DEVICE_CUDA;
        options->device_count = (uint32_t)count;
        options->device_indices = indices;
    }
    if ((value = field(structure, "Threads"))) {
        uint64_t threads = count_of(value, "Threads");
        options->threads = threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads;
    }
    if ((value = field(structure, "Tolerance"))) {
        options->tolerance = scalar(value, "Tolerance");
    }
    if ((value = field(structure, "MemoryLimit"))) {
        options->memory_limit = count_of(value, "MemoryLimit");
    }
    if ((value = field(structure, "Simd"))) {
        options->simd = choose(value, "Simd", levels);
    }
    if ((value = field(structure, "GpuArray"))) {
        options->pointers_on_device = scalar(value, "GpuArray") != 0.0;
    }
    options->interrupt = on_interrupt;
}

/* What the plan warns of, as structures of an identifier and a text: the caller gives them out, as only MATLAB's code may
 * end with an error in the midst of it (where the user made errors of warnings). */
static mxArray *warnings_of(const recon_plan *plan) {
    const char *names[] = {"identifier", "text"};
    mwSize count = 0;
    uint32_t kind;
    const char *text;
    do {
        check(recon_plan_warning(plan, count, &kind, &text));
    } while (text && ++count);
    mxArray *list = mxCreateStructMatrix(count, 1, 2, names);
    for (mwSize i = 0; i < count; i++) {
        check(recon_plan_warning(plan, i, &kind, &text));
        const char *identifier = "recon:Warning";
        switch (kind) {
        case RECON_WARNING_EXTENT: identifier = "recon:Extent"; break;
        case RECON_WARNING_TOLERANCE: identifier = "recon:Tolerance"; break;
        }
        mxSetField(list, (mwIndex)i, "identifier", mxCreateString(identifier));
        mxSetField(list, (mwIndex)i, "text", mxCreateString(text));
    }
    return list;
}

/* [handle, warnings] = create(geometry, options) */
static void create(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    recon_geometry geometry;
    recon_options options;
    uint32_t indices[64];
    read_geometry(&geometry, in[0]);
    read_options(&options, indices, in[1]);
#ifndef RECON_GPUARRAY
    if (options.pointers_on_device) {
        fail("recon:Unsupported", "this MEX file was built without gpuArray: build it again with recon.build in a MATLAB "
                                  "that has the Parallel Computing Toolbox, or use gather");
    }
#endif
    shape image_shape = {0}, kspace_shape = {0};
    const mxArray *value;
    if ((value = field(in[0], "image_shape"))) {
        image_shape = shape_of(value, "the images' shape");
    }
    if ((value = field(in[0], "kspace_shape"))) {
        kspace_shape = shape_of(value, "the data's shape");
    }
    out[0] = mxCreateNumericMatrix(1, 1, mxUINT64_CLASS, mxREAL);
    /* Room first, so that nothing can fail once the plan is there. */
    entry *entries = realloc(plans.entries, (plans.count + 1) * sizeof *entries);
    if (!entries) {
        fail("recon:OutOfHostMemory", "no memory for another plan");
    }
    plans.entries = entries;
    entry *e = &entries[plans.count];
    memset(e, 0, sizeof *e);
    check(recon_plan_properties_init(&e->properties, sizeof e->properties));
    recon_status status = recon_plan_create(&geometry, &options, &e->plan);
    if (status == RECON_OK) {
        status = recon_plan_info(e->plan, &e->properties);
        if (status != RECON_OK) {
            recon_plan_destroy(e->plan);
        }
    }
    check(status);
    e->id = ++plans.next;
    e->samples = geometry.samples;
    e->coils = geometry.coils;
    e->voxels = voxels_of(&geometry);
    e->image_shape = image_shape;
    e->kspace_shape = kspace_shape;
    e->on_gpu = options.pointers_on_device != 0;
    plans.count++;
    *(uint64_t *)mxGetData(out[0]) = e->id;
    out[1] = warnings_of(e->plan);
}

/* destroy(handle): also of a plan that is not there any more. */
static void destroy(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    (void)out;
    entry *e = find(id_of(in[0]));
    if (e && e->in_use) {
        e->deleted = true;
    } else if (e) {
        forget(e);
    }
}

/* count = plans(): how many are alive. */
static void count_plans(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    (void)in;
    out[0] = mxCreateDoubleScalar((double)plans.count);
}

/* structure = info(handle) */
static void info(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    entry *e = need_plan(in[0]);
    check(recon_plan_info(e->plan, &e->properties));
    const recon_plan_properties *p = &e->properties;
    const char *names[] = {"device",       "simd",     "threads", "precision",  "method",       "width", "grid",
                           "oversampling", "toeplitz", "error",   "host_bytes", "device_bytes", "seconds"};
    out[0] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_text(out[0], "device", p->device);
    set_text(out[0], "simd", p->simd);
    set_number(out[0], "threads", p->threads);
    set_text(out[0], "precision", p->precision == RECON_F64 ? "double" : "single");
    set_text(out[0], "method", p->method == RECON_METHOD_EXACT ? "exact" : "nufft");
    set_number(out[0], "width", p->width);
    mxArray *grid = mxCreateDoubleMatrix(1, p->ndim, mxREAL);
    for (uint32_t d = 0; d < p->ndim; d++) {
        ((double *)mxGetData(grid))[d] = (double)p->grid[d];
    }
    mxSetField(out[0], 0, "grid", grid);
    set_number(out[0], "oversampling", p->oversampling);
    mxSetField(out[0], 0, "toeplitz", mxCreateLogicalScalar(p->toeplitz != 0));
    set_number(out[0], "error", p->error);
    set_number(out[0], "host_bytes", (double)p->host_bytes);
    set_number(out[0], "device_bytes", (double)p->device_bytes);
    set_number(out[0], "seconds", p->seconds);
}

/* ---- Commands: transforms and reconstructions ------------------------------------------------------------------- */

typedef recon_status (*transform)(const recon_plan *plan, const void *in, void *out);

/* Arrays that go in and come out of a transform, on the host or on the GPU. */
typedef struct {
    const char *in;
    char *out;
    output host;
#ifdef RECON_GPUARRAY
    const mxGPUArray *gpu_in;
    mxGPUArray *gpu_out;
#endif
} operands;

static void open_operands(operands *a, const entry *e, const mxArray *input, const shape *out, const char *what) {
    uint32_t precision = e->properties.precision;
    memset(a, 0, sizeof *a);
#ifdef RECON_GPUARRAY
    if (mxIsGPUArray(input) != e->on_gpu) {
        fail(INVALID, e->on_gpu ? "%s is %s: this operator takes gpuArrays" : "%s is %s: make the operator with 'GpuArray', true, or gather it",
             what, describe(input));
    }
    if (e->on_gpu) {
        a->gpu_in = mxGPUCreateFromMxArray(input);
        bool fit = mxGPUGetClassID(a->gpu_in) == class_of(precision) && mxGPUGetComplexity(a->gpu_in) == mxCOMPLEX;
        if (!fit) {
            mxGPUDestroyGPUArray(a->gpu_in);
            fail(INVALID, "%s: give a complex gpuArray of the operator's precision, as by complex(x)", what);
        }
        a->gpu_out = mxGPUCreateGPUArray(out->count, out->size, class_of(precision), mxCOMPLEX, MX_GPU_DO_NOT_INITIALIZE);
        a->in = mxGPUGetDataReadOnly(a->gpu_in);
        a->out = mxGPUGetData(a->gpu_out);
        return;
    }
#endif
    need_numbers(input, what);
    a->in = complexes(input, precision, what);
    a->host = new_complex(out, mxGetClassID(input), precision);
    a->out = a->host.data;
}

/* The result where the call succeeded, else NULL, with nothing left that MATLAB does not free by itself. */
static mxArray *close_operands(operands *a, recon_status status) {
#ifdef RECON_GPUARRAY
    if (a->gpu_out) {
        mxArray *result = status == RECON_OK ? mxGPUCreateMxArrayOnGPU(a->gpu_out) : NULL;
        mxGPUDestroyGPUArray(a->gpu_in);
        mxGPUDestroyGPUArray(a->gpu_out);
        return result;
    }
#endif
    return status == RECON_OK ? finish(a->host) : NULL;
}

/* How many elements of an array an input holds, checked against the plan's: several are transformed one by one. */
static size_t elements_in(const mxArray *input) {
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

enum { FORWARD, FHD, WEIGHTED, NORMAL, GRID, FBP };

/* The transform of as many arrays as the input holds, one after the other. */
static mxArray *transformed(const entry *e, uint32_t which, const mxArray *input, const shape *s) {
    static const transform calls[] = {recon_forward, recon_fhd, recon_weighted_fhd, recon_normal, recon_grid, recon_fbp};
    bool image_in = which == FORWARD || which == NORMAL;
    const char *what = image_in ? "the image" : "the k-space data";
    const recon_plan_properties *p = &e->properties;
    uint64_t in_elements = image_in ? p->image_elements : p->kspace_elements;
    uint64_t out_elements = which == FORWARD ? p->kspace_elements : p->image_elements;
    size_t elements = elements_in(input);
    if (elements == 0 || elements % in_elements != 0) {
        fail("recon:SizeMismatch", "%s has %llu elements: %llu are wanted, or a multiple", what, (unsigned long long)elements,
             (unsigned long long)in_elements);
    }
    size_t repeats = elements / (size_t)in_elements;
    need_elements(s, repeats * (size_t)out_elements, "the output's shape");
    operands a;
    open_operands(&a, e, input, s, what);
    size_t bytes = 2 * bytes_of(p->precision);
    recon_status status = RECON_OK;
    for (size_t r = 0; r < repeats && status == RECON_OK; r++) {
        status = calls[which](e->plan, a.in + r * in_elements * bytes, a.out + r * out_elements * bytes);
    }
    mxArray *result = close_operands(&a, status);
    check(status);
    return result;
}

/* output = apply(handle, which, input, output shape) */
static void apply(int nout, mxArray **out, const mxArray **in) {
    static const choice names[] = {{"forward", FORWARD}, {"fhd", FHD}, {"weighted_fhd", WEIGHTED}, {"normal", NORMAL},
                                   {"grid", GRID},       {"fbp", FBP}, {NULL, 0}};
    (void)nout;
    entry *e = need_plan(in[0]);
    uint32_t which = choose(in[1], "the transform", names);
    shape s = shape_of(in[3], "the output's shape");
    out[0] = transformed(e, which, in[2], &s);
}

static bool has_shape(const mxArray *array, const shape *s) {
    if (mxGetNumberOfDimensions(array) != s->count) {
        return false;
    }
    return memcmp(mxGetDimensions(array), s->size, (size_t)s->count * sizeof *s->size) == 0;
}

/* output = multiply(key, input, what): E * x or E' * y, E^H W E x or E^H W y, for an input of the operator's own shape (of
 * E^H W E x a column as well); [] for any other, of which the caller must find the output's shape. One call and no
 * arithmetic in MATLAB: this is what iterations consist of. key: [handle, whether adjoint, whether columns are wanted]. */
static void multiply(int nout, mxArray **out, const mxArray **in) {
    static const choice names[] = {{"product", FORWARD}, {"normal", NORMAL}, {"rhs", WEIGHTED}, {NULL, 0}};
    (void)nout;
    if (mxGetClassID(in[0]) != mxUINT64_CLASS || mxIsComplex(in[0]) || mxGetNumberOfElements(in[0]) != 3) {
        fail(INVALID, "the key is %s: only recon.Encoding makes keys", describe(in[0]));
    }
    const uint64_t *key = mxGetData(in[0]);
    entry *e = need_id(key[0]);
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
    out[0] = transformed(e, which, in[1], to);
}

/* R of the prior, from MATLAB's compressed columns to compressed rows. */
static void set_matrix(recon_cg_options *options, const mxArray *matrix, const entry *e) {
    if (!mxIsDouble(matrix) || mxGetN(matrix) != e->voxels) {
        fail("recon:SizeMismatch", "Prior is %s: a matrix has one column for each of %llu voxels%s", describe(matrix),
             (unsigned long long)e->voxels, mxGetM(matrix) == e->voxels ? ": permute(Prior, [2 1])" : "");
    }
    size_t rows = mxGetM(matrix), columns = mxGetN(matrix);
    const mwIndex *starts = mxGetJc(matrix), *row_of = mxGetIr(matrix);
    size_t entries = (size_t)starts[columns];
    uint64_t *row_starts = allocate(rows + 1, sizeof *row_starts), *next = allocate(rows, sizeof *next);
    uint64_t *column_of = allocate(entries, sizeof *column_of);
    bool wide = e->properties.precision == RECON_F64;
    void *values = allocate(entries, 2 * bytes_of(e->properties.precision));
    memset(row_starts, 0, (rows + 1) * sizeof *row_starts);
    for (size_t i = 0; i < entries; i++) {
        row_starts[row_of[i] + 1]++;
    }
    for (size_t r = 0; r < rows; r++) {
        row_starts[r + 1] += row_starts[r];
        next[r] = row_starts[r];
    }
    for (size_t c = 0; c < columns; c++) {
        for (size_t i = (size_t)starts[c]; i < (size_t)starts[c + 1]; i++) {
            size_t to = (size_t)next[row_of[i]]++;
            column_of[to] = c;
            bool complex = mxIsComplex(matrix);
            set_element(values, wide, 2 * to, complex ? REAL_PART(matrix, i) : element(mxGetData(matrix), true, i));
            set_element(values, wide, 2 * to + 1, complex ? IMAG_PART(matrix, i) : 0.0);
        }
    }
    options->prior = RECON_PRIOR_MATRIX;
    options->matrix_rows = rows;
    options->matrix_starts = row_starts;
    options->matrix_columns = column_of;
    options->matrix_values = values;
}

static void read_cg_options(recon_cg_options *options, progress_state *progress, const mxArray *structure, const entry *e) {
    static const choice units[] = {{"relative", RECON_LAMBDA_RELATIVE}, {"absolute", RECON_LAMBDA_ABSOLUTE}, {NULL, 0}};
    static const choice priors[] = {{"identity", RECON_PRIOR_IDENTITY},
                                    {"differences", RECON_PRIOR_DIFFERENCES},
                                    {"anatomical", RECON_PRIOR_ANATOMICAL},
                                    {NULL, 0}};
    uint32_t precision = e->properties.precision;
    need_structure(structure, "the options");
    check(recon_cg_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Iterations"))) {
        options->iterations = count_of(value, "Iterations");
    }
    if ((value = field(structure, "Residual"))) {
        options->tolerance = scalar(value, "Residual");
    }
    if ((value = field(structure, "Lambda"))) {
        options->lambda = scalar(value, "Lambda");
    }
    if ((value = field(structure, "LambdaUnit"))) {
        options->lambda_unit = choose(value, "LambdaUnit", units);
    }
    if ((value = field(structure, "Edge"))) {
        options->edge = scalar(value, "Edge");
    }
    if ((value = field(structure, "Prior"))) {
        if (mxIsSparse(value)) {
            set_matrix(options, value, e);
        } else if (mxIsNumeric(value)) {
            fail(INVALID, "Prior is %s: give a sparse matrix, as by sparse(R), or a name", describe(value));
        } else {
            options->prior = choose(value, "Prior", priors);
        }
    }
    if ((value = field(structure, "Reference"))) {
        need_count(value, (size_t)e->voxels, "Reference");
        options->reference = reals(value, precision, "Reference");
    } else if (options->prior == RECON_PRIOR_ANATOMICAL) {
        fail(INVALID, "the prior 'anatomical' needs the option Reference, a real image");
    }
    if ((value = field(structure, "Initial"))) {
        need_count(value, (size_t)e->properties.image_elements, "Initial");
        options->initial = complexes(value, precision, "Initial");
    }
    if ((value = field(structure, "Progress"))) {
        if (!mxIsClass(value, "function_handle")) {
            fail(INVALID, "Progress is %s: give true, or a function of one structure", describe(value));
        }
        progress->function = value;
        options->progress = on_progress;
        options->user_data = progress;
    }
}

/* [image, report, error] = cg(handle, kspace, options, image shape): an error of the progress function ends the solution,
 * and is returned alone, for the caller to throw. */
static void solve(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    static const char *const stops[] = {"iterations", "tolerance", "exact"};
    entry *e = need_plan(in[0]);
    shape s = shape_of(in[3], "the image's shape");
    progress_state progress = {NULL, false, NULL};
    recon_cg_options options;
    recon_cg_report report;
    read_cg_options(&options, &progress, in[2], e);
    if (elements_in(in[1]) != e->properties.kspace_elements) {
        fail("recon:SizeMismatch", "the k-space data have %llu elements: %llu are wanted",
             (unsigned long long)elements_in(in[1]), (unsigned long long)e->properties.kspace_elements);
    }
    need_elements(&s, (size_t)e->properties.image_elements, "the image's shape");

    check(recon_cg_report_init(&report, sizeof report));
    uint64_t images = e->properties.image_elements / e->voxels;
    mxArray *residuals = NULL;
    const mxArray *wanted = field(in[2], "Residuals");
    if (wanted && scalar(wanted, "Residuals") != 0.0) {
        if (options.iterations > ((uint64_t)1 << 40) / images) {
            fail("recon:SizeOverflow", "Iterations is %llu: no report can hold as many residuals",
                 (unsigned long long)options.iterations);
        }
        shape r = {2, {(mwSize)options.iterations + 1, (mwSize)images}, ((size_t)options.iterations + 1) * (size_t)images};
        residuals = new_real(&r, mxDOUBLE_CLASS);
        report.residual_capacity = r.elements;
        report.residuals = mxGetData(residuals);
    }
    operands a;
    open_operands(&a, e, in[1], &s, "the k-space data");
    /* The entry may move, and this file must stay, whatever the progress function does. */
    uint64_t id = e->id;
    e->in_use++;
    mexLock();
    recon_status status = recon_cg(e->plan, a.in, a.out, &options, &report);
    mexUnlock();
    e = find(id);
    if (--e->in_use == 0 && e->deleted) {
        forget(e);
    }
    out[0] = close_operands(&a, status);
    if (progress.error) {
        out[0] = mxCreateDoubleMatrix(0, 0, mxREAL);
        out[1] = mxCreateDoubleMatrix(0, 0, mxREAL);
        out[2] = progress.error;
        return;
    }
    check(status);
    out[2] = mxCreateDoubleMatrix(0, 0, mxREAL);
    const char *names[] = {"stop",      "images",          "worst_image",       "iterations", "residual",
                           "q_seconds", "adjoint_seconds", "iteration_seconds", "lambda",     "residuals"};
    out[1] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_text(out[1], "stop", report.stop < 3 ? stops[report.stop] : "other");
    set_number(out[1], "images", (double)report.images);
    set_number(out[1], "worst_image", (double)report.worst_image + 1.0);
    set_number(out[1], "iterations", (double)report.iterations);
    set_number(out[1], "residual", report.residual);
    set_number(out[1], "lambda", report.lambda);
    set_number(out[1], "q_seconds", report.q_seconds);
    set_number(out[1], "adjoint_seconds", report.adjoint_seconds);
    set_number(out[1], "iteration_seconds", report.iteration_seconds);
    if (residuals) {
        mxSetField(out[1], 0, "residuals", residuals);
    }
}

/* weights = density(handle, method, iterations, tolerance, shape, class) */
static void density(int nout, mxArray **out, const mxArray **in) {
    static const choice methods[] = {{"pipe-menon", RECON_DENSITY_PIPE_MENON},
                                     {"ramp", RECON_DENSITY_RAMP},
                                     {"jackson", RECON_DENSITY_JACKSON},
                                     {NULL, 0}};
    (void)nout;
    entry *e = need_plan(in[0]);
    uint32_t method = choose(in[1], "the density method", methods);
    uint64_t iterations = count_of(in[2], "Iterations");
    double tolerance = scalar(in[3], "Tolerance");
    shape s = shape_of(in[4], "the weights' shape");
    need_elements(&s, (size_t)e->samples, "the weights' shape");
    out[0] = new_real(&s, class_of(e->properties.precision));
    check(recon_density(e->plan, method, iterations, tolerance, mxGetData(out[0])));
}

/* maps = coil_maps(handle, kspace, calibration, shape) */
static void coil_maps(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    entry *e = need_plan(in[0]);
    shape s = shape_of(in[3], "the maps' shape");
    need_elements(&s, (size_t)(e->voxels * e->coils), "the maps' shape");
    need_numbers(in[1], "the k-space data");
    need_count(in[1], (size_t)e->properties.kspace_elements, "the k-space data");
    uint64_t calibration = count_of(in[2], "Calibration");
    const void *kspace = complexes(in[1], e->properties.precision, "the k-space data");
    output maps = new_complex(&s, mxGetClassID(in[1]), e->properties.precision);
    check(recon_coil_maps(e->plan, kspace, calibration, maps.data));
    out[0] = finish(maps);
}

/* kernel = q(handle, shape) */
static void q(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    entry *e = need_plan(in[0]);
    shape s = shape_of(in[1], "the kernel's shape");
    need_elements(&s, (size_t)e->properties.q_elements, "the kernel's shape");
    output kernel = new_complex(&s, class_of(e->properties.precision), e->properties.precision);
    check(recon_q(e->plan, kernel.data));
    out[0] = finish(kernel);
}

static char *path_of(const mxArray *array) {
    size_t size = 4 * mxGetNumberOfElements(array) + 1;
    char *path = allocate(size, 1);
    text_of(array, "the file's name", path, size);
    return path;
}

/* save_q(handle, file) */
static void save_q(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    (void)out;
    check(recon_plan_save_q(need_plan(in[0])->plan, path_of(in[1])));
}

/* load_q(handle, file) */
static void load_q(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    (void)out;
    check(recon_plan_load_q(need_plan(in[0])->plan, path_of(in[1])));
}

/* ---- Commands without a plan ----------------------------------------------------------------------------------- */

/* image = combine(geometry, images, method, shape) */
static void combine(int nout, mxArray **out, const mxArray **in) {
    static const choice methods[] = {
        {"rss", RECON_COMBINE_ROOT_SUM_OF_SQUARES}, {"adaptive", RECON_COMBINE_ADAPTIVE}, {NULL, 0}};
    (void)nout;
    recon_geometry geometry;
    start_geometry(&geometry, in[0]);
    uint32_t method = choose(in[2], "the method", methods);
    shape s = shape_of(in[3], "the image's shape");
    size_t voxels = (size_t)need_voxels(&geometry);
    need_elements(&s, voxels * (size_t)geometry.frames, "the image's shape");
    need_numbers(in[1], "the coil images");
    need_count(in[1], s.elements * (size_t)geometry.coils, "the coil images");
    const void *images = complexes(in[1], geometry.precision, "the coil images");
    output image = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_combine(&geometry, method, images, image.data));
    out[0] = finish(image);
}

/* k = trajectory(kind, precision, numbers, shape): numbers as in recon.h, the shape [samples, ..., ndim] */
static void trajectory(int nout, mxArray **out, const mxArray **in) {
    enum { CARTESIAN, RADIAL, RADIAL_GOLDEN, STACK, STACK_GOLDEN, RADIAL3D, SPIRAL, ROSETTE, PROPELLER };
    static const choice kinds[] = {{"cartesian", CARTESIAN},
                                   {"radial", RADIAL},
                                   {"radial-golden", RADIAL_GOLDEN},
                                   {"stackofstars", STACK},
                                   {"stackofstars-golden", STACK_GOLDEN},
                                   {"radial3d", RADIAL3D},
                                   {"spiral", SPIRAL},
                                   {"rosette", ROSETTE},
                                   {"propeller", PROPELLER},
                                   {NULL, 0}};
    static const struct {
        size_t numbers, counts, ndim;
    } wanted[] = {{3, 3, 0}, {2, 2, 2}, {2, 2, 2}, {3, 3, 3}, {3, 3, 3}, {2, 2, 3}, {4, 2, 2}, {4, 2, 2}, {3, 3, 2}};
    (void)nout;
    uint32_t kind = choose(in[0], "the trajectory", kinds), precision = choose(in[1], "the class", precisions);
    need_real(in[2], "the trajectory's numbers");
    size_t given = mxGetNumberOfElements(in[2]), ndim = wanted[kind].ndim;
    if (kind == CARTESIAN ? given < 1 || given > 3 : given != wanted[kind].numbers) {
        fail("recon:SizeMismatch", "a %s trajectory does not take %llu numbers", kinds[kind].name, (unsigned long long)given);
    }
    double numbers[4] = {0};
    uint64_t counts[3] = {0}, samples = 1;
    for (size_t i = 0; i < given; i++) {
        numbers[i] = element(mxGetData(in[2]), mxIsDouble(in[2]), i);
        if (i < wanted[kind].counts) {
            counts[i] = whole(numbers[i], "a count of the trajectory");
            if (counts[i] && samples > ((uint64_t)1 << 48) / counts[i]) {
                fail("recon:SizeOverflow", "the trajectory does not fit the memory's addresses");
            }
            samples *= counts[i];
        }
    }
    if (kind == CARTESIAN) {
        ndim = given;
    }
    shape s = shape_of(in[3], "the trajectory's shape");
    need_elements(&s, (size_t)samples * ndim, "the trajectory's shape");
    out[0] = new_real(&s, class_of(precision));
    char *k[3];
    for (size_t axis = 0; axis < 3; axis++) {
        k[axis] = axis < ndim ? (char *)mxGetData(out[0]) + axis * samples * bytes_of(precision) : NULL;
    }
    switch (kind) {
    case CARTESIAN: check(recon_trajectory_cartesian(precision, (uint32_t)ndim, counts, k[0], k[1], k[2])); break;
    case RADIAL:
    case RADIAL_GOLDEN:
        check(recon_trajectory_radial2d(precision, counts[0], counts[1],
                                        kind == RADIAL ? RECON_SPOKES_LINEAR : RECON_SPOKES_GOLDEN_ANGLE, k[0], k[1]));
        break;
    case STACK:
    case STACK_GOLDEN:
        check(recon_trajectory_stack_of_stars(precision, counts[0], counts[1], counts[2],
                                              kind == STACK ? RECON_SPOKES_LINEAR : RECON_SPOKES_GOLDEN_ANGLE, k[0], k[1],
                                              k[2]));
        break;
    case RADIAL3D: check(recon_trajectory_radial3d(precision, counts[0], counts[1], k[0], k[1], k[2])); break;
    case SPIRAL:
        check(recon_trajectory_spiral(precision, counts[0], counts[1], numbers[2], numbers[3], k[0], k[1]));
        break;
    case ROSETTE:
        check(recon_trajectory_rosette(precision, counts[0], counts[1], numbers[2], numbers[3], k[0], k[1]));
        break;
    case PROPELLER: check(recon_trajectory_propeller(precision, counts[0], counts[1], counts[2], k[0], k[1])); break;
    }
}

/* The phantom's ellipses, [shapes, 10] with a row each as users write them; NULL for the head of Shepp and Logan. */
static const double *shapes_of(const mxArray *array, uint64_t *count) {
    *count = 0;
    if (mxIsEmpty(array)) {
        return NULL;
    }
    need_real(array, "Shapes");
    if (mxGetNumberOfDimensions(array) != 2 || mxGetN(array) != 10) {
        fail("recon:SizeMismatch", "Shapes is %s: give [shapes 10]", describe(array));
    }
    size_t rows = mxGetM(array);
    double *shapes = allocate(rows * 10, sizeof *shapes);
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < 10; c++) {
            shapes[10 * r + c] = element(mxGetData(array), mxIsDouble(array), c * rows + r);
        }
    }
    *count = rows;
    return shapes;
}

/* image = phantom_image(geometry, shapes, supersample, shape) */
static void phantom_image(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    recon_geometry geometry;
    uint64_t count;
    start_geometry(&geometry, in[0]);
    const double *shapes = shapes_of(in[1], &count);
    uint64_t supersample = count_of(in[2], "Supersample");
    shape s = shape_of(in[3], "the image's shape");
    need_elements(&s, (size_t)need_voxels(&geometry), "the image's shape");
    void *image = allocate(s.elements, 2 * bytes_of(geometry.precision));
    check(recon_phantom_image(&geometry, shapes, count, supersample, image));
    /* A phantom is real, and MATLAB users expect it so. */
    bool wide = geometry.precision == RECON_F64;
    out[0] = new_real(&s, class_of(geometry.precision));
    for (size_t i = 0; i < s.elements; i++) {
        set_element(mxGetData(out[0]), wide, i, element(image, wide, 2 * i));
    }
}

/* kspace = phantom_kspace(geometry, shapes, coil model, threads, shape) */
static void phantom_kspace(int nout, mxArray **out, const mxArray **in) {
    static const choice models[] = {{"uniform", RECON_COILS_UNIFORM}, {"ring", RECON_COILS_RING}, {NULL, 0}};
    (void)nout;
    recon_geometry geometry;
    uint64_t count;
    start_geometry(&geometry, in[0]);
    set_trajectory(&geometry, need_field(in[0], "k"));
    const double *shapes = shapes_of(in[1], &count);
    uint32_t model = choose(in[2], "the coils' model", models);
    uint64_t threads = count_of(in[3], "Threads");
    shape s = shape_of(in[4], "the data's shape");
    if (geometry.coils > s.elements) {
        fail("recon:SizeMismatch", "the data's shape has no room for %llu coils", (unsigned long long)geometry.coils);
    }
    need_elements(&s, (size_t)(geometry.samples * geometry.coils), "the data's shape");
    output kspace = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_phantom_kspace(&geometry, shapes, count, model, threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads,
                               kspace.data));
    out[0] = finish(kspace);
}

/* maps = phantom_coil_maps(geometry, shape) */
static void phantom_coil_maps(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    recon_geometry geometry;
    start_geometry(&geometry, in[0]);
    shape s = shape_of(in[1], "the maps' shape");
    if (geometry.coils > s.elements) {
        fail("recon:SizeMismatch", "the maps' shape has no room for %llu coils", (unsigned long long)geometry.coils);
    }
    need_elements(&s, (size_t)(need_voxels(&geometry) * geometry.coils), "the maps' shape");
    output maps = new_complex(&s, class_of(geometry.precision), geometry.precision);
    check(recon_phantom_coil_maps(&geometry, maps.data));
    out[0] = finish(maps);
}

/* [noisy, deviation] = add_noise(kspace, snr, seed, shape) */
static void add_noise(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    recon_geometry geometry;
    need_numbers(in[0], "the k-space data");
    double snr = scalar(in[1], "the SNR"), deviation;
    uint64_t seed = count_of(in[2], "Seed");
    shape s = shape_of(in[3], "the data's shape");
    need_elements(&s, mxGetNumberOfElements(in[0]), "the data's shape");
    check(recon_geometry_init(&geometry, sizeof geometry));
    geometry.precision = mxIsDouble(in[0]) ? RECON_F64 : RECON_F32;
    geometry.samples = s.elements;
    output noisy = new_complex(&s, mxGetClassID(in[0]), geometry.precision);
    memcpy(noisy.data, complexes(in[0], geometry.precision, "the k-space data"), s.elements * 2 * bytes_of(geometry.precision));
    check(recon_add_noise(&geometry, snr, seed, noisy.data, &deviation));
    out[0] = finish(noisy);
    out[1] = mxCreateDoubleScalar(deviation);
}

/* structure = metrics(image, truth, mask, part, scale) */
static void metrics(int nout, mxArray **out, const mxArray **in) {
    static const choice parts[] = {{"complex", RECON_PART_COMPLEX}, {"magnitude", RECON_PART_MAGNITUDE}, {NULL, 0}};
    static const choice scales[] = {{"none", RECON_SCALE_NONE}, {"best", RECON_SCALE_BEST}, {NULL, 0}};
    (void)nout;
    recon_geometry geometry;
    recon_quality quality;
    need_numbers(in[0], "the image");
    need_numbers(in[1], "the truth");
    size_t count = mxGetNumberOfElements(in[0]);
    if (mxGetNumberOfElements(in[1]) != count) {
        fail("recon:SizeMismatch", "the image has %llu elements, the truth %llu", (unsigned long long)count,
             (unsigned long long)mxGetNumberOfElements(in[1]));
    }
    uint8_t *mask = NULL;
    if (!mxIsEmpty(in[2])) {
        if (!mxIsLogical(in[2]) || mxIsSparse(in[2])) {
            fail(INVALID, "Mask is %s: give a full logical array", describe(in[2]));
        }
        need_count(in[2], count, "Mask");
        mask = allocate(count, 1);
        for (size_t i = 0; i < count; i++) {
            mask[i] = ((const mxLogical *)mxGetData(in[2]))[i] ? 1 : 0;
        }
    }
    check(recon_geometry_init(&geometry, sizeof geometry));
    geometry.precision = mxIsDouble(in[0]) && mxIsDouble(in[1]) ? RECON_F64 : RECON_F32;
    geometry.dims[0] = count;
    geometry.dims[1] = 1;
    check(recon_quality_init(&quality, sizeof quality));
    check(recon_metrics(&geometry, complexes(in[0], geometry.precision, "the image"),
                        complexes(in[1], geometry.precision, "the truth"), mask, choose(in[3], "Part", parts),
                        choose(in[4], "Scale", scales), &quality));
    const char *names[] = {"percent_error", "mse", "psnr_db", "snr_db", "scale"};
    out[0] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_number(out[0], "percent_error", quality.percent_error);
    set_number(out[0], "mse", quality.mse);
    set_number(out[0], "psnr_db", quality.psnr_db);
    set_number(out[0], "snr_db", quality.snr_db);
    shape one = {2, {1, 1}, 1};
    output scale = new_complex(&one, mxDOUBLE_CLASS, RECON_F64);
    ((double *)scale.data)[0] = quality.scale_re;
    ((double *)scale.data)[1] = quality.scale_im;
    mxSetField(out[0], 0, "scale", finish(scale));
}

/* structures = devices() */
static void devices(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    (void)in;
    const char *names[] = {"index", "name", "multiprocessors", "compute", "memory_bytes", "memory_free_bytes"};
    uint32_t count = recon_device_count();
    out[0] = mxCreateStructMatrix(count, 1, sizeof names / sizeof *names, names);
    for (uint32_t i = 0; i < count; i++) {
        recon_device_properties p;
        char compute[32];
        check(recon_device_properties_init(&p, sizeof p));
        check(recon_device_info(i, &p));
        snprintf(compute, sizeof compute, "%u.%u", (unsigned)p.compute_major, (unsigned)p.compute_minor);
        mxSetField(out[0], i, "index", mxCreateDoubleScalar(i + 1.0));
        mxSetField(out[0], i, "name", mxCreateString(p.name));
        mxSetField(out[0], i, "multiprocessors", mxCreateDoubleScalar(p.multiprocessors));
        mxSetField(out[0], i, "compute", mxCreateString(compute));
        mxSetField(out[0], i, "memory_bytes", mxCreateDoubleScalar((double)p.memory_bytes));
        mxSetField(out[0], i, "memory_free_bytes", mxCreateDoubleScalar((double)p.memory_free_bytes));
    }
}

/* text = version() */
static void version(int nout, mxArray **out, const mxArray **in) {
    (void)nout;
    (void)in;
    out[0] = mxCreateString(recon_version());
}

/* ---- The gateway ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int inputs, outputs;
    void (*run)(int nout, mxArray **out, const mxArray **in);
} commands[] = {
    {"create", 2, 2, create},
    {"destroy", 1, 0, destroy},
    {"plans", 0, 1, count_plans},
    {"info", 1, 1, info},
    {"multiply", 3, 1, multiply},
    {"apply", 4, 1, apply},
    {"cg", 4, 3, solve},
    {"density", 5, 1, density},
    {"coil_maps", 4, 1, coil_maps},
    {"q", 2, 1, q},
    {"save_q", 2, 0, save_q},
    {"load_q", 2, 0, load_q},
    {"combine", 4, 1, combine},
    {"trajectory", 4, 1, trajectory},
    {"phantom_image", 4, 1, phantom_image},
    {"phantom_kspace", 5, 1, phantom_kspace},
    {"phantom_coil_maps", 2, 1, phantom_coil_maps},
    {"add_noise", 4, 2, add_noise},
    {"metrics", 5, 1, metrics},
    {"devices", 0, 1, devices},
    {"version", 0, 1, version},
};

void mexFunction(int nlhs, mxArray *plhs[], int nrhs, const mxArray *prhs[]) {
    if (plans.next == 0) {
#ifdef __GLIBC__
        /* From a block that is given back glibc learns that such blocks come and go, and keeps the pages of results, which
         * it would else ask of the system anew in each call: a tenth of the time of a transform. */
        free(malloc((size_t)31 << 20));
#endif
        plans.next = ((uint64_t)time(NULL) << 24) ^ ((uint64_t)(uintptr_t)&plans << 4);
        mexAtExit(forget_all);
    }
    char name[64];
    if (nrhs < 1) {
        fail(INVALID, "recon_mex serves the functions of +recon: see help recon");
    }
    text_of(prhs[0], "the command", name, sizeof name);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            bool several = commands[i].outputs > 1;
            if (nrhs - 1 != commands[i].inputs ||
                (several ? nlhs != commands[i].outputs : nlhs > 1)) {
                fail(INVALID, "recon_mex('%s') takes %d arguments and returns %d", name, commands[i].inputs,
                     commands[i].outputs);
            }
            commands[i].run(nlhs, plhs, prhs + 1);
            return;
        }
    }
    fail(INVALID, "recon_mex knows no command '%s'", name);
}
