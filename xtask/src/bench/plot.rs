//! Plots as SVG files.

use plotters::coord::Shift;
use plotters::coord::combinators::LogCoord;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// A bar: its label, its value, and whether it is ours.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) value: f64,
    pub(crate) is_ours: bool,
}

/// A line through points.
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) is_ours: bool,
}

/// The texts of a plot: its title, and what its axes measure.
pub(crate) struct Texts<'a> {
    pub(crate) title: &'a str,
    pub(crate) across: &'a str,
    pub(crate) up: &'a str,
}

const WIDTH: u32 = 860;
const BAR: u32 = 22;
const OURS: RGBColor = RGBColor(31, 95, 191);
const OTHERS: RGBColor = RGBColor(150, 150, 150);
/// Colours that people with any sight can tell apart.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];

type Done = Result<(), Box<dyn std::error::Error>>;

fn font(size: u32) -> FontDesc<'static> {
    ("sans-serif", size).into_font()
}

fn canvas(path: &Path, height: u32) -> DrawingArea<SVGBackend<'_>, Shift> {
    SVGBackend::new(path, (WIDTH, height)).into_drawing_area()
}

/// A number for people: three digits are enough.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", value / 1e6),
        v if v >= 1e4 => format!("{:.0}k", value / 1e3),
        v if v >= 1e3 => format!("{:.1}k", value / 1e3),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A number at an axis, which is round.
fn tick(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{}", (v * 1e6).round() / 1e6),
    }
}

/// The range of positive values, a little wider on both sides. It is at least so wide that an axis has two ticks.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (mut low, mut high) = (f64::MAX, f64::MIN_POSITIVE);
    for value in values.filter(|value| *value > 0.0) {
        (low, high) = (low.min(value), high.max(value));
    }
    let middle = (low * high).sqrt();
    (low / 1.3).min(middle / 2.0)..(high * 1.3).max(middle * 2.0)
}

/// A logarithmic axis. A short one has its ticks at powers of two, since it may have no power of ten.
fn logarithmic(values: std::ops::Range<f64>) -> LogCoord<f64> {
    let base = if values.end / values.start < 20.0 {
        2.0
    } else {
        10.0
    };
    values.log_scale().base(base).into()
}

/// Draws bars on a logarithmic axis, in the given order.
pub(crate) fn bars(path: &Path, texts: &Texts<'_>, bars: &[Bar]) -> Done {
    let height = 90 + BAR * bars.len() as u32;
    let area = canvas(path, height);
    area.fill(&WHITE)?;
    let values = range(bars.iter().map(|bar| bar.value));
    // A bar begins at the left edge, below the smallest value; a number stands to the right of the largest.
    let (low, high) = (values.start / 2.0, values.end * 2.0);
    let rows = bars.len() as f64;
    let mut chart = ChartBuilder::on(&area)
        .caption(texts.title, font(17))
        .margin(10)
        .x_label_area_size(42)
        .y_label_area_size(230)
        .build_cartesian_2d((low..high).log_scale(), 0.0..rows)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .max_light_lines(0)
        .x_label_formatter(&|value| tick(*value))
        .x_desc(texts.across)
        .label_style(font(13))
        .draw()?;
    for (row, bar) in bars.iter().enumerate() {
        let top = rows - row as f64;
        let colour = if bar.is_ours { OURS } else { OTHERS };
        let corners = [(low, top - 0.15), (bar.value, top - 0.85)];
        chart.draw_series([Rectangle::new(corners, colour.filled())])?;
        let middle = |x: f64| chart.backend_coord(&(x, top - 0.5));
        let style = |side| font(13).color(&BLACK).pos(Pos::new(side, VPos::Center));
        let (x, y) = middle(low);
        area.draw(&Text::new(
            bar.label.clone(),
            (x - 8, y),
            style(HPos::Right),
        ))?;
        let (x, y) = middle(bar.value);
        area.draw(&Text::new(digits(bar.value), (x + 5, y), style(HPos::Left)))?;
    }
    area.present()?;
    Ok(())
}

/// Draws curves on logarithmic axes.
pub(crate) fn curves(path: &Path, texts: &Texts<'_>, curves: &[Curve]) -> Done {
    let area = canvas(path, 420);
    area.fill(&WHITE)?;
    let points = || curves.iter().flat_map(|curve| curve.points.iter());
    let across = range(points().map(|point| point.0));
    let up = range(points().map(|point| point.1));
    let mut chart = ChartBuilder::on(&area)
        .caption(texts.title, font(17))
        .margin(10)
        .margin_right(215)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(across.clone().log_scale(), logarithmic(up))?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_labels(6)
        .x_label_formatter(&|value| tick(*value))
        .y_label_formatter(&|value| tick(*value))
        .x_desc(texts.across)
        .y_desc(texts.up)
        .label_style(font(13))
        .draw()?;
    let mut ends = Vec::new();
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let width = if curve.is_ours { 4 } else { 2 };
        let line = LineSeries::new(curve.points.iter().copied(), colour.stroke_width(width));
        chart.draw_series(line)?;
        let dots = curve
            .points
            .iter()
            .map(|point| Circle::new(*point, 3, colour.filled()));
        chart.draw_series(dots)?;
        if let Some((_, y)) = curve.points.last() {
            let at = chart.backend_coord(&(across.end, *y));
            ends.push((at, colour, curve.label.clone()));
        }
    }
    // Labels stand at the ends of their curves, and move down where they would overlap.
    ends.sort_by_key(|((_, y), ..)| *y);
    let mut free = i32::MIN;
    for ((x, y), colour, label) in ends {
        let y = y.max(free);
        free = y + 16;
        let style = font(13)
            .color(colour)
            .pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(label, (x + 8, y), style))?;
    }
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_room_even_around_one_value() {
        let one = range([5.0].into_iter());
        assert!(one.start < 5.0 && one.end > 5.0);
        let many = range([1.0, 100.0, 0.0].into_iter());
        assert!(many.start < 1.0 && many.start > 0.0 && many.end > 100.0);
    }

    #[test]
    fn a_short_axis_has_ticks() {
        for values in [1.1..7.2, 0.3..0.9, 2.0..3_000.0] {
            let ticks = logarithmic(values.clone()).key_points(10);
            assert!(!ticks.is_empty(), "{values:?}");
        }
    }

    #[test]
    fn digits_are_few() {
        let told = [0.0123, 0.5, 12.34, 456.7, 1_234.0, 20_000.0, 2e6].map(digits);
        assert_eq!(told, ["0.012", "0.50", "12.3", "457", "1.2k", "20k", "2M"]);
    }
}
