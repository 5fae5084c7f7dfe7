/* Writes random input, and the results of the C API for it, to files that the MATLAB tests read.
 *
 *     reference FOLDER SEED
 *
 * A file has a line "class complex dims...", and then the numbers in the order of memory.
 */
#include <recon.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;
static uint64_t state;
static char prefix[64];
static uint32_t precision;

static void check(recon_status status) {
    if (status != RECON_OK) {
        fprintf(stderr, "%s: %s\n", recon_status_string(status), recon_last_error_message());
        exit(EXIT_FAILURE);
    }
}

static size_t real_bytes(void) {
    return precision == RECON_F64 ? sizeof(double) : sizeof(float);
}

/* A number in [0, 1), by xorshift64* of Marsaglia and Vigna. */
static double uniform(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)((state * 0x2545F4914F6CDD1Du) >> 11) / 9007199254740992.0;
}

static void *buffer(size_t count) {
    void *memory = malloc(count ? count * real_bytes() : 1);
    if (!memory) {
        exit(EXIT_FAILURE);
    }
    memset(memory, 0xA5, count * real_bytes());
    return memory;
}

static void *random_reals(size_t count, double from, double to) {
    void *values = buffer(count);
    for (size_t i = 0; i < count; i++) {
        double value = from + (to - from) * uniform();
        if (precision == RECON_F64) {
            ((double *)values)[i] = value;
        } else {
            ((float *)values)[i] = (float)value;
        }
    }
    return values;
}

static void put_as(const char *name, int is_double, int complex, const void *data, size_t ndim, const uint64_t *dims) {
    char path[1024];
    size_t count = complex ? 2 : 1;
    snprintf(path, sizeof path, "%s/%s%s", folder, prefix, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fprintf(file, "%s %d", is_double ? "double" : "single", complex);
    for (size_t d = 0; d < ndim; d++) {
        fprintf(file, " %llu", (unsigned long long)dims[d]);
        count *= (size_t)dims[d];
    }
    fprintf(file, "\n");
    if (fwrite(data, is_double ? sizeof(double) : sizeof(float), count, file) != count || fclose(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

#define PUT(name, complex, data, ...)                                                       \
    do {                                                                                    \
        const uint64_t dims_[] = {__VA_ARGS__};                                             \
        put_as(name, precision == RECON_F64, complex, data, sizeof dims_ / sizeof *dims_, dims_); \
    } while (0)

static void put_numbers(const char *name, const double *values, size_t count) {
    const uint64_t dims[] = {1, count};
    put_as(name, 1, 0, values, 2, dims);
}

static void put_quality(const void *image, const void *truth, const recon_geometry *geometry, const uint8_t *mask,
                        uint32_t part, uint32_t scale, const char *name) {
    recon_quality q;
    check(recon_quality_init(&q, sizeof q));
    check(recon_metrics(geometry, image, truth, mask, part, scale, &q));
    double values[] = {q.percent_error, q.mse, q.psnr_db, q.snr_db, q.scale_re, q.scale_im};
    put_numbers(name, values, 6);
}

/* PROPELLER blades of coils and frames, with noise, that are corrected in two ways. */
static void propeller(void) {
    enum { READOUT = 40, LINES = 10, BLADES = 9, COILS = 2, FRAMES = 2, SAMPLES = READOUT * LINES * BLADES };
    const uint64_t n[2] = {32, 30}, all = (uint64_t)SAMPLES * COILS * FRAMES;
    recon_geometry g;
    recon_options o;
    recon_propeller_options how;
    recon_propeller_report report;
    char *k = buffer(2 * SAMPLES), *where = buffer(2 * SAMPLES * FRAMES);
    void *kspace = buffer(2 * all), *image = buffer(2 * n[0] * n[1] * COILS * FRAMES), *corrected = buffer(2 * all);
    void *weights = buffer(SAMPLES * FRAMES);
    double motion[6 * BLADES * FRAMES], deviation;
    snprintf(prefix, sizeof prefix, "blades_%s_", precision == RECON_F64 ? "double" : "single");
    check(recon_trajectory_propeller(precision, BLADES, LINES, READOUT, k, k + SAMPLES * real_bytes()));
    PUT("k", 0, k, READOUT, LINES, BLADES, 2);
    check(recon_geometry_init(&g, sizeof g));
    check(recon_options_init(&o, sizeof o));
    g.precision = precision;
    memcpy(g.dims, n, sizeof n);
    g.samples = SAMPLES;
    g.coordinates[0] = k;
    g.coordinates[1] = k + SAMPLES * real_bytes();
    g.coils = COILS;
    g.frames = FRAMES;
    o.tolerance = 1e-5;
    check(recon_phantom_kspace(&g, NULL, 0, RECON_COILS_RING, 0, kspace));
    check(recon_add_noise(&g, 5.0, 7, kspace, &deviation));
    PUT("kspace", 1, kspace, READOUT, LINES, BLADES, COILS, FRAMES);
    for (int constant = 0; constant < 2; constant++) {
        snprintf(prefix, sizeof prefix, "blades%d_%s_", constant, precision == RECON_F64 ? "double" : "single");
        check(recon_propeller_options_init(&how, sizeof how));
        check(recon_propeller_report_init(&report, sizeof report));
        if (constant) {
            how.phase = RECON_BLADE_PHASE_CONSTANT;
            how.lines = LINES;
            how.rotation = 0;
            how.weighting = 0;
        }
        report.motion = motion;
        report.motion_capacity = sizeof motion / sizeof *motion;
        report.coordinates[0] = where;
        report.coordinates[1] = where + SAMPLES * FRAMES * real_bytes();
        report.weights = weights;
        report.kspace = corrected;
        check(recon_propeller(&g, &o, &how, kspace, image, &report));
        PUT("image", 1, image, n[0], n[1], COILS, FRAMES);
        const uint64_t numbers[] = {6, BLADES, FRAMES};
        put_as("motion", 1, 0, motion, 3, numbers);
        PUT("where", 0, where, READOUT, LINES, BLADES, FRAMES, 2);
        PUT("weights", 0, weights, READOUT, LINES, BLADES, FRAMES);
        PUT("corrected", 1, corrected, READOUT, LINES, BLADES, COILS, FRAMES);
    }
}

/* One scan: every operation of a plan. */
static void scan(uint32_t ndim, const uint64_t *n, uint64_t readout, uint64_t shots, uint64_t coils, uint64_t frames) {
    uint64_t samples = readout * shots, nz = ndim == 3 ? n[2] : 1, voxels = n[0] * n[1] * nz;
    recon_geometry g;
    recon_options o;
    recon_cg_options cg;
    recon_cg_report report;
    recon_plan *plan;
    snprintf(prefix, sizeof prefix, "%uD_%s_", (unsigned)ndim, precision == RECON_F64 ? "double" : "single");

    char *k = random_reals(ndim * samples, -0.5, 0.4999);
    /* The first samples are the centre of k-space, which coil maps need. */
    const uint64_t central = ndim == 3 ? 27 : 9;
    for (uint64_t m = 0; m < central && m < samples; m++) {
        uint64_t rest = m;
        for (uint32_t d = 0; d < ndim; d++, rest /= 3) {
            const double place = ((double)(rest % 3) - 1.0) / (double)n[d];
            if (precision == RECON_F64) {
                ((double *)k)[d * samples + m] = place;
            } else {
                ((float *)k)[d * samples + m] = (float)place;
            }
        }
    }
    void *weights = random_reals(samples, 0.5, 1.5), *maps = random_reals(2 * voxels * coils, -1.0, 1.0);
    void *kspace = random_reals(2 * samples * coils * frames, -1.0, 1.0);
    void *image = random_reals(2 * voxels * frames, -1.0, 1.0);
    void *images = random_reals(2 * voxels * coils * frames, -1.0, 1.0), *reference = random_reals(voxels, 0.0, 1.0);
    void *out_image = buffer(2 * voxels * coils * frames), *out_kspace = buffer(2 * samples * coils * frames);
    PUT("k", 0, k, readout, shots, ndim);
    PUT("weights", 0, weights, readout, shots);
    PUT("maps", 1, maps, n[0], n[1], nz, coils);
    PUT("kspace", 1, kspace, readout, shots, coils, frames);
    PUT("image", 1, image, n[0], n[1], nz, frames);
    PUT("images", 1, images, n[0], n[1], nz, coils, frames);
    PUT("reference", 0, reference, n[0], n[1], nz);

    check(recon_geometry_init(&g, sizeof g));
    check(recon_options_init(&o, sizeof o));
    g.precision = precision;
    g.ndim = ndim;
    memcpy(g.dims, n, ndim * sizeof *n);
    g.samples = samples;
    for (uint32_t d = 0; d < ndim; d++) {
        g.coordinates[d] = k + d * samples * real_bytes();
    }
    g.coils = coils;
    g.frames = frames;
    o.tolerance = 1e-5;

    /* Coils with maps, and weights. */
    g.weights = weights;
    g.coil_maps = maps;
    check(recon_plan_create(&g, &o, &plan));
    check(recon_forward(plan, image, out_kspace));
    PUT("forward", 1, out_kspace, readout, shots, coils, frames);
    check(recon_fhd(plan, kspace, out_image));
    PUT("fhd", 1, out_image, n[0], n[1], nz, frames);
    check(recon_weighted_fhd(plan, kspace, out_image));
    PUT("rhs", 1, out_image, n[0], n[1], nz, frames);
    check(recon_normal(plan, image, out_image));
    PUT("normal", 1, out_image, n[0], n[1], nz, frames);
    check(recon_grid(plan, kspace, out_image));
    PUT("grid", 1, out_image, n[0], n[1], nz, frames);
    void *q = buffer(2 * (voxels << ndim));
    check(recon_q(plan, q));
    PUT("q", 1, q, 2 * n[0], 2 * n[1], ndim == 3 ? 2 * nz : 1);

    const uint32_t priors[] = {RECON_PRIOR_IDENTITY, RECON_PRIOR_DIFFERENCES, RECON_PRIOR_ANATOMICAL,
                               RECON_PRIOR_MATRIX};
    const char *names[] = {"identity", "differences", "anatomical", "matrix"};
    uint64_t rows = voxels + 3, starts[rows + 1], columns[rows], iterations = 5;
    double residuals[(iterations + 1) * frames];
    void *values = random_reals(2 * rows, -1.0, 1.0);
    double triples[rows];
    for (uint64_t r = 0; r < rows; r++) {
        starts[r] = r;
        columns[r] = (uint64_t)(uniform() * (double)voxels);
        triples[r] = (double)columns[r] + 1.0;
    }
    starts[rows] = rows;
    put_numbers("matrix_columns", triples, rows);
    PUT("matrix_values", 1, values, rows, 1);
    for (size_t p = 0; p < 4; p++) {
        char name[64];
        check(recon_cg_options_init(&cg, sizeof cg));
        check(recon_cg_report_init(&report, sizeof report));
        cg.iterations = iterations;
        cg.prior = priors[p];
        cg.lambda = 0.3;
        cg.reference = reference;
        cg.edge = 0.2;
        cg.matrix_rows = rows;
        cg.matrix_starts = starts;
        cg.matrix_columns = columns;
        cg.matrix_values = values;
        cg.initial = p == 1 ? image : NULL;
        report.residuals = residuals;
        report.residual_capacity = (iterations + 1) * frames;
        check(recon_cg(plan, kspace, out_image, &cg, &report));
        snprintf(name, sizeof name, "cg_%s", names[p]);
        PUT(name, 1, out_image, n[0], n[1], nz, frames);
        snprintf(name, sizeof name, "residuals_%s", names[p]);
        const uint64_t dims[] = {iterations + 1, frames};
        put_as(name, 1, 0, residuals, 2, dims);
    }
    recon_plan_destroy(plan);

    /* Coils without maps, without weights. */
    g.weights = NULL;
    g.coil_maps = NULL;
    check(recon_plan_create(&g, &o, &plan));
    check(recon_forward(plan, images, out_kspace));
    PUT("plain_forward", 1, out_kspace, readout, shots, coils, frames);
    check(recon_fhd(plan, kspace, out_image));
    PUT("plain_fhd", 1, out_image, n[0], n[1], nz, coils, frames);
    check(recon_grid(plan, kspace, out_image));
    PUT("plain_grid", 1, out_image, n[0], n[1], nz, coils, frames);
    check(recon_cg(plan, kspace, out_image, NULL, NULL));
    PUT("plain_cg", 1, out_image, n[0], n[1], nz, coils, frames);
    check(recon_coil_maps(plan, kspace, 2, out_image));
    PUT("estimated_maps", 1, out_image, n[0], n[1], nz, coils);
    static const struct {
        const char *name;
        uint32_t number;
    } methods[] = {{"pipe-menon", RECON_DENSITY_PIPE_MENON}, {"jackson", RECON_DENSITY_JACKSON}};
    for (size_t m = 0; m < 2; m++) {
        void *density = buffer(samples);
        check(recon_density(plan, methods[m].number, 7, 1e-9, density));
        PUT(methods[m].name, 0, density, readout, shots);
        free(density);
    }
    recon_plan_destroy(plan);

    /* Spokes, backprojected with each filter. */
    if (ndim == 2) {
        char *spokes = buffer(2 * samples);
        recon_geometry radial = g;
        check(recon_trajectory_radial2d(precision, shots, readout, RECON_SPOKES_GOLDEN_ANGLE, spokes,
                                        spokes + samples * real_bytes()));
        radial.coordinates[0] = spokes;
        radial.coordinates[1] = spokes + samples * real_bytes();
        PUT("spokes", 0, spokes, readout, shots, 2);
        check(recon_plan_create(&radial, &o, &plan));
        static const char *filters[] = {"ram-lak", "shepp-logan", "cosine", "hamming", "hann"};
        for (uint32_t f = 0; f < 5; f++) {
            check(recon_fbp(plan, f, kspace, out_image));
            PUT(filters[f], 1, out_image, n[0], n[1], nz, coils, frames);
        }
        recon_plan_destroy(plan);
    }

    /* Another method, and box voxels. */
    o.method = RECON_METHOD_EXACT;
    g.basis = RECON_BASIS_BOX;
    check(recon_plan_create(&g, &o, &plan));
    check(recon_fhd(plan, kspace, out_image));
    PUT("exact_fhd", 1, out_image, n[0], n[1], nz, coils, frames);
    recon_plan_destroy(plan);
    check(recon_options_init(&o, sizeof o));
    o.tolerance = 1e-2;
    o.window = RECON_WINDOW_GAUSSIAN;
    o.normal = RECON_NORMAL_TRANSFORMS;
    check(recon_plan_create(&g, &o, &plan));
    check(recon_normal(plan, images, out_image));
    PUT("gaussian_normal", 1, out_image, n[0], n[1], nz, coils, frames);
    recon_plan_destroy(plan);
    g.basis = RECON_BASIS_POINT;
    check(recon_options_init(&o, sizeof o));
    o.tolerance = 0.1;
    o.width = 4;
    o.oversampling = 1.5;
    check(recon_plan_create(&g, &o, &plan));
    check(recon_fhd(plan, kspace, out_image));
    PUT("narrow_fhd", 1, out_image, n[0], n[1], nz, coils, frames);
    recon_plan_destroy(plan);

    /* A list of voxels. */
    uint64_t listed = 37;
    char *positions = random_reals(ndim * listed, -3.0, 3.0);
    PUT("voxels", 0, positions, listed, ndim);
    check(recon_options_init(&o, sizeof o));
    g.voxel_count = listed;
    for (uint32_t d = 0; d < ndim; d++) {
        g.voxels[d] = positions + d * listed * real_bytes();
    }
    void *at_list = buffer(2 * listed * coils * frames);
    check(recon_plan_create(&g, &o, &plan));
    check(recon_fhd(plan, kspace, at_list));
    PUT("list_fhd", 1, at_list, listed, coils, frames);
    recon_plan_destroy(plan);
    g.voxel_count = 0;
    memset(g.voxels, 0, sizeof g.voxels);

    /* Without a plan. */
    check(recon_combine(&g, RECON_COMBINE_ROOT_SUM_OF_SQUARES, images, out_image));
    PUT("rss", 1, out_image, n[0], n[1], nz, frames);
    check(recon_combine(&g, RECON_COMBINE_ADAPTIVE, images, out_image));
    PUT("adaptive", 1, out_image, n[0], n[1], nz, frames);
    uint8_t *mask = malloc(voxels);
    double chosen[voxels];
    for (uint64_t i = 0; i < voxels; i++) {
        mask[i] = i % 3 != 0;
        chosen[i] = mask[i];
    }
    put_numbers("mask", chosen, voxels);
    put_quality(image, maps, &g, NULL, RECON_PART_COMPLEX, RECON_SCALE_NONE, "quality");
    put_quality(image, maps, &g, mask, RECON_PART_COMPLEX, RECON_SCALE_BEST, "quality_masked");
    put_quality(image, maps, &g, NULL, RECON_PART_MAGNITUDE, RECON_SCALE_BEST, "quality_magnitude");

    check(recon_phantom_image(&g, NULL, 0, 3, out_image));
    PUT("phantom", 1, out_image, n[0], n[1], nz);
    check(recon_phantom_coil_maps(&g, out_image));
    PUT("phantom_maps", 1, out_image, n[0], n[1], nz, coils);
    double shapes[] = {1.0,  0.1, -0.2, 0.0, 0.5, 0.3, 0.6, 0.4, 0.0, 0.0,
                       -0.5, 0.0, 0.1,  0.0, 0.2, 0.2, 0.3, 0.0, 0.0, 0.0};
    g.frames = 1;
    check(recon_phantom_kspace(&g, shapes, 2, RECON_COILS_RING, 0, out_kspace));
    PUT("phantom_kspace", 1, out_kspace, readout, shots, coils);
    double deviation;
    check(recon_add_noise(&g, 20.0, 42, out_kspace, &deviation));
    PUT("noisy", 1, out_kspace, readout, shots, coils);
    put_numbers("deviation", &deviation, 1);

    free(k);
    free(weights);
    free(maps);
    free(kspace);
    free(image);
    free(images);
    free(reference);
    free(out_image);
    free(out_kspace);
    free(q);
    free(values);
    free(positions);
    free(at_list);
    free(mask);
}

static void trajectories(void) {
    uint64_t dims[] = {7, 6, 5};
    char *k = buffer(3 * 11 * 6 * 4);
    snprintf(prefix, sizeof prefix, "trajectory_%s_", precision == RECON_F64 ? "double" : "single");
    size_t bytes = real_bytes();
#define AXES(samples) k, k + (samples) * bytes, k + 2 * (samples) * bytes
    check(recon_trajectory_cartesian(precision, 3, dims, AXES(210)));
    PUT("cartesian", 0, k, 7, 6, 5, 3);
    check(recon_trajectory_radial2d(precision, 6, 11, RECON_SPOKES_LINEAR, k, k + 66 * bytes));
    PUT("radial", 0, k, 11, 6, 2);
    recon_geometry g;
    check(recon_geometry_init(&g, sizeof g));
    g.precision = precision;
    g.dims[0] = g.dims[1] = 8;
    g.samples = 66;
    g.coordinates[0] = k;
    g.coordinates[1] = k + 66 * bytes;
    recon_plan *plan;
    check(recon_plan_create(&g, NULL, &plan));
    void *ramp = buffer(66);
    check(recon_density(plan, RECON_DENSITY_RAMP, 0, 0, ramp));
    PUT("ramp", 0, ramp, 11, 6);
    free(ramp);
    recon_plan_destroy(plan);
    check(recon_trajectory_radial2d(precision, 6, 11, RECON_SPOKES_GOLDEN_ANGLE, k, k + 66 * bytes));
    PUT("golden", 0, k, 11, 6, 2);
    check(recon_trajectory_radial3d(precision, 6, 11, AXES(66)));
    PUT("radial3d", 0, k, 11, 6, 3);
    check(recon_trajectory_stack_of_stars(precision, 6, 11, 4, RECON_SPOKES_LINEAR, AXES(264)));
    PUT("stack", 0, k, 11, 6, 4, 3);
    check(recon_trajectory_stack_of_stars(precision, 6, 11, 4, RECON_SPOKES_GOLDEN_ANGLE, AXES(264)));
    PUT("stack_golden", 0, k, 11, 6, 4, 3);
    check(recon_trajectory_spiral(precision, 6, 11, 2.5, 1.5, k, k + 66 * bytes));
    PUT("spiral", 0, k, 11, 6, 2);
    check(recon_trajectory_rosette(precision, 6, 11, 2.0, 3.0, k, k + 66 * bytes));
    PUT("rosette", 0, k, 11, 6, 2);
    check(recon_trajectory_lissajous(precision, 6, 11, 3, 4, k, k + 66 * bytes));
    PUT("lissajous", 0, k, 11, 6, 2);
    check(recon_trajectory_propeller(precision, 3, 4, 11, k, k + 132 * bytes));
    PUT("propeller", 0, k, 11, 4, 3, 2);
    check(recon_trajectory_propeller_scan(precision, 3, 4, 11, 9, k, k + 132 * bytes));
    PUT("propeller_scan", 0, k, 11, 4, 3, 2);
    free(k);
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: reference FOLDER SEED\n");
        return EXIT_FAILURE;
    }
    folder = arguments[1];
    state = strtoull(arguments[2], NULL, 10) | 1;
    const uint64_t plane[] = {18, 15}, cube[] = {10, 9, 8};
    for (precision = RECON_F32; precision <= RECON_F64; precision++) {
        scan(2, plane, 40, 13, 3, 2);
        scan(3, cube, 30, 21, 2, 1);
        trajectories();
        propeller();
    }
    return EXIT_SUCCESS;
}
