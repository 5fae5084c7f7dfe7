//! The shared library that is built with the tests, loaded into this process and unloaded again, as by a host of
//! plug-ins.

use crate::common::poisoned;
use recon::ffi::*;
use recon::Complex;
use std::ptr::{null, null_mut};

type Init<T> = unsafe extern "C" fn(*mut T, u32) -> recon_status;
type Create = unsafe extern "C" fn(*const recon_geometry, *const recon_options, *mut *mut recon_plan) -> recon_status;
type Transform = unsafe extern "C" fn(*const recon_plan, *const Complex<f32>, *mut Complex<f32>) -> recon_status;
type Destroy = unsafe extern "C" fn(*mut recon_plan);

pub struct LoadedLibrary(libloading::Library);

/// Calls `user` while the library is loaded, and checks that it can be unloaded then. `user` runs in a thread that
/// ends: glibc does not unload a library while a thread exists that has a destructor in it, as those that have called
/// the library do. The library's own threads must have none.
pub fn while_loaded(user: impl FnOnce(&LoadedLibrary) + Send) {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().skip(1).map(|folder| folder.join("librecon.so")).find(|path| path.exists());
    let path = path.expect("the library is built with its tests");
    // SAFETY: loading and unloading the library runs its own functions only, and nothing refers to it afterwards.
    let library = LoadedLibrary(unsafe { libloading::Library::new(&path) }.unwrap());
    std::thread::scope(|scope| scope.spawn(|| user(&library)).join()).unwrap();
    library.0.close().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("librecon.so"), "the library was not unloaded");
}

impl LoadedLibrary {
    /// Returns the adjoint of `data`, by a plan for images of `dims` voxels, for which `is_planned` is called.
    pub fn adjoint(
        &self,
        (device, threads): (recon_device, u32),
        dims: [usize; 2],
        k: &[Vec<f32>],
        data: &[Complex<f32>],
        is_planned: impl FnOnce(),
    ) -> Vec<Complex<f32>> {
        let mut image = poisoned(dims[0] * dims[1]);
        // SAFETY: the library's functions have these types. Structures and arrays are alive.
        unsafe {
            let (mut geometry, mut options) = (std::mem::zeroed(), std::mem::zeroed());
            let geometry_init = self.0.get::<Init<recon_geometry>>(b"recon_geometry_init").unwrap();
            assert_eq!(geometry_init(&mut geometry, size_of::<recon_geometry>() as u32), recon_status::RECON_OK);
            let options_init = self.0.get::<Init<recon_options>>(b"recon_options_init").unwrap();
            assert_eq!(options_init(&mut options, size_of::<recon_options>() as u32), recon_status::RECON_OK);
            (options.device, options.threads) = (device as u32, threads);
            geometry.dims = [dims[0] as u64, dims[1] as u64, 0];
            geometry.samples = data.len() as u64;
            geometry.coordinates = [k[0].as_ptr().cast(), k[1].as_ptr().cast(), null()];
            let mut plan = null_mut();
            let create = self.0.get::<Create>(b"recon_plan_create").unwrap();
            assert_eq!(create(&geometry, &options, &mut plan), recon_status::RECON_OK);
            is_planned();
            let transform = self.0.get::<Transform>(b"recon_fhd").unwrap();
            assert_eq!(transform(plan, data.as_ptr(), image.as_mut_ptr()), recon_status::RECON_OK);
            self.0.get::<Destroy>(b"recon_plan_destroy").unwrap()(plan);
        }
        image
    }
}
