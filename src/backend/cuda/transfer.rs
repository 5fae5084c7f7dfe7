//! The caller's arrays, accessible to a GPU: copied there and back, or used in place.

use super::memory::DeviceArray;
use super::runtime::Event;
use crate::backend::{DeviceSlice, DeviceSliceMut};

/// An array of the caller that a GPU reads.
pub enum Input<'a, E> {
    /// A copy of the host array.
    Copied(DeviceArray<E>),
    /// An array on this GPU.
    InPlace(DeviceSlice<'a, E>),
}

impl<E> Input<'_, E> {
    /// Returns its elements.
    pub fn view(&self) -> DeviceSlice<'_, E> {
        match self {
            Input::Copied(array) => array.view(),
            Input::InPlace(slice) => *slice,
        }
    }
}

/// An array of the caller that a GPU writes.
pub enum Output<'a, E> {
    /// Results to be copied to the host array, and the event when they are complete.
    Copied { array: DeviceArray<E>, host: &'a mut [E], ready: Option<Event> },
    /// An array on this GPU.
    InPlace(DeviceSliceMut<'a, E>),
}

impl<E> Output<'_, E> {
    /// Returns its elements.
    pub fn view_mut(&mut self) -> DeviceSliceMut<'_, E> {
        match self {
            Output::Copied { array, .. } => array.view_mut(),
            Output::InPlace(slice) => slice.reborrow(),
        }
    }
}
