// Whitening of the coils with noise acquisitions. The gadget must come before AcquisitionAccumulateTriggerGadget, which
// drops noise.
#include "compatibility.h"
#include "gadget_log.h"
#include "scan_feed.h"

#include <Node.h>

using namespace recon_gadgets;

class ReconNoiseGadget : public Gadgetron::Core::ChannelGadget<Gadgetron::Core::Acquisition> {
public:
    ReconNoiseGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ChannelGadget(context, properties), header_(context.header), properties_(properties) {}

    void process(Gadgetron::Core::InputChannel<Gadgetron::Core::Acquisition> &in,
                 Gadgetron::Core::OutputChannel &out) override {
        log_locale(NAME);
        const NumbersInC numbers;
        auto options = initialised(recon_scan_options_init);
        options.whiten = properties_.choice<bool>("whiten", "auto", {{"auto", true}, {"none", false}});
        log_properties(NAME, properties_);
        forward_information();
        ScanFeed scan(header_, options);
        std::size_t unused = 0;
        for (auto acquisition : in) {
            const auto &head = std::get<ISMRMRD::AcquisitionHeader>(acquisition);
            auto &data = std::get<Gadgetron::hoNDArray<Complex>>(acquisition);
            const AcquisitionView view{head, data.get_data_ptr(), data.get_number_of_elements()};
            if ((purposes_of(head) & RECON_PURPOSE_NOISE) == 0) {
                scan.whiten(view, data.get_data_ptr());
                out.push(std::move(acquisition));
            } else if (options.whiten) {
                scan.add(view);
            } else {
                ++unused;
            }
            log_warnings(scan);
        }
        scan.end();
        log_warnings(scan);
        if (unused > 0) {
            GINFO("%s: property whiten is none: %zu noise acquisitions have no effect\n", NAME, unused);
        }
    }

private:
    static constexpr const char *NAME = "ReconNoiseGadget";

    void log_warnings(ScanFeed &scan) {
        for (const auto &text : scan.take_warnings()) {
            GWARN("%s: %s\n", NAME, text.c_str());
        }
    }

    const ISMRMRD::IsmrmrdHeader header_;
    Properties properties_;
};

GADGETRON_GADGET_EXPORT(ReconNoiseGadget)
