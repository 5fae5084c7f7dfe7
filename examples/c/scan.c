/* Reconstructs the images of an MRD stream: scan < stream > images. Writes float re, im of each voxel, x fastest.
 *     cc scan.c $(pkg-config --cflags --libs recon) -o scan */
#include <recon.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int is_ok, const char *error) { if (!is_ok) { fprintf(stderr, "%s\n", error); exit(1); } }
static void call(recon_status status) {
    const char *text = NULL;
    uint32_t kind;
    check(status == RECON_OK, recon_last_error_message());
    for (uint64_t i = 0; recon_last_warning(i, &kind, &text) == RECON_OK && text; i++) fprintf(stderr, "%s\n", text);
}
static void *buffer(int slot, uint64_t bytes) { /* It is valid until the next call for this slot. */
    static void *buffers[3];
    check((buffers[slot] = realloc(buffers[slot], bytes + 1)) != NULL, "out of memory");
    return buffers[slot];
}
static void *receive(int slot, uint64_t bytes) {
    void *memory = buffer(slot, bytes);
    check(fread(memory, 1, bytes, stdin) == bytes, "the stream ends before its closing message");
    return memory;
}
static uint64_t u16(const unsigned char *bytes) { return bytes[0] + 256u * bytes[1]; }
static void write_image(const recon_scan_image *data) {
    recon_scan_properties p;
    recon_geometry geometry;
    recon_plan *plan;
    call(recon_geometry_init(&geometry, sizeof geometry)), call(recon_scan_image_geometry(data, &geometry));
    call(recon_scan_properties_init(&p, sizeof p)), call(recon_scan_image_properties(data, &p));
    const uint64_t *m = p.encoded_matrix, *n = p.recon_matrix, voxels = n[0] * n[1] * n[2];
    void *coils = buffer(0, 8 * m[0] * m[1] * m[2] * p.coils);
    void *resized = buffer(1, 8 * voxels * p.coils), *image = buffer(2, 8 * voxels);
    call(recon_plan_create(&geometry, NULL, &plan)); /* With coil_maps in the geometry, recon_cg combines the coils. */
    call(recon_grid(plan, p.kspace, coils));
    call(recon_resize(&geometry, p.encoded_fov_mm, n, p.recon_fov_mm, coils, resized));
    for (int axis = 0; axis < 3; axis++) geometry.dims[axis] = n[axis];
    call(recon_combine(&geometry, RECON_COMBINE_ROOT_SUM_OF_SQUARES, resized, image));
    recon_plan_destroy(plan), check(fwrite(image, 8, voxels, stdout) == voxels, "the image cannot be written");
}

int main(void) {
    recon_scan *scan = NULL;
    recon_scan_image *data = NULL;
    for (uint64_t message; (message = u16(receive(0, 2))) != 4;) { /* MRD_MESSAGE_CLOSE */
        const unsigned char *head = receive(0, message == 1008 ? 340 : 4);
        check(message == (scan ? 1008 : 3), "expected MRD_MESSAGE_HEADER, then messages MRD_MESSAGE_ACQUISITION");
        if (!scan) {
            const uint64_t bytes = u16(head) + 65536 * u16(head + 2);
            call(recon_scan_create(receive(1, bytes), bytes, NULL, &scan)); /* NULL: the default options */
            continue;
        }
        const uint64_t n = u16(head + 34); /* samples; channels are at 38, trajectory dimensions at 176 */
        const float *trajectory = receive(1, 4 * n * u16(head + 176));
        call(recon_scan_add(scan, head, trajectory, receive(2, 8 * n * u16(head + 38))));
    }
    call(recon_scan_end(scan));
    for (; call(recon_scan_next(scan, &data)), data; recon_scan_image_destroy(data)) write_image(data);
    return recon_scan_destroy(scan), 0;
}
