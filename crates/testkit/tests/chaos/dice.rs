//! Numbers that look random and are the same for the same seed; source: xorshift64*, Vigna 2016.

/// A die.
pub struct Dice(u64);

impl Dice {
    /// A die that rolls the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed ^ 0x9E37_79B9_7F4A_7C15);
        dice.below(2);
        dice
    }

    /// A number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}
