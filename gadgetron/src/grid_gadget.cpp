// Gridding: the density-compensated adjoint, scaled to the object.
#include "gadget_base.h"

class ReconGridGadget : public recon_gadgets::ReconGadgetBase {
public:
    ReconGridGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconGridGadget", recon_gadgets::Method::Grid, context, properties) {}
};

GADGETRON_GADGET_EXPORT(ReconGridGadget)
