//! Known objects and what a scanner would measure of them: trajectories, phantoms, and how far an image is from the
//! truth.

pub mod metrics;
pub mod phantom;
pub mod trajectory;
