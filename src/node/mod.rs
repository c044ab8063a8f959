//! What runs on a host.
