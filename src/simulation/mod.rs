//! Simulated scans of known objects: trajectories, phantoms with k-space in closed form, and error measures of images.

pub mod metrics;
pub mod phantom;
pub mod trajectory;
