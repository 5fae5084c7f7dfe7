// Messages of Gadgetron as acquisitions of a scan, headers of images, properties, and messages of the log.
#include "empty_frames.h"
#include "image_headers.h"
#include "scan.h"

#include <algorithm>
#include <utility>

namespace {

using Header = ISMRMRD::AcquisitionHeader;

Spaces space(std::size_t nx, std::size_t ny, std::size_t nz = 1) {
    Spaces s;
    s.encoded_matrix = s.recon_matrix = {nx, ny, nz};
    s.encoded_fov = s.recon_fov = {double(nx), double(ny), nz > 1 ? double(nz) : 5.0};
    return s;
}

// A buffer whose values are their indices.
struct Buffer {
    std::size_t e0, e1, e2, coils, n, s, loc, components;
    std::vector<Complex> data;
    std::vector<float> trajectory;
    std::vector<Header> headers;

    Buffer(std::size_t e0, std::size_t e1, std::size_t e2, std::size_t coils, std::size_t n, std::size_t s,
           std::size_t loc, std::size_t components)
        : e0(e0), e1(e1), e2(e2), coils(coils), n(n), s(s), loc(loc), components(components) {
        const std::size_t rows = e1 * e2 * n * s * loc;
        for (std::size_t i = 0; i < e0 * rows * coils; ++i) {
            data.emplace_back(float(i + 1), -float(i));
        }
        for (std::size_t i = 0; i < e0 * rows * components; ++i) {
            trajectory.push_back(0.4f * std::sin(float(i)));
        }
        headers.resize(rows);
        for (std::size_t row = 0; row < rows; ++row) {
            Header &h = headers[row];
            h.number_of_samples = std::uint16_t(e0), h.active_channels = std::uint16_t(coils);
            h.trajectory_dimensions = std::uint16_t(components), h.sample_time_us = 10;
            h.idx.kspace_encode_step_1 = std::uint16_t(row % e1);
            h.idx.slice = std::uint16_t(row / (e1 * e2 * n * s));
        }
    }

    BufferView view() const {
        BufferView v;
        v.e0 = e0, v.e1 = e1, v.e2 = e2, v.coils = coils, v.n = n, v.s = s, v.loc = loc;
        v.data = data.data(), v.trajectory = trajectory.data(), v.trajectory_size = components;
        v.headers = headers.data();
        return v;
    }
};

ScanFeed feed_of(const Spaces &spaces) {
    return ScanFeed(spaces.header(), initialised(recon_scan_options_init));
}

// Adds one frame, and returns the samples of its image.
std::optional<Samples> image_of(ScanFeed &feed, const BufferView &view, std::size_t frame = 0) {
    feed.add_frame(view, frame, *first_header(view, frame), false);
    feed.complete();
    auto samples = feed.next();
    CHECK(!feed.next());
    return samples;
}

// Compares every value of a frame with its index in the array of seven dimensions.
void layouts() {
    const Buffer b(3, 4, 2, 2, 3, 2, 2, 2);
    ScanFeed feed = feed_of(space(8, 8));
    for (std::size_t frame = 0; frame < b.view().frames(); ++frame) {
        const auto samples = image_of(feed, b.view(), frame);
        CHECK(samples && samples->count() == 24 && samples->coils() == 2 && samples->properties().shots == 8);
        CHECK(samples->properties().slice == frame / 6 && !samples->is_weighted() && samples->properties().ndim == 2);
        for (std::size_t m = 0; m < 24; ++m) {
            const std::size_t row = m / 3 + 8 * frame;
            for (std::size_t c = 0; c < b.coils; ++c) {
                CHECK(samples->kspace()[24 * c + m] == b.data[m % 3 + 3 * (m / 3 + 8 * (c + 2 * frame))]);
            }
            for (std::size_t axis = 0; axis < 2; ++axis) {
                CHECK(samples->properties().coordinates[axis][m] == b.trajectory[axis + 2 * (m % 3 + 3 * row)]);
            }
        }
    }
}

// Rows without an acquisition give no samples, and discarded samples are left out but count in the times.
void missing_rows() {
    Buffer b(4, 5, 1, 2, 1, 1, 1, 2);
    b.headers[1] = Header();       // no acquisition
    b.headers[3].discard_pre = 1;  // BucketToBufferGadget writes the other samples to the start of the row
    b.headers[4].setFlag(ISMRMRD::ISMRMRD_ACQ_IS_NAVIGATION_DATA);
    ScanFeed feed = feed_of(space(8, 8));
    const auto samples = image_of(feed, b.view());
    CHECK(samples && samples->properties().shots == 3 && samples->count() == 4 + 4 + 3);
    const std::size_t from[] = {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14};
    for (std::size_t m = 0; m < samples->count(); ++m) {
        CHECK(samples->kspace()[m] == b.data[from[m]] && samples->kspace()[11 + m] == b.data[20 + from[m]]);
        CHECK(samples->properties().coordinates[0][m] == b.trajectory[2 * from[m]]);
    }
    const auto close = [](float a, double b) { return std::fabs(double(a) - b) < 1e-9; };
    CHECK(close(samples->times(0, 0)[8], 10e-6) && close(samples->times(0, 0)[7], 30e-6));
    CHECK(close(samples->times(50, -2)[9], 100e-6 - 2e-3) && close(samples->times(0, 1)[0], 1e-3));
    b.headers.assign(5, Header());
    CHECK(first_header(b.view(), 0) == nullptr);

    Buffer untimed(4, 5, 1, 2, 1, 1, 1, 2);
    for (auto &h : untimed.headers) {
        h.sample_time_us = 0;
    }
    const auto without_times = image_of(feed, untimed.view());
    CHECK_ERROR([&] { without_times->times(0, 0); }, "sample_time_us is 0", "property dwell");
    CHECK(close(without_times->times(20, 0)[3], 60e-6));
}

// BucketToBufferGadget shifts the samples of Cartesian rows.
void cartesian_rows() {
    Buffer b(8, 2, 1, 2, 1, 1, 1, 2);
    BufferView v = b.view();
    ScanFeed feed = feed_of(space(8, 8));
    const auto starts = [&] {
        const auto samples = image_of(feed, v);
        std::vector<std::size_t> first;
        for (std::size_t row = 0, m = 0; row < 2; m += samples->properties().samples_per_shot[row++]) {
            first.push_back(std::size_t(-samples->kspace()[m].imag()) - 8 * row);
        }
        return first;
    };
    using Starts = std::vector<std::size_t>;
    for (auto &h : b.headers) {
        h.discard_pre = 2, h.center_sample = 4;
    }
    CHECK((starts() == Starts{0, 0}));  // not Cartesian
    v.cartesian_centre = 4;
    CHECK((starts() == Starts{2, 2}));
    // A shorter row with an earlier centre.
    b.headers[1].number_of_samples = 6, b.headers[1].discard_pre = 0, b.headers[1].center_sample = 2;
    CHECK((starts() == Starts{2, 2}));
    b.headers[1].center_sample = 5;
    CHECK_ERROR([&] { feed.add_frame(v, 0, b.headers[0], false); }, "does not fit the rows");
}

// Density weights in a separate array and in the trajectory, and impossible buffers.
void components() {
    Buffer b(3, 2, 1, 1, 1, 1, 1, 3), plain(3, 2, 1, 1, 1, 1, 1, 2);
    for (std::size_t m = 0; m < 6; ++m) {
        b.trajectory[3 * m + 2] = float(m + 1);
    }
    ScanFeed feed = feed_of(space(8, 8));
    const auto weighted = image_of(feed, b.view());
    CHECK(weighted && weighted->is_weighted() && weighted->properties().weights[5] == 6);
    BufferView v = plain.view();
    const std::vector<float> density{6, 5, 4, 3, 2, 1};
    v.density = density.data();
    const auto separate = image_of(feed, v);
    CHECK(separate && separate->is_weighted() && separate->properties().weights[1] == 5);
    CHECK(separate->properties().coordinates[1][4] == plain.trajectory[9]);
    v.trajectory = nullptr;
    CHECK_ERROR([&] { feed.add_frame(v, 0, plain.headers[0], false); }, "no trajectory", "BucketToBufferGadget");
    v = plain.view();
    plain.headers[1].trajectory_dimensions = 3;
    CHECK_ERROR([&] { feed.add_frame(v, 0, plain.headers[0], false); }, "row 1 has 3 trajectory components",
                "the buffer has 2");
    plain.headers[1].trajectory_dimensions = 2, plain.headers[1].number_of_samples = 9;
    CHECK_ERROR([&] { feed.add_frame(v, 0, plain.headers[0], false); }, "rows of a buffer have 3 samples", "9");
}

// The rows of a frame are one image, whatever their counters.
void counters_of_rows() {
    Buffer b(3, 4, 1, 1, 1, 1, 1, 2);
    for (std::size_t row = 0; row < 4; ++row) {
        b.headers[row].idx.repetition = std::uint16_t(7 - row), b.headers[row].idx.average = std::uint16_t(row);
        b.headers[row].position[0] = 1;
    }
    ScanFeed feed = feed_of(space(8, 8));
    const auto samples = image_of(feed, b.view());
    CHECK(samples && samples->properties().shots == 4 && samples->properties().repetition == 7);
    CHECK(samples->describe() == "slice 0, repetition 7" && samples->first().position[0] == 1);
}

// Acquisitions: sizes are checked before the library reads the arrays.
void acquisitions() {
    const Buffer b(3, 1, 1, 2, 1, 1, 1, 2);
    ScanFeed feed = feed_of(space(8, 8));
    const Header &h = b.headers[0];
    CHECK_ERROR([&] { feed.add({h, b.data.data(), 5, b.trajectory.data(), 6}); }, "the data of an acquisition has 5",
                "2 for each of 3 samples");
    CHECK_ERROR([&] { feed.add({h, b.data.data(), 6, b.trajectory.data(), 7}); }, "the trajectory", "7");
    CHECK_ERROR([&] { feed.add({h, b.data.data(), 6, nullptr, 0}); }, "the trajectory", "has 0");
    feed.add({h, b.data.data(), 6, b.trajectory.data(), 6});
    CHECK(!feed.next());
    feed.end();
    const auto samples = feed.next();
    CHECK(samples && samples->kspace()[5] == b.data[5]);
}

// Noise whitens acquisitions for later gadgets, and images of the scan, in the same way.
void noise() {
    Header h;
    h.number_of_samples = 64, h.active_channels = 2, h.sample_time_us = 10;
    h.setFlag(ISMRMRD::ISMRMRD_ACQ_IS_NOISE_MEASUREMENT);
    std::vector<Complex> samples(128);
    for (std::size_t i = 0; i < 128; ++i) {
        samples[i] = Complex(std::sin(float(7 * i)), std::cos(float(i * i))) * (i < 64 ? 3.f : 0.5f);
    }
    Buffer b(8, 4, 1, 2, 1, 1, 1, 2);
    ScanFeed whole = feed_of(space(8, 8)), single = feed_of(space(8, 8));
    for (ScanFeed *feed : {&whole, &single}) {
        feed->add({h, samples.data(), 128});
        CHECK(purposes_of(h) == RECON_PURPOSE_NOISE);
    }
    const auto image = image_of(whole, b.view());
    for (std::size_t row = 0; row < 4; ++row) {
        std::vector<Complex> data;
        for (std::size_t coil = 0; coil < 2; ++coil) {
            data.insert(data.end(), &b.data[8 * (row + 4 * coil)], &b.data[8 * (row + 4 * coil)] + 8);
        }
        single.whiten({b.headers[row], data.data(), 16}, data.data());
        for (std::size_t i = 0; i < 16; ++i) {
            CHECK(data[i] == image->kspace()[32 * (i / 8) + 8 * row + i % 8]);
        }
    }
    CHECK(image->properties().is_whitened == 1 && image->kspace()[0] != b.data[0]);
}

// The trajectory of cached plans is compared bit by bit.
void trajectories() {
    Buffer b(3, 4, 1, 2, 1, 1, 1, 2);
    ScanFeed feed = feed_of(space(8, 8));
    const auto one = image_of(feed, b.view());
    const auto numbers = one->trajectory();
    CHECK(numbers.size() == 24 && one->has_trajectory(numbers));
    b.trajectory[5] = std::nextafter(b.trajectory[5], 1.f);
    const auto other = image_of(feed, b.view());
    CHECK(!other->has_trajectory(numbers) && other->trajectory_hash() != one->trajectory_hash());
    const Samples single = one->with_coils(std::vector<Complex>(12, Complex(1, 2)), 1);
    CHECK(single.coils() == 1 && single.kspace()[3] == Complex(1, 2) && single.geometry().coils == 1);
    CHECK(single.has_trajectory(numbers));
}

// Frames of a buffer without shots: the text depends on the empty frames.
void frames_without_shots() {
    const auto text = [](std::size_t n, std::size_t s, std::size_t loc, std::vector<char> has, std::size_t slices) {
        return empty_frames({n, s, loc, std::move(has), slices}).value_or("no warning");
    };
    CHECK(text(3, 1, 1, {1, 1, 1}, 3) == "no warning" && text(1, 1, 1, {1}, 0) == "no warning");
    CHECK(text(3, 1, 1, {0, 0, 0}, 3) == "no warning");  // this is an error instead
    const std::string cut =
        "no shot was acquired for 1 of 3 images, which are not made: check whether the measurement was cut short";
    CHECK(text(3, 1, 1, {1, 1, 0}, 3) == cut && text(1, 3, 1, {1, 0, 1}, 3) == cut);
    CHECK(text(1, 1, 3, {1, 0, 1}, 3) == cut);
    // N_dimension = slice: one buffer per slice, or one frame per slice of a buffer.
    for (const std::string &slice : {text(3, 1, 1, {1, 0, 0}, 3), text(3, 1, 1, {1, 0, 0}, 0),
                                     text(3, 1, 3, {1, 0, 0, 1, 0, 0, 1, 0, 0}, 3)}) {
        CHECK(contains(slice, "only the first of 3 frames along N has shots"));
        CHECK(contains(slice, "Is property N_dimension of BucketToBufferGadget slice? It contradicts split_slices"));
    }
    CHECK(contains(text(1, 2, 1, {1, 0}, 2), "only the first of 2 frames along S has shots. Is property S_dimension"));
    // The frames are not slices, because the file has fewer slices than frames.
    CHECK(contains(text(3, 1, 1, {1, 0, 0}, 1),
                   "2 of 3 images, which are not made: check whether the measurement was cut short"));
}

// Messages that differ only in their numbers are logged once, and counted.
void message_counts() {
    MessageCounter messages;
    CHECK(messages.is_first("slice 3: 4 shots are zero") && !messages.is_first("slice 10: 57 shots are zero"));
    CHECK(messages.is_first("slice 3: the data are NaN"));
    CHECK(messages.summary() ==
          std::vector<std::string>{
              "2 times in all on this connection, but logged only once: slice 3: 4 shots are zero"});
}

// Magnitudes as integers: rounding, the common factor of an encoding, and values that do not fit.
void integers() {
    const auto convert = [](IntegerConverter &c, std::size_t encoding, std::vector<Complex> values, double scale) {
        ISMRMRD::MetaContainer meta;
        std::vector<std::string> warnings;
        const auto out = c.convert(encoding, values.data(), values.size(), meta, warnings);
        CHECK(std::fabs(meta.as_double("recon_scale") - scale) < 1e-6 * scale);
        CHECK(meta.as_double("GADGETRON_ScaleRatio") == meta.as_double("recon_scale"));
        return std::pair(out, warnings);
    };
    using Values = std::vector<std::uint16_t>;
    IntegerConverter chosen(0), given(10);
    auto [out, warnings] = convert(chosen, 0, {0, 0}, 1);
    CHECK((out == Values{0, 0}) && warnings.empty());
    std::tie(out, warnings) = convert(chosen, 0, {0, 0.5f, 2, 1}, 2047.5);
    CHECK((out == Values{0, 1024, 4095, 2048}) && warnings.empty());
    std::tie(out, warnings) = convert(chosen, 0, {30, 1}, 2047.5);  // the same factor
    CHECK((out == Values{61425, 2048}) && warnings.empty());
    std::tie(out, warnings) = convert(chosen, 1, {8190}, 0.5);  // a different encoding
    CHECK((out == Values{4095}) && warnings.empty());
    std::tie(out, warnings) = convert(given, 0, {0.26f, 6553.5f, 1e30f}, 10);
    CHECK((out == Values{3, 65535, 65535}) && warnings.size() == 1);
    CHECK(contains(warnings[0], "1e+31 after scaling by 10") && contains(warnings[0], "to at most 6.5535e-26"));
}

void headers() {
    Buffer b(64, 10, 1, 1, 1, 1, 1, 2);
    Header &a = b.headers[0];
    a.measurement_uid = 11, a.acquisition_time_stamp = 12;
    a.setFlag(ISMRMRD::ISMRMRD_ACQ_LAST_IN_SLICE);
    a.setFlag(ISMRMRD::ISMRMRD_ACQ_USER3);
    for (int i = 0; i < 3; ++i) {
        a.position[i] = float(i + 1), a.read_dir[i] = float(i == 1), a.phase_dir[i] = float(i == 2),
        a.slice_dir[i] = float(i == 0);
        a.patient_table_position[i] = float(i + 13), a.physiology_time_stamp[i] = std::uint32_t(i + 16);
    }
    a.idx.average = 1, a.idx.slice = 2, a.idx.contrast = 3, a.idx.phase = 4, a.idx.repetition = 5, a.idx.set = 6;
    a.user_int[7] = -9, a.user_float[0] = 0.5f;
    Spaces spaces = space(64, 32);
    spaces.recon_fov = {300, 150, 5};
    const Samples samples = gather(b.view(), spaces);
    ImageInfo info;
    info.channels = 4, info.magnitude = false, info.number = 77, info.series = 2, info.method = "gridding";
    const auto h = make_image_header(samples, info);
    CHECK(h.matrix_size[0] == 64 && h.matrix_size[1] == 32 && h.matrix_size[2] == 1 && h.channels == 4);
    CHECK(h.field_of_view[0] == 300 && h.field_of_view[1] == 150 && h.field_of_view[2] == 5);
    CHECK(h.position[2] == 3 && h.read_dir[1] == 1 && h.phase_dir[2] == 1 && h.slice_dir[0] == 1);
    CHECK(h.patient_table_position[0] == 13 && h.physiology_time_stamp[2] == 18);
    CHECK(h.average == 1 && h.slice == 2 && h.contrast == 3 && h.phase == 4 && h.repetition == 5 && h.set == 6);
    CHECK(h.measurement_uid == 11 && h.acquisition_time_stamp == 12 && h.image_index == 77 &&
          h.image_series_index == 2);
    CHECK(h.image_type == ISMRMRD::ISMRMRD_IMTYPE_COMPLEX && h.data_type == ISMRMRD::ISMRMRD_CXFLOAT);
    CHECK(h.user_int[7] == -9 && h.user_float[0] == 0.5f && h.attribute_string_len == 0);
    // Only user flags are copied.
    CHECK(h.flags == std::uint64_t(1) << (ISMRMRD::ISMRMRD_IMAGE_USER3 - 1));
    const auto meta = make_image_attributes(samples, h, info);
    CHECK(meta.as_long("encoding") == 0 && meta.as_double("recon_FOV", 1) == 150 &&
          meta.as_long("encoded_matrix", 1) == 32);
    CHECK(meta.as_double("slice_dir", 0) == 1 && meta.as_long("GADGETRON_ImageNumber") == 77);
    CHECK(std::string(meta.as_str("recon_method")) == "gridding" && meta.as_long("recon_shots") == 10);
    info.magnitude = true;
    CHECK(make_image_header(samples, info).image_type == ISMRMRD::ISMRMRD_IMTYPE_MAGNITUDE);
    // image_index has 16 bits, and the attribute has the full number.
    info.number = 65538;
    const auto later = make_image_header(samples, info);
    CHECK(later.image_index == 2);
    CHECK(make_image_attributes(samples, later, info).as_long("GADGETRON_ImageNumber") == 65538);
}

void properties() {
    const std::map<std::string, std::string> given{{"iterations", "12"}, {"tolerance", "1e-5"}, {"threads", "two"},
                                                   {"lambda", "0.1x"},   {"timing", "yes"},     {"typo", "1"}};
    Properties p(given);
    CHECK(p.count("iterations", 5, 100) == 12 && p.number("tolerance", 1e-4, 0, 1) == 1e-5 &&
          p.count("plans", 16, 100) == 16);
    CHECK_ERROR([&] { p.count("threads", 0, 8); }, "property threads is \"two\"", "whole number from 0 to 8");
    CHECK_ERROR([&] { p.number("lambda", 0, 0, 1); }, "property lambda is \"0.1x\"", "from 0 to 1");
    CHECK_ERROR([&] { p.number("iterations", 0, 0, 1); }, "property iterations is \"12\"");
    CHECK_ERROR([&] { p.flag("timing", false); }, "property timing is \"yes\"", "true, false");
    CHECK(p.unknown() == std::vector<std::string>{"typo"});
    CHECK(p.summary().find("tolerance=1e-5") != std::string::npos &&
          p.summary().find("plans=16 (default)") != std::string::npos);
    CHECK_ERROR(
        [&] {
            parse_choice<int>("output", "magnitud", {{"magnitude", 0}, {"complex", 1}, {"coils", 2}});
        },
        "property output is \"magnitud\": it must be magnitude, complex or coils");
    CHECK(!parse_compress("none") && parse_compress("12").coils == 12 && parse_compress("99.5%").energy == 0.995);
    for (const char *wrong : {"0", "0%", "101%", "1.5", "-3", "nan", "5x", "%", "", "auto"}) {
        CHECK_ERROR([&] { parse_compress(wrong); }, "property compress", "99%");
    }
    CHECK(!parse_map_source(MapKind::Field, "none") && parse_map_source(MapKind::Field, "images").images);
    CHECK(parse_map_source(MapKind::Decay, "/a/map.h5").file == "/a/map.h5");
    CHECK_ERROR([&] { parse_map_source(MapKind::Decay, ""); }, "property decay_map is \"\"", "none, images");
    CHECK(parse_device("auto").kind == 0 && parse_device("cpu").kind == 1 && parse_device("cuda").kind == 2);
    CHECK((parse_device("cuda:0,3").indices == std::vector<std::uint32_t>{0, 3}));
    for (const char *wrong : {"gpu", "cuda:", "cuda:a", "cuda:0,", "cuda:,1", "cuda:-1", "cuda0", ""}) {
        CHECK_ERROR([&] { parse_device(wrong); }, "property device", "auto, cpu, cuda");
    }

}

// Returns the settings of a gadget with these properties.
Settings settings_of(Method method, const std::map<std::string, std::string> &given = {}) {
    Properties p(given);
    const Settings s = parse_settings(p, method);
    CHECK(p.unknown().empty());
    return s;
}

// All properties of the gadgets: defaults, words of the C API, and contradictions.
void all_settings() {
    const Settings grid = settings_of(Method::Grid), cg = settings_of(Method::Cg);
    CHECK(grid.maps == CoilMapSource::None && cg.maps == CoilMapSource::Data && cg.iterations == 12);
    CHECK(grid.scan.complete == RECON_SCAN_COUNTER_NONE && grid.scan.whiten == 1);
    CHECK(std::isnan(grid.scan.center_sample) && grid.plans == 16 && !grid.integers.enabled);
    Properties none(std::map<std::string, std::string>{});
    parse_settings(none, Method::Fbp);
    CHECK(contains(none.summary(), "complete=none (default)") && contains(none.summary(), "filter=ram-lak (default)") &&
          contains(none.summary(), "angle_range_degrees=from the data (default)"));
    const auto scan = settings_of(Method::Grid, {{"complete", "repetition"}, {"whiten", "none"}, {"window", "3"},
                                                 {"convention", "gadgetron"}, {"golden_angle", "-7"},
                                                 {"first_angle_degrees", "-90"}})
                          .scan;
    CHECK(scan.complete == RECON_SCAN_COUNTER_REPETITION && scan.whiten == 0 && scan.window == 3);
    CHECK(scan.convention == RECON_CONVENTION_GADGETRON && scan.golden_angle == -7 && scan.first_angle_degrees == -90);
    CHECK(settings_of(Method::Fbp, {{"filter", "hann"}}).filter == RECON_FILTER_HANN);
    CHECK(settings_of(Method::Grid, {{"partial_fourier", "homodyne"}}).partial_fourier ==
          RECON_PARTIAL_FOURIER_HOMODYNE);
    CHECK(settings_of(Method::Propeller, {{"phase", "constant"}}).blades.phase == RECON_BLADE_PHASE_CONSTANT);
    const auto error = [](Method method, std::map<std::string, std::string> given) {
        return [=] { settings_of(method, given); };
    };
    CHECK_ERROR(error(Method::Grid, {{"complete", "frame"}}), "property complete is 'frame'", "repetition");
    CHECK_ERROR(error(Method::Fbp, {{"filter", "hanning"}}), "property filter is 'hanning'", "shepp-logan");
    CHECK_ERROR(error(Method::Grid, {{"partial_fourier", "zeros"}}), "property partial_fourier", "homodyne or pocs");
    CHECK_ERROR(error(Method::Grid, {{"integers", "true"}, {"output", "complex"}}), "property integers",
                "output to magnitude");
    CHECK_ERROR(error(Method::Grid, {{"integers", "true"}, {"send", "arrays"}}), "property integers",
                "send to images");
    CHECK_ERROR(error(Method::Grid, {{"scale", "2"}}), "property scale has no effect");
    CHECK_ERROR(error(Method::Grid, {{"compress", "3"}, {"output", "coils"}}), "property compress is set");
    CHECK_ERROR(error(Method::Cg, {{"lambda", "1"}}), "property lambda is set", "identity or differences");
    CHECK_ERROR(error(Method::Cg, {{"noise_level", "1"}}), "property noise_level is set", "prior");
}

}  // namespace

int main() {
    layouts();
    missing_rows();
    cartesian_rows();
    components();
    counters_of_rows();
    acquisitions();
    noise();
    trajectories();
    frames_without_shots();
    message_counts();
    integers();
    headers();
    properties();
    all_settings();
    return result("messages");
}
