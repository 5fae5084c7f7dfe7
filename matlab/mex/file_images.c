/* Images in files of every format. */
#include "file_io.h"

static const placed vectors[] = {{"fov", offsetof(recon_files_image, fov_mm)},
                                 {"position", offsetof(recon_files_image, position)},
                                 {"readDir", offsetof(recon_files_image, read_dir)},
                                 {"phaseDir", offsetof(recon_files_image, phase_dir)},
                                 {"sliceDir", offsetof(recon_files_image, slice_dir)},
                                 {"tablePosition", offsetof(recon_files_image, table_position)},
                                 {NULL, 0}};

static const placed counts[] = {{"encoding", offsetof(recon_files_image, encoding)},
                                {"slice", offsetof(recon_files_image, slice)},
                                {"repetition", offsetof(recon_files_image, repetition)},
                                {"contrast", offsetof(recon_files_image, contrast)},
                                {"phase", offsetof(recon_files_image, phase)},
                                {"set", offsetof(recon_files_image, set)},
                                {"average", offsetof(recon_files_image, average)},
                                {"measurement", offsetof(recon_files_image, measurement_uid)},
                                {"timeStamp", offsetof(recon_files_image, acquisition_time_stamp)},
                                {NULL, 0}};

static const char *names[] = {"data",     "fov",        "position", "readDir", "phaseDir", "sliceDir",    "tablePosition",
                              "encoding", "slice",      "repetition", "contrast", "phase",  "set",         "average",
                              "measurement", "timeStamp", "physiologyTimeStamp", "repetitionTime"};

/* [images, warnings] = read_images(file) */
void read_file_images(mxArray **out, const mxArray **in) {
    char *path = utf8_of(in[0], "the file's name");
    check_files(recon_files_read_images(path, &held.images));
    out[1] = warnings_of_files();
    mwSize count = (mwSize)recon_files_image_count(held.images);
    out[0] = mxCreateStructMatrix(count, 1, sizeof names / sizeof *names, names);
    for (mwIndex i = 0; i < count; i++) {
        recon_files_image image = recon_files_empty_image();
        check_files(recon_files_image_at(held.images, i, &image));
        mwSize sizes[4] = {image.dims[0], image.dims[1], image.dims[2], image.channels};
        mxSetField(out[0], i, "data", complex_array(image.data, 4, sizes));
        put_vectors(out[0], i, vectors, &image);
        put_counts(out[0], i, counts, &image);
        double stamps[3] = {image.physiology_time_stamp[0], image.physiology_time_stamp[1],
                            image.physiology_time_stamp[2]};
        mxSetField(out[0], i, "physiologyTimeStamp", row_of(stamps, 3));
        mxSetField(out[0], i, "repetitionTime", mxCreateDoubleScalar(image.repetition_time_ms));
    }
    release_files();
}

/* warnings = write_images(file, images): the structures of read_images, in which sizes has the sizes along x, y, z and
 * channels. */
void write_file_images(mxArray **out, const mxArray **in) {
    char *path = utf8_of(in[0], "the file's name");
    if (!mxIsStruct(in[1])) {
        fail(INVALID, "the images are %s: give structures", describe(in[1]));
    }
    size_t count = mxGetNumberOfElements(in[1]);
    recon_files_image *images = allocate(count, sizeof *images);
    for (size_t i = 0; i < count; i++) {
        mwIndex index = (mwIndex)i;
        images[i] = recon_files_empty_image();
        const mxArray *data = need_item(in[1], index, "data");
        shape s = shape_of(need_item(in[1], index, "sizes"), "the image's sizes");
        need_elements(&s, mxGetNumberOfElements(data), "the image's sizes");
        if (s.count != 4) {
            fail(INVALID, "the image has %llu sizes: 4 are required", (unsigned long long)s.count);
        }
        for (size_t axis = 0; axis < 3; axis++) {
            images[i].dims[axis] = (uint64_t)s.size[axis];
        }
        images[i].channels = (uint64_t)s.size[3];
        images[i].data = complex_data(data, RECON_F32, "the image");
        get_vectors(in[1], index, vectors, &images[i]);
        get_counts(in[1], index, counts, &images[i]);
        uint64_t stamps[3];
        read_sizes(stamps, need_item(in[1], index, "physiologyTimeStamp"), "physiologyTimeStamp");
        for (size_t t = 0; t < 3; t++) {
            images[i].physiology_time_stamp[t] = (uint32_t)stamps[t];
        }
        images[i].repetition_time_ms = real_scalar(need_item(in[1], index, "repetitionTime"), "repetitionTime");
    }
    check_files(recon_files_write_images(path, images, count));
    out[0] = warnings_of_files();
}
