// Gridding: the density-compensated adjoint, scaled to the object.
#include "gadget_base.h"

class ReconGridGadget : public recon_gadgets::ReconGadgetBase {
public:
    ReconGridGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconGridGadget", recon_gadgets::Method::Grid, context, properties) {}

    NODE_PROPERTY(partial_fourier, std::string,
                  "Method for k-space of which a side is missing along one axis: none, homodyne or pocs", "none");

private:
    void add_settings(recon_gadgets::Settings &s) const override {
        s.partial_fourier = recon_gadgets::parse_partial_fourier(partial_fourier);
        recon_gadgets::check_partial_fourier(s);
    }
};

GADGETRON_GADGET_EXPORT(ReconGridGadget)
