//! The integration tests: one crate, so that it is linked once.

mod artifacts_build;
mod artifacts_cache;
mod artifacts_image;
mod artifacts_lock;
mod artifacts_mirror;
mod artifacts_support;
