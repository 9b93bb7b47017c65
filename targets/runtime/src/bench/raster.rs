//! A chart as PNG, with the letters of an 8 x 8 bitmap font.

use font8x8::UnicodeFonts as _;

use super::plot::{Anchor, Chart, Mark};

/// Pixels of the picture for one of the chart.
const ZOOM: usize = 2;

/// Pixels of the picture for one of a letter, by the size of the font.
fn dots(size: f64) -> usize {
    if size > 14.0 { 3 } else { 2 }
}

/// An RGB picture, white at first.
struct Canvas {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Canvas {
    fn rect(&mut self, [x, y, w, h]: [usize; 4], fill: u32) {
        let [_, r, g, b] = fill.to_be_bytes();
        let right = x.saturating_add(w).min(self.width);
        for row in self
            .bytes
            .chunks_exact_mut(3 * self.width.max(1))
            .skip(y)
            .take(h)
        {
            let pixels = row.get_mut(3 * x.min(right)..3 * right).unwrap_or_default();
            for pixel in pixels.chunks_exact_mut(3) {
                pixel.copy_from_slice(&[r, g, b]);
            }
        }
    }

    fn letter(&mut self, [x, y]: [usize; 2], dots: usize, letter: char) {
        let unknown = font8x8::BASIC_FONTS.get('?').unwrap_or_default();
        let rows = font8x8::BASIC_FONTS.get(letter).unwrap_or(unknown);
        for (j, row) in rows.iter().enumerate() {
            for i in (0..8).filter(|i| row >> i & 1 == 1) {
                self.rect([x + i * dots, y + j * dots, dots, dots], 0);
            }
        }
    }
}

/// The chart as the bytes of a PNG file.
///
/// # Errors
/// A chart that is too large for a picture.
pub fn png(chart: &Chart) -> Result<Vec<u8>, png::EncodingError> {
    // Charts have a few thousand pixels a side.
    let pixel = |v: f64| (v * ZOOM as f64).round().clamp(0.0, 60_000.0) as usize;
    let [width, height] = chart.size.map(pixel);
    let mut canvas = Canvas {
        width,
        height,
        bytes: vec![255; 3 * width * height],
    };
    for mark in &chart.marks {
        match mark {
            Mark::Rect { at, fill } => canvas.rect(at.map(pixel), *fill),
            Mark::Text {
                at: [x, y],
                anchor,
                size,
                text,
            } => {
                let dots = dots(*size);
                let long = text.chars().count() * 8 * dots;
                let back = match anchor {
                    Anchor::Start => 0,
                    Anchor::Middle => long / 2,
                    Anchor::End => long,
                };
                // The font's baseline is a row above the bottom of its box.
                let (left, top) = (
                    pixel(*x).saturating_sub(back),
                    pixel(*y).saturating_sub(7 * dots),
                );
                for (i, letter) in text.chars().enumerate() {
                    canvas.letter([left + i * 8 * dots, top], dots, letter);
                }
            }
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, canvas.width as u32, canvas.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&canvas.bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plot::{Bar, bars};

    #[test]
    fn bars_are_drawn_to_scale() {
        let bar = |value| Bar {
            label: "shape x".into(),
            value,
            note: "é".into(),
            rival: false,
        };
        let chart = bars("title", &[bar(1.0), bar(0.5)], 1.0);
        let file = png(&chart).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!((info.width, info.height), (2360, chart.size[1] as u32 * 2));
        let count = |rgb: [u8; 3]| bytes.chunks_exact(3).filter(|p| *p == rgb).count();
        let (full, half) = (count([0x2A, 0x7F, 0xBA]), count([0xC8, 0x74, 0x3C]));
        // 520 / 1.05 by 16 pixels, twice as many each way; a dash takes a little of it.
        assert!((31_000..=31_700).contains(&full), "{full}");
        assert!((15_600..=15_900).contains(&half), "{half}");
        assert!(count([0; 3]) > 2000, "letters");
    }

    #[test]
    fn an_empty_chart_is_a_picture() {
        assert!(png(&bars("", &[], 1.0)).is_ok());
    }
}
