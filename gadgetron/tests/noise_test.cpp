// Whitening with noise acquisitions, compared with a Cholesky factor that is computed here.
#include "check.h"
#include "noise_whitener.h"

#include <cmath>
#include <limits>
#include <random>

using namespace recon_gadgets;

namespace {

using Header = ISMRMRD::AcquisitionHeader;
using Wide = std::complex<double>;

constexpr std::size_t COILS = 3;

std::mt19937 generator(29);

Header header(std::size_t samples, std::size_t coils, float sample_us, std::uint64_t flag = 0) {
    Header h;
    h.number_of_samples = std::uint16_t(samples);
    h.active_channels = std::uint16_t(coils);
    h.sample_time_us = sample_us;
    h.flags = flag == 0 ? 0 : std::uint64_t(1) << (flag - 1);
    return h;
}

std::vector<Complex> random_values(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<Complex> values(count);
    for (auto &z : values) {
        z = Complex(normal(generator), normal(generator));
    }
    return values;
}

// Returns noise of correlated coils with different variances, [samples, COILS].
std::vector<Complex> noise(std::size_t samples) {
    const auto w = random_values(samples * COILS);
    std::vector<Complex> n(samples * COILS);
    for (std::size_t m = 0; m < samples; ++m) {
        n[m] = 2.0f * w[m];
        n[m + samples] = Complex(0.3f, 0.4f) * w[m] + 0.1f * w[m + samples];
        n[m + 2 * samples] = Complex(0, -1) * w[m + samples] + w[m + 2 * samples];
    }
    return n;
}

// Returns `data` multiplied by the inverse of the lower Cholesky factor of `ratio` times the covariance.
std::vector<Complex> whitened(const std::vector<std::vector<Complex>> &noises, double ratio,
                              const std::vector<Complex> &data) {
    Wide c[COILS][COILS] = {}, l[COILS][COILS] = {};
    std::size_t samples = 0;
    for (const auto &n : noises) {
        const std::size_t count = n.size() / COILS;
        for (std::size_t a = 0; a < COILS; ++a) {
            for (std::size_t b = 0; b < COILS; ++b) {
                for (std::size_t m = 0; m < count; ++m) {
                    c[a][b] += Wide(n[m + a * count]) * std::conj(Wide(n[m + b * count]));
                }
            }
        }
        samples += count;
    }
    for (std::size_t j = 0; j < COILS; ++j) {
        for (std::size_t i = j; i < COILS; ++i) {
            Wide sum = c[i][j] * (ratio / double(samples));
            for (std::size_t k = 0; k < j; ++k) {
                sum -= l[i][k] * std::conj(l[j][k]);
            }
            l[i][j] = i == j ? Wide(std::sqrt(sum.real())) : sum / l[j][j];
        }
    }
    const std::size_t count = data.size() / COILS;
    std::vector<Complex> out(data.size());
    for (std::size_t m = 0; m < count; ++m) {
        Wide y[COILS];
        for (std::size_t i = 0; i < COILS; ++i) {
            y[i] = Wide(data[m + i * count]);
            for (std::size_t k = 0; k < i; ++k) {
                y[i] -= l[i][k] * y[k];
            }
            y[i] /= l[i][i];
            out[m + i * count] = Complex(y[i]);
        }
    }
    return out;
}

double distance(const std::vector<Complex> &a, const std::vector<Complex> &b) {
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference += std::norm(Wide(a[i]) - Wide(b[i])), norm += std::norm(Wide(b[i]));
    }
    return std::sqrt(difference / norm);
}

const std::uint64_t NOISE = ISMRMRD::ISMRMRD_ACQ_IS_NOISE_MEASUREMENT;

void whitens() {
    const auto first = noise(900), second = noise(300);
    // Noise is sampled at twice the rate of the data, and the receiver has 0.8 of the sampling bandwidth.
    for (const auto &[noise_us, data_us, bandwidth, ratio] :
         {std::tuple{5.0f, 10.0f, std::optional<double>(0.8), 5 / (10 * 0.8)},
          std::tuple{5.0f, 5.0f, std::optional<double>(), 1.0}, std::tuple{0.0f, 0.0f, std::optional<double>(), 1.0},
          std::tuple{0.0f, 10.0f, std::optional<double>(0.5), 1 / 0.5}}) {
        NoiseWhitener whitener(bandwidth);
        CHECK(whitener.add_noise(header(900, COILS, noise_us, NOISE), first.data(), first.size()));
        CHECK(whitener.add_noise(header(300, COILS, noise_us, NOISE), second.data(), second.size()));
        CHECK(whitener.count() == 2);
        for (const std::uint64_t flag : {std::uint64_t(0), std::uint64_t(ISMRMRD::ISMRMRD_ACQ_IS_PARALLEL_CALIBRATION),
                                         std::uint64_t(ISMRMRD::ISMRMRD_ACQ_IS_NAVIGATION_DATA)}) {
            auto data = random_values(17 * COILS);
            const auto expected = whitened({first, second}, ratio, data);
            const auto report = whitener.whiten(header(17, COILS, data_us, flag), data.data(), data.size());
            CHECK(distance(data, expected) < 1e-6);
            CHECK(bool(report) == (flag == 0));  // a report only for the first acquisition
            if (report) {
                CHECK(report->noise_samples == 1200 && report->coils == COILS);
                CHECK(std::fabs(report->variance_ratio - ratio) < 1e-6 * ratio);
                const bool untimed = noise_us == 0 && data_us > 0;
                CHECK(report->warnings.size() == (untimed ? 1 : 0));
                CHECK(!untimed || report->warnings[0].cause == WarningCause::NoiseTimes);
            }
        }
    }
}

void without_noise() {
    NoiseWhitener whitener({});
    auto data = random_values(17 * COILS);
    const auto original = data;
    CHECK(!whitener.whiten(header(17, COILS, 5), data.data(), data.size()) && data == original);
    // Noise after the data of its coils has no effect, but noise of a different number of coils has.
    const auto late = noise(500);
    CHECK(!whitener.add_noise(header(500, COILS, 5, NOISE), late.data(), late.size()) && whitener.count() == 0);
    CHECK(!whitener.whiten(header(17, COILS, 5), data.data(), data.size()) && data == original);
    CHECK(whitener.add_noise(header(750, 2, 5, NOISE), late.data(), 1500) && whitener.count() == 1);
}

void errors() {
    const auto n = noise(500);
    NoiseWhitener whitener({});
    whitener.add_noise(header(500, COILS, 5, NOISE), n.data(), n.size());
    auto two = random_values(34);
    const auto original = two;
    CHECK_ERROR([&] { whitener.whiten(header(17, 2, 5), two.data(), 34); }, "noise of 3 coils cannot whiten data of 2",
                "property whiten to none");
    // Navigators of a different number of coils are not used for images.
    const Header navigator = header(17, 2, 5, ISMRMRD::ISMRMRD_ACQ_IS_NAVIGATION_DATA);
    CHECK(!whitener.whiten(navigator, two.data(), 34) && two == original);
    CHECK_ERROR([&] { whitener.whiten(header(17, 2, 5), two.data(), 33); }, "33 samples", "17 of 2 coils", "damaged");
    // Data that are not finite stay unchanged: the reconstruction reports the sample.
    auto data = random_values(17 * COILS);
    data[5] = std::numeric_limits<float>::quiet_NaN();
    const Complex same = data[6];
    whitener.whiten(header(17, COILS, 5), data.data(), data.size());
    CHECK(std::isnan(data[5].real()) && data[6] == same);
    auto fine = random_values(17 * COILS);
    const auto expected = whitened({n}, 1, fine);
    whitener.whiten(header(17, COILS, 5), fine.data(), fine.size());
    CHECK(distance(fine, expected) < 1e-6);

    NoiseWhitener twice({});
    twice.add_noise(header(500, COILS, 5, NOISE), n.data(), n.size());
    twice.add_noise(header(500, COILS, 6, NOISE), n.data(), n.size());
    CHECK_ERROR([&] { twice.whiten(header(17, COILS, 5), fine.data(), fine.size()); },
                "noise of 3 coils with different sample times");
    CHECK_ERROR([&] { twice.add_noise(header(500, COILS, -1, NOISE), n.data(), n.size()); }, "sample_time_us is -1");
    NoiseWhitener few({});
    few.add_noise(header(50, COILS, 5, NOISE), n.data(), 50 * COILS);
    const auto report = few.whiten(header(17, COILS, 5), fine.data(), fine.size());
    CHECK(report && report->warnings.size() == 1 && report->warnings[0].cause == WarningCause::Noise &&
          report->warnings[0].text.find("50 samples of noise") != std::string::npos);
    // A coil without signal.
    std::vector<Complex> silent(n);
    std::fill(silent.begin() + 500, silent.begin() + 1000, Complex());
    NoiseWhitener dead({});
    dead.add_noise(header(500, COILS, 5, NOISE), silent.data(), silent.size());
    CHECK_ERROR([&] { dead.whiten(header(17, COILS, 5), fine.data(), fine.size()); }, "coil 1");
    for (const double bandwidth : {0.0, -1.0, 1.1, std::nan("")}) {
        CHECK_ERROR([&] { NoiseWhitener{bandwidth}; }, "relativeReceiverNoiseBandwidth", "at most 1");
    }
}

}  // namespace

int main() {
    whitens();
    without_noise();
    errors();
    return result("noise");
}
