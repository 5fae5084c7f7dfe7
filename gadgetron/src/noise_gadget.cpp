// Whitening of the coils with noise acquisitions. The gadget must come before AcquisitionAccumulateTriggerGadget, which
// drops noise.
#include "noise_whitener.h"
#include "settings.h"

#include <Node.h>
#include <log.h>

#include <algorithm>
#include <cctype>

using namespace recon_gadgets;

class ReconNoiseGadget : public Gadgetron::Core::ChannelGadget<Gadgetron::Core::Acquisition> {
public:
    ReconNoiseGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ChannelGadget(context, properties), header_(context.header), properties_(properties) {}

    void process(Gadgetron::Core::InputChannel<Gadgetron::Core::Acquisition> &in,
                 Gadgetron::Core::OutputChannel &out) override {
        const bool use_noise = parse_choice<bool>("whiten", properties_.text("whiten", "auto"),
                                                  {{"auto", true}, {"none", false}});
        GINFO("%s: properties %s\n", NAME, properties_.summary().c_str());
        for (const auto &unknown : properties_.unknown()) {
            GERROR("%s: property %s does not exist and has no effect: the previous line lists all properties\n", NAME,
                   unknown.c_str());
        }
        NoiseWhitener whitener(receiver_bandwidth());
        std::size_t unused = 0;
        for (auto acquisition : in) {
            const auto &head = std::get<ISMRMRD::AcquisitionHeader>(acquisition);
            auto &data = std::get<Gadgetron::hoNDArray<Complex>>(acquisition);
            if (purposes_of(head) & RECON_PURPOSE_NOISE) {
                if (!use_noise || !whitener.add_noise(head, data.get_data_ptr(), data.get_number_of_elements())) {
                    ++unused;
                }
                continue;
            }
            if (const auto report = whitener.whiten(head, data.get_data_ptr(), data.get_number_of_elements())) {
                log(*report);
            }
            out.push(std::move(acquisition));
        }
        if (unused > 0 && use_noise) {
            GWARN("%s: %zu noise acquisitions came after the first data of their coils, and have no effect: store "
                  "noise before the data, or use the program recon, which uses the noise of the whole file\n",
                  NAME, unused);
        } else if (unused > 0) {
            GINFO("%s: property whiten is none: %zu noise acquisitions have no effect\n", NAME, unused);
        }
        if (use_noise && whitener.count() + unused == 0) {
            log_missing_noise();
        }
    }

private:
    static constexpr const char *NAME = "ReconNoiseGadget";

    std::optional<double> receiver_bandwidth() const {
        const auto &system = header_.acquisitionSystemInformation;
        if (system.is_present() && system->relativeReceiverNoiseBandwidth.is_present()) {
            return double(*system->relativeReceiverNoiseBandwidth);
        }
        return {};
    }

    void log(const NoiseWhitener::Report &report) const {
        GINFO("%s: whitened by %zu samples of noise of %zu coils, variance multiplied by %.4f\n", NAME,
              report.noise_samples, report.coils, report.variance_ratio);
        GWARN("%s: noise acquisitions whiten the data: images are in units of the noise's standard deviation. To "
              "reconstruct without whitening, set property whiten to none\n",
              NAME);
        for (const auto &warning : report.warnings) {
            GWARN("%s: %s\n", NAME, warning.text.c_str());
        }
    }

    // Logs a warning if the XML header names a noise scan, but the data have no noise.
    void log_missing_noise() const {
        if (!header_.measurementInformation.is_present()) {
            return;
        }
        for (const auto &dependency : header_.measurementInformation->measurementDependency) {
            std::string type = dependency.dependencyType;
            std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) { return std::tolower(c); });
            if (type == "noise") {
                GWARN("%s: the XML header names measurement %s as its noise scan, but the data have no noise "
                      "acquisitions: data are whitened only if an earlier gadget (NoiseAdjustGadget) did so\n",
                      NAME, dependency.measurementID.c_str());
            }
        }
    }

    const ISMRMRD::IsmrmrdHeader header_;
    Properties properties_;
};

GADGETRON_GADGET_EXPORT(ReconNoiseGadget)
