//! Layered layout from top to bottom (Sugiyama). Boxes have any size. An arrow reserves a place in each layer that it
//! crosses, as does its label, so nothing overlaps.

/// Gap between the boxes of a layer.
const ACROSS: f64 = 28.0;
/// Gap between two layers.
const DOWN: f64 = 26.0;
/// Rounds of ordering and of straightening. More rounds make no visible difference.
const ROUNDS: usize = 24;

/// The input of the layout: sizes of boxes, and arrows with the sizes of their labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) boxes: Vec<(f64, f64)>,
    pub(super) arrows: Vec<Arrow>,
}

/// An arrow between two boxes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: (f64, f64),
}

/// The result of the layout.
#[derive(Clone, Debug, Default)]
pub(super) struct Laid {
    /// Upper left corners of the boxes.
    pub(super) boxes: Vec<(f64, f64)>,
    /// Points of each arrow, from box to box.
    pub(super) arrows: Vec<Vec<(f64, f64)>>,
    /// The middle of each label.
    pub(super) labels: Vec<(f64, f64)>,
    pub(super) size: (f64, f64),
}

/// A box, or the place of an arrow in a layer that it crosses.
#[derive(Clone, Debug)]
struct Spot {
    layer: usize,
    width: f64,
    height: f64,
    /// Position of its middle, from the left.
    x: f64,
    /// The spots of the layer above that it is connected with.
    up: Vec<usize>,
    /// The spots of the layer below that it is connected with.
    down: Vec<usize>,
    /// True for a box, false for the place of an arrow.
    real: bool,
}

/// Computes the layout.
pub(super) fn lay(plan: &Plan) -> Laid {
    let flipped = flipped(plan);
    let layers = layers(plan, &flipped);
    let mut spots: Vec<Spot> = plan
        .boxes
        .iter()
        .zip(&layers)
        .map(|(&(width, height), &layer)| Spot {
            layer,
            width,
            height,
            x: 0.0,
            up: Vec::new(),
            down: Vec::new(),
            real: true,
        })
        .collect();
    let chains: Vec<Vec<usize>> = plan
        .arrows
        .iter()
        .zip(&flipped)
        .map(|(arrow, &flip)| chain(&mut spots, arrow, flip))
        .collect();
    let mut rows = ordered(&mut spots);
    place(&mut spots, &mut rows);
    let tops = tops(&spots, &rows);
    let boxes = (0..plan.boxes.len()).map(|k| {
        let spot = &spots[k];
        let middle = tops[spot.layer].0 + tops[spot.layer].1 / 2.0;
        (spot.x - spot.width / 2.0, middle - spot.height / 2.0)
    });
    let boxes: Vec<(f64, f64)> = boxes.collect();
    let mut laid = Laid {
        boxes,
        ..Laid::default()
    };
    for ((arrow, chain), &flip) in plan.arrows.iter().zip(&chains).zip(&flipped) {
        let (points, label) = path(plan, &laid.boxes, &spots, &tops, arrow, chain, flip);
        laid.arrows.push(points);
        laid.labels.push(label);
    }
    let right = spots
        .iter()
        .map(|s| s.x + s.width / 2.0)
        .fold(0.0, f64::max);
    let loops = plan.arrows.iter().filter(|a| a.from == a.to);
    let right = loops
        .map(|a| laid.boxes[a.from].0 + plan.boxes[a.from].0 + LOOP + a.label.0)
        .fold(right, f64::max);
    let bottom = tops.last().map_or(0.0, |(top, height)| top + height);
    laid.size = (right, bottom);
    laid
}

/// Distance by which an arrow from a box to itself extends.
const LOOP: f64 = 18.0;

/// Returns true for each arrow that closes a cycle in a depth-first walk; such arrows are laid out in the opposite
/// direction.
fn flipped(plan: &Plan) -> Vec<bool> {
    let mut flipped = vec![false; plan.arrows.len()];
    // 0: not visited, 1: on the current path, 2: done.
    let mut seen = vec![0_u8; plan.boxes.len()];
    for start in 0..plan.boxes.len() {
        if seen[start] != 0 {
            continue;
        }
        seen[start] = 1;
        let mut stack = vec![(start, 0)];
        while let Some((at, next)) = stack.pop() {
            let own = plan.arrows.iter().enumerate().skip(next);
            let mut own = own.filter(|(_, arrow)| arrow.from == at && arrow.to != at);
            let Some((k, arrow)) = own.next() else {
                seen[at] = 2;
                continue;
            };
            stack.push((at, k + 1));
            match seen[arrow.to] {
                0 => {
                    seen[arrow.to] = 1;
                    stack.push((arrow.to, 0));
                }
                1 => flipped[k] = true,
                _ => {}
            }
        }
    }
    flipped
}

/// Returns the layer of each box. An arrow spans at least two layers; its label is in a layer between.
fn layers(plan: &Plan, flipped: &[bool]) -> Vec<usize> {
    let mut layers = vec![0; plan.boxes.len()];
    for _ in 0..plan.boxes.len() {
        let mut moved = false;
        for (arrow, flip) in plan.arrows.iter().zip(flipped) {
            let (from, to) = ends(arrow, *flip);
            if from != to && layers[to] < layers[from] + 2 {
                layers[to] = layers[from] + 2;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    layers
}

fn ends(arrow: &Arrow, flip: bool) -> (usize, usize) {
    if flip {
        (arrow.to, arrow.from)
    } else {
        (arrow.from, arrow.to)
    }
}

/// Adds the places of an arrow between its boxes, from top to bottom; one of them has room for the label.
fn chain(spots: &mut Vec<Spot>, arrow: &Arrow, flip: bool) -> Vec<usize> {
    let (from, to) = ends(arrow, flip);
    if from == to {
        return Vec::new();
    }
    let (first, last) = (spots[from].layer, spots[to].layer);
    // The label is next to the target, so that labels of arrows from the same box do not compete for one layer.
    let labelled = if flip { first + 1 } else { last - 1 };
    let mut above = from;
    let mut chain = Vec::new();
    for layer in first + 1..last {
        let (width, height) = if layer == labelled {
            arrow.label
        } else {
            (0.0, 0.0)
        };
        let at = spots.len();
        spots.push(Spot {
            layer,
            width: width.max(4.0),
            height,
            x: 0.0,
            up: vec![above],
            down: Vec::new(),
            real: false,
        });
        spots[above].down.push(at);
        chain.push(at);
        above = at;
    }
    spots[above].down.push(to);
    spots[to].up.push(above);
    chain
}

/// Orders each layer so that few arrows cross: each spot moves to the middle of its neighbours, in passes down and up.
fn ordered(spots: &mut [Spot]) -> Vec<Vec<usize>> {
    let deep = spots.iter().map(|s| s.layer + 1).max().unwrap_or(0);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); deep];
    // The first order is that of a walk from above, so that connected spots begin together.
    let mut seen = vec![false; spots.len()];
    for start in 0..spots.len() {
        let mut next = vec![start];
        while let Some(at) = next.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            rows[spots[at].layer].push(at);
            next.extend(spots[at].down.iter().rev());
        }
    }
    let mut best = (crossings(spots, &rows), rows.clone());
    for round in 0..ROUNDS {
        let down = round % 2 == 0;
        let order: Vec<usize> = if down {
            (1..deep).collect()
        } else {
            (0..deep.saturating_sub(1)).rev().collect()
        };
        for layer in order {
            let beside = if down { layer - 1 } else { layer + 1 };
            let mut place = vec![0.0; spots.len()];
            for (k, at) in rows[beside].iter().enumerate() {
                place[*at] = k as f64;
            }
            let mut keyed: Vec<(f64, usize)> = rows[layer]
                .iter()
                .enumerate()
                .map(|(k, &at)| {
                    let tied = if down { &spots[at].up } else { &spots[at].down };
                    let sum: f64 = tied.iter().map(|other| place[*other]).sum();
                    let middle = match tied.len() {
                        0 => k as f64,
                        many => sum / many as f64,
                    };
                    (middle, at)
                })
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[layer] = keyed.into_iter().map(|(_, at)| at).collect();
        }
        let crossed = crossings(spots, &rows);
        if crossed < best.0 {
            best = (crossed, rows.clone());
        }
    }
    best.1
}

fn crossings(spots: &[Spot], rows: &[Vec<usize>]) -> usize {
    let mut place = vec![0; spots.len()];
    for row in rows {
        for (k, at) in row.iter().enumerate() {
            place[*at] = k;
        }
    }
    let mut crossed = 0;
    for row in rows {
        let mut ties = Vec::new();
        for &at in row {
            ties.extend(spots[at].down.iter().map(|&to| (place[at], place[to])));
        }
        for (k, a) in ties.iter().enumerate() {
            let crosses =
                |b: &&(usize, usize)| (a.0 < b.0 && a.1 > b.1) || (a.0 > b.0 && a.1 < b.1);
            crossed += ties[k + 1..].iter().filter(crosses).count();
        }
    }
    crossed
}

/// Straightens the arrows: each spot moves towards the middle of its neighbours, as far as its layer allows.
fn place(spots: &mut [Spot], rows: &mut [Vec<usize>]) {
    for row in rows.iter() {
        let mut x = 0.0;
        for &at in row {
            spots[at].x = x + spots[at].width / 2.0;
            x += spots[at].width + gap(&spots[at]);
        }
    }
    let deep = rows.len();
    for round in 0..ROUNDS * 2 {
        let down = round % 2 == 0;
        let order: Vec<usize> = if down {
            (0..deep).collect()
        } else {
            (0..deep).rev().collect()
        };
        for layer in order {
            let wanted: Vec<f64> = rows[layer]
                .iter()
                .map(|&at| wanted(spots, at, down, round >= ROUNDS))
                .collect();
            settle(spots, &rows[layer], &wanted);
        }
    }
    let left = spots
        .iter()
        .map(|s| s.x - s.width / 2.0)
        .fold(f64::INFINITY, f64::min);
    for spot in spots.iter_mut() {
        spot.x -= left;
    }
}

fn gap(spot: &Spot) -> f64 {
    if spot.real { ACROSS } else { ACROSS / 2.0 }
}

/// Returns the middle of the neighbours of a spot: above (`down`), below, or both.
fn wanted(spots: &[Spot], at: usize, down: bool, both: bool) -> f64 {
    let spot = &spots[at];
    let tied: Vec<usize> = match (down, both) {
        (_, true) => spot.up.iter().chain(&spot.down).copied().collect(),
        (true, _) => spot.up.clone(),
        (false, _) => spot.down.clone(),
    };
    if tied.is_empty() {
        return spot.x;
    }
    tied.iter().map(|other| spots[*other].x).sum::<f64>() / tied.len() as f64
}

/// Places a layer as near as possible to the wanted positions without overlap. Spots that push each other form one block,
/// which moves to the mean of what its members want.
fn settle(spots: &mut [Spot], row: &[usize], wanted: &[f64]) {
    // For each block: its first index, its length, and the sum of the wanted positions of its start.
    let mut blocks: Vec<(usize, usize, f64)> = Vec::new();
    let mut offsets = vec![0.0; row.len()];
    let mut edge = 0.0;
    for (k, &at) in row.iter().enumerate() {
        offsets[k] = edge + spots[at].width / 2.0;
        edge += spots[at].width + gap(&spots[at]);
    }
    for k in 0..row.len() {
        blocks.push((k, 1, wanted[k] - offsets[k]));
        while let [.., before, last] = &blocks[..] {
            if before.2 / before.1 as f64 <= last.2 / last.1 as f64 {
                break;
            }
            let joined = (before.0, before.1 + last.1, before.2 + last.2);
            blocks.truncate(blocks.len() - 2);
            blocks.push(joined);
        }
    }
    for (start, many, sum) in blocks {
        let begin = sum / many as f64;
        for k in start..start + many {
            spots[row[k]].x = begin + offsets[k];
        }
    }
}

/// Returns the top and the height of each layer.
fn tops(spots: &[Spot], rows: &[Vec<usize>]) -> Vec<(f64, f64)> {
    let mut top = 0.0;
    let mut tops = Vec::new();
    for row in rows {
        let height = row.iter().map(|at| spots[*at].height).fold(0.0, f64::max);
        tops.push((top, height));
        top += height + DOWN;
    }
    tops
}

/// Returns the points of an arrow from border to border, and the middle of its label.
fn path(
    plan: &Plan,
    boxes: &[(f64, f64)],
    spots: &[Spot],
    tops: &[(f64, f64)],
    arrow: &Arrow,
    chain: &[usize],
    flip: bool,
) -> (Vec<(f64, f64)>, (f64, f64)) {
    let (from, to) = ends(arrow, flip);
    if from == to {
        let ((x, y), (width, height)) = (boxes[from], plan.boxes[from]);
        let (right, upper, lower) = (x + width, y + height * 0.3, y + height * 0.7);
        let points = vec![
            (right, upper),
            (right + LOOP, upper),
            (right + LOOP, lower),
            (right, lower),
        ];
        return (
            points,
            (
                right + LOOP + arrow.label.0 / 2.0,
                f64::midpoint(upper, lower),
            ),
        );
    }
    let port = |spot: usize, other: f64| {
        // Arrows of one box spread along its side, so that they can be distinguished.
        let reach = spots[spot].width * 0.36;
        spots[spot].x + (other - spots[spot].x).clamp(-reach, reach) * 0.6
    };
    let first = chain.first().map_or(spots[to].x, |at| spots[*at].x);
    let last = chain.last().map_or(spots[from].x, |at| spots[*at].x);
    let mut points = vec![(port(from, first), boxes[from].1 + plan.boxes[from].1)];
    // The arrow leaves its own layer straight down, so that it crosses no box next to it.
    points.push((
        port(from, first),
        tops[spots[from].layer].0 + tops[spots[from].layer].1,
    ));
    let mut label = (0.0, 0.0);
    for &at in chain {
        let (top, height) = tops[spots[at].layer];
        points.push((spots[at].x, top));
        points.push((spots[at].x, top + height));
        if spots[at].height > 0.0 {
            label = (spots[at].x, top + height / 2.0);
        }
    }
    points.push((port(to, last), tops[spots[to].layer].0));
    points.push((port(to, last), boxes[to].1));
    if flip {
        points.reverse();
    }
    (points, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a random plan for a seed, with cycles, loops and parallel arrows.
    fn plan(seed: u64) -> Plan {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let mut next = |most: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % most
        };
        let many = 2 + next(9) as usize;
        let boxes = (0..many).map(|_| (20.0 + next(300) as f64, 12.0 + next(200) as f64));
        let boxes: Vec<(f64, f64)> = boxes.collect();
        let arrows = (0..next(16)).map(|_| Arrow {
            from: next(many as u64) as usize,
            to: next(many as u64) as usize,
            label: match next(3) {
                0 => (0.0, 0.0),
                _ => (30.0 + next(160) as f64, 19.0),
            },
        });
        let arrows: Vec<Arrow> = arrows.collect();
        Plan { boxes, arrows }
    }

    /// Left, top, right and bottom.
    type Area = (f64, f64, f64, f64);

    fn apart(a: Area, b: Area) -> bool {
        let near = 0.01;
        a.2 <= b.0 + near || b.2 <= a.0 + near || a.3 <= b.1 + near || b.3 <= a.1 + near
    }

    #[test]
    fn boxes_and_labels_do_not_overlap() {
        for seed in 0..300 {
            let plan = plan(seed);
            let laid = lay(&plan);
            let boxes = plan.boxes.iter().zip(&laid.boxes);
            let mut areas: Vec<Area> = boxes
                .map(|(size, at)| (at.0, at.1, at.0 + size.0, at.1 + size.1))
                .collect();
            let labels = plan.arrows.iter().zip(&laid.labels);
            // The label of a loop is next to its box, where other arrows may pass.
            let labels = labels.filter(|(arrow, _)| arrow.label.0 > 0.0 && arrow.from != arrow.to);
            areas.extend(labels.map(|(arrow, at)| {
                let (w, h) = arrow.label;
                (
                    at.0 - w / 2.0,
                    at.1 - h / 2.0,
                    at.0 + w / 2.0,
                    at.1 + h / 2.0,
                )
            }));
            for (k, a) in areas.iter().enumerate() {
                for b in &areas[k + 1..] {
                    assert!(apart(*a, *b), "seed {seed}: {a:?} and {b:?}");
                }
                assert!(
                    a.0 > -0.1 && a.1 > -0.1 && a.2 < laid.size.0 + 0.1 && a.3 < laid.size.1 + 0.1,
                    "seed {seed}: {a:?} is outside of {:?}",
                    laid.size
                );
            }
        }
    }

    #[test]
    fn arrows_begin_and_end_at_their_boxes() {
        for seed in 0..100 {
            let plan = plan(seed);
            let laid = lay(&plan);
            for (arrow, points) in plan.arrows.iter().zip(&laid.arrows) {
                for (at, which) in [(points.first(), arrow.from), (points.last(), arrow.to)] {
                    let at = at.unwrap();
                    let ((x, y), (w, h)) = (laid.boxes[which], plan.boxes[which]);
                    let inside = at.0 >= x - 0.1
                        && at.0 <= x + w + 0.1
                        && at.1 >= y - 0.1
                        && at.1 <= y + h + 0.1;
                    assert!(inside, "seed {seed}: {arrow:?} at {at:?}");
                }
            }
        }
    }
}
