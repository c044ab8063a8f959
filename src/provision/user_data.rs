//! Where what hosts are told at their first boot lies below the cluster's directory, apart from all
//! that holds no secrets.

/// The variable of Terraform that holds secrets, apart from all others.
pub const USER_DATA: &str = "provision/user-data.auto.tfvars.json";

/// Where the token with which new hosts of a group join lies below the cluster's directory.
#[must_use]
pub fn token_file(group: &str) -> String {
    format!("user-data/{group}.token")
}
