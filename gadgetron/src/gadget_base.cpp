#include "gadget_base.h"

#include "free_memory.h"

#include <log.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>

namespace recon_gadgets {

using Gadgetron::AcquisitionBucket;
using Gadgetron::IsmrmrdDataBuffered;
using Gadgetron::IsmrmrdImageArray;
using Gadgetron::IsmrmrdReconData;

// Images of frames [N, S, LOC]. Some may be missing, where their reconstruction failed.
struct Images {
    IsmrmrdImageArray array;
    std::vector<char> is_made;

    Images(const Grid &grid, std::size_t channels, std::size_t n, std::size_t s, std::size_t loc)
        : is_made(n * s * loc) {
        const std::vector<std::size_t> dims{grid.image[0], grid.image[1], grid.image[2], channels, n, s, loc};
        // Linux kills the process when it uses memory that is not there. So a wrong matrix in the XML header is refused
        // here. Two images of the grid are added; the memory of the plan is checked when the plan is made.
        // ImageArraySplitGadget makes two copies of an array, and its images are a further one.
        const double copies = n * s * loc > 1 ? 4 : 1;
        const double bytes = copies * double(grid.image_voxels()) * double(channels * n * s * loc) * sizeof(Complex) +
                             2.0 * double(grid.voxels()) * sizeof(Complex);
        const FreeMemory left = free_memory();
        if (bytes > double(left.bytes)) {
            throw Error(std::to_string(n * s * loc) + (n * s * loc == 1 ? " image of " : " images of ") +
                        std::to_string(dims[0]) + " x " + std::to_string(dims[1]) + " x " + std::to_string(dims[2]) +
                        " voxels: more than " + mebibytes(std::uint64_t(std::min(bytes, 1e18))) +
                        " are needed, and of " + left.limit + " " + mebibytes(left.bytes) +
                        " are left: correct the matrices in the XML header, raise the limit, or reconstruct fewer "
                        "images at once");
        }
        array.data_.create(dims);
        array.headers_.create(std::vector<std::size_t>{n, s, loc});
        array.meta_.resize(n * s * loc);
    }

    // Bytes of the images that are not made yet.
    std::uint64_t pending_bytes() const {
        return std::uint64_t(std::count(is_made.begin(), is_made.end(), char(0))) * image_elements() * sizeof(Complex);
    }
    // Bytes of the copies of an image that the next gadgets make, ComplexToFloatGadget and the writer, while the next
    // image is computed.
    std::uint64_t next_gadgets_bytes() const { return 2 * image_elements() * sizeof(Complex); }
    std::size_t image_elements() const { return array.data_.get_number_of_elements() / is_made.size(); }
    Complex *image(std::size_t frame) { return array.data_.get_data_ptr() + frame * image_elements(); }

    // Sends the image of frame 0 by itself. Only for a batch of one image, whose array is moved.
    void send_image(Gadgetron::Core::OutputChannel &out) {
        std::vector<std::size_t> dims;
        array.data_.get_dimensions(dims);
        dims.resize(4);  // [x, y, z, channels]
        array.data_.reshape(dims);
        out.push(Gadgetron::Core::Image<Complex>(array.headers_[0], std::move(array.data_), std::move(array.meta_[0])));
    }

    // Sends one array if all images were made, else one array for each image: its header says which image it is.
    void send_arrays(Gadgetron::Core::OutputChannel &out) {
        if (std::find(is_made.begin(), is_made.end(), char(0)) == is_made.end()) {
            out.push(std::move(array));
            return;
        }
        std::vector<std::size_t> dims;
        array.data_.get_dimensions(dims);
        dims.resize(7, 1);
        dims[4] = dims[5] = dims[6] = 1;
        for (std::size_t frame = 0; frame < is_made.size(); ++frame) {
            if (is_made[frame]) {
                IsmrmrdImageArray one;
                one.data_.create(dims);
                std::copy(image(frame), image(frame) + image_elements(), one.data_.get_data_ptr());
                one.headers_.create(std::vector<std::size_t>{1, 1, 1});
                one.headers_[0] = array.headers_[frame];
                one.meta_.push_back(array.meta_[frame]);
                out.push(std::move(one));
            }
        }
    }
};

namespace {

// `shifted`: a Cartesian or echo-planar encoding, whose rows BucketToBufferGadget shifts.
BufferView view(const IsmrmrdDataBuffered &b, bool shifted) {
    BufferView v;
    if (shifted) {
        v.cartesian_centre = long(b.sampling_.sampling_limits_[0].center_);
    }
    v.e0 = b.data_.get_size(0);
    v.e1 = b.data_.get_size(1);
    v.e2 = b.data_.get_size(2);
    v.coils = b.data_.get_size(3);
    v.n = b.data_.get_size(4);
    v.s = b.data_.get_size(5);
    v.loc = b.data_.get_size(6);
    v.data = b.data_.get_data_ptr();
    v.headers = b.headers_.get_data_ptr();
    const std::size_t rows = v.e1 * v.e2 * v.n * v.s * v.loc;
    if (b.headers_.get_number_of_elements() != rows) {
        throw Error("a buffer of " + std::to_string(rows) + " shots has " +
                    std::to_string(b.headers_.get_number_of_elements()) +
                    " headers: a gadget before this one changed one without the other");
    }
    if (b.trajectory_) {
        v.trajectory = b.trajectory_->get_data_ptr();
        v.trajectory_size = b.trajectory_->get_size(0);
        if (b.trajectory_->get_number_of_elements() != v.trajectory_size * v.e0 * rows) {
            throw Error("the trajectory of a buffer has " + std::to_string(b.trajectory_->get_number_of_elements()) +
                        " numbers for " + std::to_string(v.e0 * rows) +
                        " samples: a gadget before this one changed one without the other");
        }
    }
    if (b.density_ && b.density_->get_number_of_elements() == v.e0 * rows) {
        v.density = b.density_->get_data_ptr();
    }
    return v;
}

// The acquisition of a bucket as a shot.
Shot shot_of(const Gadgetron::Core::Acquisition &acquisition) {
    const auto &header = std::get<ISMRMRD::AcquisitionHeader>(acquisition);
    const auto &data = std::get<Gadgetron::hoNDArray<Complex>>(acquisition);
    const auto &trajectory = std::get<Gadgetron::Core::optional<Gadgetron::hoNDArray<float>>>(acquisition);
    return shot(header, data.get_data_ptr(), data.get_number_of_elements(),
                trajectory ? trajectory->get_data_ptr() : nullptr,
                trajectory ? trajectory->get_number_of_elements() : 0);
}

// Whether Gadgetron's buckets and buffers have an acquisition among the calibration data only: those with
// IS_PARALLEL_CALIBRATION, also if IS_PARALLEL_CALIBRATION_AND_IMAGING is set.
bool is_only_in_reference(const ISMRMRD::AcquisitionHeader &header) {
    return header.flags & (std::uint64_t(1) << (ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION - 1));
}

std::string describe(const ISMRMRD::AcquisitionHeader &h) {
    return "encoding " + std::to_string(h.encoding_space_ref) + ", slice " + std::to_string(h.idx.slice) +
           ", repetition " + std::to_string(h.idx.repetition);
}

// The warning about rows of a buffer without a shot.
std::optional<Warning> missing_rows(const BufferView &buffer, ExpectedShots expected, const std::vector<Shot> &shots) {
    // Another gadget may have changed the size of the buffer.
    expected.known = expected.known && expected.shots() == buffer.e1 * buffer.e2;
    std::vector<Step> steps;
    std::transform(shots.begin(), shots.end(), std::back_inserter(steps), [](const Shot &shot) { return shot.step; });
    return missing_shots(expected, steps, steps.size());
}

// Counters of shots, which are 0 at the first expected shot.
std::vector<Step> steps_of(const std::vector<Shot> &shots, const ExpectedShots &expected) {
    std::vector<Step> steps;
    std::transform(shots.begin(), shots.end(), std::back_inserter(steps), [&](const Shot &shot) {
        Step step = shot.step;
        for (int axis = 0; axis < 2; ++axis) {
            step[axis] -= std::min(step[axis], expected.first[axis]);
        }
        return step;
    });
    return steps;
}

// Calls f, and adds its error to the problems, so that the next image is still made.
template <class F>
void attempt(std::vector<std::string> &problems, F f) {
    try {
        f();
    } catch (const std::bad_alloc &) {
        problems.push_back(
            "the host is out of memory: reconstruct fewer images at once, or set property plans or memory lower");
    } catch (const std::exception &e) {
        problems.push_back(e.what());
    }
}

}  // namespace

ReconGadgetBase::ReconGadgetBase(const char *name, Method method, const Gadgetron::Core::Context &context,
                                 const Gadgetron::Core::GadgetProperties &properties)
    : ChannelGadget(context, properties), name_(name), method_(method), properties_(properties) {}

Settings ReconGadgetBase::settings() const {
    Settings s;
    s.method = method_;
    s.tolerance = tolerance.value;
    s.width = std::uint32_t(width.value);  // a Count is at most 1e9
    s.oversampling = oversampling.value;
    s.density = parse_choice<Density>("density", density,
                                      {{"auto", Density::Auto},
                                       {"pipe-menon", Density::PipeMenon},
                                       {"jackson", Density::Jackson},
                                       {"ramp", Density::Ramp}});
    s.maps = parse_choice<Maps>("coil_maps", coil_maps,
                                {{"none", Maps::None}, {"data", Maps::Data}, {"reference", Maps::Reference}});
    s.calibration = calibration.value;
    s.maps_every = coil_maps_every.value;
    s.combine = parse_choice<Combine>(
        "combine", combine,
        {{"auto", Combine::Auto}, {"rss", Combine::RootSumOfSquares}, {"adaptive", Combine::Adaptive}});
    s.output = parse_choice<Output>(
        "output", output, {{"magnitude", Output::Magnitude}, {"complex", Output::Complex}, {"coils", Output::Coils}});
    s.send = parse_choice<Send>("send", send, {{"images", Send::Images}, {"arrays", Send::Arrays}});
    s.compress = parse_compress(compress);
    if (s.compress && s.output == Output::Coils) {
        throw Error("property compress is \"" + std::string(compress) +
                    "\" where output is coils: images of virtual coils are none of a coil; set one of the two "
                    "otherwise");
    }
    s.window = window.value;
    s.device = parse_device(device);
    s.threads = std::uint32_t(std::min<std::size_t>(threads.value, 65535));
    s.plans = plans.value;
    s.memory = memory.value;
    s.series = image_series.value;
    // image_series_index has 16 bits.
    const std::size_t encodings = std::max<std::size_t>(header.encoding.size(), 1);
    if (s.series + encodings - 1 > std::numeric_limits<std::uint16_t>::max()) {
        throw Error("property image_series is \"" + std::to_string(s.series) +
                    "\": it must be a whole number from 0 to " +
                    std::to_string(std::numeric_limits<std::uint16_t>::max() - (encodings - 1)) +
                    ", as image_series_index has 16 bits and each encoding has a series of its own");
    }
    s.timing = timing;
    s.field_map = parse_map_source(MapKind::Field, field_map);
    s.decay_map = parse_map_source(MapKind::Decay, decay_map);
    s.map_series = map_series.value;
    s.dwell = dwell.value;
    s.readout_start = readout_start.value;
    check_voxel_maps(s);
    add_settings(s);
    return s;
}

void ReconGadgetBase::log_properties() const {
    GINFO("%s: recon %s, properties %s\n", name_.c_str(), recon_version(), properties_.summary().c_str());
    for (const auto &unknown : properties_.unknown()) {
        GERROR("%s: there is no property %s, and it has no effect: those there are stand in the line before\n",
               name_.c_str(), unknown.c_str());
    }
}

void ReconGadgetBase::log_errors(const std::string &where, const std::vector<std::string> &problems,
                                 std::size_t images) const {
    if (problems.empty()) {
        return;
    }
    // Many frames fail for the same reason: only the first error is logged.
    const std::string more = problems.size() > 1 ? " (" + std::to_string(problems.size()) + " images are missing)" : "";
    const std::string next = images > 0 ? ", the others are made" : "";
    GERROR("%s: %s: %s%s%s\n", name_.c_str(), where.c_str(), problems.front().c_str(), more.c_str(), next.c_str());
}

void ReconGadgetBase::warn_once(const std::string &where, const std::optional<Warning> &warning) {
    if (warning && warnings_.first(warning->cause)) {
        GWARN("%s: %s: %s\n", name_.c_str(), where.c_str(), warning->text.c_str());
    }
}

Spaces ReconGadgetBase::spaces(std::size_t encoding, const Gadgetron::SamplingDescription *sampling) const {
    if (encoding >= header.encoding.size()) {
        throw Error("acquisitions refer to encoding " + std::to_string(encoding) + ", but the XML header has " +
                    std::to_string(header.encoding.size()) + ": correct encoding_space_ref");
    }
    const auto &e = header.encoding[encoding];
    Spaces s;
    const auto size = [](const ISMRMRD::MatrixSize &m) { return std::array<std::size_t, 3>{m.x, m.y, m.z}; };
    const auto fov = [](const ISMRMRD::FieldOfView_mm &f) { return std::array<double, 3>{f.x, f.y, f.z}; };
    s.echo_planar = e.trajectory == ISMRMRD::TrajectoryType::EPI;
    if (const auto &slices = e.encodingLimits.slice; slices.is_present()) {
        s.slices = std::size_t(std::max(slices->maximum, slices->minimum) - slices->minimum) + 1;
    }
    s.encoded_matrix = size(e.encodedSpace.matrixSize);
    s.recon_matrix = size(e.reconSpace.matrixSize);
    s.encoded_fov = fov(e.encodedSpace.fieldOfView_mm);
    s.recon_fov = fov(e.reconSpace.fieldOfView_mm);
    if (sampling != nullptr) {
        // The sizes of a buffer differ from those of the header where a gadget before this one changed them.
        std::copy(sampling->encoded_matrix_.begin(), sampling->encoded_matrix_.end(), s.encoded_matrix.begin());
        std::copy(sampling->recon_matrix_.begin(), sampling->recon_matrix_.end(), s.recon_matrix.begin());
        if (e.trajectory == ISMRMRD::TrajectoryType::CARTESIAN) {
            // BucketToBufferGadget writes reconSpace here along x, but trajectories are made for encodedSpace.
            s.encoded_matrix[0] = e.encodedSpace.matrixSize.x;
        }
        std::copy(sampling->encoded_FOV_.begin(), sampling->encoded_FOV_.end(), s.encoded_fov.begin());
        std::copy(sampling->recon_FOV_.begin(), sampling->recon_FOV_.end(), s.recon_fov.begin());
        if (e.trajectory == ISMRMRD::TrajectoryType::CARTESIAN) {
            s.encoded_fov[0] = e.encodedSpace.fieldOfView_mm.x;
        }
    }
    const auto &step1 = e.encodingLimits.kspace_encoding_step_1, &step2 = e.encodingLimits.kspace_encoding_step_2;
    s.step2_centre = step2.is_present() ? step2.get().center : s.encoded_matrix[2] / 2;
    const auto limits = [&](std::size_t axis, const ISMRMRD::Limit &limit) {
        s.expected.first[axis] = limit.minimum;
        s.expected.last[axis] = std::max(limit.minimum, limit.maximum);
    };
    s.expected.known = step1.is_present();
    if (s.expected.known) {
        limits(0, *step1);
        limits(1, step2.is_present() ? *step2 : ISMRMRD::Limit());
    }
    if (e.parallelImaging.is_present()) {
        const auto &factor = e.parallelImaging->accelerationFactor;
        s.expected.acceleration = {std::max<std::size_t>(1, factor.kspace_encoding_step_1),
                                   std::max<std::size_t>(1, factor.kspace_encoding_step_2)};
    }
    return s;
}

void ReconGadgetBase::keep_reference(const std::vector<Shot> &shots) {
    const auto &head = *shots.front().header;
    const Spaces own = spaces(head.encoding_space_ref, nullptr);
    calibration_data_.add(gather(shots, own), own);
}

void ReconGadgetBase::image(Engine &engine, const std::vector<Shot> &shots, const Spaces &spaces, Images &images,
                            std::size_t frame) {
    const auto start = std::chrono::steady_clock::now();
    Samples own = gather(shots, spaces);
    if (!spaces.expected.known) {
        warn_once(describe(own.first), fewer_shots(own.shots, most_shots_[own.first.encoding_space_ref]));
    }
    if (engine.settings().window <= 1) {
        check_spread(own, engine.layout(spaces, own.ndim));
    }
    std::optional<Warning> restarted;
    const Samples samples = engine.add_to_window(std::move(own), &restarted);
    warn_once(describe(samples.last), restarted);
    std::optional<Samples> reference;
    if (engine.settings().maps != Maps::None && !calibration_data_.empty()) {
        reference = calibration_data_.of_scan(samples, spaces);
        if (!reference) {
            warn_once(describe(samples.last),
                      Warning{Cause::OtherCalibration,
                              "the calibration acquisitions that came are of other slices: coil maps come from the "
                              "data of this slice"});
        }
    }
    const auto gathered = std::chrono::steady_clock::now();
    Result result;
    try {
        result = engine.reconstruct(samples, spaces, reference ? &*reference : nullptr, images.image(frame),
                                    images.pending_bytes() + images.next_gadgets_bytes());
    } catch (...) {
        engine.remove_from_window(samples);
        throw;
    }
    for (const auto &warning : result.warnings) {
        warn_once(describe(samples.last), warning);
    }

    ImageInfo info;
    info.encoding = samples.first.encoding_space_ref;
    info.channels = engine.channels(samples.coils);
    info.magnitude = engine.settings().output == Output::Magnitude;
    info.number = ++counts_[info.encoding];
    warn_once(describe(samples.last), image_number_overflow(info.number));
    info.series = std::uint16_t(engine.settings().series + info.encoding);
    info.spaces = spaces;
    info.grid = engine.layout(spaces, samples.ndim);
    switch (method_) {
        case Method::Grid: info.method = "gridding"; break;
        case Method::Fbp: info.method = "filtered backprojection"; break;
        case Method::Propeller: info.method = "gridding of corrected blades"; break;
        case Method::Fhd: info.method = "adjoint"; break;
        case Method::Cg: info.method = "conjugate gradients"; break;
    }
    info.samples = samples.count;
    info.shots = samples.shots;
    info.iterations = result.iterations;
    info.residual = result.residual;
    info.blades = result.blades;
    if (method_ == Method::Propeller) {
        GINFO("%s: %s: %s\n", name_.c_str(), describe(samples.last).c_str(), summary(result.blades).c_str());
        for (std::size_t blade = 0; blade < result.blades.motion.size(); ++blade) {
            GDEBUG("%s: %s: %s\n", name_.c_str(), describe(samples.last).c_str(), line(result.blades, blade).c_str());
        }
    }
    auto &header = images.array.headers_[frame];
    header = image_header(shots.front().header != nullptr ? *shots.front().header : samples.first, info);
    images.array.meta_[frame] = image_meta(header, info);
    images.is_made[frame] = 1;
    if (engine.settings().timing) {
        const auto ms = [](auto from, auto to) { return std::chrono::duration<double, std::milli>(to - from).count(); };
        const auto end = std::chrono::steady_clock::now();
        const std::string memory = result.memory > 0 ? ", counted " + mebibytes(result.memory) : "";
        GINFO("%s: timing: %s: %zu samples of %zu coils, %zu shots: samples %.1f ms, %s; in all %.1f ms%s\n",
              name_.c_str(), describe(samples.last).c_str(), samples.count, samples.coils, samples.shots,
              ms(start, gathered), result.timing.c_str(), ms(start, end), memory.c_str());
    }
}

void ReconGadgetBase::send_images(Engine &engine, const IsmrmrdReconData &data, Gadgetron::Core::OutputChannel &out) {
    bool empty = true;
    const auto is_shifted = [&](std::size_t e) {
        using ISMRMRD::TrajectoryType;
        const auto kind = e < header.encoding.size() ? header.encoding[e].trajectory : TrajectoryType::OTHER;
        return kind == TrajectoryType::CARTESIAN || kind == TrajectoryType::EPI;
    };
    const auto reference_view = [&](const Gadgetron::IsmrmrdReconBit &bit, std::size_t e) {
        const bool any = bit.ref_ && bit.ref_->data_.get_number_of_elements() > 0;
        return any ? std::optional<BufferView>(view(*bit.ref_, is_shifted(e))) : std::nullopt;
    };
    // Calibration data of all encodings: those of one may be for the images of another.
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        std::vector<std::string> problems;
        attempt(problems, [&] {
            const auto r = reference_view(data.rbit_[e], e);
            for (std::size_t frame = 0; r && frame < r->n * r->s * r->loc; ++frame) {
                const std::size_t n = frame % r->n, s = frame / r->n % r->s, loc = frame / (r->n * r->s);
                const auto acquired = recon_gadgets::shots(*r, n, s, loc, RECON_PURPOSE_CALIBRATION);
                if (!acquired.empty()) {
                    keep_reference(acquired);
                    empty = false;
                }
            }
        });
        log_errors("calibration data of encoding " + std::to_string(e), problems, 0);
    }
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        const auto &bit = data.rbit_[e];
        if (bit.data_.data_.get_number_of_elements() == 0) {
            continue;  // the buffer has no data of this encoding
        }
        empty = false;
        std::vector<std::string> problems;
        std::string where = "encoding " + std::to_string(e);
        std::size_t made = 0;
        attempt(problems, [&] {
            const BufferView v = view(bit.data_, is_shifted(e));
            const std::optional<BufferView> r = reference_view(bit, e);
            const bool arrays = engine.settings().send == Send::Arrays;
            std::optional<Images> images;
            FilledFrames filled{v.n, v.s, v.loc, std::vector<char>(v.n * v.s * v.loc), 0};
            for (std::size_t loc = 0; loc < v.loc; ++loc) {
                for (std::size_t s = 0; s < v.s; ++s) {
                    for (std::size_t n = 0; n < v.n; ++n) {
                        const std::size_t frame = n + v.n * (s + v.s * loc);
                        const auto *headers = v.headers + v.e1 * v.e2 * frame, *end = headers + v.e1 * v.e2;
                        const auto *written =
                            std::find_if(headers, end, [](const auto &h) { return h.number_of_samples > 0; });
                        if (problems.empty() && written != end) {
                            where = describe(*written);
                        }
                        attempt(problems, [&] {
                            auto acquired = recon_gadgets::shots(v, n, s, loc);
                            if (r && n < r->n && s < r->s && loc < r->loc) {
                                for (const Shot &shot : recon_gadgets::shots(*r, n, s, loc)) {
                                    if (is_only_in_reference(*shot.header)) {
                                        acquired.push_back(shot);
                                    }
                                }
                            }
                            if (acquired.empty()) {
                                return;  // logged below
                            }
                            filled.has_shots[frame] = 1;
                            const std::size_t encoding = acquired.front().header->encoding_space_ref;
                            const Spaces sp = spaces(encoding, &bit.data_.sampling_);
                            warn_once(describe(*acquired.front().header), missing_rows(v, sp.expected, acquired));
                            filled.slices = sp.slices;
                            const Grid grid = engine.layout(sp, dimensions(sp));
                            if (!arrays) {
                                images.emplace(grid, engine.channels(v.coils), 1, 1, 1);
                            } else if (!images) {
                                images.emplace(grid, engine.channels(v.coils), v.n, v.s, v.loc);
                            }
                            image(engine, acquired, sp, *images, arrays ? frame : 0);
                            ++made;
                            if (!arrays) {
                                // The next image is made when the memory of this one is that of the next gadget.
                                images->send_image(out);
                                images.reset();
                            }
                        });
                    }
                }
            }
            if (made == 0 && problems.empty()) {
                throw Error("no shot was acquired: there is nothing to reconstruct");
            }
            if (made > 0) {
                warn_once(where, empty_frames(filled));
                if (arrays) {
                    images->send_arrays(out);
                }
            }
        });
        log_errors(where, problems, made);
    }
    if (empty) {
        log_errors("a buffer", {"it has no acquisitions: there is nothing to reconstruct"}, 0);
    }
}

void ReconGadgetBase::send_images(Engine &engine, const AcquisitionBucket &bucket,
                                  Gadgetron::Core::OutputChannel &out) {
    // Not the average: all averages go into one image.
    using Key = std::tuple<std::size_t, unsigned, unsigned, unsigned, unsigned, unsigned>;
    const auto key = [](const ISMRMRD::AcquisitionHeader &h) {
        return Key(std::size_t(h.encoding_space_ref), unsigned(h.idx.repetition), unsigned(h.idx.slice),
                   unsigned(h.idx.contrast), unsigned(h.idx.phase), unsigned(h.idx.set));
    };
    std::map<Key, std::vector<Shot>> groups;
    std::map<SliceKey, std::vector<Shot>> references;
    std::vector<std::string> damaged;
    attempt(damaged, [&] {
        std::size_t noise = 0;
        for (const auto &acquisition : bucket.data_) {
            const std::uint32_t use = acquisition_use(std::get<ISMRMRD::AcquisitionHeader>(acquisition));
            noise += use & RECON_PURPOSE_NOISE ? 1 : 0;
            if (use & RECON_PURPOSE_IMAGE) {
                const Shot shot = shot_of(acquisition);
                groups[key(*shot.header)].push_back(shot);
            }
        }
        for (const auto &acquisition : bucket.ref_) {
            const auto &head = std::get<ISMRMRD::AcquisitionHeader>(acquisition);
            const std::uint32_t use = acquisition_use(head);
            if (use & RECON_PURPOSE_CALIBRATION) {
                references[slice_key(head)].push_back(shot_of(acquisition));
            }
            if (use & RECON_PURPOSE_IMAGE && is_only_in_reference(head)) {
                groups[key(head)].push_back(shot_of(acquisition));
            }
        }
        if (noise > 0) {
            warn_once("a bucket",
                      Warning{Cause::UnusedNoise,
                              std::to_string(noise) + " noise acquisitions are not used: the data are not whitened by "
                                                      "them. Put ReconNoiseGadget before the gadget that makes them"});
        }
        for (const auto &reference : references) {
            keep_reference(reference.second);
        }
        if (groups.empty() && !references.empty()) {
            return;  // calibration for the next buckets
        }
        if (groups.empty()) {
            throw Error("it has no acquisitions: there is nothing to reconstruct");
        }
    });
    log_errors("a bucket", damaged, 0);
    if (!damaged.empty()) {
        return;
    }
    for (const auto &group : groups) {
        const auto &first = *group.second.front().header;
        std::vector<std::string> problems;
        attempt(problems, [&] {
            const Spaces sp = spaces(first.encoding_space_ref, nullptr);
            const auto steps = steps_of(group.second, sp.expected);
            warn_once(describe(first), collectors_[slice_key(first)].add(sp.expected, first.idx.repetition, steps));
            Images one(engine.layout(sp, dimensions(sp)), engine.channels(first.active_channels), 1, 1, 1);
            image(engine, group.second, sp, one, 0);
            if (engine.settings().send == Send::Arrays) {
                one.send_arrays(out);
            } else {
                one.send_image(out);
            }
        });
        log_errors(describe(first), problems, 0);
    }
}

namespace {

// Adds an image to the engine's maps, where its attributes say that it is one and the engine looks for it.
template <class Values>
void take_map(Engine &engine, const ISMRMRD::ImageHeader &header, const ISMRMRD::MetaContainer &meta,
              const std::array<std::size_t, 3> &dims, std::size_t channels, const Values &values) {
    const auto kind = map_kind(meta);
    if (!kind || !engine.takes_voxel_maps(*kind)) {
        return;
    }
    try {
        if (channels != 1) {
            throw Error("an image with the attribute " + std::string(MAP_ATTRIBUTE) + " has " +
                        std::to_string(channels) + " channels: a map has one");
        }
        engine.add_voxel_map(*kind, header.slice, dims, values());
    } catch (const Error &e) {
        engine.refuse_voxel_map(*kind, header.slice, e.what());
        throw;
    }
}

// The numbers of an image that is a map. Ends with an error that names both types if they are not real floats.
template <class T>
std::vector<float> map_values(const T *from, std::size_t count) {
    if constexpr (std::is_same_v<T, float>) {
        return std::vector<float>(from, from + count);
    } else if constexpr (std::is_same_v<T, Complex>) {
        return real_parts(from, count);
    } else {
        throw Error("an image with the attribute " + std::string(MAP_ATTRIBUTE) + " has " +
                    type_text(ISMRMRD::get_data_type<T>()) + ", and a map has " + type_text(ISMRMRD::ISMRMRD_FLOAT) +
                    ": convert it before it is sent");
    }
}

std::string describe(const ISMRMRD::ImageHeader &h) {
    return "an image of series " + std::to_string(h.image_series_index) + ", slice " + std::to_string(h.slice);
}

}  // namespace

void ReconGadgetBase::take_maps(Engine &engine, const IsmrmrdImageArray &images) const {
    const auto &data = images.data_;
    const std::array<std::size_t, 3> dims{data.get_size(0), data.get_size(1), data.get_size(2)};
    const std::size_t channels = data.get_size(3), voxels = dims[0] * dims[1] * dims[2];
    const std::size_t count =
        std::min<std::size_t>(images.meta_.size(), images.headers_.get_number_of_elements());
    for (std::size_t i = 0; i < count; ++i) {
        const ISMRMRD::ImageHeader &header = images.headers_[i];
        std::vector<std::string> problems;
        attempt(problems, [&] {
            if ((i + 1) * channels * voxels > data.get_number_of_elements()) {
                throw Error("an image array has more headers than images");
            }
            const auto values = [&] { return real_parts(data.get_data_ptr() + i * channels * voxels, voxels); };
            take_map(engine, header, images.meta_[i], dims, channels, values);
        });
        log_errors(describe(header), problems, 0);
    }
}

template <class T>
void ReconGadgetBase::take_maps(Engine &engine, const Gadgetron::Core::Image<T> &image) const {
    const auto &header = std::get<ISMRMRD::ImageHeader>(image);
    const auto &data = std::get<Gadgetron::hoNDArray<T>>(image);
    const auto &meta = std::get<Gadgetron::Core::optional<ISMRMRD::MetaContainer>>(image);
    std::vector<std::string> problems;
    attempt(problems, [&] {
        if (meta) {
            const std::array<std::size_t, 3> dims{data.get_size(0), data.get_size(1), data.get_size(2)};
            const auto values = [&] { return map_values(data.get_data_ptr(), dims[0] * dims[1] * dims[2]); };
            take_map(engine, header, *meta, dims, data.get_size(3), values);
        }
    });
    log_errors(describe(header), problems, 0);
}

void ReconGadgetBase::process(Gadgetron::Core::InputChannel<Input> &in, Gadgetron::Core::OutputChannel &out) {
    log_properties();
    Engine engine(settings());
    // A property that no image can be made with ends the connection before any data come.
    if (const auto bad = engine.bad_property()) {
        throw Error("property " + bad->first + " is \"" + properties_.given(bad->first) + "\": " + bad->second);
    }
    engine.read_voxel_maps();
    bool any = false;
    for (auto message : in) {
        const auto on_image = [&](auto &image) {
            take_maps(engine, image);
            out.push(std::move(image));
        };
        const auto on_data = [&](const auto &data) {
            any = true;
            send_images(engine, data, out);
        };
        Gadgetron::Core::visit(
            [&](auto &input) {
                using Type = std::decay_t<decltype(input)>;
                constexpr bool is_data =
                    std::is_same_v<Type, IsmrmrdReconData> || std::is_same_v<Type, AcquisitionBucket>;
                if constexpr (is_data) {
                    on_data(input);
                } else {
                    on_image(input);
                }
            },
            message);
    }
    for (const auto &collector : collectors_) {
        warn_once("the last images", collector.second.end());
    }
    for (const auto &line : warnings_.summary()) {
        GWARN("%s: %s\n", name_.c_str(), line.c_str());
    }
    if (!any) {
        // The channel also ends without data where a gadget before this one failed.
        GWARN("%s: this connection: no buffer or bucket came, and no image is made. If the log has an error of another "
              "gadget, that is why; else the measurement has no image acquisitions, or a gadget before this one kept "
              "them\n",
              name_.c_str());
    }
}

}  // namespace recon_gadgets
