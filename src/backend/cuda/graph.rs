//! Sequences of kernels that are queued again and again, as CUDA graphs. The host needs 3 to 4 us to queue a kernel,
//! but 2 us for a graph. Without graphs, the GPU waits for the host in small transforms.

use super::gpu::Gpu;
use super::launch;
use super::library::check;
use super::runtime::{Context, Stream};
use crate::backend::{DeviceSlice, DeviceSliceMut, Element, Span};
use crate::base::error::Result;
use crate::base::input_check::{self, KernelCheck};
use cudarc::driver::sys as cu;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Number of calls after which a sequence becomes a graph. On an H200 it takes 45 us to make a graph, which saves 6 us
/// per call of a small transform.
const PLAIN_CALLS: u32 = 4;
/// Maximum number of graphs of a [`Graphs`].
const MAX_GRAPHS: usize = 16;
/// Maximum number of elements of all arrays. Kernels on larger arrays take longer than it takes to queue them.
const MAX_ELEMENTS: usize = 1 << 22;

/// Purpose of a sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SequenceKind {
    /// Samples to images.
    Adjoint,
    /// Images to samples.
    Forward,
    /// Convolution with kernels.
    Convolution,
    /// Convolution of coil images with a kernel.
    CoilConvolution,
}

/// A sequence of kernels and all that it depends on, apart from the object that queues it. Equal sequences have the
/// same kernels with the same arguments.
#[derive(PartialEq)]
pub struct Sequence {
    kind: SequenceKind,
    /// Numbers of other objects, addresses and lengths.
    numbers: Vec<u64>,
    /// Number of elements of all arrays.
    elements: usize,
    /// Arguments of this thread's check of input.
    check: Option<KernelCheck>,
}

impl Sequence {
    /// Returns the sequence of an operation without arrays.
    pub fn new(kind: SequenceKind) -> Self {
        Sequence { kind, numbers: Vec::with_capacity(8), elements: 0, check: input_check::in_kernels() }
    }

    /// Adds a number, such as the one of an object.
    #[must_use]
    pub fn with(mut self, number: u64) -> Self {
        self.numbers.push(number);
        self
    }

    /// Adds an array that is read.
    #[must_use]
    pub fn reads<E: Element>(mut self, array: &DeviceSlice<'_, E>) -> Self {
        self.elements = self.elements.saturating_add(array.len());
        self.with(array.pointer().address()).with(array.len() as u64)
    }

    /// Adds an array that is written.
    #[must_use]
    pub fn writes<E: Element>(self, array: &DeviceSliceMut<'_, E>) -> Self {
        self.reads(&array.as_slice())
    }
}

/// Returns a number that no other object of the process has or had.
pub fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The graphs of one object's sequences, those that were used last.
#[derive(Default)]
pub struct Graphs(Mutex<KnownSequences>);

#[derive(Default)]
struct KnownSequences {
    entries: Vec<Entry>,
    /// Number of calls so far.
    calls: u64,
}

struct Entry {
    sequence: Sequence,
    queued: Queued,
    /// Number of the last call.
    last: u64,
}

/// How a sequence is queued.
enum Queued {
    /// Kernel by kernel, this number of times so far.
    Plain(u32),
    Graph(Graph),
}

impl KnownSequences {
    /// Returns the entry of a sequence, which may be new and take the place of the one that was not used for longest.
    fn entry(&mut self, sequence: Sequence) -> &mut Entry {
        self.calls += 1;
        let at = self.entries.iter().position(|entry| entry.sequence == sequence).unwrap_or_else(|| {
            let new = Entry { sequence, queued: Queued::Plain(0), last: 0 };
            if self.entries.len() < MAX_GRAPHS {
                self.entries.push(new);
                return self.entries.len() - 1;
            }
            let oldest = (0..MAX_GRAPHS).min_by_key(|&at| self.entries[at].last).expect("there are entries");
            self.entries[oldest] = new;
            oldest
        });
        self.entries[at].last = self.calls;
        &mut self.entries[at]
    }
}

impl Graphs {
    /// Queues a sequence: `queue` kernel by kernel, or after some calls a graph of what `queue` queues. It must depend
    /// on the sequence only, and must not wait. An error is reported by the next call that waits.
    pub fn queue(&self, gpu: &Gpu, sequence: Sequence, mut queue: impl FnMut(&Gpu)) {
        if sequence.elements > MAX_ELEMENTS || !launch::has_graphs() || gpu.stream().is_capturing() {
            return queue(gpu);
        }
        // Held until all is queued, because the driver does not allow two threads to use a graph at the same time.
        let mut known = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let entry = known.entry(sequence);
        if let Queued::Plain(calls) = &mut entry.queued {
            *calls = calls.saturating_add(1);
            if *calls == PLAIN_CALLS {
                match Graph::new(gpu, &mut queue) {
                    Ok(graph) => entry.queued = Queued::Graph(graph),
                    Err(e) => log::info!("{:?} is queued kernel by kernel: {e}", entry.sequence.kind),
                }
            }
        }
        match &entry.queued {
            Queued::Graph(graph) => gpu.note(graph.queue(gpu.stream())),
            Queued::Plain(_) => {
                drop(known);
                queue(gpu);
            }
        }
    }

    /// Returns the number of graphs.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        let known = self.0.lock().unwrap_or_else(|e| e.into_inner());
        known.entries.iter().filter(|entry| matches!(entry.queued, Queued::Graph(_))).count()
    }
}

/// Kernels that the GPU starts one after the other.
struct Graph {
    handle: cu::CUgraphExec,
    context: Arc<Context>,
}

// SAFETY: as for Context. `Graphs` lets one thread at a time use a graph.
unsafe impl Send for Graph {}

impl Graph {
    /// Makes a graph of what `queue` queues. Nothing is computed.
    fn new(gpu: &Gpu, queue: &mut impl FnMut(&Gpu)) -> Result<Graph> {
        let context = &gpu.stream().context;
        let _current = context.enter()?;
        let _relaxed = RelaxedCapture::new()?;
        let capture = Capture::begin(Stream::new(context)?)?;
        let recorder = gpu.with_stream(capture.stream.clone());
        queue(&recorder);
        let captured = capture.end()?;
        recorder.check_queued()?;
        let mut handle = null_mut();
        // SAFETY: the captured graph exists.
        check(unsafe { cu::cuGraphInstantiateWithFlags(&mut handle, captured.0, 0) }, "making a graph")?;
        Ok(Graph { handle, context: context.clone() })
    }

    /// Queues the graph.
    fn queue(&self, stream: &Stream) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: graph and stream exist. The caller of `Graphs::queue` has borrowed the arrays of its kernels.
        check(unsafe { cu::cuGraphLaunch(self.handle, stream.handle()) }, "queueing a graph")
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // The graphs of a destroyed context do not exist any more.
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the graph exists. The driver keeps it until it has run.
        unsafe { cu::cuGraphExecDestroy(self.handle) };
    }
}

/// Guard during whose life this thread makes graphs without ending captures of other threads. (The driver ends them if
/// another thread allocates memory, unless it is in this mode.)
struct RelaxedCapture(cu::CUstreamCaptureMode);

impl RelaxedCapture {
    fn new() -> Result<Self> {
        let mut mode = cu::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver replaces the mode by the previous one.
        check(unsafe { cu::cuThreadExchangeStreamCaptureMode(&mut mode) }, "preparing a graph")?;
        Ok(RelaxedCapture(mode))
    }
}

impl Drop for RelaxedCapture {
    fn drop(&mut self) {
        // SAFETY: sets the mode that the thread had.
        unsafe { cu::cuThreadExchangeStreamCaptureMode(&mut self.0) };
    }
}

/// A stream of which kernels are captured.
struct Capture {
    stream: Arc<Stream>,
    is_open: bool,
}

/// A graph that cannot be queued yet.
struct CapturedGraph(cu::CUgraph);

impl Capture {
    fn begin(stream: Stream) -> Result<Self> {
        let mode = cu::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream exists, is not the default stream, and nobody else has it.
        check(unsafe { cu::cuStreamBeginCapture_v2(stream.handle(), mode) }, "capturing kernels")?;
        Ok(Capture { stream: Arc::new(stream), is_open: true })
    }

    fn end(mut self) -> Result<CapturedGraph> {
        self.is_open = false;
        let mut graph = null_mut();
        // SAFETY: the capture was begun by `begin`.
        check(unsafe { cu::cuStreamEndCapture(self.stream.handle(), &mut graph) }, "capturing kernels")?;
        Ok(CapturedGraph(graph))
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.is_open {
            let mut graph = null_mut();
            // SAFETY: as in `end`; a graph that is not needed is destroyed.
            unsafe {
                cu::cuStreamEndCapture(self.stream.handle(), &mut graph);
                drop(CapturedGraph(graph));
            }
        }
    }
}

impl Drop for CapturedGraph {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the graph exists.
            unsafe { cu::cuGraphDestroy(self.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::memory::DeviceArray;
    use crate::backend::cuda::runtime;
    use crate::backend::cuda::vector::Vectors;
    use num_complex::Complex;

    #[test]
    fn each_call_runs_once_whether_it_is_a_graph_or_not() {
        let Some(index) = runtime::first_usable() else { return crate::backend::cuda::skipped("graphs") };
        // SAFETY: no stream is passed.
        let gpu = unsafe { Gpu::new(index, None, 0) }.unwrap();
        let (vectors, graphs) = (Vectors::new::<f32>(&gpu).unwrap(), Graphs::default());
        let array = |value: f32| gpu.upload(&vec![Complex::new(value, 0.0); 1000], "values").unwrap();
        let add = |x: &DeviceArray<Complex<f32>>, y: &mut DeviceArray<Complex<f32>>| {
            let sequence = Sequence::new(SequenceKind::Adjoint).reads(&x.view()).writes(&y.view_mut());
            // Two kernels: y = y + x + 2 x.
            graphs.queue(&gpu, sequence, |gpu| {
                vectors.axpy(gpu, 1.0, x.view(), y.view_mut());
                vectors.axpy(gpu, 2.0, x.view(), y.view_mut());
            });
        };
        let read = |y: &DeviceArray<Complex<f32>>| {
            let mut found = vec![Complex::new(f32::NAN, f32::NAN); 1000];
            gpu.download(y.view(), &mut found).unwrap();
            assert!(found.iter().all(|z| *z == found[0]));
            found[0].re
        };
        // More arrays than there can be graphs. Only those that were used last are known.
        let mut sums: Vec<_> = (0..MAX_GRAPHS + 2).map(|_| array(0.0)).collect();
        let x = array(1.0);
        for sum in &mut sums {
            let mut expected = 0.0;
            for call in 1..=2 * PLAIN_CALLS {
                add(&x, sum);
                expected += 3.0;
                assert_eq!(read(sum), expected, "call {call}");
            }
        }
        assert_eq!(graphs.count(), if launch::has_graphs() { MAX_GRAPHS } else { 0 });
        let mut first = sums.swap_remove(0);
        let before = read(&first);
        add(&x, &mut first);
        assert_eq!(read(&first), before + 3.0);
    }

    #[test]
    fn only_equal_sequences_share_a_graph() {
        let sequence = |kind, id| Sequence::new(kind).with(id);
        assert!(sequence(SequenceKind::Adjoint, 1) == sequence(SequenceKind::Adjoint, 1));
        assert!(sequence(SequenceKind::Adjoint, 1) != sequence(SequenceKind::Forward, 1));
        assert!(sequence(SequenceKind::Adjoint, new_id()) != sequence(SequenceKind::Adjoint, new_id()));
    }
}
