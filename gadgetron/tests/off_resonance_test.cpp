// Maps of off-resonance and decay, from the chain and from files: images compared with the C API, plans, errors.
#include "scan.h"

#include <ismrmrd/dataset.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

constexpr std::size_t N = 64;
constexpr std::array<std::size_t, 3> DIMS{N, N, 1};

// Returns a smooth map of random shape.
std::vector<float> smooth_map(float middle, float range) {
    std::mt19937 random{std::random_device{}()};
    const float phase = std::uniform_real_distribution<float>(0, 6.28f)(random);
    std::vector<float> map(N * N);
    for (std::size_t i = 0; i < map.size(); ++i) {
        const float x = 2 * float(i % N) / float(N) - 1, y = 2 * float(i / N) / float(N) - 1;
        map[i] = middle + range * std::sin(2 * x + phase) * std::cos(y);
    }
    return map;
}

// A scan with sample times, and maps for it.
struct TimedScan {
    Scan scan{N, 60, 128, 3};
    std::vector<float> field = smooth_map(20, 80), second_field = smooth_map(-40, 60), decay = smooth_map(20, 15);
    std::vector<float> times;  // seconds

    TimedScan() {
        scan.set_sample_time(100);  // 12.8 ms per readout
        for (std::size_t m = 0; m < scan.samples(); ++m) {
            times.push_back(float(double(m % scan.readout) * 100e-6));
        }
    }

    // Returns the image of the C API. `field`, `decay` and `maps` may be null.
    std::vector<Complex> expected(Method method, const float *field, const float *decay = nullptr,
                                  const Complex *maps = nullptr) const {
        recon_geometry g = scan.geometry();
        g.field_map = field, g.decay_map = decay, g.times = times.data(), g.coil_maps = maps;
        const auto plan = make_plan(g, method == Method::Cg ? 1e-5 : 1e-4);
        std::vector<Complex> out(N * N * (maps == nullptr ? 3 : 1));
        const Complex *kspace = scan.kspace.data();
        switch (method) {
            case Method::Grid: check(recon_grid(plan.get(), kspace, out.data())); break;
            case Method::Cg: check(recon_cg(plan.get(), kspace, out.data(), nullptr, nullptr)); break;
            default: check(recon_fhd(plan.get(), kspace, out.data()));
        }
        return out;
    }
};

// Returns the settings of the adjoint of each coil, with a field map from a source.
Settings adjoint_settings(const std::string &source) {
    Settings s = settings(Method::Fhd);
    s.output = ImageOutput::Coils;
    s.field_map = parse_map_source(MapKind::Field, source);
    return s;
}

// Writes maps of slices 0, 1, ... as the program does.
void write_maps(const std::string &file, const std::vector<std::vector<float>> &maps) {
    std::remove(file.c_str());
    ISMRMRD::Dataset out(file.c_str(), "dataset", true);
    for (std::size_t slice = 0; slice < maps.size(); ++slice) {
        ISMRMRD::Image<float> map{std::uint16_t(N), std::uint16_t(N), 1, 1};
        map.setSlice(std::uint16_t(slice));
        std::copy(maps[slice].begin(), maps[slice].end(), map.getDataPtr());
        out.appendImage("image_0", map);
    }
}

// Maps from images of the chain. Equal maps do not change a plan, and new maps update it.
void maps_of_the_chain(const TimedScan &t) {
    Scan second_slice = t.scan;
    second_slice.set_slice(1);
    for (const Method method : {Method::Grid, Method::Fhd}) {
        Settings s = adjoint_settings("images");
        s.method = method;
        Engine engine(s);
        CHECK(engine.accepts_voxel_maps(MapKind::Field) && !engine.accepts_voxel_maps(MapKind::Decay));
        CHECK_ERROR([&] { image(engine, t.scan); }, "property field_map is images", "slice 0 before its data");
        engine.add_voxel_map(MapKind::Field, 0, DIMS, t.field);
        const auto first = image(engine, t.scan), second = t.expected(method, t.second_field.data());
        CHECK(first == t.expected(method, t.field.data()));
        s.field_map = {};
        Engine without(s);
        CHECK(distance(first, image(without, t.scan)) > 0.1);
        engine.add_voxel_map(MapKind::Field, 0, DIMS, t.field);
        CHECK(image(engine, t.scan) == first && engine.plans_made() == 1 && engine.plans_updated() == 0);
        CHECK_ERROR([&] { image(engine, second_slice); }, "slice 1 before its data");
        engine.add_voxel_map(MapKind::Field, 1, DIMS, t.second_field);
        CHECK(image(engine, second_slice) == second);
        CHECK(image(engine, t.scan) == first && image(engine, second_slice) == second);
        CHECK(engine.plans_made() <= 2);
        const std::size_t made = engine.plans_made();
        CHECK(image(engine, t.scan) == first && engine.plans_made() == made);
    }
}

// CG-SENSE with both maps. Coil maps are estimated without them.
void both_maps(const TimedScan &t) {
    std::vector<Complex> maps(N * N * 3);
    check(recon_coil_maps(make_plan(t.scan.geometry(), 1e-4).get(), t.scan.kspace.data(), 0, maps.data()));
    Settings s = settings(Method::Cg);
    s.field_map = parse_map_source(MapKind::Field, "images");
    s.decay_map = parse_map_source(MapKind::Decay, "images");
    Engine engine(s), without(settings(Method::Cg));
    engine.add_voxel_map(MapKind::Field, 0, DIMS, t.field);
    CHECK_ERROR([&] { image(engine, t.scan); }, "property decay_map is images");
    engine.add_voxel_map(MapKind::Decay, 0, DIMS, t.decay);
    CHECK(image(engine, t.scan) == t.expected(Method::Cg, t.field.data(), t.decay.data(), maps.data()));
    const Samples samples = t.scan.gathered();
    const auto bytes = [&](const Engine &e) {
        return e.estimate_memory(samples, nullptr);
    };
    CHECK(bytes(engine) > bytes(without));
}

void maps_of_files(const TimedScan &t, const std::string &file) {
    Scan scan = t.scan;
    const auto first = t.expected(Method::Fhd, t.field.data()), second = t.expected(Method::Fhd, t.second_field.data());
    write_maps(file, {t.field, t.second_field});
    Engine two_maps(adjoint_settings(file));
    two_maps.read_voxel_maps();
    CHECK(image(two_maps, scan) == first);
    scan.set_slice(1);
    CHECK(image(two_maps, scan) == second);
    scan.set_slice(2);
    CHECK_ERROR([&] { image(two_maps, scan); }, "maps of 2 slices, but no map of slice 2");
    // A single map is used for all slices.
    write_maps(file, {t.second_field});
    Engine one_map(adjoint_settings(file));
    one_map.read_voxel_maps();
    for (const unsigned slice : {5u, 0u}) {
        scan.set_slice(slice);
        CHECK(image(one_map, scan) == second);
    }
    CHECK(one_map.plans_made() == 1);
}

void invalid_files(const TimedScan &t, const std::string &file) {
    const auto read = [](const Settings &s) { return [s] { Engine(s).read_voxel_maps(); }; };
    Settings s = adjoint_settings(file);
    write_maps(file, {t.field});
    {
        ISMRMRD::Dataset out(file.c_str(), "dataset", false);
        out.appendImage("image_0", ISMRMRD::Image<float>(std::uint16_t(N), std::uint16_t(N), 1, 1));
    }
    CHECK_ERROR(read(s), "several images of slice 0");
    write_maps(file, {t.field});
    s.map_series = 3;
    CHECK_ERROR(read(s), "property field_map is", "image_3", "map_series");
    s.map_series = 0;
    s.decay_map = parse_map_source(MapKind::Decay, file + ".not");
    CHECK_ERROR(read(s), "property decay_map is", "no such file");
    s.decay_map = {};
    {
        std::remove(file.c_str());
        ISMRMRD::Dataset out(file.c_str(), "dataset", true);
        out.appendImage("image_0", ISMRMRD::Image<Complex>(4, 4, 1, 1));
    }
    CHECK_ERROR(read(s), "image 0 of dataset/image_0 has 1 channel of 32-bit complex numbers (complex float)",
                "a map must have one channel of 32-bit real numbers (float)");
    std::FILE *text = std::fopen(file.c_str(), "w");
    std::fputs("no HDF5", text);
    std::fclose(text);
    CHECK_ERROR(read(s), "cannot be read");
    std::remove(file.c_str());
}

void invalid_maps(const TimedScan &t) {
    Engine engine(adjoint_settings("images"));
    engine.add_voxel_map(MapKind::Field, 0, {N, N - 1, 1}, std::vector<float>(N * (N - 1)));
    CHECK_ERROR([&] { image(engine, t.scan); }, "property field_map has 64 x 63 x 1 voxels",
                "64 x 64 x 1 of encodedSpace");
    auto bad = t.field;
    bad[77] = NAN;
    engine.add_voxel_map(MapKind::Field, 0, DIMS, bad);
    CHECK_ERROR([&] { image(engine, t.scan); }, "voxel 77");
    // The error of the slice has the reason why its map was refused, even if an older map exists.
    engine.refuse_voxel_map(MapKind::Field, 0, "it has " + type_text(ISMRMRD::ISMRMRD_DOUBLE));
    CHECK_ERROR([&] { image(engine, t.scan); }, "the map for slice 0 was refused", "64-bit real numbers");
    engine.add_voxel_map(MapKind::Field, 0, DIMS, t.field);
    CHECK(image(engine, t.scan) == t.expected(Method::Fhd, t.field.data()));
    Scan scan = t.scan;
    scan.set_sample_time(0);
    CHECK_ERROR([&] { image(engine, scan); }, "sample_time_us is 0", "set property dwell");
    // A sample time of 1 s instead of microseconds gives readouts of 128 s.
    scan.set_sample_time(1e6f);
    engine.add_voxel_map(MapKind::Field, 0, DIMS, std::vector<float>(N * N, 0.001f));
    const auto warnings = warnings_of(engine, scan);
    CHECK(warnings.size() == 1 && contains(warnings[0], "times"));
}

// Sample times that properties set, in place of the headers.
void times_of_properties(TimedScan t) {
    t.scan.set_sample_time(0);
    Settings s = adjoint_settings("images");
    s.dwell = 100;
    Engine timed(s);
    timed.add_voxel_map(MapKind::Field, 0, DIMS, t.field);
    CHECK(image(timed, t.scan) == t.expected(Method::Fhd, t.field.data()));
    s.readout_start = 2;
    Engine later(s);
    later.add_voxel_map(MapKind::Field, 0, DIMS, t.field);
    for (auto &time : t.times) {
        time = float(double(time) + 2e-3);
    }
    CHECK(distance(image(later, t.scan), t.expected(Method::Fhd, t.field.data())) < 1e-4);
    Scan planar = t.scan;
    planar.spaces.trajectory = ISMRMRD::TrajectoryType::EPI;
    CHECK_ERROR([&] { image(later, planar); }, "property field_map is set", "echo-planar");
}

// A map on the matrix of reconSpace, with voxels of the same size and of a different size.
void maps_of_recon_space(const TimedScan &t) {
    const std::array<std::size_t, 3> dims{N / 2, N - 4, 1};
    Scan cropped = t.scan;
    cropped.spaces.recon_matrix = dims;
    cropped.spaces.recon_fov = {N / 2.0, N - 4.0, 5};
    const Settings s = adjoint_settings("images");
    Engine padded(s), whole(s), different(s);
    std::vector<float> middle(dims[0] * dims[1]), zero_padded(N * N);
    for (std::size_t y = 0; y < dims[1]; ++y) {
        for (std::size_t x = 0; x < dims[0]; ++x) {
            const float value = t.field[(x + N / 4) + N * (y + 2)];
            middle[x + dims[0] * y] = zero_padded[(x + N / 4) + N * (y + 2)] = value;
        }
    }
    padded.add_voxel_map(MapKind::Field, 0, dims, middle);
    whole.add_voxel_map(MapKind::Field, 0, DIMS, zero_padded);
    CHECK(image(padded, cropped) == image(whole, cropped));
    cropped.spaces.recon_fov = cropped.spaces.encoded_fov;
    different.add_voxel_map(MapKind::Field, 0, dims, middle);
    CHECK_ERROR([&] { image(different, cropped); }, "has 32 x 60 x 1 voxels", "64 x 64 x 1 of encodedSpace");
}

// Settings that exclude maps, and attributes of images.
void settings_and_attributes() {
    for (const Method method : {Method::Fbp, Method::Propeller}) {
        Settings s = settings(method);
        check_settings(s);
        s.decay_map = parse_map_source(MapKind::Decay, "images");
        CHECK_ERROR([&] { check_settings(s); }, "property decay_map is set", "ReconCGGadget");
    }
    Settings s = adjoint_settings("images");
    s.dwell = 100, s.readout_start = 2;
    check_settings(s);
    s.field_map = {};
    CHECK_ERROR([&] { check_settings(s); }, "property dwell has no effect without a map");
    s.dwell = 0;
    CHECK_ERROR([&] { check_settings(s); }, "property readout_start has no effect without a map");

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

}  // namespace

int main() {
    const char *folder = std::getenv("TMPDIR");
    const std::string file = std::string(folder == nullptr ? "." : folder) + "/off_resonance_test_maps.h5";
    const TimedScan t;
    maps_of_the_chain(t);
    both_maps(t);
    maps_of_files(t, file);
    invalid_files(t, file);
    invalid_maps(t);
    times_of_properties(t);
    maps_of_recon_space(t);
    settings_and_attributes();
    return result("off_resonance");
}
