//! How much a quantity is, as Kubernetes writes it: `500m`, `1.5`, `2Gi`.

/// Its value in thousandths, rounded up, as Kubernetes does; none where it is no quantity, or one
/// beyond all measure.
#[must_use]
pub fn parse_quantity(text: &str) -> Option<u128> {
    const KIBI: u128 = 1024;
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = text.split_at(digits);
    if !super::text::is_quantity(text) {
        return None;
    }
    // The factor, and by what it is divided to be in thousandths.
    let (factor, divisor): (u128, u128) = match suffix {
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "" => (1000, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000_000, 1),
        "Ki" => (1000 * KIBI, 1),
        "Mi" => (1000 * KIBI.pow(2), 1),
        "Gi" => (1000 * KIBI.pow(3), 1),
        "Ti" => (1000 * KIBI.pow(4), 1),
        "Pi" => (1000 * KIBI.pow(5), 1),
        "Ei" => (1000 * KIBI.pow(6), 1),
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    Some(digits.checked_mul(factor)?.div_ceil(scale.checked_mul(divisor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_as_much_as_kubernetes_takes_it_for() {
        for (text, thousandths) in [
            ("2", 2000),
            ("500m", 500),
            ("1.5", 1500),
            ("0", 0),
            ("2Gi", 2000 * 1024 * 1024 * 1024),
            ("1.5Ki", 1_536_000),
            ("3M", 3_000_000_000),
            ("1u", 1),
            ("1500u", 2),
            ("170Mi", 178_257_920_000),
            ("1Gi", 1_073_741_824_000),
            ("70000k", 70_000_000_000),
            ("5", 5000),
        ] {
            assert_eq!(parse_quantity(text), Some(thousandths), "{text}");
        }
        for wrong in ["", "Gi", "Mi", "1GB", "-1", "1.2.3", "9999999999999999999999999999999999999999E"] {
            assert_eq!(parse_quantity(wrong), None, "{wrong}");
        }
    }
}
