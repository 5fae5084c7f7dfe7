// Calibration data for coil maps, selected and converted as by the program `recon` (src/cli/run/calibration.rs).
#pragma once

#include "conversion.h"

#include <list>
#include <optional>
#include <vector>

namespace recon_gadgets {

// The calibration data of a connection.
class CalibrationData {
public:
    // Stores a copy of the samples. They replace earlier samples of the same encoding, slice, contrast, phase and set.
    void add(const Samples &samples, const Spaces &spaces);

    // Returns the calibration data of a scan's slice as samples of the scan's encoded matrix, or nothing if the slice
    // has none. If there are several, those that share most other counters with the scan are used. Throws an Error if
    // they have a different number of coils or dimensions, a different position or orientation, or no samples within
    // the scan's k-space.
    std::optional<Samples> for_scan(const Samples &scan, const Spaces &spaces) const;

    bool empty() const { return all_.empty(); }

private:
    struct Entry {
        Samples samples;
        Spaces spaces;
    };
    std::list<Entry> all_;
};

}  // namespace recon_gadgets
