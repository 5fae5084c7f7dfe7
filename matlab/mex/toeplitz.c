/* Q, the Toeplitz kernel of E^H W E: as an array, and in a file. */
#include "file_io.h"
#include "plans.h"

/* kernel = q(handle, shape) */
void toeplitz_kernel(mxArray **out, const mxArray **in) {
    plan_entry *e = need_plan(in[0]);
    shape s = shape_of(in[1], "the kernel's shape");
    need_elements(&s, (size_t)e->properties.q_elements, "the kernel's shape");
    complex_output kernel = new_complex(&s, class_of(e->properties.precision), e->properties.precision);
    check(recon_q(e->plan, kernel.data));
    out[0] = finish_complex(kernel);
}

/* save_q(handle, file) */
void save_toeplitz_kernel(mxArray **out, const mxArray **in) {
    (void)out;
    check(recon_plan_save_q(need_plan(in[0])->plan, utf8_of(in[1], "the file's name")));
}

/* load_q(handle, file) */
void load_toeplitz_kernel(mxArray **out, const mxArray **in) {
    (void)out;
    check(recon_plan_load_q(need_plan(in[0])->plan, utf8_of(in[1], "the file's name")));
}
