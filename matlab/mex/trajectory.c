/* Trajectories, and density compensation weights. */
#include "plans.h"

enum {
    CARTESIAN,
    RADIAL,
    RADIAL_GOLDEN,
    STACK,
    STACK_GOLDEN,
    RADIAL3D,
    SPIRAL,
    ROSETTE,
    PROPELLER,
    PROPELLER_SCAN,
    LISSAJOUS
};

/* Writes the coordinates along each axis to k. recon.h defines the counts and numbers of each trajectory. */
static void fill_trajectory(uint32_t kind, uint32_t precision, const uint64_t counts[3], const double numbers[4],
                            uint32_t ndim, char *const k[3]) {
    bool golden = kind == RADIAL_GOLDEN || kind == STACK_GOLDEN;
    uint32_t order = golden ? RECON_SPOKES_GOLDEN_ANGLE : RECON_SPOKES_LINEAR;
    switch (kind) {
    case CARTESIAN: check(recon_trajectory_cartesian(precision, ndim, counts, k[0], k[1], k[2])); break;
    case RADIAL:
    case RADIAL_GOLDEN: check(recon_trajectory_radial2d(precision, counts[0], counts[1], order, k[0], k[1])); break;
    case STACK:
    case STACK_GOLDEN:
        check(recon_trajectory_stack_of_stars(precision, counts[0], counts[1], counts[2], order, k[0], k[1], k[2]));
        break;
    case RADIAL3D: check(recon_trajectory_radial3d(precision, counts[0], counts[1], k[0], k[1], k[2])); break;
    case SPIRAL:
        check(recon_trajectory_spiral(precision, counts[0], counts[1], numbers[2], numbers[3], k[0], k[1]));
        break;
    case ROSETTE:
        check(recon_trajectory_rosette(precision, counts[0], counts[1], numbers[2], numbers[3], k[0], k[1]));
        break;
    case PROPELLER: check(recon_trajectory_propeller(precision, counts[0], counts[1], counts[2], k[0], k[1])); break;
    case PROPELLER_SCAN:
        check(recon_trajectory_propeller_scan(precision, counts[0], counts[1], counts[2],
                                              whole_number(numbers[3], "the scan matrix"), k[0], k[1]));
        break;
    case LISSAJOUS:
        check(recon_trajectory_lissajous(precision, counts[0], counts[1],
                                         whole_number(numbers[2], "the frequency along x"),
                                         whole_number(numbers[3], "the frequency along y"), k[0], k[1]));
        break;
    }
}

/* k = trajectory(kind, precision, numbers, shape): numbers as in recon.h, the shape [samples, ..., ndim] */
void make_trajectory(mxArray **out, const mxArray **in) {
    static const choice kinds[] = {{"cartesian", CARTESIAN},
                                   {"radial", RADIAL},
                                   {"radial-golden", RADIAL_GOLDEN},
                                   {"stackofstars", STACK},
                                   {"stackofstars-golden", STACK_GOLDEN},
                                   {"radial3d", RADIAL3D},
                                   {"spiral", SPIRAL},
                                   {"rosette", ROSETTE},
                                   {"propeller", PROPELLER},
                                   {"propeller-scan", PROPELLER_SCAN},
                                   {"lissajous", LISSAJOUS},
                                   {NULL, 0}};
    /* For each kind: number of values, how many of them are counts, and the dimensions. A Cartesian trajectory has a
     * count for each of its 1 to 3 dimensions. */
    static const struct {
        size_t numbers, counts, ndim;
    } wanted[] = {{3, 3, 0}, {2, 2, 2}, {2, 2, 2}, {3, 3, 3}, {3, 3, 3},
                  {2, 2, 3}, {4, 2, 2}, {4, 2, 2}, {3, 3, 2}, {4, 3, 2}, {4, 2, 2}};
    uint32_t kind = choose(in[0], "the trajectory", kinds);
    uint32_t precision = option_value(in[1], "the class", "precision");
    need_real(in[2], "the trajectory's numbers");
    size_t given = mxGetNumberOfElements(in[2]), ndim = kind == CARTESIAN ? given : wanted[kind].ndim;
    if (kind == CARTESIAN ? given < 1 || given > 3 : given != wanted[kind].numbers) {
        fail("recon:SizeMismatch", "a %s trajectory does not take %llu numbers", kinds[kind].name,
             (unsigned long long)given);
    }
    double numbers[4] = {0};
    uint64_t counts[3] = {0}, samples = 1;
    for (size_t i = 0; i < given; i++) {
        numbers[i] = element(mxGetData(in[2]), mxIsDouble(in[2]), i);
        if (i < wanted[kind].counts) {
            counts[i] = whole_number(numbers[i], "a count of the trajectory");
            if (counts[i] && samples > ((uint64_t)1 << 48) / counts[i]) {
                fail("recon:SizeOverflow", "the trajectory exceeds the address space: use fewer samples");
            }
            samples *= counts[i];
        }
    }
    shape s = shape_of(in[3], "the trajectory's shape");
    need_elements(&s, (size_t)samples * ndim, "the trajectory's shape");
    out[0] = new_real(&s, class_of(precision));
    char *k[3];
    for (size_t axis = 0; axis < 3; axis++) {
        k[axis] = axis < ndim ? (char *)mxGetData(out[0]) + axis * samples * bytes_of(precision) : NULL;
    }
    fill_trajectory(kind, precision, counts, numbers, (uint32_t)ndim, k);
}

/* weights = density(handle, method, iterations, tolerance, shape) */
void density_weights(mxArray **out, const mxArray **in) {
    plan_entry *e = need_plan(in[0]);
    uint32_t method = option_value(in[1], "the density method", "density");
    uint64_t iterations = count_of(in[2], "Iterations");
    double tolerance = real_scalar(in[3], "Tolerance");
    shape s = shape_of(in[4], "the weights' shape");
    need_elements(&s, (size_t)e->samples, "the weights' shape");
    out[0] = new_real(&s, class_of(e->properties.precision));
    check(recon_density(e->plan, method, iterations, tolerance, mxGetData(out[0])));
}
