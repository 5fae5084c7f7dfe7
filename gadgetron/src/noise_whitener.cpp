#include "noise_whitener.h"

#include "library.h"

#include <algorithm>
#include <cmath>

namespace recon_gadgets {

namespace {

// Seconds from one sample to the next, rounded as by the program. 0 if the header has no sample time.
float dwell_of(const ISMRMRD::AcquisitionHeader &h) {
    if (!(h.sample_time_us >= 0 && std::isfinite(h.sample_time_us))) {
        throw Error("sample_time_us is " + std::to_string(h.sample_time_us) +
                    " in an acquisition: it must be a number from 0 upwards");
    }
    return float(double(h.sample_time_us) * 1e-6);
}

void check_elements(const ISMRMRD::AcquisitionHeader &h, std::size_t elements) {
    if (elements != std::size_t(h.number_of_samples) * h.active_channels) {
        throw Error("an acquisition has " + std::to_string(elements) + " samples of data, where its header announces " +
                    std::to_string(h.number_of_samples) + " of " + std::to_string(h.active_channels) +
                    " coils: the file is damaged");
    }
}

}  // namespace

NoiseWhitener::NoiseWhitener(std::optional<double> receiver_bandwidth) : receiver_bandwidth_(receiver_bandwidth) {
    if (receiver_bandwidth && !(*receiver_bandwidth > 0 && *receiver_bandwidth <= 1)) {
        throw Error("relativeReceiverNoiseBandwidth is " + std::to_string(*receiver_bandwidth) +
                    " in the XML header: it is above 0, and at most 1; correct it or remove it");
    }
}

bool NoiseWhitener::add_noise(const ISMRMRD::AcquisitionHeader &h, const Complex *data, std::size_t elements) {
    check_elements(h, elements);
    const std::size_t samples = h.number_of_samples, coils = h.active_channels;
    const float dwell = dwell_of(h);
    if (is_sent_.count(coils) > 0) {
        return false;
    }
    ++count_;
    if (elements == 0) {
        return true;
    }
    auto same = std::find_if(noise_.begin(), noise_.end(),
                             [&](const Noise &n) { return n.coils == coils && n.dwell == dwell; });
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

NoiseWhitener::Matrix NoiseWhitener::matrix(std::size_t coils, float dwell, Report &report) const {
    const Noise *noise = nullptr;
    std::string have;
    for (const Noise &n : noise_) {
        have += (have.empty() ? "" : " and ") + std::to_string(n.coils);
        if (n.coils == coils && noise != nullptr) {
            throw Error("there is noise of " + std::to_string(coils) +
                        " coils with different sample times: keep one of them, or set property whiten to none");
        }
        noise = n.coils == coils ? &n : noise;
    }
    if (noise == nullptr) {
        throw Error("noise of " + have + " coils cannot whiten data of " + std::to_string(coils) +
                    ": measure noise with the same coils, or set property whiten to none");
    }
    const bool timed = noise->dwell > 0 && dwell > 0;
    if (!timed && noise->dwell != dwell) {
        report.warnings.push_back({Cause::NoiseTimes, "noise and data do not both have a sample time (sample_time_us): "
                                                      "the noise is assumed to have the bandwidth of the data"});
    }
    const double bandwidth = receiver_bandwidth_.value_or(1);
    report.coils = coils;
    report.noise_samples = noise->samples.front().size();
    report.variance_ratio = (timed ? double(noise->dwell) / double(dwell) : 1) / bandwidth;
    std::vector<Complex> all;
    all.reserve(report.noise_samples * coils);
    for (const auto &of_coil : noise->samples) {
        all.insert(all.end(), of_coil.begin(), of_coil.end());
    }
    Matrix covariance(coils * coils), matrix(coils * coils);
    check(recon_noise_covariance(RECON_F32, all.data(), report.noise_samples, coils, timed ? noise->dwell : 0,
                                 timed ? dwell : 0, bandwidth, covariance.data()));
    for (auto &[cause, text] : warnings_of_call()) {
        report.warnings.push_back({cause, std::move(text)});
    }
    check(recon_whitening(covariance.data(), coils, matrix.data()));
    return matrix;
}

std::optional<NoiseWhitener::Report> NoiseWhitener::whiten(const ISMRMRD::AcquisitionHeader &h, Complex *data,
                                                           std::size_t elements) {
    check_elements(h, elements);
    const std::size_t coils = h.active_channels;
    if (elements == 0) {
        return {};
    }
    is_sent_[coils] = true;
    const auto of_coils = [&](const Noise &n) { return n.coils == coils; };
    if (noise_.empty() ||
        (acquisition_use(h) == 0 && std::none_of(noise_.begin(), noise_.end(), of_coils))) {
        return {};
    }
    std::optional<Report> report;
    const auto key = std::pair(coils, dwell_of(h));
    auto made = matrices_.find(key);
    if (made == matrices_.end()) {
        report.emplace();
        made = matrices_.emplace(key, matrix(coils, key.second, *report)).first;
    }
    whitened_.resize(elements);
    const recon_status status = recon_virtual_coils(made->second.data(), coils, coils, RECON_F32, data,
                                                    h.number_of_samples, 1, whitened_.data());
    const auto finite = [](const Complex &z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); };
    if (status != RECON_OK && !std::all_of(data, data + elements, finite)) {
        // Data that are not numbers stay as they are. The reconstruction refuses them, and names shot, sample and coil.
        return report;
    }
    check(status);
    std::copy(whitened_.begin(), whitened_.end(), data);
    return report;
}

}  // namespace recon_gadgets
