// Checks of the test programs: conditions, and texts of expected errors. Failures are counted.
#pragma once

#include <cstdio>
#include <exception>
#include <string>

inline int failures = 0;

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                          \
        }                                                                        \
    } while (false)

// Returns the error of `f`, which must be one line.
template <class F>
std::string error_of(F f) {
    try {
        f();
    } catch (const std::exception &e) {
        const std::string text = e.what();
        CHECK(text.find('\n') == std::string::npos);
        return text;
    }
    return "no error";
}

// Checks that the error of `f` contains all texts.
#define CHECK_ERROR(f, ...)                                                                                \
    do {                                                                                                   \
        const std::string text = error_of(f);                                                              \
        for (const char *part : {__VA_ARGS__}) {                                                           \
            if (text.find(part) == std::string::npos) {                                                    \
                std::fprintf(stderr, "%s:%d: no \"%s\" in: %s\n", __FILE__, __LINE__, part, text.c_str()); \
                ++failures;                                                                                \
            }                                                                                              \
        }                                                                                                  \
    } while (false)

// Prints the result of a test program, and returns its exit status.
inline int result(const char *name) {
    std::printf("%s: %s\n", name, failures == 0 ? "passed" : "failed");
    return failures == 0 ? 0 : 1;
}
