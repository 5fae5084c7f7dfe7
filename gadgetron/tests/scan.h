// Simulated scans, and their images by an engine or by a plan of the C API.
#pragma once

#include "check.h"
#include "engine.h"
#include "scan_feed.h"

#include <cmath>
#include <memory>

using namespace recon_gadgets;

// The spaces of an encoding.
struct Spaces {
    std::array<std::size_t, 3> encoded_matrix{}, recon_matrix{};
    std::array<double, 3> encoded_fov{}, recon_fov{};  // mm
    ISMRMRD::TrajectoryType trajectory = ISMRMRD::TrajectoryType::OTHER;

    // Returns a header with one encoding.
    ISMRMRD::IsmrmrdHeader header() const {
        const auto space = [](const std::array<std::size_t, 3> &n, const std::array<double, 3> &mm) {
            ISMRMRD::EncodingSpace space;
            space.matrixSize = ISMRMRD::MatrixSize{};
            space.matrixSize.x = std::uint16_t(n[0]), space.matrixSize.y = std::uint16_t(n[1]);
            space.matrixSize.z = std::uint16_t(n[2]);
            space.fieldOfView_mm.x = float(mm[0]), space.fieldOfView_mm.y = float(mm[1]);
            space.fieldOfView_mm.z = float(mm[2]);
            return space;
        };
        ISMRMRD::IsmrmrdHeader header;
        header.encoding.resize(1);
        header.encoding[0].encodedSpace = space(encoded_matrix, encoded_fov);
        header.encoding[0].reconSpace = space(recon_matrix, recon_fov);
        header.encoding[0].trajectory = trajectory;
        header.experimentalConditions.H1resonanceFrequency_Hz = 123200000;
        return header;
    }
};

// Returns the samples of the first frame of a buffer.
inline Samples gather(const BufferView &view, const Spaces &spaces) {
    ScanFeed feed(spaces.header(), initialised(recon_scan_options_init));
    const auto *first = first_header(view, 0);
    if (first == nullptr || feed.add_frame(view, 0, *first, false) == 0) {
        throw Error("no row was acquired");
    }
    feed.complete();
    return *feed.next();
}

// A scan of the phantom on golden-angle spokes.
struct Scan {
    std::size_t n, spokes, readout, coils;
    std::vector<float> kx, ky, trajectory;  // `trajectory`: [2, samples]
    std::vector<Complex> kspace;            // [samples, coils]
    std::vector<ISMRMRD::AcquisitionHeader> headers;
    Spaces spaces;

    // `first`: index of the first spoke in the golden-angle series.
    Scan(std::size_t n, std::size_t spokes, std::size_t readout, std::size_t coils, std::size_t first = 0)
        : n(n), spokes(spokes), readout(readout), coils(coils) {
        const std::size_t count = (first + spokes) * readout;
        kx.resize(count), ky.resize(count);
        check(recon_trajectory_radial2d(RECON_F32, first + spokes, readout, RECON_SPOKES_GOLDEN_ANGLE, kx.data(),
                                        ky.data()));
        kx.erase(kx.begin(), kx.begin() + long(first * readout));
        ky.erase(ky.begin(), ky.begin() + long(first * readout));
        recon_geometry g = geometry();
        kspace.resize(samples() * coils);
        check(
            recon_phantom_kspace(&g, nullptr, 0, coils > 1 ? RECON_COILS_RING : RECON_COILS_UNIFORM, 1, kspace.data()));
        for (std::size_t m = 0; m < samples(); ++m) {
            trajectory.push_back(kx[m]);
            trajectory.push_back(ky[m]);
        }
        headers.resize(spokes);
        for (auto &h : headers) {
            h.number_of_samples = std::uint16_t(readout);
            h.active_channels = std::uint16_t(coils);
            h.trajectory_dimensions = 2;
        }
        spaces.encoded_matrix = spaces.recon_matrix = {n, n, 1};
        spaces.encoded_fov = spaces.recon_fov = {double(n), double(n), 5};
    }

    std::size_t samples() const { return spokes * readout; }

    recon_geometry geometry() const {
        recon_geometry g = initialised(recon_geometry_init);
        g.dims[0] = g.dims[1] = n;
        g.samples = samples();
        g.coordinates[0] = kx.data();
        g.coordinates[1] = ky.data();
        g.coils = coils;
        return g;
    }

    BufferView view() const {
        BufferView v;
        v.e0 = readout, v.e1 = spokes, v.e2 = v.n = v.s = v.loc = 1, v.coils = coils;
        v.data = kspace.data(), v.trajectory = trajectory.data(), v.trajectory_size = 2, v.headers = headers.data();
        return v;
    }

    Samples gathered() const { return gather(view(), spaces); }

    void set_slice(unsigned slice) {
        for (auto &h : headers) {
            h.idx.slice = std::uint16_t(slice);
        }
    }

    void set_sample_time(float microseconds) {
        for (auto &h : headers) {
            h.sample_time_us = microseconds;
        }
    }
};

inline Settings settings(Method method) {
    Settings s;
    s.method = method;
    s.maps = method == Method::Cg ? CoilMapSource::Data : CoilMapSource::None;
    s.tolerance = method == Method::Cg ? 1e-5 : 1e-4;
    s.threads = 2;
    s.output = ImageOutput::Complex;
    return s;
}

// Reconstructs a scan, and writes its image to `out`.
inline ReconstructionResult reconstruct(Engine &engine, const Scan &scan, std::vector<Complex> &out,
                                        const Samples *reference = nullptr) {
    const Samples samples = scan.gathered();
    const Complex unwritten(std::nanf(""), 0);
    out.assign(Grid(samples.properties()).image_voxels() * engine.channel_count(scan.coils), unwritten);
    return engine.reconstruct(samples, reference, out.data());
}

// Returns the image of a scan.
inline std::vector<Complex> image(Engine &engine, const Scan &scan, const Samples *reference = nullptr) {
    std::vector<Complex> out;
    reconstruct(engine, scan, out, reference);
    return out;
}

// Returns the warnings about the image of a scan.
inline std::vector<std::string> warnings_of(Engine &engine, const Scan &scan) {
    std::vector<Complex> out;
    return reconstruct(engine, scan, out).warnings;
}

// Returns the relative l2 distance of two images, or of their magnitudes.
inline double distance(const std::vector<Complex> &a, const std::vector<Complex> &b, bool magnitudes = false) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
        difference += magnitudes ? std::pow(std::abs(a[i]) - std::abs(b[i]), 2) : std::norm(a[i] - b[i]);
        norm += std::norm(b[i]);
    }
    return a.size() == b.size() && norm > 0 ? std::sqrt(difference / norm) : 1e9;
}

inline bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}

// A plan of the C API.
using PlanPointer = std::unique_ptr<recon_plan, void (*)(recon_plan *)>;

inline recon_options plan_options(double tolerance) {
    recon_options options = initialised(recon_options_init);
    options.tolerance = tolerance, options.threads = 2;
    return options;
}

inline PlanPointer make_plan(const recon_geometry &g, const recon_options &options) {
    recon_plan *plan = nullptr;
    check(recon_plan_create(&g, &options, &plan));
    return PlanPointer(plan, recon_plan_destroy);
}

inline PlanPointer make_plan(const recon_geometry &g, double tolerance) {
    return make_plan(g, plan_options(tolerance));
}
