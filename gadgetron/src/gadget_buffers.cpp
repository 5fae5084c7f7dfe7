// Images from a buffer of BucketToBufferGadget.
#include "gadget_base.h"
#include "image_batch.h"

#include <algorithm>

namespace recon_gadgets {

using Gadgetron::IsmrmrdDataBuffered;
using Gadgetron::IsmrmrdReconData;

// The data of one encoding in a buffer.
struct EncodingBuffer {
    BufferView data;
    std::optional<BufferView> reference;  // calibration data
    const Gadgetron::SamplingDescription &sampling;
    FrameOccupancy occupancy;
    std::optional<ImageBatch> batch;  // set while images are collected

    std::array<std::size_t, 3> indices(std::size_t frame) const {
        return {frame % data.n, frame / data.n % data.s, frame / (data.n * data.s)};
    }
};

namespace {

// Throws an Error if the arrays of a buffer have different numbers of shots or samples.
void check_buffer(const IsmrmrdDataBuffered &b, std::size_t shots, std::size_t samples_per_shot) {
    const std::string remedy = ": an earlier gadget changed only one of them; remove or correct that gadget";
    if (b.headers_.get_number_of_elements() != shots) {
        throw Error("a buffer has " + std::to_string(b.headers_.get_number_of_elements()) + " headers for " +
                    std::to_string(shots) + " shots" + remedy);
    }
    const std::size_t samples = shots * samples_per_shot;
    if (b.trajectory_ && b.trajectory_->get_number_of_elements() != b.trajectory_->get_size(0) * samples) {
        throw Error("the trajectory of a buffer has " + std::to_string(b.trajectory_->get_number_of_elements()) +
                    " numbers for " + std::to_string(samples) + " samples" + remedy);
    }
}

// Returns the arrays of a buffer. `shifted`: the encoding is Cartesian or echo-planar, and BucketToBufferGadget shifts
// its rows.
BufferView view_of(const IsmrmrdDataBuffered &b, bool shifted) {
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
    const std::size_t shots = v.e1 * v.e2 * v.n * v.s * v.loc;
    check_buffer(b, shots, v.e0);
    if (b.trajectory_) {
        v.trajectory = b.trajectory_->get_data_ptr();
        v.trajectory_size = b.trajectory_->get_size(0);
    }
    if (b.density_ && b.density_->get_number_of_elements() == v.e0 * shots) {
        v.density = b.density_->get_data_ptr();
    }
    return v;
}

// Returns the calibration data of an encoding, if the buffer has any.
std::optional<BufferView> reference_view(const Gadgetron::IsmrmrdReconBit &bit, bool shifted) {
    const bool has_data = bit.ref_ && bit.ref_->data_.get_number_of_elements() > 0;
    return has_data ? std::optional<BufferView>(view_of(*bit.ref_, shifted)) : std::nullopt;
}

// Returns the shots of a frame, and those of the calibration data that belong to the image.
std::vector<Shot> image_shots(const EncodingBuffer &buffer, std::size_t frame) {
    const auto [n, s, loc] = buffer.indices(frame);
    auto shots = shots_of_frame(buffer.data, n, s, loc);
    const auto &r = buffer.reference;
    if (r && n < r->n && s < r->s && loc < r->loc) {
        for (const Shot &shot : shots_of_frame(*r, n, s, loc)) {
            if (is_only_in_reference(*shot.header)) {
                shots.push_back(shot);
            }
        }
    }
    return shots;
}

// Returns a warning if rows of a buffer have no shot.
std::optional<Warning> missing_rows(const BufferView &buffer, ExpectedShots expected, const std::vector<Shot> &shots) {
    // An earlier gadget may have changed the size of the buffer.
    expected.known = expected.known && expected.shots() == buffer.e1 * buffer.e2;
    std::vector<EncodingStep> steps;
    std::transform(shots.begin(), shots.end(), std::back_inserter(steps), [](const Shot &shot) { return shot.step; });
    return missing_shots(expected, steps, steps.size());
}

// Describes a frame by the first header of an acquisition, or returns nothing if the frame has none.
std::optional<std::string> describe_frame(const BufferView &buffer, std::size_t frame) {
    const std::size_t rows = buffer.e1 * buffer.e2;
    const auto *headers = buffer.headers + rows * frame, *end = headers + rows;
    const auto *acquired = std::find_if(headers, end, [](const auto &h) { return h.number_of_samples > 0; });
    return acquired == end ? std::nullopt : std::optional<std::string>(describe(*acquired));
}

}  // namespace

bool ReconGadgetBase::has_shifted_rows(std::size_t encoding) const {
    using ISMRMRD::TrajectoryType;
    const auto kind = encoding < header.encoding.size() ? header.encoding[encoding].trajectory : TrajectoryType::OTHER;
    return kind == TrajectoryType::CARTESIAN || kind == TrajectoryType::EPI;
}

bool ReconGadgetBase::store_calibration(const Gadgetron::IsmrmrdReconBit &bit, std::size_t encoding) {
    const auto r = reference_view(bit, has_shifted_rows(encoding));
    bool any = false;
    for (std::size_t frame = 0; r && frame < r->n * r->s * r->loc; ++frame) {
        const auto shots = shots_of_frame(*r, frame % r->n, frame / r->n % r->s, frame / (r->n * r->s),
                                          RECON_PURPOSE_CALIBRATION);
        if (!shots.empty()) {
            store_calibration(shots);
            any = true;
        }
    }
    return any;
}

bool ReconGadgetBase::send_frame(Engine &engine, EncodingBuffer &buffer, std::size_t frame,
                                 Gadgetron::Core::OutputChannel &out) {
    const auto shots = image_shots(buffer, frame);
    if (shots.empty()) {
        return false;
    }
    const BufferView &data = buffer.data;
    const auto &first = *shots.front().header;
    buffer.occupancy.has_shots[frame] = 1;
    const Spaces spaces = spaces_of(first.encoding_space_ref, &buffer.sampling);
    warn_once(describe(first), missing_rows(data, spaces.expected, shots));
    buffer.occupancy.slices = spaces.slices;
    const Grid grid = make_grid(spaces, dimensions(spaces));
    const std::size_t channels = engine.channel_count(data.coils);
    if (engine.settings().send == MessageForm::ImageArrays) {
        if (!buffer.batch) {
            buffer.batch.emplace(grid, channels, data.n, data.s, data.loc);
        }
        make_image(engine, shots, spaces, *buffer.batch, frame);
    } else {
        // The next gadget owns the memory of an image before the next one is made.
        ImageBatch one(grid, channels, 1, 1, 1);
        make_image(engine, shots, spaces, one, 0);
        one.send_image(out);
    }
    return true;
}

void ReconGadgetBase::send_encoding(Engine &engine, const Gadgetron::IsmrmrdReconBit &bit, std::size_t encoding,
                                    Gadgetron::Core::OutputChannel &out) {
    std::vector<std::string> problems;
    std::string location = "encoding " + std::to_string(encoding);
    std::size_t made = 0;
    attempt(problems, [&] {
        const bool shifted = has_shifted_rows(encoding);
        const BufferView view = view_of(bit.data_, shifted);
        const std::size_t frames = view.n * view.s * view.loc;
        EncodingBuffer buffer{view, reference_view(bit, shifted), bit.data_.sampling_,
                              {view.n, view.s, view.loc, std::vector<char>(frames), 0}, {}};
        for (std::size_t frame = 0; frame < frames; ++frame) {
            if (problems.empty()) {
                location = describe_frame(view, frame).value_or(location);
            }
            attempt(problems, [&] { made += send_frame(engine, buffer, frame, out) ? 1 : 0; });
        }
        if (made == 0 && problems.empty()) {
            throw Error("no shot was acquired: there is nothing to reconstruct");
        }
        if (made > 0) {
            warn_once(location, empty_frames(buffer.occupancy));
        }
        if (buffer.batch && made > 0) {
            buffer.batch->send_arrays(out);
        }
    });
    log_errors(location, problems, made);
}

void ReconGadgetBase::send_images(Engine &engine, const IsmrmrdReconData &data, Gadgetron::Core::OutputChannel &out) {
    bool empty = true;
    // First the calibration data of all encodings: one encoding may calibrate the images of a different one.
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        std::vector<std::string> problems;
        attempt(problems, [&] { empty = !store_calibration(data.rbit_[e], e) && empty; });
        empty = empty && problems.empty();
        log_errors("calibration data of encoding " + std::to_string(e), problems, 0);
    }
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        if (data.rbit_[e].data_.data_.get_number_of_elements() > 0) {
            empty = false;
            send_encoding(engine, data.rbit_[e], e, out);
        }
    }
    if (empty) {
        log_errors("a buffer", {"the buffer has no acquisitions: there is nothing to reconstruct"}, 0);
    }
}

}  // namespace recon_gadgets
