#include "settings.h"

#include "library.h"
#include "text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace recon_gadgets {

namespace {

// Returns the number in the C API for a word of an option, which has the name of its property.
std::uint32_t choice(const char *option, const std::string &value) {
    std::uint32_t number = 0;
    if (recon_choice(option, value.c_str(), &number) != RECON_OK) {
        throw Error(std::string("property ") + recon_last_error_message());
    }
    return number;
}

}  // namespace

std::size_t default_iterations() {
    return std::size_t(initialised(recon_cg_options_init).iterations);
}

std::uint32_t parse_filter(const std::string &value) {
    return choice("filter", value);
}

std::uint32_t parse_phase(const std::string &value) {
    return choice("phase", value);
}

void check_blade_settings(const Settings &s) {
    if (s.maps != CoilMapSource::None && s.blades.phase == RECON_BLADE_PHASE_SMOOTH) {
        throw Error("property coil_maps is set, but phase is smooth, which removes the phases of the coils: set "
                    "coil_maps to none and combine to rss or adaptive, or set phase to constant or none");
    }
}

void check_voxel_map_settings(const Settings &s) {
    const char *method = s.method == Method::Fbp         ? "filtered backprojection"
                         : s.method == Method::Propeller ? "the correction of blades"
                                                         : nullptr;
    if (method != nullptr && (s.field_map || s.decay_map)) {
        throw Error(std::string("property ") + property_of(s.field_map ? MapKind::Field : MapKind::Decay) +
                    " is set, but " + method +
                    " does not support off-resonance and decay: set the property to none, or use ReconGridGadget or "
                    "ReconCGGadget");
    }
    if (!s.field_map && !s.decay_map && (s.dwell > 0 || s.readout_start != 0)) {
        throw Error(std::string("property ") + (s.dwell > 0 ? "dwell" : "readout_start") +
                    " has no effect without a map: set field_map or decay_map, or remove it");
    }
}

CompressionTarget parse_compress(const std::string &value) {
    if (value == "none") {
        return {};
    }
    char *end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    const bool percent = *end == '%' && end[1] == '\0', whole = *end == '\0' && number == std::floor(number);
    if (end == value.c_str() || !(number > 0) || !(percent ? number <= 100 : whole && number <= 65535)) {
        throw Error("property compress is \"" + value +
                    "\": it must be none, a number of coils, or a percentage of the energy such as 99%");
    }
    return percent ? CompressionTarget{0, number / 100} : CompressionTarget{std::size_t(number), 0};
}

Device parse_device(const std::string &value) {
    const std::string error =
        "property device is \"" + value + "\": it must be auto, cpu, cuda, or a list such as cuda:0,1";
    Device device;
    if (value == "auto") {
        device.kind = RECON_DEVICE_AUTO;
        return device;
    }
    if (value == "cpu") {
        device.kind = RECON_DEVICE_CPU;
        return device;
    }
    device.kind = RECON_DEVICE_CUDA;
    if (value == "cuda") {
        return device;
    }
    if (value.compare(0, 5, "cuda:") != 0 || value.size() == 5) {
        throw Error(error);
    }
    for (std::size_t start = 5; start <= value.size();) {
        const std::size_t end = std::min(value.find(',', start), value.size());
        const std::string index = value.substr(start, end - start);
        if (index.empty() || index.size() > 6 || index.find_first_not_of("0123456789") != std::string::npos) {
            throw Error(error);
        }
        device.indices.push_back(std::uint32_t(std::stoul(index)));
        start = end + 1;
    }
    if (value.back() == ',') {
        throw Error(error);
    }
    return device;
}

const std::string *Properties::find(const std::string &name, const std::string &fallback) {
    read_.insert(name);
    const auto found = given_.find(name);
    summary_ +=
        (summary_.empty() ? "" : ", ") + name + "=" + (found == given_.end() ? fallback + " (default)" : found->second);
    return found == given_.end() ? nullptr : &found->second;
}

std::string Properties::text(const std::string &name, const std::string &fallback) {
    const std::string *given = find(name, fallback);
    return given == nullptr ? fallback : *given;
}

double Properties::number(const std::string &name, double fallback, double min, double max) {
    const std::string *given = find(name, number_text(fallback));
    if (given == nullptr) {
        return fallback;
    }
    char *end = nullptr;
    const double x = std::strtod(given->c_str(), &end);
    if (given->empty() || *end != '\0' || !(x >= min && x <= max)) {
        throw Error("property " + name + " is \"" + *given + "\": it must be a number from " + number_text(min) +
                    " to " + number_text(max));
    }
    return x;
}

std::size_t Properties::count(const std::string &name, std::size_t fallback, std::size_t max) {
    const std::string *given = find(name, std::to_string(fallback));
    if (given == nullptr) {
        return fallback;
    }
    const bool digits =
        !given->empty() && given->size() < 19 && given->find_first_not_of("0123456789") == std::string::npos;
    const std::size_t n = digits ? std::strtoull(given->c_str(), nullptr, 10) : 0;
    if (!digits || n > max) {
        throw Error("property " + name + " is \"" + *given + "\": it must be a whole number from 0 to " +
                    std::to_string(max));
    }
    return n;
}

bool Properties::flag(const std::string &name, bool fallback) {
    const std::string *given = find(name, fallback ? "true" : "false");
    if (given == nullptr) {
        return fallback;
    }
    return parse_choice<bool>(name, *given, {{"true", true}, {"false", false}, {"1", true}, {"0", false}});
}

std::string Properties::given(const std::string &name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? std::string() : found->second;
}

std::vector<std::string> Properties::unknown() const {
    std::vector<std::string> names;
    for (const auto &property : given_) {
        if (read_.count(property.first) == 0) {
            names.push_back(property.first);
        }
    }
    return names;
}

}  // namespace recon_gadgets
