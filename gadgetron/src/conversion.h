// Conversion of buffers and buckets of acquisitions to samples with their trajectory, and of images to ISMRMRD headers.
// Arrays are passed as addresses and sizes, so that the tests do not require Gadgetron.
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

// An error in the data or the properties. The text is one line with cause and remedy.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An encoding in the XML header: its spaces, and the expected shots.
struct Spaces {
    std::array<std::size_t, 3> encoded_matrix{}, recon_matrix{};
    std::array<double, 3> encoded_fov{}, recon_fov{};  // mm
    bool echo_planar = false;
    std::size_t slices = 0;                            // number of slices in encodingLimits; 0 if unknown
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
    // Index of the readout's centre in a row, to which BucketToBufferGadget shifts Cartesian and echo-planar readouts.
    // No value for other encodings.
    std::optional<long> cartesian_centre;
};

// Returns the purposes of an acquisition in the library: a sum of recon_acquisition_purpose values; 0 if unused.
std::uint32_t purposes_of(const ISMRMRD::AcquisitionHeader &header);

// Returns whether Gadgetron's buckets and buffers have an acquisition only in the calibration data: all with
// IS_PARALLEL_CALIBRATION, also if IS_PARALLEL_CALIBRATION_AND_IMAGING is set.
bool is_only_in_reference(const ISMRMRD::AcquisitionHeader &header);

// Describes the image of an acquisition: "encoding 0, slice 1, repetition 2".
std::string describe(const ISMRMRD::AcquisitionHeader &header);

// Throws an Error if the data of an acquisition do not have the size that its header announces.
void check_data_size(const ISMRMRD::AcquisitionHeader &header, std::size_t elements);

// One readout without the discarded samples.
struct Shot {
    const ISMRMRD::AcquisitionHeader *header = nullptr;
    std::size_t samples = 0;
    const Complex *data = nullptr;      // samples of the first coil
    std::size_t coil_stride = 0;        // distance to the samples of the next coil
    const float *trajectory = nullptr;  // [header->trajectory_dimensions, samples], or null
    const float *density = nullptr;     // [samples], or null
    EncodingStep step{};                        // its row in a buffer, or its counters in a bucket
};

// Returns the shots of frame (n, s, loc) with a purpose, in the order of the buffer. Rows without an acquisition are
// left out: their zeros were not measured.
std::vector<Shot> shots_of_frame(const BufferView &buffer, std::size_t n, std::size_t s, std::size_t loc,
                                 recon_acquisition_purpose purpose = RECON_PURPOSE_IMAGE);

// Returns an acquisition as a shot. `data`: [number_of_samples, active_channels]. `trajectory`: [trajectory_dimensions,
// number_of_samples], or null. Throws an Error if the numbers of elements differ from the header.
Shot shot_of_acquisition(const ISMRMRD::AcquisitionHeader &header, const Complex *data, std::size_t data_elements,
                         const float *trajectory, std::size_t trajectory_elements);

// Returns 3 if the encoded matrix has several voxels along z, else 2.
unsigned dimensions(const Spaces &spaces);

// The sample times of a shot.
struct ShotTimes {
    std::size_t skipped = 0;  // number of samples discarded before the first one
    float sample_us = 0;      // sample_time_us of the header: microseconds between samples

    bool operator==(const ShotTimes &other) const { return skipped == other.skipped && sample_us == other.sample_us; }
};

// The samples of one image: a view of the buffer if every row was acquired, else a copy.
class Samples {
public:
    Samples() = default;
    Samples(const Samples &) = delete;
    Samples &operator=(const Samples &) = delete;
    Samples(Samples &&) = default;
    Samples &operator=(Samples &&) = default;

    unsigned ndim = 0;
    bool weighted = false;       // whether the last component is the density weight
    std::size_t components = 0;  // components of the trajectory: ndim, or ndim + 1 with weights
    std::size_t count = 0, coils = 0, shots = 0;
    const float *trajectory = nullptr;           // [components, count], cycles per voxel of the encoded matrix
    const Complex *kspace = nullptr;             // [count, coils]
    ISMRMRD::AcquisitionHeader first{}, last{};  // headers of the first and last shot
    std::vector<std::size_t> starts;             // index of the first sample of each shot
    std::vector<ShotTimes> times;                // sample times of each shot

    // Describes a sample by its shot: "sample 3 of shot 17".
    std::string describe_sample(std::size_t sample) const;

    // Returns the samples with the data of different coils, [count, coils]. The result refers to this trajectory.
    Samples with_coils(std::vector<Complex> kspace, std::size_t coils) const;

    // Returns a copy whose coordinates are multiplied by one factor per axis, without the samples that are then outside
    // [-0.5, 0.5). Throws an Error if no samples remain.
    Samples scaled(const std::array<double, 3> &factors) const;

private:
    friend Samples gather(const std::vector<Shot> &, const Spaces &);
    friend Samples join(const std::vector<const Samples *> &);
    std::vector<float> own_trajectory_;
    std::vector<Complex> own_kspace_;
};

// Returns the samples of all shots. The trajectory has 2 or 3 components, and one more for density weights. With an
// encoded matrix of one voxel along z, three components are (kx, ky, weight), or (kx, ky, kz) if the third is zero in
// all samples. In 3D, two components are (kx, ky) of a stack, and kz follows from kspace_encode_step_2.
Samples gather(const std::vector<Shot> &shots, const Spaces &spaces);

// Copies the samples of several buffers into one list, for a sliding window.
Samples join(const std::vector<const Samples *> &parts);

// Returns the time of each sample in seconds. The first sample of each readout, including discarded ones, is at
// `start_ms`; the others follow at intervals of `dwell_us`, or of the headers' sample_time_us if that is 0. Throws an
// Error if neither is positive.
std::vector<float> sample_times(const Samples &samples, double dwell_us, double start_ms);

// Returns the number of shots that are zero in every sample and coil.
std::size_t zero_shots(const Samples &samples);

// The matrices of the reconstruction and of the image.
struct Grid {
    unsigned ndim = 0;
    std::array<std::size_t, 3> dims{1, 1, 1};   // matrix of encodedSpace
    std::array<std::size_t, 3> image{1, 1, 1};  // matrix of reconSpace
    std::array<double, 3> fov{};                // field of view of the image in mm

    std::size_t voxels() const { return dims[0] * dims[1] * dims[2]; }
    std::size_t image_voxels() const { return image[0] * image[1] * image[2]; }
};

// Returns the matrices of an encoding. Images, weights and coil maps are computed on the matrix of encodedSpace, for
// which the trajectory is made, and the library resizes images to reconSpace, as in the program `recon`. Throws an
// Error that names the field of the XML header if a matrix or field of view is impossible.
Grid make_grid(const Spaces &spaces, unsigned ndim);

// Coordinates by axis, and density weights.
struct Coordinates {
    std::array<std::vector<float>, 3> k;
    std::vector<float> weights;  // empty without weights in the trajectory
    std::size_t count = 0;
};

// Returns the coordinates and weights of samples. Throws an Error that names the sample if a weight is negative.
Coordinates coordinates(const Samples &samples);

// Describes the coordinate with the largest magnitude: "ky is 3 in sample 5 of shot 3".
std::string farthest_coordinate(const Samples &samples);

// Throws an Error if all samples are at one point or on one line of k-space: they do not give an image.
void check_spread(const Samples &samples, const Grid &grid);

// Properties of an image for its header and attributes, in addition to its acquisitions.
struct ImageInfo {
    std::size_t encoding = 0, channels = 1;
    bool magnitude = true;
    std::size_t number = 0;  // number of the image in its encoding, from 1
    std::uint16_t series = 0;
    Spaces spaces;
    Grid grid;
    std::string method;
    std::size_t samples = 0, shots = 0, iterations = 0;
    double residual = 0;
    BladeReport blades;  // empty except for PROPELLER
};

// Throws an Error if the sides of an encoded voxel differ by more than 1 %: blades are rotated in the plane.
void check_square(const Spaces &spaces);

// Returns the header of an image whose first acquisition is `acquisition`.
ISMRMRD::ImageHeader make_image_header(const ISMRMRD::AcquisitionHeader &acquisition, const ImageInfo &info);

// Returns the attributes of an image: those that Gadgetron's own gadgets set, and recon's method, numbers of samples,
// shots and iterations, and motion of blades.
ISMRMRD::MetaContainer make_image_attributes(const ISMRMRD::ImageHeader &header, const ImageInfo &info);

}  // namespace recon_gadgets
