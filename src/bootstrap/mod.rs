//! The bootstrap phase: hosts become nodes.
