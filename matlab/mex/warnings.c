/* Warnings of a plan and of a call, for the MATLAB code that issues them. */
#include "recon_mex.h"

const char *warning_identifier(uint32_t kind) {
    switch (kind) {
    case RECON_WARNING_NONE: return "recon:File"; /* of a reader or writer, not of the library */
    case RECON_WARNING_EXTENT: return "recon:Extent";
    case RECON_WARNING_TOLERANCE: return "recon:Tolerance";
    case RECON_WARNING_BLADES: return "recon:Blades";
    case RECON_WARNING_NOISE: return "recon:Noise";
    case RECON_WARNING_COMPRESSION: return "recon:Compression";
    case RECON_WARNING_WRAPS: return "recon:Wraps";
    case RECON_WARNING_TIMES: return "recon:Times";
    case RECON_WARNING_THREADS: return "recon:Threads";
    case RECON_WARNING_CALIBRATION: return "recon:Calibration";
    case RECON_WARNING_ACQUISITIONS: return "recon:Acquisitions";
    case RECON_WARNING_PARTIAL_FOURIER: return "recon:PartialFourier";
    }
    return "recon:Warning";
}

/* Returns warning `index` of a plan, or of this thread's last call if plan is NULL. NULL if there are no more. */
static const char *warning(const recon_plan *plan, uint64_t index, uint32_t *kind) {
    const char *text;
    check(plan ? recon_plan_warning(plan, index, kind, &text) : recon_last_warning(index, kind, &text));
    return text;
}

static mxArray *list_of(const recon_plan *plan) {
    const char *names[] = {"identifier", "text"};
    mwSize count = 0;
    uint32_t kind;
    while (warning(plan, count, &kind)) {
        count++;
    }
    mxArray *list = mxCreateStructMatrix(count, 1, 2, names);
    for (mwSize i = 0; i < count; i++) {
        const char *text = warning(plan, i, &kind);
        mxSetField(list, (mwIndex)i, "identifier", mxCreateString(warning_identifier(kind)));
        mxSetField(list, (mwIndex)i, "text", mxCreateString(text));
    }
    return list;
}

mxArray *warnings_of(const recon_plan *plan) {
    return list_of(plan);
}

mxArray *warnings_of_call(void) {
    return list_of(NULL);
}
