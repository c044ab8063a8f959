//! When the join tokens of node groups end. Only what is public about them is read here.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::bootstrap::{JoinToken, find_join_tokens};
use crate::error::Result;
use crate::state::Store;

use super::CertificateLife;

/// The token with which new hosts of a group join.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TokenStatus {
    /// The node group.
    pub group: String,
    /// When it ends.
    pub expires: Timestamp,
    /// How long that is from now; negative when it has ended.
    pub left_seconds: i64,
    /// Whether that is enough.
    pub level: CertificateLife,
}

/// Those of the cluster's own directory.
pub(super) fn here(store: &Store) -> Result<Vec<TokenStatus>> {
    let now = Timestamp::now();
    Ok(find_join_tokens(store)?.into_iter().map(|token| read(token, now)).collect())
}

fn read(JoinToken { group, made, expires }: JoinToken, now: Timestamp) -> TokenStatus {
    let left = expires.duration_since(now);
    let level = match left {
        _ if left <= SignedDuration::ZERO => CertificateLife::Ended,
        // From then on the next run of turnup makes the next one.
        _ if left <= expires.duration_since(made) / 3 => CertificateLife::Ending,
        _ => CertificateLife::Ok,
    };
    TokenStatus { group, expires, left_seconds: left.as_secs(), level }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_then_ending_then_ended() {
        let at = |hours: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours);
        let token = JoinToken { group: "pool".into(), made: at(0), expires: at(90) };
        let level = |hours: i64| read(token.clone(), at(hours)).level;
        assert_eq!(
            [0, 59, 60, 89, 90, 200].map(level),
            [
                CertificateLife::Ok,
                CertificateLife::Ok,
                CertificateLife::Ending,
                CertificateLife::Ending,
                CertificateLife::Ended,
                CertificateLife::Ended
            ]
        );
        assert_eq!(read(token, at(89)).left_seconds, 3600);
    }
}
