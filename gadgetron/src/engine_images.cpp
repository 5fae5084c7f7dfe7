// From computed images to the image of the gadget: resized, combined, as a magnitude. Initial images of iterations.
#include "engine.h"

#include "library.h"
#include "text.h"

#include <algorithm>

namespace recon_gadgets {

bool Engine::combines_coils(std::size_t images) const {
    return images > 1 && settings_.output != ImageOutput::Coils;
}

bool Engine::combines_adaptively() const {
    return settings_.combine == CoilCombination::Adaptive ||
           (settings_.combine == CoilCombination::Auto && settings_.output == ImageOutput::Complex);
}

const Complex *Engine::initial_image(const ImageTask &task) {
    const auto found = last_images_.find(task.samples.slice_key());
    if (!settings_.warm_start || found == last_images_.end()) {
        return nullptr;
    }
    const LastImage &last = found->second;
    if (last.images == task.image_count() && last.dims == task.grid.dims) {
        return last.values.data();
    }
    const auto shape = [](const std::array<std::size_t, 3> &dims, std::size_t images) {
        return size_text(dims) + " voxels in " + count_text(images, "channel");
    };
    add_warning("property warm_start: the last image of this slice has " + shape(last.dims, last.images) +
                    ", this one " + shape(task.grid.dims, task.image_count()) +
                    ": the iterations start from zeros, and the image is less sharp if they are few");
    return nullptr;
}

void Engine::store_last_image(const ImageTask &task, const Complex *computed) {
    auto &last = last_images_[task.samples.slice_key()];
    last.values.assign(computed, computed + task.grid.voxels() * task.image_count());
    last.images = task.image_count();
    last.dims = task.grid.dims;
}

bool Engine::finish_image(const ImageTask &task, const Complex *computed, Complex *image) {
    const bool combined = combines_coils(task.image_count()), resized = task.grid.needs_resize();
    const bool magnitude = settings_.output == ImageOutput::Magnitude;
    if (resized) {
        Complex *to = image;
        if (combined) {
            resized_.resize(task.grid.image_voxels() * task.image_count());
            to = resized_.data();
        }
        resize(task, computed, to);
        computed = to;
    }
    if (combined) {
        combine(task, computed, image);
    }
    if (magnitude) {
        std::for_each(image, image + task.grid.image_voxels(), [](Complex &z) { z = std::abs(z); });
    }
    return combined || resized || magnitude;
}

void Engine::resize(const ImageTask &task, const Complex *computed, Complex *resized) const {
    auto geometry = initialised(recon_geometry_init);
    geometry.ndim = task.grid.ndim;
    geometry.coils = task.image_count();
    std::copy(task.grid.dims.begin(), task.grid.dims.end(), geometry.dims);
    const std::array<std::uint64_t, 3> dims{task.grid.image[0], task.grid.image[1], task.grid.image[2]};
    const recon_status status = recon_resize(&geometry, task.grid.encoded_fov.data(), dims.data(),
                                             task.grid.recon_fov.data(), computed, resized);
    if (status == RECON_SIZE_OVERFLOW) {
        throw Error(std::string("fieldOfView_mm of encodedSpace and reconSpace in the XML header: ") +
                    recon_last_error_message());
    }
    check(status);
}

void Engine::combine(const ImageTask &task, const Complex *images, Complex *image) const {
    auto geometry = initialised(recon_geometry_init);
    geometry.ndim = task.grid.ndim;
    geometry.coils = task.image_count();
    std::copy(task.grid.image.begin(), task.grid.image.end(), geometry.dims);
    check(recon_combine(&geometry,
                        combines_adaptively() ? RECON_COMBINE_ADAPTIVE : RECON_COMBINE_ROOT_SUM_OF_SQUARES, images,
                        image));
}

}  // namespace recon_gadgets
