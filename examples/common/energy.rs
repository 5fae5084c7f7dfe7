//! Energy of some work in joules: of a GPU by its driver (NVML), of the processors by Linux' powercap counters (RAPL).
//! If a counter is missing, one line states why.

use cudarc::driver::{result, sys::CUdevice_attribute};
use nvml_wrapper::Nvml;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Minimum duration of the repeated work in seconds. Counters are updated in steps, those of GPUs at intervals of up to
/// a tenth of a second.
const LEAST_SECONDS: f64 = 3.0;

/// Counters of this machine.
pub struct Meter {
    gpu: Option<std::result::Result<Gpu, String>>,
    processors: std::result::Result<Vec<Zone>, String>,
}

impl Meter {
    /// Opens the counters of the processors, and of the GPU of this CUDA index if one is given.
    pub fn new(gpu: Option<u32>) -> Meter {
        Meter::with_counters_in(Path::new("/sys/class/powercap"), gpu)
    }

    /// Opens the counters of processors in a different folder from Linux'.
    pub fn with_counters_in(folder: &Path, gpu: Option<u32>) -> Meter {
        Meter { gpu: gpu.map(Gpu::new), processors: zones(folder) }
    }

    /// Runs `work` at least once and for some seconds, and prints the energy of one run.
    pub fn print<E>(&self, what: &str, work: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        let Measured { times, seconds, joules } = self.measure(LEAST_SECONDS, work)?;
        println!("{what}, {times} times, {:.4} s each:", seconds / f64::from(times));
        for (name, joules) in joules {
            match joules {
                Ok(joules) => {
                    println!("  {name:<28} {:>10.3} J each, {:.0} W", joules / f64::from(times), joules / seconds)
                }
                Err(why) => println!("  {name:<28} not told: {why}"),
            }
        }
        Ok(())
    }

    /// Runs `work` at least once and for `least` seconds.
    pub fn measure<E>(&self, least: f64, mut work: impl FnMut() -> Result<(), E>) -> Result<Measured, E> {
        let before = self.read();
        let (started, mut times) = (Instant::now(), 0u32);
        while times == 0 || started.elapsed().as_secs_f64() < least {
            work()?;
            times += 1;
        }
        let seconds = started.elapsed().as_secs_f64();
        let spent = |(before, after): (Reading, Reading)| {
            let passed = before.value.and_then(|before| after.value.map(|after| after - before));
            // The counter wrapped.
            (after.name, passed.map(|joules| if joules < 0.0 { joules + after.range } else { joules }))
        };
        Ok(Measured { times, seconds, joules: before.into_iter().zip(self.read()).map(spent).collect() })
    }

    fn read(&self) -> Vec<Reading> {
        let of_gpu = self.gpu.iter().map(|gpu| match gpu {
            Ok(gpu) => Reading { name: "the GPU (NVML)".into(), value: gpu.joules(), range: 0.0 },
            Err(why) => Reading { name: "the GPU (NVML)".into(), value: Err(why.clone()), range: 0.0 },
        });
        let of_processors = match &self.processors {
            Ok(zones) => zones.iter().map(Zone::read).collect(),
            Err(why) => vec![Reading { name: "the processors (RAPL)".into(), value: Err(why.clone()), range: 0.0 }],
        };
        of_gpu.chain(of_processors).collect()
    }
}

/// Result of a measurement.
pub struct Measured {
    /// Number of runs.
    pub times: u32,
    /// Total time.
    pub seconds: f64,
    /// Name of each counter, and the total joules or the reason why it is missing.
    pub joules: Vec<(String, std::result::Result<f64, String>)>,
}

/// Reading of a counter.
struct Reading {
    name: String,
    /// Joules since an arbitrary time.
    value: std::result::Result<f64, String>,
    /// Maximum value, after which the counter wraps.
    range: f64,
}

struct Gpu {
    nvml: Nvml,
    address: String,
}

impl Gpu {
    /// Opens the counters. The driver's libraries are searched at run time. NVML counts GPUs differently from CUDA, so
    /// they are identified by their PCI addresses.
    fn new(index: u32) -> std::result::Result<Gpu, String> {
        // Without development files only the versioned name exists.
        let nvml = Nvml::builder()
            .lib_path("libnvidia-ml.so.1".as_ref())
            .init()
            .or_else(|_| Nvml::init())
            .map_err(|e| format!("no NVML: {e}"))?;
        let address = || -> std::result::Result<String, result::DriverError> {
            result::init()?;
            let device = result::device::get(index as i32)?;
            // SAFETY: the driver has just returned this device.
            let attribute = |which| unsafe { result::device::get_attribute(device, which) };
            let domain = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
            let bus = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
            let slot = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
            Ok(format!("{domain:08x}:{bus:02x}:{slot:02x}.0"))
        };
        let address = address().map_err(|e| format!("no address of GPU {index}: {e}"))?;
        Ok(Gpu { nvml, address })
    }

    fn joules(&self) -> std::result::Result<f64, String> {
        let device = self.nvml.device_by_pci_bus_id(&*self.address).map_err(|e| format!("{}: {e}", self.address))?;
        device.total_energy_consumption().map(|millijoules| 1e-3 * millijoules as f64).map_err(|e| e.to_string())
    }
}

/// A counter of a processor's package or its memory.
struct Zone {
    name: String,
    counter: PathBuf,
    range: f64,
}

impl Zone {
    fn read(&self) -> Reading {
        let value = number(&self.counter);
        Reading { name: format!("{} (RAPL)", self.name), value: value.map(|n| 1e-6 * n), range: 1e-6 * self.range }
    }
}

/// Returns the counters of packages, which include their cores, and of memory, which packages do not include.
fn zones(folder: &Path) -> std::result::Result<Vec<Zone>, String> {
    let of = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let entries = std::fs::read_dir(folder).map_err(|e| of(folder, e))?;
    let mut zones = Vec::new();
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let Ok(name) = std::fs::read_to_string(path.join("name")) else { continue };
        let name = name.trim().to_owned();
        if !name.starts_with("package") && name != "dram" {
            continue;
        }
        let (counter, range) = (path.join("energy_uj"), number(&path.join("max_energy_range_uj"))?);
        // On most systems only root may read it.
        number(&counter)?;
        zones.push(Zone { name, counter, range });
    }
    if zones.is_empty() {
        return Err(format!("{}: there are no counters of packages", folder.display()));
    }
    Ok(zones)
}

fn number(path: &Path) -> std::result::Result<f64, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.trim().parse().map_err(|_| format!("{}: '{}' is no number", path.display(), text.trim()))
}
