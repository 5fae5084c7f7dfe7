// Filtered backprojection of 2D radial data. Coil maps from the data are gridded, as in the other gadgets.
#include "gadget_base.h"

class ReconFbpGadget : public recon_gadgets::ReconGadgetBase {
public:
    ReconFbpGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconFbpGadget", recon_gadgets::Method::Fbp, context, properties) {}

    NODE_PROPERTY(filter, std::string,
                  "Window that is multiplied with the ramp: ram-lak (none), shepp-logan, cosine, hamming or hann",
                  "ram-lak");

private:
    void add_settings(recon_gadgets::Settings &s) const override { s.filter = recon_gadgets::parse_filter(filter); }
};

GADGETRON_GADGET_EXPORT(ReconFbpGadget)
