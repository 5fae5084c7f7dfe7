// Maps of off-resonance and of decay: one number per voxel, from a file or from images in the chain.
#pragma once

#include "samples.h"

#include <ismrmrd/meta.h>

namespace recon_gadgets {

// Off-resonance in Hz, or decay rates R2* in 1/s.
enum class MapKind { Field, Decay };

// Returns the property for the source of a map. An image that is a map has this text as its attribute MAP_ATTRIBUTE.
const char *property_of(MapKind kind);

// Name of the attribute.
constexpr const char *MAP_ATTRIBUTE = "recon_map";

// The source of a map: none, images in the chain before the data, or a file.
struct MapSource {
    bool images = false;
    std::string file;

    explicit operator bool() const { return images || !file.empty(); }
};

// Returns the source that the property field_map or decay_map sets: none, images, or the name of a file.
MapSource parse_map_source(MapKind kind, const std::string &value);

// The map of one slice.
struct VoxelMap {
    std::size_t id = 0;  // number of the values, from 1; new values have a new id
    std::array<std::size_t, 3> dims{};
    std::vector<float> values;
};

// The maps of all slices. A map belongs to all contrasts, phases, sets and repetitions of its slice.
class VoxelMaps {
public:
    // Slice number of a map for all slices that do not have their own map.
    static constexpr unsigned ALL_SLICES = ~0u;

    // Adds the map of a slice, which replaces a previous one. Equal maps keep their id.
    void add(MapKind kind, unsigned slice, const std::array<std::size_t, 3> &dims, std::vector<float> values);
    // Reads the images of group dataset/image_SERIES in an ISMRMRD file, real numbers in single precision as the
    // program writes them: one for all slices, or one per slice. Throws an Error that names the file.
    void read(MapKind kind, const std::string &file, std::size_t series);
    // Returns the map of a slice, or null.
    const VoxelMap *find(MapKind kind, unsigned slice) const;
    // Returns the map of a slice, or null, on the matrix of encodedSpace, on which images are computed. A map on the
    // matrix of reconSpace is padded with zeros if its voxels have the same size. Throws an Error for other matrices.
    const VoxelMap *fit(MapKind kind, unsigned slice, const Grid &grid);
    // Returns the number of maps of a kind.
    std::size_t count(MapKind kind) const;

    // Stores why an image cannot be the map of a slice. A later map of the slice removes the reason.
    void refuse(MapKind kind, unsigned slice, std::string reason) { refused_[{kind, slice}] = std::move(reason); }
    // Returns the reason, or null.
    const std::string *refusal(MapKind kind, unsigned slice) const;

private:
    std::map<std::pair<MapKind, unsigned>, VoxelMap> maps_;
    std::map<std::pair<MapKind, unsigned>, std::string> refused_;
    std::size_t last_id_ = 0;
};

// Describes an ISMRMRD data type: "64-bit real numbers (double)".
std::string type_text(std::uint16_t data_type);

// Returns the real parts of complex numbers. Throws an Error if an imaginary part is not zero.
std::vector<float> real_parts(const Complex *values, std::size_t count);

// Returns the kind of map that the attributes of an image announce, or nothing without MAP_ATTRIBUTE.
std::optional<MapKind> map_kind(const ISMRMRD::MetaContainer &meta);

}  // namespace recon_gadgets
