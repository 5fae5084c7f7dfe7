// The settings of a gadget: its properties, read from text, and checked before any data come.
#pragma once

#include "voxel_maps.h"

#include <map>
#include <set>
#include <utility>

namespace recon_gadgets {

enum class Method { Grid, Fbp, Propeller, Fhd, Cg };
enum class Maps { None, Data, Reference };
enum class Combine { Auto, RootSumOfSquares, Adaptive };
enum class Output { Magnitude, Complex, Coils };
enum class Send { Images, Arrays };
enum class Density { Auto, PipeMenon, Jackson, Ramp };
enum class Prior { None, Identity, Differences };

// The library's default.
std::size_t default_iterations();

// Virtual coils: so many, or as many as hold this part of the energy. Both 0: the coils stay as they are.
struct Compress {
    std::size_t coils = 0;
    double energy = 0;

    explicit operator bool() const { return coils > 0 || energy > 0; }
};

struct Device {
    std::uint32_t kind = 0;  // a recon_device
    std::vector<std::uint32_t> indices;
};

// What is found and corrected of the motion of PROPELLER blades.
struct Blades {
    std::size_t lines = 0;    // of a blade; 0: found
    std::uint32_t phase = 0;  // a recon_blade_phase
    bool rotation = true, translation = true, weighting = true;
};

struct Settings {
    Method method = Method::Grid;
    double tolerance = 0;  // 0: the library's default
    std::uint32_t width = 0;
    double oversampling = 0;  // 0 of either: chosen by the tolerance
    std::size_t iterations = default_iterations();
    double residual = 0, lambda = 0, noise_level = 0;
    Prior prior = Prior::None;
    bool weighted = false, warm_start = false;
    std::uint32_t filter = 0;  // a recon_filter
    Blades blades;
    Density density = Density::Auto;
    Maps maps = Maps::None;
    std::size_t calibration = 0, maps_every = 0;
    MapSource field_map, decay_map;
    std::size_t map_series = 0;           // of files
    double dwell = 0, readout_start = 0;  // us, 0: the headers' sample_time_us; ms
    Compress compress;
    Combine combine = Combine::Auto;
    Output output = Output::Magnitude;
    Send send = Send::Images;
    std::size_t window = 1;
    Device device;
    std::uint32_t threads = 0;
    std::size_t plans = 16, memory = 0;  // memory in MiB; 0: no limit
    std::size_t series = 1;
    bool timing = false;
};

// The value of a property with a list of possible texts. The error lists them.
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

// The property filter, a recon_filter by its word.
std::uint32_t parse_filter(const std::string &value);

// The property phase, a recon_blade_phase by its word.
std::uint32_t parse_phase(const std::string &value);

// Ends with an error where the other settings do not go with those of blades.
void check_blades(const Settings &settings);

// Ends with an error where a method without off-resonance has a map of it, or times have no map.
void check_voxel_maps(const Settings &settings);

// The property compress: none, a number of coils, or a percentage such as 99%.
Compress parse_compress(const std::string &value);

// The property device: auto, cpu, cuda, or cuda: and a list of GPUs, for example cuda:0,1.
Device parse_device(const std::string &value);

// The properties of a gadget in a chain. Each is read once, with its default.
class Properties {
public:
    template <class Map>
    explicit Properties(const Map &given) : given_(given.begin(), given.end()) {}

    std::string text(const std::string &name, const std::string &fallback);
    double number(const std::string &name, double fallback, double least, double most);
    std::size_t count(const std::string &name, std::size_t fallback, std::size_t most);
    bool flag(const std::string &name, bool fallback);

    // All properties that were read: "tolerance=0.0001 (default), iterations=12, ...".
    const std::string &summary() const { return summary_; }
    // The text in the chain, empty where the chain does not have the property.
    std::string given(const std::string &name) const;
    // Properties in the chain that were not read.
    std::vector<std::string> unknown() const;

private:
    const std::string *find(const std::string &name, const std::string &fallback);

    std::map<std::string, std::string> given_;
    std::set<std::string> names_;
    std::string summary_;
};

}  // namespace recon_gadgets
