/* Loads recon.dll, reconstructs, and unloads it, or ends the process in one of several ways. tests/windows/run.sh runs
 * each of them under Wine with a time limit, because the usual defect of a library with threads is a deadlock.
 *
 *     load.exe unload        three times: load, reconstruct with 4 threads, destroy the plan, unload
 *     load.exe exit          ExitProcess while a plan with threads exists
 *     load.exe return        return from main while a plan with threads exists
 *     load.exe destructor    a second library destroys the plan when the process ends, after Windows stopped all threads
 *     load.exe host          the library of the last case is unloaded after it has destroyed its plan
 */
#include <recon.h>

#include <windows.h>

#include <psapi.h>
#include <stdio.h>
#include <string.h>
#include <tlhelp32.h>

enum { N = 64, SPOKES = 32, READOUT = 128, SAMPLES = SPOKES * READOUT };
static float kx[SAMPLES], ky[SAMPLES], kspace[2 * SAMPLES], image[2 * N * N];

#define FUNCTION(library, name) ((__typeof__(name) *)(void *)GetProcAddress(library, #name))
#define REQUIRE(condition)                                                     \
    do {                                                                       \
        if (!(condition)) {                                                    \
            printf("load.c, line %d: %s\n", __LINE__, #condition);             \
            fflush(stdout);                                                    \
            ExitProcess(100);                                                  \
        }                                                                      \
    } while (0)

static unsigned threads_of_this_process(void) {
    HANDLE snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
    THREADENTRY32 entry = {.dwSize = sizeof entry};
    unsigned count = 0;
    for (BOOL more = Thread32First(snapshot, &entry); more; more = Thread32Next(snapshot, &entry)) {
        count += entry.th32OwnerProcessID == GetCurrentProcessId();
    }
    CloseHandle(snapshot);
    return count;
}

static size_t committed_bytes(void) {
    PROCESS_MEMORY_COUNTERS counters = {.cb = sizeof counters};
    REQUIRE(GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters));
    return counters.PagefileUsage;
}

/* Returns a plan with 4 threads that has reconstructed an image. */
static recon_plan *plan_of(HMODULE library) {
    recon_geometry geometry;
    recon_options options;
    recon_plan *plan = NULL;
    float energy = 0;
    REQUIRE(FUNCTION(library, recon_trajectory_radial2d)(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky) == RECON_OK);
    REQUIRE(FUNCTION(library, recon_geometry_init)(&geometry, sizeof geometry) == RECON_OK);
    REQUIRE(FUNCTION(library, recon_options_init)(&options, sizeof options) == RECON_OK);
    geometry.dims[0] = geometry.dims[1] = N;
    geometry.samples = SAMPLES;
    geometry.coordinates[0] = kx;
    geometry.coordinates[1] = ky;
    options.threads = 4;
    options.device = RECON_DEVICE_CPU;
    REQUIRE(FUNCTION(library, recon_phantom_kspace)(&geometry, NULL, 0, 0, 2, kspace) == RECON_OK);
    REQUIRE(FUNCTION(library, recon_plan_create)(&geometry, &options, &plan) == RECON_OK);
    memset(image, 0, sizeof image);
    REQUIRE(FUNCTION(library, recon_cg)(plan, kspace, image, NULL, NULL) == RECON_OK);
    for (int i = 0; i < 2 * N * N; i++) {
        energy += image[i] * image[i];
    }
    REQUIRE(energy > 1);
    return plan;
}

static HMODULE loaded(const wchar_t *name) {
    HMODULE library = LoadLibraryW(name);
    REQUIRE(library != NULL);
    return library;
}

static void unload_repeatedly(void) {
    size_t first = 0;
    for (int round = 0; round < 4; round++) {
        unsigned before = threads_of_this_process();
        HMODULE library = loaded(L"recon.dll");
        recon_plan *plan = plan_of(library);
        REQUIRE(threads_of_this_process() == before + 3);
        /* An error of another kind than success, whose message is memory of this thread. */
        REQUIRE(FUNCTION(library, recon_plan_load_q)(plan, "C:\\absent") != RECON_OK);
        FUNCTION(library, recon_plan_destroy)(plan);
        REQUIRE(threads_of_this_process() == before);
        REQUIRE(FreeLibrary(library));
        REQUIRE(GetModuleHandleW(L"recon.dll") == NULL);
        if (round == 0) {
            first = committed_bytes();
        }
    }
    printf("committed bytes after the first and the fourth time: %zu and %zu\n", first, committed_bytes());
    REQUIRE(committed_bytes() < first + (1 << 20));
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "";
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    if (strcmp(way, "unload") == 0) {
        unload_repeatedly();
        return 0;
    }
    if (strcmp(way, "exit") == 0) {
        plan_of(loaded(L"recon.dll"));
        ExitProcess(3);
    }
    if (strcmp(way, "return") == 0) {
        plan_of(loaded(L"recon.dll"));
        return 4;
    }
    if (strcmp(way, "destructor") == 0 || strcmp(way, "host") == 0) {
        HMODULE host = loaded(L"host.dll");
        void (*keep)(recon_plan *) = (void (*)(recon_plan *))(void *)GetProcAddress(host, "keep");
        void (*destroy)(void) = (void (*)(void))(void *)GetProcAddress(host, "destroy");
        REQUIRE(keep && destroy);
        keep(plan_of(GetModuleHandleW(L"recon.dll")));
        if (strcmp(way, "destructor") == 0) {
            return 5;
        }
        destroy();
        REQUIRE(FreeLibrary(host));
        REQUIRE(GetModuleHandleW(L"recon.dll") == NULL);
        return 6;
    }
    printf("load.c: one of unload, exit, return, destructor, host\n");
    return 101;
}
