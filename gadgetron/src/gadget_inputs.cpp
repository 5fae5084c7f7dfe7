// From messages to acquisitions of the scan.
#include "gadget_base.h"

#include "compatibility.h"

#include <algorithm>

namespace recon_gadgets {

using Gadgetron::IsmrmrdDataBuffered;
using Header = ISMRMRD::AcquisitionHeader;

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

// Returns a view of calibration data, if there are any.
std::optional<BufferView> reference_view(const Gadgetron::IsmrmrdReconBit &bit, bool shifted) {
    const bool has_data = bit.ref_ && bit.ref_->data_.get_number_of_elements() > 0;
    return has_data ? std::optional<BufferView>(view_of(*bit.ref_, shifted)) : std::nullopt;
}

// Returns the frame of `other` with the indices of a frame of `buffer`, or nothing.
std::optional<std::size_t> same_frame(const BufferView &buffer, std::size_t frame, const BufferView &other) {
    const std::size_t n = frame % buffer.n, s = frame / buffer.n % buffer.s, loc = frame / (buffer.n * buffer.s);
    const bool exists = n < other.n && s < other.s && loc < other.loc;
    return exists ? std::optional<std::size_t>(n + other.n * (s + other.s * loc)) : std::nullopt;
}

// Returns the number of slices in encodingLimits; 0 if unknown.
std::size_t slice_count(const ISMRMRD::Encoding &encoding) {
    const auto *slices = find_value(encoding.encodingLimits.slice);
    return slices != nullptr ? std::size_t(std::max(slices->maximum, slices->minimum) - slices->minimum) + 1 : 0;
}

}  // namespace

void ReconGadgetBase::add(const Gadgetron::Core::Acquisition &acquisition) {
    const auto &header = std::get<Header>(acquisition);
    const auto &data = std::get<Gadgetron::hoNDArray<Complex>>(acquisition);
    const auto &trajectory = std::get<Gadgetron::Core::optional<Gadgetron::hoNDArray<float>>>(acquisition);
    std::vector<std::string> problems;
    attempt(problems, [&] {
        scan_->add({header, data.get_data_ptr(), data.get_number_of_elements(),
                    trajectory ? trajectory->get_data_ptr() : nullptr,
                    trajectory ? trajectory->get_number_of_elements() : 0});
    });
    // Many acquisitions may be refused for the same reason.
    if (!problems.empty() && refusals_.is_first(problems.front())) {
        log_errors(describe(header), problems, 0);
        logged_refusals_.push_back(problems.front());
    }
    log_warnings(describe(header));
}

void ReconGadgetBase::send_images(const Gadgetron::Core::Acquisition &acquisition,
                                  Gadgetron::Core::OutputChannel &out) {
    add(acquisition);
    send_complete_images(out);
}

void ReconGadgetBase::send_images(const Gadgetron::AcquisitionBucket &bucket, Gadgetron::Core::OutputChannel &out) {
    // Acquisitions for image and calibration are in both lists.
    for (const auto &acquisition : bucket.ref_) {
        if (is_only_in_reference(std::get<Header>(acquisition))) {
            add(acquisition);
        }
    }
    std::for_each(bucket.data_.begin(), bucket.data_.end(), [&](const auto &acquisition) { add(acquisition); });
    std::vector<std::string> problems;
    attempt(problems, [&] {
        // A bucket may contain only calibration data for later buckets.
        if (bucket.data_.empty() && bucket.ref_.empty()) {
            throw Error("the bucket has no acquisitions: there is nothing to reconstruct");
        }
        scan_->complete();
    });
    log_errors("a bucket", problems, 0);
    send_complete_images(out);
}

bool ReconGadgetBase::has_shifted_rows(std::size_t encoding) const {
    using ISMRMRD::TrajectoryType;
    const auto kind = encoding < header.encoding.size() ? header.encoding[encoding].trajectory : TrajectoryType::OTHER;
    return kind == TrajectoryType::CARTESIAN || kind == TrajectoryType::EPI;
}

void ReconGadgetBase::apply_sampling(const Gadgetron::SamplingDescription &sampling, std::size_t encoding) {
    if (encoding >= scan_header_.encoding.size()) {
        return;  // the library's error names the encoding
    }
    auto &e = scan_header_.encoding[encoding];
    bool changed = false;
    const auto apply = [&](const auto &from, auto &x, auto &y, auto &z, bool with_x) {
        using Number = std::decay_t<decltype(x)>;
        const Number values[3]{with_x ? Number(from[0]) : x, Number(from[1]), Number(from[2])};
        changed = changed || values[0] != x || values[1] != y || values[2] != z;
        x = values[0], y = values[1], z = values[2];
    };
    // BucketToBufferGadget writes reconSpace here along x, but trajectories are made for encodedSpace.
    const bool with_x = e.trajectory != ISMRMRD::TrajectoryType::CARTESIAN;
    auto &encoded = e.encodedSpace, &recon = e.reconSpace;
    apply(sampling.encoded_matrix_, encoded.matrixSize.x, encoded.matrixSize.y, encoded.matrixSize.z, with_x);
    apply(sampling.recon_matrix_, recon.matrixSize.x, recon.matrixSize.y, recon.matrixSize.z, true);
    apply(sampling.encoded_FOV_, encoded.fieldOfView_mm.x, encoded.fieldOfView_mm.y, encoded.fieldOfView_mm.z, with_x);
    apply(sampling.recon_FOV_, recon.fieldOfView_mm.x, recon.fieldOfView_mm.y, recon.fieldOfView_mm.z, true);
    if (changed) {
        scan_.emplace(scan_header_, engine_->settings().scan);
    }
}

bool ReconGadgetBase::send_frame(const BufferView &view, const std::optional<BufferView> &reference,
                                 std::size_t frame, std::optional<ImageBatch> &batch,
                                 Gadgetron::Core::OutputChannel &out) {
    const Header &first = *first_header(view, frame);
    std::vector<std::string> problems;
    attempt(problems, [&] {
        if (const auto own = reference ? same_frame(view, frame, *reference) : std::nullopt) {
            scan_->add_frame(*reference, *own, first, true);
        }
        scan_->add_frame(view, frame, first, false);
    });
    bool has_image = false;
    // Also after an error: the acquisitions of this frame do not belong to the next one.
    attempt(problems, [&] {
        scan_->complete();
        while (const auto samples = scan_->next()) {
            if (!problems.empty()) {
                continue;
            }
            has_image = true;
            if (engine_->settings().send != MessageForm::ImageArrays) {
                send_image(*samples, out);
                continue;
            }
            if (!batch) {
                batch.emplace(Grid(samples->properties()), engine_->channel_count(samples->coils()), view.n, view.s,
                              view.loc);
            }
            make_image(*samples, *batch, frame);
        }
    });
    log_warnings(describe(first));
    if (!problems.empty()) {
        throw Error(problems.front());
    }
    return has_image;
}

void ReconGadgetBase::send_encoding(const Gadgetron::IsmrmrdReconBit &bit, std::size_t encoding,
                                    Gadgetron::Core::OutputChannel &out) {
    std::vector<std::string> problems;
    std::string location = "encoding " + std::to_string(encoding);
    std::size_t made = 0;
    attempt(problems, [&] {
        const bool shifted = has_shifted_rows(encoding);
        const BufferView view = view_of(bit.data_, shifted);
        const auto reference = reference_view(bit, shifted);
        FrameOccupancy occupancy{view.n, view.s, view.loc, std::vector<char>(view.frames()),
                                 encoding < header.encoding.size() ? slice_count(header.encoding[encoding]) : 0};
        std::optional<ImageBatch> batch;  // set while images are collected
        for (std::size_t frame = 0; frame < view.frames(); ++frame) {
            const Header *first = first_header(view, frame);
            if (first == nullptr) {
                continue;
            }
            if (problems.empty()) {
                location = describe(*first);
            }
            attempt(problems, [&] {
                occupancy.has_shots[frame] = send_frame(view, reference, frame, batch, out) ? 1 : 0;
                made += occupancy.has_shots[frame];
            });
        }
        if (made == 0 && problems.empty()) {
            throw Error("no shot was acquired: there is nothing to reconstruct");
        }
        const auto warning = made > 0 ? empty_frames(occupancy) : std::nullopt;
        if (warning) {
            warn_once(location, *warning);
        }
        if (batch && made > 0) {
            batch->send_arrays(out);
        }
    });
    log_errors(location, problems, made);
}

void ReconGadgetBase::send_images(const Gadgetron::IsmrmrdReconData &data, Gadgetron::Core::OutputChannel &out) {
    bool empty = true;
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        apply_sampling(data.rbit_[e].data_.sampling_, e);
    }
    // First the calibration data that have no image in the buffer: they may calibrate the images of all encodings.
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        std::vector<std::string> problems;
        attempt(problems, [&] {
            const bool shifted = has_shifted_rows(e);
            const auto reference = reference_view(data.rbit_[e], shifted);
            const bool has_data = data.rbit_[e].data_.data_.get_number_of_elements() > 0;
            const BufferView images = has_data ? view_of(data.rbit_[e].data_, shifted) : BufferView();
            for (std::size_t frame = 0; reference && frame < reference->frames(); ++frame) {
                const Header *first = first_header(*reference, frame);
                empty = empty && first == nullptr;
                const auto own = same_frame(*reference, frame, images);
                if (first != nullptr && !(own && first_header(images, *own) != nullptr)) {
                    scan_->add_frame(*reference, frame, *first, true);
                }
            }
            scan_->complete();
        });
        empty = empty && problems.empty();
        log_errors("calibration data of encoding " + std::to_string(e), problems, 0);
        log_warnings("calibration data of encoding " + std::to_string(e));
    }
    for (std::size_t e = 0; e < data.rbit_.size(); ++e) {
        if (data.rbit_[e].data_.data_.get_number_of_elements() > 0) {
            empty = false;
            send_encoding(data.rbit_[e], e, out);
        }
    }
    if (empty) {
        log_errors("a buffer", {"the buffer has no acquisitions: there is nothing to reconstruct"}, 0);
    }
}

}  // namespace recon_gadgets
