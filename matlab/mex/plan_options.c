/* Options of a plan: method, window, device, threads and so on, from a MATLAB structure to a recon_options. */
#include "plans.h"

static void set_gpus(recon_options *options, uint32_t indices[64], const mxArray *gpus) {
    need_real(gpus, "Gpus");
    size_t count = mxGetNumberOfElements(gpus);
    if (count > 64) {
        fail(INVALID, "Gpus lists %llu GPUs: at most 64 are known", (unsigned long long)count);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t index = whole_number(element(mxGetData(gpus), mxIsDouble(gpus), i), "Gpus");
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

void read_plan_options(recon_options *options, uint32_t indices[64], const mxArray *structure) {
    need_structure(structure, "the options");
    check(recon_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Method"))) {
        options->method = option_value(value, "Method", "method");
    }
    if ((value = field(structure, "Normal"))) {
        options->normal = option_value(value, "Normal", "normal");
    }
    if ((value = field(structure, "Window"))) {
        options->window = option_value(value, "Window", "window");
    }
    if ((value = field(structure, "Width"))) {
        uint64_t width = count_of(value, "Width");
        options->width = width > UINT32_MAX ? UINT32_MAX : (uint32_t)width;
    }
    if ((value = field(structure, "Oversampling"))) {
        options->oversampling = real_scalar(value, "Oversampling");
    }
    if ((value = field(structure, "Device"))) {
        options->device = option_value(value, "Device", "device");
    }
    if ((value = field(structure, "Gpus"))) {
        set_gpus(options, indices, value);
    }
    if ((value = field(structure, "Threads"))) {
        uint64_t threads = count_of(value, "Threads");
        options->threads = threads > UINT32_MAX ? UINT32_MAX : (uint32_t)threads;
    }
    if ((value = field(structure, "Tolerance"))) {
        options->tolerance = real_scalar(value, "Tolerance");
    }
    if ((value = field(structure, "MemoryLimit"))) {
        options->memory_limit = count_of(value, "MemoryLimit");
    }
    if ((value = field(structure, "Simd"))) {
        options->simd = option_value(value, "Simd", "simd");
    }
    if ((value = field(structure, "GpuArray"))) {
        options->pointers_on_device = real_scalar(value, "GpuArray") != 0.0;
    }
    options->interrupt = on_interrupt;
}
