// The headers and attributes of images, and their conversion to integers.
#pragma once

#include "blade_motion.h"
#include "samples.h"

#include <ismrmrd/meta.h>

#include <map>

namespace recon_gadgets {

// Properties of an image for its header and attributes, in addition to its acquisitions.
struct ImageInfo {
    std::size_t channels = 1;
    bool magnitude = true;
    std::size_t number = 0;  // number of the image in its encoding, from 1
    std::uint16_t series = 0;
    std::string method;
    std::size_t iterations = 0;
    double residual = 0;
    BladeReport blades;  // empty except for PROPELLER
};

// Returns the header of the image of these samples.
ISMRMRD::ImageHeader make_image_header(const Samples &samples, const ImageInfo &info);

// Returns the attributes of an image: those that Gadgetron's own gadgets set, and recon's method, numbers of samples,
// shots and iterations, and motion of blades.
ISMRMRD::MetaContainer make_image_attributes(const Samples &samples, const ISMRMRD::ImageHeader &header,
                                             const ImageInfo &info);

// Converts magnitudes to 16-bit unsigned integers. All images of an encoding have the same factor, so that they remain
// comparable.
class IntegerConverter {
public:
    // The largest value of the first image of an encoding if no factor is given: images up to 16 times as bright fit.
    static constexpr double FIRST_MAXIMUM = 4095;

    // `scale`: the factor; 0: chosen for the first image of each encoding.
    explicit IntegerConverter(double scale) : scale_(scale) {}

    // Rounds the scaled magnitudes of an image of an encoding. Writes the factor to the attributes, and adds a warning
    // if values exceed the range of 16 bits.
    std::vector<std::uint16_t> convert(std::size_t encoding, const Complex *magnitudes, std::size_t count,
                                       ISMRMRD::MetaContainer &meta, std::vector<std::string> &warnings);

private:
    double scale_;
    std::map<std::size_t, double> chosen_;
};

}  // namespace recon_gadgets
