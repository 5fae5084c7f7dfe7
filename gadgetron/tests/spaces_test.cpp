// Images on the matrix and field of view of reconSpace, which may differ from those of encodedSpace.
#include "scan.h"

#include <algorithm>
#include <utility>

namespace {

std::vector<Complex> phantom(std::size_t n) {
    recon_geometry g = initialised(recon_geometry_init);
    g.dims[0] = g.dims[1] = n;
    std::vector<Complex> image(n * n);
    check(recon_phantom_image(&g, nullptr, 0, 4, image.data()));
    return image;
}

// Images with different voxel sizes and fields of view, compared with the phantom.
void voxel_sizes() {
    // Oversampling by 2 along both axes: the encoded field of view has 256 voxels, and the image is the central 128. k
    // in cycles per voxel does not change.
    Scan oversampled(128, 300, 512, 1);
    oversampled.spaces.encoded_matrix = {256, 256, 1};
    oversampled.spaces.encoded_fov = {256, 256, 5};
    for (const Method method : {Method::Grid, Method::Cg}) {
        Engine engine(settings(method));
        CHECK(distance(image(engine, oversampled), phantom(128), true) < 0.2);
    }
    // The least squares solution is computed on the encoded matrix, then cropped.
    Engine engine(settings(Method::Cg)), encoded(settings(Method::Cg));
    Scan uncropped = oversampled;
    uncropped.spaces.recon_matrix = {256, 256, 1};
    uncropped.spaces.recon_fov = {256, 256, 5};
    const auto whole = image(encoded, uncropped);
    std::vector<Complex> cropped(128 * 128);
    for (std::size_t y = 0; y < 128; ++y) {
        std::copy_n(whole.begin() + long(64 + 256 * (64 + y)), 128, cropped.begin() + long(128 * y));
    }
    CHECK(image(engine, oversampled) == cropped);
    // Larger and smaller voxels, with the same scale of the image.
    for (const std::size_t n : {64, 192}) {
        Scan scan(128, 300, 256, 1);
        scan.spaces.recon_matrix = {n, n, 1};
        for (const Method method : {Method::Grid, Method::Cg}) {
            Engine resizing(settings(method));
            CHECK(distance(image(resizing, scan), phantom(n), true) < 0.25);
        }
    }
}

// Interpolation to twice the number of voxels over the same field of view: every second voxel equals the original.
void interpolation() {
    Scan scan(64, 120, 128, 1);
    Engine plain(settings(Method::Fhd)), engine(settings(Method::Fhd));
    const auto coarse = image(plain, scan);
    scan.spaces.recon_matrix = {128, 128, 1};
    const auto fine = image(engine, scan);
    std::vector<Complex> second_voxels(64 * 64);
    for (std::size_t i = 0; i < 64 * 64; ++i) {
        second_voxels[i] = fine[2 * (i % 64) + 128 * 2 * (i / 64)];
    }
    CHECK(distance(second_voxels, coarse) < 1e-6);
}

// The spaces of an encoding.
struct SpacesCase {
    std::array<std::size_t, 3> encoded, recon;
    std::array<double, 3> encoded_fov, recon_fov;
};

const SpacesCase CASES[] = {
    {{32, 32, 1}, {32, 32, 1}, {240, 240, 5}, {240, 240, 5}},
    {{32, 32, 1}, {20, 32, 1}, {240, 240, 5}, {150, 240, 5}},  // cropped along x
    {{32, 32, 1}, {16, 20, 1}, {240, 240, 5}, {120, 150, 5}},  // cropped along both axes
    {{32, 32, 1}, {32, 32, 1}, {240, 240, 5}, {150, 240, 5}},  // the same matrix over a smaller field of view
    {{32, 32, 1}, {64, 40, 1}, {240, 240, 5}, {240, 240, 5}},  // k-space padded with zeros
    {{64, 32, 1}, {32, 32, 1}, {480, 240, 5}, {240, 240, 5}},  // an oversampled readout
    {{64, 32, 1}, {64, 64, 1}, {480, 240, 5}, {240, 240, 5}},  // oversampled, and padded with zeros
    {{32, 32, 1}, {24, 20, 1}, {240, 240, 5}, {240, 240, 5}},  // larger voxels
    {{32, 32, 1}, {20, 24, 1}, {240, 240, 0}, {150, 180, 0}},  // unknown thickness of the slice
    {{16, 16, 12}, {16, 16, 12}, {160, 160, 120}, {160, 160, 120}},
    {{16, 16, 12}, {10, 16, 12}, {160, 160, 120}, {100, 160, 120}},
    {{16, 16, 12}, {12, 10, 7}, {160, 160, 120}, {120, 100, 70}},
    {{16, 16, 12}, {20, 24, 14}, {160, 160, 120}, {160, 160, 120}},
    {{32, 16, 12}, {16, 16, 12}, {320, 160, 120}, {160, 160, 120}},
};

std::size_t product(const std::array<std::size_t, 3> &n) {
    return n[0] * n[1] * n[2];
}

// A radial scan of the phantom with two coils, in 2D or 3D.
struct RadialScan {
    static constexpr std::size_t coils = 2;
    unsigned ndim;
    std::size_t spokes, readout, count;
    std::array<std::vector<float>, 3> k;
    std::vector<float> trajectory;
    std::vector<Complex> kspace;
    std::vector<ISMRMRD::AcquisitionHeader> headers;
    Spaces spaces;
    recon_geometry geometry = initialised(recon_geometry_init);

    explicit RadialScan(const SpacesCase &c)
        : ndim(c.encoded[2] > 1 ? 3 : 2),
          spokes(ndim == 2 ? 100 : 600),
          // Samples are at most 1/FOV apart: with gaps, coil maps come from a narrower centre, with a warning.
          readout(std::max<std::size_t>(32, c.encoded[0])),
          count(spokes * readout),
          k{std::vector<float>(count), std::vector<float>(count), std::vector<float>(count)},
          kspace(count * coils),
          headers(spokes) {
        check(ndim == 2 ? recon_trajectory_radial2d(RECON_F32, spokes, readout, RECON_SPOKES_GOLDEN_ANGLE, k[0].data(),
                                                    k[1].data())
                        : recon_trajectory_radial3d(RECON_F32, spokes, readout, k[0].data(), k[1].data(), k[2].data()));
        geometry.ndim = ndim;
        std::copy(c.encoded.begin(), c.encoded.end(), geometry.dims);
        geometry.samples = count, geometry.coils = coils;
        for (unsigned axis = 0; axis < ndim; ++axis) {
            geometry.coordinates[axis] = k[axis].data();
        }
        check(recon_phantom_kspace(&geometry, nullptr, 0, RECON_COILS_RING, 1, kspace.data()));
        for (std::size_t m = 0; m < count; ++m) {
            for (unsigned axis = 0; axis < ndim; ++axis) {
                trajectory.push_back(k[axis][m]);
            }
        }
        for (auto &h : headers) {
            h.number_of_samples = std::uint16_t(readout), h.active_channels = std::uint16_t(coils);
            h.trajectory_dimensions = std::uint16_t(ndim);
        }
        spaces.encoded_matrix = c.encoded, spaces.recon_matrix = c.recon;
        spaces.encoded_fov = c.encoded_fov, spaces.recon_fov = c.recon_fov;
    }

    Samples gathered() const {
        BufferView v;
        v.e0 = readout, v.e1 = spokes, v.e2 = v.n = v.s = v.loc = 1, v.coils = coils;
        v.data = kspace.data(), v.trajectory = trajectory.data(), v.trajectory_size = ndim, v.headers = headers.data();
        return gather(v, spaces);
    }
};

// Returns the image of the C API: reconstruction on the encoded matrix, recon_resize, then combination of the coils.
std::vector<Complex> expected_image(const RadialScan &scan, const SpacesCase &c, Method method) {
    const std::size_t voxels = product(c.encoded), pixels = product(c.recon);
    std::vector<Complex> images(voxels * scan.coils), resized(pixels * scan.coils), combined(pixels);
    auto plan = make_plan(scan.geometry, 1e-4);
    recon_geometry g = scan.geometry;
    if (method == Method::Cg) {
        std::vector<Complex> maps(voxels * scan.coils);
        check(recon_coil_maps(plan.get(), scan.kspace.data(), 0, maps.data()));
        g.coil_maps = maps.data();
        plan = make_plan(g, 1e-5);
        recon_cg_options options = initialised(recon_cg_options_init);
        options.iterations = 4;
        check(recon_cg(plan.get(), scan.kspace.data(), images.data(), &options, nullptr));
        g.coil_maps = nullptr, g.coils = 1;
    } else {
        check((method == Method::Grid ? recon_grid : recon_fhd)(plan.get(), scan.kspace.data(), images.data()));
    }
    const std::array<std::uint64_t, 3> dims{c.recon[0], c.recon[1], c.recon[2]};
    check(recon_resize(&g, c.encoded_fov.data(), dims.data(), c.recon_fov.data(), images.data(), resized.data()));
    if (g.coils == 1) {
        resized.resize(pixels);
        return resized;
    }
    std::copy(dims.begin(), dims.end(), g.dims);
    check(recon_combine(&g, RECON_COMBINE_ROOT_SUM_OF_SQUARES, resized.data(), combined.data()));
    return combined;
}

// The gadget gives the same bits as the program.
void matrices() {
    for (const SpacesCase &c : CASES) {
        const RadialScan scan(c);
        const Samples samples = scan.gathered();
        for (const Method method : {Method::Grid, Method::Fhd, Method::Cg}) {
            Settings s = settings(method);
            s.combine = CoilCombination::RootSumOfSquares, s.iterations = 4;
            Engine engine(s);
            std::vector<Complex> out(product(c.recon), Complex(std::nanf(""), 0));
            const ReconstructionResult result = engine.reconstruct(samples, nullptr, out.data());
            CHECK(out == expected_image(scan, c, method) && result.warnings.empty());
        }
    }
    // Debian's ISMRMRD library writes fields of view with six decimals.
    Scan wrong_header(32, 20, 64, 1);
    wrong_header.spaces.encoded_fov[1] = 1e5, wrong_header.spaces.recon_fov[1] = 1e-6;
    Engine engine(settings(Method::Grid));
    CHECK_ERROR([&] { image(engine, wrong_header); }, "fieldOfView_mm of encodedSpace and reconSpace", "axis 1",
                "32 voxels");
}

}  // namespace

int main() {
    voxel_sizes();
    interpolation();
    matrices();
    return result("spaces");
}
