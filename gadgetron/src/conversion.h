// From what a chain hands over, buffers and buckets of acquisitions, to samples with their trajectory; and from images
// to ISMRMRD's headers. Nothing here is Gadgetron's: arrays come as addresses and sizes, so that all of it is tested
// without.
#pragma once

#include "completeness.h"

#include <ismrmrd/ismrmrd.h>
#include <ismrmrd/meta.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace recon_gadgets {

using Complex = std::complex<float>;

// What is wrong with the data, and what helps, in one line.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What the XML header says of an encoding: its spaces, and which shots to expect.
struct Spaces {
    std::array<std::size_t, 3> encoded_matrix{}, recon_matrix{};
    std::array<double, 3> encoded_fov{}, recon_fov{};  // mm
    std::size_t step2_centre = 0;                      // kspace_encode_step_2 at the centre of k-space
    Announced announced;
};

// The arrays of a buffer, first index fastest.
struct BufferView {
    std::size_t e0 = 0, e1 = 0, e2 = 0, coils = 0, n = 0, s = 0, loc = 0;
    const Complex *data = nullptr;                        // [E0, E1, E2, CHA, N, S, LOC]
    std::size_t trajectory_size = 0;                      // TRAJ
    const float *trajectory = nullptr;                    // [TRAJ, E0, E1, E2, N, S, LOC], or null
    const float *density = nullptr;                       // [E0, E1, E2, N, S, LOC], or null
    const ISMRMRD::AcquisitionHeader *headers = nullptr;  // [E1, E2, N, S, LOC]
};

// Whether an acquisition is part of an image: not noise, navigation, phase correction, feedback or a dummy.
bool is_image_data(const ISMRMRD::AcquisitionHeader &header);

// One readout: the samples that are not discarded.
struct Shot {
    const ISMRMRD::AcquisitionHeader *header = nullptr;
    std::size_t samples = 0;
    const Complex *data = nullptr;      // of the first coil
    std::size_t coil_stride = 0;        // to the next coil's
    const float *trajectory = nullptr;  // [header->trajectory_dimensions, samples], or null
    const float *density = nullptr;     // [samples], or null
    Step step{};                        // its row in a buffer, else its counters
};

// The acquired shots of frame (n, s, loc), in the order of the buffer. Rows that no acquisition was written to are left
// out: zeros that nobody measured would pull the image to zero.
std::vector<Shot> shots(const BufferView &buffer, std::size_t n, std::size_t s, std::size_t loc);

// An acquisition as a shot: `data` [number_of_samples, active_channels], `trajectory` [trajectory_dimensions,
// number_of_samples] or null. The numbers of elements are those of the arrays, to be checked against the header.
Shot shot(const ISMRMRD::AcquisitionHeader &header, const Complex *data, std::size_t data_elements,
          const float *trajectory, std::size_t trajectory_elements);

// 3 where the encoded matrix has several voxels along z, else 2.
unsigned dimensions(const Spaces &spaces);

// The samples of one image: a view of the buffer where all of it was acquired, else a copy.
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
    ISMRMRD::AcquisitionHeader first{}, last{};  // of the shots
    std::vector<std::size_t> starts;             // the first sample of each shot

    // "sample 3 of shot 17".
    std::string where(std::size_t sample) const;

private:
    friend Samples gather(const std::vector<Shot> &, const Spaces &);
    friend Samples join(const std::vector<const Samples *> &);
    std::vector<float> own_trajectory_;
    std::vector<Complex> own_kspace_;
};

// Puts shots together. The trajectory has 2 or 3 components, or one more for density weights: with an encoded matrix of
// one voxel along z, three components are (kx, ky, weight), unless the third is zero throughout, and then (kx, ky, kz).
// In 3D, two components are those of a stack, whose kz follows from kspace_encode_step_2.
Samples gather(const std::vector<Shot> &shots, const Spaces &spaces);

// Samples of several buffers as one: a sliding window.
Samples join(const std::vector<const Samples *> &parts);

// Shots that hold zeros only, in all coils.
std::size_t zero_shots(const Samples &samples);

// The matrix that is computed, and that of the image.
struct Grid {
    unsigned ndim = 0;
    std::array<std::size_t, 3> dims{1, 1, 1};   // of encodedSpace
    std::array<std::size_t, 3> image{1, 1, 1};  // of reconSpace
    std::array<double, 3> fov{};                // of the image, mm

    std::size_t voxels() const { return dims[0] * dims[1] * dims[2]; }
    std::size_t image_voxels() const { return image[0] * image[1] * image[2]; }
};

// As the program: everything is computed on the matrix of encodedSpace, for which the trajectory was made, weights and
// coil maps too; the library then brings it to the matrix and field of view of reconSpace.
Grid grid(const Spaces &spaces, unsigned ndim);

// Coordinates axis by axis, and weights.
struct Coordinates {
    std::array<std::vector<float>, 3> k;
    std::vector<float> weights;  // empty where there are none
    std::size_t count = 0;
};
Coordinates coordinates(const Samples &samples);

// The coordinate that lies farthest out: "ky is 3 in sample 5 of shot 3".
std::string farthest(const Samples &samples);

// Refuses samples that no image of these voxels can be made of: all at one point, or on one line, of k-space.
void check_spread(const Samples &samples, const Grid &grid);

// What an image is, beyond what its acquisitions say.
struct ImageInfo {
    std::size_t encoding = 0, channels = 1;
    bool magnitude = true;
    std::size_t number = 0;    // of this encoding's images, from 1: image_index, which has 16 bits
    std::uint16_t series = 0;
    Spaces spaces;
    Grid grid;
    std::string method;
    std::size_t samples = 0, shots = 0, iterations = 0;
    double residual = 0;
};

// The header of an image whose acquisitions began with `acquisition`.
ISMRMRD::ImageHeader image_header(const ISMRMRD::AcquisitionHeader &acquisition, const ImageInfo &info);

// The attributes that Gadgetron's own gadgets attach, and what was done.
ISMRMRD::MetaContainer image_meta(const ISMRMRD::ImageHeader &header, const ImageInfo &info);

}  // namespace recon_gadgets
