/* Information about the library and the machine: version, GPUs and the words of options. */
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

/* words = words(option): the words of an option of the library (see recon_choice), a cell array of texts. */
void option_words(mxArray **out, const mxArray **in) {
    char option[64];
    uint32_t count = 0;
    read_text(in[0], "the option", option, sizeof option);
    while (*recon_choice_word(option, count)) {
        count++;
    }
    if (count == 0) {
        fail("recon:UnknownValue", "the library has no option '%s' with words", option);
    }
    out[0] = mxCreateCellMatrix(1, count);
    for (uint32_t i = 0; i < count; i++) {
        mxSetCell(out[0], i, mxCreateString(recon_choice_word(option, i)));
    }
}

/* text = version() */
void library_version(mxArray **out, const mxArray **in) {
    (void)in;
    out[0] = mxCreateString(recon_version());
}
