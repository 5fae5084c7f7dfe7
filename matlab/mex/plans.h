/* Plans, and the functions that commands with a plan share: its geometry and options, Ctrl-C (which also ends a field
 * map), and the arrays of a transform. */
#ifndef RECON_MEX_PLANS_H
#define RECON_MEX_PLANS_H

#include "recon_mex.h"

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden)
#endif

/* ---- plans.c ---- */

/* A plan. Its handle in MATLAB is the number `id`. */
typedef struct {
    uint64_t id;
    recon_plan *plan;
    recon_plan_properties properties;
    uint64_t samples, coils, voxels;
    /* Shapes of one image and of its data in MATLAB. They have no dimensions if create_plan did not receive them. */
    shape image_shape, kspace_shape;
    bool on_gpu;
    /* Number of running solutions. A progress function may delete the plan: the last solution then frees it. */
    unsigned in_use;
    bool deleted;
} plan_entry;

/* Initialises the list, in the first call of the MEX file. */
void initialise_plans(void);
/* Returns NULL if no plan has this id. */
plan_entry *find_plan(uint64_t id);
plan_entry *need_plan_by_id(uint64_t id);
plan_entry *need_plan(const mxArray *handle);
void remove_plan(plan_entry *e);

/* ---- geometry.c ---- */

/* Reads the structure's precision, image size, coils and frames. */
void read_image_geometry(recon_geometry *geometry, const mxArray *structure);
/* Reads the whole structure. */
void read_geometry(recon_geometry *geometry, const mxArray *structure);
void set_trajectory(recon_geometry *geometry, const mxArray *k);
/* Reads the structure's field_map, decay_map and times; call it after the trajectory is read. */
void set_off_resonance(recon_geometry *geometry, const mxArray *structure);
/* Returns the number of voxels of an image, or 0 if the product is 0 or too large. */
uint64_t voxels_of(const recon_geometry *geometry);
uint64_t need_voxels(const recon_geometry *geometry);

/* ---- plan_options.c ---- */

/* `indices` receives the GPUs of the option Gpus. */
void read_plan_options(recon_options *options, uint32_t indices[64], const mxArray *structure);

/* ---- interrupt.c ---- */

/* A progress function, and how its calls ended. */
typedef struct {
    const mxArray *function;
    bool interrupted;
    mxArray *error;
} progress_state;

/* Callbacks of the library: they return 1 to end its call. */
int on_interrupt(void *user_data);
int on_progress(const recon_progress *p, void *user_data);

/* ---- transforms.c ---- */

/* The input and output of one call, on the host or on the GPU. */
typedef struct {
    const char *in;
    char *out;
    complex_output host;
#ifdef RECON_GPUARRAY
    const mxGPUArray *gpu_in;
    mxGPUArray *gpu_out;
#endif
} operands;

void open_operands(operands *a, const plan_entry *e, const mxArray *input, const shape *out, const char *what);
/* Returns the result, or NULL if the call failed. Frees the memory that MATLAB does not free. */
mxArray *close_operands(operands *a, recon_status status);
/* Returns the number of elements, also of a gpuArray. */
size_t elements_in(const mxArray *input);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

#endif
