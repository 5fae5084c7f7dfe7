// Passes acquisitions, buckets and buffers to the library, which sorts them into images.
#pragma once

#include "samples.h"

#include <ismrmrd/xml.h>

namespace recon_gadgets {

// The data of an acquisition, [number_of_samples, active_channels], and its trajectory, [trajectory_dimensions,
// number_of_samples], or null.
struct AcquisitionView {
    const ISMRMRD::AcquisitionHeader &header;
    const Complex *data = nullptr;
    std::size_t data_elements = 0;
    const float *trajectory = nullptr;
    std::size_t trajectory_elements = 0;
};

// The arrays of a buffer. The first index changes fastest.
struct BufferView {
    std::size_t e0 = 0, e1 = 0, e2 = 0, coils = 0, n = 0, s = 0, loc = 0;
    const Complex *data = nullptr;                        // [E0, E1, E2, CHA, N, S, LOC]
    std::size_t trajectory_size = 0;                      // TRAJ
    const float *trajectory = nullptr;                    // [TRAJ, E0, E1, E2, N, S, LOC], or null
    const float *density = nullptr;                       // [E0, E1, E2, N, S, LOC], or null
    const ISMRMRD::AcquisitionHeader *headers = nullptr;  // [E1, E2, N, S, LOC]
    // Index of the readout's centre in a row, to which BucketToBufferGadget shifts Cartesian and echo-planar readouts.
    // No value for other encodings.
    std::optional<long> cartesian_centre;

    std::size_t rows() const { return e1 * e2; }
    std::size_t frames() const { return n * s * loc; }
};

// Returns the purposes of an acquisition in the library: a sum of recon_acquisition_purpose values; 0 if unused.
std::uint32_t purposes_of(const ISMRMRD::AcquisitionHeader &header);

// Returns whether Gadgetron's buckets and buffers have an acquisition only in the calibration data: all with
// IS_PARALLEL_CALIBRATION, also if IS_PARALLEL_CALIBRATION_AND_IMAGING is set.
bool is_only_in_reference(const ISMRMRD::AcquisitionHeader &header);

// Returns the first header of a frame [N, S, LOC] with samples, or null if no row was acquired.
const ISMRMRD::AcquisitionHeader *first_header(const BufferView &buffer, std::size_t frame);

// Describes the image of an acquisition: "slice 1, repetition 2".
std::string describe(const ISMRMRD::AcquisitionHeader &header);

// The acquisitions of a connection.
class ScanFeed {
public:
    // `header`: the XML header of the measurement.
    ScanFeed(const ISMRMRD::IsmrmrdHeader &header, const recon_scan_options &options);

    // Adds an acquisition. Throws an Error if the library refuses it, or if its arrays differ from its header.
    void add(const AcquisitionView &acquisition);

    // Adds the acquired rows of a frame [N, S, LOC] of a buffer. `image_header`: all rows belong to the image of this
    // header. `only_reference`: adds only rows that the image data of Gadgetron's buffers do not have. Returns the
    // number of added rows.
    std::size_t add_frame(const BufferView &buffer, std::size_t frame, const ISMRMRD::AcquisitionHeader &image_header,
                          bool only_reference);

    // Whitens an acquisition in place with the noise acquisitions so far, if there are any.
    void whiten(const AcquisitionView &acquisition, Complex *data);

    // Completes the images of the acquisitions so far. Later acquisitions begin new images.
    void complete();
    // Ends the measurement.
    void end();

    // Returns the data of the next complete image. Throws an Error if the acquisitions do not give an image.
    std::optional<Samples> next();

    // Returns the warnings of the calls so far, and forgets them.
    std::vector<std::string> take_warnings();
    // Returns the milliseconds of the calls since the last image, and forgets them.
    double take_milliseconds();

private:
    struct Deleter {
        void operator()(recon_scan *scan) const { recon_scan_destroy(scan); }
    };

    class Stopwatch;

    void check_call(recon_status status);
    void add_acquisition(const AcquisitionView &acquisition);
    void add_row(const BufferView &buffer, std::size_t frame, std::size_t row,
                 const ISMRMRD::AcquisitionHeader &image_header);

    std::unique_ptr<recon_scan, Deleter> scan_;
    std::vector<std::string> warnings_;
    double milliseconds_ = 0;
    std::vector<Complex> row_data_;  // of one acquisition
    std::vector<float> row_trajectory_;
};

}  // namespace recon_gadgets
