//! The cluster's authorities by name. Their certificates and keys are `pki`'s part.

/// One of the cluster's authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Signs the API server, kubelets and clients of the API.
    Cluster,
    /// Signs etcd's servers, peers and clients.
    Etcd,
    /// Signs the API server as a client of extension API servers.
    FrontProxy,
}

impl Authority {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cluster, Self::Etcd, Self::FrontProxy];

    /// The file name below `pki/`, without ending.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Cluster => "ca",
            Self::Etcd => "etcd-ca",
            Self::FrontProxy => "front-proxy-ca",
        }
    }
}
