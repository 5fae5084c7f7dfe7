// The gadgets that make images, one for each method.
#include "gadget_base.h"

using recon_gadgets::Method;
using recon_gadgets::ReconGadgetBase;

// Gridding: the density-compensated adjoint, scaled to the object.
struct ReconGridGadget : ReconGadgetBase {
    ReconGridGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconGridGadget", Method::Grid, context, properties) {}
};

// Filtered backprojection of 2D radial data. Coil maps from the data are gridded, as in the other gadgets.
struct ReconFbpGadget : ReconGadgetBase {
    ReconFbpGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconFbpGadget", Method::Fbp, context, properties) {}
};

// Gridding of PROPELLER blades without the motion between them (Pipe 1999).
struct ReconPropellerGadget : ReconGadgetBase {
    ReconPropellerGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconPropellerGadget", Method::Propeller, context, properties) {}
};

// The adjoint E^H d, unscaled and without weights.
struct ReconFHdGadget : ReconGadgetBase {
    ReconFHdGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconFHdGadget", Method::Fhd, context, properties) {}
};

// Regularised least squares by conjugate gradients. With coil sensitivity maps this is CG-SENSE.
struct ReconCGGadget : ReconGadgetBase {
    ReconCGGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconCGGadget", Method::Cg, context, properties) {}
};

GADGETRON_GADGET_EXPORT(ReconGridGadget)
GADGETRON_GADGET_EXPORT(ReconFbpGadget)
GADGETRON_GADGET_EXPORT(ReconPropellerGadget)
GADGETRON_GADGET_EXPORT(ReconFHdGadget)
GADGETRON_GADGET_EXPORT(ReconCGGadget)
