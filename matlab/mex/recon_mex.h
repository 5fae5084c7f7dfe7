/* Declarations for all files of the MEX file: the conditions of the build, errors, arguments, arrays, and commands.
 *
 * Three conditions decide what is compiled:
 *   RECON_OCTAVE                 recon.build defines it for Octave, which reports Ctrl-C differently from MATLAB.
 *   RECON_GPUARRAY               recon.build defines it if MATLAB has the Parallel Computing Toolbox.
 *   MX_HAS_INTERLEAVED_COMPLEX   mex.h or the compiler defines it. It is 1 if complex arrays are interleaved (MATLAB
 *                                with -R2018a, Octave 7 and newer), and 0 if they are separate (older Octave).
 */
#ifndef RECON_MEX_H
#define RECON_MEX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT, sigaction */
#endif
#include "mex.h"

#include <recon.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RECON_GPUARRAY
#include "gpu/mxGPUArray.h"
#endif

/* The MEX file exports mexFunction alone, so that no other library can replace a function of the same name. */
#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

/* ---- errors.c ---- */

#define INVALID "recon:InvalidArgument"

/* Ends the call with a MATLAB error. */
void fail(const char *identifier, const char *format, ...);
/* Ends the call with a MATLAB error if a call of the library failed. */
void check(recon_status status);

/* ---- warnings.c ---- */

/* Returns the warnings of a plan, as structures of an identifier and a text. MATLAB code issues them: the user may have
 * turned warnings into errors, and no error may be thrown here. */
mxArray *warnings_of(const recon_plan *plan);
/* Returns the warnings of the last call of the library. Must be called before any other call. */
mxArray *warnings_of_call(void);
const char *warning_identifier(uint32_t kind);

/* ---- arguments.c ---- */

/* A word for an argument, and its number in the C API. A list of choices ends with {NULL, 0}. */
typedef struct {
    const char *name;
    uint32_t value;
} choice;


/* Describes an argument for messages: "a 3 x 4 cell array". The text lasts until the next call. */
const char *describe(const mxArray *array);
void need_floats(const mxArray *array, const char *what);
void need_real(const mxArray *array, const char *what);
void need_count(const mxArray *array, size_t count, const char *what);
void need_structure(const mxArray *array, const char *what);
double real_scalar(const mxArray *array, const char *what);
/* Returns an integer from 0 to 2^53, which a double holds exactly, or fails. */
uint64_t whole_number(double value, const char *what);
uint64_t count_of(const mxArray *array, const char *what);
/* Returns true or false as 1 or 0. */
uint32_t flag_of(const mxArray *array, const char *what);
void read_text(const mxArray *array, const char *what, char *text, size_t size);
/* Returns the number in the C API of a word of a library option. */
uint32_t option_value(const mxArray *array, const char *what, const char *option);
uint32_t choose(const mxArray *array, const char *what, const choice *choices);
/* Returns a field of a structure, or NULL if it is missing or empty. */
const mxArray *field(const mxArray *structure, const char *name);
const mxArray *need_field(const mxArray *structure, const char *name);

/* ---- arrays.c ---- */

typedef struct {
    mwSize count; /* of dimensions */
    mwSize size[32];
    size_t elements;
} shape;

/* An output array that is being filled. `data` is interleaved and in this precision; finish_complex writes it to the
 * array if the array's own data have a different form. */
typedef struct {
    mxArray *array;
    void *data;
    uint32_t precision;
} complex_output;

/* Addresses of the numbers of a real or complex array: number i is at i * step. */
typedef struct {
    const void *real, *imaginary; /* imaginary: NULL in a real array */
    size_t step;
    bool is_double;
} parts;

void *allocate(size_t count, size_t size);
mxClassID class_of(uint32_t precision);
size_t bytes_of(uint32_t precision);
/* Returns real numbers in this precision: the array's own data if possible, otherwise a converted copy. */
const void *real_data(const mxArray *array, uint32_t precision, const char *what);
/* The same for complex numbers, interleaved. */
const void *complex_data(const mxArray *array, uint32_t precision, const char *what);
parts parts_of(const mxArray *array);
/* Returns the shape of an output, from a vector of integers. */
shape shape_of(const mxArray *array, const char *what);
void need_elements(const shape *s, size_t elements, const char *what);
complex_output new_complex(const shape *s, mxClassID class, uint32_t precision);
mxArray *finish_complex(complex_output made);
mxArray *new_real(const shape *s, mxClassID class);
void set_number(mxArray *structure, const char *name, double value);
void set_text(mxArray *structure, const char *name, const char *value);

static inline double element(const void *data, bool is_double, size_t i) {
    return is_double ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

static inline void set_element(void *data, bool is_double, size_t i, double value) {
    if (is_double) {
        ((double *)data)[i] = value;
    } else {
        ((float *)data)[i] = (float)value;
    }
}

static inline double real_part(const parts *p, size_t i) {
    return element(p->real, p->is_double, i * p->step);
}

static inline double imaginary_part(const parts *p, size_t i) {
    return p->imaginary ? element(p->imaginary, p->is_double, i * p->step) : 0.0;
}

/* ---- file_io.c ---- */

/* Frees what a command that read a file held. */
void release_files(void);

/* ---- Commands: gateway.c lists them with their names, and checks the number of inputs and outputs ---- */

typedef void command(mxArray **out, const mxArray **in);

command create_plan, destroy_plan, count_plans, plan_info;           /* plans.c */
command set_plan_trajectory, set_plan_weights, set_plan_maps;        /* plans.c */
command multiply, apply_transform;                                   /* transforms.c */
command conjugate_gradients;                                         /* conjugate_gradients.c */
command toeplitz_kernel, save_toeplitz_kernel, load_toeplitz_kernel; /* toeplitz.c */
command make_trajectory, density_weights;                            /* trajectory.c */
command estimate_coil_maps, combine_coils;                           /* coils.c */
command resize_images;                                               /* resize.c */
command noise_covariance, whitening_matrix;                          /* coil_matrices.c */
command compression_matrix, make_virtual_coils;                      /* coil_matrices.c */
command correct_blades;                                              /* blades.c */
command fill_partial_fourier;                                        /* partial_fourier.c */
command make_field_map;                                              /* field_maps.c */
command subtract_phases;                                             /* phase_differences.c */
command phantom_image, phantom_kspace, phantom_coil_maps, add_noise; /* phantom.c */
command image_metrics;                                               /* metrics.c */
command contents_of_file, read_raw_file, read_bart_files;            /* file_raw.c */
command write_raw_file;                                              /* file_raw.c */
command read_file_images, write_file_images;                         /* file_images.c */
command list_devices, option_words, library_version;                 /* library.c */

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

#endif
