//! A caller's arrays, made readable and writable for a GPU: copied there and back, or used in place.

use super::memory::DeviceArray;
use super::runtime::Event;
use crate::backend::{DeviceSlice, DeviceSliceMut};

/// An array of a caller that a GPU reads.
pub enum Input<'a, E> {
    /// A copy of the host's array.
    Copied(DeviceArray<E>),
    /// An array on this GPU.
    InPlace(DeviceSlice<'a, E>),
}

impl<E> Input<'_, E> {
    /// Its elements.
    pub fn view(&self) -> DeviceSlice<'_, E> {
        match self {
            Input::Copied(array) => array.view(),
            Input::InPlace(slice) => *slice,
        }
    }
}

/// An array of a caller that a GPU writes.
pub enum Output<'a, E> {
    /// What is to be copied to the host's array, and the event that says when.
    Copied { array: DeviceArray<E>, host: &'a mut [E], ready: Option<Event> },
    /// An array on this GPU.
    InPlace(DeviceSliceMut<'a, E>),
}

impl<E> Output<'_, E> {
    /// Its elements.
    pub fn view_mut(&mut self) -> DeviceSliceMut<'_, E> {
        match self {
            Output::Copied { array, .. } => array.view_mut(),
            Output::InPlace(slice) => slice.reborrow(),
        }
    }
}
