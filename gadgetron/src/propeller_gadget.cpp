// Gridding of PROPELLER blades without the motion between them (Pipe 1999).
#include "gadget_base.h"

class ReconPropellerGadget : public recon_gadgets::ReconGadgetBase {
public:
    using Count = recon_gadgets::Count;

    ReconPropellerGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconPropellerGadget", recon_gadgets::Method::Propeller, context, properties) {}

    NODE_PROPERTY(lines, Count, "Number of lines of a blade; 0: detected from parallel, evenly spaced lines", 0);
    NODE_PROPERTY(phase, std::string,
                  "Phase that is subtracted from each blade: smooth (the phase of a smooth image, coil by coil), "
                  "constant (one phase for all coils) or none",
                  "smooth");
    NODE_PROPERTY(rotation, bool, "Estimate and correct rotations", true);
    NODE_PROPERTY(translation, bool, "Estimate and correct translations", true);
    NODE_PROPERTY(weighting, bool, "Reduce the weight of blades that disagree with the others", true);

private:
    void add_settings(recon_gadgets::Settings &s) const override {
        s.blades = {lines.value, recon_gadgets::parse_phase(phase), rotation, translation, weighting};
        recon_gadgets::check_blade_settings(s);
    }
};

GADGETRON_GADGET_EXPORT(ReconPropellerGadget)
