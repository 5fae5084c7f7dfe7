// From buffers and buckets of acquisitions to samples with their trajectory, and from images to ISMRMRD's headers.
// Arrays are addresses and sizes here, so that the tests need no Gadgetron.
#pragma once

#include "blade_motion.h"
#include "missing_shots.h"

#include <ismrmrd/ismrmrd.h>
#include <ismrmrd/meta.h>
#include <recon.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace recon_gadgets {

using Complex = std::complex<float>;

// An error in the data or the properties. Its text is one line with the cause and a remedy.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An encoding in the XML header: its spaces, and the shots to expect.
struct Spaces {
    std::array<std::size_t, 3> encoded_matrix{}, recon_matrix{};
    std::array<double, 3> encoded_fov{}, recon_fov{};  // mm
    bool echo_planar = false;
    std::size_t slices = 0;                            // in encodingLimits; 0 if unknown
    std::size_t step2_centre = 0;                      // kspace_encode_step_2 at the centre of k-space
    ExpectedShots expected;
};

// The arrays of a buffer. The first index changes fastest.
struct BufferView {
    std::size_t e0 = 0, e1 = 0, e2 = 0, coils = 0, n = 0, s = 0, loc = 0;
    const Complex *data = nullptr;                        // [E0, E1, E2, CHA, N, S, LOC]
    std::size_t trajectory_size = 0;                      // TRAJ
    const float *trajectory = nullptr;                    // [TRAJ, E0, E1, E2, N, S, LOC], or null
    const float *density = nullptr;                       // [E0, E1, E2, N, S, LOC], or null
    const ISMRMRD::AcquisitionHeader *headers = nullptr;  // [E1, E2, N, S, LOC]
    // The readout's centre in a row, for Cartesian and echo-planar encodings: BucketToBufferGadget shifts rows to it.
    std::optional<long> cartesian_centre;
};

// Returns the library's use of an acquisition: the sum of some recon_acquisition_purpose, 0 for none.
std::uint32_t acquisition_use(const ISMRMRD::AcquisitionHeader &header);

// One readout: the samples that are not discarded.
struct Shot {
    const ISMRMRD::AcquisitionHeader *header = nullptr;
    std::size_t samples = 0;
    const Complex *data = nullptr;      // samples of the first coil
    std::size_t coil_stride = 0;        // distance to the samples of the next coil
    const float *trajectory = nullptr;  // [header->trajectory_dimensions, samples], or null
    const float *density = nullptr;     // [samples], or null
    Step step{};                        // its row in a buffer, or its counters in a bucket
};

// The acquired shots of frame (n, s, loc) that are used for a purpose, in the order of the buffer. Rows without an
// acquisition are left out: their zeros were not measured.
std::vector<Shot> shots(const BufferView &buffer, std::size_t n, std::size_t s, std::size_t loc,
                        recon_acquisition_purpose purpose = RECON_PURPOSE_IMAGE);

// An acquisition as a shot. `data`: [number_of_samples, active_channels]. `trajectory`: [trajectory_dimensions,
// number_of_samples], or null. The numbers of elements are checked against the header.
Shot shot(const ISMRMRD::AcquisitionHeader &header, const Complex *data, std::size_t data_elements,
          const float *trajectory, std::size_t trajectory_elements);

// 3 where the encoded matrix has several voxels along z, else 2.
unsigned dimensions(const Spaces &spaces);

// When the samples of a shot were taken.
struct ShotTimes {
    std::size_t skipped = 0;  // samples discarded before the first
    float sample_us = 0;      // sample_time_us of the header: from one sample to the next

    bool operator==(const ShotTimes &other) const { return skipped == other.skipped && sample_us == other.sample_us; }
};

// The samples of one image: a view of the buffer where every row was acquired, else a copy.
class Samples {
public:
    Samples() = default;
    Samples(const Samples &) = delete;
    Samples &operator=(const Samples &) = delete;
    Samples(Samples &&) = default;
    Samples &operator=(Samples &&) = default;

    unsigned ndim = 0;
    bool weighted = false;       // the last component is the density weight
    std::size_t components = 0;  // ndim, and one more for weights
    std::size_t count = 0, coils = 0, shots = 0;
    const float *trajectory = nullptr;           // [components, count], cycles per voxel of the encoded matrix
    const Complex *kspace = nullptr;             // [count, coils]
    ISMRMRD::AcquisitionHeader first{}, last{};  // headers of the first and last shot
    std::vector<std::size_t> starts;             // the first sample of each shot
    std::vector<ShotTimes> times;                // of each shot

    // "sample 3 of shot 17".
    std::string where(std::size_t sample) const;

    // The same samples of other coils, [count, coils]. They refer to the trajectory of these.
    Samples with_coils(std::vector<Complex> kspace, std::size_t coils) const;

    // A copy whose coordinates are multiplied by one factor per axis, without the samples that are then outside
    // [-0.5, 0.5). Ends with an error if none remain.
    Samples scaled(const std::array<double, 3> &factors) const;

private:
    friend Samples gather(const std::vector<Shot> &, const Spaces &);
    friend Samples join(const std::vector<const Samples *> &);
    std::vector<float> own_trajectory_;
    std::vector<Complex> own_kspace_;
};

// The samples of all shots. The trajectory has 2 or 3 components, and one more for density weights. With an encoded
// matrix of one voxel along z, three components are (kx, ky, weight), or (kx, ky, kz) where the third is zero in all
// samples. In 3D, two components are those of a stack; its kz follows from kspace_encode_step_2.
Samples gather(const std::vector<Shot> &shots, const Spaces &spaces);

// The samples of several buffers, for a sliding window.
Samples join(const std::vector<const Samples *> &parts);

// The time of each sample in seconds. The first sample of each readout, discarded ones included, was taken at
// `start_ms`; the others follow by `dwell_us`, or where it is 0 by the headers' sample_time_us. Ends with an error
// where neither is there.
std::vector<float> sample_times(const Samples &samples, double dwell_us, double start_ms);

// The number of shots with zeros only, in all coils.
std::size_t zero_shots(const Samples &samples);

// The matrix of the reconstruction, and the matrix of the image.
struct Grid {
    unsigned ndim = 0;
    std::array<std::size_t, 3> dims{1, 1, 1};   // of encodedSpace
    std::array<std::size_t, 3> image{1, 1, 1};  // of reconSpace
    std::array<double, 3> fov{};                // field of view of the image in mm

    std::size_t voxels() const { return dims[0] * dims[1] * dims[2]; }
    std::size_t image_voxels() const { return image[0] * image[1] * image[2]; }
};

// The program `recon` does the same: images, weights and coil maps are computed on the matrix of encodedSpace, since
// the trajectory is made for it. Then the library resizes images to the matrix and field of view of reconSpace. Ends
// with an error that names the field of the XML header if a matrix or field of view is impossible.
Grid grid(const Spaces &spaces, unsigned ndim);

// Coordinates axis by axis, and density weights.
struct Coordinates {
    std::array<std::vector<float>, 3> k;
    std::vector<float> weights;  // empty where there are none
    std::size_t count = 0;
};
Coordinates coordinates(const Samples &samples);

// The coordinate with the largest magnitude: "ky is 3 in sample 5 of shot 3".
std::string farthest_coordinate(const Samples &samples);

// Ends with an error where all samples are at one point, or on one line, of k-space: they cannot give an image.
void check_spread(const Samples &samples, const Grid &grid);

// What the header and attributes of an image need besides its acquisitions.
struct ImageInfo {
    std::size_t encoding = 0, channels = 1;
    bool magnitude = true;
    std::size_t number = 0;  // among the images of this encoding, from 1
    std::uint16_t series = 0;
    Spaces spaces;
    Grid grid;
    std::string method;
    std::size_t samples = 0, shots = 0, iterations = 0;
    double residual = 0;
    BladesFound blades;  // without motion but for PROPELLER
};

// Ends with an error where an encoded voxel is not square, within 1 %: blades are turned in the plane.
void check_square(const Spaces &spaces);

// The header of an image whose first acquisition is `acquisition`.
ISMRMRD::ImageHeader image_header(const ISMRMRD::AcquisitionHeader &acquisition, const ImageInfo &info);

// The attributes that Gadgetron's own gadgets set, and those of recon: method, samples, iterations, motion of blades.
ISMRMRD::MetaContainer image_meta(const ISMRMRD::ImageHeader &header, const ImageInfo &info);

}  // namespace recon_gadgets
