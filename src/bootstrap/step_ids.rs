//! The ids of those steps of the bootstrap phase that other code names.

use crate::phase::StepId;

/// Puts artifacts into the cache.
pub const ARTIFACTS: StepId = StepId::of("bootstrap", "artifacts");
/// Makes authorities, certificates and keys.
pub const PKI: StepId = StepId::of("bootstrap", "pki");
/// Makes what hosts are given for their backups.
pub const BACKUP_KEYS: StepId = StepId::of("bootstrap", "backup-keys");
/// Asks a host what it is.
pub const GATHER_FACTS: StepId = StepId::of("bootstrap", "gather-facts");
/// Computes the node config of a host.
pub const NODE_CONFIG: StepId = StepId::of("bootstrap", "node-config");
/// Waits for the API.
pub const API: StepId = StepId::of("bootstrap", "api");
/// Applies role bindings.
pub const RBAC: StepId = StepId::of("bootstrap", "rbac");
