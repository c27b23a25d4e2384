//! The eleven kinds of population, with their parameters.

/// Differences between ranks, and between windows of a rank.
///
/// STATISTICS §4 names the kinds; it gives σ of the lognormal, the factor and share of slow ranks, the range
/// of the drift and the factor of the phases. The other parameters were chosen here, such that the oracle's
/// sample of 2048 ranks at 90/8 lies between a few dozen and more than half of them. Values are in
/// hundredths: 100 is an ordinary rank's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Independent normal values, cv .3.
    Normal,
    /// Independent lognormal values, σ = 1.
    LogNormal,
    /// Half of the ranks around 1, half around 3, the same ones always; noise .1.
    Bimodal,
    /// One rank in a hundred (at least one, the first ones) ten times slower than the others; noise .1 of
    /// either.
    Slow,
    /// Persistent differences between ranks, lognormal with σ = .4, and noise .05.
    Heterogeneous,
    /// The spread between ranks, .15 at first, grows by 2 % per window, and the mean by 1 %: in all, what a
    /// rank is off the mean by grows by 3 % per window.
    Drift,
    /// Normal, cv .25, with a variance that triples for every other ten windows.
    Phases,
    /// Each rank an AR(1) process, coefficient .8, cv .3.
    Autoregressive,
    /// Some 20 observations per rank, lognormal with σ = .5 that persists and .2 that does not; their value
    /// is lognormal with σ = .3 of what persists of the count, and noise .1.
    VaryingCounts,
    /// Four in five ranks have nothing in a window, the others a half-normal amount.
    ZeroInflated,
    /// Noise .1; once in a hundred windows the operating system takes five times a window's work from a rank.
    Spikes,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Normal,
        Self::LogNormal,
        Self::Bimodal,
        Self::Slow,
        Self::Heterogeneous,
        Self::Drift,
        Self::Phases,
        Self::Autoregressive,
        Self::VaryingCounts,
        Self::ZeroInflated,
        Self::Spikes,
    ];

    /// The name on command lines and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::LogNormal => "lognormal",
            Self::Bimodal => "bimodal",
            Self::Slow => "slow",
            Self::Heterogeneous => "heterogeneous",
            Self::Drift => "drift",
            Self::Phases => "phases",
            Self::Autoregressive => "autoregressive",
            Self::VaryingCounts => "varying-counts",
            Self::ZeroInflated => "zero-inflated",
            Self::Spikes => "spikes",
        }
    }

    /// The kind of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Values for the first window of very many ranks, from the parameters: R = Σy/Σn, and the standard deviation of
    /// the residuals y − R n over the mean total of a rank.
    pub fn mean_and_cv(self) -> (f64, f64) {
        let lognormal = |sigma: f64| (sigma * sigma / 2.0).exp();
        let of = |mean: f64, square: f64| (100.0 * mean, (square / (mean * mean) - 1.0).sqrt());
        match self {
            Self::Normal | Self::Autoregressive => (100.0, 0.3),
            Self::LogNormal => of(lognormal(1.0), lognormal(2.0)),
            Self::Bimodal => of(2.0, 5.0 + 0.01),
            Self::Slow => of(0.99 + 0.1, (0.99 + 0.01 * 100.0) * 1.01),
            Self::Heterogeneous => of(lognormal(0.4), lognormal(0.8) * (1.0 + 0.0025)),
            Self::Drift => (100.0, 0.15),
            Self::Phases => (100.0, 0.25),
            Self::VaryingCounts => {
                // Moments of n = 20 e^(.5a + .2b) and value e^(.3a)(1 + .1c) for standard normal a, b, c,
                // rounding of counts aside.
                let moment = |a: f64, b: f64| lognormal(a) * lognormal(b);
                let ratio = moment(0.8, 0.2) / moment(0.5, 0.2);
                let squares = 1.01 * moment(1.6, 0.4) - 2.0 * ratio * moment(1.3, 0.4)
                    + ratio * ratio * moment(1.0, 0.4);
                (ratio, squares.sqrt() / moment(0.8, 0.2))
            }
            Self::ZeroInflated => of(0.2 * (2.0 / std::f64::consts::PI).sqrt(), 0.2),
            Self::Spikes => of(1.05, 1.0 + 0.01 + 2.0 * 0.05 + 25.0 * 0.01),
        }
    }
}
