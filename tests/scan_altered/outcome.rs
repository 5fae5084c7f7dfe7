//! Images and messages of a measurement, compared with the verdict of a table.

use crate::expected;
use crate::measurement::Measurement;
use recon::scan::{whiten, AssemblyOptions, Header, Scan, ScanAssembler};
use recon::{Device, Geometry, Options, Plan};
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// The result that a measurement must have. Data must always be the expected ones, unless there is an error.
#[derive(Clone, Copy, Debug)]
pub enum Verdict {
    /// Images without a word.
    Right,
    /// Images, and a warning with this text.
    Warning(&'static str),
    /// An error with this text.
    Error(&'static str),
}

/// Images, and the messages about them.
#[derive(Default)]
pub struct Outcome {
    pub scans: Vec<Scan>,
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

thread_local! {
    static WARNINGS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A log that stores the warnings of each thread.
struct WarningLog;

impl log::Log for WarningLog {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::Level::Warn
    }
    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            WARNINGS.with_borrow_mut(|warnings| warnings.push(record.args().to_string()));
        }
    }
    fn flush(&self) {}
}

/// Assembles all images, whitens them, and creates their plans.
pub fn assemble(measurement: &Measurement) -> Outcome {
    static LOG: Once = Once::new();
    LOG.call_once(|| {
        log::set_logger(&WarningLog).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
    WARNINGS.with_borrow_mut(Vec::clear);
    let mut outcome = Outcome::default();
    if let Err(error) = assemble_into(measurement, &mut outcome) {
        outcome.errors.push(error.to_string());
    }
    outcome.warnings = WARNINGS.take();
    outcome
}

fn assemble_into(measurement: &Measurement, outcome: &mut Outcome) -> recon::Result<()> {
    let header = Header::from_xml(&measurement.xml)?;
    let bandwidth = header.noise_bandwidth;
    let mut assembler = ScanAssembler::new(header, AssemblyOptions::default());
    for (number, a) in measurement.acquisitions.iter().enumerate() {
        // A host goes on after the error of an acquisition.
        if let Err(error) = assembler.add(number, &a.header, &a.trajectory, &a.data) {
            outcome.errors.push(format!("acquisition {number}: {error}"));
        }
    }
    assembler.end();
    while let Some(scan) = assembler.next_image() {
        match scan {
            Ok(assembled) => outcome.scans.push(assembled.image.scan),
            Err(error) => outcome.errors.push(error.to_string()),
        }
    }
    let mut whitened = outcome.scans.clone();
    let noise = assembler.noise()?;
    if !noise.is_empty() {
        whiten(&mut whitened, &noise, bandwidth)?;
    }
    for scan in &whitened {
        scan.check()?;
        let k: Vec<&[f32]> = scan.coordinates.iter().map(|k| &k[..]).collect();
        let geometry = Geometry::new(&scan.encoded_matrix[..scan.ndim], &k);
        Plan::new(&geometry, &Options { device: Device::Cpu, threads: 1, ..Options::default() })?;
    }
    Ok(())
}

/// Rows of a table, with the rows that failed.
#[derive(Default)]
pub struct Table {
    failures: Vec<String>,
    rows: usize,
}

impl Table {
    /// Compares the outcome of an altered measurement with its verdict.
    pub fn row(&mut self, name: &str, measurement: &Measurement, verdict: Verdict) {
        self.rows += 1;
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| assemble(measurement))) else {
            self.failures.push(format!("{name}: panic"));
            return;
        };
        let Outcome { scans, errors, warnings } = &outcome;
        let said = |texts: &[String], word: &str| texts.iter().any(|text| text.contains(word));
        let problem = match verdict {
            Verdict::Error(word) if !said(errors, word) => Some(format!("no error with {word:?}")),
            Verdict::Error(_) => None,
            _ if !errors.is_empty() => Some("an error".to_owned()),
            Verdict::Warning(word) if !said(warnings, word) => Some(format!("no warning with {word:?}")),
            Verdict::Right if !warnings.is_empty() => Some("a warning".to_owned()),
            _ => expected::difference(&expected::images(measurement), scans),
        };
        let lines = errors.iter().chain(warnings).any(|text| text.contains('\n'));
        let problem = problem.or_else(|| lines.then(|| "a message has several lines".to_owned()));
        println!("{name:50} {verdict:?}: {}", errors.iter().chain(warnings).next().map_or("", |text| text));
        if let Some(problem) = problem {
            self.failures.push(format!("{name}: {problem}; errors {errors:#?}, warnings {warnings:#?}"));
        }
    }

    /// Fails with all rows that failed.
    #[track_caller]
    pub fn end(self, minimum: usize) {
        assert!(self.rows >= minimum, "only {} rows", self.rows);
        let (failed, rows) = (self.failures.len(), self.rows);
        assert!(failed == 0, "{failed} of {rows}:\n{}", self.failures.join("\n"));
    }
}
