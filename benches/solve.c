// A program that reconstructs by conjugate gradients. It reads BART's .cfl files, makes a plan, solves and writes the
// image. `bart pics` does the same on the same files, so that whole processes can be compared.
//
//     solve NX NY NZ COILS ITERATIONS THREADS TOLERANCE trajectory.cfl kspace.cfl maps.cfl image.cfl
//
// NZ is 1 in 2D. The trajectory is a complex array [3, samples] in cycles per field of view. For one coil, "-" in place
// of maps.cfl stands for no coil sensitivity maps.
#include <recon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(recon_status status, const char *what)
{
    if (status != RECON_OK)
        fail(what, recon_last_error_message());
}

static float *read_file(const char *path, size_t *complexes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path, "cannot be opened");
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    float *values = malloc(bytes);
    if (!values || fread(values, 1, bytes, file) != bytes)
        fail(path, "cannot be read");
    fclose(file);
    *complexes = bytes / (2 * sizeof(float));
    return values;
}

static void write_file(const char *path, const float *values, size_t complexes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(values, 2 * sizeof(float), complexes, file) != complexes || fclose(file))
        fail(path, "cannot be written");
}

int main(int count, char **arguments)
{
    if (count != 12)
        fail("solve", "NX NY NZ COILS ITERATIONS THREADS TOLERANCE trajectory kspace maps image");
    recon_geometry geometry;
    check(recon_geometry_init(&geometry, sizeof geometry), "geometry");
    size_t voxels = 1;
    for (int axis = 0; axis < 3; axis++) {
        geometry.dims[axis] = strtoull(arguments[1 + axis], NULL, 10);
        voxels *= geometry.dims[axis];
    }
    geometry.ndim = geometry.dims[2] > 1 ? 3 : 2;
    geometry.coils = strtoull(arguments[4], NULL, 10);

    size_t points;
    float *trajectory = read_file(arguments[8], &points);
    const size_t samples = points / 3;
    geometry.samples = samples;
    for (uint32_t axis = 0; axis < geometry.ndim; axis++) {
        float *k = malloc(samples * sizeof *k);
        if (!k)
            fail("solve", "out of memory");
        for (size_t m = 0; m < samples; m++)
            k[m] = trajectory[2 * (3 * m + axis)] / geometry.dims[axis];
        geometry.coordinates[axis] = k;
    }
    free(trajectory);

    size_t elements;
    float *kspace = read_file(arguments[9], &elements);
    if (elements != samples * geometry.coils)
        fail(arguments[9], "not as many samples as the trajectory has for every coil");
    if (strcmp(arguments[10], "-"))
        geometry.coil_maps = read_file(arguments[10], &elements);

    recon_options options;
    check(recon_options_init(&options, sizeof options), "options");
    options.device = RECON_DEVICE_CPU;
    options.threads = strtoul(arguments[6], NULL, 10);
    options.tolerance = strtod(arguments[7], NULL);
    recon_cg_options cg;
    check(recon_cg_options_init(&cg, sizeof cg), "options");
    cg.iterations = strtoull(arguments[5], NULL, 10);

    recon_plan *plan;
    check(recon_plan_create(&geometry, &options, &plan), "plan");
    float *image = malloc(voxels * 2 * sizeof *image);
    if (!image)
        fail("solve", "out of memory");
    check(recon_cg(plan, kspace, image, &cg, NULL), "cg");
    write_file(arguments[11], image, voxels);
    recon_plan_destroy(plan);
    return 0;
}
