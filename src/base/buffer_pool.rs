//! A pool of reusable buffers, for use from several threads.

use crate::base::error::{bail, try_reserve, Result};
use std::sync::{Condvar, Mutex, MutexGuard};

/// A pool of buffers that are created once and reused.
pub struct Pool<S> {
    state: Mutex<PoolState<S>>,
    /// Notified when a buffer is returned.
    returned: Condvar,
}

/// The unused buffers. The list has capacity for all buffers ever created, so that returning one allocates nothing.
struct PoolState<S> {
    idle: Vec<S>,
    created: u32,
    /// Number of threads that wait for a buffer. Without one, nothing is notified, since that calls the system.
    waiting: u32,
}

impl<S> Default for PoolState<S> {
    fn default() -> Self {
        PoolState { idle: Vec::new(), created: 0, waiting: 0 }
    }
}

impl<S> PoolState<S> {
    /// Counts a buffer that is about to be created, and reserves its place in the list.
    fn count_new(&mut self) -> Result<()> {
        let additional = self.created as usize + 1 - self.idle.len();
        if self.idle.try_reserve(additional).is_err() {
            bail!(OutOfHostMemory, "out of memory while a buffer was added to a pool: free memory");
        }
        self.created += 1;
        Ok(())
    }
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Pool { state: Mutex::default(), returned: Condvar::new() }
    }
}

impl<S> Pool<S> {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Pool::default()
    }

    /// Creates a pool of `count` buffers.
    pub fn filled(count: usize, mut make: impl FnMut() -> Result<S>) -> Result<Self> {
        let mut idle = try_reserve(count, "buffers")?;
        for _ in 0..count {
            idle.push(make()?);
        }
        Ok(Pool { state: Mutex::new(PoolState { idle, created: count as u32, waiting: 0 }), ..Pool::default() })
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<S>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns an unused buffer, or a new one if all are in use.
    pub fn try_take(&self, make: impl FnOnce() -> Result<S>) -> Result<Lease<'_, S>> {
        let mut state = self.lock();
        if let Some(buffer) = state.idle.pop() {
            return Ok(self.lease(buffer));
        }
        state.count_new()?;
        drop(state);
        self.make(make)
    }

    fn lease(&self, buffer: S) -> Lease<'_, S> {
        Lease { pool: self, buffer: Some(buffer) }
    }

    /// Creates a buffer that has been counted. The lock is not held, so that several threads can create buffers at
    /// once.
    fn make(&self, make: impl FnOnce() -> Result<S>) -> Result<Lease<'_, S>> {
        match make() {
            Ok(buffer) => Ok(self.lease(buffer)),
            Err(e) => {
                self.lock().created -= 1;
                Err(e)
            }
        }
    }

    /// Returns an unused buffer, or a new one. If a new buffer cannot be created, waits until one is returned; the pool
    /// must have been created with at least one buffer.
    pub fn take_or_wait(&self, make: impl FnOnce() -> Result<S>) -> Lease<'_, S> {
        let mut state = self.lock();
        assert!(state.created > 0, "a wait on an empty pool would never end");
        // After a failure, only returned buffers are used.
        if state.idle.is_empty() && state.count_new().is_ok() {
            drop(state);
            if let Ok(lease) = self.make(make) {
                return lease;
            }
            state = self.lock();
        }
        loop {
            if let Some(buffer) = state.idle.pop() {
                return self.lease(buffer);
            }
            state.waiting += 1;
            state = self.returned.wait(state).unwrap_or_else(|e| e.into_inner());
            state.waiting -= 1;
        }
    }
}

/// A buffer of a [`Pool`], which is returned to the pool when dropped.
pub struct Lease<'a, S> {
    pool: &'a Pool<S>,
    buffer: Option<S>,
}

impl<S> std::ops::Deref for Lease<'_, S> {
    type Target = S;
    fn deref(&self) -> &S {
        self.buffer.as_ref().expect("present until dropped")
    }
}

impl<S> std::ops::DerefMut for Lease<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.buffer.as_mut().expect("present until dropped")
    }
}

impl<S> Drop for Lease<'_, S> {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let mut state = self.pool.lock();
            state.idle.push(buffer);
            let is_awaited = state.waiting > 0;
            drop(state);
            if is_awaited {
                self.pool.returned.notify_one();
            }
        }
    }
}
