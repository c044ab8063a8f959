//! Writes the files that the tools of `turnup kconfig` are asked to write: each as a whole or not at all.
