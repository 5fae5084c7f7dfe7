// The data of one image, which the library sorted out of the acquisitions, and the matrices of the image.
#pragma once

#include "library.h"

#include <ismrmrd/ismrmrd.h>

#include <array>
#include <memory>
#include <optional>

namespace recon_gadgets {

// Encoding, slice, contrast, phase and set. Images with the same key share coil maps.
using SliceKey = std::array<std::uint32_t, 5>;

// The data of one image or of its calibration: coordinates, k-space, and properties from the headers.
class Samples {
public:
    // Takes ownership of the image.
    explicit Samples(recon_scan_image *image);

    const recon_scan_properties &properties() const { return properties_; }
    std::size_t count() const { return properties_.samples; }
    std::size_t coils() const { return properties_.coils; }
    bool is_weighted() const { return properties_.weights != nullptr; }
    // Returns the data, [samples, coils].
    const Complex *kspace() const { return static_cast<const Complex *>(properties_.kspace); }
    SliceKey slice_key() const;
    // Returns the header of the first acquisition.
    ISMRMRD::AcquisitionHeader first() const;

    // Describes the image: "slice 1, repetition 2".
    std::string describe() const;

    // Returns a geometry with matrix, coordinates, weights and number of coils.
    recon_geometry geometry() const;

    // Returns coordinates and weights, one array after the other: two images with equal numbers have the same
    // trajectory.
    std::vector<float> trajectory() const;
    // Returns whether the trajectory has the same bits as one from `trajectory`.
    bool has_trajectory(const std::vector<float> &numbers) const;
    // Returns a hash of the trajectory.
    std::size_t trajectory_hash() const;

    // Returns the time of each sample in seconds. The first sample of each readout, including discarded ones, is at
    // `start_ms`; the others follow at intervals of `dwell_us`, or of the headers' sample_time_us if that is 0. Throws
    // an Error if neither is positive.
    std::vector<float> times(double dwell_us, double start_ms) const;

    // Returns the samples with the data of virtual coils, [samples, coils].
    Samples with_coils(std::vector<Complex> kspace, std::size_t coils) const;

    // Returns the calibration data of this image, or nothing if the slice has none. Adds warnings of the library.
    std::optional<Samples> calibration(std::vector<std::string> &warnings) const;

private:
    // Calls f(values, count) for each array of the trajectory.
    template <class F>
    void for_each_array(F f) const;

    std::shared_ptr<recon_scan_image> image_;
    std::shared_ptr<const std::vector<Complex>> virtual_kspace_;  // null if the coils are those of the image
    recon_scan_properties properties_;
};

// The matrices of the reconstruction and of the image. Images, weights and coil maps are computed on the matrix of
// encodedSpace, for which the trajectory is made, and resized to reconSpace, as in the program `recon`.
struct Grid {
    unsigned ndim = 0;
    std::array<std::size_t, 3> dims{1, 1, 1};   // matrix of encodedSpace
    std::array<std::size_t, 3> image{1, 1, 1};  // matrix of reconSpace
    std::array<double, 3> encoded_fov{}, recon_fov{};  // mm

    // `properties`: those of the image's samples.
    explicit Grid(const recon_scan_properties &properties);

    std::size_t voxels() const { return dims[0] * dims[1] * dims[2]; }
    std::size_t image_voxels() const { return image[0] * image[1] * image[2]; }
    bool needs_resize() const { return dims != image || encoded_fov != recon_fov; }
};

// Throws an Error if the sides of an encoded voxel differ by more than 1 %: blades are rotated in the plane.
void check_square(const Grid &grid);

}  // namespace recon_gadgets
