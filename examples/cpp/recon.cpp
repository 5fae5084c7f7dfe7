// A full reconstruction from C++, in double precision: the Shepp-Logan head phantom on a radial trajectory with eight
// coils, by gridding and by conjugate gradients.
//
//     c++ -std=c++11 recon.cpp $(pkg-config --cflags --libs recon) -o recon && ./recon
#include <recon.h>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Turns every status other than RECON_OK into an exception.
void check(recon_status status) {
    if (status != RECON_OK) {
        throw std::runtime_error(std::string(recon_status_string(status)) + ": " + recon_last_error_message());
    }
}

// A structure with its defaults: initialised<recon_options>(recon_options_init).
template <class S>
S initialised(recon_status (*init)(S *, std::uint32_t)) {
    S s;
    check(init(&s, sizeof s));
    return s;
}

// A plan that is destroyed together with this object.
class Plan {
public:
    explicit Plan(const recon_geometry &geometry, const recon_options *options = nullptr) {
        recon_plan *plan = nullptr;
        check(recon_plan_create(&geometry, options, &plan));
        plan_.reset(plan);
    }

    recon_plan *get() const { return plan_.get(); }

private:
    struct Destroy {
        void operator()(recon_plan *plan) const { recon_plan_destroy(plan); }
    };
    std::unique_ptr<recon_plan, Destroy> plan_;
};

int print_progress(const recon_progress *progress, void *calls) {
    ++*static_cast<int *>(calls);
    if (progress->iteration % 5 == 0) {
        std::printf("  iteration %2d: residual %.2e\n", static_cast<int>(progress->iteration), progress->residual);
    }
    return 0;  // anything else cancels
}

void run() {
    using Complex = std::complex<double>;  // real and imaginary part interleaved, as in the library
    const std::size_t n = 128, spokes = 48, readout = 256, coils = 8, samples = spokes * readout, voxels = n * n;

    std::vector<double> k(2 * samples), kx(samples), ky(samples);
    check(recon_trajectory_radial2d(RECON_F64, spokes, readout, RECON_SPOKES_GOLDEN_ANGLE, kx.data(), ky.data()));
    // The coordinates of one sample lie next to each other, as scanners often deliver them.
    for (std::size_t m = 0; m < samples; ++m) {
        k[2 * m] = kx[m];
        k[2 * m + 1] = ky[m];
    }

    auto geometry = initialised(recon_geometry_init);
    geometry.precision = RECON_F64;
    geometry.dims[0] = geometry.dims[1] = n;
    geometry.samples = samples;
    geometry.coordinates[0] = &k[0];
    geometry.coordinates[1] = &k[1];
    geometry.coordinate_stride = 2;
    geometry.coils = coils;

    std::vector<Complex> truth(voxels), maps(voxels * coils), kspace(samples * coils), image(voxels);
    check(recon_phantom_image(&geometry, nullptr, 0, 4, truth.data()));
    check(recon_phantom_coil_maps(&geometry, maps.data()));
    check(recon_phantom_kspace(&geometry, nullptr, 0, RECON_COILS_RING, 0, kspace.data()));
    check(recon_add_noise(&geometry, 50.0, 1, kspace.data(), nullptr));

    geometry.coil_maps = maps.data();
    auto options = initialised(recon_options_init);
    options.tolerance = 1e-6;
    const Plan plan(geometry, &options);

    auto quality = initialised(recon_quality_init);
    check(recon_grid(plan.get(), kspace.data(), image.data()));
    check(recon_metrics(&geometry, image.data(), truth.data(), nullptr, RECON_PART_COMPLEX, RECON_SCALE_BEST,
                        &quality));
    std::printf("gridding: error %.1f %%, PSNR %.1f dB\n", quality.percent_error, quality.psnr_db);

    int calls = 0;
    auto cg = initialised(recon_cg_options_init);
    cg.iterations = 20;
    cg.progress = print_progress;
    cg.user_data = &calls;
    std::vector<double> residuals(cg.iterations + 1);
    auto report = initialised(recon_cg_report_init);
    report.residuals = residuals.data();
    report.residual_capacity = residuals.size();
    check(recon_cg(plan.get(), kspace.data(), image.data(), &cg, &report));
    check(recon_metrics(&geometry, image.data(), truth.data(), nullptr, RECON_PART_COMPLEX, RECON_SCALE_NONE,
                        &quality));
    std::printf("conjugate gradients: error %.1f %%, PSNR %.1f dB after %d iterations, %d calls of progress\n",
                quality.percent_error, quality.psnr_db, static_cast<int>(report.iterations), calls);
}

}  // namespace

int main() {
    try {
        run();
        return 0;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
