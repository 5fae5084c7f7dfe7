// Log lines that all gadgets have.
#pragma once

#include "settings.h"

#include <log.h>

namespace recon_gadgets {

// Logs the properties of a gadget, after all were read, and those that do not exist.
inline void log_properties(const char *gadget, const Properties &properties) {
    GINFO("%s: recon %s, properties %s\n", gadget, recon_version(), properties.summary().c_str());
    for (const auto &unknown : properties.unknown()) {
        GERROR("%s: property %s does not exist and has no effect: the previous line lists all properties\n", gadget,
               unknown.c_str());
    }
}

}  // namespace recon_gadgets
