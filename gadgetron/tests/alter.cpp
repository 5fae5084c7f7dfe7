// Changes a raw data file for the tests of chains: more repetitions or slices, fewer shots, and wrong headers or data.
// In a file of several repetitions, most changes apply only to the second repetition.
//
//     alter IN OUT CHANGE [VALUE]
//
// VALUE is a number, or a matrix such as 64x64x1. CHANGE = field-map writes an off-resonance map of VALUE Hz for each
// slice of the file. CHANGE = noise adds VALUE noise acquisitions before the data, and late-noise after them.
#include "compatibility.h"

#include <ismrmrd/dataset.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using ISMRMRD::Acquisition;

// Sample time in microseconds: 20 ms per readout of 1000 samples.
constexpr float SAMPLE_US = 20;

// Writes a map of one frequency for each slice, as images on the matrix of encodedSpace.
void write_field_map(ISMRMRD::Dataset &target, const ISMRMRD::Encoding &encoding, float hertz) {
    const auto size = encoding.encodedSpace.matrixSize;
    const auto *slices = recon_gadgets::find_value(encoding.encodingLimits.slice);
    const unsigned last = slices != nullptr ? slices->maximum : 0;
    for (unsigned slice = 0; slice <= last; ++slice) {
        ISMRMRD::Image<float> map(size.x, size.y, size.z, 1);
        map.setSlice(std::uint16_t(slice));
        map.setImageSeriesIndex(77);
        ISMRMRD::MetaContainer meta;
        meta.set("recon_map", "field_map");
        std::ostringstream attributes;
        ISMRMRD::serialize(meta, attributes);
        map.setAttributeString(attributes.str());
        std::fill(map.begin(), map.end(), hertz);
        target.appendImage("image_0", map);
    }
}

// Appends noise of correlated coils with different variances, sampled at twice the rate of the data.
void append_noise(ISMRMRD::Dataset &target, unsigned count, unsigned coils) {
    std::mt19937 generator(29);
    std::normal_distribution<float> normal;
    for (unsigned n = 0; n < count; ++n) {
        const std::uint16_t samples = 256;
        Acquisition noise(samples, std::uint16_t(coils), 0);
        noise.setFlag(ISMRMRD::ISMRMRD_ACQ_IS_NOISE_MEASUREMENT);
        noise.sample_time_us() = SAMPLE_US / 2;
        for (std::uint16_t i = 0; i < samples; ++i) {
            const std::complex<float> shared(normal(generator), normal(generator));
            for (std::uint16_t c = 0; c < coils; ++c) {
                const std::complex<float> own(normal(generator), normal(generator));
                noise.data(i, c) = 1e-3f * (float(c + 1) * own + std::complex<float>(0.5f, float(c)) * shared);
            }
        }
        target.appendAcquisition(noise);
    }
}

// Returns an acquisition with a different number of samples or trajectory components.
Acquisition resized(Acquisition &from, unsigned samples, unsigned dimensions) {
    Acquisition to(std::uint16_t(samples), from.active_channels(), std::uint16_t(dimensions));
    ISMRMRD::AcquisitionHeader h = from.getHead();
    h.number_of_samples = std::uint16_t(samples);
    h.trajectory_dimensions = std::uint16_t(dimensions);
    to.setHead(h);
    for (unsigned i = 0; i < samples; ++i) {
        const unsigned source = i < from.number_of_samples() ? i : from.number_of_samples() - 1;
        for (unsigned c = 0; c < from.active_channels(); ++c) {
            to.data(std::uint16_t(i), std::uint16_t(c)) = from.data(std::uint16_t(source), std::uint16_t(c));
        }
        for (unsigned d = 0; d < dimensions; ++d) {
            to.traj(std::uint16_t(d), std::uint16_t(i)) =
                d < from.trajectory_dimensions() ? from.traj(std::uint16_t(d), std::uint16_t(source)) : 0.25f;
        }
    }
    return to;
}

// A change of a file, and its value.
struct Change {
    std::string name, value;

    bool is(const char *other) const { return name == other; }
    unsigned number() const { return unsigned(std::atoi(value.c_str())); }
};

// Sets the matrix of reconSpace, with the same voxel size (cropped) or the same field of view (filled).
void resize_recon_space(ISMRMRD::EncodingSpace &space, const Change &change) {
    const auto original = space.matrixSize;
    unsigned x = 0, y = 0, z = 0;
    if (std::sscanf(change.value.c_str(), "%ux%ux%u", &x, &y, &z) != 3) {
        throw std::runtime_error("VALUE must have three sizes, such as 64x64x1");
    }
    space.matrixSize = ISMRMRD::MatrixSize(std::uint16_t(x), std::uint16_t(y), std::uint16_t(z));
    if (change.is("cropped")) {
        space.fieldOfView_mm.x *= float(x) / float(original.x);
        space.fieldOfView_mm.y *= float(y) / float(original.y);
        space.fieldOfView_mm.z *= float(z) / float(original.z);
    }
}

// Describes the trajectory as a spiral of four interleaves for 32 voxels of 2.5 mm.
void describe_spiral(ISMRMRD::Encoding &encoding) {
    const auto parameter = [](const char *name, auto value) {
        std::conditional_t<std::is_integral_v<decltype(value)>, ISMRMRD::UserParameterLong,
                           ISMRMRD::UserParameterDouble> parameter;
        parameter.name = name, parameter.value = value;
        return parameter;
    };
    ISMRMRD::TrajectoryDescription spiral;
    spiral.identifier = "HargreavesVDS2000";
    spiral.userParameterLong = {parameter("interleaves", 4L), parameter("fov_coefficients", 1L),
                                parameter("SamplingTime_ns", 2500L)};
    spiral.userParameterDouble = {parameter("MaxGradient_G_per_cm", 2.4),
                                  parameter("MaxSlewRate_G_per_cm_per_s", 14414.0),
                                  parameter("FOVCoeff_1_cm", 8.0), parameter("krmax_per_cm", 2.0)};
    encoding.trajectory = ISMRMRD::TrajectoryType::SPIRAL;
    encoding.trajectoryDescription = spiral;
    for (ISMRMRD::EncodingSpace *space : {&encoding.encodedSpace, &encoding.reconSpace}) {
        space->fieldOfView_mm.x = space->fieldOfView_mm.y = 80;
    }
}

// Names a noise scan as a dependency of the measurement.
void name_noise_scan(ISMRMRD::IsmrmrdHeader &header) {
    ISMRMRD::MeasurementDependency noise;
    noise.dependencyType = "Noise";
    noise.measurementID = "45_6";
    ISMRMRD::MeasurementInformation information;
    information.patientPosition = "HFS";
    information.measurementDependency = {noise};
    header.measurementInformation = information;
}

void alter_header(ISMRMRD::IsmrmrdHeader &header, const Change &change) {
    ISMRMRD::Encoding &encoding = header.encoding[0];
    auto &encoded = encoding.encodedSpace;
    if (change.is("zero-matrix")) {
        encoded.matrixSize = ISMRMRD::MatrixSize(0, 0, 0);
    } else if (change.is("huge-matrix")) {
        encoded.matrixSize = encoding.reconSpace.matrixSize = ISMRMRD::MatrixSize(30000, 30000, 30000);
    } else if (change.is("oversampled")) {
        // Readout oversampling: twice the field of view along the readout, with the same voxel size.
        encoded.matrixSize.x *= 2;
        encoded.fieldOfView_mm.x *= 2;
    } else if (change.is("cropped") || change.is("filled")) {
        resize_recon_space(encoding.reconSpace, change);
    } else if (change.is("negative-matrix")) {
        encoded.matrixSize.y = std::uint16_t(-96);
    } else if (change.is("field-of-view")) {
        encoded.fieldOfView_mm.x = std::strtof(change.value.c_str(), nullptr);
    } else if (change.is("noise") || change.is("late-noise")) {
        ISMRMRD::AcquisitionSystemInformation system;
        system.relativeReceiverNoiseBandwidth = 0.8f;
        header.acquisitionSystemInformation = system;
        name_noise_scan(header);
    } else if (change.is("names-noise")) {
        name_noise_scan(header);
    } else if (change.is("spiral-header")) {
        describe_spiral(encoding);
    } else if (change.is("no-limits")) {
        encoding.encodingLimits = ISMRMRD::EncodingLimits();
    } else if (change.is("slices") && change.number() > 0) {
        encoding.encodingLimits.slice = ISMRMRD::Limit(0, std::uint16_t(change.number() - 1), 0);
    }
}

// Multiplies each sample by exp(-i 2 pi cycles(i)), where i is the index in the readout.
template <class Cycles>
void add_phase(Acquisition &a, Cycles cycles) {
    for (std::uint16_t i = 0; i < a.number_of_samples(); ++i) {
        for (std::uint16_t c = 0; c < a.active_channels(); ++c) {
            a.data(i, c) *= std::complex<float>(std::polar(1.0, -2 * std::acos(-1.0) * cycles(i)));
        }
    }
}

// Removes the last coil.
void remove_coil(Acquisition &a) {
    Acquisition fewer(a.number_of_samples(), std::uint16_t(a.active_channels() - 1), a.trajectory_dimensions());
    ISMRMRD::AcquisitionHeader h = a.getHead();
    h.active_channels = fewer.active_channels();
    fewer.setHead(h);
    std::copy(a.traj_begin(), a.traj_end(), fewer.traj_begin());
    std::copy(a.data_begin(), a.data_begin() + fewer.getNumberOfDataElements(), fewer.data_begin());
    a = fewer;
}

// Sets orthogonal oblique directions, and a different position for each slice.
void set_oblique(Acquisition &a) {
    const float s = std::sqrt(0.5f);
    for (int i = 0; i < 3; ++i) {
        a.position()[i] = float(7 * i) - 3.3f + float(a.idx().slice);
        a.patient_table_position()[i] = float(i) - 0.1f;
        a.read_dir()[i] = i == 0 ? s : i == 1 ? -s : 0;
        a.phase_dir()[i] = i == 2 ? -1 : 0;
        a.slice_dir()[i] = i == 2 ? 0 : s;
    }
}

// Returns whether a change removes a shot. `selected`: whether changes of one repetition apply to the shot.
bool is_removed(Acquisition &a, const Change &change, unsigned shot, bool selected) {
    const unsigned number = change.number();
    return (change.is("without-slice") && a.idx().slice == number) ||
           (change.is("every") && shot % number != 0) ||
           (selected && ((change.is("missing") && shot >= number) || (change.is("lost") && shot == number)));
}

// Applies a change to a shot of any repetition.
void alter_shot(Acquisition &a, const Change &change, unsigned shot) {
    if (change.is("moved-blades")) {
        // The object and the coils move, in alternating directions for blades of `number` lines.
        const double side = shot / change.number() % 2 == 0 ? 1 : -1;
        add_phase(a, [&](std::uint16_t i) { return side * (2.0 * a.traj(0, i) - 1.0 * a.traj(1, i)); });
    } else if (change.is("off-resonance")) {
        // The whole object has the same off-resonance in Hz.
        a.sample_time_us() = SAMPLE_US;
        const double hertz = std::atof(change.value.c_str());
        add_phase(a, [&](std::uint16_t i) { return hertz * double(i) * SAMPLE_US * 1e-6; });
    } else if (change.is("no-sample-time")) {
        a.sample_time_us() = 0;
    } else if (change.is("oblique")) {
        set_oblique(a);
    } else if (change.is("spiral-header")) {
        // No trajectory is stored.
        a.sample_time_us() = 2.5f;
        const std::vector<std::complex<float>> data(a.data_begin(), a.data_end());
        a.resize(a.number_of_samples(), a.active_channels(), 0);
        std::copy(data.begin(), data.end(), a.data_begin());
    } else if (change.is("interleaved")) {
        // Slices in turn.
        a.idx().slice = std::uint16_t(shot % change.number());
    } else if (change.is("calibration")) {
        a.setFlag(ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING);
    }
}

// Applies a change to a shot of the second repetition, or of the only one.
void alter_selected_shot(Acquisition &a, const Change &change, unsigned shot) {
    const unsigned number = change.number();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    if (change.is("counters")) {
        a.idx().kspace_encode_step_1 = 0;
    } else if (change.is("same-counter") && shot == number) {
        a.idx().kspace_encode_step_1 = std::uint16_t(a.idx().kspace_encode_step_1 - 1);
    } else if (change.is("zeros") && shot >= number) {
        std::fill(a.data_begin(), a.data_end(), std::complex<float>());
    } else if (change.is("no-trajectory")) {
        std::fill(a.traj_begin(), a.traj_end(), 0.0f);
    } else if (change.is("divided")) {
        // As if k was divided by the matrix size twice.
        std::for_each(a.traj_begin(), a.traj_end(), [&](float &k) { k /= float(number); });
    } else if (change.is("missing-coil")) {
        remove_coil(a);
    } else if (change.is("components")) {
        a = resized(a, a.number_of_samples(), number);
    } else if (change.is("one-component-less") && shot == 3) {
        a = resized(a, a.number_of_samples(), a.trajectory_dimensions() - 1);
    } else if (change.is("samples") && shot == 3) {
        a = resized(a, number, a.trajectory_dimensions());
    } else if (change.is("nan") && shot == 3) {
        a.traj(0, 5) = nan;
    } else if (change.is("nan-data") && shot == 3) {
        a.data(5, 0) = nan;
    } else if (change.is("outside") && shot == 3) {
        a.traj(1, 5) = 3;
    }
}

// Writes the acquisitions several times, as repetitions, slices or contrasts.
void append_copies(ISMRMRD::Dataset &target, const std::vector<Acquisition> &all, const Change &change) {
    for (unsigned copy = 0; copy < change.number(); ++copy) {
        for (auto a : all) {
            if (change.is("contrasts")) {
                a.idx().contrast = std::uint16_t(copy);
            } else {
                (change.is("slices") ? a.idx().slice : a.idx().repetition) = std::uint16_t(copy);
                // All images differ, with the same trajectory.
                std::for_each(a.data_begin(), a.data_end(), [&](auto &z) { z *= float(copy + 1); });
            }
            target.appendAcquisition(a);
        }
    }
}

// Writes the acquisitions with a sample time, and noise before or after them.
void append_with_noise(ISMRMRD::Dataset &target, std::vector<Acquisition> &all, const Change &change) {
    const unsigned coils = all[0].active_channels();
    if (change.is("noise")) {
        append_noise(target, change.number(), coils);
    }
    for (auto &a : all) {
        a.sample_time_us() = SAMPLE_US;
        target.appendAcquisition(a);
    }
    if (change.is("late-noise")) {
        append_noise(target, change.number(), coils);
    }
}

void append_altered(ISMRMRD::Dataset &target, std::vector<Acquisition> &all, const Change &change) {
    const bool several = std::any_of(all.begin(), all.end(), [](auto &a) { return a.idx().repetition > 0; });
    unsigned selected_shots = 0;
    for (auto &a : all) {
        const bool selected = !several || a.idx().repetition == 1;
        const unsigned shot = selected ? selected_shots++ : 0;
        if (!is_removed(a, change, shot, selected)) {
            alter_shot(a, change, shot);
            if (selected) {
                alter_selected_shot(a, change, shot);
            }
            target.appendAcquisition(a);
        }
    }
}

void alter(const char *in, const char *out, const Change &change) {
    ISMRMRD::Dataset source(in, "dataset", false), target(out, "dataset", true);
    std::string xml;
    source.readHeader(xml);
    ISMRMRD::IsmrmrdHeader header;
    ISMRMRD::deserialize(xml.c_str(), header);
    alter_header(header, change);
    std::ostringstream text;
    ISMRMRD::serialize(header, text);
    target.writeHeader(text.str());
    if (change.is("field-map")) {
        return write_field_map(target, header.encoding[0], float(std::atof(change.value.c_str())));
    }
    std::vector<Acquisition> all(source.getNumberOfAcquisitions());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        source.readAcquisition(i, all[i]);
    }
    if (change.is("noise") || change.is("late-noise")) {
        append_with_noise(target, all, change);
    } else if (change.is("contrasts") || change.is("repetitions") || change.is("slices")) {
        append_copies(target, all, change);
    } else {
        append_altered(target, all, change);
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "alter IN OUT CHANGE [VALUE]\n");
        return 2;
    }
    try {
        alter(argv[1], argv[2], {argv[3], argc > 4 ? argv[4] : ""});
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
