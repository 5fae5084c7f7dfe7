// Images compared with calls of recon's C API; cached plans and coil maps; warnings and errors.
#include "scan.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace {

void same_as_the_c_api() {
    const Scan scan(64, 100, 128, 3);
    std::vector<Complex> coils(64 * 64 * 3), one(64 * 64), maps(64 * 64 * 3);
    recon_geometry g = scan.geometry();
    auto plan = make_plan(g, 1e-4);

    check(recon_grid(plan.get(), scan.kspace.data(), coils.data()));
    Settings s = settings(Method::Grid);
    s.output = ImageOutput::Coils;
    Engine per_coil(s);
    CHECK(image(per_coil, scan) == coils);
    check(recon_combine(&g, RECON_COMBINE_ADAPTIVE, coils.data(), one.data()));
    Engine gridding(settings(Method::Grid));
    CHECK(image(gridding, scan) == one);
    check(recon_combine(&g, RECON_COMBINE_ROOT_SUM_OF_SQUARES, coils.data(), one.data()));
    s.output = ImageOutput::Magnitude;
    Engine magnitude(s);
    CHECK(distance(image(magnitude, scan), one) < 1e-7);

    check(recon_fbp(plan.get(), RECON_FILTER_COSINE, scan.kspace.data(), coils.data()));
    s = settings(Method::Fbp);
    s.output = ImageOutput::Coils, s.filter = RECON_FILTER_COSINE;
    Engine backprojection(s);
    CHECK(image(backprojection, scan) == coils);

    check(recon_fhd(plan.get(), scan.kspace.data(), coils.data()));
    s = settings(Method::Fhd);
    s.output = ImageOutput::Coils;
    Engine adjoint(s);
    CHECK(image(adjoint, scan) == coils);

    check(recon_coil_maps(plan.get(), scan.kspace.data(), 0, maps.data()));
    g.coil_maps = maps.data();
    plan = make_plan(g, 1e-5);
    recon_cg_options options = initialised(recon_cg_options_init);
    options.iterations = 7, options.lambda = 0.01, options.prior = RECON_PRIOR_DIFFERENCES;
    check(recon_cg(plan.get(), scan.kspace.data(), one.data(), &options, nullptr));
    s = settings(Method::Cg);
    s.iterations = 7, s.lambda = 0.01, s.prior = Prior::Differences;
    Engine cg(s);
    CHECK(image(cg, scan) == one);
}

// Partial Fourier compared with the C API. A complete k-space is an error.
void partial_fourier() {
    const Scan whole(64, 100, 128, 2);
    Settings s = settings(Method::Grid);
    s.output = ImageOutput::Coils;
    s.partial_fourier = RECON_PARTIAL_FOURIER_POCS;
    Engine complete(s);
    CHECK_ERROR([&] { image(complete, whole); }, "missing");
    // Lines of a Cartesian grid from -8 to 31.
    Scan scan(64, 40, 64, 2);
    for (std::size_t m = 0; m < scan.samples(); ++m) {
        scan.trajectory[2 * m] = scan.kx[m] = (float(m % 64) - 32) / 64;
        scan.trajectory[2 * m + 1] = scan.ky[m] = (float(m / 64) - 8) / 64;
    }
    recon_geometry g = scan.geometry();
    check(recon_phantom_kspace(&g, nullptr, 0, RECON_COILS_RING, 1, scan.kspace.data()));
    const recon_options options = plan_options(s.tolerance);
    std::vector<Complex> expected(64 * 64 * 2);
    for (const std::uint32_t name : {RECON_PARTIAL_FOURIER_HOMODYNE, RECON_PARTIAL_FOURIER_POCS}) {
        auto method = initialised(recon_partial_fourier_options_init);
        s.partial_fourier = method.method = name;
        check(recon_partial_fourier(&g, &options, &method, scan.kspace.data(), expected.data(), nullptr));
        Engine engine(s);
        CHECK(image(engine, scan) == expected && engine.plans_made() == 0);
    }
    s.density = Density::Ramp;
    CHECK_ERROR([&] { check_settings(s); }, "property partial_fourier", "density to auto");
    s.field_map = parse_map_source(MapKind::Field, "images");
    CHECK_ERROR([&] { check_settings(s); }, "property field_map is set", "partial_fourier");
}

// Density weights of the file, and computed weights.
void density_weights() {
    const Scan scan(64, 100, 128, 1);
    recon_geometry g = scan.geometry();
    auto plan = make_plan(g, 1e-4);
    std::vector<float> ramp(scan.samples());
    check(recon_density(plan.get(), RECON_DENSITY_RAMP, 0, 0, ramp.data()));
    g.weights = ramp.data();
    plan = make_plan(g, 1e-4);
    std::vector<Complex> expected(64 * 64), default_weights(64 * 64);
    check(recon_grid(plan.get(), scan.kspace.data(), expected.data()));

    Settings s = settings(Method::Grid);
    s.density = Density::Ramp;
    Engine computed(s);
    CHECK(image(computed, scan) == expected);
    Scan weighted = scan;
    weighted.trajectory.clear();
    for (std::size_t m = 0; m < scan.samples(); ++m) {
        weighted.trajectory.insert(weighted.trajectory.end(), {scan.kx[m], scan.ky[m], ramp[m]});
    }
    for (auto &h : weighted.headers) {
        h.trajectory_dimensions = 3;
    }
    BufferView v = weighted.view();
    v.trajectory_size = 3;
    const Samples samples = gather(v, scan.spaces);
    Engine from_file(settings(Method::Grid));
    std::vector<Complex> out(64 * 64);
    from_file.reconstruct(samples, nullptr, out.data());
    CHECK(out == expected);
    // The weights of the file can be ignored.
    s.density = Density::PipeMenon;
    Engine ignoring(s), plain(settings(Method::Grid));
    ignoring.reconstruct(samples, nullptr, out.data());
    CHECK(out == image(plain, scan));
}

// A plan is reused unchanged only if the trajectory has the same bits. A plan whose trajectory did not recur is given
// the next one.
void cached_plans() {
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
    // Recurring trajectories get their own plans at the second occurrence.
    image(engine, b);
    CHECK(counts(engine) == std::pair(3ul, 1ul));
    CHECK(image(engine, moved) == other && image(engine, a) == first && counts(engine) == std::pair(3ul, 1ul));

    // Of the plans with recurring trajectories, the least recently used one is evicted first.
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

}

// Coil maps belong to a slice, and so do plans with coil maps.
void cached_coil_maps() {
    Scan a(32, 20, 64, 2), b(32, 20, 64, 2, 20);
    Engine cg(settings(Method::Cg));
    image(cg, a), image(cg, a);
    CHECK(cg.maps_made() == 1 && cg.plans_made() == 2);  // one for the coil maps
    a.set_slice(1);
    image(cg, a);
    CHECK(cg.maps_made() == 2);
    a.set_slice(0);
    image(cg, a), image(cg, b);
    CHECK(cg.maps_made() == 2);
    Settings s = settings(Method::Cg);
    s.maps_every = 2;
    Engine repeated(s);
    for (int i = 0; i < 5; ++i) {
        image(repeated, a);
    }
    CHECK(repeated.maps_made() == 3);
}

// Missing shots do not count as zeros: the image is made from the other shots.
void missing_shots() {
    const Scan half(64, 60, 128, 2);
    Scan whole(64, 100, 128, 2);
    for (std::size_t i = 60; i < 100; ++i) {
        whole.headers[i] = ISMRMRD::AcquisitionHeader();
    }
    for (const Method method : {Method::Grid, Method::Cg}) {
        Engine one(settings(method)), two(settings(method));
        CHECK(image(one, whole) == image(two, half));
        // The same engine with different shots.
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

std::vector<Scan> different_frames() {
    return {{64, 34, 128, 2}, {64, 34, 128, 2, 5}, {64, 21, 128, 2, 39}, {64, 55, 96, 2, 60}};
}

// A plan with a new trajectory gives the same bits as a new plan, for all methods, weights and numbers of samples.
void updated_trajectories() {
    const auto frames = different_frames();
    const Scan calibration(64, 100, 128, 2);
    std::vector<Settings> cases;
    for (const Method method : {Method::Grid, Method::Fbp, Method::Fhd, Method::Cg}) {
        cases.push_back(settings(method));
    }
    for (const Density density : {Density::PipeMenon, Density::Jackson, Density::Ramp}) {
        for (const Method method : {Method::Grid, Method::Cg}) {
            Settings s = settings(method);
            s.density = density, s.weighted = true;
            cases.push_back(s);
        }
    }
    for (Settings &s : cases) {
        s.iterations = 3;
        s.maps = s.method == Method::Cg ? CoilMapSource::Reference : CoilMapSource::None;
        Engine engine(s);
        const Samples reference = calibration.gathered();
        const Samples *used = s.maps == CoilMapSource::Reference ? &reference : nullptr;
        for (const Scan &frame : frames) {
            Engine fresh(s);
            CHECK(image(engine, frame, used) == image(fresh, frame, used));
        }
        CHECK(engine.plans_made() == (used != nullptr ? 2 : 1) && engine.plans_updated() == 3);
        // An invalid trajectory may remove the plan, but does not change later images.
        Scan bad = frames[0];
        bad.trajectory[2 * (2 * 128 + 1)] = 0.6f;
        CHECK_ERROR([&] { image(engine, bad, used); }, "acquisition 2", "sample 1: coordinate 0 is 0.6, outside");
        Engine fresh(s);
        CHECK(image(engine, frames[3], used) == image(fresh, frames[3], used));
    }
}

// Weights of the file, which change with the trajectory.
void updated_weights() {
    const auto frames = different_frames();
    const auto weighted = [](const Scan &scan) {
        BufferView v = scan.view();
        std::vector<float> trajectory;
        for (std::size_t m = 0; m < scan.samples(); ++m) {
            const float k = std::hypot(scan.kx[m], scan.ky[m]);
            trajectory.insert(trajectory.end(), {scan.kx[m], scan.ky[m], k * (1 + float(m % 7))});
        }
        auto headers = scan.headers;
        for (auto &h : headers) {
            h.trajectory_dimensions = 3;
        }
        v.trajectory = trajectory.data(), v.trajectory_size = 3, v.headers = headers.data();
        return gather(v, scan.spaces);
    };
    Engine engine(settings(Method::Grid));
    for (const Scan &frame : frames) {
        Engine fresh(settings(Method::Grid));
        const Samples samples = weighted(frame);
        std::vector<Complex> out(64 * 64), expected(64 * 64);
        engine.reconstruct(samples, nullptr, out.data());
        fresh.reconstruct(samples, nullptr, expected.data());
        CHECK(out == expected);
    }
    CHECK(engine.plans_made() == 1 && engine.plans_updated() == 3);
}

// The last image of a slice is the initial image of the next.
void warm_start() {
    Settings s = settings(Method::Cg);
    s.iterations = 100, s.residual = 1e-3;
    Engine cold(s);
    s.warm_start = true;
    Engine warm(s);
    std::vector<Complex> a, b;
    for (std::size_t frame = 0; frame < 3; ++frame) {
        const Scan scan(64, 34, 128, 4, 5 * frame);
        const ReconstructionResult first = reconstruct(cold, scan, a), second = reconstruct(warm, scan, b);
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
    // A failed image does not change the last one.
    Scan bad(64, 34, 128, 4, 15);
    bad.kspace[7] = Complex(std::nanf(""), 0);
    CHECK_ERROR([&] { reconstruct(warm, bad, b); }, "acquisition 0: coil 0, sample 7: the data are NaN");
    const Scan next(64, 34, 128, 4, 15);
    CHECK(2 * reconstruct(warm, next, b).iterations <= reconstruct(cold, next, a).iterations);
    // A new slice has no last image.
    Scan slice(64, 34, 128, 4, 20);
    slice.set_slice(1);
    ReconstructionResult first = reconstruct(cold, slice, a), second = reconstruct(warm, slice, b);
    CHECK(a == b && first.iterations == second.iterations && second.warnings.empty());
    // A different matrix: iterations start from zeros, with a warning.
    Scan coarse(48, 34, 96, 4);
    coarse.set_slice(1);
    first = reconstruct(cold, coarse, a), second = reconstruct(warm, coarse, b);
    CHECK(a == b && first.iterations == second.iterations && first.warnings.empty());
    CHECK(second.warnings.size() == 1 &&
          contains(second.warnings[0], "64 x 64 x 1 voxels in 1 channel, this one 48 x 48 x 1"));
    // Coils that are reconstructed separately are channels.
    s.maps = CoilMapSource::None, s.output = ImageOutput::Coils;
    Engine channels(s);
    a.resize(64 * 64 * 4);
    channels.reconstruct(Scan(64, 34, 128, 4).gathered(), nullptr, a.data());
    const ReconstructionResult fewer =
        channels.reconstruct(Scan(64, 34, 128, 3).gathered(), nullptr, a.data());
    CHECK(fewer.warnings.size() == 1 && contains(fewer.warnings[0], "in 4 channels"));
}

// Lambda is computed from the noise level.
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
    // A level that does not match the data causes a warning.
    CHECK(warnings_of(engine, scan).empty());
    s.noise_level *= 1.6;
    Engine high(s);
    const auto high_warnings = warnings_of(high, scan);
    CHECK(high_warnings.size() == 1 && contains(high_warnings[0], "noise level"));
    s.noise_level = 1e-3;
    Engine low(s);
    CHECK_ERROR([&] { image(low, scan); }, "noise level", "too low");
}

// Virtual coils are those of the C API for the first image of a slice, and coil maps are of virtual coils.
void compression() {
    const Scan scan(64, 100, 128, 8), later(64, 100, 128, 8, 100);
    std::vector<std::complex<double>> matrix(5 * 8);
    std::uint64_t virtual_coils = 0;
    check(recon_compression(RECON_F32, scan.kspace.data(), scan.samples(), 8, 1, 5, 0, matrix.data(), &virtual_coils,
                            nullptr));
    for (const Method method : {Method::Grid, Method::Cg}) {
        Settings s = settings(method);
        Engine plain(s);
        s.compress = parse_compress("5");
        Engine engine(s);
        for (const Scan *one : {&scan, &later}) {
            Scan fewer(64, 100, 128, 5, one == &scan ? 0 : 100);
            check(recon_virtual_coils(matrix.data(), 5, 8, RECON_F32, one->kspace.data(), one->samples(), 1,
                                     fewer.kspace.data()));
            CHECK(image(engine, *one) == image(plain, fewer));
        }
        s.compress = parse_compress("99.99%");
        Engine most(s), all(settings(method));
        // The phase is relative to a different virtual coil.
        CHECK(distance(image(most, scan), image(all, scan), true) < 0.02);
    }
    Settings s = settings(Method::Cg);
    s.compress = parse_compress("1");
    Engine one(s);
    const auto one_warnings = warnings_of(one, scan);
    CHECK(one_warnings.size() == 1 && contains(one_warnings[0], "1 virtual coils of 8"));
    s.compress = parse_compress("9");
    Engine many(s);
    CHECK_ERROR([&] { image(many, scan); }, "property compress", "9 virtual coils of 8");
    Scan bad = scan;
    bad.kspace[7] = Complex(std::nanf(""), 0);
    s.compress = parse_compress("5");
    Engine broken(s);
    CHECK_ERROR([&] { image(broken, bad); }, "acquisition 0: coil 0, sample 7: the data are NaN");
}

// Warnings about images that are made.
void warnings() {
    const Scan scan(32, 20, 64, 2);
    Engine engine(settings(Method::Grid));
    CHECK(warnings_of(engine, scan).empty());
    // The library warns if k covers only a small part of k-space, once per plan.
    Scan small(32, 20, 64, 1);
    std::for_each(small.trajectory.begin(), small.trajectory.end(), [](float &k) { k /= 32; });
    Engine weighted([] {
        Settings s = settings(Method::Cg);
        s.weighted = true;  // the weights require a second plan
        return s;
    }());
    const auto extent = warnings_of(weighted, small);
    CHECK(extent.size() == 1 && contains(extent[0], "|k| on axis 0 is at most 0.0156"));
    CHECK(warnings_of(weighted, small).empty());
}

void references() {
    const Scan scan(64, 40, 128, 3), calibration(64, 100, 128, 3, 7);
    Settings s = settings(Method::Cg);
    s.maps = CoilMapSource::Reference;
    Engine engine(s), data(settings(Method::Cg));
    const Samples reference = calibration.gathered();
    const auto referenced = image(engine, scan, &reference);
    CHECK(distance(referenced, image(data, scan), true) < 0.2 && referenced != image(data, scan));
    Engine without(s);
    CHECK_ERROR([&] { image(without, scan); }, "coil_maps is reference", "set it to data");
    // Calibration data are also used if coil_maps is data.
    Engine automatic(settings(Method::Cg));
    CHECK(image(automatic, scan, &reference) == referenced);
}

// Errors have the library's message, and the next image is made.
void errors() {
    const Scan scan(32, 20, 64, 2);
    Settings s = settings(Method::Grid);
    s.tolerance = 1;
    Engine wrong(s);
    CHECK_ERROR([&] { image(wrong, scan); }, "tolerance");
    // Data that are not finite are refused before the reconstruction.
    for (const Method method : {Method::Grid, Method::Cg}) {
        Engine engine(settings(method));
        const auto good = image(engine, scan);
        Scan bad = scan;
        bad.kspace[scan.samples() + 3 * 64 + 7] = Complex(0, INFINITY);
        CHECK_ERROR([&] { image(engine, bad); }, "acquisition 3: coil 1, sample 7: the data are");
        CHECK(image(engine, scan) == good);
    }
}

// Properties that make all images impossible are found before any data arrive.
void invalid_properties() {
    Settings s = settings(Method::Grid);
    CHECK(!Engine(s).find_invalid_property());
    s.tolerance = 1e-12;
    auto bad = Engine(s).find_invalid_property();
    CHECK(bad && bad->first == "tolerance" && contains(bad->second, "1e-12"));
    s.width = 3;
    bad = Engine(s).find_invalid_property();
    CHECK(bad && bad->first == "tolerance" && contains(bad->second, "double precision") &&
          contains(bad->second, "3 cells"));
    s.tolerance = 0;
    CHECK(!Engine(s).find_invalid_property());
    for (const std::uint32_t width : {1u, 17u, 1000000000u}) {
        s.width = width;
        bad = Engine(s).find_invalid_property();
        CHECK(bad && bad->first == "width" && contains(bad->second, "2 to 16"));
    }
    s.width = 4;
    for (const double oversampling : {1.0, 1.24, 2.6, 1e30}) {
        s.oversampling = oversampling;
        bad = Engine(s).find_invalid_property();
        CHECK(bad && bad->first == "oversampling" && contains(bad->second, "1.25 to 2.5"));
    }
    s.width = 0, s.oversampling = 0;
    s.threads = 5000;
    bad = Engine(s).find_invalid_property();
    CHECK(bad && bad->first == "threads" && contains(bad->second, "5000"));
    s.threads = 0;
    s.device = parse_device("cuda:" + std::to_string(recon_device_count()));
    bad = Engine(s).find_invalid_property();
    CHECK(bad && bad->first == "device" && !bad->second.empty());
}

// Width and oversampling of the user: the image equals that of the C API with these options.
void user_window() {
    const Scan scan(64, 100, 128, 3);
    Settings s = settings(Method::Grid);
    s.tolerance = 0, s.width = 4, s.oversampling = 1.5, s.output = ImageOutput::Coils;
    Engine engine(s);
    std::vector<Complex> coils(64 * 64 * 3);
    recon_options options = plan_options(0);
    options.width = 4, options.oversampling = 1.5;
    recon_geometry g = scan.geometry();
    const auto plan = make_plan(g, options);
    check(recon_grid(plan.get(), scan.kspace.data(), coils.data()));
    recon_plan_properties properties = initialised(recon_plan_properties_init);
    check(recon_plan_info(plan.get(), &properties));
    CHECK(properties.width == 4 && properties.oversampling == 1.5 && properties.error > 1e-5);
    CHECK(image(engine, scan) == coils);

    // Coil maps are also estimated with a narrow window that misses 1e-4.
    s = settings(Method::Cg);
    const auto usual = [&] { Engine e(s); return image(e, scan); }();
    s.tolerance = 0, s.width = 3, s.oversampling = 2;
    Engine cg(s);
    const auto narrow = image(cg, scan);
    const double error = distance(narrow, usual);
    CHECK(error > 1e-5 && error < 0.05);
}

// The estimated memory grows with the task. An image that requires more than the free memory is an error with both.
void memory() {
    Scan scan(64, 40, 128, 4);
    const auto bytes = [&](const Settings &s, std::size_t coils) {
        const Scan same(64, 40, 128, coils);
        const Samples samples = same.gathered();
        return Engine(s).estimate_memory(samples, nullptr);
    };
    Settings cg = settings(Method::Cg), grid = settings(Method::Grid);
    CHECK(bytes(grid, 4) > bytes(grid, 1) && bytes(cg, 4) > bytes(cg, 1));
    cg.maps = CoilMapSource::Data;
    CHECK(bytes(cg, 4) > bytes(cg, 2));
    Engine engine(grid);
    const Samples samples = scan.gathered();
    std::vector<Complex> out(64 * 64);
    CHECK_ERROR([&] { engine.reconstruct(samples, nullptr, out.data(), std::uint64_t(1) << 50); },
                "the image needs 10737418", " MiB for its plan, coil maps and outputs: ", " MiB", "fewer connections");
    const ReconstructionResult first = engine.reconstruct(samples, nullptr, out.data());
    const ReconstructionResult second = engine.reconstruct(samples, nullptr, out.data());
    CHECK(first.memory > (1 << 20) && second.memory == 0);
}

}  // namespace

int main() {
    same_as_the_c_api();
    partial_fourier();
    density_weights();
    cached_plans();
    cached_coil_maps();
    missing_shots();
    updated_trajectories();
    updated_weights();
    warm_start();
    compression();
    noise_level();
    warnings();
    references();
    errors();
    invalid_properties();
    user_window();
    memory();
    return result("engine");
}
