/* Plans: the list of all plans, and the commands that create, destroy and describe them. */
#include "plans.h"

#include <time.h>

static struct {
    plan_entry *entries;
    size_t count;
    uint64_t last_id;
} plans;

/* `clear mex`, `clear all` and the end of the session. */
static void remove_all_plans(void) {
    while (plans.count) {
        remove_plan(&plans.entries[plans.count - 1]);
    }
}

/* `clear mex` unloads the library, so the memory that it keeps for the next plan must be released first. */
static void remove_everything(void) {
    remove_all_plans();
    release_files();
    recon_release_memory();
}

void initialise_plans(void) {
    if (plans.last_id != 0) {
        return;
    }
#ifdef __GLIBC__
    /* glibc gives large blocks back to the system at once, until a block of this size was freed: then it keeps the
     * memory of results for the next call. Without this a transform takes a tenth longer. */
    free(malloc((size_t)31 << 20));
#endif
    /* After `clear mex` the ids are new, so no old handle refers to a new plan. */
    plans.last_id = ((uint64_t)time(NULL) << 24) ^ ((uint64_t)(uintptr_t)&plans << 4);
    mexAtExit(remove_everything);
}

plan_entry *find_plan(uint64_t id) {
    for (size_t i = 0; i < plans.count; i++) {
        if (plans.entries[i].id == id) {
            return &plans.entries[i];
        }
    }
    return NULL;
}

static const char was_deleted[] = "the operator was deleted (by delete, clear all or clear mex): make it again";

plan_entry *need_plan_by_id(uint64_t id) {
    plan_entry *e = find_plan(id);
    if (!e || e->deleted) {
        fail("recon:Deleted", "%s", was_deleted);
    }
    return e;
}

static uint64_t id_of(const mxArray *handle) {
    if (mxIsEmpty(handle)) {
        fail("recon:Deleted", "%s", was_deleted);
    }
    if (mxGetClassID(handle) != mxUINT64_CLASS || mxIsComplex(handle) || mxGetNumberOfElements(handle) != 1) {
        fail(INVALID, "the handle is %s: only recon.Encoding makes handles", describe(handle));
    }
    return *(const uint64_t *)mxGetData(handle);
}

plan_entry *need_plan(const mxArray *handle) {
    return need_plan_by_id(id_of(handle));
}

void remove_plan(plan_entry *e) {
    recon_plan_destroy(e->plan);
    *e = plans.entries[--plans.count];
    if (plans.count == 0) {
        free(plans.entries);
        plans.entries = NULL;
    }
}

/* Adds a plan to the list. Allocates first, so that nothing can fail after the plan exists. */
static plan_entry *add_plan(const recon_geometry *geometry, const recon_options *options) {
    plan_entry *entries = realloc(plans.entries, (plans.count + 1) * sizeof *entries);
    if (!entries) {
        fail("recon:OutOfHostMemory", "no memory for a new plan: delete operators that are not needed");
    }
    plans.entries = entries;
    plan_entry *e = &entries[plans.count];
    memset(e, 0, sizeof *e);
    check(recon_plan_properties_init(&e->properties, sizeof e->properties));
    recon_status status = recon_plan_create(geometry, options, &e->plan);
    if (status == RECON_OK) {
        status = recon_plan_info(e->plan, &e->properties);
        if (status != RECON_OK) {
            recon_plan_destroy(e->plan);
        }
    }
    check(status);
    e->id = ++plans.last_id;
    plans.count++;
    return e;
}

/* [handle, warnings] = create(geometry, options) */
void create_plan(mxArray **out, const mxArray **in) {
    recon_geometry geometry;
    recon_options options;
    uint32_t indices[64];
    read_geometry(&geometry, in[0]);
    read_plan_options(&options, indices, in[1]);
#ifndef RECON_GPUARRAY
    if (options.pointers_on_device) {
        fail("recon:Unsupported", "this MEX file was built without gpuArray: build it again with recon.build in a "
                                  "MATLAB that has the Parallel Computing Toolbox, or use gather");
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
    plan_entry *e = add_plan(&geometry, &options);
    e->samples = geometry.samples;
    e->coils = geometry.coils;
    e->voxels = voxels_of(&geometry);
    e->image_shape = image_shape;
    e->kspace_shape = kspace_shape;
    e->on_gpu = options.pointers_on_device != 0;
    *(uint64_t *)mxGetData(out[0]) = e->id;
    out[1] = warnings_of(e->plan);
}

/* warnings = set_trajectory(handle, geometry): the geometry of `create`; without maps the plan keeps its own. */
void set_plan_trajectory(mxArray **out, const mxArray **in) {
    plan_entry *e = need_plan(in[0]);
    recon_geometry geometry;
    read_geometry(&geometry, in[1]);
    shape kspace_shape = {0};
    const mxArray *value = field(in[1], "kspace_shape");
    if (value) {
        kspace_shape = shape_of(value, "the data's shape");
    }
    check(recon_plan_set_trajectory(e->plan, &geometry));
    e->samples = geometry.samples;
    e->kspace_shape = kspace_shape;
    check(recon_plan_info(e->plan, &e->properties));
    out[0] = warnings_of(e->plan);
}

/* set_weights(handle, weights): removes them if the array is empty. */
void set_plan_weights(mxArray **out, const mxArray **in) {
    (void)out;
    plan_entry *e = need_plan(in[0]);
    size_t count = mxGetNumberOfElements(in[1]);
    const void *weights = count ? real_data(in[1], e->properties.precision, "Weights") : NULL;
    check(recon_plan_set_weights(e->plan, weights, count));
}

/* set_maps(handle, maps) */
void set_plan_maps(mxArray **out, const mxArray **in) {
    (void)out;
    plan_entry *e = need_plan(in[0]);
    const void *maps = complex_data(in[1], e->properties.precision, "Maps");
    check(recon_plan_set_coil_maps(e->plan, maps, mxGetNumberOfElements(in[1])));
}

/* destroy(handle): no error if the plan was already destroyed. */
void destroy_plan(mxArray **out, const mxArray **in) {
    (void)out;
    plan_entry *e = find_plan(id_of(in[0]));
    if (e && e->in_use) {
        e->deleted = true;
    } else if (e) {
        remove_plan(e);
    }
}

/* count = plans(): number of existing plans. */
void count_plans(mxArray **out, const mxArray **in) {
    (void)in;
    out[0] = mxCreateDoubleScalar((double)plans.count);
}

/* structure = info(handle) */
void plan_info(mxArray **out, const mxArray **in) {
    plan_entry *e = need_plan(in[0]);
    check(recon_plan_info(e->plan, &e->properties));
    const recon_plan_properties *p = &e->properties;
    const char *names[] = {"device",       "simd",     "threads", "precision",  "method",       "width",   "grid",
                           "oversampling", "toeplitz", "error",   "host_bytes", "device_bytes", "seconds", "segments",
                           "nodes",        "device_reason", "estimated_cpu_ms", "estimated_gpu_ms"};
    out[0] = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_text(out[0], "device", p->device);
    set_text(out[0], "simd", p->simd);
    set_number(out[0], "threads", p->threads);
    set_text(out[0], "precision", recon_choice_word("precision", p->precision));
    set_text(out[0], "method", recon_choice_word("method", p->method));
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
    set_number(out[0], "segments", p->segments);
    set_number(out[0], "nodes", p->nodes);
    set_text(out[0], "device_reason", recon_choice_word("device_reason", p->device_reason));
    set_number(out[0], "estimated_cpu_ms", p->estimated_cpu_ms);
    set_number(out[0], "estimated_gpu_ms", p->estimated_gpu_ms);
}
