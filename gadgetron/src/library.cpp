#include "library.h"

#include <algorithm>

namespace recon_gadgets {

namespace {

// Returns a text without its numbers.
std::string cause_of(const std::string &text) {
    std::string cause;
    const std::string number = "+-.0123456789";
    std::remove_copy_if(text.begin(), text.end(), std::back_inserter(cause),
                        [&](char c) { return number.find(c) != std::string::npos; });
    return cause;
}

}  // namespace

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

std::vector<std::string> warnings_of_call(const std::string &prefix) {
    std::vector<std::string> texts;
    std::uint32_t kind = RECON_WARNING_NONE;
    const char *text = nullptr;
    for (std::uint64_t i = 0; check(recon_last_warning(i, &kind, &text)), text != nullptr; ++i) {
        texts.push_back(prefix + text);
    }
    return texts;
}

bool has_same_cause(const std::string &a, const std::string &b) {
    return cause_of(a) == cause_of(b);
}

bool MessageCounter::is_first(const std::string &text) {
    auto &[first, count] = messages_[cause_of(text)];
    if (count == 0) {
        first = text;
    }
    return ++count == 1;
}

std::vector<std::string> MessageCounter::summary() const {
    std::vector<std::string> lines;
    for (const auto &entry : messages_) {
        const auto &[text, count] = entry.second;
        if (count > 1) {
            lines.push_back(std::to_string(count) + " times in all on this connection, but logged only once: " + text);
        }
    }
    return lines;
}

}  // namespace recon_gadgets
