// Calibration data for coil maps, chosen and converted by the rule of the program `recon` (src/cli/calibration.rs).
#pragma once

#include "conversion.h"

#include <list>
#include <optional>
#include <vector>

namespace recon_gadgets {

// The calibration data of a connection.
class CalibrationData {
public:
    // Keeps a copy of the samples. They replace earlier samples of the same encoding, slice, contrast, phase and set.
    void add(const Samples &samples, const Spaces &spaces);

    // Returns the calibration data of a scan's slice as samples of the scan's encoded matrix: those that share most of
    // its other counters. Nothing if the slice has none. Ends with an error if they have a different number of coils or
    // dimensions, a different position or orientation, or no samples within the scan's k-space.
    std::optional<Samples> of_scan(const Samples &scan, const Spaces &spaces) const;

    bool empty() const { return all_.empty(); }

private:
    struct Entry {
        Samples samples;
        Spaces spaces;
    };
    std::list<Entry> all_;
};

}  // namespace recon_gadgets
