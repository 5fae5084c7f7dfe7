// Prints the position and orientation in the headers of images: one line per image, with exact numbers.
//
//     headers FILE SERIES
#include <ismrmrd/dataset.h>
#include <ismrmrd/ismrmrd.h>

#include <cstdio>
#include <exception>
#include <string>

namespace {

void numbers(const char *name, const float *x) {
    std::printf(" %s %a %a %a", name, double(x[0]), double(x[1]), double(x[2]));
}

void print(const char *file, const std::string &index) {
    ISMRMRD::Dataset images(file, "dataset", false);
    const std::string series = "image_" + index;
    for (std::uint32_t i = 0; i < images.getNumberOfImages(series); ++i) {
        ISMRMRD::Image<float> image;
        images.readImage(series, i, image);
        const ISMRMRD::ImageHeader h = image.getHead();
        std::printf("slice %u", unsigned(h.slice));
        numbers("position", h.position);
        numbers("read_dir", h.read_dir);
        numbers("phase_dir", h.phase_dir);
        numbers("slice_dir", h.slice_dir);
        numbers("patient_table_position", h.patient_table_position);
        numbers("field_of_view", h.field_of_view);
        std::printf("\n");
    }
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "headers FILE SERIES\n");
        return 2;
    }
    try {
        print(argv[1], argv[2]);
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
