//! Tests in an emulator of a different processor.

/// Returns the first of two amounts of work; in an emulator, the second. Emulators are 10 to 100 times slower than the
/// processor.
pub fn less_in_emulator<W>(work: W, in_emulator: W) -> W {
    if std::env::var_os("RECON_TEST_EMULATOR").is_some() {
        in_emulator
    } else {
        work
    }
}
