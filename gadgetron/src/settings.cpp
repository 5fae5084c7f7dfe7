#include "settings.h"

#include "text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace recon_gadgets {

// The largest number that a property accepts without a limit of its own.
constexpr std::size_t MAX_COUNT = 1000000000;

std::size_t default_iterations() {
    return std::size_t(initialised(recon_cg_options_init).iterations);
}

namespace {

void check_blade_settings(const Settings &s) {
    if (s.method == Method::Propeller && s.maps != CoilMapSource::None &&
        s.blades.phase == RECON_BLADE_PHASE_SMOOTH) {
        throw Error("property coil_maps is set, but phase is smooth, which removes the phases of the coils: set "
                    "coil_maps to none and combine to rss or adaptive, or set phase to constant or none");
    }
}

void check_voxel_map_settings(const Settings &s) {
    const char *method = s.method == Method::Fbp         ? "filtered backprojection"
                         : s.method == Method::Propeller ? "the correction of blades"
                         : s.partial_fourier             ? "partial_fourier"
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

void check_output(const Settings &s) {
    if (s.compress && s.output == ImageOutput::Coils) {
        throw Error("property compress is set, but output is coils: images of virtual coils are not images of the "
                    "coils; set compress to none, or output to magnitude or complex");
    }
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

}  // namespace

void check_settings(const Settings &s) {
    check_blade_settings(s);
    check_voxel_map_settings(s);
    check_output(s);
    if (s.partial_fourier && s.density != Density::Auto && s.density != Density::PipeMenon) {
        throw Error("property partial_fourier is set, which computes density weights itself: set density to auto");
    }
    if (s.lambda > 0 && s.prior == Prior::None) {
        throw Error("property lambda is set, but prior is none: set it to identity or differences");
    }
    if (s.noise_level > 0 && (s.lambda > 0 || s.weighted || s.prior == Prior::None)) {
        throw Error("property noise_level is set, from which lambda is computed: set prior to identity or "
                    "differences, weighted to false, and remove lambda");
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

namespace {

// Reads the properties for the interpretation of acquisitions, which have the names of the fields of
// recon_scan_options, except `whiten`: auto or none.
recon_scan_options parse_scan_options(Properties &p) {
    auto options = initialised(recon_scan_options_init);
    const auto whole = [&](const char *name, std::uint32_t fallback) {
        return std::uint32_t(p.count(name, fallback, MAX_COUNT));
    };
    const auto real = [&](const char *name, double fallback) { return p.number(name, fallback, -1e9, 1e9); };
    options.complete = p.choice("complete", options.complete);
    options.conjugate = p.flag("conjugate", false);
    options.whiten = p.choice<bool>("whiten", "auto", {{"auto", true}, {"none", false}});
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

void parse_method_settings(Properties &p, Settings &s) {
    constexpr double LARGE = 1e30;
    switch (s.method) {
        case Method::Grid:
            s.partial_fourier = p.choice<std::optional<std::uint32_t>>("partial_fourier", "none",
                                                                       {{"none", {}},
                                                                        {"homodyne", RECON_PARTIAL_FOURIER_HOMODYNE},
                                                                        {"pocs", RECON_PARTIAL_FOURIER_POCS}});
            break;
        case Method::Fbp: s.filter = p.choice("filter", s.filter); break;
        case Method::Propeller:
            s.blades.lines = p.count("lines", s.blades.lines, MAX_COUNT);
            s.blades.phase = p.choice("phase", s.blades.phase);
            s.blades.rotation = p.flag("rotation", s.blades.rotation);
            s.blades.translation = p.flag("translation", s.blades.translation);
            s.blades.weighting = p.flag("weighting", s.blades.weighting);
            break;
        case Method::Fhd: break;
        case Method::Cg:
            s.iterations = p.count("iterations", s.iterations, MAX_COUNT);
            s.residual = p.number("residual", s.residual, 0, 1);
            s.lambda = p.number("lambda", s.lambda, 0, LARGE);
            s.noise_level = p.number("noise_level", s.noise_level, 0, LARGE);
            s.prior = p.choice<Prior>(
                "prior", "none",
                {{"none", Prior::None}, {"identity", Prior::Identity}, {"differences", Prior::Differences}});
            s.weighted = p.flag("weighted", s.weighted);
            s.warm_start = p.flag("warm_start", s.warm_start);
            break;
    }
}

}  // namespace

Settings parse_settings(Properties &p, Method method) {
    Settings s;
    s.method = method;
    s.tolerance = p.number("tolerance", s.tolerance, 0, 1);
    s.width = std::uint32_t(p.count("width", s.width, MAX_COUNT));
    s.oversampling = p.number("oversampling", s.oversampling, 0, 1e30);
    s.density = p.choice<Density>("density", "auto",
                                  {{"auto", Density::Auto},
                                   {"pipe-menon", Density::PipeMenon},
                                   {"jackson", Density::Jackson},
                                   {"ramp", Density::Ramp}});
    s.maps = p.choice<CoilMapSource>("coil_maps", method == Method::Cg ? "data" : "none",
                                     {{"none", CoilMapSource::None},
                                      {"data", CoilMapSource::Data},
                                      {"reference", CoilMapSource::Reference}});
    s.calibration = p.count("calibration", s.calibration, MAX_COUNT);
    s.maps_every = p.count("coil_maps_every", s.maps_every, MAX_COUNT);
    s.field_map = parse_map_source(MapKind::Field, p.text("field_map", "none"));
    s.decay_map = parse_map_source(MapKind::Decay, p.text("decay_map", "none"));
    s.map_series = p.count("map_series", s.map_series, MAX_COUNT);
    s.dwell = p.number("dwell", s.dwell, 0, 1e30);
    s.readout_start = p.number("readout_start", s.readout_start, -1e6, 1e6);
    s.compress = parse_compress(p.text("compress", "none"));
    s.combine = p.choice<CoilCombination>("combine", "auto",
                                          {{"auto", CoilCombination::Auto},
                                           {"rss", CoilCombination::RootSumOfSquares},
                                           {"adaptive", CoilCombination::Adaptive}});
    s.output = p.choice<ImageOutput>("output", "magnitude",
                                     {{"magnitude", ImageOutput::Magnitude},
                                      {"complex", ImageOutput::Complex},
                                      {"coils", ImageOutput::Coils}});
    s.integers.enabled = p.flag("integers", false);
    s.integers.scale = p.number("scale", s.integers.scale, 0, 1e30);
    s.send = p.choice<MessageForm>("send", "images",
                                   {{"images", MessageForm::SingleImages}, {"arrays", MessageForm::ImageArrays}});
    s.device = parse_device(p.text("device", "auto"));
    s.threads = std::uint32_t(std::min<std::size_t>(p.count("threads", s.threads, MAX_COUNT), 65535));
    s.plans = p.count("plans", s.plans, MAX_COUNT);
    s.memory = p.count("memory", s.memory, MAX_COUNT);
    s.series = p.count("image_series", s.series, MAX_COUNT);
    s.timing = p.flag("timing", s.timing);
    s.scan = parse_scan_options(p);
    parse_method_settings(p, s);
    check_settings(s);
    return s;
}

}  // namespace recon_gadgets
