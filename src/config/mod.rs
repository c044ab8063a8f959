//! The configuration object over the Kconfig tree.
