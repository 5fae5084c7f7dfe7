// Regularised least squares by conjugate gradients, with several coils CG-SENSE.
#include "gadget_base.h"

class ReconCGGadget : public recon_gadgets::ReconGadgetBase {
public:
    using Fraction = recon_gadgets::Fraction;
    using Amount = recon_gadgets::Amount;
    using Count = recon_gadgets::Count;

    ReconCGGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconCGGadget", recon_gadgets::Method::Cg, context, properties) {}

    NODE_PROPERTY(iterations, Count, "At most so many iterations", recon_gadgets::default_iterations());
    NODE_PROPERTY(residual, Fraction, "Stop when the residual has fallen to this part of the right-hand side's norm",
                  0);
    NODE_PROPERTY(lambda, Amount, "Weight of the prior, relative to the mean diagonal of E^H W E", 0);
    NODE_PROPERTY(prior, std::string,
                  "What is small in the image wanted: none, identity (values) or differences (of neighbours)", "none");
    NODE_PROPERTY(weighted, bool, "Density weights in the data term: fewer iterations do, noise is a little stronger",
                  false);

private:
    void complete(recon_gadgets::Settings &s) const override {
        using recon_gadgets::Prior;
        s.iterations = iterations.value;
        s.residual = residual.value;
        s.lambda = lambda.value;
        s.prior = recon_gadgets::choice<Prior>(
            "prior", prior,
            {{"none", Prior::None}, {"identity", Prior::Identity}, {"differences", Prior::Differences}});
        s.weighted = weighted;
        if (s.lambda > 0 && s.prior == Prior::None) {
            throw recon_gadgets::Error("property lambda is set, but prior is none: set it to identity or differences");
        }
    }
};

GADGETRON_GADGET_EXPORT(ReconCGGadget)
