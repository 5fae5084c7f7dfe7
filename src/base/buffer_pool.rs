//! Buffers that a plan allocates once and uses again, also from several threads at a time.

use crate::base::error::{bail, try_reserve, Result};
use std::sync::{Condvar, Mutex, MutexGuard};

/// Buffers that are made once and used again.
pub struct Pool<S> {
    state: Mutex<State<S>>,
    /// Signals that a buffer was returned.
    returned: Condvar,
}

/// Unused buffers, with room for all that were made: to return one allocates nothing.
struct State<S> {
    idle: Vec<S>,
    made: usize,
}

impl<S> Default for State<S> {
    fn default() -> Self {
        State { idle: Vec::new(), made: 0 }
    }
}

impl<S> State<S> {
    /// Counts another buffer, which is about to be made.
    fn add(&mut self) -> Result<()> {
        let room = self.made + 1 - self.idle.len();
        if self.idle.try_reserve(room).is_err() {
            bail!(OutOfHostMemory, "could not allocate room for another buffer: free memory");
        }
        self.made += 1;
        Ok(())
    }
}

impl<S> Default for Pool<S> {
    fn default() -> Self {
        Pool { state: Mutex::default(), returned: Condvar::new() }
    }
}

impl<S> Pool<S> {
    /// An empty pool.
    pub fn new() -> Self {
        Pool::default()
    }

    /// A pool of `count` buffers.
    pub fn filled(count: usize, mut make: impl FnMut() -> Result<S>) -> Result<Self> {
        let mut idle = try_reserve(count, "buffers")?;
        for _ in 0..count {
            idle.push(make()?);
        }
        Ok(Pool { state: Mutex::new(State { idle, made: count }), ..Pool::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// One of the pool's buffers, or a new one.
    pub fn try_take(&self, make: impl FnOnce() -> Result<S>) -> Result<Lease<'_, S>> {
        let mut state = self.lock();
        if let Some(thing) = state.idle.pop() {
            return Ok(self.lease(thing));
        }
        state.add()?;
        drop(state);
        self.make(make)
    }

    fn lease(&self, thing: S) -> Lease<'_, S> {
        Lease { pool: self, thing: Some(thing) }
    }

    /// Makes a buffer that has been counted, without the lock: several threads make theirs at once.
    fn make(&self, make: impl FnOnce() -> Result<S>) -> Result<Lease<'_, S>> {
        match make() {
            Ok(thing) => Ok(self.lease(thing)),
            Err(e) => {
                self.lock().made -= 1;
                Err(e)
            }
        }
    }

    /// One of the pool's buffers, or a new one. Where none can be made, waits until one is returned: the pool must have
    /// been made with at least one.
    pub fn take_or_wait(&self, make: impl FnOnce() -> Result<S>) -> Lease<'_, S> {
        let mut state = self.lock();
        assert!(state.made > 0, "nothing can come back to an empty pool");
        // Once that has failed, what comes back is waited for.
        if state.idle.is_empty() && state.add().is_ok() {
            drop(state);
            if let Ok(lease) = self.make(make) {
                return lease;
            }
            state = self.lock();
        }
        loop {
            if let Some(thing) = state.idle.pop() {
                return self.lease(thing);
            }
            state = self.returned.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }
}

/// A buffer of a [`Pool`]; returned when dropped.
pub struct Lease<'a, S> {
    pool: &'a Pool<S>,
    thing: Option<S>,
}

impl<S> std::ops::Deref for Lease<'_, S> {
    type Target = S;
    fn deref(&self) -> &S {
        self.thing.as_ref().expect("present until dropped")
    }
}

impl<S> std::ops::DerefMut for Lease<'_, S> {
    fn deref_mut(&mut self) -> &mut S {
        self.thing.as_mut().expect("present until dropped")
    }
}

impl<S> Drop for Lease<'_, S> {
    fn drop(&mut self) {
        if let Some(thing) = self.thing.take() {
            self.pool.lock().idle.push(thing);
            self.pool.returned.notify_one();
        }
    }
}
