// Gridding of PROPELLER blades without the motion between them (Pipe 1999).
#include "gadget_base.h"

class ReconPropellerGadget : public recon_gadgets::ReconGadgetBase {
public:
    using Count = recon_gadgets::Count;

    ReconPropellerGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconPropellerGadget", recon_gadgets::Method::Propeller, context, properties) {}

    NODE_PROPERTY(lines, Count, "Lines of a blade; 0: as many as are parallel and evenly spaced", 0);
    NODE_PROPERTY(phase, std::string,
                  "Phase that is taken from each blade: smooth (that of a smooth image, coil by coil), constant (one "
                  "for all coils) or none",
                  "smooth");
    NODE_PROPERTY(rotation, bool, "Find and correct rotations", true);
    NODE_PROPERTY(translation, bool, "Find and correct translations", true);
    NODE_PROPERTY(weighting, bool, "Blades that disagree with the others count less in the image", true);

private:
    void add_settings(recon_gadgets::Settings &s) const override {
        s.blades = {lines.value, recon_gadgets::parse_phase(phase), rotation, translation, weighting};
        recon_gadgets::check_blades(s);
    }
};

GADGETRON_GADGET_EXPORT(ReconPropellerGadget)
