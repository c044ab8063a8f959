//! The addons phase: renders manifests, applies them with kubectl, waits.
