/* bcryptprimitives.dll for Wine 8.0, which does not have it. Rust's standard library takes random numbers from
 * its one function. Windows has the library since version 7. */
#include <windows.h>

#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(BYTE *bytes, SIZE_T count) {
    return RtlGenRandom(bytes, (ULONG)count);
}
