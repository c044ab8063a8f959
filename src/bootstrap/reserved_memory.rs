//! The memory that the static memory manager of a kubelet leaves to the system
//! (`KubeletConfiguration`, `reservedMemory`). Pure: it looks at one configuration.

use serde_json::{Value, json};

use crate::config::parse_quantity;
use crate::error::{Error, Result};

/// What kubelet evicts by where nothing says so (`evictionHard`).
const DEFAULT_THRESHOLD: &str = "100Mi";

/// Sets `reservedMemory` where the policy is static and the user did not. kubelet demands that it
/// be the sum of what is reserved and of the hard eviction threshold, whichever NUMA nodes it lies
/// on: all of it lies on the first one, which every host has.
pub(super) fn set(config: &mut Value) -> Result<()> {
    if config["memoryManagerPolicy"] != "Static" || config.get("reservedMemory").is_some() {
        return Ok(());
    }
    let of = |name: &str, field: &str, default: &str| -> Result<u128> {
        let text = config[name][field].as_str().unwrap_or(default);
        bytes(text).ok_or_else(|| {
            Error::config(format!(
                "phase2.kubelet.memory_manager_policy: Static needs whole bytes, and {name} has {field}={text}"
            ))
            .hint("turnup config explain phase2.kubelet.memory_manager_policy")
        })
    };
    let total = of("systemReserved", "memory", "0")?
        + of("kubeReserved", "memory", "0")?
        + of("evictionHard", "memory.available", DEFAULT_THRESHOLD)?;
    config["reservedMemory"] = json!([{"numaNode": 0, "limits": {"memory": total.to_string()}}]);
    Ok(())
}

/// A quantity of Kubernetes in bytes; none where it is no whole number of them.
fn bytes(text: &str) -> Option<u128> {
    parse_quantity(text).filter(|thousandths| thousandths.is_multiple_of(1000)).map(|thousandths| thousandths / 1000)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn the_sum_of_all_reservations_lies_on_the_first_numa_node() {
        let mut config = json!({
            "memoryManagerPolicy": "Static",
            "systemReserved": {"memory": "512Mi"},
            "kubeReserved": {"memory": "0.5Gi", "cpu": "1"},
            "evictionHard": {"nodefs.available": "10%"},
        });
        set(&mut config).unwrap();
        let total = ((512 + 512 + 100) << 20).to_string();
        assert_eq!(config["reservedMemory"], json!([{"numaNode": 0, "limits": {"memory": total}}]));
        let mut own = json!({"memoryManagerPolicy": "Static", "reservedMemory": []});
        set(&mut own).unwrap();
        assert_eq!(own["reservedMemory"], json!([]));
        let mut none = json!({"memoryManagerPolicy": "None"});
        set(&mut none).unwrap();
        assert_eq!(none.get("reservedMemory"), None);
        let mut percent = json!({"memoryManagerPolicy": "Static", "evictionHard": {"memory.available": "5%"}});
        assert!(set(&mut percent).unwrap_err().message().contains("memory.available=5%"));
    }

    #[test]
    fn quantities_are_bytes() {
        for (text, expected) in
            [("1", Some(1)), ("1.5Ki", Some(1536)), ("2M", Some(2_000_000)), ("1m", None), ("0.1Ki", None)]
        {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
