// Regularised least squares by conjugate gradients. With coil sensitivity maps this is CG-SENSE.
#include "gadget_base.h"

class ReconCGGadget : public recon_gadgets::ReconGadgetBase {
public:
    using Fraction = recon_gadgets::Fraction;
    using NonNegative = recon_gadgets::NonNegative;
    using Count = recon_gadgets::Count;

    ReconCGGadget(const Gadgetron::Core::Context &context, const Gadgetron::Core::GadgetProperties &properties)
        : ReconGadgetBase("ReconCGGadget", recon_gadgets::Method::Cg, context, properties) {}

    NODE_PROPERTY(iterations, Count, "Maximum number of iterations", recon_gadgets::default_iterations());
    NODE_PROPERTY(residual, Fraction,
                  "Residual at which iterations stop, relative to the norm of the right-hand side; 0: never", 0);
    NODE_PROPERTY(lambda, NonNegative, "Weight of the prior, relative to the mean diagonal of E^H W E", 0);
    NODE_PROPERTY(noise_level, NonNegative,
                  "Root of the mean |noise|^2 of a sample, from which lambda is computed; 0: use lambda", 0);
    NODE_PROPERTY(prior, std::string,
                  "Prior: none, identity (small values) or differences (small differences between neighbours)", "none");
    NODE_PROPERTY(weighted, bool, "Density weights in the data term: fewer iterations, slightly more noise", false);
    NODE_PROPERTY(warm_start, bool, "Start from the last image of the slice, if it has the same shape", false);

private:
    void add_settings(recon_gadgets::Settings &s) const override {
        using recon_gadgets::Prior;
        s.iterations = iterations.value;
        s.residual = residual.value;
        s.lambda = lambda.value;
        s.noise_level = noise_level.value;
        s.prior = recon_gadgets::parse_choice<Prior>(
            "prior", prior,
            {{"none", Prior::None}, {"identity", Prior::Identity}, {"differences", Prior::Differences}});
        s.weighted = weighted;
        s.warm_start = warm_start;
        if (s.lambda > 0 && s.prior == Prior::None) {
            throw recon_gadgets::Error("property lambda is set, but prior is none: set it to identity or differences");
        }
        if (s.noise_level > 0 && (s.lambda > 0 || s.weighted || s.prior == Prior::None)) {
            throw recon_gadgets::Error("property noise_level is set, from which lambda is computed: set prior to "
                                       "identity or differences, weighted to false, and remove lambda");
        }
    }
};

GADGETRON_GADGET_EXPORT(ReconCGGadget)
