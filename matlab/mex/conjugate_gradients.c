/* Conjugate gradients: options and priors, the solution, and its report. */
#include "plans.h"

/* R of the prior |R x|^2: MATLAB stores a sparse matrix by columns, the library reads it by rows. */
static void set_prior_matrix(recon_cg_options *options, const mxArray *matrix, const plan_entry *e) {
    if (!mxIsDouble(matrix) || mxGetN(matrix) != e->voxels) {
        fail("recon:SizeMismatch", "Prior is %s: a matrix has one column for each of %llu voxels%s", describe(matrix),
             (unsigned long long)e->voxels, mxGetM(matrix) == e->voxels ? ": permute(Prior, [2 1])" : "");
    }
    size_t rows = mxGetM(matrix), columns = mxGetN(matrix);
    const mwIndex *column_starts = mxGetJc(matrix), *row_of = mxGetIr(matrix);
    size_t entries = (size_t)column_starts[columns];
    uint64_t *row_starts = allocate(rows + 1, sizeof *row_starts), *next = allocate(rows, sizeof *next);
    uint64_t *column_of = allocate(entries, sizeof *column_of);
    parts from = parts_of(matrix);
    bool is_double = e->properties.precision == RECON_F64;
    void *values = allocate(entries, 2 * bytes_of(e->properties.precision));
    memset(row_starts, 0, (rows + 1) * sizeof *row_starts);
    for (size_t i = 0; i < entries; i++) {
        row_starts[row_of[i] + 1]++;
    }
    for (size_t r = 0; r < rows; r++) {
        row_starts[r + 1] += row_starts[r];
        next[r] = row_starts[r];
    }
    for (size_t c = 0; c < columns; c++) {
        for (size_t i = (size_t)column_starts[c]; i < (size_t)column_starts[c + 1]; i++) {
            size_t to = (size_t)next[row_of[i]]++;
            column_of[to] = c;
            set_element(values, is_double, 2 * to, real_part(&from, i));
            set_element(values, is_double, 2 * to + 1, imaginary_part(&from, i));
        }
    }
    options->prior = RECON_PRIOR_MATRIX;
    options->matrix_rows = rows;
    options->matrix_starts = row_starts;
    options->matrix_columns = column_of;
    options->matrix_values = values;
}

static void read_prior(recon_cg_options *options, const mxArray *structure, const plan_entry *e) {
    const mxArray *value;
    if ((value = field(structure, "Prior"))) {
        if (mxIsSparse(value)) {
            set_prior_matrix(options, value, e);
        } else if (mxIsNumeric(value)) {
            fail(INVALID, "Prior is %s: give a sparse matrix, as by sparse(R), or a name", describe(value));
        } else {
            options->prior = option_value(value, "Prior", "prior");
            if (options->prior == RECON_PRIOR_MATRIX) {
                fail(INVALID, "Prior is 'matrix': give the sparse matrix itself, as by sparse(R)");
            }
        }
    }
    if ((value = field(structure, "Reference"))) {
        need_count(value, (size_t)e->voxels, "Reference");
        options->reference = real_data(value, e->properties.precision, "Reference");
    } else if (options->prior == RECON_PRIOR_ANATOMICAL) {
        fail(INVALID, "the prior 'anatomical' needs the option Reference, a real image");
    }
}

static void read_cg_options(recon_cg_options *options, progress_state *progress, const mxArray *structure,
                            const plan_entry *e) {
    need_structure(structure, "the options");
    check(recon_cg_options_init(options, sizeof *options));
    const mxArray *value;
    if ((value = field(structure, "Iterations"))) {
        options->iterations = count_of(value, "Iterations");
    }
    if ((value = field(structure, "Residual"))) {
        options->tolerance = real_scalar(value, "Residual");
    }
    if ((value = field(structure, "Lambda"))) {
        options->lambda = real_scalar(value, "Lambda");
    }
    if ((value = field(structure, "LambdaUnit"))) {
        options->lambda_unit = option_value(value, "LambdaUnit", "lambda_unit");
    }
    if ((value = field(structure, "NoiseLevel"))) {
        options->noise_level = real_scalar(value, "NoiseLevel");
    }
    if ((value = field(structure, "Edge"))) {
        options->edge = real_scalar(value, "Edge");
    }
    read_prior(options, structure, e);
    if ((value = field(structure, "Initial"))) {
        need_count(value, (size_t)e->properties.image_elements, "Initial");
        options->initial = complex_data(value, e->properties.precision, "Initial");
    }
    if ((value = field(structure, "Progress"))) {
        if (!mxIsClass(value, "function_handle")) {
            fail(INVALID, "Progress is %s: give true, or a function of one structure", describe(value));
        }
        progress->function = value;
        options->progress = on_progress;
        options->user_data = progress;
    }
}

/* Returns an array for the residuals, [iterations + 1, images], or NULL if they are not requested. */
static mxArray *new_residuals(recon_cg_report *report, uint64_t iterations, uint64_t images, const mxArray *structure) {
    const mxArray *wanted = field(structure, "Residuals");
    if (!wanted || real_scalar(wanted, "Residuals") == 0.0) {
        return NULL;
    }
    if (iterations > ((uint64_t)1 << 40) / images) {
        fail("recon:SizeOverflow", "Iterations is %llu: a report cannot hold this number of residuals",
             (unsigned long long)iterations);
    }
    shape s = {2, {(mwSize)iterations + 1, (mwSize)images}, ((size_t)iterations + 1) * (size_t)images};
    mxArray *residuals = new_real(&s, mxDOUBLE_CLASS);
    report->residual_capacity = s.elements;
    report->residuals = mxGetData(residuals);
    return residuals;
}

static mxArray *report_of(const recon_cg_report *report, mxArray *residuals) {
    const char *names[] = {"stop",      "images",          "worst_image",       "iterations", "residual",
                           "q_seconds", "adjoint_seconds", "iteration_seconds", "lambda",     "residuals"};
    mxArray *structure = mxCreateStructMatrix(1, 1, sizeof names / sizeof *names, names);
    set_text(structure, "stop", recon_choice_word("stop", report->stop));
    set_number(structure, "images", (double)report->images);
    set_number(structure, "worst_image", (double)report->worst_image + 1.0);
    set_number(structure, "iterations", (double)report->iterations);
    set_number(structure, "residual", report->residual);
    set_number(structure, "lambda", report->lambda);
    set_number(structure, "q_seconds", report->q_seconds);
    set_number(structure, "adjoint_seconds", report->adjoint_seconds);
    set_number(structure, "iteration_seconds", report->iteration_seconds);
    if (residuals) {
        mxSetField(structure, 0, "residuals", residuals);
    }
    return structure;
}

/* [image, report, error, warnings] = cg(handle, kspace, options, image shape)
 *
 * An error of the progress function ends the solution. It is returned without image and report, and the caller throws
 * it. */
void conjugate_gradients(mxArray **out, const mxArray **in) {
    plan_entry *e = need_plan(in[0]);
    shape s = shape_of(in[3], "the image's shape");
    progress_state progress = {NULL, false, NULL};
    recon_cg_options options;
    recon_cg_report report;
    read_cg_options(&options, &progress, in[2], e);
    if (elements_in(in[1]) != e->properties.kspace_elements) {
        fail("recon:SizeMismatch", "the k-space data have %llu elements: %llu are required",
             (unsigned long long)elements_in(in[1]), (unsigned long long)e->properties.kspace_elements);
    }
    need_elements(&s, (size_t)e->properties.image_elements, "the image's shape");
    check(recon_cg_report_init(&report, sizeof report));
    uint64_t images = e->properties.image_elements / e->voxels;
    mxArray *residuals = new_residuals(&report, options.iterations, images, in[2]);
    operands a;
    open_operands(&a, e, in[1], &s, "the k-space data");
    /* The progress function may make and delete plans, which moves the entry, and may clear this MEX file. */
    uint64_t id = e->id;
    e->in_use++;
    mexLock();
    recon_status status = recon_cg(e->plan, a.in, a.out, &options, &report);
    mexUnlock();
    e = find_plan(id);
    bool ends = --e->in_use == 0 && e->deleted;
    mxArray *warnings = status == RECON_OK ? warnings_of_call() : NULL;
    if (ends) {
        remove_plan(e);
    }
    out[0] = close_operands(&a, status);
    if (progress.error) {
        out[0] = mxCreateDoubleMatrix(0, 0, mxREAL);
        out[1] = mxCreateDoubleMatrix(0, 0, mxREAL);
        out[2] = progress.error;
        out[3] = mxCreateDoubleMatrix(0, 0, mxREAL);
        return;
    }
    check(status);
    out[1] = report_of(&report, residuals);
    out[2] = mxCreateDoubleMatrix(0, 0, mxREAL);
    out[3] = warnings;
}
