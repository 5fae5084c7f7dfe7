// Changes a raw data file, for the tests of whole chains: more repetitions or slices, fewer shots, and wrong headers or
// data. In a file of several repetitions, only the second one becomes wrong.
//
//     alter IN OUT WHAT [NUMBER | NXxNYxNZ]
//
// WHAT = field-map makes an off-resonance map of NUMBER Hz, for each slice of the file. WHAT = noise adds NUMBER noise
// acquisitions before the data, late-noise after them.
#include <ismrmrd/dataset.h>
#include <ismrmrd/ismrmrd.h>
#include <ismrmrd/meta.h>
#include <ismrmrd/xml.h>

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
#include <vector>

namespace {

using ISMRMRD::Acquisition;

// 20 ms a readout of 1000 samples.
constexpr float SAMPLE_US = 20;

// A map of one frequency for each slice, as images on the matrix of encodedSpace.
void write_field_map(ISMRMRD::Dataset &target, const ISMRMRD::Encoding &encoding, float hertz) {
    const auto size = encoding.encodedSpace.matrixSize;
    const auto &slices = encoding.encodingLimits.slice;
    const unsigned last = slices.is_present() ? slices->maximum : 0;
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

// Noise acquisitions of correlated coils of different variance, sampled at twice the rate of the data.
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

// The acquisition with another number of samples or of trajectory components.
Acquisition resized(Acquisition &from, unsigned samples, unsigned dimensions) {
    Acquisition to(std::uint16_t(samples), from.active_channels(), std::uint16_t(dimensions));
    ISMRMRD::AcquisitionHeader h = from.getHead();
    h.number_of_samples = std::uint16_t(samples);
    h.trajectory_dimensions = std::uint16_t(dimensions);
    to.setHead(h);
    for (unsigned i = 0; i < samples; ++i) {
        const unsigned at = i < from.number_of_samples() ? i : from.number_of_samples() - 1;
        for (unsigned c = 0; c < from.active_channels(); ++c) {
            to.data(std::uint16_t(i), std::uint16_t(c)) = from.data(std::uint16_t(at), std::uint16_t(c));
        }
        for (unsigned d = 0; d < dimensions; ++d) {
            to.traj(std::uint16_t(d), std::uint16_t(i)) =
                d < from.trajectory_dimensions() ? from.traj(std::uint16_t(d), std::uint16_t(at)) : 0.25f;
        }
    }
    return to;
}

void alter(const char *in, const char *out, const std::string &what, const std::string &value) {
    const unsigned number = unsigned(std::atoi(value.c_str()));
    ISMRMRD::Dataset source(in, "dataset", false), target(out, "dataset", true);
    std::string xml;
    source.readHeader(xml);
    ISMRMRD::IsmrmrdHeader header;
    ISMRMRD::deserialize(xml.c_str(), header);
    if (what == "zero-matrix") {
        header.encoding[0].encodedSpace.matrixSize = ISMRMRD::MatrixSize(0, 0, 0);
    }
    if (what == "huge-matrix") {
        header.encoding[0].encodedSpace.matrixSize = ISMRMRD::MatrixSize(65000, 65000, 65000);
        header.encoding[0].reconSpace.matrixSize = ISMRMRD::MatrixSize(65000, 65000, 65000);
    }
    if (what == "oversampled") {
        // Readout oversampling: twice the field of view along the readout, the same voxel size.
        header.encoding[0].encodedSpace.matrixSize.x *= 2;
        header.encoding[0].encodedSpace.fieldOfView_mm.x *= 2;
    }
    if (what == "cropped" || what == "filled") {
        // Another matrix, with the same voxel size (cropped) or the same field of view (filled).
        auto &space = header.encoding[0].reconSpace;
        const auto before = space.matrixSize;
        unsigned x = 0, y = 0, z = 0;
        if (std::sscanf(value.c_str(), "%ux%ux%u", &x, &y, &z) != 3) {
            throw std::runtime_error("three sizes are needed, such as 64x64x1");
        }
        space.matrixSize = ISMRMRD::MatrixSize(std::uint16_t(x), std::uint16_t(y), std::uint16_t(z));
        if (what == "cropped") {
            space.fieldOfView_mm.x *= float(x) / float(before.x);
            space.fieldOfView_mm.y *= float(y) / float(before.y);
            space.fieldOfView_mm.z *= float(z) / float(before.z);
        }
    }
    if (what == "negative-matrix") {
        header.encoding[0].encodedSpace.matrixSize.y = std::uint16_t(-96);
    }
    if (what == "field-of-view") {
        header.encoding[0].encodedSpace.fieldOfView_mm.x = std::strtof(value.c_str(), nullptr);
    }
    if (what == "noise" || what == "late-noise") {
        ISMRMRD::AcquisitionSystemInformation system;
        system.relativeReceiverNoiseBandwidth = 0.8f;
        header.acquisitionSystemInformation = system;
    }
    if (what == "no-limits") {
        header.encoding[0].encodingLimits = ISMRMRD::EncodingLimits();
    }
    if (what == "slices" && number > 0) {
        header.encoding[0].encodingLimits.slice = ISMRMRD::Limit(0, std::uint16_t(number - 1), 0);
    }
    std::ostringstream text;
    ISMRMRD::serialize(header, text);
    target.writeHeader(text.str());

    if (what == "field-map") {
        return write_field_map(target, header.encoding[0], float(std::atof(value.c_str())));
    }
    const std::uint32_t count = source.getNumberOfAcquisitions();
    std::vector<Acquisition> all(count);
    bool several = false;
    for (std::uint32_t i = 0; i < count; ++i) {
        source.readAcquisition(i, all[i]);
        several = several || all[i].idx().repetition > 0;
    }
    if (what == "empty") {
        return;
    }
    if (what == "noise" || what == "late-noise") {
        if (what == "noise") {
            append_noise(target, number, all[0].active_channels());
        }
        for (auto a : all) {
            a.sample_time_us() = SAMPLE_US;
            target.appendAcquisition(a);
        }
        if (what == "late-noise") {
            append_noise(target, number, all[0].active_channels());
        }
        return;
    }
    if (what == "contrasts") {
        for (unsigned c = 0; c < number; ++c) {
            for (auto a : all) {
                a.idx().contrast = std::uint16_t(c);
                target.appendAcquisition(a);
            }
        }
        return;
    }
    if (what == "repetitions" || what == "slices") {
        for (unsigned r = 0; r < number; ++r) {
            for (auto a : all) {
                (what == "slices" ? a.idx().slice : a.idx().repetition) = std::uint16_t(r);
                // All images differ, with the same trajectory.
                for (auto *z = a.data_begin(); z != a.data_end(); ++z) {
                    *z *= float(r + 1);
                }
                target.appendAcquisition(a);
            }
        }
        return;
    }
    unsigned shot = 0;
    for (auto a : all) {
        const bool here = !several || a.idx().repetition == 1;
        const unsigned at = here ? shot++ : 0;
        if (what == "without-slice" && a.idx().slice == number) {
            continue;
        } else if (here && what == "missing" && at >= number) {
            continue;
        } else if (what == "every" && at % number != 0) {
            continue;
        } else if (here && what == "lost" && at == number) {
            continue;
        } else if (here && what == "counters") {
            a.idx().kspace_encode_step_1 = 0;
        } else if (here && what == "same-counter" && at == number) {
            a.idx().kspace_encode_step_1 = std::uint16_t(a.idx().kspace_encode_step_1 - 1);
        } else if (here && what == "zeros" && at >= number) {
            std::fill(a.data_begin(), a.data_end(), std::complex<float>());
        } else if (here && what == "no-trajectory") {
            std::fill(a.traj_begin(), a.traj_end(), 0.0f);
        } else if (here && what == "divided") {
            // As if k was divided by the matrix size twice.
            std::for_each(a.traj_begin(), a.traj_end(), [&](float &k) { k /= float(number); });
        } else if (what == "moved-blades") {
            // The object, and the coils with it, in alternating directions from blade to blade of so many lines.
            const double side = at / number % 2 == 0 ? 1 : -1;
            for (std::uint16_t i = 0; i < a.number_of_samples(); ++i) {
                const double cycles = side * (2.0 * a.traj(0, i) - 1.0 * a.traj(1, i));
                for (std::uint16_t c = 0; c < a.active_channels(); ++c) {
                    a.data(i, c) *= std::complex<float>(std::polar(1.0, -2 * std::acos(-1.0) * cycles));
                }
            }
        } else if (what == "off-resonance") {
            // All of the object, by so many Hz.
            a.sample_time_us() = SAMPLE_US;
            for (std::uint16_t i = 0; i < a.number_of_samples(); ++i) {
                const double cycles = std::atof(value.c_str()) * double(i) * SAMPLE_US * 1e-6;
                for (std::uint16_t c = 0; c < a.active_channels(); ++c) {
                    a.data(i, c) *= std::complex<float>(std::polar(1.0, -2 * std::acos(-1.0) * cycles));
                }
            }
        } else if (here && what == "missing-coil") {
            Acquisition fewer(a.number_of_samples(), std::uint16_t(a.active_channels() - 1), a.trajectory_dimensions());
            ISMRMRD::AcquisitionHeader h = a.getHead();
            h.active_channels = fewer.active_channels();
            fewer.setHead(h);
            std::copy(a.traj_begin(), a.traj_end(), fewer.traj_begin());
            std::copy(a.data_begin(), a.data_begin() + fewer.getNumberOfDataElements(), fewer.data_begin());
            a = fewer;
        } else if (what == "no-sample-time") {
            a.sample_time_us() = 0;
        } else if (what == "oblique") {
            // Orthogonal directions, and another position for each slice.
            const float s = std::sqrt(0.5f);
            for (int i = 0; i < 3; ++i) {
                a.position()[i] = float(7 * i) - 3.3f + float(a.idx().slice);
                a.patient_table_position()[i] = float(i) - 0.1f;
                a.read_dir()[i] = i == 0 ? s : i == 1 ? -s : 0;
                a.phase_dir()[i] = i == 2 ? -1 : 0;
                a.slice_dir()[i] = i == 2 ? 0 : s;
            }
        } else if (what == "calibration") {
            a.setFlag(ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING);
        } else if (here && what == "components") {
            a = resized(a, a.number_of_samples(), number);
        } else if (here && what == "one-component-less" && at == 3) {
            a = resized(a, a.number_of_samples(), a.trajectory_dimensions() - 1);
        } else if (here && what == "samples" && at == 3) {
            a = resized(a, number, a.trajectory_dimensions());
        } else if (here && what == "nan" && at == 3) {
            a.traj(0, 5) = std::numeric_limits<float>::quiet_NaN();
        } else if (here && what == "nan-data" && at == 3) {
            a.data(5, 0) = std::numeric_limits<float>::quiet_NaN();
        } else if (here && what == "outside" && at == 3) {
            a.traj(1, 5) = 3;
        }
        target.appendAcquisition(a);
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "alter IN OUT WHAT [NUMBER | NXxNYxNZ]\n");
        return 2;
    }
    try {
        alter(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "");
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
