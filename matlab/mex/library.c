/* What the library says of itself and of the machine: its version, and the GPUs. */
#include "recon_mex.h"

/* structures = devices() */
void list_devices(mxArray **out, const mxArray **in) {
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
void library_version(mxArray **out, const mxArray **in) {
    (void)in;
    out[0] = mxCreateString(recon_version());
}
