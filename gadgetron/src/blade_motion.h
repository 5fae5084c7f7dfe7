// The motion of PROPELLER blades, for the log and for the attributes of an image.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace recon_gadgets {

// The motion of the object during a blade, relative to its mean position over all blades, from recon_propeller.
struct BladeMotion {
    double rotation = 0;                    // degrees from x to y, about voxel floor(n/2)
    std::array<double, 2> translation{};    // voxels along x and y, after the rotation
    double phase = 0;                       // radians that were subtracted from the blade
    double correlation = 0;                 // correlation with the other blades, 0 to 1
    double weight = 0;                      // weight in the image, 0 to 1
};

// The blades of an image.
struct BladeReport {
    std::size_t lines = 0;  // number of lines of each blade
    std::vector<BladeMotion> motion;
};

// Summarises the motion of all blades: "17 blades of 24 lines: turned by up to 9.81 degrees, moved by
// up to 4.52 voxels, ...".
std::string blade_summary(const BladeReport &blades);

// Describes the motion of one blade: "blade 3: turned by -2.310 degrees, moved by 0.512, -1.204 voxels, ...".
std::string blade_text(const BladeReport &blades, std::size_t blade);

}  // namespace recon_gadgets
