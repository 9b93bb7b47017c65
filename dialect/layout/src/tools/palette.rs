//! Colours: evenly spaced hues of equal perceived lightness (OKLCH), told apart by lightness steps
//! when there are more owners than an eye can name hues.

/// An sRGB colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    /// `#rrggbb`.
    #[must_use]
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Whether dark text reads better on it than light text.
    #[must_use]
    pub fn is_light(self) -> bool {
        u32::from(self.0) * 299 + u32::from(self.1) * 587 + u32::from(self.2) * 114 > 118_000
    }
}

/// OKLCH to sRGB (Ottosson, "A perceptual color space for image processing", 2020).
#[must_use]
pub fn oklch(lightness: f64, chroma: f64, hue_degrees: f64) -> Rgb {
    let (sin, cos) = hue_degrees.to_radians().sin_cos();
    let (a, b) = (chroma * cos, chroma * sin);
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let channel = |linear: f64| {
        let encoded = if linear <= 0.003_130_8 {
            12.92 * linear
        } else {
            1.055 * linear.powf(1.0 / 2.4) - 0.055
        };
        (encoded.clamp(0.0, 1.0) * 255.0).round() as u8
    };
    Rgb(
        channel(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        channel(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        channel(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s),
    )
}

/// Colours for values in `[0, count)` of the axis that varies fastest, shifted by the outer owner.
///
/// Up to eight values each have a hue; more share eight hues in up to four lightness steps, so that
/// four consecutive lanes - one row of a tensor-core fragment - are shades of one hue.
#[must_use]
pub fn owner_colour(value: i64, count: i64, outer: i64) -> Rgb {
    const HUES: i64 = 8;
    const LIGHTNESS: [f64; 4] = [0.90, 0.83, 0.76, 0.69];
    let shades = if count <= HUES { 1 } else { 4 };
    let hue = value.div_euclid(shades).rem_euclid(HUES);
    let shade = usize::try_from(value.rem_euclid(shades)).unwrap_or(0);
    let lightness = if shades == 1 {
        0.82
    } else {
        LIGHTNESS.get(shade).copied().unwrap_or(0.8)
    };
    let degrees = 25.0 + 360.0 / HUES as f64 * hue as f64 + 14.0 * outer.rem_euclid(3) as f64;
    // Nine outer owners in a row differ.
    let chroma = 0.105 - 0.032 * outer.div_euclid(3).rem_euclid(3) as f64;
    oklch(lightness, chroma, degrees)
}

/// A sequential scale from pale to deep, for addresses.
#[must_use]
pub fn address_colour(value: i64, low: i64, high: i64) -> Rgb {
    let range = (high - low).max(1) as f64;
    let t = ((value - low) as f64 / range).clamp(0.0, 1.0);
    oklch(0.95 - 0.42 * t, 0.05 + 0.08 * t, 250.0 - 150.0 * (1.0 - t))
}
