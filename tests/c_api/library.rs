//! Texts, names of statuses, words of options, uses of acquisitions, and the log.

use crate::support::*;

#[test]
fn version_and_status_texts_exist() {
    // SAFETY: static C strings.
    unsafe {
        assert_eq!(CStr::from_ptr(recon_version()).to_str().unwrap(), env!("CARGO_PKG_VERSION"));
        assert_eq!(CStr::from_ptr(recon_status_string(RECON_CANCELLED as i32)).to_str().unwrap(), "cancelled");
        assert_eq!(CStr::from_ptr(recon_status_string(-7)).to_str().unwrap(), "unknown status");
    }
    std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
}

/// Every status of the header has a text, and the name of its constant. Words and numbers of options correspond.
#[test]
fn statuses_have_names_and_options_have_words() {
    let header = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/include/recon.h")).unwrap();
    let end = header.find("} recon_status;").unwrap();
    let rows = header[..end].rsplit('{').next().unwrap().lines();
    let rows = rows.filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "));
    let statuses: Vec<(&str, i32)> =
        rows.filter(|(c, _)| c.starts_with("RECON_")).map(|(c, n)| (c, n.parse().unwrap())).collect();
    assert!(statuses.len() > 20, "{statuses:?}");
    // SAFETY: static C strings.
    let text = |string: *const c_char| unsafe { CStr::from_ptr(string) }.to_str().unwrap();
    for (constant, number) in &statuses {
        let name = text(recon_status_name(*number));
        let mut upper = String::new();
        for (i, c) in name.chars().enumerate() {
            if c.is_uppercase() && i > 0 && name != "IO" {
                upper.push('_');
            }
            upper.extend(c.to_uppercase());
        }
        assert_eq!(format!("RECON_{upper}"), *constant);
        assert_ne!(text(recon_status_string(*number)), "unknown status", "{constant}");
    }
    assert_eq!(text(recon_status_name(statuses.len() as i32)), "UnknownStatus");

    let mut value = 77;
    let mut choice = |option: &CStr, word: &CStr| {
        // SAFETY: C strings and a number.
        (unsafe { recon_choice(option.as_ptr(), word.as_ptr(), &mut value) }, value)
    };
    assert_eq!(choice(c"window", c"gaussian"), (RECON_OK, 1));
    fails(choice(c"window", c"Gaussian").0, RECON_UNKNOWN_VALUE, &["window is 'Gaussian'", "'gaussian' or 'bilinear'"]);
    fails(choice(c"windows", c"gaussian").0, RECON_UNKNOWN_VALUE, &["no option windows", "precision, basis"]);
    assert_eq!(choice(c"window", c"bilinear"), (RECON_OK, 2));
    // SAFETY: C strings and a number, or null.
    unsafe {
        let (word, mut number) = (c"gaussian".as_ptr(), 0);
        fails(recon_choice(null(), word, &mut number), RECON_NULL_POINTER, &["option"]);
        fails(recon_choice(word, null(), &mut number), RECON_NULL_POINTER, &["word"]);
        fails(recon_choice(word, word, null_mut()), RECON_NULL_POINTER, &["value"]);
        assert_eq!(text(recon_choice_word(c"combine".as_ptr(), 1)), "adaptive");
        assert_eq!(text(recon_choice_word(c"combine".as_ptr(), 2)), "");
        assert_eq!(text(recon_choice_word(null(), 0)), "");
    }
}

/// Uses of acquisitions, by ISMRMRD's numbers of flags, which are counted from 1.
#[test]
fn acquisitions_have_uses() {
    let [image, calibration, noise] = [1, 2, 4];
    let cases: [(&[u32], u32, &str); 12] = [
        (&[], image, "image"),
        (&[1, 7, 22, 25, 64], image, "image"),
        (&[20], calibration, "calibration"),
        (&[20, 22], calibration, "calibration"),
        (&[21], image + calibration, "image and calibration"),
        (&[20, 21], image + calibration, "image and calibration"),
        (&[19], noise, "noise"),
        (&[19, 20], noise, "noise"),
        (&[23], 0, "navigation"),
        (&[20, 24], 0, "phase correction"),
        (&[28], 0, "real-time feedback"),
        (&[31], 0, "phase stabilisation"),
    ];
    for (flags, purposes, name) in cases {
        let bits: u64 = flags.iter().map(|flag| 1u64 << (flag - 1)).sum();
        let mut found = 77;
        // SAFETY: a number to write; a static C string.
        unsafe {
            ok(recon_acquisition_use(bits, &mut found));
            assert_eq!(CStr::from_ptr(recon_acquisition_use_name(bits)).to_str().unwrap(), name);
        }
        assert_eq!(found, purposes, "{flags:?}");
    }
    assert_eq!(recon_acquisition_purpose::RECON_PURPOSE_NOISE as u32, noise);
    // SAFETY: the test passes null.
    fails(unsafe { recon_acquisition_use(0, null_mut()) }, RECON_NULL_POINTER, &["use"]);
}

/// A log callback with RECON_LOG_ERROR receives the text of recon_last_error_message for each failed call, and the plan
/// of the call.
#[test]
fn failures_are_logged_as_errors() {
    /// Level and text of a line, and the address of its plan.
    type Line = (u32, String, usize);
    static HEARD: Mutex<Vec<(ThreadId, Line)>> = Mutex::new(Vec::new());
    unsafe extern "C" fn hear(message: *const recon_log_message, _: *mut c_void) {
        // SAFETY: a message with a C string, which are valid during the call.
        let (message, text) = unsafe { (*message, CStr::from_ptr((*message).text)) };
        let line = (message.level, text.to_str().unwrap().to_owned(), message.plan as usize);
        HEARD.lock().unwrap().push((std::thread::current().id(), line));
    }
    let error = recon_log_level::RECON_LOG_ERROR as u32;
    // SAFETY: the callback is a function of this program.
    ok(unsafe { recon_set_log_callback(Some(hear), null_mut(), error) });
    // Threads with a plan each: every error has the plan of its call.
    let s = Scene::<f32>::new();
    std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(|| check_errors_of_plans(&s, error)))));
    // SAFETY: this removes the callback.
    ok(unsafe { recon_set_log_callback(None, null_mut(), 0) });

    /// Makes calls that fail, with and without a plan, and checks the lines that this thread receives.
    fn check_errors_of_plans(s: &Scene<f32>, error: u32) {
        let plans = [0, 1].map(|_| Handle::new(&s.geometry(), &options(|_| {})));
        let mut wanted = Vec::new();
        let mut add = |status: recon_status, plan: *const recon_plan| {
            fails(status, RECON_NULL_POINTER, &[]);
            wanted.push((error, message(), plan as usize));
        };
        let mut kind = 0;
        // SAFETY: null is refused, and the plans are alive.
        unsafe {
            add(recon_forward(null(), null(), null_mut()), null());
            add(recon_forward(plans[0].0, null(), null_mut()), plans[0].0);
            add(recon_plan_set_weights(plans[1].0, null(), SAMPLES as u64), plans[1].0);
            add(recon_plan_create(null(), null(), null_mut()), null());
            add(recon_plan_load_q(plans[0].0, null()), plans[0].0);
            add(recon_last_warning(0, &mut kind, null_mut()), null());
            add(recon_cg(plans[1].0, null(), null_mut(), null(), null_mut()), plans[1].0);
        }
        let failed_within = fail_within_cg(s, plans[0].0);
        wanted.push((error, failed_within, 0));
        wanted.push((error, message(), plans[0].0 as usize));
        let here = std::thread::current().id();
        let heard = HEARD.lock().unwrap();
        let own: Vec<_> = heard.iter().filter(|(thread, _)| *thread == here).map(|(_, line)| line.clone()).collect();
        assert_eq!(own, wanted);
    }
}

/// Runs conjugate gradients with a callback in which a call without a plan fails, and which then cancels. Returns the
/// message of the call in the callback.
fn fail_within_cg(s: &Scene<f32>, plan: *mut recon_plan) -> String {
    unsafe extern "C" fn fail_and_cancel(_: *const recon_progress, user_data: *mut c_void) -> c_int {
        // SAFETY: null is refused, and the address is that of a text of this test.
        unsafe {
            fails(recon_plan_create(null(), null(), null_mut()), RECON_NULL_POINTER, &[]);
            *user_data.cast::<String>() = message();
        }
        1
    }
    let mut text = String::new();
    let mut image = vec![Complex::new(0.0f32, 0.0); VOXELS * COILS * FRAMES];
    let options = recon_cg_options {
        progress: Some(fail_and_cancel),
        user_data: (&raw mut text).cast(),
        ..init(recon_cg_options_init)
    };
    // SAFETY: the plan is alive, and the arrays have its lengths.
    let status = unsafe { recon_cg(plan, s.kspace.as_ptr().cast(), image.as_mut_ptr().cast(), &options, null_mut()) };
    fails(status, RECON_CANCELLED, &[]);
    text
}
