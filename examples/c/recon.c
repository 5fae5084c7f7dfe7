/* A complete reconstruction through the C API. Simulates a scan of a head on a radial trajectory with eight coils,
 * reconstructs it by gridding and by conjugate gradients, and prints the error of each image.
 *
 *     cc recon.c $(pkg-config --cflags --libs recon) -o recon && ./recon
 */
#include <recon.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints a message when a call fails, and jumps to `done`, where everything made so far is freed. */
#define CHECK(call)                                                                                     \
    do {                                                                                                \
        recon_status status_ = (call);                                                                  \
        if (status_ != RECON_OK) {                                                                      \
            fprintf(stderr, "%s: %s\n", recon_status_string(status_), recon_last_error_message());      \
            goto done;                                                                                  \
        }                                                                                               \
    } while (0)

static int print_progress(const recon_progress *progress, void *user_data) {
    (void)user_data;
    if (progress->iteration % 5 == 0) {
        printf("  iteration %2llu of %llu: residual %.2e\n", (unsigned long long)progress->iteration,
               (unsigned long long)progress->iterations, progress->residual);
    }
    return 0; /* anything else cancels */
}

int main(void) {
    enum { N = 128, SPOKES = 48, READOUT = 256, COILS = 8, SAMPLES = SPOKES * READOUT, VOXELS = N * N };
    int result = EXIT_FAILURE;
    recon_plan *plan = NULL;
    recon_geometry geometry;
    recon_cg_options cg;
    recon_cg_report report;
    recon_plan_properties properties;
    recon_quality gridded, solved;

    float *kx = malloc(SAMPLES * sizeof *kx);
    float *ky = malloc(SAMPLES * sizeof *ky);
    float *kspace = malloc((size_t)2 * SAMPLES * COILS * sizeof *kspace); /* complex: re, im */
    float *maps = malloc((size_t)2 * VOXELS * COILS * sizeof *maps);
    float *truth = malloc((size_t)2 * VOXELS * sizeof *truth);
    float *image = malloc((size_t)2 * VOXELS * sizeof *image);
    if (!kx || !ky || !kspace || !maps || !truth || !image) {
        fprintf(stderr, "out of memory\n");
        goto done;
    }

    /* The scan. */
    CHECK(recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky));
    CHECK(recon_geometry_init(&geometry, sizeof geometry));
    geometry.dims[0] = geometry.dims[1] = N;
    geometry.samples = SAMPLES;
    geometry.coordinates[0] = kx;
    geometry.coordinates[1] = ky;
    geometry.coils = COILS;
    CHECK(recon_phantom_image(&geometry, NULL, 0, 4, truth));
    CHECK(recon_phantom_coil_maps(&geometry, maps));
    CHECK(recon_phantom_kspace(&geometry, NULL, 0, RECON_COILS_RING, 0, kspace));
    CHECK(recon_add_noise(&geometry, 50.0, 1, kspace, NULL));

    /* The plan. With coil sensitivity maps, all coils are combined into one image. */
    geometry.coil_maps = maps;
    CHECK(recon_plan_create(&geometry, NULL, &plan));
    CHECK(recon_plan_properties_init(&properties, sizeof properties));
    CHECK(recon_plan_info(plan, &properties));
    printf("recon %s on %s (%s, %u threads), grid %llu x %llu, window of %u cells\n", recon_version(),
           properties.device, properties.simd, (unsigned)properties.threads, (unsigned long long)properties.grid[0],
           (unsigned long long)properties.grid[1], (unsigned)properties.width);

    CHECK(recon_grid(plan, kspace, image));
    CHECK(recon_quality_init(&gridded, sizeof gridded));
    CHECK(recon_metrics(&geometry, image, truth, NULL, RECON_PART_COMPLEX, RECON_SCALE_BEST, &gridded));
    printf("gridding: error %.1f %%, PSNR %.1f dB\n", gridded.percent_error, gridded.psnr_db);

    CHECK(recon_cg_options_init(&cg, sizeof cg));
    cg.iterations = 20;
    cg.tolerance = 1e-4;
    cg.progress = print_progress;
    CHECK(recon_cg_report_init(&report, sizeof report));
    CHECK(recon_cg(plan, kspace, image, &cg, &report));
    CHECK(recon_quality_init(&solved, sizeof solved));
    CHECK(recon_metrics(&geometry, image, truth, NULL, RECON_PART_COMPLEX, RECON_SCALE_NONE, &solved));
    printf("conjugate gradients: error %.1f %%, PSNR %.1f dB after %llu iterations\n", solved.percent_error,
           solved.psnr_db, (unsigned long long)report.iterations);
    result = EXIT_SUCCESS;

done:
    recon_plan_destroy(plan);
    free(kx);
    free(ky);
    free(kspace);
    free(maps);
    free(truth);
    free(image);
    return result;
}
