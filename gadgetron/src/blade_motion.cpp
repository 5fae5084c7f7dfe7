#include "blade_motion.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace recon_gadgets {

std::string blade_summary(const BladeReport &blades) {
    double rotation = 0, translation = 0, correlation = 1, weight = 1;
    for (const auto &m : blades.motion) {
        rotation = std::max(rotation, std::fabs(m.rotation));
        translation = std::max(translation, std::hypot(m.translation[0], m.translation[1]));
        correlation = std::min(correlation, m.correlation);
        weight = std::min(weight, m.weight);
    }
    char text[256];
    std::snprintf(text, sizeof text,
                  "%zu blades of %zu lines: turned by up to %.2f degrees, moved by up to %.2f voxels from the mean; "
                  "least correlation %.3f, least weight %.2f",
                  blades.motion.size(), blades.lines, rotation, translation, correlation, weight);
    return text;
}

std::string blade_text(const BladeReport &blades, std::size_t blade) {
    const BladeMotion &m = blades.motion[blade];
    char text[256];
    std::snprintf(text, sizeof text,
                  "blade %zu: turned by %.3f degrees, moved by %.3f, %.3f voxels, phase %.3f; correlation %.3f, "
                  "weight %.2f",
                  blade, m.rotation, m.translation[0], m.translation[1], m.phase, m.correlation, m.weight);
    return text;
}

}  // namespace recon_gadgets
