#include "library.h"

namespace recon_gadgets {

void check(recon_status status) {
    if (status != RECON_OK) {
        const char *message = recon_last_error_message();
        throw Error(*message != '\0' ? message : recon_status_string(status));
    }
}

Cause cause_of(std::uint32_t kind) {
    switch (kind) {
        case RECON_WARNING_EXTENT: return Cause::Extent;
        case RECON_WARNING_TOLERANCE: return Cause::Tolerance;
        case RECON_WARNING_TIMES: return Cause::Times;
        case RECON_WARNING_BLADES: return Cause::Blades;
        case RECON_WARNING_NOISE: return Cause::Noise;
        case RECON_WARNING_COMPRESSION: return Cause::Compression;
        case RECON_WARNING_CALIBRATION: return Cause::Calibration;
        case RECON_WARNING_THREADS: return Cause::Threads;
        default: return Cause::Plan;
    }
}

std::map<Cause, std::string> warnings_of_call(const std::string &prefix) {
    std::map<Cause, std::string> texts;
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_last_warning(i, &kind, &text)), text != nullptr; ++i) {
        auto &all = texts[cause_of(kind)];
        all += (all.empty() ? prefix : "; ") + text;
    }
    return texts;
}

}  // namespace recon_gadgets
