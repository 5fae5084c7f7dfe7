/* Files: errors, warnings, texts and the fields of structures, for the commands that read and write them. */
#include "file_io.h"

held_files held;

void release_files(void) {
    recon_files_free_raw(held.raw);
    recon_files_free_images(held.images);
    held.raw = NULL;
    held.images = NULL;
}

void check_files(recon_status status) {
    if (status != RECON_OK) {
        char identifier[64];
        snprintf(identifier, sizeof identifier, "recon:%s", recon_status_name((int32_t)status));
        fail(identifier, "%s", recon_files_message());
    }
}

mxArray *warnings_of_files(void) {
    const char *names[] = {"identifier", "text"};
    const char *text;
    uint32_t kind;
    mwSize count = 0;
    while (recon_files_warning(count, &kind)) {
        count++;
    }
    mxArray *list = mxCreateStructMatrix(count, 1, 2, names);
    for (mwSize i = 0; i < count; i++) {
        text = recon_files_warning(i, &kind);
        mxSetField(list, (mwIndex)i, "identifier", mxCreateString(warning_identifier(kind)));
        mxSetField(list, (mwIndex)i, "text", mxCreateString(text));
    }
    return list;
}

char *utf8_of(const mxArray *bytes, const char *what) {
    if (mxGetClassID(bytes) != mxUINT8_CLASS || mxIsSparse(bytes)) {
        fail(INVALID, "%s is %s: give the bytes of a text", what, describe(bytes));
    }
    size_t count = mxGetNumberOfElements(bytes);
    char *text = allocate(count + 1, 1);
    memcpy(text, mxGetData(bytes), count);
    text[count] = 0;
    if (strlen(text) != count) {
        fail(INVALID, "%s contains a character 0", what);
    }
    return text;
}

const mxArray *need_item(const mxArray *structure, mwIndex index, const char *name) {
    const mxArray *value = mxGetField(structure, index, name);
    if (!value || mxIsEmpty(value)) {
        fail(INVALID, "%s is missing or empty", name);
    }
    return value;
}

void put_vectors(mxArray *structure, mwIndex index, const placed *fields, const void *from) {
    for (; fields->name; fields++) {
        mxSetField(structure, index, fields->name, row_of((const double *)((const char *)from + fields->offset), 3));
    }
}

void get_vectors(const mxArray *structure, mwIndex index, const placed *fields, void *to) {
    for (; fields->name; fields++) {
        const mxArray *value = need_item(structure, index, fields->name);
        need_count(value, 3, fields->name);
        memcpy((char *)to + fields->offset, real_data(value, RECON_F64, fields->name), 3 * sizeof(double));
    }
}

void put_counts(mxArray *structure, mwIndex index, const placed *fields, const void *from) {
    for (; fields->name; fields++) {
        uint32_t value = *(const uint32_t *)((const char *)from + fields->offset);
        mxSetField(structure, index, fields->name, mxCreateDoubleScalar(value));
    }
}

void get_counts(const mxArray *structure, mwIndex index, const placed *fields, void *to) {
    for (; fields->name; fields++) {
        uint64_t value = count_of(need_item(structure, index, fields->name), fields->name);
        if (value > UINT32_MAX) {
            fail(INVALID, "%s is %llu: at most 4294967295 fits", fields->name, (unsigned long long)value);
        }
        *(uint32_t *)((char *)to + fields->offset) = (uint32_t)value;
    }
}

void read_sizes(uint64_t sizes[3], const mxArray *array, const char *what) {
    need_count(array, 3, what);
    const double *numbers = real_data(array, RECON_F64, what);
    for (size_t axis = 0; axis < 3; axis++) {
        sizes[axis] = whole_number(numbers[axis], what);
    }
}

mxArray *row_of(const double *numbers, size_t count) {
    mxArray *row = mxCreateDoubleMatrix(1, (mwSize)count, mxREAL);
    if (count) {
        memcpy(mxGetData(row), numbers, count * sizeof(double));
    }
    return row;
}

mxArray *complex_array(const void *data, mwSize dims, const mwSize *sizes) {
    shape s = {dims, {0}, 1};
    for (mwSize d = 0; d < dims; d++) {
        s.size[d] = sizes[d];
        s.elements *= (size_t)sizes[d];
    }
    complex_output made = new_complex(&s, mxSINGLE_CLASS, RECON_F32);
    if (s.elements) {
        memcpy(made.data, data, s.elements * 2 * sizeof(float));
    }
    return finish_complex(made);
}
