// What the log and an image's attributes say about the motion of PROPELLER blades.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace recon_gadgets {

// Where the object was while a blade was measured, from its mean position over all blades, as recon_propeller tells it.
struct BladeMotion {
    double rotation = 0;                    // degrees from x to y, about voxel floor(n/2)
    std::array<double, 2> translation{};    // voxels along x and y, after the rotation
    double phase = 0;                       // radians that were taken from the blade
    double correlation = 0, weight = 0;     // with the other blades, and in the image; both from 0 to 1
};

// The blades of an image.
struct BladesFound {
    std::size_t lines = 0;  // of a blade
    std::vector<BladeMotion> motion;
};

// "17 blades of 24 lines: turned by up to 9.81 degrees, moved by up to 4.52 voxels, ...".
std::string summary(const BladesFound &blades);

// "blade 3: turned by -2.310 degrees, moved by 0.512, -1.204 voxels, ...".
std::string line(const BladesFound &blades, std::size_t blade);

}  // namespace recon_gadgets
