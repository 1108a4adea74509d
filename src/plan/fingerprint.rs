//! One word for a whole plan: equal on every machine where the plan is equal.

use super::Plan;

/// FNV-1a over 128 bits: to tell plans apart, not to protect anything.
const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// The fingerprint of what would run. What is only told to people (places, reasons) does not count.
pub(super) fn of(plan: &Plan) -> String {
    format!("{:032x}", hash(format!("{:?}{:?}", plan.policy, plan.exec).as_bytes()))
}

/// A digest of these bytes.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published test vectors of FNV-1a.
    #[test]
    fn known_values() {
        assert_eq!(format!("{:032x}", hash(b"")), "6c62272e07bb014262b821756295c58d");
        assert_eq!(format!("{:032x}", hash(b"a")), "d228cb696f1a8caf78912b704e4a8964");
    }
}
