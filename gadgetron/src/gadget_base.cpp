#include "gadget_base.h"

#include "compatibility.h"
#include "gadget_log.h"

#include <algorithm>
#include <limits>

namespace recon_gadgets {

using Gadgetron::AcquisitionBucket;
using Gadgetron::IsmrmrdImageArray;
using Gadgetron::IsmrmrdReconData;

ReconGadgetBase::ReconGadgetBase(const char *name, Method method, const Gadgetron::Core::Context &context,
                                 const Gadgetron::Core::GadgetProperties &properties)
    : ChannelGadget(context, properties), name_(name), method_(method), properties_(properties) {}

namespace {

// Puts the image before a message, unless the message begins with the image.
std::string located(const std::string &location, const std::string &text) {
    return text.compare(0, location.size(), location) == 0 ? text : location + ": " + text;
}

}  // namespace

void ReconGadgetBase::check_image_series(std::size_t series) const {
    // Each encoding has its own series.
    const std::size_t encodings = std::max<std::size_t>(header.encoding.size(), 1);
    const std::size_t max_series = std::numeric_limits<std::uint16_t>::max() - (encodings - 1);
    if (series > max_series) {
        throw Error("property image_series is \"" + std::to_string(series) +
                    "\": it must be a whole number from 0 to " + std::to_string(max_series) +
                    ", because image_series_index has 16 bits and each encoding has its own series");
    }
}

void ReconGadgetBase::log_errors(const std::string &location, const std::vector<std::string> &problems,
                                 std::size_t images) const {
    if (problems.empty()) {
        return;
    }
    const std::string &problem = problems.front();
    // The library repeats the error of an acquisition as the error of its image.
    const auto is_repeated = [&](const std::string &refusal) {
        return problem.size() >= refusal.size() &&
               problem.compare(problem.size() - refusal.size(), problem.npos, refusal) == 0;
    };
    if (std::any_of(logged_refusals_.begin(), logged_refusals_.end(), is_repeated)) {
        return;
    }
    // Many frames fail for the same reason: only the first error is logged.
    const std::string more = problems.size() > 1 ? " (" + std::to_string(problems.size()) + " images are missing)" : "";
    const std::string others = images > 0 ? ", the other images are made" : "";
    GERROR("%s: %s%s%s\n", name_.c_str(), located(location, problem).c_str(), more.c_str(), others.c_str());
}

void ReconGadgetBase::warn_once(const std::string &location, const std::string &warning) {
    if (warnings_.is_first(warning)) {
        GWARN("%s: %s\n", name_.c_str(), located(location, warning).c_str());
    }
}

namespace {

// Adds an image to the engine's maps, if its attributes say that it is a map and the engine accepts such maps.
template <class Values>
void store_map(Engine &engine, const ISMRMRD::ImageHeader &header, const ISMRMRD::MetaContainer &meta,
               const std::array<std::size_t, 3> &dims, std::size_t channels, const Values &values) {
    const auto kind = map_kind(meta);
    if (!kind || !engine.accepts_voxel_maps(*kind)) {
        return;
    }
    try {
        if (channels != 1) {
            throw Error("an image with the attribute " + std::string(MAP_ATTRIBUTE) + " has " +
                        std::to_string(channels) + " channels: a map must have one channel");
        }
        engine.add_voxel_map(*kind, header.slice, dims, values());
    } catch (const Error &e) {
        engine.refuse_voxel_map(*kind, header.slice, e.what());
        throw;
    }
}

// Returns the values of a map. Throws an Error with both types if they are not real numbers in single precision.
template <class T>
std::vector<float> map_values(const T *from, std::size_t count) {
    if constexpr (std::is_same_v<T, float>) {
        return std::vector<float>(from, from + count);
    } else if constexpr (std::is_same_v<T, Complex>) {
        return real_parts(from, count);
    } else {
        throw Error("an image with the attribute " + std::string(MAP_ATTRIBUTE) + " has " +
                    type_text(data_type_of<T>()) + ", but a map must have " +
                    type_text(ISMRMRD::ISMRMRD_FLOAT) + ": convert it before sending");
    }
}

std::string describe(const ISMRMRD::ImageHeader &h) {
    return "an image of series " + std::to_string(h.image_series_index) + ", slice " + std::to_string(h.slice);
}

}  // namespace

void ReconGadgetBase::store_maps(const IsmrmrdImageArray &images) {
    const auto &data = images.data_;
    const std::array<std::size_t, 3> dims{data.get_size(0), data.get_size(1), data.get_size(2)};
    const std::size_t channels = data.get_size(3), voxels = dims[0] * dims[1] * dims[2];
    const std::size_t count =
        std::min<std::size_t>(images.meta_.size(), images.headers_.get_number_of_elements());
    for (std::size_t i = 0; i < count; ++i) {
        const ISMRMRD::ImageHeader &header = images.headers_[i];
        std::vector<std::string> problems;
        attempt(problems, [&] {
            if ((i + 1) * channels * voxels > data.get_number_of_elements()) {
                throw Error("an image array has more headers than images: correct the gadget that made it");
            }
            const auto values = [&] { return real_parts(data.get_data_ptr() + i * channels * voxels, voxels); };
            store_map(*engine_, header, images.meta_[i], dims, channels, values);
        });
        log_errors(describe(header), problems, 0);
    }
}

template <class T>
void ReconGadgetBase::store_maps(const Gadgetron::Core::Image<T> &image) {
    const auto &header = std::get<ISMRMRD::ImageHeader>(image);
    const auto &data = std::get<Gadgetron::hoNDArray<T>>(image);
    const auto &meta = std::get<Gadgetron::Core::optional<ISMRMRD::MetaContainer>>(image);
    std::vector<std::string> problems;
    attempt(problems, [&] {
        if (meta) {
            const std::array<std::size_t, 3> dims{data.get_size(0), data.get_size(1), data.get_size(2)};
            const auto values = [&] { return map_values(data.get_data_ptr(), dims[0] * dims[1] * dims[2]); };
            store_map(*engine_, header, *meta, dims, data.get_size(3), values);
        }
    });
    log_errors(describe(header), problems, 0);
}

void ReconGadgetBase::log_end(bool had_data) {
    for (const auto &line : refusals_.summary()) {
        GERROR("%s: %s\n", name_.c_str(), line.c_str());
    }
    for (const auto &line : warnings_.summary()) {
        GWARN("%s: %s\n", name_.c_str(), line.c_str());
    }
    if (!had_data) {
        // The channel also ends without data if an earlier gadget failed.
        GWARN("%s: this connection: no acquisition, bucket or buffer came, and no image is made. If the log has an "
              "error of another gadget, that is why. Otherwise the measurement has no image acquisitions, or an "
              "earlier gadget did not pass them on\n",
              name_.c_str());
    }
}

void ReconGadgetBase::begin_scan(bool is_first_gadget) {
    scan_header_ = header;
    auto *measurement = find_value(scan_header_.measurementInformation);
    if (!is_first_gadget && measurement != nullptr) {
        // An earlier gadget uses the noise, or drops it. A noise scan that the header names is not missing here.
        measurement->measurementDependency.clear();
    }
    scan_.emplace(scan_header_, engine_->settings().scan);
}

void ReconGadgetBase::process(Gadgetron::Core::InputChannel<InputMessage> &in, Gadgetron::Core::OutputChannel &out) {
    log_locale(name_.c_str());
    const NumbersInC numbers;
    Settings all = parse_settings(properties_, method_);
    check_image_series(all.series);
    log_properties(name_.c_str(), properties_);
    forward_information();
    engine_.emplace(std::move(all));
    // A property that makes all images impossible ends the connection before any data arrive.
    if (const auto invalid = engine_->find_invalid_property()) {
        throw Error("property " + invalid->first + " is \"" + properties_.given(invalid->first) +
                    "\": " + invalid->second);
    }
    engine_->read_voxel_maps();
    integers_.emplace(engine_->settings().integers.scale);
    bool had_data = false;
    for (auto message : in) {
        Gadgetron::Core::visit(
            [&](auto &input) {
                using Type = std::decay_t<decltype(input)>;
                if constexpr (std::is_same_v<Type, Gadgetron::Core::Acquisition> ||
                              std::is_same_v<Type, IsmrmrdReconData> || std::is_same_v<Type, AcquisitionBucket>) {
                    if (!had_data) {
                        begin_scan(std::is_same_v<Type, Gadgetron::Core::Acquisition>);
                    }
                    had_data = true;
                    send_images(input, out);
                } else {
                    store_maps(input);
                    out.push(std::move(input));
                }
            },
            message);
    }
    if (had_data) {
        scan_->end();
        log_warnings("the end of the measurement");
        send_complete_images(out);
    }
    log_end(had_data);
}

}  // namespace recon_gadgets
