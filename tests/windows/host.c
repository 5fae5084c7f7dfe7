/* A library that keeps a plan until it is unloaded or the process ends, as a global object of C++ does. */
#include <recon.h>

#include <windows.h>

static recon_plan *kept;

__declspec(dllexport) void keep(recon_plan *plan) {
    kept = plan;
}

__declspec(dllexport) void destroy(void) {
    recon_plan_destroy(kept);
    kept = NULL;
}

BOOL WINAPI DllMain(HINSTANCE library, DWORD reason, void *process_ends) {
    (void)library;
    (void)process_ends;
    if (reason == DLL_PROCESS_DETACH) {
        destroy();
    }
    return TRUE;
}
