// Calls of recon's C API: errors as exceptions, and warnings.
#pragma once

#include "conversion.h"

#include <recon.h>

#include <cstdint>
#include <map>
#include <string>

namespace recon_gadgets {

// Throws an Error with the library's text if a call failed.
void check(recon_status status);

// Returns the cause of a warning of the library, by its kind.
Cause cause_of(std::uint32_t kind);

// Returns the warnings of the last call on this thread, joined for each cause. `prefix` begins each text.
std::map<Cause, std::string> warnings_of_call(const std::string &prefix = "");

}  // namespace recon_gadgets
