//! The contexts of this process's GPUs. They outlive plans, since it takes a tenth of a second to create a context and
//! half of that to destroy it, and its kernels would be loaded again.
//!
//! A context ends with [`release_unused`], with the process, or when the library is unloaded. With drivers before CUDA
//! 12 it ends with the last plan, because they do not report whether another part of the process has reset the GPU.

use super::library::driver;
#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
use super::process_end;
use super::runtime::Context;
use crate::base::error::Result;
use crate::base::per_process::PerProcess;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The context of a GPU.
struct SharedContext {
    index: u32,
    shared: Weak<Context>,
    /// Keeps the context between plans; `None` if it ends with the last plan.
    kept: Option<Arc<Context>>,
}

/// All contexts of this process. A forked child cannot use CUDA, and leaves the contexts of its parent alone.
static CONTEXTS: PerProcess<Mutex<Vec<SharedContext>>> =
    PerProcess::new(Mutex::new(Vec::new()), |_| Mutex::new(Vec::new()));

fn contexts() -> MutexGuard<'static, Vec<SharedContext>> {
    CONTEXTS.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the context of a GPU if it is started and was not destroyed by a reset of the GPU.
fn existing(contexts: &mut Vec<SharedContext>, index: u32) -> Option<Arc<Context>> {
    let at = contexts.iter().position(|context| context.index == index)?;
    match contexts[at].shared.upgrade() {
        Some(context) if context.exists() != Some(false) => Some(context),
        Some(_) => {
            log::info!("GPU {index} was reset by another part of this process: it is started again");
            contexts.swap_remove(at);
            None
        }
        None => {
            contexts.swap_remove(at);
            None
        }
    }
}

impl Context {
    /// Returns the context of a GPU, shared by all plans on it.
    ///
    /// # Errors
    /// `NoDevice` without a driver or this GPU, or if the GPU is too old; `DeviceFailed` if the GPU has failed.
    pub fn of(index: u32) -> Result<Arc<Context>> {
        driver()?;
        let mut contexts = contexts();
        if let Some(context) = existing(&mut contexts, index) {
            return Ok(context);
        }
        let context = Arc::new(Context::open(index)?);
        let kept = context.exists().map(|_| context.clone());
        contexts.push(SharedContext { index, shared: Arc::downgrade(&context), kept });
        drop(contexts);
        #[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
        process_end::watch();
        Ok(context)
    }
}

/// Returns the free memory of a GPU in bytes. A GPU that no plan has used is started for this question only, because a
/// context holds several hundred MiB.
pub fn free_memory(index: u32) -> Result<usize> {
    driver()?;
    let context = existing(&mut contexts(), index);
    match context {
        Some(context) => context.free_memory(),
        None => Context::open(index)?.free_memory(),
    }
}

/// Releases the contexts that no plan uses, with their kernels and memory. In contexts that plans use, unloads the
/// kernels and frees the memory that no plan uses.
pub fn release_unused() {
    let mut unused = Vec::new();
    let mut used = Vec::new();
    contexts().retain_mut(|context| match context.shared.upgrade() {
        // Referred to by `kept` and by this function.
        Some(shared) if context.kept.is_some() && Arc::strong_count(&shared) == 2 => {
            unused.extend(context.kept.take());
            false
        }
        Some(shared) => {
            used.push(shared);
            true
        }
        None => false,
    });
    // Without the lock, since it takes up to a tenth of a second to destroy a context.
    drop(unused);
    used.iter().for_each(|context| context.release_unused());
}

/// Releases the contexts when the library is unloaded, since they could not be found afterwards. At the end of the
/// process nothing is released, because the driver may already have ended.
#[cfg(all(target_os = "linux", target_env = "gnu", not(test)))]
#[used]
#[link_section = ".fini_array"]
static AT_UNLOADING: extern "C" fn() = {
    extern "C" fn release() {
        // Other threads may still run, so no lock is waited for.
        if let Ok(mut contexts) = CONTEXTS.get().try_lock() {
            if !contexts.is_empty() && process_end::is_ending() == Some(false) {
                contexts.clear();
            }
        }
    }
    release
};
