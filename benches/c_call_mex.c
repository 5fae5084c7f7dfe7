/* The C calls with which matlab_overhead.m compares recon.Encoding: recon_fhd and recon_forward for the case radial2d,
 * in single precision. As in a C program, the buffers are allocated once and used by every call.
 *
 *     milliseconds = c_call_mex(k, tolerance, forward)    times one call; the first call makes the plan
 *     c_call_mex()                                        frees the plan and the buffers
 */
#include "mex.h"

#include <recon.h>

#include <stdlib.h>
#include <time.h>

enum { N = 256 };

static recon_plan *plan;
static float *image, *kspace;

static void release(void) {
    recon_plan_destroy(plan);
    free(image);
    free(kspace);
    plan = NULL;
    image = kspace = NULL;
}

void mexFunction(int nlhs, mxArray *plhs[], int nrhs, const mxArray *prhs[]) {
    struct timespec start, end;
    (void)nlhs;
    if (nrhs == 0) {
        release();
        return;
    }
    size_t samples = mxGetNumberOfElements(prhs[0]) / 2;
    if (!plan) {
        recon_geometry geometry;
        recon_options options;
        recon_geometry_init(&geometry, sizeof geometry);
        recon_options_init(&options, sizeof options);
        geometry.dims[0] = geometry.dims[1] = N;
        geometry.samples = samples;
        geometry.coordinates[0] = mxGetData(prhs[0]);
        geometry.coordinates[1] = (const float *)mxGetData(prhs[0]) + samples;
        options.device = RECON_DEVICE_CPU;
        options.tolerance = mxGetScalar(prhs[1]);
        image = malloc(2 * N * N * sizeof *image);
        kspace = malloc(2 * samples * sizeof *kspace);
        if (!image || !kspace || recon_plan_create(&geometry, &options, &plan) != RECON_OK) {
            release();
            mexErrMsgIdAndTxt("recon:Bench", "%s", recon_last_error_message());
        }
        mexAtExit(release);
        for (size_t i = 0; i < 2 * N * N; i++) {
            image[i] = (float)rand() / (float)RAND_MAX;
        }
        for (size_t i = 0; i < 2 * samples; i++) {
            kspace[i] = (float)rand() / (float)RAND_MAX;
        }
    }
    timespec_get(&start, TIME_UTC);
    recon_status status =
        mxGetScalar(prhs[2]) != 0.0 ? recon_forward(plan, image, kspace) : recon_fhd(plan, kspace, image);
    timespec_get(&end, TIME_UTC);
    if (status != RECON_OK) {
        mexErrMsgIdAndTxt("recon:Bench", "%s", recon_last_error_message());
    }
    plhs[0] = mxCreateDoubleScalar(1e3 * (double)(end.tv_sec - start.tv_sec) +
                                   1e-6 * (double)(end.tv_nsec - start.tv_nsec));
}
