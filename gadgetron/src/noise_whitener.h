// Whitening of coils with the noise acquisitions of a connection, as the program `recon` does with those of a file.
#pragma once

#include "conversion.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace recon_gadgets {

// Noise acquisitions, and the whitening matrices that are computed from them.
class NoiseWhitener {
public:
    // Facts about a whitening matrix, for the log.
    struct Report {
        std::size_t noise_samples = 0, coils = 0;
        double variance_ratio = 1;  // variance of the data's noise over that of the noise samples
        std::vector<Warning> warnings;
    };

    // `receiver_bandwidth`: relativeReceiverNoiseBandwidth of the XML header, if it has one.
    explicit NoiseWhitener(std::optional<double> receiver_bandwidth);

    // Adds a noise acquisition, [number_of_samples, active_channels]. Returns false if data with this number of coils
    // were already sent to the next gadget: the noise then has no effect.
    bool add_noise(const ISMRMRD::AcquisitionHeader &header, const Complex *data, std::size_t elements);

    // Whitens an acquisition in place if noise was acquired. Returns a report for the first acquisition of each number
    // of coils and sample time. Acquisitions without a purpose stay unchanged if there is no noise of their coils.
    std::optional<Report> whiten(const ISMRMRD::AcquisitionHeader &header, Complex *data, std::size_t elements);

    // Returns the number of noise acquisitions.
    std::size_t count() const { return count_; }

private:
    // Noise with one number of coils and one sample time.
    struct NoiseSamples {
        std::size_t coils;
        float dwell;                              // seconds; 0 if the headers have none
        std::vector<std::vector<Complex>> samples;  // by coil
    };
    using Matrix = std::vector<std::complex<double>>;

    // Computes the whitening matrix for data with a number of coils and a sample time, and sets the report.
    Matrix whitening_matrix(std::size_t coils, float dwell, Report &report) const;
    // Returns the noise with a number of coils. Throws an Error for other numbers of coils, and if sample times differ.
    const NoiseSamples &find_noise(std::size_t coils) const;

    const std::optional<double> receiver_bandwidth_;
    std::vector<NoiseSamples> noise_;
    std::map<std::pair<std::size_t, float>, Matrix> matrices_;  // by number of coils and sample time of the data
    std::set<std::size_t> sent_coils_;  // numbers of coils of data that were sent to the next gadget
    std::size_t count_ = 0;
    std::vector<Complex> whitened_;
};

}  // namespace recon_gadgets
