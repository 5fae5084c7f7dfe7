#include "voxel_maps.h"

#include "text.h"

#include <ismrmrd/dataset.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

namespace recon_gadgets {

namespace {

// Returns whether voxels of reconSpace and encodedSpace have the same size, as the program and recon_resize do.
bool has_equal_voxels(const Grid &grid) {
    for (unsigned axis = 0; axis < grid.ndim; ++axis) {
        const double encoded = grid.encoded_fov[axis], recon = grid.recon_fov[axis];
        if (encoded > 0 && recon > 0 &&
            std::llround(double(grid.image[axis]) * encoded / recon) != (long long)(grid.dims[axis])) {
            return false;
        }
    }
    return true;
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
    refused_.erase({kind, slice});
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
        throw Error(where + "no such file exists; the property must be none, images, or an ISMRMRD file");
    }
    std::uint32_t count = 0;
    std::set<unsigned> slices;
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
                throw Error(where + "image " + std::to_string(i) + " of dataset/" + group + " has " +
                            count_text(head.channels, "channel") + " of " + type_text(head.data_type) +
                            ": a map must have one channel of " +
                            type_text(ISMRMRD::ISMRMRD_FLOAT));
            }
            const float *values = image.getDataPtr();
            if (!slices.insert(head.slice).second) {
                throw Error(where + "dataset/" + group + " has several images of slice " + std::to_string(head.slice) +
                            ": store one map for all slices, or one per slice");
            }
            add(kind, count == 1 ? ALL_SLICES : head.slice, dims,
                std::vector<float>(values, values + dims[0] * dims[1] * dims[2]));
        }
    } catch (const Error &) {
        throw;
    } catch (const std::exception &e) {
        throw Error(where + "it cannot be read as an ISMRMRD file with images in dataset/" + group +
                    "; set property map_series to the series of the maps");
    }
    if (count == 0) {
        throw Error(where + "it has no images in dataset/" + group +
                    "; set property map_series to the series of the maps");
    }
}

const VoxelMap *VoxelMaps::find(MapKind kind, unsigned slice) const {
    auto found = maps_.find({kind, slice});
    if (found == maps_.end()) {
        found = maps_.find({kind, ALL_SLICES});
    }
    return found == maps_.end() ? nullptr : &found->second;
}

const VoxelMap *VoxelMaps::fit(MapKind kind, unsigned slice, const Grid &grid) {
    if (find(kind, slice) == nullptr) {
        return nullptr;
    }
    VoxelMap &map = maps_.at({kind, maps_.count({kind, slice}) > 0 ? slice : ALL_SLICES});
    if (map.dims == grid.dims) {
        return &map;
    }
    if (map.dims != grid.image || !has_equal_voxels(grid)) {
        throw Error(std::string("the map of property ") + property_of(kind) + " has " + size_text(map.dims) +
                    " voxels, but the image is computed on the " + size_text(grid.dims) +
                    " of encodedSpace: make the map with that matrix and field of view, or with those of reconSpace (" +
                    size_text(grid.image) + ") if its voxels have the same size");
    }
    // The position of the voxel with index floor(n/2) does not change.
    std::vector<float> values(grid.voxels());
    const auto shifted = [&](std::size_t i, unsigned axis) {
        return std::ptrdiff_t(i) - std::ptrdiff_t(grid.image[axis] / 2) + std::ptrdiff_t(grid.dims[axis] / 2);
    };
    const auto inside = [&](std::ptrdiff_t i, unsigned axis) { return i >= 0 && std::size_t(i) < grid.dims[axis]; };
    for (std::size_t from = 0; from < map.values.size(); ++from) {
        const std::ptrdiff_t x = shifted(from % map.dims[0], 0), y = shifted(from / map.dims[0] % map.dims[1], 1),
                             z = shifted(from / (map.dims[0] * map.dims[1]), 2);
        if (inside(x, 0) && inside(y, 1) && inside(z, 2)) {
            values[std::size_t(x) + grid.dims[0] * (std::size_t(y) + grid.dims[1] * std::size_t(z))] = map.values[from];
        }
    }
    map.values = std::move(values);
    map.dims = grid.dims;
    return &map;
}

std::size_t VoxelMaps::count(MapKind kind) const {
    const auto same = [&](const auto &map) { return map.first.first == kind; };
    return std::size_t(std::count_if(maps_.begin(), maps_.end(), same));
}

const std::string *VoxelMaps::refusal(MapKind kind, unsigned slice) const {
    const auto found = refused_.find({kind, slice});
    return found == refused_.end() ? nullptr : &found->second;
}

std::string type_text(std::uint16_t data_type) {
    switch (data_type) {
        case ISMRMRD::ISMRMRD_USHORT: return "16-bit unsigned integers (unsigned short)";
        case ISMRMRD::ISMRMRD_SHORT: return "16-bit integers (short)";
        case ISMRMRD::ISMRMRD_UINT: return "32-bit unsigned integers (unsigned int)";
        case ISMRMRD::ISMRMRD_INT: return "32-bit integers (int)";
        case ISMRMRD::ISMRMRD_FLOAT: return "32-bit real numbers (float)";
        case ISMRMRD::ISMRMRD_DOUBLE: return "64-bit real numbers (double)";
        case ISMRMRD::ISMRMRD_CXFLOAT: return "32-bit complex numbers (complex float)";
        case ISMRMRD::ISMRMRD_CXDOUBLE: return "64-bit complex numbers (complex double)";
        default: return "an unknown type of numbers (" + std::to_string(data_type) + ")";
    }
}

std::vector<float> real_parts(const Complex *values, std::size_t count) {
    std::vector<float> real(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (values[i].imag() != 0) {
            throw Error(std::string("an image with the attribute ") + MAP_ATTRIBUTE +
                        " has complex numbers, but a map must be real: send the real part");
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
