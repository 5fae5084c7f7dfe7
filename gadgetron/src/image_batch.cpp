#include "image_batch.h"

#include "text.h"

#include <algorithm>

namespace recon_gadgets {

ImageBatch::ImageBatch(const Grid &grid, std::size_t channels, std::size_t n, std::size_t s, std::size_t loc)
    : has_image_(n * s * loc) {
    const std::size_t images = n * s * loc;
    // Linux kills a process that uses more memory than available, so a wrong matrix in the XML header is refused here.
    // The estimate includes two images of the grid; the plan is estimated later. ImageArraySplitGadget makes two copies
    // of an array, and its images are a third one.
    const double copies = images > 1 ? 4 : 1;
    const double bytes = copies * double(grid.image_voxels()) * double(channels * images) * sizeof(Complex) +
                         2.0 * double(grid.voxels()) * sizeof(Complex);
    if (recon_check_free_memory(std::uint64_t(std::min(bytes, 1e18))) != RECON_OK) {
        throw Error(count_text(images, "image") + " of " + size_text(grid.image) + " voxels: " +
                    recon_last_error_message() +
                    ". Correct the matrices in the XML header, or reconstruct fewer images at once");
    }
    array_.data_.create(
        std::vector<std::size_t>{grid.image[0], grid.image[1], grid.image[2], channels, n, s, loc});
    array_.headers_.create(std::vector<std::size_t>{n, s, loc});
    array_.meta_.resize(images);
}

void ImageBatch::set_image(std::size_t frame, const Samples &samples, const ImageInfo &info) {
    array_.headers_[frame] = make_image_header(samples, info);
    array_.meta_[frame] = make_image_attributes(samples, array_.headers_[frame], info);
    has_image_[frame] = 1;
}

std::uint64_t ImageBatch::pending_bytes() const {
    const auto missing = std::uint64_t(std::count(has_image_.begin(), has_image_.end(), char(0)));
    return (missing + 2) * image_elements() * sizeof(Complex);
}

std::vector<std::size_t> ImageBatch::image_dims() {
    std::vector<std::size_t> dims;
    array_.data_.get_dimensions(dims);
    dims.resize(4);
    return dims;
}

void ImageBatch::send_integers(IntegerConverter &converter, std::vector<std::string> &warnings,
                               Gadgetron::Core::OutputChannel &out) {
    auto &header = array_.headers_[0];
    auto &meta = array_.meta_[0];
    const std::size_t encoding = std::size_t(meta.as_long("encoding"));
    const auto values = converter.convert(encoding, this->values(0), image_elements(), meta, warnings);
    Gadgetron::hoNDArray<std::uint16_t> data(image_dims());
    std::copy(values.begin(), values.end(), data.get_data_ptr());
    header.data_type = ISMRMRD::ISMRMRD_USHORT;
    out.push(Gadgetron::Core::Image<std::uint16_t>(header, std::move(data), std::move(meta)));
}

void ImageBatch::send_image(Gadgetron::Core::OutputChannel &out) {
    array_.data_.reshape(image_dims());
    out.push(Gadgetron::Core::Image<Complex>(array_.headers_[0], std::move(array_.data_), std::move(array_.meta_[0])));
}

void ImageBatch::send_arrays(Gadgetron::Core::OutputChannel &out) {
    if (std::find(has_image_.begin(), has_image_.end(), char(0)) == has_image_.end()) {
        out.push(std::move(array_));
        return;
    }
    std::vector<std::size_t> dims = image_dims();
    dims.resize(7, 1);
    for (std::size_t frame = 0; frame < has_image_.size(); ++frame) {
        if (has_image_[frame]) {
            Gadgetron::IsmrmrdImageArray one;
            one.data_.create(dims);
            std::copy_n(values(frame), image_elements(), one.data_.get_data_ptr());
            one.headers_.create(std::vector<std::size_t>{1, 1, 1});
            one.headers_[0] = array_.headers_[frame];
            one.meta_.push_back(array_.meta_[frame]);
            out.push(std::move(one));
        }
    }
}

}  // namespace recon_gadgets
