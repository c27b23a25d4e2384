//! Eight small numbers at once: the inputs of a mixture, and their weights.

/// How many there are.
pub const LANES: usize = 8;

/// Eight numbers.
#[derive(Clone, Copy, Debug)]
pub struct Lanes([i16; LANES]);

impl Lanes {
    /// These.
    #[inline(always)]
    pub fn new(lanes: [i16; LANES]) -> Self {
        Self(lanes)
    }

    /// The sum of products; it must be below 2^31.
    #[inline(always)]
    pub fn dot(self, other: Self) -> i32 {
        self.0.iter().zip(other.0).map(|(&one, other)| i32::from(one) * i32::from(other)).sum()
    }

    /// With the product of `other` and `factor`, in 32768ths and rounded, added to each, as far as fits.
    #[inline(always)]
    pub fn add_scaled(mut self, other: Self, factor: i16) -> Self {
        for (lane, other) in self.0.iter_mut().zip(other.0) {
            let step = (i32::from(other) * i32::from(factor) + (1 << 14)) >> 15;
            *lane = lane.saturating_add(step as i16);
        }
        self
    }
}
