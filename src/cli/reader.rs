//! Reads files. HDF5 files are read in a separate process.
//!
//! HDF5's C library does not survive every damaged file: versions in use crash, search without end, or allocate all
//! memory. Therefore the program starts itself again to read an HDF5 file, within limits of time and memory, and
//! receives the contents through a pipe: where the reader dies, the user sees an error in one line. A reader in Rust
//! would have to know every layout of groups, chunks, heaps and filters that HDF5 has had. The cost is that a scan is
//! in memory twice for a moment, and is copied once through the pipe.

use crate::io::ismrmrd::{
    self, CalibrationMode, Encoding, Header, Limits, Noise, ParallelImaging, Space, TrajectoryKind,
};
use crate::io::{self, Dataset, Format, Image, Placement, Scan, ScanIndex};
use clap::ValueEnum;
use num_complex::Complex;
use recon::acquisition::AcquisitionUse;
use recon::{bail, CoilMatrix, Error, ErrorKind, Result};
use std::ffi::{OsStr, OsString};
use std::io::{BufReader, BufWriter, ErrorKind as IoKind, Read, Result as IoResult, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// The hidden command of the program that reads a file in a separate process.
pub const COMMAND: &str = "read-hdf5";

/// The contents of a file.
pub enum Contents {
    Raw(Dataset),
    Images(Vec<Image>),
}

/// The kind of contents that is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ContentKind {
    Raw,
    Images,
    /// Raw data, or images where there are none.
    Either,
}

/// Raw data: [`ismrmrd::read_dataset`].
pub fn read_dataset(path: &Path, group: &str) -> Result<Dataset> {
    match read_in_process(ContentKind::Raw, path, group)? {
        Contents::Raw(dataset) => Ok(dataset),
        Contents::Images(_) => Err(unexpected(path)),
    }
}

/// Images: [`io::read_images`].
pub fn read_images(path: &Path) -> Result<Vec<Image>> {
    if Format::of(path) != Some(Format::Ismrmrd) {
        return io::read_images(path);
    }
    match read_in_process(ContentKind::Images, path, "")? {
        Contents::Images(images) => Ok(images),
        Contents::Raw(_) => Err(unexpected(path)),
    }
}

/// The only image of a file.
pub fn read_image(path: &Path) -> Result<Image> {
    io::the_only_image(path, read_images(path)?)
}

/// Raw data or images of an HDF5 file.
pub fn read_either(path: &Path, group: &str) -> Result<Contents> {
    read_in_process(ContentKind::Either, path, group)
}

fn unexpected(path: &Path) -> Error {
    Error::new(ErrorKind::Internal, format!("{}: the reader has sent what it was not asked for", path.display()))
}

/// Reads an HDF5 file for another process of this program.
#[derive(clap::Args)]
pub struct ReaderArgs {
    #[arg(value_enum)]
    wanted: ContentKind,
    group: String,
    /// The level of the log.
    level: log::LevelFilter,
    path: PathBuf,
}

fn read_in_process(wanted: ContentKind, path: &Path, group: &str) -> Result<Contents> {
    let shown = path.display();
    let possible = wanted.to_possible_value();
    let name = possible.as_ref().map_or("", |v| v.get_name());
    let level = log::max_level().to_string();
    let mut command = this_program()?;
    command.args([COMMAND, "--", name, group, &level].map(OsStr::new)).arg(path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Ctrl-C goes to this process only. The reader ends when its standard input is closed, for any reason.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let remedy = match e.kind() {
                // Too many processes, or too little memory for one more.
                IoKind::WouldBlock | IoKind::OutOfMemory => REFUSED,
                _ => RESTART,
            };
            bail!(
                IO,
                "{shown}: the process that reads HDF5 files could not be started: {}: {e}: {remedy}",
                command.get_program().display()
            )
        }
    };
    let Some(pipe) = child.stdout.take() else {
        bail!(Internal, "{shown}: the reader has no output");
    };
    #[cfg(target_os = "linux")]
    // SAFETY: the call takes no address. If it fails, the pipe stays small, and the processes wait more often.
    unsafe {
        libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&pipe), libc::F_SETPIPE_SZ, 1 << 20);
    }
    let answer = receive(&mut BufReader::with_capacity(BLOCK, pipe));
    // The reader has usually ended already: then this fails, and changes nothing.
    drop(child.kill());
    let status = child.wait();
    match (answer, status) {
        (Ok(answer), _) => answer,
        (Err(e), Ok(status)) if e.kind() == IoKind::UnexpectedEof => {
            Err(death(status, path, command.get_program()).within(shown))
        }
        (Err(e), _) => bail!(BadFile, "{shown}: the process that reads it sent what makes no sense: {e}: {DAMAGED}"),
    }
}

/// The remedy if the system refuses another process.
const REFUSED: &str = "allow more processes (ulimit -u, or pids.max of the cgroup), or free memory";
/// The remedy if the program cannot start itself again.
const RESTART: &str =
    "recon starts itself again to read HDF5 files: mount /proc, or start recon by its full name and not \
                       through the dynamic loader";

/// The exit status of a Rust program that has panicked.
const PANICKED: i32 = 101;

const DAMAGED: &str = "the file is damaged: copy it anew, or see what h5dump finds in it";

/// The error for a reader that ended before it answered.
fn death(status: ExitStatus, path: &Path, program: &OsStr) -> Error {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let text = match signal {
            libc::SIGXCPU => {
                let seconds = seconds_for(path);
                format!("HDF5's library comes to no end in {seconds} s of computing: {DAMAGED}")
            }
            libc::SIGKILL | libc::SIGTERM => {
                "the process that reads it was ended from outside, for want of memory perhaps: free some, and try again"
                    .into()
            }
            _ => format!("HDF5's library crashes on it (signal {signal}): {DAMAGED}"),
        };
        return Error::new(ErrorKind::BadFile, text);
    }
    let _ = path;
    match status.code() {
        Some(PANICKED) | None => {
            Error::new(ErrorKind::Internal, format!("the process that reads it ended with {status}"))
        }
        Some(_) => Error::new(
            ErrorKind::IO,
            format!(
                "the process that reads HDF5 files, started as {}, ended with {status} before it read anything: \
                 {RESTART}",
                program.display()
            ),
        ),
    }
}

/// Returns a command that starts this program again, from the same file even if its name now leads to another one.
#[cfg(target_os = "linux")]
fn this_program() -> Result<Command> {
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        let mut command = Command::new(own);
        if started_by_loader() {
            command.args(loader_arguments()?);
        }
        return Ok(command);
    }
    match executed_file() {
        Some(path) => Ok(Command::new(path)),
        None => bail!(
            IO,
            "the program, which starts itself again to read HDF5 files, does not know its own name: mount /proc"
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn this_program() -> Result<Command> {
    match std::env::current_exe() {
        Ok(path) => Ok(Command::new(path)),
        Err(e) => {
            bail!(IO, "the program, which starts itself again to read HDF5 files, does not know its own name: {e}")
        }
    }
}

/// Returns whether this program was started as an argument of the dynamic loader, as in `ld-linux-x86-64.so.2 ./recon`.
/// Then the kernel has executed the loader, and no interpreter has a base address.
#[cfg(target_os = "linux")]
fn started_by_loader() -> bool {
    // SAFETY: the call takes no address.
    !cfg!(target_feature = "crt-static") && unsafe { libc::getauxval(libc::AT_BASE) } == 0
}

/// Returns the arguments of the dynamic loader that this process was started with: its options, then the name of this
/// program.
#[cfg(target_os = "linux")]
fn loader_arguments() -> Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStringExt;
    let line = match std::fs::read("/proc/self/cmdline") {
        Ok(line) => line,
        Err(e) => bail!(IO, "/proc/self/cmdline, by which the program starts itself again, cannot be read: {e}"),
    };
    let all: Vec<&[u8]> = line.strip_suffix(b"\0").unwrap_or(&line).split(|&byte| byte == 0).collect();
    // The loader has removed itself and its options from the arguments of the program.
    let removed = all.len().saturating_sub(std::env::args_os().len());
    let words = all.iter().take(removed + 1).skip(1);
    Ok(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// Returns the file that was executed, by the name that the kernel or the loader passed on.
#[cfg(target_os = "linux")]
fn executed_file() -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the call takes no address.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    if name.is_null() {
        return None;
    }
    // SAFETY: the address is that of a string that ends with 0 and lives as long as the process.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// The seconds of computing that a file may take: hundreds of times what HDF5 needs.
fn seconds_for(path: &Path) -> u64 {
    2 + (std::fs::metadata(path).map_or(0, |about| about.len()) >> 20)
}

/// Limits this process: its memory to four times the contents of a file of this length at HDF5's best compression, 1032
/// to 1, and to the memory of the machine; its time; and no core file when it crashes.
#[cfg(unix)]
fn limit(path: &Path) {
    let length = std::fs::metadata(path).map_or(0, |about| about.len());
    // SAFETY: the calls take no address.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page).unwrap_or(0));
    let memory =
        length.saturating_mul(4 * 1032).saturating_add(4 << 30).min(if machine > 0 { machine } else { u64::MAX });
    for (what, most) in [(libc::RLIMIT_CPU, seconds_for(path)), (libc::RLIMIT_AS, memory), (libc::RLIMIT_CORE, 0)] {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls only read or fill the structure, which lives on this stack.
        let set = unsafe {
            libc::getrlimit(what, &mut now) == 0 && {
                now.rlim_cur = now.rlim_cur.min(most as libc::rlim_t);
                libc::setrlimit(what, &now) == 0
            }
        };
        if !set {
            log::debug!("limit {what} could not be set: {}", std::io::Error::last_os_error());
        }
    }
}

#[cfg(not(unix))]
fn limit(_: &Path) {}

/// Reads the file and sends its contents: all that the reading process does.
pub fn run(args: &ReaderArgs) -> ExitCode {
    // A reader that was started by hand has no log.
    if log::set_logger(&ParentLog).is_ok() {
        log::set_max_level(args.level);
    }
    // When the standard input ends, no process waits for the answer any more.
    let watch = || {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        end_now(1)
    };
    if let Err(e) = std::thread::Builder::new().name("watch".into()).spawn(watch) {
        log::debug!("no thread watches for the end of the other process: {e}");
    }
    limit(&args.path);
    let images = || ismrmrd::read_images(&args.path, None);
    let contents = match args.wanted {
        ContentKind::Images => images().map(Contents::Images),
        ContentKind::Raw => ismrmrd::read_dataset(&args.path, Some(&args.group)).map(Contents::Raw),
        // Where there are no images either, the error about raw data is more helpful.
        ContentKind::Either => match ismrmrd::read_dataset(&args.path, Some(&args.group)) {
            Ok(dataset) => Ok(Contents::Raw(dataset)),
            Err(e) => images().map(Contents::Images).map_err(|_| e),
        },
    };
    let mut out = BufWriter::with_capacity(BLOCK, std::io::stdout().lock());
    let sent = match &contents {
        Ok(Contents::Raw(dataset)) => RAW.put(&mut out).and_then(|()| dataset.put(&mut out)),
        Ok(Contents::Images(images)) => IMAGES.put(&mut out).and_then(|()| images.put(&mut out)),
        Err(e) => ERROR.put(&mut out).and_then(|()| e.put(&mut out)),
    };
    end_now(sent.and_then(|()| out.flush()).is_err().into())
}

/// Ends this process without HDF5's clean-up, which another thread or a damaged file could block.
fn end_now(status: i32) -> ! {
    #[cfg(unix)]
    // SAFETY: the call takes no address and does not come back.
    unsafe {
        libc::_exit(status)
    }
    #[cfg(not(unix))]
    std::process::exit(status)
}

// The first byte of a message.
const LOG: u8 = 0;
const ERROR: u8 = 1;
const RAW: u8 = 2;
const IMAGES: u8 = 3;

/// Sends records of the log to the process that asked.
struct ParentLog;

impl log::Log for ParentLog {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::max_level()
    }
    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            let mut out = std::io::stdout().lock();
            let record = (record.level() as usize, (record.target().to_owned(), record.args().to_string()));
            // Where the other process has gone, there is nobody to report to.
            drop(LOG.put(&mut out).and_then(|()| record.put(&mut out)).and_then(|()| out.flush()));
        }
    }
    fn flush(&self) {}
}

/// Receives the reader's messages to the end; records of its log go to the log of this process.
fn receive(from: &mut impl Read) -> IoResult<Result<Contents>> {
    loop {
        match u8::take(from)? {
            LOG => {
                let (level, (target, text)): (usize, (String, String)) = Transfer::take(from)?;
                let level = log::Level::iter().find(|l| *l as usize == level).unwrap_or(log::Level::Warn);
                let mut record = log::Record::builder();
                record.level(level).target(&target).module_path(Some(&target));
                log::logger().log(&record.args(format_args!("{text}")).build());
            }
            ERROR => return Error::take(from).map(Err),
            RAW => return Dataset::take(from).map(|d| Ok(Contents::Raw(d))),
            IMAGES => return Transfer::take(from).map(|i| Ok(Contents::Images(i))),
            other => return Err(senseless(format!("a message of kind {other}"))),
        }
    }
}

fn senseless(what: impl Into<String>) -> std::io::Error {
    std::io::Error::new(IoKind::InvalidData, what.into())
}

/// Bytes passed at a time.
const BLOCK: usize = 1 << 16;

/// A value that is passed between processes of one machine.
trait Transfer: Sized {
    fn put(&self, out: &mut impl Write) -> IoResult<()>;
    fn take(from: &mut impl Read) -> IoResult<Self>;

    fn put_all(all: &[Self], out: &mut impl Write) -> IoResult<()> {
        all.iter().try_for_each(|value| value.put(out))
    }
    /// Allocates as values arrive, as the announced count may be wrong.
    fn take_all(count: usize, from: &mut impl Read) -> IoResult<Vec<Self>> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(Self::take(from)?);
        }
        Ok(all)
    }
}

/// Numbers: many are passed in blocks.
macro_rules! numbers {
    ($($number:ty: $size:expr, $bytes:expr, $value:expr);+ $(;)?) => {$(
        impl Transfer for $number {
            fn put(&self, out: &mut impl Write) -> IoResult<()> {
                out.write_all(&$bytes(*self))
            }
            fn take(from: &mut impl Read) -> IoResult<Self> {
                let mut bytes = [0; $size];
                from.read_exact(&mut bytes)?;
                Ok($value(bytes))
            }
            fn put_all(all: &[Self], out: &mut impl Write) -> IoResult<()> {
                let mut block = vec![0; BLOCK];
                for part in all.chunks(BLOCK / $size) {
                    let bytes = &mut block[..part.len() * $size];
                    let (chunks, _) = bytes.as_chunks_mut::<{ $size }>();
                    chunks.iter_mut().zip(part).for_each(|(b, value)| *b = $bytes(*value));
                    out.write_all(bytes)?;
                }
                Ok(())
            }
            fn take_all(count: usize, from: &mut impl Read) -> IoResult<Vec<Self>> {
                let (mut all, mut block) = (Vec::new(), vec![0; BLOCK]);
                while all.len() < count {
                    let bytes = &mut block[..(count - all.len()).min(BLOCK / $size) * $size];
                    from.read_exact(bytes)?;
                    let (values, _) = bytes.as_chunks::<{ $size }>();
                    if all.try_reserve(values.len()).is_err() {
                        return Err(IoKind::OutOfMemory.into());
                    }
                    all.extend(values.iter().map(|value| $value(*value)));
                }
                Ok(all)
            }
        }
    )+};
}

fn complex_bytes(z: Complex<f32>) -> [u8; 8] {
    let (re, im) = (z.re.to_ne_bytes(), z.im.to_ne_bytes());
    [re[0], re[1], re[2], re[3], im[0], im[1], im[2], im[3]]
}

fn complex([a, b, c, d, e, f, g, h]: [u8; 8]) -> Complex<f32> {
    Complex::new(f32::from_ne_bytes([a, b, c, d]), f32::from_ne_bytes([e, f, g, h]))
}

numbers! {
    u8: 1, u8::to_ne_bytes, u8::from_ne_bytes;
    u16: 2, u16::to_ne_bytes, u16::from_ne_bytes;
    u32: 4, u32::to_ne_bytes, u32::from_ne_bytes;
    u64: 8, u64::to_ne_bytes, u64::from_ne_bytes;
    usize: size_of::<usize>(), usize::to_ne_bytes, usize::from_ne_bytes;
    f32: 4, f32::to_ne_bytes, f32::from_ne_bytes;
    f64: 8, f64::to_ne_bytes, f64::from_ne_bytes;
    Complex<f32>: 8, complex_bytes, complex;
}

impl<T: Transfer> Transfer for Vec<T> {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        self.len().put(out)?;
        T::put_all(self, out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        T::take_all(usize::take(from)?, from)
    }
}

impl Transfer for String {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        self.len().put(out)?;
        out.write_all(self.as_bytes())
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        String::from_utf8(Vec::take(from)?).map_err(|e| senseless(e.to_string()))
    }
}

impl<T: Transfer> Transfer for Option<T> {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        (self.is_some() as u8).put(out)?;
        self.as_ref().map_or(Ok(()), |value| value.put(out))
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        match u8::take(from)? {
            0 => Ok(None),
            _ => T::take(from).map(Some),
        }
    }
}

impl<T: Transfer, const N: usize> Transfer for [T; N] {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        T::put_all(self, out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        T::take_all(N, from)?.try_into().map_err(|_| senseless("an array of another length"))
    }
}

impl<A: Transfer, B: Transfer> Transfer for (A, B) {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        self.0.put(out).and_then(|()| self.1.put(out))
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl Transfer for Error {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        ErrorKind::ALL.iter().position(|k| *k == self.kind()).expect("it is one of all").put(out)?;
        self.message().to_owned().put(out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        let kind = ErrorKind::ALL.get(usize::take(from)?).ok_or_else(|| senseless("an error of no kind"))?;
        Ok(Error::new(*kind, String::take(from)?))
    }
}

impl Transfer for CoilMatrix {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        (self.virtual_coils(), self.coils()).put(out)?;
        self.entries().iter().map(|z| (z.re, z.im)).collect::<Vec<_>>().put(out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        let (virtual_coils, coils) = Transfer::take(from)?;
        let entries = Vec::take(from)?.into_iter().map(|(re, im)| Complex::new(re, im)).collect();
        CoilMatrix::new(virtual_coils, coils, entries).map_err(|e| senseless(e.message()))
    }
}

impl Transfer for TrajectoryKind {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        (*self as u8).put(out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        let kind = TrajectoryKind::NAMES.get(u8::take(from)? as usize);
        kind.map(|(kind, _)| *kind).ok_or_else(|| senseless("a trajectory of no kind"))
    }
}

impl Transfer for CalibrationMode {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        (*self as u8).put(out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        let mode = CalibrationMode::NAMES.get(u8::take(from)? as usize);
        mode.map(|(mode, _)| *mode).ok_or_else(|| senseless("an unknown calibration mode"))
    }
}

impl Transfer for AcquisitionUse {
    fn put(&self, out: &mut impl Write) -> IoResult<()> {
        AcquisitionUse::ALL.iter().position(|of| of == self).expect("it is one of all").put(out)
    }
    fn take(from: &mut impl Read) -> IoResult<Self> {
        AcquisitionUse::ALL.get(usize::take(from)?).copied().ok_or_else(|| senseless("an unknown use"))
    }
}

/// Structures: one field after the other.
macro_rules! structures {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {$(
        impl Transfer for $name {
            fn put(&self, out: &mut impl Write) -> IoResult<()> {
                $(self.$field.put(out)?;)+
                Ok(())
            }
            fn take(from: &mut impl Read) -> IoResult<Self> {
                Ok($name { $($field: Transfer::take(from)?),+ })
            }
        }
    )+};
}

structures! {
    Dataset { header, scans, noise, calibration, uses }
    Noise { coils, dwell, data }
    Header { encodings, receiver_channels, noise_bandwidth, h1_resonance_hz, echo_times_ms }
    Encoding { encoded, recon, trajectory, steps, parallel }
    ParallelImaging { acceleration, calibration }
    Space { matrix, fov_mm }
    Limits { minimum, maximum, center }
    ScanIndex { encoding, slice, repetition, contrast, phase, set, average }
    Scan {
        index, encoded_matrix, recon_matrix, encoded_fov_mm, recon_fov_mm, trajectory, ndim, coordinates, weights,
        samples_per_shot, skipped_per_shot, coils, data, times, placement, coil_matrix,
        noise_level,
    }
    Placement {
        position, read_dir, phase_dir, slice_dir, table_position, measurement_uid, acquisition_time_stamp,
        physiology_time_stamp,
    }
    Image { dims, channels, data, fov_mm, placement, index }
}
