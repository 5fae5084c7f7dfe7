//! Missing shots: the shots of an image are compared with the encoding limits of the XML header.

use super::header::{EncodingLimits, HeaderEncoding};
use std::collections::BTreeSet;

/// kspace_encode_step_1 and kspace_encode_step_2 of a shot.
type EncodingStep = [u16; 2];

/// The expected shots: the encoding limits, and the factors of parallel imaging.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ExpectedShots {
    /// The first and the last encoding step along both axes.
    first: EncodingStep,
    last: EncodingStep,
    acceleration: [usize; 2],
    /// Whether the header has limits of kspace_encode_step_1.
    pub is_known: bool,
}

impl ExpectedShots {
    /// Returns the expected shots of an encoding.
    pub fn of(encoding: &HeaderEncoding) -> ExpectedShots {
        let [first, second] = encoding.steps.map(|limits| limits.unwrap_or_default());
        let last = |limits: EncodingLimits| limits.maximum.max(limits.minimum);
        let factors = encoding.parallel.map_or([1; 2], |parallel| parallel.acceleration);
        ExpectedShots {
            first: [first.minimum, second.minimum],
            last: [last(first), last(second)],
            acceleration: factors.map(|factor| usize::from(factor).max(1)),
            is_known: encoding.steps[0].is_some(),
        }
    }

    /// Returns the number of steps along an axis.
    fn size(&self, axis: usize) -> usize {
        usize::from(self.last[axis] - self.first[axis]) + 1
    }

    fn shots(&self) -> usize {
        self.size(0) * self.size(1)
    }

    fn range(&self, axis: usize) -> String {
        format!("kspace_encoding_step_{} from {} to {}", axis + 1, self.first[axis], self.last[axis])
    }
}

/// The steps of the shots along one axis, counted from the first expected step.
struct StepRange {
    used: BTreeSet<usize>,
    size: usize,
    acceleration: usize,
}

impl StepRange {
    fn distances(&self) -> impl Iterator<Item = usize> + '_ {
        self.used.iter().zip(self.used.iter().skip(1)).map(|(a, b)| b - a)
    }

    fn largest_gap(&self) -> usize {
        self.distances().fold(1, usize::max)
    }

    /// Returns whether the steps have equal distances.
    fn is_regular(&self) -> bool {
        let gap = self.largest_gap();
        self.distances().all(|distance| distance == gap)
    }

    /// Returns the first and the last step.
    fn ends(&self) -> [usize; 2] {
        [self.used.first(), self.used.last()].map(|step| step.copied().unwrap_or(0))
    }

    /// Returns whether the steps reach the first and the last expected step, except for the largest gap between steps.
    fn reaches_limits(&self) -> bool {
        let gap = self.largest_gap().max(self.acceleration);
        let [first, last] = self.ends();
        first < gap && self.size - 1 - last < gap
    }
}

/// Returns a warning if shots are missing: a measurement was cut short, or shots were lost. The text begins with the
/// verb, after "an image". `steps`: the different steps of the shots. `count`: the number of shots, of which several
/// may have the same step.
///
/// Shots may be missing by design if the last shots were acquired, and the shots have equal distances or the number
/// that parallel imaging announces.
pub(super) fn missing_shots(expected: &ExpectedShots, steps: &BTreeSet<EncodingStep>, count: usize) -> Option<String> {
    let all = if expected.is_known { expected.shots() } else { 0 };
    if steps.is_empty() || count >= all {
        return None;
    }
    let axes = [0, 1].map(|axis| {
        let size = expected.size(axis);
        // The counters of some sequences exceed the limits.
        let from_first =
            |step: &EncodingStep| usize::from(step[axis].saturating_sub(expected.first[axis])).min(size - 1);
        StepRange { used: steps.iter().map(from_first).collect(), size, acceleration: expected.acceleration[axis] }
    });
    let has_all_ends = axes.iter().all(StepRange::reaches_limits);
    let is_regular = axes.iter().all(StepRange::is_regular)
        && steps.len() == count
        && count == axes[0].used.len() * axes[1].used.len();
    if has_all_ends && (is_regular || count * expected.acceleration[0] * expected.acceleration[1] >= all) {
        return None;
    }
    let has_partitions = axes[1].size > 1;
    let limits = match has_partitions {
        true => format!("{}, {}", expected.range(0), expected.range(1)),
        false => expected.range(0),
    };
    let reason = if steps.len() == 1 {
        "all have the same encoding steps: the measurement was cut short, its shots have the counters of several \
         images, or an earlier step kept only one shot of those with the same counters: check kspace_encode_step_1"
            .to_owned()
    } else if !has_all_ends {
        let ends = |axis: usize| {
            let [first, last] = axes[axis].ends().map(|step| step + usize::from(expected.first[axis]));
            format!("step {} goes from {first} to {last}", axis + 1)
        };
        let ends = if has_partitions { format!("{}, {}", ends(0), ends(1)) } else { ends(0) };
        format!(
            "{ends}: the measurement was cut short, its shots have the counters of several images, or the limits are \
             too wide"
        )
    } else {
        "the others were lost, or their shots have the counters of other images. If the scan omits them by design, set \
         parallelImaging in the XML header"
            .to_owned()
    };
    Some(format!(
        "has {count} of the {all} shots that the encoding limits in the XML header announce ({limits}), and {reason}. \
         The image is made from the acquired shots"
    ))
}

/// Returns a warning if an image has fewer shots than a previous one, for headers without encoding limits. Updates
/// `max_count`, the largest number of shots.
pub(super) fn fewer_shots(count: usize, max_count: &mut usize) -> Option<String> {
    if count >= *max_count {
        *max_count = count;
        return None;
    }
    Some(format!(
        "has {count} shots, but a previous image had {max_count}, and the XML header has no encoding limits with the \
         expected number: check whether the measurement was cut short. The image is made from the acquired shots"
    ))
}

/// The shots of one image that is completed in several parts. All parts have arrived when the next repetition begins,
/// or at the end of the measurement.
#[derive(Default)]
pub(super) struct ShotCollector {
    expected: ExpectedShots,
    repetition: u16,
    steps: BTreeSet<EncodingStep>,
    count: usize,
}

impl ShotCollector {
    /// Returns whether parts of this repetition have arrived.
    pub fn has_parts_of(&self, repetition: u16) -> bool {
        self.count > 0 && self.repetition == repetition
    }

    /// Adds the shots of a part. If it is the first part of a new repetition, returns the warning about the previous
    /// repetition, with its number.
    pub fn add(
        &mut self,
        expected: ExpectedShots,
        repetition: u16,
        steps: impl Iterator<Item = EncodingStep>,
    ) -> Option<(u16, String)> {
        let previous = if repetition == self.repetition { None } else { self.end() };
        (self.repetition, self.expected) = (repetition, expected);
        for step in steps {
            self.count += 1;
            self.steps.insert(step);
        }
        previous
    }

    /// Ends the image. Returns the warning about it, with its repetition.
    pub fn end(&mut self) -> Option<(u16, String)> {
        let ShotCollector { expected, repetition, steps, count } = std::mem::take(self);
        missing_shots(&expected, &steps, count).map(|text| (repetition, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::header::ParallelImaging;

    /// Returns expected shots from step 0 to these last steps.
    fn expected_shots(last: [u16; 2]) -> ExpectedShots {
        ExpectedShots { first: [0; 2], last, acceleration: [1; 2], is_known: true }
    }

    fn rows(steps: impl IntoIterator<Item = u16>) -> Vec<EncodingStep> {
        steps.into_iter().map(|step| [step, 0]).collect()
    }

    /// Returns the text of the warning; empty without a warning.
    fn text(expected: &ExpectedShots, steps: &[EncodingStep]) -> String {
        missing_shots(expected, &steps.iter().copied().collect(), steps.len()).unwrap_or_default()
    }

    #[track_caller]
    fn has(text: &str, parts: &[&str]) {
        parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in: {text}"));
    }

    #[test]
    fn shots_missing_by_design_cause_no_warning() {
        let mut all = expected_shots([95, 0]);
        assert_eq!(text(&all, &rows(0..96)), "");
        // A single acquisition, as if all counters were 0.
        has(&text(&all, &rows([0])), &["has 1 of the 96 shots", "kspace_encoding_step_1 from 0 to 95)", "the same"]);
        // A measurement that was cut short.
        has(&text(&all, &rows(0..61)), &["61 of the 96 shots", "step 1 goes from 0 to 60: ", "cut short"]);
        has(&text(&all, &rows(0..95)), &["95 of the 96 shots", "cut short"]);
        has(&text(&all, &rows(5..96)), &["91 of the 96 shots", "from 5 to 95"]);
        // Gaps at equal distances are by design if the last shots were acquired.
        for (first, step) in [(0, 2), (1, 3), (3, 4)] {
            assert_eq!(text(&all, &rows((first..96).step_by(step))), "");
        }
        has(&text(&all, &rows((0..48).step_by(2))), &["24 of the 96 shots", "cut short"]);
        // A single missing shot in the middle is not by design.
        let lost = rows((0..96).filter(|&step| step != 40));
        has(&text(&all, &lost), &["95 of the 96 shots", "were lost", "parallelImaging"]);
        // Parallel imaging allows all shots at the centre and every second one outside.
        let dense = rows((0..96).filter(|step| step % 2 == 0 || (40..56).contains(step)));
        has(&text(&all, &dense), &["56 of the 96 shots", "were lost"]);
        all.acceleration = [2, 1];
        assert_eq!([text(&all, &dense), text(&all, &rows((0..96).step_by(2)))], ["", ""]);
        has(&text(&all, &rows(0..61)), &["61 of the 96 shots", "cut short"]);
    }

    #[test]
    fn partitions_are_checked() {
        // Every third partition; then without the last of these; then with one shot lost.
        let all = expected_shots([7, 11]);
        let mut steps: Vec<EncodingStep> =
            (0..12).step_by(3).flat_map(|second| (0..8).map(move |first| [first, second])).collect();
        assert_eq!(text(&all, &steps), "");
        let range = "kspace_encoding_step_2 from 0 to 11";
        has(&text(&all, &steps[..24]), &["24 of the 96 shots", range, "cut short", "step 2 goes from 0 to 6"]);
        steps.remove(10);
        has(&text(&all, &steps), &["31 of the 96 shots", "were lost"]);
    }

    #[test]
    fn limits_may_be_unknown_or_exceeded() {
        let mut all = expected_shots([20, 0]);
        all.is_known = false;
        assert_eq!(text(&all, &rows(0..5)), "");
        all.is_known = true;
        assert_eq!([text(&all, &rows(100..121)), text(&all, &[[0, 0]; 21])], ["", ""]);
        has(&text(&all, &[[0, 0]; 13]), &["13 of the 21 shots", "the same encoding steps"]);
        has(&text(&all, &rows(100..113)), &["13 of the 21 shots"]);
        // Limits that do not begin at 0.
        let limits = Some(EncodingLimits { minimum: 3, maximum: 10, center: 7 });
        let parallel = Some(ParallelImaging { acceleration: [0, 2], calibration: None });
        let encoding = HeaderEncoding { steps: [limits, None], parallel, ..HeaderEncoding::default() };
        let some = ExpectedShots::of(&encoding);
        assert_eq!(some, ExpectedShots { first: [3, 0], last: [10, 0], acceleration: [1, 2], is_known: true });
        assert_eq!(text(&some, &rows(3..11)), "");
        has(&text(&some, &rows(3..9)), &["6 of the 8 shots", "step_1 from 3 to 10", "step 1 goes from 3 to 8"]);
        assert!(!ExpectedShots::of(&HeaderEncoding::default()).is_known);
    }

    #[test]
    fn parts_of_an_image_are_checked_together() {
        let all = expected_shots([20, 0]);
        let mut collector = ShotCollector::default();
        let add = |collector: &mut ShotCollector, repetition: u16, steps: std::ops::Range<u16>| {
            collector.add(all, repetition, rows(steps).into_iter())
        };
        assert_eq!(collector.end(), None);
        for part in [0..7, 7..14, 14..21] {
            assert_eq!(add(&mut collector, 0, part), None);
            assert!(collector.has_parts_of(0) && !collector.has_parts_of(1));
        }
        assert_eq!(add(&mut collector, 1, 0..7), None);
        let (repetition, text) = add(&mut collector, 2, 0..21).unwrap();
        assert_eq!(repetition, 1);
        has(&text, &["7 of the 21 shots"]);
        assert_eq!(collector.end(), None);
        add(&mut collector, 3, 0..14);
        has(&collector.end().unwrap().1, &["14 of the 21 shots"]);
        assert_eq!(collector.end(), None);
    }

    #[test]
    fn without_limits_images_are_compared_with_previous_images() {
        let mut max_count = 0;
        assert_eq!([fewer_shots(96, &mut max_count), fewer_shots(96, &mut max_count)], [None, None]);
        let text = fewer_shots(61, &mut max_count).unwrap();
        has(&text, &["has 61 shots", "a previous image had 96", "no encoding limits"]);
        assert_eq!(max_count, 96);
    }
}
