//! What a board with i.MX 6DualLite costs.
//!
//! *Read first*: [`Profile::SABRELITE`], from which it differs in its name and the documents only.
//!
//! The core, its clock, the AIPS bridge and the clocks of ECSPI and GPT are those of i.MX 6Quad;
//! the SoC has two cores instead of four, and a slower memory that nothing here is about.

use super::{Profile, figure};

impl Profile {
    /// A board with NXP i.MX 6DualLite: two Cortex-A9.
    pub const IMX6DL: Self = Self {
        name: "imx6dl",
        cpu_hz: figure(1_000_000_000, "IMX6SDLCEC data sheet: Cortex-A9, 1.0 GHz"),
        timer_frequency_hz: figure(3_000_000, "Linux timer-imx-gpt on i.MX 6DualLite: 24 MHz / 8"),
        reference_hz: figure(
            60_000_000,
            "i.MX 6Solo/6DualLite reference manual, CCM: ECSPI_CLK_ROOT is PLL3 480 MHz / 8",
        ),
        ..Self::SABRELITE
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_costs_what_the_quad_costs() {
        let values = |profile: Profile| profile.sources().map(|row| row.value);
        assert_eq!(values(Profile::IMX6DL), values(Profile::SABRELITE));
    }
}
