// Images from a bucket of acquisitions without a buffer.
#include "gadget_base.h"
#include "image_batch.h"

#include <algorithm>

namespace recon_gadgets {

using Gadgetron::AcquisitionBucket;
using Header = ISMRMRD::AcquisitionHeader;

namespace {

// Encoding, repetition, slice, contrast, phase and set of an image. All averages are combined in one image.
using ImageKey = std::tuple<std::size_t, unsigned, unsigned, unsigned, unsigned, unsigned>;

ImageKey image_key(const Header &h) {
    return ImageKey(std::size_t(h.encoding_space_ref), unsigned(h.idx.repetition), unsigned(h.idx.slice),
                    unsigned(h.idx.contrast), unsigned(h.idx.phase), unsigned(h.idx.set));
}

// The shots of a bucket by purpose.
struct BucketShots {
    std::map<ImageKey, std::vector<Shot>> images;
    std::map<SliceKey, std::vector<Shot>> references;
    std::size_t noise = 0;  // number of noise acquisitions
};

Shot shot_of_message(const Gadgetron::Core::Acquisition &acquisition) {
    const auto &data = std::get<Gadgetron::hoNDArray<Complex>>(acquisition);
    const auto &trajectory = std::get<Gadgetron::Core::optional<Gadgetron::hoNDArray<float>>>(acquisition);
    return shot_of_acquisition(std::get<Header>(acquisition), data.get_data_ptr(), data.get_number_of_elements(),
                               trajectory ? trajectory->get_data_ptr() : nullptr,
                               trajectory ? trajectory->get_number_of_elements() : 0);
}

BucketShots sort_shots(const AcquisitionBucket &bucket) {
    BucketShots shots;
    for (const auto &acquisition : bucket.data_) {
        const auto &header = std::get<Header>(acquisition);
        const std::uint32_t purposes = purposes_of(header);
        shots.noise += purposes & RECON_PURPOSE_NOISE ? 1 : 0;
        if (purposes & RECON_PURPOSE_IMAGE) {
            shots.images[image_key(header)].push_back(shot_of_message(acquisition));
        }
    }
    for (const auto &acquisition : bucket.ref_) {
        const auto &header = std::get<Header>(acquisition);
        const std::uint32_t purposes = purposes_of(header);
        if (purposes & RECON_PURPOSE_CALIBRATION) {
            shots.references[slice_key(header)].push_back(shot_of_message(acquisition));
        }
        if (purposes & RECON_PURPOSE_IMAGE && is_only_in_reference(header)) {
            shots.images[image_key(header)].push_back(shot_of_message(acquisition));
        }
    }
    return shots;
}

// Returns the counters of shots, which are 0 at the first expected shot.
std::vector<EncodingStep> steps_of(const std::vector<Shot> &shots, const ExpectedShots &expected) {
    std::vector<EncodingStep> steps;
    std::transform(shots.begin(), shots.end(), std::back_inserter(steps), [&](const Shot &shot) {
        EncodingStep step = shot.step;
        for (int axis = 0; axis < 2; ++axis) {
            step[axis] -= std::min(step[axis], expected.first[axis]);
        }
        return step;
    });
    return steps;
}

}  // namespace

void ReconGadgetBase::send_image(Engine &engine, const std::vector<Shot> &shots, Gadgetron::Core::OutputChannel &out) {
    const Header &first = *shots.front().header;
    std::vector<std::string> problems;
    attempt(problems, [&] {
        const Spaces spaces = spaces_of(first.encoding_space_ref, nullptr);
        warn_once(describe(first), collectors_[slice_key(first)].add(spaces.expected, first.idx.repetition,
                                                                    steps_of(shots, spaces.expected)));
        ImageBatch one(make_grid(spaces, dimensions(spaces)), engine.channel_count(first.active_channels), 1, 1, 1);
        make_image(engine, shots, spaces, one, 0);
        if (engine.settings().send == MessageForm::ImageArrays) {
            one.send_arrays(out);
        } else {
            one.send_image(out);
        }
    });
    log_errors(describe(first), problems, 0);
}

void ReconGadgetBase::send_images(Engine &engine, const AcquisitionBucket &bucket,
                                  Gadgetron::Core::OutputChannel &out) {
    BucketShots shots;
    std::vector<std::string> problems;
    attempt(problems, [&] {
        shots = sort_shots(bucket);
        if (shots.noise > 0) {
            warn_once("a bucket", Warning{WarningCause::UnusedNoise,
                                          std::to_string(shots.noise) +
                                              " noise acquisitions are not used, and the data are not whitened: put "
                                              "ReconNoiseGadget before the gadget that makes buckets"});
        }
        for (const auto &reference : shots.references) {
            store_calibration(reference.second);
        }
        // A bucket may contain only calibration data for later buckets.
        if (shots.images.empty() && shots.references.empty()) {
            throw Error("the bucket has no acquisitions: there is nothing to reconstruct");
        }
    });
    log_errors("a bucket", problems, 0);
    if (problems.empty()) {
        for (const auto &image : shots.images) {
            send_image(engine, image.second, out);
        }
    }
}

}  // namespace recon_gadgets
