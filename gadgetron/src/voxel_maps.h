// Maps of off-resonance and of decay: one number for each voxel, from a file or from images in the chain.
#pragma once

#include "conversion.h"

#include <map>
#include <optional>
#include <utility>

namespace recon_gadgets {

enum class MapKind { Field, Decay };

// The property that names the source of a map; an image that is one has it as its attribute MAP_ATTRIBUTE.
const char *property_of(MapKind kind);
constexpr const char *MAP_ATTRIBUTE = "recon_map";

// Where a map comes from: nowhere, from images in the chain before the data, or from a file.
struct MapSource {
    bool images = false;
    std::string file;

    explicit operator bool() const { return images || !file.empty(); }
};

// The property field_map or decay_map: none, images, or the name of a file.
MapSource parse_map_source(MapKind kind, const std::string &value);

// Off-resonance in Hz, or decay rates in 1/s, of one slice.
struct VoxelMap {
    std::size_t id = 0;  // of these numbers, from 1
    std::array<std::size_t, 3> dims{};
    std::vector<float> values;
};

// The maps of all slices. A map belongs to all contrasts, phases, sets and repetitions of its slice.
class VoxelMaps {
public:
    // In place of a slice's number: a map that serves all slices that have none of their own.
    static constexpr unsigned ALL_SLICES = ~0u;

    // Takes a map of a slice, in place of one before. It keeps its id where the numbers are the same.
    void add(MapKind kind, unsigned slice, const std::array<std::size_t, 3> &dims, std::vector<float> values);
    // The images of group dataset/image_SERIES in an ISMRMRD file, real numbers in single precision, as the program
    // writes them: one for all slices, or one for each. Ends with an error that names the file.
    void read(MapKind kind, const std::string &file, std::size_t series);
    // The map of a slice, or null.
    const VoxelMap *find(MapKind kind, unsigned slice) const;
    // The same on the matrix of encodedSpace, on which images are computed. One on that of reconSpace is surrounded by
    // zeros, where its voxels are as large. Ends with an error where it has another matrix.
    const VoxelMap *fit(MapKind kind, unsigned slice, const Grid &grid, const Spaces &spaces);
    std::size_t count(MapKind kind) const;

    // Remembers why an image that should be the map of a slice was refused. A later map of the slice clears it.
    void refuse(MapKind kind, unsigned slice, std::string reason) { refused_[{kind, slice}] = std::move(reason); }
    // The reason, or null.
    const std::string *refusal(MapKind kind, unsigned slice) const;

private:
    std::map<std::pair<MapKind, unsigned>, VoxelMap> maps_;
    std::map<std::pair<MapKind, unsigned>, std::string> refused_;
    std::size_t last_id_ = 0;
};

// The name of an ISMRMRD data type for messages: "64-bit real numbers (double)".
std::string type_text(std::uint16_t data_type);

// An image's real numbers, from complex ones whose imaginary parts are zero.
std::vector<float> real_parts(const Complex *values, std::size_t count);

// Which map an image is by its attributes: none where they have no MAP_ATTRIBUTE.
std::optional<MapKind> map_kind(const ISMRMRD::MetaContainer &meta);

}  // namespace recon_gadgets
