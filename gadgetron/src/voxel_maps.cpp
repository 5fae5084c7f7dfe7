#include "voxel_maps.h"

#include <ismrmrd/dataset.h>

#include <algorithm>
#include <fstream>

namespace recon_gadgets {

namespace {

std::string size_text(const std::array<std::size_t, 3> &n) {
    return std::to_string(n[0]) + " x " + std::to_string(n[1]) + " x " + std::to_string(n[2]);
}

}  // namespace

const char *property_of(MapKind kind) {
    return kind == MapKind::Field ? "field_map" : "decay_map";
}

MapSource parse_map_source(MapKind kind, const std::string &value) {
    if (value.empty()) {
        throw Error(std::string("property ") + property_of(kind) +
                    " is \"\": it must be none, images, or the name of an ISMRMRD file");
    }
    MapSource source;
    source.images = value == "images";
    if (!source.images && value != "none") {
        source.file = value;
    }
    return source;
}

void VoxelMaps::add(MapKind kind, unsigned slice, const std::array<std::size_t, 3> &dims, std::vector<float> values) {
    auto &kept = maps_[{kind, slice}];
    if (kept.id != 0 && kept.dims == dims && kept.values == values) {
        return;
    }
    kept.id = ++last_id_;
    kept.dims = dims;
    kept.values = std::move(values);
}

void VoxelMaps::read(MapKind kind, const std::string &file, std::size_t series) {
    const std::string group = "image_" + std::to_string(series);
    const std::string where = std::string("property ") + property_of(kind) + " is \"" + file + "\": ";
    if (!std::ifstream(file)) {
        throw Error(where + "there is no such file; it must be none, images, or an ISMRMRD file");
    }
    std::uint32_t count = 0;
    try {
        ISMRMRD::Dataset images(file.c_str(), "dataset", false);
        count = images.getNumberOfImages(group);
        for (std::uint32_t i = 0; i < count; ++i) {
            ISMRMRD::Image<float> image;
            images.readImage(group, i, image);
            // The library does not compare the file's type of numbers with that of the image.
            const ISMRMRD::ImageHeader head = image.getHead();
            const std::array<std::size_t, 3> dims{head.matrix_size[0], head.matrix_size[1], head.matrix_size[2]};
            if (head.data_type != ISMRMRD::ISMRMRD_FLOAT || head.channels != 1) {
                throw Error(where + "image " + std::to_string(i) + " of dataset/" + group +
                            " is no map: a map has one channel of real numbers in single precision");
            }
            const float *values = image.getDataPtr();
            add(kind, head.slice, dims, std::vector<float>(values, values + dims[0] * dims[1] * dims[2]));
        }
    } catch (const Error &) {
        throw;
    } catch (const std::exception &e) {
        throw Error(where + "it cannot be read as an ISMRMRD file with images in dataset/" + group +
                    "; property map_series names another series");
    }
    if (count == 0) {
        throw Error(where + "it has no images in dataset/" + group + "; property map_series names another series");
    }
}

const VoxelMap *VoxelMaps::find(MapKind kind, unsigned slice, const Grid &grid) const {
    const auto found = maps_.find({kind, slice});
    if (found == maps_.end()) {
        return nullptr;
    }
    const VoxelMap &map = found->second;
    if (map.dims != grid.dims) {
        const bool smaller = map.dims == grid.image;
        throw Error(std::string("the map of property ") + property_of(kind) + " has " + size_text(map.dims) +
                    " voxels, and the image is computed on the " + size_text(grid.dims) + " of encodedSpace" +
                    (smaller ? ", before it is brought to reconSpace" : "") +
                    ": make the map with that matrix and field of view");
    }
    return &map;
}

std::size_t VoxelMaps::count(MapKind kind) const {
    const auto same = [&](const auto &map) { return map.first.first == kind; };
    return std::size_t(std::count_if(maps_.begin(), maps_.end(), same));
}

std::vector<float> real_parts(const Complex *values, std::size_t count) {
    std::vector<float> real(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (values[i].imag() != 0) {
            throw Error(std::string("an image with the attribute ") + MAP_ATTRIBUTE +
                        " has complex numbers: maps are real");
        }
        real[i] = values[i].real();
    }
    return real;
}

std::optional<MapKind> map_kind(const ISMRMRD::MetaContainer &meta) {
    if (meta.length(MAP_ATTRIBUTE) == 0) {
        return {};
    }
    const std::string value = meta.as_str(MAP_ATTRIBUTE);
    for (const MapKind kind : {MapKind::Field, MapKind::Decay}) {
        if (value == property_of(kind)) {
            return kind;
        }
    }
    throw Error(std::string("an image has the attribute ") + MAP_ATTRIBUTE + " = \"" + value +
                "\": it must be field_map (Hz) or decay_map (1/s)");
}

}  // namespace recon_gadgets
