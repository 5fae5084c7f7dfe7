/* A CUDA driver and an NVRTC without a GPU, for tests/cuda_drivers/main.rs. The driver has the functions that the
 * library calls and that the driver of CUDA 11.4 has, and no other. With -DVERSION=12000 it also has the function of
 * CUDA 12 that the library uses if it exists. Device memory is host memory, and kernels do nothing.
 *
 * That a function exists in CUDA 11.4 is known from NVIDIA's cuda.h of that version, from which cudarc's declarations
 * with the feature cuda-11040 are generated.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int status;
typedef uint64_t address;
enum { SUCCESS = 0, INVALID_VALUE = 1 };

static int something;
static int retained, modules, streams, allocations;

/* Numbers of objects that the library has not released. */
int stub_retained(void) { return retained; }
int stub_modules(void) { return modules; }
int stub_streams(void) { return streams; }
int stub_allocations(void) { return allocations; }

status cuInit(unsigned flags) { return flags ? INVALID_VALUE : SUCCESS; }
status cuDriverGetVersion(int *version) { *version = VERSION; return SUCCESS; }
status cuGetErrorString(status error, const char **text) { (void)error; *text = "a status of the stub"; return SUCCESS; }

status cuDeviceGetCount(int *count) { *count = 1; return SUCCESS; }
status cuDeviceGet(int *device, int index) { *device = index; return index ? INVALID_VALUE : SUCCESS; }
status cuDeviceGetName(char *name, int length, int device) { (void)device; snprintf(name, (size_t)length, "stub"); return SUCCESS; }
status cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)8 << 30; return SUCCESS; }
status cuDeviceCanAccessPeer(int *can, int device, int peer) { (void)device; (void)peer; *can = 0; return SUCCESS; }
status cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    switch (attribute) {
    case 16: *value = 40; break;         /* multiprocessors */
    case 38: *value = 4 << 20; break;    /* bytes of the cache */
    case 75: *value = 7; break;          /* compute capability 7.5 */
    case 76: *value = 5; break;
    case 97: *value = 64 << 10; break;   /* shared memory of a block */
    default: *value = 0;
    }
    return SUCCESS;
}

status cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &something; retained++; return SUCCESS; }
status cuDevicePrimaryCtxRelease_v2(int device) { (void)device; retained--; return SUCCESS; }
static _Thread_local void *current;
status cuCtxGetCurrent(void **context) { *context = current; return SUCCESS; }
status cuCtxPushCurrent_v2(void *context) { current = context; return SUCCESS; }
status cuCtxPopCurrent_v2(void **context) { *context = current; current = NULL; return SUCCESS; }
status cuCtxEnablePeerAccess(void *context, unsigned flags) { (void)context; (void)flags; return SUCCESS; }
#if VERSION >= 12000
status cuCtxGetId(void *context, unsigned long long *number) { (void)context; *number = 1; return SUCCESS; }
#endif

status cuModuleLoadData(void **module, const void *image) {
    modules++;
    *module = &something;
    return strcmp(image, "machine code of the stub") ? INVALID_VALUE : SUCCESS;
}
status cuModuleUnload(void *module) { (void)module; modules--; return SUCCESS; }
status cuModuleGetFunction(void **function, void *module, const char *name) { (void)module; (void)name; *function = &something; return SUCCESS; }
status cuFuncSetAttribute(void *function, int attribute, int value) { (void)function; (void)attribute; (void)value; return SUCCESS; }
status cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                      void *stream, void **parameters, void **extra) {
    (void)function; (void)x; (void)y; (void)z; (void)bx; (void)by; (void)bz; (void)shared; (void)stream; (void)parameters; (void)extra;
    return SUCCESS;
}

status cuStreamCreate(void **stream, unsigned flags) { (void)flags; streams++; *stream = &something; return SUCCESS; }
status cuStreamDestroy_v2(void *stream) { (void)stream; streams--; return SUCCESS; }
status cuStreamQuery(void *stream) { (void)stream; return SUCCESS; }
status cuStreamSynchronize(void *stream) { (void)stream; return SUCCESS; }
status cuStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream; (void)event; (void)flags; return SUCCESS; }
status cuStreamBeginCapture_v2(void *stream, int mode) { (void)stream; return mode == 2 ? SUCCESS : INVALID_VALUE; }
status cuStreamEndCapture(void *stream, void **graph) { (void)stream; *graph = &something; return SUCCESS; }
status cuStreamIsCapturing(void *stream, int *capturing) { (void)stream; *capturing = 0; return SUCCESS; }
status cuThreadExchangeStreamCaptureMode(int *mode) { (void)mode; return SUCCESS; }
status cuGraphDestroy(void *graph) { (void)graph; return SUCCESS; }
status cuGraphInstantiateWithFlags(void **graph, void *captured, unsigned long long flags) { (void)captured; *graph = &something; return flags ? INVALID_VALUE : SUCCESS; }
status cuGraphLaunch(void *graph, void *stream) { (void)graph; (void)stream; return SUCCESS; }
status cuGraphExecDestroy(void *graph) { (void)graph; return SUCCESS; }
status cuEventCreate(void **event, unsigned flags) { (void)flags; *event = &something; return SUCCESS; }
status cuEventDestroy_v2(void *event) { (void)event; return SUCCESS; }
status cuEventQuery(void *event) { (void)event; return SUCCESS; }
status cuEventSynchronize(void *event) { (void)event; return SUCCESS; }
status cuEventRecord(void *event, void *stream) { (void)event; (void)stream; return SUCCESS; }

status cuMemAlloc_v2(address *memory, size_t bytes) { *memory = (address)(uintptr_t)calloc(bytes, 1); allocations++; return SUCCESS; }
status cuMemFree_v2(address memory) { free((void *)(uintptr_t)memory); allocations--; return SUCCESS; }
status cuMemGetInfo_v2(size_t *available, size_t *total) { *available = *total = (size_t)8 << 30; return SUCCESS; }
status cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) { (void)flags; *memory = calloc(bytes, 1); allocations++; return SUCCESS; }
status cuMemFreeHost(void *memory) { free(memory); allocations--; return SUCCESS; }
status cuMemHostGetDevicePointer_v2(address *device, void *memory, unsigned flags) { (void)flags; *device = (address)(uintptr_t)memory; return SUCCESS; }
status cuPointerGetAttributes(unsigned count, int *attributes, void **values, address memory) { (void)count; (void)attributes; (void)values; (void)memory; return INVALID_VALUE; }

static status copy(address to, address from, size_t bytes) { memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes); return SUCCESS; }
status cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream) { (void)stream; return copy(to, (address)(uintptr_t)from, bytes); }
status cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream) { (void)stream; return copy((address)(uintptr_t)to, from, bytes); }
status cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) { (void)stream; return copy(to, from, bytes); }
status cuMemcpyPeerAsync(address to, void *context, address from, void *other, size_t bytes, void *stream) {
    (void)context; (void)other; (void)stream;
    return copy(to, from, bytes);
}
status cuMemsetD8Async(address memory, unsigned char value, size_t bytes, void *stream) { (void)stream; memset((void *)(uintptr_t)memory, value, bytes); return SUCCESS; }

/* NVRTC. */
int nvrtcVersion(int *major, int *minor) { *major = VERSION / 1000; *minor = VERSION % 1000 / 10; return 0; }
const char *nvrtcGetErrorString(int error) { return error ? "NVRTC_ERROR_OF_THE_STUB" : "NVRTC_SUCCESS"; }
int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char *const *texts, const char *const *names) {
    (void)source; (void)name; (void)headers; (void)texts; (void)names;
    *program = &something;
    return 0;
}
int nvrtcCompileProgram(void *program, int count, const char *const *options) {
    (void)program;
    /* Kernels are C++17, which is not the default of CUDA 11. */
    for (int i = 0; i < count; i++) {
        if (!strcmp(options[i], "--std=c++17")) return 0;
    }
    return 6;
}
int nvrtcDestroyProgram(void **program) { *program = NULL; return 0; }
int nvrtcGetCUBINSize(void *program, size_t *size) { (void)program; *size = sizeof "machine code of the stub"; return 0; }
int nvrtcGetCUBIN(void *program, char *code) { (void)program; strcpy(code, "machine code of the stub"); return 0; }
int nvrtcGetProgramLogSize(void *program, size_t *size) { (void)program; *size = sizeof "stub.cu(1): error: old C++"; return 0; }
int nvrtcGetProgramLog(void *program, char *text) { (void)program; strcpy(text, "stub.cu(1): error: old C++"); return 0; }
