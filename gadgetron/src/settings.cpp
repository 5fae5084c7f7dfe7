#include "settings.h"

#include <recon.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace recon_gadgets {

namespace {

std::string number_text(double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", x);
    return buffer;
}

// A number of the C API by its word, which a property of the option's name has.
std::uint32_t choice(const char *option, const std::string &value) {
    std::uint32_t number = 0;
    if (recon_choice(option, value.c_str(), &number) != RECON_OK) {
        throw Error(std::string("property ") + recon_last_error_message());
    }
    return number;
}

}  // namespace

std::size_t default_iterations() {
    recon_cg_options options;
    recon_cg_options_init(&options, sizeof options);
    return std::size_t(options.iterations);
}

std::uint32_t parse_filter(const std::string &value) {
    return choice("filter", value);
}

std::uint32_t parse_phase(const std::string &value) {
    return choice("phase", value);
}

void check_blades(const Settings &s) {
    if (s.maps != Maps::None && s.blades.phase == RECON_BLADE_PHASE_SMOOTH) {
        throw Error("property coil_maps is set where phase is smooth, which takes the coils' phases away: set "
                    "coil_maps to none, and combine to rss or adaptive, or phase to constant or none");
    }
}

void check_voxel_maps(const Settings &s) {
    const char *without = s.method == Method::Fbp         ? "filtered backprojection takes"
                          : s.method == Method::Propeller ? "the correction of blades takes"
                                                          : nullptr;
    if (without != nullptr && (s.field_map || s.decay_map)) {
        throw Error(std::string("property ") + property_of(s.field_map ? MapKind::Field : MapKind::Decay) +
                    " is set, and " + without +
                    " no off-resonance and no decay: set it to none, or use ReconGridGadget or ReconCGGadget");
    }
    if (!s.field_map && !s.decay_map && (s.dwell > 0 || s.readout_start != 0)) {
        throw Error(std::string("property ") + (s.dwell > 0 ? "dwell" : "readout_start") +
                    " goes with a map: set field_map or decay_map, or leave it out");
    }
}

Compress parse_compress(const std::string &value) {
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
    return percent ? Compress{0, number / 100} : Compress{std::size_t(number), 0};
}

Device parse_device(const std::string &value) {
    const std::string wanted =
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
        throw Error(wanted);
    }
    for (std::size_t at = 5; at <= value.size();) {
        const std::size_t end = std::min(value.find(',', at), value.size());
        const std::string index = value.substr(at, end - at);
        if (index.empty() || index.size() > 6 || index.find_first_not_of("0123456789") != std::string::npos) {
            throw Error(wanted);
        }
        device.indices.push_back(std::uint32_t(std::stoul(index)));
        at = end + 1;
    }
    if (value.back() == ',') {
        throw Error(wanted);
    }
    return device;
}

const std::string *Properties::find(const std::string &name, const std::string &fallback) {
    names_.insert(name);
    const auto found = given_.find(name);
    summary_ +=
        (summary_.empty() ? "" : ", ") + name + "=" + (found == given_.end() ? fallback + " (default)" : found->second);
    return found == given_.end() ? nullptr : &found->second;
}

std::string Properties::text(const std::string &name, const std::string &fallback) {
    const std::string *given = find(name, fallback);
    return given == nullptr ? fallback : *given;
}

double Properties::number(const std::string &name, double fallback, double least, double most) {
    const std::string *given = find(name, number_text(fallback));
    if (given == nullptr) {
        return fallback;
    }
    char *end = nullptr;
    const double x = std::strtod(given->c_str(), &end);
    if (given->empty() || *end != '\0' || !(x >= least && x <= most)) {
        throw Error("property " + name + " is \"" + *given + "\": it must be a number from " + number_text(least) +
                    " to " + number_text(most));
    }
    return x;
}

std::size_t Properties::count(const std::string &name, std::size_t fallback, std::size_t most) {
    const std::string *given = find(name, std::to_string(fallback));
    if (given == nullptr) {
        return fallback;
    }
    const bool digits =
        !given->empty() && given->size() < 19 && given->find_first_not_of("0123456789") == std::string::npos;
    const std::size_t n = digits ? std::strtoull(given->c_str(), nullptr, 10) : 0;
    if (!digits || n > most) {
        throw Error("property " + name + " is \"" + *given + "\": it must be a whole number from 0 to " +
                    std::to_string(most));
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
        if (names_.count(property.first) == 0) {
            names.push_back(property.first);
        }
    }
    return names;
}

}  // namespace recon_gadgets
