/* Errors: the library's statuses as MATLAB errors with an identifier. */
#include "recon_mex.h"

#include <stdarg.h>

void fail(const char *identifier, const char *format, ...) {
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    mexErrMsgIdAndTxt(identifier, "%s", message);
}

void check(recon_status status) {
    if (status == RECON_OK) {
        return;
    }
    char identifier[64];
    snprintf(identifier, sizeof identifier, "recon:%s", recon_status_name((int32_t)status));
    if (status == RECON_CANCELLED) {
        fail(identifier, "cancelled by Ctrl-C");
    }
    /* MATLAB counts from 1, but the library's messages do not. */
    bool index = status == RECON_NOT_FINITE || status == RECON_COORDINATE_OUT_OF_RANGE;
    fail(identifier, "%s%s", recon_last_error_message(), index ? " (indices count from 0)" : "");
}
