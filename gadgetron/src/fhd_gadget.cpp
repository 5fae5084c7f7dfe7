// The adjoint E^H d, without scaling and without weights, for iterative gadgets later in the chain.
#include "gadget_base.h"

class ReconFHdGadget : public recon_gadgets::ReconGadgetBase {
public:
    ReconFHdGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconFHdGadget", recon_gadgets::Method::Fhd, context, properties) {}
};

GADGETRON_GADGET_EXPORT(ReconFHdGadget)
