// Elements of the XML header in all versions of ISMRMRD, and numbers in a locale with decimal commas.
#include "compatibility.h"
#include "image_headers.h"
#include "scan.h"

#include <clocale>
#include <locale>

namespace {

// Numbers as in German: 1.234,5.
struct GermanNumbers : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

// Sets the locale of C++ streams until the end of the scope.
class StreamLocale {
public:
    explicit StreamLocale(const std::locale &locale) : previous_(std::locale::global(locale)) {}
    ~StreamLocale() { std::locale::global(previous_); }

private:
    std::locale previous_;
};

// An element that is optional, as in ISMRMRD 1.8 to 1.15, and one that is required.
void elements() {
    ISMRMRD::EncodingLimits limits;
    CHECK(find_value(limits.slice) == nullptr);
    limits.slice = ISMRMRD::Limit(0, 5, 2);
    const ISMRMRD::EncodingLimits &constant = limits;
    CHECK(find_value(constant.slice) != nullptr && find_value(constant.slice)->maximum == 5);
    find_value(limits.slice)->maximum = 7;
    CHECK(limits.slice->maximum == 7);

    struct {
        ISMRMRD::Limit slice = ISMRMRD::Limit(0, 3, 0);
    } required;
    const auto &constant_required = required;
    CHECK(find_value(required.slice) == &required.slice && find_value(constant_required.slice)->maximum == 3);
}

// The number of a type must be that of ISMRMRD's images of this type.
template <class... T>
void data_types() {
    for (const bool equal : {ISMRMRD::Image<T>(1, 1, 1, 1).getDataType() == data_type_of<T>()...}) {
        CHECK(equal);
    }
}

// Checks headers, attributes and images in the current locale.
void numbers() {
    Spaces spaces;
    spaces.encoded_matrix = spaces.recon_matrix = {2048, 1024, 1};
    spaces.encoded_fov = spaces.recon_fov = {1300.5, 650.25, 5};
    const std::string xml = xml_of(spaces.header());
    CHECK(contains(xml, "<x>2048</x>") && contains(xml, "<y>1024</y>") && contains(xml, ">123200000<"));
    CHECK(contains(xml, "<x>1300.5") && contains(xml, "<y>650.25"));

    ISMRMRD::MetaContainer meta;
    append_number(meta, "whole", 1234567L);
    append_number(meta, "real", -1234.5);
    append_number(meta, "real", 0.25);
    CHECK(meta.as_str("whole") == std::string("1234567") && meta.as_long("whole") == 1234567);
    CHECK(meta.as_str("real") == std::string("-1234.5") && meta.as_double("real") == -1234.5);
    CHECK(meta.as_str("real", 1) == std::string("0.25") && meta.as_double("real", 1) == 0.25);

    Scan scan(48, 24, 96, 1);
    scan.spaces.encoded_fov = scan.spaces.recon_fov = {1300.5, 1300.5, 5};
    const Samples samples = scan.gathered();
    CHECK(samples.properties().encoded_fov_mm[0] == 1300.5 && samples.properties().encoded_matrix[0] == 48);
    ImageInfo info;
    info.method = "gridding";
    const auto attributes = make_image_attributes(samples, make_image_header(samples, info), info);
    CHECK(attributes.as_str("encoding_FOV") == std::string("1300.5") && attributes.as_double("encoding_FOV") == 1300.5);
    CHECK(attributes.as_str("recon_samples") == std::string("2304"));

    const NumbersInC in_c;
    Properties p(std::map<std::string, std::string>{{"tolerance", "0.001"}});
    CHECK(p.number("tolerance", 0, 0, 1) == 0.001);
}

// Returns whether the C locale was set to one with decimal commas.
bool set_comma_locale() {
    for (const char *name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"}) {
        if (std::setlocale(LC_ALL, name) != nullptr) {
            return true;
        }
    }
    return false;
}

void locales() {
    CHECK(locale_warning().empty());
    numbers();
    {
        const StreamLocale streams(std::locale(std::locale(), new GermanNumbers));
        numbers();
        CHECK(std::use_facet<std::numpunct<char>>(std::locale()).decimal_point() == ',');
    }
    if (!set_comma_locale()) {
        std::printf("skipped: a locale of C with decimal commas (no de_DE.UTF-8 or fr_FR.UTF-8 is installed)\n");
        return;
    }
    const std::string name = std::setlocale(LC_ALL, nullptr);
    CHECK(contains(locale_warning(), "LC_ALL=C") && contains(locale_warning(), name));
    numbers();
    CHECK(name == std::setlocale(LC_ALL, nullptr) && std::localeconv()->decimal_point == std::string(","));
    {
        const StreamLocale streams((std::locale(name)));  // as Gadgetron's server: streams and C
        numbers();
        CHECK(std::locale().name() == name && name == std::setlocale(LC_ALL, nullptr));
    }
    std::setlocale(LC_ALL, "C");
}

}  // namespace

int main() {
    elements();
    data_types<std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float, double, std::complex<float>,
               std::complex<double>>();
    locales();
    return result("compatibility");
}
