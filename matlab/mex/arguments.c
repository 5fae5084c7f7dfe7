/* Arguments: numbers, texts and fields of structures, and the errors for arguments of a wrong kind. */
#include "recon_mex.h"

const char *describe(const mxArray *array) {
    static char text[160];
    mwSize count = mxGetNumberOfDimensions(array);
    const mwSize *dims = mxGetDimensions(array);
    size_t used = (size_t)snprintf(text, sizeof text, "a ");
    for (mwSize d = 0; d < count && used < sizeof text; d++) {
        used += (size_t)snprintf(text + used, sizeof text - used, d ? " x %llu" : "%llu", (unsigned long long)dims[d]);
    }
    if (used < sizeof text) {
        bool numeric = mxIsNumeric(array);
        snprintf(text + used, sizeof text - used, " %s%s%s array", mxIsSparse(array) ? "sparse " : "",
                 numeric && mxIsComplex(array) ? "complex " : "", mxGetClassName(array));
    }
    return text;
}

void need_floats(const mxArray *array, const char *what) {
    if (!(mxIsDouble(array) || mxIsSingle(array)) || mxIsSparse(array)) {
        fail(INVALID, "%s is %s: give a full array of single or double", what, describe(array));
    }
}

void need_real(const mxArray *array, const char *what) {
    need_floats(array, what);
    if (mxIsComplex(array)) {
        fail(INVALID, "%s is %s: give real numbers", what, describe(array));
    }
}

void need_count(const mxArray *array, size_t count, const char *what) {
    if (mxGetNumberOfElements(array) != count) {
        fail("recon:SizeMismatch", "%s is %s: %llu elements are required", what, describe(array),
             (unsigned long long)count);
    }
}

void need_structure(const mxArray *array, const char *what) {
    if (!mxIsStruct(array) || mxGetNumberOfElements(array) != 1) {
        fail(INVALID, "%s is %s: give one structure", what, describe(array));
    }
}

double real_scalar(const mxArray *array, const char *what) {
    bool numeric = (mxIsNumeric(array) || mxIsLogical(array)) && !mxIsComplex(array) && !mxIsSparse(array);
    if (!numeric || mxGetNumberOfElements(array) != 1) {
        fail(INVALID, "%s is %s: give one real number", what, describe(array));
    }
    return mxGetScalar(array);
}

uint64_t whole_number(double value, const char *what) {
    if (!(value >= 0.0 && value <= 9007199254740992.0) || value != (double)(uint64_t)value) {
        fail(INVALID, "%s is %g: give a whole number from 0", what, value);
    }
    return (uint64_t)value;
}

uint64_t count_of(const mxArray *array, const char *what) {
    return whole_number(real_scalar(array, what), what);
}

uint32_t flag_of(const mxArray *array, const char *what) {
    double value = real_scalar(array, what);
    if (value != 0.0 && value != 1.0) {
        fail(INVALID, "%s is %g: give true or false", what, value);
    }
    return value != 0.0;
}

void read_text(const mxArray *array, const char *what, char *text, size_t size) {
    if (!mxIsChar(array) || mxGetM(array) > 1 || mxGetNumberOfDimensions(array) > 2) {
        fail(INVALID, "%s is %s: give a text", what, describe(array));
    }
    if (mxGetString(array, text, (mwSize)size) != 0) {
        fail(INVALID, "%s is a text of %llu characters: at most %llu are read", what,
             (unsigned long long)mxGetNumberOfElements(array), (unsigned long long)size - 1);
    }
}

uint32_t option_value(const mxArray *array, const char *what, const char *option) {
    char word[64];
    uint32_t value = 0;
    read_text(array, what, word, sizeof word);
    if (recon_choice(option, word, &value) != RECON_OK) {
        fail("recon:UnknownValue", "%s: %s", what, recon_last_error_message());
    }
    return value;
}

uint32_t choose(const mxArray *array, const char *what, const choice *choices) {
    char text[64], known[400] = "";
    read_text(array, what, text, sizeof text);
    for (const choice *c = choices; c->name; c++) {
        if (strcmp(text, c->name) == 0) {
            return c->value;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s'%s'", used ? ", " : "", c->name);
    }
    fail("recon:UnknownValue", "%s is '%s': give one of %s", what, text, known);
    return 0;
}

const mxArray *field(const mxArray *structure, const char *name) {
    const mxArray *value = mxGetField(structure, 0, name);
    return value && !mxIsEmpty(value) ? value : NULL;
}

const mxArray *need_field(const mxArray *structure, const char *name) {
    const mxArray *value = field(structure, name);
    if (!value) {
        fail(INVALID, "%s is missing or empty", name);
    }
    return value;
}
