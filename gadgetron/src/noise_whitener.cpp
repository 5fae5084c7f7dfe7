#include "noise_whitener.h"

#include "library.h"

#include <algorithm>
#include <cmath>

namespace recon_gadgets {

namespace {

// Returns the seconds between samples, rounded as in the program; 0 if the header has no sample time.
float dwell_seconds(const ISMRMRD::AcquisitionHeader &h) {
    if (!(h.sample_time_us >= 0 && std::isfinite(h.sample_time_us))) {
        throw Error("sample_time_us is " + std::to_string(h.sample_time_us) +
                    " in an acquisition: it must be a non-negative number");
    }
    return float(double(h.sample_time_us) * 1e-6);
}

}  // namespace

NoiseWhitener::NoiseWhitener(std::optional<double> receiver_bandwidth) : receiver_bandwidth_(receiver_bandwidth) {
    if (receiver_bandwidth && !(*receiver_bandwidth > 0 && *receiver_bandwidth <= 1)) {
        throw Error("relativeReceiverNoiseBandwidth is " + std::to_string(*receiver_bandwidth) +
                    " in the XML header: it must be above 0 and at most 1; correct it or remove it");
    }
}

bool NoiseWhitener::add_noise(const ISMRMRD::AcquisitionHeader &h, const Complex *data, std::size_t elements) {
    check_data_size(h, elements);
    const std::size_t samples = h.number_of_samples, coils = h.active_channels;
    const float dwell = dwell_seconds(h);
    if (sent_coils_.count(coils) > 0) {
        return false;
    }
    ++count_;
    if (elements == 0) {
        return true;
    }
    auto same = std::find_if(noise_.begin(), noise_.end(),
                             [&](const NoiseSamples &n) { return n.coils == coils && n.dwell == dwell; });
    if (same == noise_.end()) {
        noise_.push_back({coils, dwell, std::vector<std::vector<Complex>>(coils)});
        same = std::prev(noise_.end());
    }
    for (std::size_t coil = 0; coil < coils; ++coil) {
        const Complex *from = data + coil * samples;
        same->samples[coil].insert(same->samples[coil].end(), from, from + samples);
    }
    return true;
}

const NoiseWhitener::NoiseSamples &NoiseWhitener::find_noise(std::size_t coils) const {
    const NoiseSamples *noise = nullptr;
    std::string available;
    for (const NoiseSamples &n : noise_) {
        available += (available.empty() ? "" : " and ") + std::to_string(n.coils);
        if (n.coils == coils && noise != nullptr) {
            throw Error("the file has noise of " + std::to_string(coils) +
                        " coils with different sample times: store only one of them, or set property whiten to none");
        }
        noise = n.coils == coils ? &n : noise;
    }
    if (noise == nullptr) {
        throw Error("noise of " + available + " coils cannot whiten data of " + std::to_string(coils) +
                    ": measure noise with the same coils, or set property whiten to none");
    }
    return *noise;
}

NoiseWhitener::Matrix NoiseWhitener::whitening_matrix(std::size_t coils, float dwell, Report &report) const {
    const NoiseSamples &noise = find_noise(coils);
    const bool has_times = noise.dwell > 0 && dwell > 0;
    if (!has_times && noise.dwell != dwell) {
        report.warnings.push_back({WarningCause::NoiseTimes,
                                   "noise and data do not both have a sample time (sample_time_us): the noise is "
                                   "assumed to have the bandwidth of the data"});
    }
    const double bandwidth = receiver_bandwidth_.value_or(1);
    report.coils = coils;
    report.noise_samples = noise.samples.front().size();
    report.variance_ratio = (has_times ? double(noise.dwell) / double(dwell) : 1) / bandwidth;
    std::vector<Complex> all;
    all.reserve(report.noise_samples * coils);
    for (const auto &coil_samples : noise.samples) {
        all.insert(all.end(), coil_samples.begin(), coil_samples.end());
    }
    Matrix covariance(coils * coils), matrix(coils * coils);
    check(recon_noise_covariance(RECON_F32, all.data(), report.noise_samples, coils, has_times ? noise.dwell : 0,
                                 has_times ? dwell : 0, bandwidth, covariance.data()));
    for (auto &[cause, text] : warnings_of_call()) {
        report.warnings.push_back({cause, std::move(text)});
    }
    check(recon_whitening(covariance.data(), coils, matrix.data()));
    return matrix;
}

std::optional<NoiseWhitener::Report> NoiseWhitener::whiten(const ISMRMRD::AcquisitionHeader &h, Complex *data,
                                                           std::size_t elements) {
    check_data_size(h, elements);
    const std::size_t coils = h.active_channels;
    if (elements == 0) {
        return {};
    }
    sent_coils_.insert(coils);
    const auto has_coils = [&](const NoiseSamples &n) { return n.coils == coils; };
    if (noise_.empty() ||
        (purposes_of(h) == 0 && std::none_of(noise_.begin(), noise_.end(), has_coils))) {
        return {};
    }
    std::optional<Report> report;
    const auto key = std::pair(coils, dwell_seconds(h));
    auto made = matrices_.find(key);
    if (made == matrices_.end()) {
        report.emplace();
        made = matrices_.emplace(key, whitening_matrix(coils, key.second, *report)).first;
    }
    whitened_.resize(elements);
    const recon_status status = recon_virtual_coils(made->second.data(), coils, coils, RECON_F32, data,
                                                    h.number_of_samples, 1, whitened_.data());
    const auto finite = [](const Complex &z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); };
    if (status != RECON_OK && !std::all_of(data, data + elements, finite)) {
        // Data that are not finite stay unchanged. The reconstruction refuses them with shot, sample and coil.
        return report;
    }
    check(status);
    std::copy(whitened_.begin(), whitened_.end(), data);
    return report;
}

}  // namespace recon_gadgets
