/* A caller of librecon. tests/abi.rs compiles it with each kept header, and runs it with today's library. It checks
 * that structures, callbacks, constants and the log mean the same to both. Functions that later versions add go between
 * #if and #endif, with RECON_VERSION_MINOR. */
#include <recon.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* In a generated file: calls each _init function with the size in this header, and refers to all functions. */
int check_structures(void);

#define REQUIRE(condition)                                                                            \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, recon_last_error_message());   \
            return 1;                                                                                 \
        }                                                                                             \
    } while (0)

enum { N = 32, SPOKES = 24, READOUT = 64, SAMPLES = SPOKES * READOUT, ITERATIONS = 5 };

static float kx[SAMPLES], ky[SAMPLES], kspace[2 * SAMPLES], image[2 * N * N], truth[2 * N * N];

/* Records of the callbacks. */
typedef struct {
    uint64_t calls, stop_at;
    double residual;
} progress_record;

static struct {
    unsigned errors;
    const recon_plan *plan;
    char text[512];
} last_error;

static int record_progress(const recon_progress *progress, void *user_data) {
    progress_record *record = user_data;
    record->calls++;
    record->residual = progress->residual;
    return progress->images == 1 && progress->iterations == ITERATIONS && progress->iteration >= record->stop_at;
}

static void record_error(const recon_log_message *message, void *user_data) {
    (void)user_data;
    if (message->level == RECON_LOG_ERROR) {
        last_error.errors++;
        last_error.plan = message->plan;
        strncpy(last_error.text, message->text, sizeof last_error.text - 1);
    }
}

/* Returns the relative error of the image. */
static double error_of_image(const recon_geometry *geometry) {
    recon_quality quality;
    if (recon_quality_init(&quality, sizeof quality) != RECON_OK ||
        recon_metrics(geometry, image, truth, NULL, RECON_PART_COMPLEX, RECON_SCALE_BEST, &quality) != RECON_OK) {
        return NAN;
    }
    return quality.percent_error;
}

int main(void) {
    recon_geometry geometry;
    recon_options options;
    recon_cg_options cg;
    recon_cg_report report;
    recon_plan_properties properties;
    recon_plan *plan = NULL, *other = NULL;
    progress_record record = {0, ITERATIONS + 1, -1.0};
    double residuals[ITERATIONS + 1];

    REQUIRE(check_structures() == 0);
    REQUIRE(strcmp(recon_status_name(RECON_CANCELLED), "Cancelled") == 0);
    REQUIRE(strcmp(recon_status_string((recon_status)1000), "unknown status") == 0);

    REQUIRE(recon_geometry_init(&geometry, sizeof geometry) == RECON_OK);
    geometry.dims[0] = geometry.dims[1] = N;
    geometry.samples = SAMPLES;
    geometry.coordinates[0] = kx;
    geometry.coordinates[1] = ky;
    REQUIRE(recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky) == RECON_OK);
    REQUIRE(recon_phantom_kspace(&geometry, NULL, 0, RECON_COILS_UNIFORM, 0, kspace) == RECON_OK);
    REQUIRE(recon_phantom_image(&geometry, NULL, 0, 4, truth) == RECON_OK);

    REQUIRE(recon_options_init(&options, sizeof options) == RECON_OK);
    options.device = RECON_DEVICE_CPU;
    options.threads = 1;
    options.tolerance = 1e-4;
    REQUIRE(recon_plan_create(&geometry, &options, &plan) == RECON_OK);
    REQUIRE(recon_plan_create(&geometry, &options, &other) == RECON_OK);
    REQUIRE(recon_plan_properties_init(&properties, sizeof properties) == RECON_OK);
    REQUIRE(recon_plan_info(plan, &properties) == RECON_OK);
    REQUIRE(properties.threads == 1 && properties.kspace_elements == SAMPLES && properties.image_elements == N * N);

    REQUIRE(recon_grid(plan, kspace, image) == RECON_OK);
    REQUIRE(error_of_image(&geometry) < 40.0);
    REQUIRE(recon_cg_options_init(&cg, sizeof cg) == RECON_OK);
    cg.iterations = ITERATIONS;
    cg.progress = record_progress;
    cg.user_data = &record;
    REQUIRE(recon_cg_report_init(&report, sizeof report) == RECON_OK);
    report.residuals = residuals;
    report.residual_capacity = ITERATIONS + 1;
    REQUIRE(recon_cg(plan, kspace, image, &cg, &report) == RECON_OK);
    REQUIRE(error_of_image(&geometry) < 30.0);
    REQUIRE(report.iterations == ITERATIONS && record.calls == ITERATIONS + 1);
    REQUIRE(report.residual == record.residual && residuals[ITERATIONS] == record.residual);

    /* Errors reach the log with the plan of the call, also one that a callback causes. */
    REQUIRE(recon_set_log_callback(record_error, NULL, RECON_LOG_ERROR) == RECON_OK);
    record.stop_at = 2;
    REQUIRE(recon_cg(plan, kspace, image, &cg, NULL) == RECON_CANCELLED);
    REQUIRE(last_error.errors == 1 && last_error.plan == plan);
    REQUIRE(strcmp(last_error.text, recon_last_error_message()) == 0);
    REQUIRE(recon_fbp(other, 99, kspace, image) == RECON_UNKNOWN_VALUE);
    REQUIRE(last_error.errors == 2 && last_error.plan == other);
    REQUIRE(recon_plan_create(&geometry, &options, NULL) == RECON_NULL_POINTER);
    REQUIRE(last_error.errors == 3 && last_error.plan == NULL);
    REQUIRE(recon_set_log_callback(NULL, NULL, RECON_LOG_OFF) == RECON_OK);

    recon_plan_destroy(other);
    recon_plan_destroy(plan);
    puts("ok");
    return 0;
}
