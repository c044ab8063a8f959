//! The only room that spawns a process.
