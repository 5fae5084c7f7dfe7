// The motion of PROPELLER blades: the estimate, the image compared with the C API, and messages.
#include "image_headers.h"
#include "scan.h"

#include <algorithm>
#include <cstdio>
#include <random>

namespace {

// Blades of an object that is rotated (degrees) and moved (voxels) between them.
struct MovedBlades {
    static constexpr std::size_t n = 96, blades = 12, lines = 18, readout = 120;
    Scan scan;
    std::vector<BladeMotion> motion;

    MovedBlades(std::mt19937 &random, double degrees, double voxels, std::size_t coils)
        : scan(n, blades * lines, readout, coils), motion(blades) {
        const std::size_t samples = lines * readout;
        check(recon_trajectory_propeller(RECON_F32, blades, lines, readout, scan.kx.data(), scan.ky.data()));
        for (std::size_t m = 0; m < scan.samples(); ++m) {
            scan.trajectory[2 * m] = scan.kx[m], scan.trajectory[2 * m + 1] = scan.ky[m];
        }
        std::uniform_real_distribution<double> uniform(-1, 1);
        std::vector<Complex> blade(samples * coils);
        for (std::size_t b = 0; b < blades; ++b) {
            motion[b].rotation = degrees * uniform(random);
            motion[b].translation = {voxels * uniform(random), voxels * uniform(random)};
            recon_geometry g = scan.geometry();
            g.samples = samples;
            g.coordinates[0] = scan.kx.data() + b * samples, g.coordinates[1] = scan.ky.data() + b * samples;
            const auto shapes = moved_shapes(motion[b]);
            check(recon_phantom_kspace(&g, shapes.data(), shapes.size() / 10,
                                       coils > 1 ? RECON_COILS_RING : RECON_COILS_UNIFORM, 1, blade.data()));
            for (std::size_t c = 0; c < coils; ++c) {
                std::copy_n(&blade[c * samples], samples, &scan.kspace[c * scan.samples() + b * samples]);
            }
        }
    }

    // Returns density, centre, semi-axes and angles of each shape, [10, shapes].
    static std::vector<double> moved_shapes(const BladeMotion &motion) {
        std::vector<double> shapes{1,   0,   0,     0, 0.69, 0.92, 1, 0,   0, 0,
                                   -0.8, 0,  -0.02, 0, 0.66, 0.87, 1, 0,   0, 0,
                                   0.4, 0,   0.35,  0, 0.21, 0.25, 1, 0,   0, 0,
                                   0.3, 0.3, -0.25, 0, 0.2,  0.08, 1, 0.6, 0, 0};
        const double angle = motion.rotation * std::acos(-1.0) / 180, c = std::cos(angle), s = std::sin(angle);
        for (std::size_t i = 0; i < shapes.size(); i += 10) {
            const double x = shapes[i + 1], y = shapes[i + 2];
            shapes[i + 1] = c * x - s * y + 2 * motion.translation[0] / n;
            shapes[i + 2] = s * x + c * y + 2 * motion.translation[1] / n;
            shapes[i + 7] += angle;
        }
        return shapes;
    }

    // Returns the largest errors in degrees and voxels. A motion that is common to all blades is subtracted.
    std::array<double, 2> errors(const std::vector<BladeMotion> &estimate) const {
        double mean_rotation = 0;
        std::array<double, 2> mean_translation{}, largest{};
        std::vector<std::array<double, 2>> remaining;
        for (std::size_t b = 0; b < blades; ++b) {
            const double angle = estimate[b].rotation * std::acos(-1.0) / 180, c = std::cos(angle), s = std::sin(angle);
            const double x = motion[b].translation[0] - estimate[b].translation[0];
            const double y = motion[b].translation[1] - estimate[b].translation[1];
            remaining.push_back({c * x + s * y, c * y - s * x});
            mean_rotation += (motion[b].rotation - estimate[b].rotation) / blades;
            mean_translation[0] += remaining[b][0] / blades, mean_translation[1] += remaining[b][1] / blades;
        }
        for (std::size_t b = 0; b < blades; ++b) {
            const double rotation = motion[b].rotation - estimate[b].rotation - mean_rotation;
            largest[0] = std::max(largest[0], std::fabs(rotation));
            largest[1] = std::max(largest[1], std::hypot(remaining[b][0] - mean_translation[0],
                                                         remaining[b][1] - mean_translation[1]));
        }
        return largest;
    }
};

// The estimated motion against the true motion, and the image against the C API.
void corrects_motion(std::mt19937 &random, unsigned seed) {
    const std::size_t n = MovedBlades::n;
    std::vector<Complex> out, expected, combined(n * n);
    for (const std::size_t coils : {1, 3}) {
        const MovedBlades blades(random, 8, 3, coils);
        Settings s = settings(Method::Propeller);
        s.output = ImageOutput::Coils;
        Engine engine(s);
        const ReconstructionResult result = reconstruct(engine, blades.scan, out);
        CHECK(result.warnings.empty() && engine.plans_made() == 0);
        CHECK(result.blades.lines == MovedBlades::lines && result.blades.motion.size() == MovedBlades::blades);
        const auto errors = blades.errors(result.blades.motion);
        const double degrees = coils == 1 ? 0.3 : 0.6, voxels = coils == 1 ? 0.2 : 0.4;
        if (!(errors[0] < degrees && errors[1] < voxels)) {
            std::fprintf(stderr, "seed %u, %zu coils: %g degrees, %g voxels\n", seed, coils, errors[0], errors[1]);
        }
        CHECK(errors[0] < degrees && errors[1] < voxels);
        const recon_geometry g = blades.scan.geometry();
        const recon_options options = plan_options(s.tolerance);
        expected.resize(n * n * coils);
        check(recon_propeller(&g, &options, nullptr, blades.scan.kspace.data(), expected.data(), nullptr));
        CHECK(out == expected);
        check(recon_combine(&g, RECON_COMBINE_ROOT_SUM_OF_SQUARES, expected.data(), combined.data()));
        s.output = ImageOutput::Magnitude;
        Engine magnitude(s);
        CHECK(distance(image(magnitude, blades.scan), combined, true) < 1e-6);
    }
}

// Corrections that are switched off, and coil maps.
void options(const MovedBlades &blades) {
    Settings s = settings(Method::Propeller), grid = settings(Method::Grid);
    s.output = grid.output = ImageOutput::Magnitude;
    Engine corrected(s), gridding(grid);
    s.blades = {MovedBlades::lines, RECON_BLADE_PHASE_NONE, false, false, false};
    Engine off(s);
    std::vector<Complex> out;
    const ReconstructionResult result = reconstruct(off, blades.scan, out);
    for (const BladeMotion &m : result.blades.motion) {
        CHECK(m.rotation == 0 && m.translation == (std::array<double, 2>{}) && m.phase == 0 && m.weight == 1);
    }
    const auto uncorrected = image(gridding, blades.scan);
    // The density weights of blades have more iterations than those of gridding.
    CHECK(distance(out, uncorrected) < 0.08);
    CHECK(distance(image(corrected, blades.scan), uncorrected) > 0.1);
    // Coil maps require the coils' phases.
    s = settings(Method::Propeller);
    s.maps = CoilMapSource::Data;
    CHECK_ERROR([&] { check_settings(s); }, "coil_maps", "phase");
    s.blades.phase = RECON_BLADE_PHASE_CONSTANT;
    check_settings(s);
    Engine mapped(s);
    CHECK(reconstruct(mapped, blades.scan, out).blades.motion.size() == MovedBlades::blades);
    CHECK(mapped.maps_made() == 1);
    Properties wrong(std::map<std::string, std::string>{{"phase", "smoth"}});
    CHECK_ERROR([&] { parse_settings(wrong, Method::Propeller); }, "property phase", "smoth", "constant");
}

void errors(const MovedBlades &blades) {
    // Voxels must be square within 1 %.
    Scan changed = blades.scan;
    Engine engine(settings(Method::Propeller));
    changed.spaces.encoded_fov[1] *= 1.009;
    changed.spaces.recon_fov = changed.spaces.encoded_fov;
    image(engine, changed);
    changed.spaces.encoded_fov[1] *= 1.01;
    CHECK_ERROR([&] { image(engine, changed); }, "1 mm wide and 1.019", "square voxels", "ReconGridGadget");
    changed.spaces.encoded_fov = {0, 0, 0};
    CHECK_ERROR([&] { image(engine, changed); }, "square voxels");

    changed = blades.scan;
    float &k = changed.trajectory[2 * (2 * MovedBlades::readout + 5)];
    k = 0.7f;
    CHECK_ERROR([&] { image(engine, changed); }, "acquisition 2", "sample 5: coordinate 0 is 0.7, outside");
    k = std::nanf("");
    CHECK_ERROR([&] { image(engine, changed); }, "acquisition 2", "sample 5", "NaN");
    changed = blades.scan;
    changed.kspace[changed.samples() + 7] = Complex(0, INFINITY);
    CHECK_ERROR([&] { image(engine, changed); }, "acquisition 0: coil 1, sample 7");
    const Scan radial(64, 40, 128, 1);
    CHECK_ERROR([&] { image(engine, radial); }, "PROPELLER");
    Settings s = settings(Method::Propeller);
    s.blades.lines = 17;
    Engine wrong(s);
    CHECK_ERROR([&] { image(wrong, blades.scan); }, "17 lines");
}

// Blades of noise do not agree.
void warnings(const MovedBlades &blades, std::mt19937 &random) {
    Scan noise = blades.scan;
    std::normal_distribution<float> normal;
    std::generate(noise.kspace.begin(), noise.kspace.end(), [&] { return Complex(normal(random), normal(random)); });
    Settings s = settings(Method::Propeller);
    s.blades.phase = RECON_BLADE_PHASE_NONE;
    Engine engine(s);
    const auto found = warnings_of(engine, noise);
    CHECK(found.size() == 1 && contains(found[0], "disagree"));
}

// The estimate includes the library's bytes of recon_propeller.
void memory(const MovedBlades &blades) {
    const Samples samples = blades.scan.gathered();
    for (const std::uint32_t phase : {RECON_BLADE_PHASE_SMOOTH, RECON_BLADE_PHASE_NONE}) {
        Settings s = settings(Method::Propeller);
        s.blades.phase = phase;
        const auto bytes = Engine(s).estimate_memory(samples, nullptr);
        const recon_geometry g = blades.scan.geometry();
        const recon_options options = plan_options(s.tolerance);
        recon_propeller_options propeller = initialised(recon_propeller_options_init);
        propeller.phase = s.blades.phase;
        std::uint64_t library_bytes = 0;
        check(recon_propeller_memory(&g, &options, &propeller, &library_bytes));
        CHECK(library_bytes > 0 && bytes > library_bytes && bytes < library_bytes + 30 * samples.count() + (1 << 20));
    }
}

// Lines of the log, and attributes.
void messages() {
    BladeReport two;
    two.lines = 24;
    two.motion = {{1.5, {0.25, -1}, 0.5, 0.99, 1}, {-2, {3, 4}, -3, 0.75, 0.5}};
    CHECK(blade_summary(two) ==
          "2 blades of 24 lines: turned by up to 2.00 degrees, moved by up to 5.00 voxels from the mean; least "
          "correlation 0.750, least weight 0.50");
    CHECK(blade_text(two, 1) ==
          "blade 1: turned by -2.000 degrees, moved by 3.000, 4.000 voxels, phase -3.000; correlation 0.750, weight "
          "0.50");
    ImageInfo info;
    info.blades = two;
    const Samples samples = Scan(32, 20, 64, 1).gathered();
    const auto meta = make_image_attributes(samples, make_image_header(samples, info), info);
    CHECK(meta.length("recon_blade_rotation") == 2 && meta.as_double("recon_blade_rotation", 1) == -2);
    CHECK(meta.as_double("recon_blade_translation_x", 1) == 3 && meta.as_double("recon_blade_translation_y", 0) == -1);
    CHECK(meta.as_double("recon_blade_correlation", 0) == 0.99 && meta.as_double("recon_blade_weight", 1) == 0.5);
}

}  // namespace

int main() {
    const unsigned seed = std::random_device()();
    std::mt19937 random(seed);
    corrects_motion(random, seed);
    const MovedBlades blades(random, 8, 3, 3);
    options(blades);
    errors(blades);
    warnings(blades, random);
    memory(blades);
    messages();
    return result("propeller");
}
