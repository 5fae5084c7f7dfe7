// Calibration data: selection for a scan, conversion to its matrix, and coil maps from lines of a Cartesian grid.
#include "calibration.h"
#include "scan.h"

namespace {

using Header = ISMRMRD::AcquisitionHeader;

constexpr std::size_t N = 64, COILS = 3;

// Lines of a Cartesian grid of N x N voxels.
struct Lines {
    std::vector<float> trajectory;  // [2, samples]
    std::vector<Complex> kspace;    // [samples, COILS]
    std::vector<Header> headers;
    Spaces spaces;

    explicit Lines(const std::vector<int> &steps) {
        std::vector<float> kx, ky;
        for (const int step : steps) {
            for (std::size_t x = 0; x < N; ++x) {
                kx.push_back((float(x) - float(N / 2)) / N);
                ky.push_back(float(step - int(N / 2)) / N);
                trajectory.push_back(kx.back()), trajectory.push_back(ky.back());
            }
        }
        recon_geometry g = geometry(kx, ky);
        kspace.resize(kx.size() * COILS);
        check(recon_phantom_kspace(&g, nullptr, 0, RECON_COILS_RING, 1, kspace.data()));
        headers.resize(steps.size());
        for (auto &h : headers) {
            h.number_of_samples = N, h.active_channels = COILS, h.trajectory_dimensions = 2;
        }
        spaces.encoded_matrix = spaces.recon_matrix = {N, N, 1};
        spaces.encoded_fov = spaces.recon_fov = {double(N), double(N), 5};
    }

    static recon_geometry geometry(const std::vector<float> &kx, const std::vector<float> &ky) {
        recon_geometry g = initialised(recon_geometry_init);
        g.dims[0] = g.dims[1] = N;
        g.samples = kx.size(), g.coils = COILS;
        g.coordinates[0] = kx.data(), g.coordinates[1] = ky.data();
        return g;
    }

    Samples gathered() const {
        BufferView v;
        v.e0 = N, v.e1 = headers.size(), v.e2 = v.n = v.s = v.loc = 1, v.coils = COILS;
        v.data = kspace.data(), v.trajectory = trajectory.data(), v.trajectory_size = 2, v.headers = headers.data();
        return gather(shots_of_frame(v, 0, 0, 0), spaces);
    }
};

std::vector<int> range(int first, int last, int step = 1) {
    std::vector<int> all;
    for (int i = first; i <= last; i += step) {
        all.push_back(i);
    }
    return all;
}

void selection() {
    Lines lines(range(20, 43)), second_contrast(range(26, 37)), scan(range(0, int(N) - 1, 2));
    for (auto &h : second_contrast.headers) {
        h.idx.contrast = 1;
    }
    CalibrationData all;
    CHECK(all.empty() && !all.for_scan(scan.gathered(), scan.spaces));
    all.add(lines.gathered(), lines.spaces);
    all.add(second_contrast.gathered(), second_contrast.spaces);
    CHECK(all.for_scan(scan.gathered(), scan.spaces)->shots == 24);
    for (auto &h : scan.headers) {
        h.idx.contrast = 1, h.idx.repetition = 7;
    }
    CHECK(all.for_scan(scan.gathered(), scan.spaces)->shots == 12);
    for (auto &h : scan.headers) {
        h.idx.contrast = 2;
    }
    CHECK(all.for_scan(scan.gathered(), scan.spaces)->shots == 24);  // the first one of several
    for (auto &h : scan.headers) {
        h.idx.slice = 1;
    }
    CHECK(!all.for_scan(scan.gathered(), scan.spaces));
    // New data of the same counters replace the old.
    CalibrationData replaced;
    replaced.add(lines.gathered(), lines.spaces);
    replaced.add(Lines(range(30, 33)).gathered(), lines.spaces);
    const Lines plain(range(0, int(N) - 1, 2));
    CHECK(replaced.for_scan(plain.gathered(), plain.spaces)->shots == 4);

}

void position_and_coils() {
    Lines lines(range(20, 43));
    const Lines plain(range(0, int(N) - 1, 2));
    Lines turned = plain, moved = plain;
    for (auto &h : lines.headers) {
        h.read_dir[0] = 1;
    }
    for (auto &h : turned.headers) {
        h.read_dir[1] = 1;
    }
    for (auto &h : moved.headers) {
        h.position[2] = 4;
    }
    CalibrationData placed;
    placed.add(lines.gathered(), lines.spaces);
    CHECK(placed.for_scan(plain.gathered(), plain.spaces)->shots == 24);
    CHECK_ERROR([&] { placed.for_scan(turned.gathered(), turned.spaces); }, "different readout direction", "coil_maps");
    CHECK_ERROR([&] { placed.for_scan(moved.gathered(), moved.spaces); }, "4.0 mm away from the scan");
    Samples fewer = plain.gathered();
    fewer.coils = 2;
    CHECK_ERROR([&] { placed.for_scan(fewer, plain.spaces); }, "have 3 coils and the scan has 2");
}

// Calibration data of an encoding with larger voxels, and with smaller ones.
void different_matrix() {
    const Lines lines(range(20, 43)), scan(range(0, int(N) - 1, 2));
    Spaces coarse = lines.spaces, fine = lines.spaces;
    coarse.encoded_fov = {2.0 * N, double(N), 5};
    fine.encoded_matrix = {2 * N, N, 1};
    CalibrationData of_coarse, of_fine;
    of_coarse.add(lines.gathered(), coarse);
    of_fine.add(lines.gathered(), fine);
    const Samples a = *of_coarse.for_scan(scan.gathered(), scan.spaces);
    CHECK(a.count == 24 * N && a.shots == 24);
    for (std::size_t m = 0; m < a.count; ++m) {
        CHECK(a.trajectory[2 * m] == 0.5f * lines.trajectory[2 * m]);
        CHECK(a.trajectory[2 * m + 1] == lines.trajectory[2 * m + 1]);
    }
    // The outer half of each readout is beyond the scan's k-space.
    const Samples b = *of_fine.for_scan(scan.gathered(), scan.spaces);
    CHECK(b.count == 24 * N / 2 && b.shots == 24 && b.starts[1] == N / 2 && b.times[0].skipped == N / 4);
    for (std::size_t m = 0; m < b.count; ++m) {
        const std::size_t from = m / (N / 2) * N + N / 4 + m % (N / 2);
        CHECK(b.trajectory[2 * m] == 2 * lines.trajectory[2 * from]);
        for (std::size_t c = 0; c < COILS; ++c) {
            CHECK(b.kspace[m + c * b.count] == lines.kspace[from + c * 24 * N]);
        }
    }
    Spaces tiny = lines.spaces;
    tiny.encoded_fov = {double(N), 1e-3, 5};
    CalibrationData outside;
    outside.add(Lines(range(20, 22)).gathered(), tiny);
    CHECK_ERROR([&] { outside.for_scan(scan.gathered(), scan.spaces); }, "no samples within the scan's k-space");
}

// An accelerated Cartesian scan with separate calibration lines, compared with the C API and maps from the same lines.
void accelerated() {
    const Lines lines(range(20, 43)), scan(range(0, int(N) - 1, 2)), whole(range(0, int(N) - 1));
    CalibrationData all;
    all.add(lines.gathered(), lines.spaces);
    const Samples samples = scan.gathered(), reference = *all.for_scan(samples, scan.spaces);
    Engine engine(settings(Method::Cg));
    std::vector<Complex> image(N * N), expected(N * N), full(N * N), maps(N * N * COILS);
    const ReconstructionResult result = engine.reconstruct(samples, scan.spaces, &reference, image.data());
    CHECK(result.warnings.empty());

    const auto axes = [](const Lines &lines) {
        std::array<std::vector<float>, 2> k;
        for (std::size_t i = 0; i < lines.trajectory.size(); ++i) {
            k[i % 2].push_back(lines.trajectory[i]);
        }
        return k;
    };
    const auto plan_of = [&](const Lines &lines, double tolerance, const float *weights, const Complex *coil_maps) {
        const auto k = axes(lines);
        recon_geometry g = Lines::geometry(k[0], k[1]);
        g.weights = weights, g.coil_maps = coil_maps;
        return make_plan(g, tolerance);
    };
    const std::vector<float> equal(24 * N, float(1.0 / (N * N)));
    check(recon_coil_maps(plan_of(lines, 1e-4, equal.data(), nullptr).get(), lines.kspace.data(), 0, maps.data()));
    const auto solve = [&](const Lines &lines, std::vector<Complex> &solved) {
        const auto plan = plan_of(lines, 1e-5, nullptr, maps.data());
        check(recon_cg(plan.get(), lines.kspace.data(), solved.data(), nullptr, nullptr));
    };
    solve(scan, expected);
    CHECK(image == expected);
    // The image is close to that of the whole scan. Without the lines it is aliased, or an error.
    solve(whole, full);
    const double error = distance(image, full);
    std::printf("accelerated by 2, maps from 24 lines: %.2f %% from the whole scan\n", 100 * error);
    CHECK(error < 0.1);
}

}  // namespace

int main() {
    selection();
    position_and_coils();
    different_matrix();
    accelerated();
    return result("calibration");
}
