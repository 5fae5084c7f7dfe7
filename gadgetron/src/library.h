// Calls of recon's C API: initial values of structures, errors as exceptions, and warnings.
#pragma once

#include <recon.h>

#include <complex>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace recon_gadgets {

using Complex = std::complex<float>;

// An error in the data or the properties. The text is one line with cause and remedy.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

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

// Returns the warnings of the last call on this thread. `prefix` begins each text.
std::vector<std::string> warnings_of_call(const std::string &prefix = "");

// Returns whether two messages differ only in their numbers: they have the same cause.
bool has_same_cause(const std::string &a, const std::string &b);

// Counts messages on a connection by cause: only the first message of a cause is logged.
class MessageCounter {
public:
    // Counts a message. Returns whether it is the first of its cause.
    bool is_first(const std::string &text);
    // Returns a line for each cause with more than one message.
    std::vector<std::string> summary() const;

private:
    std::map<std::string, std::pair<std::string, std::size_t>> messages_;  // first text and count, by cause
};

}  // namespace recon_gadgets
