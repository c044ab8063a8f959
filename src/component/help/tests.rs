//! Tests with excerpts of what programs print.
