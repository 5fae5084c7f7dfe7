//! Simulated scans of known objects: trajectories, phantoms with exact k-space, and errors of images.

pub mod metrics;
pub mod phantom;
pub mod trajectory;
