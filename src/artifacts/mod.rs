//! What binaries a node gets and how we know they are the right ones.
