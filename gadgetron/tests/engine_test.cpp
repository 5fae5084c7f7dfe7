// Images against calls of recon's C API, plans and coil maps that are kept, and images resized to reconSpace.
#include "engine.h"
#include "check.h"

#include <ismrmrd/dataset.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

using namespace recon_gadgets;

namespace {

void must(recon_status status) {
    if (status != RECON_OK) {
        throw Error(recon_last_error_message());
    }
}

// A scan of the phantom on golden-angle spokes.
struct Scan {
    std::size_t n, spokes, readout, coils;
    std::vector<float> kx, ky, trajectory;  // [2, samples]
    std::vector<Complex> kspace;            // [samples, coils]
    std::vector<ISMRMRD::AcquisitionHeader> headers;
    Spaces spaces;

    // `first`: index of the first spoke in the golden-angle series.
    Scan(std::size_t n, std::size_t spokes, std::size_t readout, std::size_t coils, std::size_t first = 0)
        : n(n), spokes(spokes), readout(readout), coils(coils) {
        const std::size_t all = (first + spokes) * readout;
        kx.resize(all), ky.resize(all);
        must(recon_trajectory_radial2d(RECON_F32, first + spokes, readout, RECON_SPOKES_GOLDEN_ANGLE, kx.data(),
                                       ky.data()));
        kx.erase(kx.begin(), kx.begin() + long(first * readout));
        ky.erase(ky.begin(), ky.begin() + long(first * readout));
        recon_geometry g = geometry();
        kspace.resize(samples() * coils);
        must(
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
        recon_geometry g;
        must(recon_geometry_init(&g, sizeof g));
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

    Samples gathered() const { return gather(shots(view(), 0, 0, 0), spaces); }

    void slice(unsigned slice) {
        for (auto &h : headers) {
            h.idx.slice = std::uint16_t(slice);
        }
    }
};

Settings settings(Method method) {
    Settings s;
    s.method = method;
    s.maps = method == Method::Cg ? Maps::Data : Maps::None;
    s.tolerance = method == Method::Cg ? 1e-5 : 1e-4;
    s.threads = 2;
    s.output = Output::Complex;
    return s;
}

std::vector<Complex> image(Engine &engine, const Scan &scan, const Samples *reference = nullptr) {
    const Samples samples = engine.add_to_window(scan.gathered());
    const Grid grid = engine.layout(scan.spaces, 2);
    std::vector<Complex> out(grid.image_voxels() * engine.channels(scan.coils));
    engine.reconstruct(samples, scan.spaces, reference, out.data());
    return out;
}

// Relative l2 distance of two images, or of their magnitudes.
double distance(const std::vector<Complex> &a, const std::vector<Complex> &b, bool magnitudes = false) {
    double up = 0, down = 0;
    for (std::size_t i = 0; i < a.size() && a.size() == b.size(); ++i) {
        up += magnitudes ? std::pow(std::abs(a[i]) - std::abs(b[i]), 2) : std::norm(a[i] - b[i]);
        down += std::norm(b[i]);
    }
    return a.size() == b.size() && down > 0 ? std::sqrt(up / down) : 1e9;
}

recon_plan *plan(const recon_geometry &g, double tolerance) {
    recon_options o;
    must(recon_options_init(&o, sizeof o));
    o.tolerance = tolerance, o.threads = 2;
    recon_plan *p = nullptr;
    must(recon_plan_create(&g, &o, &p));
    return p;
}

void same_as_the_c_api() {
    const Scan scan(64, 100, 128, 3);
    std::vector<Complex> coils(64 * 64 * 3), one(64 * 64), maps(64 * 64 * 3);
    recon_geometry g = scan.geometry();
    recon_plan *p = plan(g, 1e-4);

    must(recon_grid(p, scan.kspace.data(), coils.data()));
    Settings s = settings(Method::Grid);
    s.output = Output::Coils;
    Engine per_coil(s);
    CHECK(image(per_coil, scan) == coils);
    must(recon_combine(&g, RECON_COMBINE_ADAPTIVE, coils.data(), one.data()));
    Engine gridding(settings(Method::Grid));
    CHECK(image(gridding, scan) == one);
    must(recon_combine(&g, RECON_COMBINE_ROOT_SUM_OF_SQUARES, coils.data(), one.data()));
    s.output = Output::Magnitude;
    Engine magnitude(s);
    CHECK(distance(image(magnitude, scan), one) < 1e-7);

    must(recon_fbp(p, RECON_FILTER_COSINE, scan.kspace.data(), coils.data()));
    s = settings(Method::Fbp);
    s.output = Output::Coils, s.filter = parse_filter("cosine");
    Engine backprojection(s);
    CHECK(image(backprojection, scan) == coils);

    must(recon_fhd(p, scan.kspace.data(), coils.data()));
    s = settings(Method::Fhd);
    s.output = Output::Coils;
    Engine adjoint(s);
    CHECK(image(adjoint, scan) == coils);

    must(recon_coil_maps(p, scan.kspace.data(), 0, maps.data()));
    recon_plan_destroy(p);
    g.coil_maps = maps.data();
    p = plan(g, 1e-5);
    recon_cg_options o;
    must(recon_cg_options_init(&o, sizeof o));
    o.iterations = 7;
    o.lambda = 0.01;
    o.prior = RECON_PRIOR_DIFFERENCES;
    must(recon_cg(p, scan.kspace.data(), one.data(), &o, nullptr));
    recon_plan_destroy(p);
    s = settings(Method::Cg);
    s.iterations = 7, s.lambda = 0.01, s.prior = Prior::Differences;
    Engine cg(s);
    CHECK(image(cg, scan) == one);
}

// Density weights from the file, and computed ones.
void weights() {
    const Scan scan(64, 100, 128, 1);
    recon_geometry g = scan.geometry();
    recon_plan *p = plan(g, 1e-4);
    std::vector<float> ramp(scan.samples());
    must(recon_density(p, RECON_DENSITY_RAMP, 0, 0, ramp.data()));
    recon_plan_destroy(p);
    g.weights = ramp.data();
    p = plan(g, 1e-4);
    std::vector<Complex> wanted(64 * 64), default_weights(64 * 64);
    must(recon_grid(p, scan.kspace.data(), wanted.data()));
    recon_plan_destroy(p);

    Settings s = settings(Method::Grid);
    s.density = Density::Ramp;
    Engine computed(s);
    CHECK(image(computed, scan) == wanted);
    Scan with = scan;
    with.trajectory.clear();
    for (std::size_t m = 0; m < scan.samples(); ++m) {
        with.trajectory.insert(with.trajectory.end(), {scan.kx[m], scan.ky[m], ramp[m]});
    }
    for (auto &h : with.headers) {
        h.trajectory_dimensions = 3;
    }
    BufferView v = with.view();
    v.trajectory_size = 3;
    const Samples samples = gather(shots(v, 0, 0, 0), scan.spaces);
    Engine given(settings(Method::Grid));
    std::vector<Complex> out(64 * 64);
    given.reconstruct(samples, scan.spaces, nullptr, out.data());
    CHECK(out == wanted);
    // Weights of the file can be ignored.
    s.density = Density::PipeMenon;
    Engine other(s), plain(settings(Method::Grid));
    other.reconstruct(samples, scan.spaces, nullptr, out.data());
    CHECK(out == image(plain, scan));
}

// A plan is used as it is only where the trajectory has the same bits. A plan whose trajectory has not come again is
// given the next one.
void kept_between_images() {
    Scan a(32, 20, 64, 2), b(32, 20, 64, 2, 20);
    Scan moved = a;
    moved.trajectory[1] = std::nextafter(moved.trajectory[1], 0.25f);
    Engine engine(settings(Method::Grid));
    const auto counts = [](const Engine &e) { return std::pair(e.plans_made(), e.plans_updated()); };
    const auto first = image(engine, a);
    CHECK(counts(engine) == std::pair(1ul, 0ul));
    CHECK(image(engine, a) == first && counts(engine) == std::pair(1ul, 0ul));
    image(engine, b);
    CHECK(counts(engine) == std::pair(2ul, 0ul));
    CHECK(image(engine, a) == first && counts(engine) == std::pair(2ul, 0ul));
    const auto other = image(engine, moved);
    CHECK(counts(engine) == std::pair(2ul, 1ul));
    // Trajectories that take turns get plans of their own, the second time that they come.
    image(engine, b);
    CHECK(counts(engine) == std::pair(3ul, 1ul));
    CHECK(image(engine, moved) == other && image(engine, a) == first && counts(engine) == std::pair(3ul, 1ul));

    // Of plans whose trajectories come again the one with the oldest use is dropped first.
    Settings s = settings(Method::Grid);
    s.plans = 2;
    Engine small(s);
    image(small, a), image(small, a), image(small, b), image(small, b), image(small, moved), image(small, moved);
    CHECK(counts(small) == std::pair(3ul, 0ul));
    image(small, b);
    CHECK(counts(small) == std::pair(3ul, 0ul));
    CHECK(image(small, a) == first && counts(small) == std::pair(4ul, 0ul));
    s.plans = 16, s.memory = 1;  // less than the memory of two plans
    Engine little(s);
    image(little, a), image(little, b), image(little, a);
    CHECK(little.plans_made() >= 2);

    // Coil maps belong to a slice, and so do plans with coil maps.
    Engine cg(settings(Method::Cg));
    image(cg, a), image(cg, a);
    CHECK(cg.maps_made() == 1 && cg.plans_made() == 2);  // one for the maps
    a.slice(1);
    image(cg, a);
    CHECK(cg.maps_made() == 2);
    a.slice(0);
    image(cg, a), image(cg, b);
    CHECK(cg.maps_made() == 2);
    s = settings(Method::Cg);
    s.maps_every = 2;
    Engine anew(s);
    for (int i = 0; i < 5; ++i) {
        image(anew, a);
    }
    CHECK(anew.maps_made() == 3);
}

// Missing shots do not count as zeros: the image is that of the other shots.
void missing_shots() {
    const Scan half(64, 60, 128, 2);
    Scan whole(64, 100, 128, 2);
    for (std::size_t i = 60; i < 100; ++i) {
        whole.headers[i] = ISMRMRD::AcquisitionHeader();
    }
    for (const Method method : {Method::Grid, Method::Cg}) {
        Engine one(settings(method)), other(settings(method));
        CHECK(image(one, whole) == image(other, half));
        // The same engine, with other shots.
        for (auto &h : whole.headers) {
            h = half.headers[0];
        }
        image(one, whole);
        CHECK(one.plans_updated() == 1);
        for (std::size_t i = 60; i < 100; ++i) {
            whole.headers[i] = ISMRMRD::AcquisitionHeader();
        }
    }
}

void sliding_window() {
    Settings s = settings(Method::Grid);
    s.window = 3;
    Engine engine(s), plain(settings(Method::Grid));
    std::vector<Complex> last;
    for (std::size_t i = 0; i < 4; ++i) {
        last = image(engine, Scan(64, 20, 128, 2, 20 * i));
        if (i == 0) {
            CHECK(last == image(plain, Scan(64, 20, 128, 2)));
        }
    }
    CHECK(last == image(plain, Scan(64, 60, 128, 2, 20)));
    CHECK(engine.plans_made() == 1 && engine.plans_updated() == 3);
    // Samples that cannot be reconstructed have no effect on later images.
    Scan bad(64, 20, 128, 2, 80);
    bad.kspace[7] = Complex(std::nanf(""), 0);
    const Samples with_bad = engine.add_to_window(bad.gathered());
    engine.remove_from_window(with_bad);
    const Samples after = engine.add_to_window(Scan(64, 20, 128, 2, 80).gathered());
    CHECK(after.shots == 60 && with_bad.shots == 60 && std::isfinite(after.kspace[after.count / 3 * 2 + 7].real()));
    // A frame with a missing coil restarts the window, with a warning.
    std::optional<Warning> warning;
    CHECK(engine.add_to_window(Scan(64, 20, 128, 2, 100).gathered(), &warning).shots == 60 && !warning);
    const Samples alone = engine.add_to_window(Scan(64, 20, 128, 1, 120).gathered(), &warning);
    CHECK(alone.shots == 20 && alone.coils == 1);
    CHECK(warning && warning->cause == Cause::WindowRestart &&
          warning->text.find("this frame has 1 coils") != std::string::npos &&
          warning->text.find("the previous frame of the slice 2 coils") != std::string::npos);
    warning.reset();
    CHECK(engine.add_to_window(Scan(64, 20, 128, 1, 140).gathered(), &warning).shots == 40 && !warning);
}

// A plan that is given another trajectory makes the bits of a new plan: any method and weights, and other numbers of
// samples.
void another_trajectory() {
    const Scan frames[] = {{64, 34, 128, 2}, {64, 34, 128, 2, 5}, {64, 21, 128, 2, 39}, {64, 55, 96, 2, 60}};
    const Scan calibration(64, 100, 128, 2);
    std::vector<Settings> all;
    for (const Method method : {Method::Grid, Method::Fbp, Method::Fhd, Method::Cg}) {
        all.push_back(settings(method));
    }
    for (const Density density : {Density::PipeMenon, Density::Jackson, Density::Ramp}) {
        for (const Method method : {Method::Grid, Method::Cg}) {
            Settings s = settings(method);
            s.density = density, s.weighted = true;
            all.push_back(s);
        }
    }
    for (Settings &s : all) {
        s.iterations = 3;
        s.maps = s.method == Method::Cg ? Maps::Reference : Maps::None;
        Engine engine(s);
        const Samples reference = calibration.gathered();
        const Samples *given = s.maps == Maps::Reference ? &reference : nullptr;
        for (const Scan &frame : frames) {
            Engine fresh(s);
            CHECK(image(engine, frame, given) == image(fresh, frame, given));
        }
        CHECK(engine.plans_made() == (given != nullptr ? 2 : 1) && engine.plans_updated() == 3);
        // A trajectory that cannot be used costs the plan at most, not its contents.
        Scan bad = frames[0];
        bad.trajectory[2 * (2 * 128 + 1)] = 0.6f;
        CHECK_ERROR([&] { image(engine, bad, given); }, "kx is 0.6 in sample 1 of shot 2", "outside");
        Engine fresh(s);
        CHECK(image(engine, frames[3], given) == image(fresh, frames[3], given));
    }
    // Weights of the file, which change with the trajectory.
    const auto weighted = [](const Scan &scan) {
        BufferView v = scan.view();
        std::vector<float> trajectory;
        for (std::size_t m = 0; m < scan.samples(); ++m) {
            const float k = std::hypot(scan.kx[m], scan.ky[m]);
            trajectory.insert(trajectory.end(), {scan.kx[m], scan.ky[m], k * (1 + float(m % 7))});
        }
        Scan with = scan;
        for (auto &h : with.headers) {
            h.trajectory_dimensions = 3;
        }
        v.trajectory = trajectory.data(), v.trajectory_size = 3, v.headers = with.headers.data();
        const Samples view = gather(shots(v, 0, 0, 0), scan.spaces);
        return join({&view});
    };
    Engine engine(settings(Method::Grid));
    for (const Scan &frame : frames) {
        Engine fresh(settings(Method::Grid));
        const Samples samples = weighted(frame);
        std::vector<Complex> out(64 * 64), wanted(64 * 64);
        engine.reconstruct(samples, frame.spaces, nullptr, out.data());
        fresh.reconstruct(samples, frame.spaces, nullptr, wanted.data());
        CHECK(out == wanted);
    }
    CHECK(engine.plans_made() == 1 && engine.plans_updated() == 3);
}

// The last image of a slice as the first guess of the next.
void warm_start() {
    Settings s = settings(Method::Cg);
    s.iterations = 100, s.residual = 1e-3;
    Engine cold(s);
    s.warm_start = true;
    Engine warm(s);
    const auto run = [](Engine &engine, const Scan &scan, std::vector<Complex> &out) {
        out.assign(scan.n * scan.n, Complex(std::nanf(""), 0));
        return engine.reconstruct(scan.gathered(), scan.spaces, nullptr, out.data());
    };
    std::vector<Complex> a, b;
    for (std::size_t frame = 0; frame < 3; ++frame) {
        const Scan scan(64, 34, 128, 4, 5 * frame);
        const Result first = run(cold, scan, a), second = run(warm, scan, b);
        CHECK(first.residual <= 1e-3 && second.residual <= 1e-3 && second.warnings.empty());
        if (frame == 0) {
            CHECK(a == b && first.iterations == second.iterations);
        } else {
            std::printf("warm start: %zu iterations, not %zu, to a residual of 1e-3\n", second.iterations,
                        first.iterations);
            CHECK(2 * second.iterations <= first.iterations);
            CHECK(distance(a, b) < 0.2);
        }
    }
    // An image that cannot be made leaves the last one as it is.
    Scan bad(64, 34, 128, 4, 15);
    bad.kspace[7] = Complex(std::nanf(""), 0);
    CHECK_ERROR([&] { run(warm, bad, b); }, "the data are nan", "sample 7 of shot 0");
    CHECK(2 * run(warm, Scan(64, 34, 128, 4, 15), b).iterations <= run(cold, Scan(64, 34, 128, 4, 15), a).iterations);
    // Another slice has no last image.
    Scan slice(64, 34, 128, 4, 20);
    slice.slice(1);
    Result first = run(cold, slice, a), second = run(warm, slice, b);
    CHECK(a == b && first.iterations == second.iterations && second.warnings.empty());
    // Another matrix: from zeros, with a warning.
    Scan coarse(48, 34, 96, 4);
    coarse.slice(1);
    first = run(cold, coarse, a), second = run(warm, coarse, b);
    CHECK(a == b && first.iterations == second.iterations && first.warnings.empty());
    CHECK(second.warnings.size() == 1 && second.warnings[0].cause == Cause::ColdStart &&
          second.warnings[0].text.find("64 x 64 x 1 voxels in 1 channel, this one 48 x 48 x 1") != std::string::npos);
    // Coils that are solved for one by one are channels.
    s.maps = Maps::None, s.output = Output::Coils;
    Engine channels(s);
    a.resize(64 * 64 * 4);
    channels.reconstruct(Scan(64, 34, 128, 4).gathered(), slice.spaces, nullptr, a.data());
    const Result fewer =
        channels.reconstruct(Scan(64, 34, 128, 3).gathered(), slice.spaces, nullptr, a.data());
    CHECK(fewer.warnings.size() == 1 && fewer.warnings[0].text.find("in 4 channels") != std::string::npos);
}

// Lambda from the noise level, as the C API finds it.
void noise_level() {
    Scan scan(64, 60, 128, 4);
    std::uint64_t state = 1;
    double energy = 0;
    for (Complex &z : scan.kspace) {
        const auto uniform = [&] {
            state = state * 6364136223846793005u + 1442695040888963407u;
            return float(state >> 40) / float(1 << 24) - 0.5F;
        };
        z += Complex(40 * uniform(), 40 * uniform());
        energy += 2 * 40. * 40 / 12;
    }
    Settings s = settings(Method::Cg);
    s.prior = Prior::Identity;
    Engine plain(s);
    s.noise_level = std::sqrt(energy / double(scan.kspace.size()));
    Engine engine(s);
    const auto x = image(engine, scan), y = image(plain, scan);
    const auto size = [](const std::vector<Complex> &v) {
        double sum = 0;
        for (const Complex &z : v) {
            sum += std::norm(z);
        }
        return sum;
    };
    CHECK(size(x) < size(y));
    // A level that does not fit the data is warned of.
    std::vector<Complex> out(64 * 64);
    CHECK(engine.reconstruct(scan.gathered(), scan.spaces, nullptr, out.data()).warnings.empty());
    s.noise_level *= 1.6;
    Engine high(s);
    const auto warned = high.reconstruct(scan.gathered(), scan.spaces, nullptr, out.data()).warnings;
    CHECK(warned.size() == 1 && warned[0].cause == Cause::Noise &&
          warned[0].text.find("noise level") != std::string::npos);
    s.noise_level = 1e-3;
    Engine low(s);
    CHECK_ERROR([&] { image(low, scan); }, "noise level", "too low");
}

// Virtual coils: those of the C API, of the first image of a slice, and maps of as many.
void compression() {
    const Scan scan(64, 100, 128, 8), later(64, 100, 128, 8, 100);
    std::vector<std::complex<double>> matrix(5 * 8);
    std::uint64_t kept = 0;
    must(recon_compression(RECON_F32, scan.kspace.data(), scan.samples(), 8, 1, 5, 0, matrix.data(), &kept, nullptr));
    for (const Method method : {Method::Grid, Method::Cg}) {
        Settings s = settings(method);
        Engine plain(s);
        s.compress = parse_compress("5");
        Engine engine(s);
        for (const Scan *one : {&scan, &later}) {
            Scan fewer(64, 100, 128, 5, one == &scan ? 0 : 100);
            must(recon_virtual_coils(matrix.data(), 5, 8, RECON_F32, one->kspace.data(), one->samples(), 1,
                                     fewer.kspace.data()));
            CHECK(image(engine, *one) == image(plain, fewer));
        }
        s.compress = parse_compress("99.99%");
        Engine most(s), all(settings(method));
        // The phase is that of another virtual coil.
        CHECK(distance(image(most, scan), image(all, scan), true) < 0.02);
    }
    Settings s = settings(Method::Cg);
    s.compress = parse_compress("1");
    Engine one(s);
    std::vector<Complex> out(64 * 64);
    const Result result = one.reconstruct(scan.gathered(), scan.spaces, nullptr, out.data());
    CHECK(result.warnings.size() == 1 && result.warnings[0].text.find("1 virtual coils of 8") != std::string::npos);
    s.compress = parse_compress("9");
    Engine many(s);
    CHECK_ERROR([&] { image(many, scan); }, "property compress", "9 virtual coils of 8");
    Scan bad = scan;
    bad.kspace[7] = Complex(std::nanf(""), 0);
    s.compress = parse_compress("5");
    Engine broken(s);
    CHECK_ERROR([&] { image(broken, bad); }, "the data are nan", "sample 7 of shot 0");
    s.maps = Maps::Reference;
    Engine reference(s);
    const Samples other = Scan(64, 100, 128, 4).gathered();
    CHECK_ERROR([&] { reference.reconstruct(scan.gathered(), scan.spaces, &other, out.data()); },
                "the reference has 4 coils", "the data have 8");
}

// Blades of an object that is turned (degrees) and moved (voxels) between them.
struct Blades {
    static constexpr std::size_t n = 96, blades = 12, lines = 18, readout = 120;
    Scan scan;
    std::vector<BladeMotion> motion;

    Blades(std::mt19937 &random, double degrees, double voxels, std::size_t coils)
        : scan(n, blades * lines, readout, coils), motion(blades) {
        const std::size_t samples = lines * readout;
        must(recon_trajectory_propeller(RECON_F32, blades, lines, readout, scan.kx.data(), scan.ky.data()));
        for (std::size_t m = 0; m < scan.samples(); ++m) {
            scan.trajectory[2 * m] = scan.kx[m], scan.trajectory[2 * m + 1] = scan.ky[m];
        }
        std::uniform_real_distribution<double> uniform(-1, 1);
        std::vector<Complex> one(samples * coils);
        for (std::size_t b = 0; b < blades; ++b) {
            motion[b].rotation = degrees * uniform(random);
            motion[b].translation = {voxels * uniform(random), voxels * uniform(random)};
            recon_geometry g = scan.geometry();
            g.samples = samples;
            g.coordinates[0] = scan.kx.data() + b * samples, g.coordinates[1] = scan.ky.data() + b * samples;
            const auto shapes = moved(motion[b]);
            must(recon_phantom_kspace(&g, shapes.data(), shapes.size() / 10,
                                      coils > 1 ? RECON_COILS_RING : RECON_COILS_UNIFORM, 1, one.data()));
            for (std::size_t c = 0; c < coils; ++c) {
                std::copy_n(&one[c * samples], samples, &scan.kspace[c * scan.samples() + b * samples]);
            }
        }
    }

    // Of each shape: density, centre, semi-axes, angles.
    static std::vector<double> moved(const BladeMotion &motion) {
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

    // The largest errors in degrees and voxels, but for a motion that all blades have.
    std::array<double, 2> errors(const std::vector<BladeMotion> &found) const {
        double turn = 0;
        std::array<double, 2> move{}, most{};
        std::vector<std::array<double, 2>> rest;
        for (std::size_t b = 0; b < blades; ++b) {
            const double angle = found[b].rotation * std::acos(-1.0) / 180, c = std::cos(angle), s = std::sin(angle);
            const double x = motion[b].translation[0] - found[b].translation[0];
            const double y = motion[b].translation[1] - found[b].translation[1];
            rest.push_back({c * x + s * y, c * y - s * x});
            turn += (motion[b].rotation - found[b].rotation) / blades;
            move[0] += rest[b][0] / blades, move[1] += rest[b][1] / blades;
        }
        for (std::size_t b = 0; b < blades; ++b) {
            most[0] = std::max(most[0], std::fabs(motion[b].rotation - found[b].rotation - turn));
            most[1] = std::max(most[1], std::hypot(rest[b][0] - move[0], rest[b][1] - move[1]));
        }
        return most;
    }
};

Result result_of(Engine &engine, const Scan &scan, std::vector<Complex> &out) {
    const Samples samples = engine.add_to_window(scan.gathered());
    out.assign(engine.layout(scan.spaces, 2).image_voxels() * engine.channels(scan.coils), Complex());
    return engine.reconstruct(samples, scan.spaces, nullptr, out.data());
}

// Motion of blades: found, the image that of the C API, and what is told of it.
void propeller() {
    const unsigned seed = std::random_device()();
    std::mt19937 random(seed);
    const std::size_t n = Blades::n;
    std::vector<Complex> out, wanted(n * n * 3), one(n * n);
    for (const std::size_t coils : {1, 3}) {
        const Blades blades(random, 8, 3, coils);
        Settings s = settings(Method::Propeller);
        s.output = Output::Coils;
        Engine engine(s);
        const Result found = result_of(engine, blades.scan, out);
        CHECK(found.warnings.empty());
        CHECK(found.blades.lines == Blades::lines && found.blades.motion.size() == Blades::blades);
        const auto errors = blades.errors(found.blades.motion);
        const double degrees = coils == 1 ? 0.3 : 0.6, voxels = coils == 1 ? 0.2 : 0.4;
        if (!(errors[0] < degrees && errors[1] < voxels)) {
            std::fprintf(stderr, "seed %u, %zu coils: %g degrees, %g voxels\n", seed, coils, errors[0], errors[1]);
        }
        CHECK(errors[0] < degrees && errors[1] < voxels);
        // The image of the C API.
        recon_geometry g = blades.scan.geometry();
        recon_options o;
        must(recon_options_init(&o, sizeof o));
        o.tolerance = s.tolerance, o.threads = 2;
        wanted.resize(n * n * coils);
        must(recon_propeller(&g, &o, nullptr, blades.scan.kspace.data(), wanted.data(), nullptr));
        CHECK(out == wanted);
        must(recon_combine(&g, RECON_COMBINE_ROOT_SUM_OF_SQUARES, wanted.data(), one.data()));
        s.output = Output::Magnitude;
        Engine magnitude(s);
        CHECK(distance(image(magnitude, blades.scan), one, true) < 1e-6);
        CHECK(engine.plans_made() == 0);
    }
    const Blades blades(random, 8, 3, 3);
    Settings s = settings(Method::Propeller);
    s.output = Output::Magnitude;
    // What is switched off stays as it is.
    s.blades = {Blades::lines, parse_phase("none"), false, false, false};
    Engine off(s);
    const Result still = result_of(off, blades.scan, out);
    CHECK(std::all_of(still.blades.motion.begin(), still.blades.motion.end(), [](const BladeMotion &m) {
        return m.rotation == 0 && m.translation == std::array<double, 2>{} && m.phase == 0 && m.weight == 1;
    }));
    Settings grid = settings(Method::Grid);
    grid.output = Output::Magnitude;
    Engine gridding(grid), corrected([] {
        Settings s = settings(Method::Propeller);
        s.output = Output::Magnitude;
        return s;
    }());
    const auto uncorrected = image(gridding, blades.scan);
    CHECK(distance(out, uncorrected) < 0.02);
    CHECK(distance(image(corrected, blades.scan), uncorrected) > 0.1);
    // Coil maps need the coils' phases.
    s = settings(Method::Propeller);
    s.maps = Maps::Data;
    CHECK_ERROR([&] { check_blades(s); }, "coil_maps", "phase");
    s.blades.phase = parse_phase("constant");
    check_blades(s);
    Engine mapped(s);
    CHECK(result_of(mapped, blades.scan, out).blades.motion.size() == Blades::blades && mapped.maps_made() == 1);
    CHECK_ERROR([&] { parse_phase("smoth"); }, "property phase", "smoth", "constant");

    // Voxels are square within 1 %.
    Scan other = blades.scan;
    Engine engine(settings(Method::Propeller));
    other.spaces.encoded_fov[1] *= 1.009;
    other.spaces.recon_fov = other.spaces.encoded_fov;
    image(engine, other);
    other.spaces.encoded_fov[1] *= 1.01;
    CHECK_ERROR([&] { image(engine, other); }, "1 mm wide and 1.019", "square voxels", "ReconGridGadget");
    other.spaces.encoded_fov = {0, 0, 0};
    CHECK_ERROR([&] { image(engine, other); }, "fieldOfView_mm.x of encodedSpace is 0");

    other = blades.scan;
    other.trajectory[2 * (2 * Blades::readout + 5)] = 0.7f;
    CHECK_ERROR([&] { image(engine, other); }, "kx is 0.7 in sample 5 of shot 2", "outside");
    other.trajectory[2 * (2 * Blades::readout + 5)] = std::nanf("");
    CHECK_ERROR([&] { image(engine, other); }, "kx is nan in sample 5 of shot 2", "number");
    other = blades.scan;
    other.kspace[other.samples() + 7] = Complex(0, INFINITY);
    CHECK_ERROR([&] { image(engine, other); }, "sample 7 of shot 0, coil 1");
    const Scan radial(64, 40, 128, 1);
    CHECK_ERROR([&] { image(engine, radial); }, "PROPELLER");
    s = settings(Method::Propeller);
    s.blades.lines = 17;
    Engine wrong(s);
    CHECK_ERROR([&] { image(wrong, blades.scan); }, "17 lines");

    // Blades of noise do not agree.
    other = blades.scan;
    std::normal_distribution<float> normal;
    std::generate(other.kspace.begin(), other.kspace.end(), [&] { return Complex(normal(random), normal(random)); });
    s = settings(Method::Propeller);
    s.blades.phase = parse_phase("none");
    Engine noisy(s);
    const auto warned = result_of(noisy, other, out).warnings;
    CHECK(warned.size() == 1 && warned[0].cause == Cause::Blades &&
          warned[0].text.find("disagree") != std::string::npos);
    const Samples samples = blades.scan.gathered();
    const auto needed = [&](Engine &e) {
        return e.memory_needed(samples, coordinates(samples), blades.scan.spaces, nullptr);
    };
    // Coils that are added to one need less than those that stay apart.
    CHECK(needed(engine) > 100 * samples.count && needed(noisy) > needed(engine) + 150 * samples.count);

    // Lines of the log, and attributes.
    BladesFound two;
    two.lines = 24;
    two.motion = {{1.5, {0.25, -1}, 0.5, 0.99, 1}, {-2, {3, 4}, -3, 0.75, 0.5}};
    CHECK(summary(two) == "2 blades of 24 lines: turned by up to 2.00 degrees, moved by up to 5.00 voxels from the "
                          "mean; least correlation 0.750, least weight 0.50");
    CHECK(line(two, 1) == "blade 1: turned by -2.000 degrees, moved by 3.000, 4.000 voxels, phase -3.000; correlation "
                          "0.750, weight 0.50");
    ImageInfo info;
    info.blades = two;
    const auto meta = image_meta(ISMRMRD::ImageHeader(), info);
    CHECK(meta.length("recon_blade_rotation") == 2 && meta.as_double("recon_blade_rotation", 1) == -2);
    CHECK(meta.as_double("recon_blade_translation_x", 1) == 3 && meta.as_double("recon_blade_translation_y", 0) == -1);
    CHECK(meta.as_double("recon_blade_correlation", 0) == 0.99 && meta.as_double("recon_blade_weight", 1) == 0.5);
}

// Images with other voxels and fields of view, against the phantom.
void spaces() {
    const auto truth = [](std::size_t n) {
        recon_geometry g;
        must(recon_geometry_init(&g, sizeof g));
        g.dims[0] = g.dims[1] = n;
        std::vector<Complex> image(n * n);
        must(recon_phantom_image(&g, nullptr, 0, 4, image.data()));
        return image;
    };
    // Oversampling by two along both axes: the encoded field of view has 256 voxels, the image the middle 128. k in
    // cycles per voxel is the same.
    Scan scan(128, 300, 512, 1);
    scan.spaces.encoded_matrix = {256, 256, 1};
    scan.spaces.encoded_fov = {256, 256, 5};
    for (const Method method : {Method::Grid, Method::Cg}) {
        Engine engine(settings(method));
        const double d = distance(image(engine, scan), truth(128), true);
        CHECK(d < 0.2);
    }
    // The least squares solution is computed on the encoded matrix, then cropped.
    {
        Engine engine(settings(Method::Cg)), encoded(settings(Method::Cg));
        Scan all = scan;
        all.spaces.recon_matrix = {256, 256, 1};
        all.spaces.recon_fov = {256, 256, 5};
        const auto whole = image(encoded, all);
        std::vector<Complex> cut(128 * 128);
        for (std::size_t y = 0; y < 128; ++y) {
            std::copy_n(whole.begin() + long(64 + 256 * (64 + y)), 128, cut.begin() + long(128 * y));
        }
        CHECK(image(engine, scan) == cut);
    }
    // Interpolation: twice as many voxels over the same field of view. Every second voxel is that of the original
    // image.
    {
        Scan fine(64, 120, 128, 1);
        Engine plain(settings(Method::Fhd));
        const auto coarse = image(plain, fine);
        fine.spaces.recon_matrix = {128, 128, 1};
        Engine engine(settings(Method::Fhd));
        const auto twice = image(engine, fine);
        std::vector<Complex> every(64 * 64);
        for (std::size_t y = 0; y < 64; ++y) {
            for (std::size_t x = 0; x < 64; ++x) {
                every[x + 64 * y] = twice[2 * x + 128 * 2 * y];
            }
        }
        CHECK(distance(every, coarse) < 1e-6);
    }
    // Larger and smaller voxels, with the same scale of the image.
    for (const std::size_t n : {64, 192}) {
        Scan scan(128, 300, 256, 1);
        scan.spaces.recon_matrix = {n, n, 1};
        for (const Method method : {Method::Grid, Method::Cg}) {
            Engine engine(settings(method));
            const double d = distance(image(engine, scan), truth(n), true);
            CHECK(d < 0.25);
        }
    }
}

// The gadget gives the same bits as the program: reconstruction on the encoded matrix, then recon_resize, then the
// combination of the coils.
void matrices() {
    struct Case {
        std::array<std::size_t, 3> encoded, recon;
        std::array<double, 3> encoded_fov, recon_fov;
    };
    const Case cases[] = {
        {{32, 32, 1}, {32, 32, 1}, {240, 240, 5}, {240, 240, 5}},
        {{32, 32, 1}, {20, 32, 1}, {240, 240, 5}, {150, 240, 5}},  // cropped along x
        {{32, 32, 1}, {16, 20, 1}, {240, 240, 5}, {120, 150, 5}},  // cropped along both axes
        {{32, 32, 1}, {32, 32, 1}, {240, 240, 5}, {150, 240, 5}},  // the same matrix over a smaller field of view
        {{32, 32, 1}, {64, 40, 1}, {240, 240, 5}, {240, 240, 5}},  // k-space filled with zeros
        {{64, 32, 1}, {32, 32, 1}, {480, 240, 5}, {240, 240, 5}},  // an oversampled readout
        {{64, 32, 1}, {64, 64, 1}, {480, 240, 5}, {240, 240, 5}},  // oversampled, and filled with zeros
        {{32, 32, 1}, {24, 20, 1}, {240, 240, 5}, {240, 240, 5}},  // larger voxels
        {{32, 32, 1}, {20, 24, 1}, {240, 240, 0}, {150, 180, 0}},  // unknown thickness of the slice
        {{16, 16, 12}, {16, 16, 12}, {160, 160, 120}, {160, 160, 120}},
        {{16, 16, 12}, {10, 16, 12}, {160, 160, 120}, {100, 160, 120}},
        {{16, 16, 12}, {12, 10, 7}, {160, 160, 120}, {120, 100, 70}},
        {{16, 16, 12}, {20, 24, 14}, {160, 160, 120}, {160, 160, 120}},
        {{32, 16, 12}, {16, 16, 12}, {320, 160, 120}, {160, 160, 120}},
    };
    for (const Case &c : cases) {
        const unsigned ndim = c.encoded[2] > 1 ? 3 : 2;
        const std::size_t spokes = ndim == 2 ? 100 : 600, coils = 2;
        // At most 1/FOV apart: with gaps coil maps come from less, with a warning.
        const std::size_t readout = std::max<std::size_t>(32, c.encoded[0]), count = spokes * readout;
        std::array<std::vector<float>, 3> k{std::vector<float>(count), std::vector<float>(count),
                                            std::vector<float>(count)};
        must(ndim == 2 ? recon_trajectory_radial2d(RECON_F32, spokes, readout, RECON_SPOKES_GOLDEN_ANGLE, k[0].data(),
                                                   k[1].data())
                       : recon_trajectory_radial3d(RECON_F32, spokes, readout, k[0].data(), k[1].data(), k[2].data()));
        recon_geometry g;
        must(recon_geometry_init(&g, sizeof g));
        g.ndim = ndim;
        std::copy(c.encoded.begin(), c.encoded.end(), g.dims);
        g.samples = count, g.coils = coils;
        for (unsigned axis = 0; axis < ndim; ++axis) {
            g.coordinates[axis] = k[axis].data();
        }
        std::vector<Complex> kspace(count * coils);
        must(recon_phantom_kspace(&g, nullptr, 0, RECON_COILS_RING, 1, kspace.data()));
        std::vector<float> trajectory;
        for (std::size_t m = 0; m < count; ++m) {
            for (unsigned axis = 0; axis < ndim; ++axis) {
                trajectory.push_back(k[axis][m]);
            }
        }
        std::vector<ISMRMRD::AcquisitionHeader> headers(spokes);
        for (auto &h : headers) {
            h.number_of_samples = std::uint16_t(readout), h.active_channels = std::uint16_t(coils);
            h.trajectory_dimensions = std::uint16_t(ndim);
        }
        BufferView v;
        v.e0 = readout, v.e1 = spokes, v.e2 = v.n = v.s = v.loc = 1, v.coils = coils;
        v.data = kspace.data(), v.trajectory = trajectory.data(), v.trajectory_size = ndim, v.headers = headers.data();
        Spaces spaces;
        spaces.encoded_matrix = c.encoded, spaces.recon_matrix = c.recon;
        spaces.encoded_fov = c.encoded_fov, spaces.recon_fov = c.recon_fov;
        const Samples samples = gather(shots(v, 0, 0, 0), spaces);

        const std::size_t voxels = c.encoded[0] * c.encoded[1] * c.encoded[2];
        const std::size_t wanted = c.recon[0] * c.recon[1] * c.recon[2];
        const std::array<std::uint64_t, 3> dims{c.recon[0], c.recon[1], c.recon[2]};
        for (const Method method : {Method::Grid, Method::Fhd, Method::Cg}) {
            std::vector<Complex> images(voxels * coils), maps(voxels * coils), resized(wanted * coils), one(wanted);
            recon_plan *p = plan(g, 1e-4);
            std::size_t count = coils;
            if (method == Method::Cg) {
                must(recon_coil_maps(p, kspace.data(), 0, maps.data()));
                recon_plan_destroy(p);
                recon_geometry combined = g;
                combined.coil_maps = maps.data();
                p = plan(combined, 1e-5);
                recon_cg_options o;
                must(recon_cg_options_init(&o, sizeof o));
                o.iterations = 4;
                must(recon_cg(p, kspace.data(), images.data(), &o, nullptr));
                count = 1;
            } else {
                must((method == Method::Grid ? recon_grid : recon_fhd)(p, kspace.data(), images.data()));
            }
            recon_plan_destroy(p);
            recon_geometry of = g;
            of.coils = count;
            must(recon_resize(&of, c.encoded_fov.data(), dims.data(), c.recon_fov.data(), images.data(),
                              resized.data()));
            std::copy(dims.begin(), dims.end(), of.dims);
            if (count > 1) {
                must(recon_combine(&of, RECON_COMBINE_ROOT_SUM_OF_SQUARES, resized.data(), one.data()));
            } else {
                one.assign(resized.begin(), resized.begin() + long(wanted));
            }
            Settings s = settings(method);
            s.combine = Combine::RootSumOfSquares, s.iterations = 4;
            Engine engine(s);
            std::vector<Complex> out(wanted, Complex(std::nanf(""), 0));
            const Result result = engine.reconstruct(samples, spaces, nullptr, out.data());
            CHECK(out == one && result.warnings.empty());
        }
    }
    // A wrong header.
    const Scan scan(32, 20, 64, 1);
    Scan lie = scan;
    lie.spaces.recon_fov[1] = 1e-9;
    Engine engine(settings(Method::Grid));
    CHECK_ERROR([&] { image(engine, lie); }, "fieldOfView_mm of encodedSpace and reconSpace", "axis 1", "32 voxels");
}

// Warnings about images that are made.
void warnings() {
    Scan scan(32, 20, 64, 2);
    const auto said = [&](Engine &engine) {
        const Samples samples = engine.add_to_window(scan.gathered());
        std::vector<Complex> out(32 * 32);
        return engine.reconstruct(samples, scan.spaces, nullptr, out.data()).warnings;
    };
    Engine engine(settings(Method::Grid));
    CHECK(said(engine).empty());
    // The library warns where k covers a small part of k-space, once for each plan.
    Scan small(32, 20, 64, 1);
    std::for_each(small.trajectory.begin(), small.trajectory.end(), [](float &k) { k /= 32; });
    std::swap(scan, small);
    Engine weighted([] {
        Settings s = settings(Method::Cg);
        s.weighted = true;  // the weights need a second plan
        return s;
    }());
    const auto extent = said(weighted);
    CHECK(extent.size() == 1 && extent[0].cause == Cause::Extent &&
          extent[0].text.find("|k| on axis 0 is at most 0.0156") != std::string::npos);
    CHECK(said(weighted).empty());
    std::swap(scan, small);

    for (std::size_t m = 3 * 64; m < 5 * 64; ++m) {
        scan.kspace[m] = scan.kspace[m + scan.samples()] = 0;
    }
    const auto zero = said(engine);
    CHECK(zero.size() == 1 && zero[0].cause == Cause::ZeroShots &&
          zero[0].text.find("2 of 20 shots are zero") != std::string::npos);
}

void references() {
    const Scan scan(64, 40, 128, 3), calibration(64, 100, 128, 3, 7);
    Settings s = settings(Method::Cg);
    s.maps = Maps::Reference;
    Engine engine(s), data(settings(Method::Cg));
    const Samples reference = calibration.gathered();
    const auto with = image(engine, scan, &reference);
    CHECK(distance(with, image(data, scan), true) < 0.2 && with != image(data, scan));
    Engine without(s);
    CHECK_ERROR([&] { image(without, scan); }, "coil_maps is reference", "set it to data");
    // Calibration data are also used where coil maps may come from the data.
    Engine automatic(settings(Method::Cg));
    CHECK(image(automatic, scan, &reference) == with);
    const Scan other(64, 40, 128, 2);
    const Samples fewer = other.gathered();
    CHECK_ERROR([&] { image(without, scan, &fewer); }, "reference has 2 coils", "3");
}

// Errors have the library's text, and the next image is made.
void errors() {
    Scan scan(32, 20, 64, 2);
    Engine engine(settings(Method::Grid));
    const auto good = image(engine, scan);
    const Complex kept = scan.kspace[65];
    Complex bad;
    scan.kspace[65] = Complex(std::nanf(""), 0);
    CHECK_ERROR([&] { image(engine, scan); }, "the data are nan", "in sample 1 of shot 1, coil 0");
    scan.kspace[65] = kept;
    // In the second coil, also where the coil maps are estimated.
    Settings mapped = settings(Method::Cg);
    mapped.maps = Maps::Data;
    Engine sense(mapped);
    const std::size_t second = scan.samples() + 3 * 64 + 7;
    std::swap(scan.kspace[second], (bad = Complex(0, INFINITY)));
    CHECK_ERROR([&] { image(engine, scan); }, "0+infi in sample 7 of shot 3, coil 1: they must be numbers");
    CHECK_ERROR([&] { image(sense, scan); }, "0+infi in sample 7 of shot 3, coil 1: they must be numbers");
    std::swap(scan.kspace[second], bad);
    CHECK(image(engine, scan) == good);
    // Errors in the trajectory name the shot too.
    for (const auto &[k, wanted] : {std::pair{0.6f, "kx is 0.6 in sample 1 of shot 2"},
                                    std::pair{-128.0f, "kx is -128 in sample 1 of shot 2"},
                                    std::pair{std::nanf(""), "kx is nan in sample 1 of shot 2"}}) {
        Scan out = scan;
        out.trajectory[2 * (2 * 64 + 1)] = k;
        CHECK_ERROR([&] { image(engine, out); }, wanted, std::isnan(k) ? "number" : "outside");
    }
    Settings s = settings(Method::Grid);
    s.tolerance = 1;
    Engine wrong(s);
    CHECK_ERROR([&] { image(wrong, scan); }, "tolerance");
}

// Properties that no image can be made with are found before any data come.
void bad_properties() {
    Settings s = settings(Method::Grid);
    CHECK(!Engine(s).bad_property());
    s.tolerance = 1e-12;
    auto bad = Engine(s).bad_property();
    CHECK(bad && bad->first == "tolerance" && bad->second.find("1e-12") != std::string::npos);
    s.width = 3;
    bad = Engine(s).bad_property();
    CHECK(bad && bad->first == "tolerance" && bad->second.find("double precision") != std::string::npos &&
          bad->second.find("3 cells") != std::string::npos);
    s.tolerance = 0;
    CHECK(!Engine(s).bad_property());
    for (const std::uint32_t width : {1u, 17u, 1000000000u}) {
        s.width = width;
        bad = Engine(s).bad_property();
        CHECK(bad && bad->first == "width" && bad->second.find("2 to 16") != std::string::npos);
    }
    s.width = 4;
    for (const double oversampling : {1.0, 1.24, 2.6, 1e30}) {
        s.oversampling = oversampling;
        bad = Engine(s).bad_property();
        CHECK(bad && bad->first == "oversampling" && bad->second.find("1.25 to 2.5") != std::string::npos);
    }
    s.width = 0, s.oversampling = 0;
    s.threads = 5000;
    bad = Engine(s).bad_property();
    CHECK(bad && bad->first == "threads" && bad->second.find("5000") != std::string::npos);
    s.threads = 0;
    s.device = parse_device("cuda:" + std::to_string(recon_device_count()));
    bad = Engine(s).bad_property();
    CHECK(bad && bad->first == "device" && !bad->second.empty());
}

// Width and oversampling by name: the image of the C API with these options, coil maps and weights by the same.
void named_window() {
    const Scan scan(64, 100, 128, 3);
    Settings s = settings(Method::Grid);
    s.tolerance = 0, s.width = 4, s.oversampling = 1.5, s.output = Output::Coils;
    Engine engine(s);
    std::vector<Complex> coils(64 * 64 * 3);
    recon_options o;
    must(recon_options_init(&o, sizeof o));
    o.threads = 2, o.width = 4, o.oversampling = 1.5;
    recon_geometry g = scan.geometry();
    recon_plan *p = nullptr;
    must(recon_plan_create(&g, &o, &p));
    must(recon_grid(p, scan.kspace.data(), coils.data()));
    recon_plan_properties properties;
    must(recon_plan_properties_init(&properties, sizeof properties));
    must(recon_plan_info(p, &properties));
    CHECK(properties.width == 4 && properties.oversampling == 1.5 && properties.error > 1e-5);
    recon_plan_destroy(p);
    CHECK(image(engine, scan) == coils);

    // A narrow window that misses 1e-4 estimates maps all the same, with one warning.
    s = settings(Method::Cg);
    const auto usual = [&] { Engine e(s); return image(e, scan); }();
    s.tolerance = 0, s.width = 3, s.oversampling = 2;
    Engine cg(s);
    const auto narrow = image(cg, scan);
    const double error = distance(narrow, usual);
    CHECK(error > 1e-5 && error < 0.05);
}

// A smooth map of random shape.
std::vector<float> smooth_map(std::size_t n, float middle, float range) {
    std::mt19937 random{std::random_device{}()};
    const float phase = std::uniform_real_distribution<float>(0, 6.28f)(random);
    std::vector<float> map(n * n);
    for (std::size_t i = 0; i < map.size(); ++i) {
        const float x = 2 * float(i % n) / float(n) - 1, y = 2 * float(i / n) / float(n) - 1;
        map[i] = middle + range * std::sin(2 * x + phase) * std::cos(y);
    }
    return map;
}

// Writes maps of slices 0, 1, ... as the program does.
void write_maps(const std::string &file, const std::string &series, const std::vector<std::vector<float>> &maps,
                std::uint16_t n) {
    std::remove(file.c_str());
    ISMRMRD::Dataset out(file.c_str(), "dataset", true);
    for (std::size_t slice = 0; slice < maps.size(); ++slice) {
        ISMRMRD::Image<float> one(n, n, 1, 1);
        one.setSlice(std::uint16_t(slice));
        std::copy(maps[slice].begin(), maps[slice].end(), one.getDataPtr());
        out.appendImage(series, one);
    }
}

// Maps of off-resonance and decay, from the chain and from files, against the C API; which plans are kept; errors.
void off_resonance() {
    const std::size_t n = 64;
    Scan scan(n, 60, 128, 3);
    for (auto &h : scan.headers) {
        h.sample_time_us = 100;  // 12.8 ms a readout
    }
    const auto field = smooth_map(n, 20, 80), other = smooth_map(n, -40, 60), decay = smooth_map(n, 20, 15);
    std::vector<float> times(scan.samples());
    for (std::size_t m = 0; m < times.size(); ++m) {
        times[m] = float(double(m % scan.readout) * 100e-6);
    }
    const auto wanted = [&](Method method, const float *f, const float *r, const Complex *maps) {
        recon_geometry g = scan.geometry();
        g.field_map = f, g.decay_map = r, g.times = times.data(), g.coil_maps = maps;
        recon_plan *p = plan(g, method == Method::Cg ? 1e-5 : 1e-4);
        std::vector<Complex> out(n * n * (maps == nullptr ? 3 : 1));
        switch (method) {
            case Method::Grid: must(recon_grid(p, scan.kspace.data(), out.data())); break;
            case Method::Cg: must(recon_cg(p, scan.kspace.data(), out.data(), nullptr, nullptr)); break;
            default: must(recon_fhd(p, scan.kspace.data(), out.data()));
        }
        recon_plan_destroy(p);
        return out;
    };
    const std::array<std::size_t, 3> dims{n, n, 1};
    for (const Method method : {Method::Grid, Method::Fhd}) {
        Settings s = settings(method);
        s.output = Output::Coils;
        s.field_map = parse_map_source(MapKind::Field, "images");
        Engine engine(s);
        CHECK(engine.takes_voxel_maps(MapKind::Field) && !engine.takes_voxel_maps(MapKind::Decay));
        CHECK_ERROR([&] { image(engine, scan); }, "property field_map is images", "slice 0 before its data");
        engine.add_voxel_map(MapKind::Field, 0, dims, field);
        const auto with = image(engine, scan);
        CHECK(with == wanted(method, field.data(), nullptr, nullptr));
        s.field_map = {};
        Engine without(s);
        CHECK(distance(with, image(without, scan)) > 0.1);
        // The same map again is no other map; another is given to the plan.
        engine.add_voxel_map(MapKind::Field, 0, dims, field);
        CHECK(image(engine, scan) == with && engine.plans_made() == 1 && engine.plans_updated() == 0);
        Scan two = scan;
        two.slice(1);
        CHECK_ERROR([&] { image(engine, two); }, "slice 1 before its data");
        engine.add_voxel_map(MapKind::Field, 1, dims, other);
        CHECK(image(engine, two) == wanted(method, other.data(), nullptr, nullptr));
        CHECK(image(engine, scan) == with && image(engine, two) == wanted(method, other.data(), nullptr, nullptr));
        CHECK(engine.plans_made() <= 2);
        const std::size_t made = engine.plans_made();
        CHECK(image(engine, scan) == with && engine.plans_made() == made);
    }

    // CG-SENSE with both maps, whose coil maps are estimated without them.
    std::vector<Complex> maps(n * n * 3);
    recon_geometry g = scan.geometry();
    recon_plan *p = plan(g, 1e-4);
    must(recon_coil_maps(p, scan.kspace.data(), 0, maps.data()));
    recon_plan_destroy(p);
    Settings s = settings(Method::Cg);
    s.field_map = parse_map_source(MapKind::Field, "images");
    s.decay_map = parse_map_source(MapKind::Decay, "images");
    Engine cg(s);
    cg.add_voxel_map(MapKind::Field, 0, dims, field);
    CHECK_ERROR([&] { image(cg, scan); }, "property decay_map is images");
    cg.add_voxel_map(MapKind::Decay, 0, dims, decay);
    CHECK(image(cg, scan) == wanted(Method::Cg, field.data(), decay.data(), maps.data()));
    const Samples samples = scan.gathered();
    const auto bytes = [&](const Engine &of) {
        return of.memory_needed(samples, coordinates(samples), scan.spaces, nullptr);
    };
    CHECK(bytes(cg) > bytes(Engine(settings(Method::Cg))));

    // Files, as the program writes them.
    const char *folder = std::getenv("TMPDIR");
    const std::string file = std::string(folder == nullptr ? "." : folder) + "/engine_test_maps.h5";
    write_maps(file, "image_0", {field, other}, n);
    s = settings(Method::Fhd);
    s.output = Output::Coils;
    s.field_map = parse_map_source(MapKind::Field, file);
    Engine of_file(s);
    of_file.read_voxel_maps();
    CHECK(image(of_file, scan) == wanted(Method::Fhd, field.data(), nullptr, nullptr));
    scan.slice(1);
    CHECK(image(of_file, scan) == wanted(Method::Fhd, other.data(), nullptr, nullptr));
    scan.slice(2);
    CHECK_ERROR([&] { image(of_file, scan); }, "maps of 2 slices, and none of slice 2");
    scan.slice(0);
    // One map serves all slices.
    write_maps(file, "image_0", {other}, n);
    Engine of_all(s);
    of_all.read_voxel_maps();
    for (const unsigned slice : {5u, 0u}) {
        scan.slice(slice);
        CHECK(image(of_all, scan) == wanted(Method::Fhd, other.data(), nullptr, nullptr));
    }
    CHECK(of_all.plans_made() == 1);
    {
        ISMRMRD::Dataset out(file.c_str(), "dataset", false);
        out.appendImage("image_0", ISMRMRD::Image<float>(n, n, 1, 1));
    }
    CHECK_ERROR([&] { of_all.read_voxel_maps(); }, "several images of slice 0");
    write_maps(file, "image_0", {field}, n);
    s.map_series = 3;
    Engine of_series(s);
    CHECK_ERROR([&] { of_series.read_voxel_maps(); }, "property field_map is", "image_3", "map_series");
    s.map_series = 0;
    s.decay_map = parse_map_source(MapKind::Decay, file + ".not");
    Engine of_nothing(s);
    CHECK_ERROR([&] { of_nothing.read_voxel_maps(); }, "property decay_map is", "no such file");
    s.decay_map = {};
    {
        std::remove(file.c_str());
        ISMRMRD::Dataset out(file.c_str(), "dataset", true);
        out.appendImage("image_0", ISMRMRD::Image<Complex>(4, 4, 1, 1));
    }
    CHECK_ERROR([&] { of_file.read_voxel_maps(); },
                "image 0 of dataset/image_0 has 1 channel of 32-bit complex numbers (complex float)",
                "a map has one channel of 32-bit real numbers (float)");
    std::FILE *text = std::fopen(file.c_str(), "w");
    std::fputs("no HDF5", text);
    std::fclose(text);
    CHECK_ERROR([&] { of_file.read_voxel_maps(); }, "cannot be read");
    std::remove(file.c_str());

    // Maps that do not fit, and times that are not there.
    s.field_map = parse_map_source(MapKind::Field, "images");
    Engine wrong(s);
    wrong.add_voxel_map(MapKind::Field, 0, {n, n - 1, 1}, std::vector<float>(n * (n - 1)));
    CHECK_ERROR([&] { image(wrong, scan); }, "property field_map has 64 x 63 x 1 voxels",
                "64 x 64 x 1 of encodedSpace");
    auto bad = field;
    bad[77] = NAN;
    wrong.add_voxel_map(MapKind::Field, 0, dims, bad);
    CHECK_ERROR([&] { image(wrong, scan); }, "voxel 77");
    // The error of the slice has the reason why its map was refused, even if an older map exists.
    wrong.refuse_voxel_map(MapKind::Field, 0, "it has " + type_text(ISMRMRD::ISMRMRD_DOUBLE));
    CHECK_ERROR([&] { image(wrong, scan); }, "the map that came for slice 0 was refused", "64-bit real numbers");
    wrong.add_voxel_map(MapKind::Field, 0, dims, field);
    CHECK(image(wrong, scan) == wanted(Method::Fhd, field.data(), nullptr, nullptr));
    for (auto &h : scan.headers) {
        h.sample_time_us = 0;
    }
    CHECK_ERROR([&] { image(wrong, scan); }, "sample_time_us is 0 in shot 0");
    // Milliseconds in place of microseconds would be 128 s.
    for (auto &h : scan.headers) {
        h.sample_time_us = 1e6f;
    }
    wrong.add_voxel_map(MapKind::Field, 0, dims, std::vector<float>(n * n, 0.001f));
    std::vector<Complex> out(n * n * 3);
    const Result result = wrong.reconstruct(scan.gathered(), scan.spaces, nullptr, out.data());
    CHECK(result.warnings.size() == 1 && result.warnings[0].cause == Cause::Times);

    // Times of the properties, in place of those of the headers.
    for (auto &h : scan.headers) {
        h.sample_time_us = 0;
    }
    s.dwell = 100;
    Engine timed(s);
    timed.add_voxel_map(MapKind::Field, 0, dims, field);
    CHECK(image(timed, scan) == wanted(Method::Fhd, field.data(), nullptr, nullptr));
    s.readout_start = 2;
    Engine later(s);
    later.add_voxel_map(MapKind::Field, 0, dims, field);
    for (auto &t : times) {
        t = float(double(t) + 2e-3);
    }
    CHECK(distance(image(later, scan), wanted(Method::Fhd, field.data(), nullptr, nullptr)) < 1e-4);
    Scan planar = scan;
    planar.spaces.echo_planar = true;
    CHECK_ERROR([&] { image(later, planar); }, "property field_map is set", "echo-planar");

    // A map on the matrix of reconSpace: its voxels are as large, or are not.
    Scan cropped = scan;
    cropped.spaces.recon_matrix = {n / 2, n - 4, 1};
    cropped.spaces.recon_fov = {n / 2.0, n - 4.0, 5};
    Engine padded(s), whole(s);
    std::vector<float> middle((n / 2) * (n - 4)), surrounded(n * n);
    for (std::size_t y = 0; y < n - 4; ++y) {
        for (std::size_t x = 0; x < n / 2; ++x) {
            const float value = field[(x + n / 4) + n * (y + 2)];
            middle[x + (n / 2) * y] = surrounded[(x + n / 4) + n * (y + 2)] = value;
        }
    }
    padded.add_voxel_map(MapKind::Field, 0, {n / 2, n - 4, 1}, middle);
    whole.add_voxel_map(MapKind::Field, 0, dims, surrounded);
    CHECK(image(padded, cropped) == image(whole, cropped));
    cropped.spaces.recon_fov = cropped.spaces.encoded_fov;
    Engine unlike(s);
    unlike.add_voxel_map(MapKind::Field, 0, {n / 2, n - 4, 1}, middle);
    CHECK_ERROR([&] { image(unlike, cropped); }, "has 32 x 60 x 1 voxels", "64 x 64 x 1 of encodedSpace");

    // Methods without off-resonance.
    for (const Method method : {Method::Fbp, Method::Propeller}) {
        Settings refused = settings(method);
        check_voxel_maps(refused);
        refused.decay_map = parse_map_source(MapKind::Decay, "images");
        CHECK_ERROR([&] { check_voxel_maps(refused); }, "property decay_map is set", "ReconCGGadget");
    }
    check_voxel_maps(s);
    s.field_map = {};
    CHECK_ERROR([&] { check_voxel_maps(s); }, "property dwell goes with a map");
    s.dwell = 0;
    CHECK_ERROR([&] { check_voxel_maps(s); }, "property readout_start goes with a map");

    // Images of the chain.
    ISMRMRD::MetaContainer meta;
    CHECK(!map_kind(meta));
    meta.set(MAP_ATTRIBUTE, "decay_map");
    CHECK(map_kind(meta) == MapKind::Decay);
    meta.set(MAP_ATTRIBUTE, "field");
    CHECK_ERROR([&] { map_kind(meta); }, "recon_map = \"field\"", "field_map (Hz)");
    const std::vector<Complex> numbers{{1, 0}, {-2, 0}}, with_phase{{1, 0}, {1, 1}};
    CHECK((real_parts(numbers.data(), 2) == std::vector<float>{1, -2}));
    CHECK_ERROR([&] { real_parts(with_phase.data(), 2); }, "complex numbers");
}

// The estimated memory grows with the task. An image that needs more than the free memory is an error with the numbers.
void memory() {
    Scan scan(64, 40, 128, 4);
    const auto count = [&](const Settings &s, std::size_t coils) {
        const Scan own(64, 40, 128, coils);
        const Samples samples = own.gathered();
        return Engine(s).memory_needed(samples, coordinates(samples), own.spaces, nullptr);
    };
    Settings cg = settings(Method::Cg), grid = settings(Method::Grid);
    CHECK(count(grid, 4) > count(grid, 1) && count(cg, 4) > count(cg, 1));
    cg.maps = Maps::Data;
    CHECK(count(cg, 4) > count(cg, 2));
    Engine engine(grid);
    const Samples samples = scan.gathered();
    std::vector<Complex> out(64 * 64);
    CHECK_ERROR([&] { engine.reconstruct(samples, scan.spaces, nullptr, out.data(), std::uint64_t(1) << 50); },
                "the image needs 10737418", " MiB for its plan, coil maps and outputs, and of the ", " MiB are left: ");
    const Result first = engine.reconstruct(samples, scan.spaces, nullptr, out.data());
    const Result second = engine.reconstruct(samples, scan.spaces, nullptr, out.data());
    CHECK(first.memory > (1 << 20) && second.memory == 0);
}

}  // namespace

int main() {
    same_as_the_c_api();
    weights();
    kept_between_images();
    missing_shots();
    sliding_window();
    another_trajectory();
    warm_start();
    compression();
    noise_level();
    propeller();
    spaces();
    matrices();
    warnings();
    references();
    errors();
    bad_properties();
    named_window();
    off_resonance();
    memory();
    return result("engine");
}
