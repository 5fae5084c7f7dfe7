// The settings of a gadget: its properties, read from text and checked before any data arrive.
#pragma once

#include "voxel_maps.h"

#include <map>
#include <set>
#include <utility>

namespace recon_gadgets {

enum class Method { Grid, Fbp, Propeller, Fhd, Cg };
enum class CoilMapSource { None, Data, Reference };
enum class CoilCombination { Auto, RootSumOfSquares, Adaptive };
enum class ImageOutput { Magnitude, Complex, Coils };
enum class MessageForm { SingleImages, ImageArrays };
enum class Density { Auto, PipeMenon, Jackson, Ramp };
enum class Prior { None, Identity, Differences };

// Returns the library's default number of iterations.
std::size_t default_iterations();

// The target of coil compression. If both members are 0, coils are not compressed.
struct CompressionTarget {
    std::size_t coils = 0;  // number of virtual coils; 0: set by `energy`
    double energy = 0;      // fraction of the energy that the virtual coils must contain

    explicit operator bool() const { return coils > 0 || energy > 0; }
};

// The device of the computation.
struct Device {
    std::uint32_t kind = 0;  // a recon_device
    std::vector<std::uint32_t> indices;  // GPUs; empty: chosen by the library
};

// The correction of the motion of PROPELLER blades.
struct BladeSettings {
    std::size_t lines = 0;    // number of lines of a blade; 0: detected
    std::uint32_t phase = 0;  // a recon_blade_phase
    bool rotation = true, translation = true, weighting = true;
};

// Images as 16-bit unsigned integers.
struct Integers {
    bool enabled = false;
    double scale = 0;  // factor of the magnitudes; 0: chosen for the first image of each encoding
};

// All properties of a gadget.
struct Settings {
    Method method = Method::Grid;
    double tolerance = 0;  // 0: the library's default
    std::uint32_t width = 0;  // 0: chosen to meet the tolerance
    double oversampling = 0;  // 0: chosen to meet the tolerance
    std::size_t iterations = default_iterations();
    double residual = 0, lambda = 0, noise_level = 0;
    Prior prior = Prior::None;
    bool weighted = false, warm_start = false;
    std::uint32_t filter = 0;  // a recon_filter
    std::optional<std::uint32_t> partial_fourier;  // a recon_partial_fourier_method; no value: k-space is complete
    BladeSettings blades;
    Density density = Density::Auto;
    CoilMapSource maps = CoilMapSource::None;
    std::size_t calibration = 0, maps_every = 0;
    MapSource field_map, decay_map;
    std::size_t map_series = 0;  // series of the map files
    double dwell = 0;            // microseconds; 0: sample_time_us of the headers
    double readout_start = 0;    // milliseconds
    CompressionTarget compress;
    CoilCombination combine = CoilCombination::Auto;
    ImageOutput output = ImageOutput::Magnitude;
    MessageForm send = MessageForm::SingleImages;
    Integers integers;
    recon_scan_options scan = initialised(recon_scan_options_init);
    Device device;
    std::uint32_t threads = 0;
    std::size_t plans = 16, memory = 0;  // memory in MiB; 0: no limit
    std::size_t series = 1;
    bool timing = false;
};

// Returns the value of a property with a list of possible texts. The error lists them.
template <class T>
T parse_choice(const std::string &name, const std::string &value,
               const std::vector<std::pair<std::string, T>> &choices) {
    std::string all;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        if (choices[i].first == value) {
            return choices[i].second;
        }
        all += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i].first;
    }
    throw Error("property " + name + " is \"" + value + "\": it must be " + all);
}

// Throws an Error if properties contradict each other, or have no effect.
void check_settings(const Settings &settings);

// Returns the target of the property compress: none, a number of coils, or a percentage such as 99%.
CompressionTarget parse_compress(const std::string &value);

// Returns the device of the property device: auto, cpu, cuda, or a list of GPUs such as cuda:0,1.
Device parse_device(const std::string &value);

// The properties of a gadget in a chain. Each is read once, with its default.
class Properties {
public:
    template <class Map>
    explicit Properties(const Map &given) : given_(given.begin(), given.end()) {}

    // Returns a property of the type, or the default. Throws an Error with the property, its text and the valid values
    // if the text is not valid.
    std::string text(const std::string &name, const std::string &fallback);
    double number(const std::string &name, double fallback, double min, double max);
    std::size_t count(const std::string &name, std::size_t fallback, std::size_t max);
    bool flag(const std::string &name, bool fallback);

    // Returns the number of a word in the C API, whose option has the name of the property.
    std::uint32_t choice(const std::string &name, std::uint32_t fallback);
    // Returns the value of one of several words. The error lists them.
    template <class T>
    T choice(const std::string &name, const std::string &fallback,
             const std::vector<std::pair<std::string, T>> &choices) {
        return parse_choice<T>(name, text(name, fallback), choices);
    }

    // Returns all properties that were read: "tolerance=0.0001 (default), iterations=12, ...".
    const std::string &summary() const { return summary_; }
    // Returns the text in the chain; empty if the chain does not have the property.
    std::string given(const std::string &name) const;
    // Returns the properties in the chain that were not read.
    std::vector<std::string> unknown() const;

private:
    // Returns the text in the chain, or null, and adds the property to the summary.
    const std::string *find(const std::string &name, const std::string &fallback);

    std::map<std::string, std::string> given_;
    std::set<std::string> read_;
    std::string summary_;
};

// Reads all properties of a gadget. Throws an Error that names the property for an invalid value.
Settings parse_settings(Properties &properties, Method method);

}  // namespace recon_gadgets
