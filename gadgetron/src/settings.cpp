#include "settings.h"

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

std::optional<std::uint32_t> parse_partial_fourier(const std::string &value) {
    return parse_choice<std::optional<std::uint32_t>>("partial_fourier", value,
                                                      {{"none", {}},
                                                       {"homodyne", RECON_PARTIAL_FOURIER_HOMODYNE},
                                                       {"pocs", RECON_PARTIAL_FOURIER_POCS}});
}

void check_partial_fourier(const Settings &s) {
    if (s.partial_fourier && (s.field_map || s.decay_map)) {
        throw Error("property partial_fourier is set, but it does not support off-resonance and decay: set field_map "
                    "and decay_map to none");
    }
    if (s.partial_fourier && s.density != Density::Auto && s.density != Density::PipeMenon) {
        throw Error("property partial_fourier is set, which computes density weights itself: set density to auto");
    }
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

void check_integers(const Settings &s) {
    if (s.integers.enabled && s.output != ImageOutput::Magnitude) {
        throw Error("property integers is true, but complex numbers cannot be sent as integers: set output to "
                    "magnitude, or integers to false");
    }
    if (s.integers.enabled && s.send == MessageForm::ImageArrays) {
        throw Error("property integers is true, but the images of an IsmrmrdImageArray are complex: set send to "
                    "images, or integers to false");
    }
    if (!s.integers.enabled && s.integers.scale > 0) {
        throw Error("property scale has no effect without integers: set integers to true, or remove it");
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

recon_scan_options parse_scan_options(Properties &p) {
    auto options = initialised(recon_scan_options_init);
    const auto whole = [&](const char *name, std::uint32_t fallback) {
        return std::uint32_t(p.count(name, fallback, 1000000000));
    };
    const auto real = [&](const char *name, double fallback) { return p.number(name, fallback, -1e9, 1e9); };
    options.complete = p.choice("complete", options.complete);
    options.conjugate = p.flag("conjugate", false);
    options.whiten = parse_choice<bool>("whiten", p.text("whiten", "auto"), {{"auto", true}, {"none", false}});
    options.window = whole("window", 1);
    options.header_trajectory = p.choice("header_trajectory", options.header_trajectory);
    options.convention = p.choice("convention", options.convention);
    options.spoke_number = p.choice("spoke_number", options.spoke_number);
    options.spiral_extent = p.choice("spiral_extent", options.spiral_extent);
    options.golden_angle = std::int32_t(p.number("golden_angle", options.golden_angle, -1000, 1000));
    options.spoke_count = whole("spoke_count", options.spoke_count);
    options.frames_per_rotation = whole("frames_per_rotation", options.frames_per_rotation);
    options.readout_samples = whole("readout_samples", options.readout_samples);
    options.angle_range_degrees = real("angle_range_degrees", options.angle_range_degrees);
    options.first_angle_degrees = real("first_angle_degrees", options.first_angle_degrees);
    options.center_sample = real("center_sample", options.center_sample);
    options.gradient_delay_us = real("gradient_delay_us", options.gradient_delay_us);
    options.sample_time_us = real("sample_time_us", options.sample_time_us);
    options.acquisition_delay_us = real("acquisition_delay_us", options.acquisition_delay_us);
    return options;
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
    // The library's default is NAN for numbers that the header may contain.
    const std::string *given = find(name, std::isnan(fallback) ? "from the data" : number_text(fallback));
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

std::uint32_t Properties::choice(const std::string &name, std::uint32_t fallback) {
    const std::string *given = find(name, recon_choice_word(name.c_str(), fallback));
    std::uint32_t number = fallback;
    if (given != nullptr && recon_choice(name.c_str(), given->c_str(), &number) != RECON_OK) {
        throw Error(std::string("property ") + recon_last_error_message());
    }
    return number;
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
