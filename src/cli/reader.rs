//! Reads files. HDF5 files are read in a separate process, the reader.
//!
//! Versions of HDF5's C library in use crash on some damaged files, or search without end, or allocate all memory.
//! Therefore the program starts itself again to read an HDF5 file, with limits of time and memory, and receives the
//! contents through a pipe. If the reader crashes, the program reports an error in one line. A reader in Rust would
//! have to support all layouts of groups, chunks, heaps and filters that HDF5 has had. The cost: a scan is copied once
//! through the pipe.

use clap::ValueEnum;
use num_complex::Complex;
use recon::scan::{
    AcquisitionHeader, AssemblyOptions, CalibrationMode, Dataset, EncodingCounters, EncodingLimits, EncodingSpace,
    Header, HeaderEncoding, ParallelImaging, TrajectoryDescription, TrajectoryKind, UserParameter,
};
use recon::{bail, Error, ErrorKind, Result};
use recon_files::ismrmrd;
use recon_files::ismrmrd::RawReceiver;
use recon_files::{Format, Image, Placement, ScanIndex};
use std::ffi::{OsStr, OsString};
use std::io::{BufReader, BufWriter, ErrorKind as IoKind, Read, Result as IoResult, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

/// The name of the hidden command that is the reader.
pub const COMMAND: &str = "read-hdf5";

/// The contents of a file.
pub enum FileContents {
    Raw(Box<Dataset>),
    Images(Vec<Image>),
}

/// The kind of contents that is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ContentKind {
    Raw,
    Images,
    /// Raw data; images if the file does not contain raw data.
    Either,
}

/// Reads raw data in the reader ([`ismrmrd::read_raw`]).
pub fn read_dataset(path: &Path, group: &str, options: AssemblyOptions) -> Result<Dataset> {
    match read_in_process(ContentKind::Raw, path, group, options)? {
        FileContents::Raw(dataset) => Ok(*dataset),
        FileContents::Images(_) => Err(unexpected_contents(path)),
    }
}

/// Reads images ([`recon_files::read_images`]), HDF5 files in the reader.
pub fn read_images(path: &Path) -> Result<Vec<Image>> {
    if Format::of(path) != Some(Format::Ismrmrd) {
        return recon_files::read_images(path);
    }
    match read_in_process(ContentKind::Images, path, "", AssemblyOptions::default())? {
        FileContents::Images(images) => Ok(images),
        FileContents::Raw(_) => Err(unexpected_contents(path)),
    }
}

/// Reads a file of one image.
pub fn read_image(path: &Path) -> Result<Image> {
    recon_files::the_only_image(path, read_images(path)?)
}

/// Reads raw data or images of an HDF5 file.
pub fn read_either(path: &Path, group: &str, options: AssemblyOptions) -> Result<FileContents> {
    read_in_process(ContentKind::Either, path, group, options)
}

fn unexpected_contents(path: &Path) -> Error {
    let message = format!("{}: the reader process sent images for raw data, or raw data for images", path.display());
    Error::new(ErrorKind::Internal, message)
}

/// Reads an HDF5 file for another process of this program
#[derive(clap::Args)]
pub struct ReaderArgs {
    #[arg(value_enum)]
    kind: ContentKind,
    group: String,
    /// The level of the log
    level: log::LevelFilter,
    path: PathBuf,
}

/// Starts the reader, and receives the contents of a file from it. Raw data are assembled in this process.
fn read_in_process(kind: ContentKind, path: &Path, group: &str, options: AssemblyOptions) -> Result<FileContents> {
    let shown = path.display();
    let possible = kind.to_possible_value();
    let name = possible.as_ref().map_or("", |v| v.get_name());
    let level = log::max_level().to_string();
    let mut command = this_program()?;
    command.args([COMMAND, "--", name, group, &level].map(OsStr::new)).arg(path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A process group of its own: Ctrl-C reaches this process only. The reader ends when its standard input is closed.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let remedy = match e.kind() {
                // There are too many processes, or there is not enough memory.
                IoKind::WouldBlock | IoKind::OutOfMemory => LIMITS_REMEDY,
                _ => RESTART_REMEDY,
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
    // SAFETY: the call takes no address. If it fails, the pipe stays small, and the processes wait for each other more
    // often.
    unsafe {
        libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&pipe), libc::F_SETPIPE_SZ, 1 << 20);
    }
    let answer = receive(&mut BufReader::with_capacity(BLOCK, pipe), path, options);
    // The reader has usually ended: then `kill` fails, which changes nothing.
    drop(child.kill());
    let status = child.wait();
    match (answer, status) {
        (Ok(answer), _) => answer,
        (Err(e), Ok(status)) if e.kind() == IoKind::UnexpectedEof => {
            Err(reader_failure(status, path, command.get_program()).within(shown))
        }
        (Err(e), _) => bail!(BadFile, "{shown}: the process that reads it sent an invalid message: {e}: {DAMAGED}"),
    }
}

/// The remedy if the system refuses a new process.
const LIMITS_REMEDY: &str = "allow more processes (ulimit -u, or pids.max of the cgroup), or free memory";
/// The remedy if the program cannot start itself again.
const RESTART_REMEDY: &str = "recon starts itself again to read HDF5 files: mount /proc, or start recon by its full \
                              name and not through the dynamic loader";

/// The exit status of a Rust program after a panic.
const PANIC_STATUS: i32 = 101;

/// The cause and the remedy if HDF5 fails on a file.
const DAMAGED: &str = "the file is damaged: copy it again, or inspect it with h5dump";

/// Returns the error for a reader that ended before it sent the contents.
fn reader_failure(status: ExitStatus, path: &Path, program: &OsStr) -> Error {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let text = match signal {
            libc::SIGXCPU => {
                let seconds = seconds_for(path);
                format!("HDF5's library does not finish in {seconds} s of processor time: {DAMAGED}")
            }
            libc::SIGKILL | libc::SIGTERM => "another process or the system ended the process that reads it, perhaps \
                                              because there was not enough memory: free memory and try again"
                .into(),
            _ => format!("HDF5's library crashes on it (signal {signal}): {DAMAGED}"),
        };
        return Error::new(ErrorKind::BadFile, text);
    }
    let _ = path;
    match status.code() {
        Some(PANIC_STATUS) | None => {
            Error::new(ErrorKind::Internal, format!("the process that reads it ended with {status}"))
        }
        Some(_) => Error::new(
            ErrorKind::IO,
            format!(
                "the process that reads HDF5 files, started as {}, ended with {status} before it read anything: \
                 {RESTART_REMEDY}",
                program.display()
            ),
        ),
    }
}

/// Returns a command that starts this program again, from the same file even if a different file now has its name.
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
        None => {
            bail!(IO, "the program starts itself again to read HDF5 files, and cannot find its own file: mount /proc")
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn this_program() -> Result<Command> {
    match std::env::current_exe() {
        Ok(path) => Ok(Command::new(path)),
        Err(e) => {
            bail!(IO, "the program starts itself again to read HDF5 files, and cannot find its own file: {e}")
        }
    }
}

/// Returns whether this program was started as an argument of the dynamic loader, as in `ld-linux-x86-64.so.2 ./recon`.
/// In this case the kernel executed the loader itself, and the base address of the interpreter is 0.
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
        Err(e) => bail!(IO, "the program needs /proc/self/cmdline to start itself again, and cannot read it: {e}"),
    };
    let all: Vec<&[u8]> = line.strip_suffix(b"\0").unwrap_or(&line).split(|&byte| byte == 0).collect();
    // The loader has removed itself and its options from the arguments of the program.
    let removed = all.len().saturating_sub(std::env::args_os().len());
    let words = all.iter().take(removed + 1).skip(1);
    Ok(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// Returns the path of the executed file, as the kernel or the loader passed it to the program.
#[cfg(target_os = "linux")]
fn executed_file() -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the call takes no address.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    if name.is_null() {
        return None;
    }
    // SAFETY: the address is that of a string that ends with 0 and exists as long as the process.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

/// Returns the limit of processor time for a file, in seconds: hundreds of times the time that HDF5 needs.
fn seconds_for(path: &Path) -> u64 {
    2 + (std::fs::metadata(path).map_or(0, |about| about.len()) >> 20)
}

/// Limits memory and processor time of this process, and turns off core files.
///
/// The memory limit is four times the contents of the file at HDF5's best compression, 1032 to 1, plus 4 GiB, and at
/// most the memory of the machine.
#[cfg(unix)]
fn set_resource_limits(path: &Path) {
    let length = std::fs::metadata(path).map_or(0, |about| about.len());
    // SAFETY: the calls take no address.
    let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(page).unwrap_or(0));
    let memory =
        length.saturating_mul(4 * 1032).saturating_add(4 << 30).min(if machine > 0 { machine } else { u64::MAX });
    let limits = [(libc::RLIMIT_CPU, seconds_for(path)), (libc::RLIMIT_AS, memory), (libc::RLIMIT_CORE, 0)];
    for (resource, maximum) in limits {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls only read or fill the structure, which is on this stack.
        let is_set = unsafe {
            libc::getrlimit(resource, &mut limit) == 0 && {
                limit.rlim_cur = limit.rlim_cur.min(maximum as libc::rlim_t);
                libc::setrlimit(resource, &limit) == 0
            }
        };
        if !is_set {
            log::debug!("limit {resource} could not be set: {}", std::io::Error::last_os_error());
        }
    }
}

#[cfg(not(unix))]
fn set_resource_limits(_: &Path) {}

/// Runs the reader: reads the file, and writes its contents to the standard output.
pub fn run(args: &ReaderArgs) -> ExitCode {
    // If the logger cannot be set, the reader has no log.
    if log::set_logger(&ForwardingLogger).is_ok() {
        log::set_max_level(args.level);
    }
    // The standard input ends when the process that started the reader ends or no longer waits for the contents.
    let watch = || {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        end_now(1)
    };
    if let Err(e) = std::thread::Builder::new().name("watch".into()).spawn(watch) {
        log::debug!("the thread that watches for the end of the other process could not be started: {e}");
    }
    set_resource_limits(&args.path);
    let mut out = BufWriter::with_capacity(BLOCK, std::io::stdout().lock());
    let sent = send_contents(args, &mut out);
    end_now(sent.and_then(|()| out.flush()).is_err().into())
}

/// Reads the file and sends its contents. Returns the errors of the pipe; those of the file are sent.
fn send_contents(args: &ReaderArgs, out: &mut impl Write) -> IoResult<()> {
    let images = || ismrmrd::read_images(&args.path, None);
    let mut sender = RawSender { out, has_begun: false, failed: None };
    let read = match args.kind {
        ContentKind::Images => images().map(Some),
        ContentKind::Raw => ismrmrd::read_raw(&args.path, &args.group, &mut sender).map(|()| None),
        ContentKind::Either => match ismrmrd::read_raw(&args.path, &args.group, &mut sender) {
            Ok(()) => Ok(None),
            // If the file does not contain images either, the error about raw data is more helpful.
            Err(e) if !sender.has_begun => images().map(Some).map_err(|_| e),
            Err(e) => Err(e),
        },
    };
    if let Some(error) = sender.failed {
        return Err(error);
    }
    match read {
        Ok(None) => END.encode(out),
        Ok(Some(images)) => IMAGES.encode(out).and_then(|()| images.encode(out)),
        Err(e) => ERROR.encode(out).and_then(|()| e.encode(out)),
    }
}

/// Sends raw data as they are read.
struct RawSender<'a, W> {
    out: &'a mut W,
    has_begun: bool,
    /// The error of the pipe.
    failed: Option<std::io::Error>,
}

impl<W: Write> RawSender<'_, W> {
    fn check(&mut self, sent: IoResult<()>) -> Result<()> {
        sent.map_err(|e| {
            let error = Error::new(ErrorKind::IO, format!("the pipe to the other process: {e}"));
            self.failed = Some(e);
            error
        })
    }
}

impl<W: Write> ismrmrd::RawReceiver for RawSender<'_, W> {
    fn begin(&mut self, header: Header, acquisitions: &[AcquisitionHeader]) -> Result<()> {
        self.has_begun = true;
        // A record of the log would arrive in the middle of a message.
        log::set_max_level(log::LevelFilter::Off);
        let send = || {
            (RAW, (header, acquisitions.len())).encode(self.out)?;
            AcquisitionHeader::encode_all(acquisitions, self.out)
        };
        let sent = send();
        self.check(sent)
    }

    fn add(&mut self, number: usize, _: &AcquisitionHeader, trajectory: &[f32], data: &[Complex<f32>]) -> Result<()> {
        let mut send = || {
            (ACQUISITION, (number, (trajectory.len(), data.len()))).encode(self.out)?;
            f32::encode_all(trajectory, self.out)?;
            Complex::encode_all(data, self.out)
        };
        let sent = send();
        self.check(sent)
    }
}

/// Ends this process without HDF5's clean-up, which could wait for another thread or fail on a damaged file.
fn end_now(status: i32) -> ! {
    #[cfg(unix)]
    // SAFETY: the call takes no address and does not return.
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
const ACQUISITION: u8 = 4;
const END: u8 = 5;

/// A logger that sends records to the process that started the reader.
struct ForwardingLogger;

impl log::Log for ForwardingLogger {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::max_level()
    }
    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            let mut out = std::io::stdout().lock();
            let record = (record.level() as usize, (record.target().to_owned(), record.args().to_string()));
            // The error is ignored: it means that the other process has ended.
            drop(LOG.encode(&mut out).and_then(|()| record.encode(&mut out)).and_then(|()| out.flush()));
        }
    }
    fn flush(&self) {}
}

/// Receives messages until the contents or an error arrive. Log records go to the log of this process.
fn receive(from: &mut impl Read, path: &Path, options: AssemblyOptions) -> IoResult<Result<FileContents>> {
    let mut builder = ismrmrd::DatasetBuilder::new(options);
    let mut acquisitions: Vec<AcquisitionHeader> = Vec::new();
    loop {
        match u8::decode(from)? {
            LOG => {
                let (level, (target, text)): (usize, (String, String)) = PipeCodec::decode(from)?;
                let level = log::Level::iter().find(|l| *l as usize == level).unwrap_or(log::Level::Warn);
                let mut record = log::Record::builder();
                record.level(level).target(&target).module_path(Some(&target));
                log::logger().log(&record.args(format_args!("{text}")).build());
            }
            ERROR => return Error::decode(from).map(Err),
            RAW => {
                let header;
                (header, acquisitions) = PipeCodec::decode(from)?;
                if let Err(e) = builder.begin(header, &acquisitions) {
                    return Ok(Err(e.within(path.display())));
                }
            }
            ACQUISITION => {
                let (number, (trajectory, data)): (usize, (usize, usize)) = PipeCodec::decode(from)?;
                let (trajectory, data) = (f32::decode_all(trajectory, from)?, Complex::decode_all(data, from)?);
                let header = acquisitions.get(number).ok_or_else(|| invalid("an acquisition without a header"))?;
                if let Err(e) = builder.add(number, header, &trajectory, &data) {
                    return Ok(Err(e.within(path.display())));
                }
            }
            END => return Ok(builder.finish(path).map(|dataset| FileContents::Raw(Box::new(dataset)))),
            IMAGES => return PipeCodec::decode(from).map(|i| Ok(FileContents::Images(i))),
            kind => return Err(invalid(format!("an unknown message kind, {kind}"))),
        }
    }
}

fn invalid(what: impl Into<String>) -> std::io::Error {
    std::io::Error::new(IoKind::InvalidData, what.into())
}

/// Size of the blocks that are passed, in bytes.
const BLOCK: usize = 1 << 16;

/// Encoding of values that are passed between processes of one machine.
trait PipeCodec: Sized {
    fn encode(&self, out: &mut impl Write) -> IoResult<()>;
    fn decode(from: &mut impl Read) -> IoResult<Self>;

    fn encode_all(all: &[Self], out: &mut impl Write) -> IoResult<()> {
        all.iter().try_for_each(|value| value.encode(out))
    }
    /// Decodes `count` values. Memory is allocated as they arrive, because the announced count may be wrong.
    fn decode_all(count: usize, from: &mut impl Read) -> IoResult<Vec<Self>> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(Self::decode(from)?);
        }
        Ok(all)
    }
}

/// Implements `PipeCodec` for numbers. Slices are passed in blocks.
macro_rules! numbers {
    ($($number:ty: $size:expr, $bytes:expr, $value:expr);+ $(;)?) => {$(
        impl PipeCodec for $number {
            fn encode(&self, out: &mut impl Write) -> IoResult<()> {
                out.write_all(&$bytes(*self))
            }
            fn decode(from: &mut impl Read) -> IoResult<Self> {
                let mut bytes = [0; $size];
                from.read_exact(&mut bytes)?;
                Ok($value(bytes))
            }
            fn encode_all(all: &[Self], out: &mut impl Write) -> IoResult<()> {
                let mut block = vec![0; BLOCK];
                for part in all.chunks(BLOCK / $size) {
                    let bytes = &mut block[..part.len() * $size];
                    let (chunks, _) = bytes.as_chunks_mut::<{ $size }>();
                    chunks.iter_mut().zip(part).for_each(|(b, value)| *b = $bytes(*value));
                    out.write_all(bytes)?;
                }
                Ok(())
            }
            fn decode_all(count: usize, from: &mut impl Read) -> IoResult<Vec<Self>> {
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
    i32: 4, i32::to_ne_bytes, i32::from_ne_bytes;
    u64: 8, u64::to_ne_bytes, u64::from_ne_bytes;
    usize: size_of::<usize>(), usize::to_ne_bytes, usize::from_ne_bytes;
    f32: 4, f32::to_ne_bytes, f32::from_ne_bytes;
    f64: 8, f64::to_ne_bytes, f64::from_ne_bytes;
    Complex<f32>: 8, complex_bytes, complex;
}

impl<T: PipeCodec> PipeCodec for Vec<T> {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        self.len().encode(out)?;
        T::encode_all(self, out)
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        T::decode_all(usize::decode(from)?, from)
    }
}

impl PipeCodec for String {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        self.len().encode(out)?;
        out.write_all(self.as_bytes())
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        String::from_utf8(Vec::decode(from)?).map_err(|e| invalid(e.to_string()))
    }
}

impl<T: PipeCodec> PipeCodec for Option<T> {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        (self.is_some() as u8).encode(out)?;
        self.as_ref().map_or(Ok(()), |value| value.encode(out))
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        match u8::decode(from)? {
            0 => Ok(None),
            _ => T::decode(from).map(Some),
        }
    }
}

impl<T: PipeCodec, const N: usize> PipeCodec for [T; N] {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        T::encode_all(self, out)
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        T::decode_all(N, from)?.try_into().map_err(|_| invalid("an array of the wrong length"))
    }
}

impl<A: PipeCodec, B: PipeCodec> PipeCodec for (A, B) {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        self.0.encode(out).and_then(|()| self.1.encode(out))
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

impl PipeCodec for bool {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        u8::from(*self).encode(out)
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        Ok(u8::decode(from)? != 0)
    }
}

impl PipeCodec for Error {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        ErrorKind::ALL.iter().position(|k| *k == self.kind()).expect("it is one of all").encode(out)?;
        self.message().to_owned().encode(out)
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        let kind = ErrorKind::ALL.get(usize::decode(from)?).ok_or_else(|| invalid("an unknown error kind"))?;
        Ok(Error::new(*kind, String::decode(from)?))
    }
}

impl PipeCodec for TrajectoryKind {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        (*self as u8).encode(out)
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        let kind = TrajectoryKind::NAMES.get(u8::decode(from)? as usize);
        kind.map(|(kind, _)| *kind).ok_or_else(|| invalid("an unknown trajectory kind"))
    }
}

impl PipeCodec for CalibrationMode {
    fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        (*self as u8).encode(out)
    }
    fn decode(from: &mut impl Read) -> IoResult<Self> {
        let mode = CalibrationMode::NAMES.get(u8::decode(from)? as usize);
        mode.map(|(mode, _)| *mode).ok_or_else(|| invalid("an unknown calibration mode"))
    }
}

/// Implements `PipeCodec` for structures, field by field.
macro_rules! structures {
    ($($name:ident { $($field:ident),+ $(,)? })+) => {$(
        impl PipeCodec for $name {
            fn encode(&self, out: &mut impl Write) -> IoResult<()> {
                $(self.$field.encode(out)?;)+
                Ok(())
            }
            fn decode(from: &mut impl Read) -> IoResult<Self> {
                Ok($name { $($field: PipeCodec::decode(from)?),+ })
            }
        }
    )+};
}

structures! {
    Header {
        encodings, receiver_channels, noise_bandwidth, h1_resonance_hz, echo_times_ms, repetition_times_ms, vendor, model,
        patient_position, dependencies, user_parameters,
    }
    HeaderEncoding {
        encoded, recon, trajectory, steps, readout, averages, slices, contrasts, phases, repetitions, sets, parallel,
        description,
    }
    TrajectoryDescription { identifier, numbers }
    UserParameter { name, value, is_integer }
    AcquisitionHeader {
        version, flags, measurement_uid, scan_counter, acquisition_time_stamp, physiology_time_stamp, number_of_samples,
        available_channels, active_channels, channel_mask, discard_pre, discard_post, center_sample, encoding_space_ref,
        trajectory_dimensions, sample_time_us, position, read_dir, phase_dir, slice_dir, patient_table_position, idx,
        user_int, user_float,
    }
    EncodingCounters {
        kspace_encode_step_1, kspace_encode_step_2, average, slice, contrast, phase, repetition, set, segment, user,
    }
    ParallelImaging { acceleration, calibration }
    EncodingSpace { matrix, fov_mm }
    EncodingLimits { minimum, maximum, center }
    ScanIndex { encoding, slice, repetition, contrast, phase, set, average }
    Placement {
        position, read_dir, phase_dir, slice_dir, table_position, measurement_uid, acquisition_time_stamp,
        physiology_time_stamp, repetition_time_ms,
    }
    Image { dims, channels, data, fov_mm, placement, index }
}
