/* Functions that commands for files share. files.h declares the readers and writers themselves. */
#ifndef RECON_MEX_FILE_IO_H
#define RECON_MEX_FILE_IO_H

#include "recon_mex.h"

#include "files.h"

#include <stddef.h>

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

/* The results of the readers. MATLAB does not free them: release_files does, at the latest when the next command
 * begins, also if an error ended the command. */
typedef struct {
    recon_files_raw *raw;
    recon_files_images *images;
} held_files;

extern held_files held;

/* Ends the call with a MATLAB error if a reader or writer failed. */
void check_files(recon_status status);
/* Returns the warnings of the last reader or writer. Must be called before any other of them. */
mxArray *warnings_of_files(void);
/* Returns a text that MATLAB code converted to the bytes of UTF-8 (uint8). */
char *utf8_of(const mxArray *bytes, const char *what);

/* A field of a structure of three numbers, and its place in a C structure. */
typedef struct {
    const char *name;
    size_t offset;
} placed;

/* Three doubles. */
void put_vectors(mxArray *structure, mwIndex index, const placed *fields, const void *from);
void get_vectors(const mxArray *structure, mwIndex index, const placed *fields, void *to);
/* One uint32_t. */
void put_counts(mxArray *structure, mwIndex index, const placed *fields, const void *from);
void get_counts(const mxArray *structure, mwIndex index, const placed *fields, void *to);
/* Returns a field of an element of a structure array. It must not be missing or empty. */
const mxArray *need_item(const mxArray *structure, mwIndex index, const char *name);
/* Returns sizes along x, y and z from a vector of three numbers. */
void read_sizes(uint64_t sizes[3], const mxArray *array, const char *what);
mxArray *row_of(const double *numbers, size_t count);
/* Returns the complex numbers of a file, in single precision. */
mxArray *complex_array(const void *data, mwSize dims, const mwSize *sizes);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

#endif
