// Array layouts, headers, missing shots, and errors of files.
#include "check.h"
#include "settings.h"

#include <cmath>
#include <limits>

using namespace recon_gadgets;

namespace {

using Header = ISMRMRD::AcquisitionHeader;

// A buffer whose values are their indices.
struct Buffer {
    std::size_t e0, e1, e2, coils, n, s, loc, width;
    std::vector<Complex> data;
    std::vector<float> trajectory;
    std::vector<Header> headers;

    Buffer(std::size_t e0, std::size_t e1, std::size_t e2, std::size_t coils, std::size_t n, std::size_t s,
           std::size_t loc, std::size_t width)
        : e0(e0),
          e1(e1),
          e2(e2),
          coils(coils),
          n(n),
          s(s),
          loc(loc),
          width(width),
          data(e0 * e1 * e2 * coils * n * s * loc),
          trajectory(width * e0 * e1 * e2 * n * s * loc),
          headers(e1 * e2 * n * s * loc) {
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i] = Complex(float(i), -float(i));
        }
        for (std::size_t i = 0; i < trajectory.size(); ++i) {
            trajectory[i] = float(i) / float(2 * trajectory.size());
        }
        for (std::size_t i = 0; i < headers.size(); ++i) {
            Header &h = headers[i];
            h.number_of_samples = std::uint16_t(e0);
            h.active_channels = std::uint16_t(coils);
            h.trajectory_dimensions = std::uint16_t(width);
            h.idx.kspace_encode_step_1 = std::uint16_t(i % e1);
            h.idx.kspace_encode_step_2 = std::uint16_t(i / e1 % e2);
            h.idx.slice = std::uint16_t(i / (e1 * e2 * n * s));
            h.scan_counter = std::uint32_t(i);
        }
    }

    BufferView view() const {
        BufferView v;
        v.e0 = e0, v.e1 = e1, v.e2 = e2, v.coils = coils, v.n = n, v.s = s, v.loc = loc;
        v.data = data.data();
        v.trajectory = width > 0 ? trajectory.data() : nullptr;
        v.trajectory_size = width;
        v.headers = headers.data();
        return v;
    }

    Samples gather(const Spaces &spaces, std::size_t in = 0, std::size_t is = 0, std::size_t il = 0) const {
        return recon_gadgets::gather(shots_of_frame(view(), in, is, il), spaces);
    }
};

Spaces space(std::size_t nx, std::size_t ny, std::size_t nz = 1) {
    Spaces s;
    s.encoded_matrix = s.recon_matrix = {nx, ny, nz};
    s.encoded_fov = s.recon_fov = {double(nx), double(ny), nz > 1 ? double(nz) : 5.0};
    s.step2_centre = nz / 2;
    return s;
}

// Compares every value of a frame with its index in the array of seven dimensions.
void layouts() {
    const Buffer b(3, 4, 2, 2, 3, 2, 2, 2);
    const Spaces spaces = space(8, 8);
    for (std::size_t loc = 0; loc < b.loc; ++loc) {
        for (std::size_t s = 0; s < b.s; ++s) {
            for (std::size_t n = 0; n < b.n; ++n) {
                const Samples samples = b.gather(spaces, n, s, loc);
                CHECK(samples.count == 24 && samples.coils == 2 && samples.shots == 8 && samples.components == 2);
                CHECK(samples.first.idx.slice == loc && !samples.weighted && samples.ndim == 2);
                for (std::size_t c = 0; c < b.coils; ++c) {
                    for (std::size_t m = 0; m < samples.count; ++m) {
                        const std::size_t x = m % 3, y = m / 3 % 4, z = m / 12;
                        const std::size_t at = x + 3 * (y + 4 * (z + 2 * (c + 2 * (n + 3 * (s + 2 * loc)))));
                        CHECK(samples.kspace[c * samples.count + m] == b.data[at]);
                        const std::size_t k = x + 3 * (y + 4 * (z + 2 * (n + 3 * (s + 2 * loc))));
                        CHECK(samples.trajectory[2 * m] == b.trajectory[2 * k]);
                        CHECK(samples.trajectory[2 * m + 1] == b.trajectory[2 * k + 1]);
                    }
                }
                // A complete frame is not copied.
                CHECK(samples.kspace >= b.data.data() && samples.kspace < b.data.data() + b.data.size());
            }
        }
    }
}

// Rows without an acquisition give no samples, and a shorter shot gives fewer samples.
void missing_shots() {
    Buffer b(4, 5, 1, 2, 1, 1, 1, 2);
    b.headers[1] = Header();       // no acquisition
    b.headers[3].discard_pre = 1;  // BucketToBufferGadget writes the other samples to the start of the row
    b.headers[4].setFlag(ISMRMRD::ISMRMRD_ACQ_IS_NAVIGATION_DATA);
    const Samples samples = b.gather(space(8, 8));
    CHECK(samples.shots == 3 && samples.count == 4 + 4 + 3);
    const std::size_t from[] = {0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14};
    for (std::size_t m = 0; m < samples.count; ++m) {
        CHECK(samples.kspace[m] == b.data[from[m]]);
        CHECK(samples.kspace[samples.count + m] == b.data[20 + from[m]]);
        CHECK(samples.trajectory[2 * m] == b.trajectory[2 * from[m]]);
    }
    CHECK(samples.describe_sample(9) == "sample 1 of shot 2");

    b.headers[0].discard_pre = 3, b.headers[0].discard_post = 2;  // more than all samples
    CHECK(b.gather(space(8, 8)).shots == 2);
    b.headers.assign(5, Header());
    CHECK(shots_of_frame(b.view(), 0, 0, 0).empty());
    CHECK_ERROR([&] { b.gather(space(8, 8)); }, "no shot was acquired");
}

// Times count from the first sample of a readout, including discarded samples.
void times() {
    Buffer b(4, 3, 1, 2, 1, 1, 1, 2);
    for (auto &h : b.headers) {
        h.sample_time_us = 2.5f;
    }
    b.headers[1].discard_pre = 2;
    b.headers[2].sample_time_us = 5;
    const Samples samples = b.gather(space(8, 8));
    const std::vector<float> expected{0, 2.5e-6f, 5e-6f, 7.5e-6f, 5e-6f, 7.5e-6f, 0, 5e-6f, 10e-6f, 15e-6f};
    const auto close = [](const std::vector<float> &a, const std::vector<float> &b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](float x, float y) { return std::fabs(x - y) < 1e-12f; });
    };
    CHECK(close(sample_times(samples, 0, 0), expected));
    // Sample time and start of properties instead of those of the headers.
    const std::vector<float> shifted{-2e-3f, -1.999e-3f, -1.998e-3f, -1.997e-3f, -1.998e-3f,
                                     -1.997e-3f, -2e-3f, -1.999e-3f, -1.998e-3f, -1.997e-3f};
    const auto found = sample_times(samples, 1, -2);
    CHECK(std::equal(found.begin(), found.end(), shifted.begin(), shifted.end(),
                     [](float x, float y) { return std::fabs(x - y) < 1e-9f; }));
    std::vector<float> twice = expected;
    twice.insert(twice.end(), expected.begin(), expected.end());
    CHECK(close(sample_times(join({&samples, &samples}), 0, 0), twice));
    CHECK(close(sample_times(samples.with_coils(std::vector<Complex>(samples.count), 1), 0, 0), expected));
    for (const float wrong : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
        b.headers[1].sample_time_us = wrong;
        CHECK_ERROR([&] { sample_times(b.gather(space(8, 8)), 0, 0); }, "sample_time_us is ", "in shot 1",
                    "property dwell");
        CHECK(sample_times(b.gather(space(8, 8)), 3, 0).size() == 10);
    }
}

// Acquisitions of a bucket: different lengths, and samples to discard.
void acquisitions() {
    std::vector<Complex> data(2 * 6), more(2 * 4);
    std::vector<float> k(2 * 6), more_k(2 * 4);
    for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = Complex(float(i), 0);
    }
    for (std::size_t i = 0; i < k.size(); ++i) {
        k[i] = float(i) / 100;
    }
    Header h;
    h.number_of_samples = 6, h.active_channels = 2, h.trajectory_dimensions = 2, h.discard_pre = 2, h.discard_post = 1;
    Header other = h;
    other.number_of_samples = 4, other.discard_pre = other.discard_post = 0;
    const std::vector<Shot> all{shot_of_acquisition(h, data.data(), 12, k.data(), 12),
                                shot_of_acquisition(other, more.data(), 8, more_k.data(), 8)};
    const Samples samples = gather(all, space(8, 8));
    CHECK(samples.count == 7 && samples.shots == 2);
    CHECK(samples.kspace[0] == data[2] && samples.kspace[2] == data[4] && samples.kspace[7] == data[6 + 2]);
    CHECK(samples.trajectory[0] == k[4] && samples.trajectory[5] == k[9]);

    CHECK_ERROR([&] { shot_of_acquisition(h, data.data(), 11, k.data(), 12); }, "11 samples", "6 of 2 coils",
                "damaged");
    CHECK_ERROR([&] { shot_of_acquisition(h, data.data(), 12, k.data(), 11); }, "11 numbers", "damaged");
    other.active_channels = 1;
    const std::vector<Shot> different{all[0], shot_of_acquisition(other, more.data(), 4, more_k.data(), 8)};
    CHECK_ERROR([&] { gather(different, space(8, 8)); }, "1 coils", "2");

}

void purposes() {
    const std::uint32_t image = RECON_PURPOSE_IMAGE, calibration = RECON_PURPOSE_CALIBRATION;
    const auto purpose = [](std::initializer_list<std::uint64_t> flags) {
        Header header;
        for (const auto flag : flags) {
            header.flags |= std::uint64_t(1) << (flag - 1);
        }
        return purposes_of(header);
    };
    CHECK(purpose({}) == image && purpose({ISMRMRD::ISMRMRD_ACQ_IS_REVERSE}) == image);
    CHECK(purpose({ISMRMRD::ISMRMRD_ACQ_IS_NOISE_MEASUREMENT}) == std::uint32_t(RECON_PURPOSE_NOISE));
    CHECK(purpose({ISMRMRD::ISMRMRD_ACQ_IS_DUMMYSCAN_DATA}) == 0);
    CHECK(purpose({ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION}) == calibration);
    CHECK(purpose({ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING}) == image + calibration);

    // Rows of a buffer by purpose.
    Buffer b(4, 4, 1, 2, 1, 1, 1, 2);
    b.headers[0].setFlag(ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION);
    b.headers[1].setFlag(ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION_AND_IMAGING);
    b.headers[2].setFlag(ISMRMRD::ISMRMRD_ACQ_IS_NAVIGATION_DATA);
    const auto rows = [&](recon_acquisition_purpose purpose) {
        std::vector<std::size_t> found;
        for (const auto &s : shots_of_frame(b.view(), 0, 0, 0, purpose)) {
            found.push_back(s.step[0]);
        }
        return found;
    };
    CHECK((rows(RECON_PURPOSE_IMAGE) == std::vector<std::size_t>{1, 3}));
    CHECK((rows(RECON_PURPOSE_CALIBRATION) == std::vector<std::size_t>{0, 1}));
    CHECK(rows(RECON_PURPOSE_NOISE).empty());
}

// BucketToBufferGadget shifts the samples of Cartesian rows.
void cartesian_rows() {
    Buffer b(8, 2, 1, 2, 1, 1, 1, 2);
    BufferView v = b.view();
    const auto first = [&](std::size_t row) { return shots_of_frame(v, 0, 0, 0)[row].data - (v.data + row * v.e0); };
    for (auto &h : b.headers) {
        h.discard_pre = 2, h.center_sample = 4;
    }
    CHECK(first(0) == 0);  // not Cartesian
    v.cartesian_centre = 4;
    CHECK(first(0) == 2 && first(1) == 2);
    const Shot second = shots_of_frame(v, 0, 0, 0)[1];
    CHECK(second.trajectory == v.trajectory + 2 * (8 + 2) && second.samples == 6);
    // A shorter row with an earlier centre.
    b.headers[1].number_of_samples = 6, b.headers[1].discard_pre = 0, b.headers[1].center_sample = 2;
    CHECK(first(0) == 2 && first(1) == 2);
    b.headers[1].center_sample = 5;
    CHECK_ERROR([&] { first(1); }, "row", "does not fit");
}

// The meaning of the trajectory's components.
void components() {
    {
        const Buffer b(3, 2, 1, 1, 1, 1, 1, 3);
        const Samples samples = b.gather(space(8, 8));
        CHECK(samples.ndim == 2 && samples.weighted && samples.components == 3);
        const Coordinates k = coordinates(samples);
        CHECK(k.weights.size() == 6 && k.weights[1] == samples.trajectory[5] && k.k[1][1] == samples.trajectory[4]);
    }
    {
        // A third component that is zero in all samples is kz.
        Buffer b(3, 2, 1, 1, 1, 1, 1, 3);
        for (std::size_t m = 0; m < 6; ++m) {
            b.trajectory[3 * m + 2] = 0;
        }
        CHECK(!b.gather(space(8, 8)).weighted);
    }
    CHECK(Buffer(3, 2, 1, 1, 1, 1, 1, 3).gather(space(8, 8, 8)).ndim == 3);
    CHECK(!Buffer(3, 2, 1, 1, 1, 1, 1, 3).gather(space(8, 8, 8)).weighted);
    CHECK(Buffer(3, 2, 1, 1, 1, 1, 1, 4).gather(space(8, 8, 8)).weighted);
    {
        // A stack: kz follows from kspace_encode_step_2.
        const Buffer b(3, 2, 4, 2, 1, 1, 1, 2);
        Spaces spaces = space(8, 8, 4);
        const Samples samples = b.gather(spaces);
        CHECK(samples.ndim == 3 && samples.components == 3 && !samples.weighted);
        for (std::size_t m = 0; m < samples.count; ++m) {
            CHECK(samples.trajectory[3 * m + 1] == b.trajectory[2 * m + 1]);
            CHECK(samples.trajectory[3 * m + 2] == (float(m / 6) - 2) / 4);
            CHECK(samples.kspace[m] == b.data[m]);
        }
    }
    {
        // Weights in a separate array.
        const Buffer b(3, 2, 1, 1, 1, 1, 1, 2);
        BufferView v = b.view();
        const std::vector<float> density{1, 2, 3, 4, 5, 6};
        v.density = density.data();
        const Samples samples = gather(shots_of_frame(v, 0, 0, 0), space(8, 8));
        CHECK(samples.weighted && samples.trajectory[5] == 2 && samples.trajectory[4] == b.trajectory[3]);
    }
    const auto width = [](std::size_t n, std::size_t nz) {
        return [=] { Buffer(3, 2, 1, 1, 1, 1, 1, n).gather(space(8, 8, nz)); };
    };
    CHECK_ERROR(width(0, 1), "no trajectory", "trajectory_dimensions is 0", "store it");
    CHECK_ERROR(width(1, 1), "trajectory of 1 components", "2 are expected, or 3 with density weights");
    CHECK_ERROR(width(5, 1), "trajectory of 5 components");
    CHECK_ERROR(width(5, 8), "trajectory of 5 components", "3 are expected, or 4");
    CHECK_ERROR(width(4, 1), "trajectory of 4 components", "1 voxels along z");
    {
        Buffer b(3, 2, 1, 1, 1, 1, 1, 2);
        b.headers[1].trajectory_dimensions = 3;
        CHECK_ERROR([&] { b.gather(space(8, 8)); }, "shot 1 has 3 trajectory components", "2");
    }
}

void coordinates_and_weights() {
    Buffer b(4, 2, 1, 1, 1, 1, 1, 3);
    const auto made = [&] { return coordinates(b.gather(space(8, 8))); };
    b.trajectory[0] = 0.5f, b.trajectory[1] = -0.5f;
    CHECK(made().k[0][0] == 0.5f && made().k[1][0] == -0.5f && made().count == 8);
    b.trajectory[17] = -1;
    CHECK_ERROR(made, "density weight is -1 in sample 1 of shot 1", "must not be negative");
    b.trajectory[17] = std::nanf("");
    CHECK_ERROR(made, "density weight is nan");

    // The coordinate with the largest magnitude. NaN has priority.
    b.trajectory[12] = 0.6f;
    CHECK(farthest_coordinate(b.gather(space(8, 8))) == "kx is 0.6 in sample 0 of shot 1");
    b.trajectory[7] = -128;
    CHECK(farthest_coordinate(b.gather(space(8, 8))) == "ky is -128 in sample 2 of shot 0");
    b.trajectory[22] = std::numeric_limits<float>::infinity();
    CHECK(farthest_coordinate(b.gather(space(8, 8))) == "ky is inf in sample 3 of shot 1");
    b.trajectory[15] = std::nanf("");
    CHECK(farthest_coordinate(b.gather(space(8, 8))) == "kx is nan in sample 1 of shot 1");
}

// encodedSpace and reconSpace.
void grids() {
    Spaces s = space(256, 128);
    Grid g = make_grid(s, 2);
    CHECK((g.dims == std::array<std::size_t, 3>{256, 128, 1}) && g.image == g.dims);
    // The reconstruction uses the encoded matrix for any matrix of the image.
    s.encoded_matrix = {512, 128, 1}, s.encoded_fov = {512, 128, 5};
    g = make_grid(s, 2);
    CHECK((g.dims == std::array<std::size_t, 3>{512, 128, 1}) && (g.image == std::array<std::size_t, 3>{256, 128, 1}));
    CHECK(g.fov[0] == 256 && g.fov[2] == 5);
    // A 2D image has one voxel along z.
    s.recon_matrix[2] = 7;
    CHECK(make_grid(s, 2).image[2] == 1 && make_grid(s, 3).image[2] == 7);
    // If the thickness of a slice is unknown, the value of encodedSpace is used.
    s.recon_fov[2] = 0;
    CHECK(make_grid(s, 2).fov[2] == 5);
    s.encoded_fov[2] = 0;
    CHECK(make_grid(s, 2).fov[2] == 0);
    CHECK_ERROR([&] { make_grid(s, 3); }, "fieldOfView_mm.z of encodedSpace is 0 in the XML header", "above 0");

}

void impossible_spaces() {
    Spaces s = space(0, 0, 0);
    CHECK_ERROR([&] { make_grid(s, 2); }, "matrixSize.x of encodedSpace is 0 in the XML header", "0 x 0 x 0");
    // The ISMRMRD library reads a negative number as a large one.
    s = space(8, 8);
    s.encoded_matrix[1] = std::uint16_t(-96);
    CHECK_ERROR([&] { make_grid(s, 2); }, "matrixSize.y of encodedSpace is 65440 (or -96)", "from 1 to 32767");
    s = space(8, 8);
    s.recon_matrix[1] = 0;
    CHECK_ERROR([&] { make_grid(s, 2); }, "matrixSize.y of reconSpace is 0", "8 x 0 x 1");
    const double infinite = std::numeric_limits<double>::infinity();
    using Case = std::pair<double, std::string>;
    for (const auto &[value, text] :
         {Case{0, "is 0 in"}, Case{-96, "is -96 in"}, Case{std::nan(""), "is nan in"}, Case{infinite, "is inf in"}}) {
        s = space(8, 8);
        s.encoded_fov[0] = value;
        CHECK_ERROR([&] { make_grid(s, 2); }, "fieldOfView_mm.x of encodedSpace", text.c_str());
        s = space(8, 8);
        s.recon_fov[1] = value;
        CHECK_ERROR([&] { make_grid(s, 2); }, "fieldOfView_mm.y of reconSpace", text.c_str());
        s = space(8, 8);
        s.recon_fov[2] = value;
        if (value == 0) {
            CHECK(make_grid(s, 2).fov[2] == 5);
        } else {
            CHECK_ERROR([&] { make_grid(s, 2); }, "fieldOfView_mm.z of reconSpace", text.c_str());
        }
    }
}

// Frames of a buffer without shots: the text depends on the empty frames.
void frames_without_shots() {
    const auto text = [](std::size_t n, std::size_t s, std::size_t loc, std::vector<char> has, std::size_t slices) {
        const auto warning = empty_frames({n, s, loc, std::move(has), slices});
        CHECK(!warning || warning->cause == WarningCause::EmptyImages);
        return warning ? warning->text : std::string("no warning");
    };
    const auto contains = [](const std::string &all, const char *part) { return all.find(part) != std::string::npos; };
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

// Returns the steps from, from + step, ... below `to`, along the first axis.
std::vector<EncodingStep> rows(std::size_t from, std::size_t to, std::size_t step = 1) {
    std::vector<EncodingStep> steps;
    for (std::size_t i = from; i < to; i += step) {
        steps.push_back({i, 0});
    }
    return steps;
}

// Returns the text of the warning about missing shots, or "nothing".
std::string text_of(const ExpectedShots &expected, const std::vector<EncodingStep> &steps) {
    const auto warning = missing_shots(expected, steps, steps.size());
    return warning ? warning->text : "nothing";
}

// Returns whether a text contains all parts, and prints a missing part.
bool has(const std::string &text, std::initializer_list<const char *> parts) {
    for (const char *part : parts) {
        if (text.find(part) == std::string::npos) {
            std::fprintf(stderr, "no \"%s\" in: %s\n", part, text.c_str());
            return false;
        }
    }
    return true;
}

// Returns expected shots with the given last steps.
ExpectedShots expected_shots(std::size_t last1, std::size_t last2 = 0) {
    ExpectedShots all;
    all.known = true, all.last = {last1, last2};
    return all;
}

// Warnings about missing shots.
void missing_shot_warnings() {
    ExpectedShots all = expected_shots(95);
    CHECK(text_of(all, rows(0, 96)) == "nothing");
    // All counters are 0: 96 acquisitions give one row.
    CHECK(has(text_of(all, rows(0, 1)),
              {"1 of 96 shots", "kspace_encoding_step_1 from 0 to 95", "95 of these are empty",
               "the same counters", "check kspace_encode_step_1"}));
    // A measurement that was cut short.
    CHECK(has(text_of(all, rows(0, 61)), {"61 of 96 shots", "35 of these are empty", "cut short", "from 0 to 60"}));
    CHECK(has(text_of(all, rows(0, 95)), {"95 of 96 shots", "cut short"}));
    CHECK(has(text_of(all, rows(5, 96)), {"91 of 96 shots", "from 5 to 95"}));
    // Gaps at equal distances are by design if the last shots were acquired.
    for (const auto &steps : {rows(0, 96, 2), rows(1, 96, 3), rows(3, 96, 4)}) {
        CHECK(text_of(all, steps) == "nothing");
    }
    CHECK(has(text_of(all, rows(0, 48, 2)), {"24 of 96 shots", "cut short"}));
    // A single missing shot in the middle is not by design.
    auto lost = rows(0, 96);
    lost.erase(lost.begin() + 40);
    CHECK(has(text_of(all, lost), {"95 of 96 shots", "were lost", "the same counters", "parallelImaging"}));
    // parallelImaging allows all shots at the centre and every second one outside.
    auto dense = rows(0, 40, 2);
    for (const auto &part : {rows(40, 56), rows(56, 96, 2)}) {
        dense.insert(dense.end(), part.begin(), part.end());
    }
    CHECK(has(text_of(all, dense), {"56 of 96 shots", "were lost"}));
    all.acceleration = {2, 1};
    CHECK(text_of(all, dense) == "nothing" && text_of(all, rows(0, 96, 2)) == "nothing");
    CHECK(has(text_of(all, rows(0, 61)), {"61 of 96 shots", "cut short"}));
}

void missing_shots_in_two_dimensions() {
    // Two axes: every third partition; then without the last of these; then with one shot lost.
    const ExpectedShots all = expected_shots(7, 11);
    std::vector<EncodingStep> steps;
    for (std::size_t z = 0; z < 12; z += 3) {
        for (std::size_t i = 0; i < 8; ++i) {
            steps.push_back({i, z});
        }
    }
    CHECK(text_of(all, steps) == "nothing");
    CHECK(has(text_of(all, {steps.begin(), steps.end() - 8}),
              {"24 of 96 shots", "kspace_encoding_step_2 from 0 to 11",
               "cut short", "step 2 from 0 to 6"}));
    steps.erase(steps.begin() + 10);
    CHECK(has(text_of(all, steps), {"31 of 96 shots", "were lost"}));
}

void missing_shots_in_buckets() {
    // No warning without limits, or with more shots than the limits announce.
    ExpectedShots all = expected_shots(20);
    all.known = false;
    CHECK(text_of(all, rows(0, 5)) == "nothing");
    all.known = true;
    CHECK(text_of(all, rows(100, 121)) == "nothing");
    // In buckets, all counters may be 0, or counters may exceed the limits.
    CHECK(!missing_shots(all, std::vector<EncodingStep>(21, EncodingStep{0, 0}), 21));
    CHECK(has(missing_shots(all, std::vector<EncodingStep>(13, EncodingStep{0, 0}), 13)->text, {"13 of 21 shots"}));
    CHECK(has(text_of(all, rows(100, 113)), {"13 of 21 shots"}));

    // Several buckets of one image: the warning is raised when the next repetition begins, or at the end.
    ShotCollector collector;
    CHECK(!collector.end());
    CHECK(!collector.add(all, 0, rows(0, 7)) && !collector.add(all, 0, rows(7, 14)) && collector.end());
    CHECK(!collector.add(all, 0, rows(14, 21)) && !collector.end());
    CHECK(!collector.add(all, 1, rows(0, 7)) && collector.end());
    const auto previous = collector.add(all, 2, rows(0, 21));
    CHECK(previous && has(previous->text, {"7 of 21 shots"}) && !collector.end());

    // Without limits, an image is compared with the previous images.
    std::size_t max_count = 0;
    CHECK(!fewer_shots(96, max_count) && !fewer_shots(96, max_count) && max_count == 96);
    CHECK(has(fewer_shots(61, max_count)->text, {"61 shots", "a previous image had 96", "no encodingLimits"}));
    CHECK(max_count == 96);
}

void warning_counts() {
    WarningCounter warnings;
    CHECK(warnings.first(WarningCause::MissingShots) && !warnings.first(WarningCause::MissingShots));
    CHECK(warnings.first(WarningCause::ZeroShots));
    CHECK(warnings.summary().size() == 1 && has(warnings.summary()[0], {"2 times", "shots missing"}));
}

// Shots that are zero, and samples that do not give an image.
void useless_shots() {
    Buffer b(4, 3, 1, 2, 1, 1, 1, 2);
    CHECK(zero_shots(b.gather(space(8, 8))) == 0);
    for (std::size_t x = 0; x < 4; ++x) {
        b.data[4 + x] = 0;  // in the first coil only
    }
    CHECK(zero_shots(b.gather(space(8, 8))) == 0);
    for (std::size_t x = 0; x < 4; ++x) {
        b.data[12 + 4 + x] = 0;
    }
    CHECK(zero_shots(b.gather(space(8, 8))) == 1);

    const auto spread = [&](std::size_t nx, std::size_t ny) {
        const Spaces spaces = space(nx, ny);
        check_spread(b.gather(spaces), make_grid(spaces, 2));
    };
    const auto fill = [&](float x, float y, float across) {
        for (std::size_t m = 0; m < 12; ++m) {
            b.trajectory[2 * m] = x * float(m), b.trajectory[2 * m + 1] = y * float(m) + (m == 7 ? across : 0);
        }
    };
    fill(0.01f, 0.02f, 0.2f);
    spread(8, 8);
    fill(0.01f, 0.02f, 0);
    CHECK_ERROR([&] { spread(8, 8); }, "12 samples lie on one line", "do not give an image", "3 shots");
    b.headers[1] = b.headers[2] = Header();
    CHECK_ERROR([&] { spread(8, 8); }, "4 samples lie on one line", "1 shot does not give an image",
                "check kspace_encode_step_1");
    b.headers[1] = b.headers[2] = b.headers[0];
    // Samples on a line are sufficient for an image of one row or column.
    spread(8, 1), spread(1, 8);
    fill(0, 0.02f, 0);
    CHECK_ERROR([&] { spread(8, 1); }, "one point", "never filled in");
    fill(0, 0, 0);
    CHECK_ERROR([&] { spread(8, 8); }, "12 samples lie at one point", "kx = 0, ky = 0", "never filled in");
}

void headers() {
    Header a;
    a.measurement_uid = 11, a.acquisition_time_stamp = 12;
    a.setFlag(ISMRMRD::ISMRMRD_ACQ_LAST_IN_SLICE);
    a.setFlag(ISMRMRD::ISMRMRD_ACQ_USER3);
    for (int i = 0; i < 3; ++i) {
        a.position[i] = float(i + 1), a.read_dir[i] = float(i + 4), a.phase_dir[i] = float(i + 7),
        a.slice_dir[i] = float(i + 10);
        a.patient_table_position[i] = float(i + 13), a.physiology_time_stamp[i] = std::uint32_t(i + 16);
    }
    a.idx.average = 1, a.idx.slice = 2, a.idx.contrast = 3, a.idx.phase = 4, a.idx.repetition = 5, a.idx.set = 6;
    a.user_int[7] = -9, a.user_float[0] = 0.5f;
    ImageInfo info;
    info.spaces = space(64, 32);
    info.spaces.recon_fov = {300, 150, 5};
    info.grid = make_grid(info.spaces, 2);
    info.encoding = 1, info.channels = 4, info.magnitude = false, info.number = 77, info.series = 2;
    info.method = "gridding", info.samples = 100, info.shots = 10;
    const auto h = make_image_header(a, info);
    CHECK(h.matrix_size[0] == 64 && h.matrix_size[1] == 32 && h.matrix_size[2] == 1 && h.channels == 4);
    CHECK(h.field_of_view[0] == 300 && h.field_of_view[1] == 150 && h.field_of_view[2] == 5);
    CHECK(h.position[2] == 3 && h.read_dir[0] == 4 && h.phase_dir[1] == 8 && h.slice_dir[2] == 12);
    CHECK(h.patient_table_position[0] == 13 && h.physiology_time_stamp[2] == 18);
    CHECK(h.average == 1 && h.slice == 2 && h.contrast == 3 && h.phase == 4 && h.repetition == 5 && h.set == 6);
    CHECK(h.measurement_uid == 11 && h.acquisition_time_stamp == 12 && h.image_index == 77 &&
          h.image_series_index == 2);
    CHECK(h.image_type == ISMRMRD::ISMRMRD_IMTYPE_COMPLEX && h.data_type == ISMRMRD::ISMRMRD_CXFLOAT);
    CHECK(h.user_int[7] == -9 && h.user_float[0] == 0.5f && h.attribute_string_len == 0);
    // Only user flags are copied.
    CHECK(h.flags == std::uint64_t(1) << (ISMRMRD::ISMRMRD_IMAGE_USER3 - 1));
    const auto meta = make_image_attributes(h, info);
    CHECK(meta.as_long("encoding") == 1 && meta.as_double("recon_FOV", 1) == 150 &&
          meta.as_long("encoded_matrix", 1) == 32);
    CHECK(meta.as_double("slice_dir", 2) == 12 && meta.as_long("GADGETRON_ImageNumber") == 77);
    CHECK(std::string(meta.as_str("recon_method")) == "gridding" && meta.as_long("recon_shots") == 10);
    info.magnitude = true;
    CHECK(make_image_header(a, info).image_type == ISMRMRD::ISMRMRD_IMTYPE_MAGNITUDE);
    // image_index has 16 bits. A warning is raised, and the attribute has the full number.
    info.number = 65538;
    const auto later = make_image_header(a, info);
    CHECK(later.image_index == 2 && make_image_attributes(later, info).as_long("GADGETRON_ImageNumber") == 65538);
    CHECK(!image_number_overflow(1) && !image_number_overflow(65535));
    const auto warning = image_number_overflow(65536);
    CHECK(warning && warning->cause == WarningCause::ImageNumbers);
    CHECK(warning->text.find("image 65536 ") != std::string::npos);
}

void joined() {
    const Buffer a(3, 2, 1, 2, 1, 1, 1, 2), b(3, 4, 1, 2, 1, 1, 1, 2);
    const Samples one = a.gather(space(8, 8)), two = b.gather(space(8, 8)), both = join({&one, &two});
    CHECK(both.count == 18 && both.shots == 6 && both.coils == 2);
    CHECK(both.kspace[5] == a.data[5] && both.kspace[6] == b.data[0]);
    CHECK(both.kspace[18] == a.data[6] && both.kspace[24] == b.data[12] && both.kspace[35] == b.data[23]);
    CHECK(both.trajectory[11] == a.trajectory[11] && both.trajectory[12] == b.trajectory[0]);
    CHECK(both.describe_sample(7) == "sample 1 of shot 2");
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
    CHECK(parse_filter("ram-lak") == 0 && parse_filter("hann") == 4);
    CHECK_ERROR([&] { parse_filter("hanning"); }, "property filter is 'hanning'", "shepp-logan");
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

}  // namespace

int main() {
    layouts();
    missing_shots();
    times();
    acquisitions();
    purposes();
    cartesian_rows();
    components();
    coordinates_and_weights();
    grids();
    impossible_spaces();
    missing_shot_warnings();
    missing_shots_in_two_dimensions();
    missing_shots_in_buckets();
    warning_counts();
    frames_without_shots();
    useless_shots();
    headers();
    joined();
    properties();
    return result("conversion");
}
