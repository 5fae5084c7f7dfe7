#include "image_headers.h"

#include "compatibility.h"
#include "text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace recon_gadgets {

ISMRMRD::ImageHeader make_image_header(const Samples &samples, const ImageInfo &info) {
    const ISMRMRD::AcquisitionHeader a = samples.first();
    const Grid grid(samples.properties());
    ISMRMRD::ImageHeader h;
    h.version = a.version;
    h.data_type = ISMRMRD::ISMRMRD_CXFLOAT;
    // Only the user flags have the same meaning for acquisitions and images. They are bits 57 to 64, counted from 1.
    h.flags = a.flags & (std::uint64_t(0xff) << 56);
    h.measurement_uid = a.measurement_uid;
    for (int axis = 0; axis < 3; ++axis) {
        h.matrix_size[axis] = std::uint16_t(grid.image[axis]);
        h.field_of_view[axis] = float(grid.recon_fov[axis]);
        h.physiology_time_stamp[axis] = a.physiology_time_stamp[axis];
    }
    h.channels = std::uint16_t(info.channels);
    // memcpy, because headers are packed and their float arrays may be unaligned.
    std::memcpy(h.position, a.position, sizeof h.position);
    std::memcpy(h.read_dir, a.read_dir, sizeof h.read_dir);
    std::memcpy(h.phase_dir, a.phase_dir, sizeof h.phase_dir);
    std::memcpy(h.slice_dir, a.slice_dir, sizeof h.slice_dir);
    std::memcpy(h.patient_table_position, a.patient_table_position, sizeof h.patient_table_position);
    h.average = a.idx.average;
    h.slice = a.idx.slice;
    h.contrast = a.idx.contrast;
    h.phase = a.idx.phase;
    h.repetition = a.idx.repetition;
    h.set = a.idx.set;
    h.acquisition_time_stamp = a.acquisition_time_stamp;
    h.image_type = info.magnitude ? ISMRMRD::ISMRMRD_IMTYPE_MAGNITUDE : ISMRMRD::ISMRMRD_IMTYPE_COMPLEX;
    h.image_index = std::uint16_t(info.number);
    h.image_series_index = info.series;
    std::memcpy(h.user_int, a.user_int, sizeof h.user_int);
    std::memcpy(h.user_float, a.user_float, sizeof h.user_float);
    h.attribute_string_len = 0;
    return h;
}

ISMRMRD::MetaContainer make_image_attributes(const Samples &samples, const ISMRMRD::ImageHeader &h,
                                             const ImageInfo &info) {
    const auto &p = samples.properties();
    ISMRMRD::MetaContainer meta;
    const auto put = [&](const char *name, const auto &numbers) {
        for (int axis = 0; axis < 3; ++axis) {
            append_number(meta, name, numbers[axis]);
        }
    };
    const auto whole = [](const std::uint64_t *n) {
        return std::array<long, 3>{long(n[0]), long(n[1]), long(n[2])};
    };
    const auto real = [](const void *x) {
        std::array<float, 3> v;
        std::memcpy(v.data(), x, sizeof v);
        return std::array<double, 3>{v[0], v[1], v[2]};
    };
    append_number(meta, "encoding", long(p.encoding));
    put("encoding_FOV", p.encoded_fov_mm);
    put("recon_FOV", p.recon_fov_mm);
    put("encoded_matrix", whole(p.encoded_matrix));
    put("recon_matrix", whole(p.recon_matrix));
    put("PatientPosition", real(h.position));
    put("read_dir", real(h.read_dir));
    put("phase_dir", real(h.phase_dir));
    put("slice_dir", real(h.slice_dir));
    put("patient_table_position", real(h.patient_table_position));
    append_number(meta, "acquisition_time_stamp", long(h.acquisition_time_stamp));
    put("physiology_time_stamp", std::array<long, 3>{long(h.physiology_time_stamp[0]), long(h.physiology_time_stamp[1]),
                                                     long(h.physiology_time_stamp[2])});
    // Gadgetron's gadgets and the vendors' converters read these names.
    append_number(meta, "GADGETRON_ImageNumber", long(info.number));
    meta.set("GADGETRON_ImageProcessingHistory", "recon");
    meta.set("GADGETRON_ImageComment", "recon");
    meta.set("GADGETRON_SeqDescription", "_recon");
    meta.set("GADGETRON_DataRole", "Image");
    meta.set("recon_method", info.method.c_str());
    append_number(meta, "recon_samples", long(p.samples));
    append_number(meta, "recon_shots", long(p.shots));
    if (info.iterations > 0) {
        append_number(meta, "recon_iterations", long(info.iterations));
        append_number(meta, "recon_residual", info.residual);
    }
    for (const auto &blade : info.blades.motion) {
        append_number(meta, "recon_blade_rotation", blade.rotation);
        append_number(meta, "recon_blade_translation_x", blade.translation[0]);
        append_number(meta, "recon_blade_translation_y", blade.translation[1]);
        append_number(meta, "recon_blade_phase", blade.phase);
        append_number(meta, "recon_blade_correlation", blade.correlation);
        append_number(meta, "recon_blade_weight", blade.weight);
    }
    return meta;
}

std::vector<std::uint16_t> IntegerConverter::convert(std::size_t encoding, const Complex *magnitudes,
                                                     std::size_t count, ISMRMRD::MetaContainer &meta,
                                                     std::vector<std::string> &warnings) {
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        largest = std::max(largest, double(magnitudes[i].real()));
    }
    double scale = scale_;
    if (scale == 0) {
        double &chosen = chosen_[encoding];
        // An image of zeros does not decide.
        chosen = chosen == 0 && largest > 0 ? FIRST_MAXIMUM / largest : chosen;
        scale = chosen == 0 ? 1 : chosen;
    }
    if (largest * scale > 65535) {
        warnings.push_back("the largest value is " + number_text(largest * scale) + " after scaling by " +
                           number_text(scale) + ", and values above 65535 become 65535: set property scale to at " +
                           "most " + number_text(65535 / largest));
    }
    std::vector<std::uint16_t> values(count);
    std::transform(magnitudes, magnitudes + count, values.begin(), [&](const Complex &z) {
        return std::uint16_t(std::lround(std::min(double(z.real()) * scale, 65535.0)));
    });
    append_number(meta, "GADGETRON_ScaleRatio", scale);
    append_number(meta, "recon_scale", scale);
    return values;
}

}  // namespace recon_gadgets
