// Differences between the versions of ISMRMRD (1.8 to 1.15), and numbers in the language of the server. All other files
// are independent of the version. Gadgetron 4.6 and 4.7 do not differ in the parts that the gadgets use.
#pragma once

#include <ismrmrd/ismrmrd.h>
#include <ismrmrd/meta.h>
#include <ismrmrd/version.h>
#include <ismrmrd/xml.h>

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

static_assert(ISMRMRD_VERSION_MAJOR == 1 && ISMRMRD_VERSION_MINOR >= 8,
              "the gadgets require ISMRMRD 1.8 or newer, before 2.0: set CMAKE_PREFIX_PATH to such an installation");

namespace recon_gadgets {

// Returns the value of an element of the XML header, or null if the header does not have the element. An element that
// is optional in one version of ISMRMRD may be required in another version; the type of the field decides.
template <class T>
T *find_value(ISMRMRD::Optional<T> &field) {
    return field.is_present() ? &field.get() : nullptr;
}
template <class T>
const T *find_value(const ISMRMRD::Optional<T> &field) {
    return field.is_present() ? &field.get() : nullptr;
}
template <class T>
T *find_value(T &field) {
    return &field;
}

// Returns the number of a type in image headers. ISMRMRD's get_data_type is exported for only one of its types.
template <class T>
constexpr ISMRMRD::ISMRMRD_DataTypes data_type_of() {
    if constexpr (std::is_same_v<T, std::uint16_t>) {
        return ISMRMRD::ISMRMRD_USHORT;
    } else if constexpr (std::is_same_v<T, std::int16_t>) {
        return ISMRMRD::ISMRMRD_SHORT;
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
        return ISMRMRD::ISMRMRD_UINT;
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
        return ISMRMRD::ISMRMRD_INT;
    } else if constexpr (std::is_same_v<T, float>) {
        return ISMRMRD::ISMRMRD_FLOAT;
    } else if constexpr (std::is_same_v<T, double>) {
        return ISMRMRD::ISMRMRD_DOUBLE;
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
        return ISMRMRD::ISMRMRD_CXFLOAT;
    } else {
        static_assert(std::is_same_v<T, std::complex<double>>, "images have one of eight types");
        return ISMRMRD::ISMRMRD_CXDOUBLE;
    }
}

// Writes and reads the numbers of this thread in the "C" locale, with decimal points, until the end of the scope.
// Gadgetron's server sets the locale of its user, in which numbers may have decimal commas and separators of thousands.
// This class has no effect on C++ streams.
class NumbersInC {
public:
    NumbersInC();
    ~NumbersInC();
    NumbersInC(const NumbersInC &) = delete;
    NumbersInC &operator=(const NumbersInC &) = delete;

private:
    void *previous_;  // a locale_t
};

// Returns a warning if the locale of the process has a decimal comma. ISMRMRD then reads numbers of the XML header
// wrongly, before a gadget sees them. Requires that this thread has no NumbersInC.
std::string locale_warning();

// Returns a header as XML, in any locale. ISMRMRD 1.14.0 and 1.14.1 write numbers in the locale of C++ streams, and
// versions before 1.14 in the locale of C.
std::string xml_of(const ISMRMRD::IsmrmrdHeader &header);

// Appends a number to an attribute, in any locale. ISMRMRD before 1.14.2 writes it in the locale of C++ streams.
void append_number(ISMRMRD::MetaContainer &meta, const char *name, long value);
void append_number(ISMRMRD::MetaContainer &meta, const char *name, double value);

}  // namespace recon_gadgets
