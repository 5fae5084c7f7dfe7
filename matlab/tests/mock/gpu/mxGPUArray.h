/* Declarations of MATLAB's mxGPUArray functions, from its documentation. With them, a test compiles the gpuArray code
 * of the MEX file without MATLAB. Nothing is linked, and nothing runs. */
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
