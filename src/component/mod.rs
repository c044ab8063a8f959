//! What each component of Kubernetes accepts: every flag, every field of the files that configure
//! it, and every feature gate, with types and defaults.
//!
//! [`Reference`] reads `templates/components/kubernetes-<version>.json`, which `turnup artifacts
//! reference` generates from the pinned binaries and from the Go modules that they are built from.
//! Nothing here runs a program: [`read_pflag`] and [`read_etcd`] take the text of a `--help`.

mod compare;
mod effective;
mod field_type;
mod help;
mod overrides;
mod reference;

pub use compare::{Difference, compare};
pub use effective::{Mismatch, compare_fields, compare_flags, find_flag, is_same};
pub use field_type::FieldType;
pub use help::{HelpFlag, HelpGate, compare_gates, read_etcd, read_pflag};
pub use overrides::{
    ComponentOverrides, OverrideScope, OverrideSubject, SETTING as OVERRIDES, assign_gates, check_words, did_you_mean,
    listed_settings, nest,
};
pub use reference::{
    ComponentReference, Flag, Gate, Reference, ReferenceField, ReferenceFile, Stage, all_tables, versions_with,
};
