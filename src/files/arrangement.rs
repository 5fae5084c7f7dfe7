//! The order of images along slices and frames, for pictures and for the page of `recon view`.

use recon::scan::ScanIndex;
use std::collections::{BTreeMap, BTreeSet};

/// The counters and the number of slices of an image: what its place in a series depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesEntry {
    /// The counters.
    pub index: ScanIndex,
    /// The number of voxels along z.
    pub depth: usize,
}

/// Images of one kind, along two axes: slices and frames. A frame is a repetition, contrast, phase, set or encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSeries {
    /// The numbers of the images, [slices, frames], slices fastest.
    pub images: Vec<usize>,
    /// The names of the slices, one per slice. Empty if the images are volumes, or if there is one slice.
    pub slices: Vec<String>,
    /// The names of the frames, one per frame.
    pub frames: Vec<String>,
}

impl ImageSeries {
    /// Returns the images of a frame, in the order of slices.
    pub fn frame(&self, frame: usize) -> &[usize] {
        let slices = self.images.len() / self.frames.len();
        &self.images[frame * slices..][..slices]
    }
}

/// Divides images into series. Images with equal keys share a series.
///
/// 2D images of a series are arranged by slice number and by their other counters, if each slice has each frame once.
/// Otherwise each image is a frame, in the order of the images.
pub fn arrange<K: PartialEq>(entries: &[SeriesEntry], key: impl Fn(usize) -> K) -> Vec<ImageSeries> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for number in 0..entries.len() {
        let own = key(number);
        match groups.iter_mut().find(|(other, _)| *other == own) {
            Some((_, members)) => members.push(number),
            None => groups.push((own, vec![number])),
        }
    }
    groups.into_iter().map(|(_, members)| series(entries, members)).collect()
}

fn series(entries: &[SeriesEntry], members: Vec<usize>) -> ImageSeries {
    let without_slice = |number: usize| ScanIndex { slice: 0, ..entries[number].index };
    let slices: BTreeSet<u16> = members.iter().map(|&i| entries[i].index.slice).collect();
    let frames: BTreeSet<ScanIndex> = members.iter().map(|&i| without_slice(i)).collect();
    let places: BTreeMap<(ScanIndex, u16), usize> =
        members.iter().map(|&i| ((without_slice(i), entries[i].index.slice), i)).collect();
    let is_flat = members.iter().all(|&i| entries[i].depth == 1);
    let is_complete = places.len() == members.len() && places.len() == slices.len() * frames.len();
    if is_flat && slices.len() > 1 && is_complete {
        let indices: Vec<ScanIndex> = frames.into_iter().collect();
        let names = slices.iter().map(|slice| format!("slice {slice}")).collect();
        return ImageSeries { images: places.into_values().collect(), slices: names, frames: frame_names(&indices) };
    }
    let indices: Vec<ScanIndex> = members.iter().map(|&i| entries[i].index).collect();
    ImageSeries { images: members, slices: Vec::new(), frames: frame_names(&indices) }
}

/// Returns the names of frames: the counters that differ, such as "contrast 1, repetition 2"; their order if none does.
fn frame_names(frames: &[ScanIndex]) -> Vec<String> {
    let counters = |i: &ScanIndex| {
        [
            ("encoding", i.encoding),
            ("slice", i.slice),
            ("contrast", i.contrast),
            ("phase", i.phase),
            ("set", i.set),
            ("repetition", i.repetition),
            ("average", i.average),
        ]
    };
    let differs = |which: usize| frames.iter().any(|i| counters(i)[which] != counters(&frames[0])[which]);
    let varying: Vec<usize> = (0..7).filter(|&which| differs(which)).collect();
    let name = |index: &ScanIndex| {
        let parts = varying.iter().map(|&which| format!("{} {}", counters(index)[which].0, counters(index)[which].1));
        parts.collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = frames.iter().map(name).collect();
    let different: BTreeSet<&String> = names.iter().collect();
    match different.len() == frames.len() {
        true => names,
        false => (0..frames.len()).map(|i| format!("image {i}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slice: u16, repetition: u16, contrast: u16) -> SeriesEntry {
        SeriesEntry { index: ScanIndex { slice, repetition, contrast, ..ScanIndex::default() }, depth: 1 }
    }

    #[test]
    fn slices_and_frames() {
        // Slices in the order of acquisition, two repetitions.
        let entries: Vec<_> = [0, 1].iter().flat_map(|&r| [2, 0, 1].map(|s| entry(s, r, 0))).collect();
        let all = arrange(&entries, |_| ());
        let slices = ["slice 0", "slice 1", "slice 2"].map(String::from).to_vec();
        let frames = ["repetition 0", "repetition 1"].map(String::from).to_vec();
        assert_eq!(all, [ImageSeries { images: vec![1, 2, 0, 4, 5, 3], slices, frames }]);
        assert_eq!(all[0].frame(1), [4, 5, 3]);
        // A missing image: no two axes.
        let all = arrange(&entries[1..], |_| ());
        assert_eq!((all[0].images.len(), all[0].slices.len(), all[0].frames.len()), (5, 0, 5));
        assert_eq!(all[0].frames[1], "slice 1, repetition 0");
        // Counters that do not distinguish the images.
        let all = arrange(&[entry(0, 0, 1), entry(0, 0, 1)], |_| ());
        assert_eq!((&all[0].images, &all[0].frames), (&vec![0, 1], &vec!["image 0".into(), "image 1".into()]));
        assert_eq!(arrange(&[entry(3, 0, 1)], |_| ())[0].frames, [""]);
    }

    #[test]
    fn volumes_and_keys() {
        let slab = |slice| SeriesEntry { depth: 8, ..entry(slice, 0, 0) };
        let all = arrange(&[slab(0), slab(1)], |_| ());
        assert_eq!((all[0].slices.len(), &all[0].frames[1]), (0, &"slice 1".to_string()));
        let all = arrange(&[entry(0, 0, 0), entry(1, 0, 0), entry(2, 0, 0)], |i| i == 1);
        assert_eq!((&all[0].images, &all[1].images), (&vec![0, 2], &vec![1]));
        assert!(arrange(&[], |_| ()).is_empty());
    }
}
