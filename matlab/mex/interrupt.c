/* Ctrl-C and progress: callbacks of the library during its calls, and the user's progress function. */
#include "plans.h"

#include <signal.h>

#ifdef _WIN32
#include <windows.h>
/* With version 2 the functions are in kernel32.dll. */
#define PSAPI_VERSION 2
#include <psapi.h>
#else
#include <dlfcn.h>
#endif

/* Returns a symbol of MATLAB or Octave, or NULL. MATLAB reports Ctrl-C in functions that no header declares, Octave in
 * a variable. */
static void *host_symbol(const char *name) {
#ifdef _WIN32
    /* The name of Octave's library has its version, so all libraries of the process are searched. */
    HMODULE modules[1024];
    DWORD bytes = 0;
    if (!EnumProcessModules(GetCurrentProcess(), modules, sizeof modules, &bytes)) {
        return NULL;
    }
    DWORD count = bytes / sizeof *modules;
    for (DWORD i = 0; i < count && i < sizeof modules / sizeof *modules; i++) {
        union {
            FARPROC function;
            void *address;
        } symbol = {GetProcAddress(modules[i], name)};
        if (symbol.function) {
            return symbol.address;
        }
    }
    return NULL;
#else
    void *symbol = dlsym(RTLD_DEFAULT, name);
#ifndef RECON_OCTAVE
    if (!symbol) {
        /* MATLAB may have loaded its library without making its symbols global. */
        void *library = dlopen("libut.so", RTLD_LAZY | RTLD_NOLOAD);
        symbol = library ? dlsym(library, name) : NULL;
    }
#endif
    return symbol;
#endif
}

#ifdef RECON_OCTAVE

/* Octave counts this variable up at SIGINT only (its quit.h). It is above 0 while an interrupt is pending, and below 0
 * while Octave handles one. Octave's own octave_quit looks at octave_signal_caught instead: any signal sets that one,
 * as SIGCHLD does when a child of "system" ends. */
static bool interrupt_pending(void) {
    static const volatile sig_atomic_t *state;
    static bool looked_up;
    if (!looked_up) {
        looked_up = true;
        state = host_symbol("octave_interrupt_state");
    }
    return state && *state > 0;
}

static volatile sig_atomic_t noted_interrupts;

#ifdef _WIN32
typedef void (*signal_action)(int);
static void note_interrupt(int number) {
    noted_interrupts = 1;
    /* Windows resets the action before it calls the function. */
    signal(number, note_interrupt);
}
static const signal_action note_interrupts = note_interrupt;
static signal_action set_interrupt_action(const signal_action *action) {
    return signal(SIGINT, *action);
}
#else
typedef struct sigaction signal_action;
static void note_interrupt(int number) {
    (void)number;
    noted_interrupts = 1;
}
static const signal_action note_interrupts = {.sa_handler = note_interrupt};
/* Sets the action of SIGINT, and returns the previous one. */
static signal_action set_interrupt_action(const signal_action *action) {
    signal_action previous;
    sigaction(SIGINT, action, &previous);
    return previous;
}
#endif

#else

typedef union {
    void *address;
    bool (*pending)(void);
    bool (*enable)(bool);
} host_function;

static bool interrupt_pending(void) {
    static host_function f;
    static bool looked_up;
    if (!looked_up) {
        looked_up = true;
        f.address = host_symbol("utIsInterruptPending");
    }
    return f.address && f.pending();
}

#endif

int on_interrupt(void *user_data) {
    (void)user_data;
    return interrupt_pending() ? 1 : 0;
}

/* Calls function(p). It catches its own errors, and returns the error, or [] if there was none. */
static void call_function(progress_state *state, const recon_progress *p) {
    const char *names[] = {"image", "images", "iteration", "iterations", "residual"};
    mxArray *arguments[2] = {(mxArray *)state->function, mxCreateStructMatrix(1, 1, 5, names)};
    set_number(arguments[1], "image", (double)p->image + 1.0);
    set_number(arguments[1], "images", (double)p->images);
    set_number(arguments[1], "iteration", (double)p->iteration);
    set_number(arguments[1], "iterations", (double)p->iterations);
    set_number(arguments[1], "residual", p->residual);
    mxArray *caught = NULL;
    state->error = mexCallMATLABWithTrap(1, &caught, 2, arguments, "feval");
    if (!state->error && caught && !mxIsEmpty(caught)) {
        state->error = caught;
    }
    mxDestroyArray(arguments[1]);
}

/* No MATLAB error may be thrown here, since recon_cg has not returned: errors are stored and thrown afterwards. Octave
 * throws an exception at Ctrl-C while it interprets. So Ctrl-C is only recorded while the function runs. */
int on_progress(const recon_progress *p, void *user_data) {
    progress_state *state = user_data;
#ifdef RECON_OCTAVE
    noted_interrupts = 0;
    signal_action usual = set_interrupt_action(&note_interrupts);
#else
    host_function f = {host_symbol("utSetInterruptEnabled")};
    bool enabled = f.address ? f.enable(false) : false;
#endif
    if (interrupt_pending()) {
        state->interrupted = true;
    } else {
        call_function(state, p);
    }
#ifdef RECON_OCTAVE
    set_interrupt_action(&usual);
    if (noted_interrupts) {
        state->interrupted = true;
        raise(SIGINT);
    }
#else
    if (f.address) {
        f.enable(enabled);
    }
#endif
    return state->interrupted || state->error ? 1 : 0;
}
