#include "library.h"

namespace recon_gadgets {

void check(recon_status status) {
    if (status != RECON_OK) {
        const char *message = recon_last_error_message();
        throw Error(*message != '\0' ? message : recon_status_string(status));
    }
}

std::map<Cause, std::string> warnings_of_call(const std::string &prefix) {
    std::map<Cause, std::string> texts;
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_last_warning(i, &kind, &text)), text != nullptr; ++i) {
        const Cause cause = kind == RECON_WARNING_BLADES        ? Cause::Blades
                            : kind == RECON_WARNING_NOISE       ? Cause::Noise
                            : kind == RECON_WARNING_COMPRESSION ? Cause::Compression
                                                                : Cause::Plan;
        auto &all = texts[cause];
        all += (all.empty() ? prefix : "; ") + text;
    }
    return texts;
}

}  // namespace recon_gadgets
