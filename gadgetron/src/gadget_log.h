// Log lines that all gadgets have.
#pragma once

#include "compatibility.h"
#include "settings.h"

#include <log.h>

namespace recon_gadgets {

// Sends the library's information, such as the noise that whitens the coils, to Gadgetron's log. Warnings are logged by
// the gadgets, with the image.
inline void forward_information() {
    const auto forward = [](const recon_log_message *message, void *) {
        if (message->level == RECON_LOG_INFO) {
            GINFO("recon: %s\n", message->text);
        }
    };
    check(recon_set_log_callback(forward, nullptr, RECON_LOG_INFO));
}

// Warns of a locale in which Gadgetron reads the XML header wrongly.
inline void log_locale(const char *gadget) {
    const std::string warning = locale_warning();
    if (!warning.empty()) {
        GWARN("%s: %s\n", gadget, warning.c_str());
    }
}

// Logs the properties of a gadget, after all were read, and those that do not exist.
inline void log_properties(const char *gadget, const Properties &properties) {
    GINFO("%s: recon %s, properties %s\n", gadget, recon_version(), properties.summary().c_str());
    for (const auto &unknown : properties.unknown()) {
        GERROR("%s: property %s does not exist and has no effect: the previous line lists all properties\n", gadget,
               unknown.c_str());
    }
}

}  // namespace recon_gadgets
