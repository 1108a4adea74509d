//! Randomness as an argument: a small seeded generator (`SplitMix64`), so that the same seed gives the same life.

/// A stream of numbers that depends on its seed alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The stream of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number of 0..1.
    pub fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`; 0 where there is none.
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// True in so many of a hundred cases.
    pub const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as published with the algorithm.
    const PUBLISHED: [u64; 5] = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];

    #[test]
    fn the_numbers_are_those_of_the_published_algorithm() {
        let mut random = Random::new(1_234_567);
        assert_eq!([(); 5].map(|()| random.next_u64()), PUBLISHED);
    }

    #[test]
    fn a_share_is_the_number_over_all_numbers() {
        let mut random = Random::new(1_234_567);
        let shares = [(); 5].map(|()| (random.share() * 1e4).round() as u64);
        assert_eq!(shares, [3501, 1736, 5322, 2490, 8895]);
    }

    #[test]
    fn a_number_below_a_bound_is_the_rest() {
        let mut random = Random::new(1_234_567);
        assert_eq!([(); 5].map(|()| random.below(100)), [17, 73, 23, 31, 21]);
        assert_eq!((random.below(1), random.below(0)), (0, 0));
    }

    #[test]
    fn so_many_of_a_hundred() {
        // 17, 73, 23, 31, 21 of a hundred, as above.
        let drawn = |chance: u64| {
            let mut random = Random::new(1_234_567);
            [(); 5].map(|()| random.percent(chance))
        };
        assert_eq!(drawn(0), [false; 5]);
        assert_eq!(drawn(23), [true, false, false, false, true]);
        assert_eq!(drawn(24), [true, false, true, false, true]);
        assert_eq!(drawn(100), [true; 5]);
    }
}
