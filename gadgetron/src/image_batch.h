// The images of some frames, on their way to the next gadget.
#pragma once

#include "image_headers.h"

#include <Node.h>
#include <mri_core_data.h>

#include <vector>

namespace recon_gadgets {

// Images of frames [N, S, LOC]. Images whose reconstruction failed are missing.
class ImageBatch {
public:
    // Allocates the images. Throws an Error if they exceed the free memory.
    ImageBatch(const Grid &grid, std::size_t channels, std::size_t n, std::size_t s, std::size_t loc);

    // Returns the values of an image, which set_image completes.
    Complex *values(std::size_t frame) { return array_.data_.get_data_ptr() + frame * image_elements(); }
    // Sets header and attributes of an image whose values are written.
    void set_image(std::size_t frame, const Samples &samples, const ImageInfo &info);

    // Returns the bytes of the images that are not written yet, and of the two copies of an image that the next
    // gadgets (ComplexToFloatGadget and the writer) make while the next image is computed.
    std::uint64_t pending_bytes() const;

    // Sends the image of frame 0. The batch must have one image, and is empty afterwards.
    void send_image(Gadgetron::Core::OutputChannel &out);
    // Sends the image of frame 0, a magnitude, as 16-bit unsigned integers. Adds warnings of the conversion.
    void send_integers(IntegerConverter &converter, std::vector<std::string> &warnings,
                       Gadgetron::Core::OutputChannel &out);
    // Sends one array if no image is missing, else one array for each image. Headers identify the images.
    void send_arrays(Gadgetron::Core::OutputChannel &out);

private:
    // Returns [x, y, z, channels].
    std::vector<std::size_t> image_dims();
    std::size_t image_elements() const { return array_.data_.get_number_of_elements() / has_image_.size(); }

    Gadgetron::IsmrmrdImageArray array_;
    std::vector<char> has_image_;
};

}  // namespace recon_gadgets
