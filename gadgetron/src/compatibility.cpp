#include "compatibility.h"

#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <clocale>
#include <locale>
#include <mutex>
#include <sstream>

namespace recon_gadgets {

namespace {

// Returns the "C" locale of C functions.
locale_t c_locale() {
    static const locale_t locale = newlocale(LC_ALL_MASK, "C", locale_t(nullptr));
    return locale;
}

// Returns whether C++ streams write numbers as in the "C" locale.
bool has_classic_streams() {
    const auto &numbers = std::use_facet<std::numpunct<char>>(std::locale());
    return numbers.decimal_point() == '.' && numbers.grouping().empty();
}

// Lets new C++ streams of the process write numbers as in the "C" locale until the end of the scope.
class StreamsInC {
public:
    StreamsInC() : lock_(mutex()) {
        // A locale with a replaced part has no name, and setting it does not change the locale of C functions.
        previous_ = std::locale::global(std::locale(std::locale(), new std::numpunct<char>));
    }
    ~StreamsInC() {
        // Setting a locale with a name changes the locale of C functions, which may be different by now.
        const char *name = std::setlocale(LC_ALL, nullptr);
        const std::string of_c = name != nullptr ? name : "C";
        std::locale::global(previous_);
        std::setlocale(LC_ALL, of_c.c_str());
    }
    StreamsInC(const StreamsInC &) = delete;
    StreamsInC &operator=(const StreamsInC &) = delete;

private:
    static std::mutex &mutex() {
        static std::mutex one;
        return one;
    }

    std::lock_guard<std::mutex> lock_;
    std::locale previous_;
};

template <class Number>
void append(ISMRMRD::MetaContainer &meta, const char *name, Number value) {
    if (has_classic_streams()) {
        meta.append(name, value);
        return;
    }
    const NumbersInC numbers;
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text << value;
    meta.append(name, text.str().c_str());
}

}  // namespace

NumbersInC::NumbersInC() : previous_(uselocale(c_locale())) {}

NumbersInC::~NumbersInC() {
    uselocale(static_cast<locale_t>(previous_));
}

std::string locale_warning() {
    const std::string point = std::localeconv()->decimal_point;
    if (point == ".") {
        return {};
    }
    const char *name = std::setlocale(LC_NUMERIC, nullptr);
    return "the server's locale " + std::string(name != nullptr ? name : "") + " has \"" + point +
           "\" in place of the decimal point, and ISMRMRD reads numbers of the XML header only up to the point (300.5 mm "
           "as 300): start Gadgetron with LC_ALL=C";
}

std::string xml_of(const ISMRMRD::IsmrmrdHeader &header) {
    const NumbersInC numbers;
    std::ostringstream stream;
    if (has_classic_streams()) {
        ISMRMRD::serialize(header, stream);
    } else {
        const StreamsInC streams;
        ISMRMRD::serialize(header, stream);
    }
    return stream.str();
}

void append_number(ISMRMRD::MetaContainer &meta, const char *name, long value) {
    append(meta, name, value);
}

void append_number(ISMRMRD::MetaContainer &meta, const char *name, double value) {
    append(meta, name, value);
}

}  // namespace recon_gadgets
