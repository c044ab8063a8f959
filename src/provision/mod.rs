//! The provision phase: drives terraform or tofu.
