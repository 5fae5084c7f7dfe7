//! An installed Gadgetron: build of the gadgets, chains, files through a server, and its memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::common::{printed, root, run};

/// Returns whether a program is installed.
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Creates an empty folder for a test.
pub fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Installs the library of this build. Returns the prefix.
pub fn install(folder: &Path) -> PathBuf {
    let prefix = folder.join("prefix");
    let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    run(Command::new("make")
        .current_dir(root())
        .arg("install")
        .arg(format!("PREFIX={}", prefix.display()))
        .arg(format!("BUILT={}", built.display())));
    prefix
}

/// Returns the command that configures gadgetron/ in a build folder. `gadgets`: whether to build the gadgets, which
/// require Gadgetron.
pub fn configure(build: &Path, prefixes: &[&Path], gadgets: bool) -> Command {
    let list: Vec<_> = prefixes.iter().map(|p| p.display().to_string()).collect();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(root().join("gadgetron")).arg("-B").arg(build);
    configure.arg(format!("-DCMAKE_PREFIX_PATH={}", list.join(";")));
    configure.arg(format!("-DRECON_GADGETS={}", if gadgets { "ON" } else { "OFF" }));
    configure
}

/// Configures and builds gadgetron/ in `folder`/build, and returns that folder.
pub fn build(folder: &Path, prefixes: &[&Path], gadgets: bool) -> PathBuf {
    let build = folder.join("build");
    run(&mut configure(&build, prefixes, gadgets));
    run(Command::new("cmake").arg("--build").arg(&build));
    build
}

/// Builds a locale with decimal commas, de_DE.UTF-8, and returns the folder for the variable LOCPATH. `None` without
/// Debian's package locales.
pub fn comma_locale(folder: &Path) -> Option<PathBuf> {
    let locales = folder.join("locales");
    fs::create_dir_all(&locales).unwrap();
    let mut build = Command::new("localedef");
    build.args(["-i", "de_DE", "-f", "UTF-8"]).arg(locales.join("de_DE.UTF-8"));
    build.output().is_ok_and(|o| o.status.success()).then_some(locales)
}

/// Returns the prefix of an installed Gadgetron.
pub fn home() -> Option<PathBuf> {
    let from_variable = std::env::var_os("GADGETRON_HOME").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).filter_map(|bin| bin.parent().map(Path::to_owned));
    from_variable.into_iter().chain(on_path).find(|home| home.join("bin/gadgetron").exists())
}

/// An installed Gadgetron, and the gadgets built for it.
pub struct Gadgetron {
    /// Prefix of the installation.
    pub home: PathBuf,
    /// Build folder of the gadgets.
    pub build: PathBuf,
    /// Folder of the test's files.
    pub folder: PathBuf,
}

impl Gadgetron {
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.current_dir(&self.folder).env("PATH", format!("{}/bin:{path}", self.home.display()));
        command.env("LD_LIBRARY_PATH", self.home.join("lib")).env("OMP_WAIT_POLICY", "PASSIVE");
        command
    }

    pub fn recon(&self, line: &str) -> String {
        run(self.command(env!("CARGO_BIN_EXE_recon")).args(line.split_whitespace()))
    }

    pub fn alter(&self, from: &str, to: &str, what: &str) {
        let _ = fs::remove_file(self.file(to));
        run(self.command(self.build.join("alter")).args([from, to]).args(what.split_whitespace()));
    }

    /// Writes a chain of gadgetron/config with the gadgets of this build. `properties` replace those of the gadget that
    /// reconstructs.
    pub fn chain(&self, name: &str, properties: &[(&str, &str)]) -> PathBuf {
        let text = fs::read_to_string(root().join("gadgetron/config").join(name)).unwrap();
        let dll = self.build.join("recon_gadgetron");
        let text = text.replace("<dll>recon_gadgetron</dll>", &format!("<dll>{}</dll>", dll.display()));
        let (head, tail) = text.split_once("<name>Recon</name>").unwrap();
        let (own, rest) = tail.split_once("</gadget>").unwrap();
        let mut own = own.to_owned();
        for (key, value) in properties {
            let start = format!("<property name=\"{key}\"");
            own = own.lines().filter(|line| !line.contains(&start)).collect::<Vec<_>>().join("\n");
            own += &format!("\n{start} value=\"{value}\"/>\n");
        }
        let path = self.file(&format!("chain-{name}"));
        fs::write(&path, format!("{head}<name>Recon</name>{own}</gadget>{rest}")).unwrap();
        path
    }

    /// Writes a chain with a different gadget, by class. The properties of the replaced gadget are removed.
    pub fn chain_of(&self, name: &str, class: &str, properties: &[(&str, &str)]) -> PathBuf {
        let path = self.chain(name, &[]);
        let text = fs::read_to_string(&path).unwrap();
        let (head, tail) = ["ReconCGGadget", "ReconGridGadget"]
            .map(|own| format!("<classname>{own}</classname>"))
            .iter()
            .find_map(|own| text.split_once(&own[..]))
            .unwrap();
        let rest = tail.split_once("</gadget>").unwrap().1;
        let all: Vec<_> = properties.iter().chain(&[("timing", "true")]).collect();
        let own: String = all.iter().map(|(k, v)| format!("<property name=\"{k}\" value=\"{v}\"/>\n")).collect();
        fs::write(&path, format!("{head}<classname>{class}</classname>\n{own}</gadget>{rest}")).unwrap();
        path
    }

    /// Sends a raw data file through a chain, without sockets. Returns the log.
    pub fn stream(&self, input: &str, chain: &Path, output: &str) -> String {
        self.stream_in(&[], input, chain, output)
    }

    /// The same as `stream`, with environment variables for the server.
    pub fn stream_in(&self, variables: &[(&str, &str)], input: &str, chain: &Path, output: &str) -> String {
        let from = self.file(&format!("{input}.mrd"));
        run(self.command("ismrmrd_hdf5_to_stream").arg("-i").arg(input).arg("-o").arg(&from));
        self.send(variables, &from, chain, output)
    }

    /// Sends a file of messages through a chain, without sockets. Returns the log.
    pub fn stream_of(&self, from: &Path, chain: &Path, output: &str) -> String {
        self.send(&[], from, chain, output)
    }

    fn send(&self, variables: &[(&str, &str)], from: &Path, chain: &Path, output: &str) -> String {
        let to = self.file(&format!("{output}.mrd"));
        let mut server = self.command("gadgetron");
        server.envs(variables.iter().copied());
        server.args(["--disable_storage", "1", "--from_stream", "-W"]).arg(&self.folder).arg("-c").arg(chain);
        let done = server.arg("-i").arg(from).arg("-o").arg(&to).output().unwrap();
        let log = printed(&done);
        let _ = fs::remove_file(self.file(output));
        if fs::metadata(&to).is_ok_and(|m| m.len() > 0) {
            let _ = self.command("ismrmrd_stream_to_hdf5").arg("-i").arg(&to).arg("-o").arg(output).output();
        }
        log
    }

    /// Returns the errors in percent of the images of a file. `truth` has one image per image, or one for all.
    pub fn errors(&self, images: &str, truth: &str, more: &str) -> Vec<f64> {
        let text = self.recon(&format!("compare --json --magnitude {more} {images} {truth}"));
        let error = |line: &str| -> f64 {
            let rest = line.split("\"percent_error\":").nth(1).unwrap_or_else(|| panic!("{line}"));
            rest.split([',', '}']).next().unwrap().trim().parse().unwrap()
        };
        text.lines().filter(|l| l.starts_with('{')).map(error).collect()
    }

    /// Returns the number of images of a file.
    pub fn count(&self, images: &str) -> usize {
        let text = self.command(env!("CARGO_BIN_EXE_recon")).args(["info", images]).output().unwrap().stdout;
        let first = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
        match first.split_once(' ') {
            Some((count, "image" | "images")) => count.parse().unwrap(),
            _ => 0,
        }
    }

    /// Asserts that a file has `count` images, which equal the truth except for rounding.
    #[track_caller]
    pub fn assert_same(&self, images: &str, truth: &str, count: usize, log: &str) {
        assert!(self.file(images).exists(), "no images:\n{log}");
        let errors = self.errors(images, truth, "");
        assert!(errors.len() == count && errors.iter().all(|&e| e < 2e-5), "{errors:?} percent\n{log}");
    }
}

/// Returns the lines of the log with an error.
pub fn errors(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("ERROR")).collect()
}

/// Returns the lines of the log with a warning of our gadgets.
pub fn warnings(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("WARNING") && l.contains("Recon")).collect()
}

/// Runs the server. Returns its peak memory in bytes, its log and its exit status. `prefix`: a shell command that runs
/// first in the process of the server.
pub fn peak(g: &Gadgetron, input: &str, chain: &Path, prefix: &str) -> (u64, String, ExitStatus) {
    run(g.command("ismrmrd_hdf5_to_stream").args(["-i", input, "-o", "peak.mrd"]));
    let mut server = g.command("sh");
    server.arg("-c").arg(format!("{prefix} exec gadgetron \"$@\"")).arg("sh");
    server.args(["--disable_storage", "1", "--from_stream", "-W"]).arg(&g.folder).arg("-c").arg(chain);
    server.args(["-i", "peak.mrd", "-o", "peak-out.mrd"]);
    let log = fs::File::create(g.file("peak.log")).unwrap();
    // wait4 below waits for the child and also returns its memory.
    #[allow(clippy::zombie_processes)]
    let child = server.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let mut status = 0;
    // SAFETY: a structure of plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: this process started the child, and no other code waits for it.
    let waited = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, child.id() as i32);
    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
    (
        usage.ru_maxrss as u64 * 1024,
        String::from_utf8_lossy(&fs::read(g.file("peak.log")).unwrap()).into_owned(),
        status,
    )
}

/// Creates a control group with a memory limit inside the group of this process. `None` if that is not possible.
pub fn control_group(bytes: u64) -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (mount, limit) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let group = Path::new(mount).join(path.trim_start_matches('/')).join(format!("recon-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        if fs::write(group.join(limit), bytes.to_string()).is_err() {
            // The folder is empty, and does no harm if it cannot be removed.
            let _ = fs::remove_dir(&group);
            return None;
        }
        Some(group)
    })
}
