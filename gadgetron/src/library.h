// Calls of recon's C API: initial values of structures, errors as exceptions, and warnings.
#pragma once

#include "conversion.h"

#include <recon.h>

#include <cstdint>
#include <map>
#include <string>

namespace recon_gadgets {

// Throws an Error with the library's message if a call failed.
void check(recon_status status);

// Returns a structure with the library's defaults. `init`: the structure's _init function.
template <class S>
S initialised(recon_status (*init)(S *, std::uint32_t)) {
    S s;
    check(init(&s, sizeof s));
    return s;
}

// Returns the bytes that a plan holds on host and device.
std::uint64_t plan_bytes(const recon_plan *plan);

// Returns the cause for a kind of the library's warnings.
WarningCause cause_of(std::uint32_t kind);

// Returns the warnings of the last call on this thread, joined for each cause. `prefix` begins each text.
std::map<WarningCause, std::string> warnings_of_call(const std::string &prefix = "");

}  // namespace recon_gadgets
