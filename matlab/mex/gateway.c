/* Entry point of the MEX file: librecon's C API for MATLAB (R2018a and newer) and GNU Octave.
 *
 *     [outputs] = recon_mex(command, arguments...)
 *
 * Each command accepts and returns plain arrays, structures and texts. Users call the functions of +recon, which handle
 * shapes. All types, lengths and values are checked again here, so that no call can harm the process. `make matlab` and
 * recon.build compile all files of this folder into one MEX file, with the static library recon_files, which contains
 * librecon and the readers and writers of files.
 *
 * One rule holds in all files: fail() and check() do not return. They may only be called while the code holds no other
 * resources than mxMalloc'd memory and mxArrays, because MATLAB frees only these two. The results of readers are in the
 * structure `held` (file_io.h), which the next command frees.
 */
#include "plans.h"

static const struct {
    const char *name;
    int inputs, outputs;
    command *run;
} commands[] = {
    {"create", 2, 2, create_plan},
    {"destroy", 1, 0, destroy_plan},
    {"plans", 0, 1, count_plans},
    {"info", 1, 1, plan_info},
    {"set_trajectory", 2, 1, set_plan_trajectory},
    {"set_weights", 2, 0, set_plan_weights},
    {"set_maps", 2, 0, set_plan_maps},
    {"multiply", 3, 1, multiply},
    {"apply", 5, 1, apply_transform},
    {"cg", 4, 4, conjugate_gradients},
    {"density", 5, 1, density_weights},
    {"coil_maps", 4, 1, estimate_coil_maps},
    {"q", 2, 1, toeplitz_kernel},
    {"save_q", 2, 0, save_toeplitz_kernel},
    {"load_q", 2, 0, load_toeplitz_kernel},
    {"combine", 4, 1, combine_coils},
    {"resize", 6, 1, resize_images},
    {"noise_covariance", 5, 2, noise_covariance},
    {"whitening", 1, 1, whitening_matrix},
    {"compression", 5, 3, compression_matrix},
    {"virtual_coils", 4, 1, make_virtual_coils},
    {"propeller", 5, 3, correct_blades},
    {"partial_fourier", 5, 3, fill_partial_fourier},
    {"field_map", 6, 4, make_field_map},
    {"phase_difference", 5, 2, subtract_phases},
    {"trajectory", 4, 1, make_trajectory},
    {"phantom_image", 4, 1, phantom_image},
    {"phantom_kspace", 5, 1, phantom_kspace},
    {"phantom_coil_maps", 2, 1, phantom_coil_maps},
    {"add_noise", 4, 2, add_noise},
    {"metrics", 5, 1, image_metrics},
    {"file_contents", 2, 1, contents_of_file},
    {"read_raw", 4, 4, read_raw_file},
    {"read_bart", 3, 4, read_bart_files},
    {"write_raw", 4, 1, write_raw_file},
    {"read_images", 1, 2, read_file_images},
    {"write_images", 2, 1, write_file_images},
    {"devices", 0, 1, list_devices},
    {"words", 1, 1, option_words},
    {"version", 0, 1, library_version},
};

void mexFunction(int nlhs, mxArray *plhs[], int nrhs, const mxArray *prhs[]) {
    char name[64];
    initialise_plans();
    release_files();
    if (nrhs < 1) {
        fail(INVALID, "recon_mex is internal: call the functions of +recon (help recon)");
    }
    read_text(prhs[0], "the command", name, sizeof name);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            int outputs = commands[i].outputs;
            /* plhs has space for one output even if the caller requests none. */
            if (nrhs - 1 != commands[i].inputs || (outputs > 1 ? nlhs != outputs : nlhs > 1)) {
                fail(INVALID, "recon_mex('%s') takes %d arguments and returns %d", name, commands[i].inputs, outputs);
            }
            commands[i].run(plhs, prhs + 1);
            return;
        }
    }
    fail(INVALID, "recon_mex has no command '%s'", name);
}
