//! Buffers that a plan makes once and uses again, also from several threads at a time.

use crate::error::Result;
use std::sync::Mutex;

/// Things made once and used again by whoever needs one next.
#[derive(Default)]
pub struct Pool<S>(Mutex<Vec<S>>);

impl<S> Pool<S> {
    /// An empty pool.
    pub fn new() -> Self {
        Pool(Mutex::new(Vec::new()))
    }

    /// A pool of `count` things.
    pub fn filled(count: usize, mut make: impl FnMut() -> Result<S>) -> Result<Self> {
        Ok(Pool(Mutex::new((0..count).map(|_| make()).collect::<Result<_>>()?)))
    }

    /// One of the pool's things, or a new one.
    pub fn take(&self, make: impl FnOnce() -> S) -> Lease<'_, S> {
        let idle = self.0.lock().unwrap_or_else(|e| e.into_inner()).pop();
        Lease { pool: self, thing: Some(idle.unwrap_or_else(make)) }
    }

    /// Likewise, where making one can fail.
    pub fn try_take(&self, make: impl FnOnce() -> Result<S>) -> Result<Lease<'_, S>> {
        let idle = self.0.lock().unwrap_or_else(|e| e.into_inner()).pop();
        Ok(Lease { pool: self, thing: Some(idle.map_or_else(make, Ok)?) })
    }
}

/// A thing on loan from a [`Pool`]; it goes back when dropped.
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
            self.pool.0.lock().unwrap_or_else(|e| e.into_inner()).push(thing);
        }
    }
}
