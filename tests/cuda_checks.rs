//! Input on a GPU that is not finite is an error, and leaves the output there unchanged. The kernels of a transform
//! make this check. Without a GPU each test prints one line that begins with `skipped:`.

mod common;

use common::*;
use recon::backend::cuda::gpu::Gpu;
use recon::backend::cuda::memory::DeviceArray;
use recon::backend::cuda::runtime;
use recon::{Complex, CudaStream, Device, ErrorKind, Geometry, Options, Plan, Real, Result, Sink, Source, VoxelBasis};

/// Contents of outputs before a call.
const POISON: f64 = 7.5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Adjoint,
    Forward,
}

struct Case<T: Real> {
    plan: Plan<T>,
    operation: Operation,
    input: Vec<Complex<T>>,
    outputs: usize,
}

impl<T: Real> Case<T> {
    /// Computes from an array on the GPU; returns the result of the call and the output, read back.
    fn run(&self, gpu: &Gpu, input: &[Complex<T>]) -> (Result<()>, Vec<Complex<T>>) {
        let poison = Complex::new(T::of(POISON), T::of(POISON));
        let mut found = vec![poison; self.outputs];
        let (from, to) = (gpu.upload(input, "input").unwrap(), gpu.upload(&found, "output").unwrap());
        let result = self.call(&from, &to);
        gpu.download(to.view(), &mut found).unwrap();
        (result, found)
    }

    fn call(&self, from: &DeviceArray<Complex<T>>, to: &DeviceArray<Complex<T>>) -> Result<()> {
        let address = |array: &DeviceArray<Complex<T>>| array.pointer().address() as *mut Complex<T>;
        // SAFETY: arrays of these lengths that live until the end of the call and the download.
        let (source, sink) =
            unsafe { (Source::device(address(from), self.input.len()), Sink::device(address(to), self.outputs)) };
        match self.operation {
            Operation::Adjoint => self.plan.adjoint(source, sink),
            Operation::Forward => self.plan.forward(source, sink),
        }
    }

    /// Checks that a value that is not finite is reported, and that nothing was written.
    fn rejects(&self, gpu: &Gpu, index: usize, value: f64) {
        let mut bad = self.input.clone();
        match index % 2 {
            0 => bad[index].re = T::of(value),
            _ => bad[index].im = T::of(value),
        }
        let (result, found) = self.run(gpu, &bad);
        let e = result.unwrap_err();
        assert!(e.kind() == ErrorKind::NotFinite && e.message().contains(&format!(" {index} ")), "{index}: {e}");
        assert!(found.iter().all(|z| z.re.wide() == POISON && z.im.wide() == POISON), "{:?} wrote", self.operation);
    }
}

/// Returns both transforms of random samples on the first GPU, on a stream of `owner` if it is given.
fn cases<T: Real>(
    dims: &[usize],
    samples: usize,
    coils: usize,
    basis: VoxelBasis,
    owner: Option<&Gpu>,
) -> Vec<Case<T>> {
    let mut random = Random::fresh();
    let k = random.trajectory::<T>(dims.len(), samples);
    let k = slices(&k);
    let voxels: usize = dims.iter().product();
    // SAFETY: the stream lives longer than the plans.
    let stream = owner.map(|gpu| unsafe { CudaStream::new(gpu.stream().handle().cast()) });
    let options = Options { device: Device::Cuda(vec![0]), stream, ..Options::default() };
    let geometry = Geometry { basis, ..Geometry::new(dims, &k).coils(coils) };
    let plan = || Plan::new(&geometry, &options).unwrap();
    let (adjoint, forward) = (plan(), plan());
    let (data, images) = (random.complexes(samples * coils), random.complexes(voxels * coils));
    vec![
        Case { plan: adjoint, operation: Operation::Adjoint, outputs: images.len(), input: data },
        Case { plan: forward, operation: Operation::Forward, outputs: samples * coils, input: images },
    ]
}

fn check<T: Real>(gpu: &Gpu, dims: &[usize], samples: usize, coils: usize, basis: VoxelBasis, owner: Option<&Gpu>) {
    let mut random = Random::fresh();
    for case in cases::<T>(dims, samples, coils, basis, owner) {
        let what = format!("{dims:?} {samples} x {coils} {basis:?} {:?} {}", case.operation, T::NAME);
        let mut expected = poisoned(case.outputs);
        match case.operation {
            Operation::Adjoint => case.plan.adjoint(&case.input, &mut expected).unwrap(),
            Operation::Forward => case.plan.forward(&case.input, &mut expected).unwrap(),
        }
        let is_right = |(result, found): (Result<()>, Vec<Complex<T>>)| {
            result.unwrap();
            assert!(found == expected, "{what}");
        };
        is_right(case.run(gpu, &case.input));
        let all = case.input.len();
        for (index, value) in [(0, f64::NAN), (all - 1, f64::INFINITY), (random.below(all), f64::NEG_INFINITY)] {
            case.rejects(gpu, index, value);
            is_right(case.run(gpu, &case.input));
        }
        // Large numbers with a result that is finite: more than the check lets pass at first.
        let scale = T::of(T::LARGEST / 1e9 / all.max(case.outputs) as f64);
        let large: Vec<_> = case.input.iter().map(|z| *z * scale).collect();
        let (result, found) = case.run(gpu, &large);
        result.unwrap();
        assert!(found.iter().all(|z| z.re.wide().is_finite() && z.im.wide().is_finite()), "{what}");
        if all == 1 {
            continue;
        }
        // The largest numbers: the sums overflow.
        let (result, found) = case.run(gpu, &vec![Complex::new(T::of(T::LARGEST), T::ZERO); all]);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFinite, "{what}");
        assert!(found.iter().all(|z| z.re.wide() == POISON && z.im.wide() == POISON), "{what}");
    }
}

fn gpu(what: &str) -> Option<Gpu> {
    if runtime::first_usable().is_none() {
        say(&format!("skipped: {what} (no GPU)"));
        return None;
    }
    // SAFETY: no stream is given.
    Some(unsafe { Gpu::new(0, None, 0) }.unwrap())
}

#[test]
fn input_that_is_not_finite_leaves_the_output() {
    let Some(gpu) = gpu("checks of input on a GPU") else { return };
    fn both(gpu: &Gpu, dims: &[usize], samples: usize, coils: usize) {
        for owner in [None, Some(gpu)] {
            check::<f32>(gpu, dims, samples, coils, VoxelBasis::Point, owner);
            check::<f64>(gpu, dims, samples, coils, VoxelBasis::Point, owner);
        }
    }
    both(&gpu, &[30, 26], 2500, 1);
    both(&gpu, &[1, 1], 1, 1);
    both(&gpu, &[12, 10, 14], 3000, 2);
    // Values that are sorted before they are spread, and interpolated values that are sorted afterwards.
    both(&gpu, &[64, 60], 150_000, 3);
    both(&gpu, &[200, 180], 4_000_000, 1);
    // Lines that do not fit in shared memory.
    both(&gpu, &[40_000, 3], 500, 1);
    // Coils in several batches.
    both(&gpu, &[1300, 1300], 3000, 5);
    for owner in [None, Some(&gpu)] {
        check::<f32>(&gpu, &[30, 26], 2500, 2, VoxelBasis::Box, owner);
    }
}

/// Threads share a plan. Some have input that is not finite, which must not disturb the others.
#[test]
fn threads_have_their_own_checks() {
    let Some(gpu) = gpu("checks of input from several threads") else { return };
    for owner in [None, Some(&gpu)] {
        for case in cases::<f32>(&[36, 44], 4000, 1, VoxelBasis::Point, owner) {
            let (result, alone) = case.run(&gpu, &case.input);
            result.unwrap();
            std::thread::scope(|scope| {
                for thread in 0..24 {
                    let (case, alone, gpu) = (&case, &alone, &gpu);
                    scope.spawn(move || {
                        for i in 0..40 {
                            if thread % 3 == 0 {
                                case.rejects(gpu, 10 * i + thread, f64::NAN);
                            } else {
                                let (result, found) = case.run(gpu, &case.input);
                                result.unwrap();
                                assert!(found == *alone, "{:?}", case.operation);
                            }
                        }
                    });
                }
            });
        }
    }
}

/// Calls with the same arrays, which become graphs after some calls, and other numbers in each call.
#[test]
fn repeated_calls_give_what_first_calls_give() {
    let Some(gpu) = gpu("repeated calls on a GPU") else { return };
    fn check<T: Real>(gpu: &Gpu, dims: &[usize], samples: usize, coils: usize, owner: Option<&Gpu>) {
        let mut random = Random::fresh();
        for case in cases::<T>(dims, samples, coils, VoxelBasis::Point, owner) {
            let what = format!("{dims:?} {samples} x {coils} {:?} {}", case.operation, T::NAME);
            let inputs = [case.input.clone(), random.complexes(case.input.len())];
            let expected = inputs.each_ref().map(|input| {
                let (result, found) = case.run(gpu, input);
                result.unwrap();
                found
            });
            assert!(expected[0] != expected[1], "{what}");
            let poison = vec![Complex::new(T::of(POISON), T::of(POISON)); case.outputs];
            let mut arrays = [&case.input, &poison].map(|values| gpu.upload(values, "an array").unwrap());
            for call in 0..16 {
                let mut input = inputs[call % 2].clone();
                let is_bad = call % 5 == 4;
                if is_bad {
                    input[random.below(case.input.len())].re = T::of(f64::NAN);
                }
                for (array, values) in arrays.iter_mut().zip([&input, &poison]) {
                    gpu.copy(gpu.upload(values, "values").unwrap().view(), array.view_mut());
                    gpu.synchronize().unwrap();
                }
                let result = case.call(&arrays[0], &arrays[1]);
                let mut found = poisoned(case.outputs);
                gpu.download(arrays[1].view(), &mut found).unwrap();
                assert_eq!(result.is_err(), is_bad, "{what}, call {call}");
                assert!(found == if is_bad { &poison } else { &expected[call % 2] }[..], "{what}, call {call}");
            }
        }
    }
    for owner in [None, Some(&gpu)] {
        check::<f32>(&gpu, &[30, 26], 2500, 1, owner);
        check::<f32>(&gpu, &[64, 60], 150_000, 3, owner);
        check::<f32>(&gpu, &[12, 10, 14], 3000, 2, owner);
        check::<f64>(&gpu, &[31, 25], 1800, 2, owner);
    }
}
