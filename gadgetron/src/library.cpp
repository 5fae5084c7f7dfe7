#include "library.h"

namespace recon_gadgets {

void check(recon_status status) {
    if (status != RECON_OK) {
        const char *message = recon_last_error_message();
        throw Error(*message != '\0' ? message : recon_status_string(status));
    }
}

std::uint64_t plan_bytes(const recon_plan *plan) {
    auto properties = initialised(recon_plan_properties_init);
    check(recon_plan_info(plan, &properties));
    return properties.host_bytes + properties.device_bytes;
}

WarningCause cause_of(std::uint32_t kind) {
    switch (kind) {
        case RECON_WARNING_EXTENT: return WarningCause::Extent;
        case RECON_WARNING_TOLERANCE: return WarningCause::Tolerance;
        case RECON_WARNING_TIMES: return WarningCause::Times;
        case RECON_WARNING_BLADES: return WarningCause::BladeMotion;
        case RECON_WARNING_NOISE: return WarningCause::Noise;
        case RECON_WARNING_COMPRESSION: return WarningCause::Compression;
        case RECON_WARNING_CALIBRATION: return WarningCause::Calibration;
        case RECON_WARNING_THREADS: return WarningCause::Threads;
        default: return WarningCause::Plan;
    }
}

std::map<WarningCause, std::string> warnings_of_call(const std::string &prefix) {
    std::map<WarningCause, std::string> texts;
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_last_warning(i, &kind, &text)), text != nullptr; ++i) {
        auto &all = texts[cause_of(kind)];
        all += (all.empty() ? prefix : "; ") + text;
    }
    return texts;
}

}  // namespace recon_gadgets
