// Whitening of coils by the noise acquisitions of a connection, by the rule that the program `recon` uses for those of
// a file.
#pragma once

#include "conversion.h"

#include <map>
#include <optional>
#include <utility>

namespace recon_gadgets {

class NoiseWhitener {
public:
    // The matrix that whitened an acquisition, for the log.
    struct Report {
        std::size_t noise_samples = 0, coils = 0;
        double variance_ratio = 1;  // variance of the data's noise over that of the noise samples
        std::vector<Warning> warnings;
    };

    // `receiver_bandwidth`: relativeReceiverNoiseBandwidth of the XML header, if it has one.
    explicit NoiseWhitener(std::optional<double> receiver_bandwidth);

    // Adds a noise acquisition, [number_of_samples, active_channels]. Returns false if data of these coils already went
    // to the next gadget: the noise then has no effect.
    bool add_noise(const ISMRMRD::AcquisitionHeader &header, const Complex *data, std::size_t elements);

    // Whitens an acquisition in place if noise came. Returns a report for the first acquisition of each number of coils
    // and sample time. Acquisitions that are used for nothing stay unchanged if there is no noise of their coils.
    std::optional<Report> whiten(const ISMRMRD::AcquisitionHeader &header, Complex *data, std::size_t elements);

    // The number of noise acquisitions.
    std::size_t count() const { return count_; }

private:
    // Noise with one number of coils and one sample time.
    struct Noise {
        std::size_t coils;
        float dwell;                              // seconds; 0 if the headers have none
        std::vector<std::vector<Complex>> samples;  // of each coil
    };
    using Matrix = std::vector<std::complex<double>>;

    Matrix matrix(std::size_t coils, float dwell, Report &report) const;

    const std::optional<double> receiver_bandwidth_;
    std::vector<Noise> noise_;
    std::map<std::pair<std::size_t, float>, Matrix> matrices_;  // by coils and sample time of the data
    std::map<std::size_t, bool> is_sent_;                       // by coils
    std::size_t count_ = 0;
    std::vector<Complex> whitened_;
};

}  // namespace recon_gadgets
