/* A program in the ABI of Microsoft's compiler. clang compiles it for x86_64-pc-windows-msvc, and lld-link links it
 * with the import library recon.lib, without headers and libraries of Microsoft: tests/windows/run.sh. The exit status
 * is 0, or the number of the call that failed. */
#include <recon.h>

#include <stddef.h>

__declspec(dllimport) void __stdcall ExitProcess(unsigned status);

/* The linker requires this name if floating-point numbers are used, and Microsoft's library has it. */
int _fltused = 1;

enum { N = 32, SPOKES = 24, READOUT = 64, SAMPLES = SPOKES * READOUT };
static float kx[SAMPLES], ky[SAMPLES], kspace[2 * SAMPLES], image[2 * N * N];
static unsigned last;

static int progress(const recon_progress *now, void *user_data) {
    unsigned *count = user_data;
    (void)now;
    ++*count;
    return 0;
}

static unsigned reconstruct(void) {
    recon_geometry geometry;
    recon_cg_options options;
    recon_plan *plan;
    float energy = 0;
    unsigned iterations = 0;
    if (recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky) != RECON_OK) return 1;
    if (recon_geometry_init(&geometry, sizeof geometry) != RECON_OK) return 2;
    geometry.dims[0] = geometry.dims[1] = N;
    geometry.samples = SAMPLES;
    geometry.coordinates[0] = kx;
    geometry.coordinates[1] = ky;
    if (recon_phantom_kspace(&geometry, NULL, 0, 0, 2, kspace) != RECON_OK) return 3;
    if (recon_plan_create(&geometry, NULL, &plan) != RECON_OK) return 4;
    if (recon_cg_options_init(&options, sizeof options) != RECON_OK) return 5;
    options.iterations = 7;
    options.progress = progress;
    options.user_data = &iterations;
    if (recon_cg(plan, kspace, image, &options, NULL) != RECON_OK) return 6;
    recon_plan_destroy(plan);
    for (int i = 0; i < 2 * N * N; i++) energy += image[i] * image[i];
    if (!(energy > 1)) return 7;
    if (iterations < 7) return 8;
    /* An error, and its text. */
    if (recon_plan_create(NULL, NULL, &plan) != RECON_NULL_POINTER) return 9;
    if (!recon_last_error_message()[0]) return 10;
    return 0;
}

void start(void) {
    last = reconstruct();
    ExitProcess(last);
}
