#include "scan_feed.h"

#include "compatibility.h"
#include "text.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace recon_gadgets {

using Header = ISMRMRD::AcquisitionHeader;

namespace {

// Returns the number of samples that are not discarded.
std::size_t kept_samples(const Header &h) {
    const std::size_t discarded = std::size_t(h.discard_pre) + h.discard_post;
    return h.number_of_samples > discarded ? h.number_of_samples - discarded : 0;
}

// Throws an Error if an array of an acquisition does not have the size that its header announces.
void check_size(const char *array, std::size_t elements, std::size_t samples, std::size_t per_sample) {
    if (elements != samples * per_sample) {
        throw Error(std::string(array) + " of an acquisition has " + std::to_string(elements) +
                    " numbers, but its header announces " + std::to_string(per_sample) + " for each of " +
                    std::to_string(samples) + " samples: the file is damaged");
    }
}

// Returns the index in a row of the first sample that is not discarded.
std::size_t first_sample_in_row(const BufferView &b, const Header &h, std::size_t samples) {
    if (!b.cartesian_centre) {
        if (samples > b.e0) {
            throw Error("the rows of a buffer have " + std::to_string(b.e0) + " samples, but a header announces " +
                        std::to_string(samples) + ": an earlier gadget changed only one of them; correct that gadget");
        }
        return 0;
    }
    const bool centred = h.center_sample == h.number_of_samples / 2 || h.center_sample >= h.number_of_samples;
    const long start = h.number_of_samples == b.e0 && centred ? long(h.discard_pre)
                                                              : *b.cartesian_centre - long(h.center_sample);
    if (start < 0 || std::size_t(start) + samples > b.e0) {
        throw Error("a readout of " + std::to_string(samples) + " samples whose centre is sample " +
                    std::to_string(h.center_sample) + " does not fit the rows of the buffer, which have " +
                    std::to_string(b.e0) + " samples: correct center_sample, or remove BucketToBufferGadget");
    }
    return std::size_t(start);
}

}  // namespace

std::uint32_t purposes_of(const Header &h) {
    std::uint32_t purposes = 0;
    check(recon_acquisition_use(h.flags, &purposes));
    return purposes;
}

bool is_only_in_reference(const Header &h) {
    return h.flags & (std::uint64_t(1) << (ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION - 1));
}

const Header *first_header(const BufferView &b, std::size_t frame) {
    const Header *headers = b.headers + b.rows() * frame, *end = headers + b.rows();
    const Header *first = std::find_if(headers, end, [](const Header &h) { return h.number_of_samples > 0; });
    return first == end ? nullptr : first;
}

std::string describe(const Header &h) {
    return image_text(h.encoding_space_ref, h.idx);
}

// Adds the time of a call.
class ScanFeed::Stopwatch {
public:
    explicit Stopwatch(ScanFeed &feed) : feed_(feed) {}
    ~Stopwatch() {
        feed_.milliseconds_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
    }

private:
    using Clock = std::chrono::steady_clock;

    ScanFeed &feed_;
    const Clock::time_point start_ = Clock::now();
};

ScanFeed::ScanFeed(const ISMRMRD::IsmrmrdHeader &header, const recon_scan_options &options) {
    const std::string xml = xml_of(header);
    recon_scan *scan = nullptr;
    const recon_status status = recon_scan_create(xml.data(), xml.size(), &options, &scan);
    scan_.reset(scan);
    check_call(status);
}

void ScanFeed::check_call(recon_status status) {
    for (auto &text : warnings_of_call()) {
        warnings_.push_back(std::move(text));
    }
    check(status);
}

void ScanFeed::add(const AcquisitionView &a) {
    const Stopwatch watch(*this);
    add_acquisition(a);
}

void ScanFeed::add_acquisition(const AcquisitionView &a) {
    check_size("the data", a.data_elements, a.header.number_of_samples, a.header.active_channels);
    if (a.trajectory != nullptr || a.header.trajectory_dimensions > 0) {
        check_size("the trajectory", a.trajectory_elements, a.header.number_of_samples,
                   a.header.trajectory_dimensions);
    }
    check_call(recon_scan_add(scan_.get(), &a.header, a.trajectory, a.data));
}

std::size_t ScanFeed::add_frame(const BufferView &b, std::size_t frame, const Header &image_header,
                                bool only_reference) {
    const Stopwatch watch(*this);
    std::size_t added = 0;
    std::string problem;
    for (std::size_t row = 0; row < b.rows(); ++row) {
        const Header &h = b.headers[row + b.rows() * frame];
        // A row without an acquisition has a header without samples: its zeros were not measured.
        if (kept_samples(h) == 0 || (only_reference && !is_only_in_reference(h))) {
            continue;
        }
        try {
            add_row(b, frame, row, image_header);
        } catch (const Error &e) {
            // The other rows are added, so that they do not count as missing.
            problem = problem.empty() ? e.what() : problem;
        }
        ++added;
    }
    if (!problem.empty()) {
        throw Error(problem);
    }
    return added;
}

void ScanFeed::add_row(const BufferView &b, std::size_t frame, std::size_t row, const Header &image_header) {
    Header h = b.headers[row + b.rows() * frame];
    const std::size_t all = h.number_of_samples, kept = kept_samples(h), skipped = h.discard_pre;
    const std::size_t start = first_sample_in_row(b, h, kept), stored = b.trajectory != nullptr ? b.trajectory_size : 0;
    if (stored == 0) {
        throw Error("the acquisitions of a buffer have no trajectory: remove BucketToBufferGadget, so that it is "
                    "computed from the headers in the order of acquisition, or store it in the file");
    }
    if (h.trajectory_dimensions != stored) {
        throw Error("row " + std::to_string(row) + " has " + std::to_string(h.trajectory_dimensions) +
                    " trajectory components, but the buffer has " + std::to_string(stored) +
                    ": all acquisitions of an encoding must have the same number");
    }
    // Rows do not have the discarded samples, but the times of the others begin with them.
    row_data_.assign(all * b.coils, Complex());
    for (std::size_t coil = 0; coil < b.coils; ++coil) {
        const Complex *from = b.data + start + b.e0 * (row + b.rows() * (coil + b.coils * frame));
        std::copy_n(from, kept, row_data_.begin() + long(all * coil + skipped));
    }
    const std::size_t components = stored + (b.density != nullptr ? 1 : 0);
    row_trajectory_.assign(all * components, 0);
    for (std::size_t i = 0; i < kept; ++i) {
        const std::size_t sample = start + i + b.e0 * (row + b.rows() * frame);
        float *to = &row_trajectory_[(skipped + i) * components];
        std::copy_n(b.trajectory + stored * sample, stored, to);
        if (b.density != nullptr) {
            to[stored] = b.density[sample];
        }
    }
    h.trajectory_dimensions = std::uint16_t(components);
    h.active_channels = std::uint16_t(b.coils);
    h.encoding_space_ref = image_header.encoding_space_ref;
    // The image's counters, except those that distinguish its shots.
    const auto own = h.idx;
    h.idx = image_header.idx;
    h.idx.kspace_encode_step_1 = own.kspace_encode_step_1, h.idx.kspace_encode_step_2 = own.kspace_encode_step_2;
    h.idx.average = own.average, h.idx.segment = own.segment;
    add_acquisition({h, row_data_.data(), row_data_.size(), row_trajectory_.data(), row_trajectory_.size()});
}

void ScanFeed::whiten(const AcquisitionView &a, Complex *data) {
    check_size("the data", a.data_elements, a.header.number_of_samples, a.header.active_channels);
    check_call(recon_scan_whiten(scan_.get(), &a.header, data));
}

void ScanFeed::complete() {
    const Stopwatch watch(*this);
    check_call(recon_scan_complete(scan_.get()));
}

void ScanFeed::end() {
    check_call(recon_scan_end(scan_.get()));
}

std::optional<Samples> ScanFeed::next() {
    const Stopwatch watch(*this);
    recon_scan_image *image = nullptr;
    check_call(recon_scan_next(scan_.get(), &image));
    return image == nullptr ? std::nullopt : std::optional<Samples>(Samples(image));
}

std::vector<std::string> ScanFeed::take_warnings() {
    return std::exchange(warnings_, {});
}

double ScanFeed::take_milliseconds() {
    return std::exchange(milliseconds_, 0);
}

}  // namespace recon_gadgets
