/* Declarations of MATLAB's mxGPUArray functions, as its documentation gives them, so that the gpuArray path of
 * recon_mex.c is compiled where there is no MATLAB. Nothing is linked against them, and nothing runs. */
#ifndef RECON_MOCK_MXGPUARRAY_H
#define RECON_MOCK_MXGPUARRAY_H

#include "mex.h"

typedef struct mxGPUArray_tag mxGPUArray;
typedef enum { MX_GPU_DO_NOT_INITIALIZE, MX_GPU_INITIALIZE_VALUES } mxGPUInitialize;

int mxInitGPU(void);
bool mxIsGPUArray(const mxArray *array);
const mxGPUArray *mxGPUCreateFromMxArray(const mxArray *array);
mxGPUArray *mxGPUCreateGPUArray(mwSize ndims, const mwSize *dims, mxClassID class_id, mxComplexity complexity,
                                mxGPUInitialize initialize);
mxArray *mxGPUCreateMxArrayOnGPU(const mxGPUArray *array);
void mxGPUDestroyGPUArray(const mxGPUArray *array);
const void *mxGPUGetDataReadOnly(const mxGPUArray *array);
void *mxGPUGetData(mxGPUArray *array);
mxClassID mxGPUGetClassID(const mxGPUArray *array);
mxComplexity mxGPUGetComplexity(const mxGPUArray *array);
mwSize mxGPUGetNumberOfElements(const mxGPUArray *array);

#endif
