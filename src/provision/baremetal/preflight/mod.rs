//! Preflight: what every listed host has to have before turnup touches any of them.

mod checks;
mod probe;
mod run;

pub(super) use run::Preflight;
