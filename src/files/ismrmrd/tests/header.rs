//! The XML header.

use super::*;
use crate::hdf5::text_type;

#[test]
fn headers() {
    let good = header([8, 6, 1], TrajectoryKind::GoldenAngle);
    let xml = good.to_xml();
    assert_eq!(Header::from_xml(&xml).unwrap(), good);
    let prefixed = xml.replace("<", "<m:").replace("<m:/", "</m:").replace("<m:?", "<?").replace("xmlns=", "xmlns:m=");
    assert_eq!(Header::from_xml(&prefixed).unwrap(), good);
    assert!(
        Header::from_xml(&xml.replace("goldenangle", "rosette")).unwrap().encodings[0].trajectory == Default::default()
    );
    for (from, to, part) in [
        ("<x>8</x>", "<x>0</x>", "along x is 0"),
        ("<y>6</y>", "<y>-6</y>", "<y> of <matrixSize> cannot be \"-6\""),
        ("<y>6</y>", "<y>70000</y>", "<y> of <matrixSize> cannot be \"70000\""),
        ("<z>1</z>", "", "no <z> in <matrixSize>"),
        ("<z>2.5</z>", "<z>NaN</z>", "fieldOfView_mm"),
        ("</ismrmrdHeader>", "", "malformed"),
        ("ismrmrdHeader", "html", "is a <html>"),
        ("<trajectory>goldenangle</trajectory>", "", "no <trajectory>"),
        ("encoding>", "noencoding>", "no <encoding>"),
        ("reconSpace", "space", "no <reconSpace>"),
    ] {
        let e = Header::from_xml(&xml.replace(from, to)).unwrap_err();
        assert!(e.kind() == ErrorKind::BadFile && e.message().contains(part), "{from} -> {to}: {e}");
    }
    let bomb = "<!DOCTYPE a [<!ENTITY b \"x\">]><ismrmrdHeader>&b;</ismrmrdHeader>";
    assert_eq!(Header::from_xml(bomb).unwrap_err().kind(), ErrorKind::BadFile);
    assert!(Header::from_xml("").is_err());
}

#[test]
fn every_element_is_written_and_read() {
    let mut all = header([8, 6, 1], TrajectoryKind::Spiral);
    let limits = |maximum| Some(EncodingLimits { minimum: 1, maximum, center: 2 });
    let parameter = |name: &str, value, is_integer| UserParameter { name: name.to_owned(), value, is_integer };
    let encoding = &mut all.encodings[0];
    encoding.steps = [limits(5), limits(6)];
    (encoding.readout, encoding.averages, encoding.slices) = (limits(7), limits(8), limits(9));
    encoding.parallel = Some(ParallelImaging { acceleration: [2, 3], calibration: Some(CalibrationMode::Separate) });
    encoding.description = Some(TrajectoryDescription {
        identifier: "HargreavesVDS2000".to_owned(),
        numbers: vec![parameter("interleaves", 16.0, true), parameter("krmax_per_cm", 3.0, false)],
    });
    all.noise_bandwidth = Some(0.79);
    all.repetition_times_ms = vec![250.0];
    (all.vendor, all.model) = (Some("A & B <C>".to_owned()), Some("1.5T".to_owned()));
    all.patient_position = Some("FFP".to_owned());
    all.dependencies = vec![("Noise".to_owned(), "45_6".to_owned())];
    all.user_parameters = vec![parameter("n", 3.0, true), parameter("x", -1.5e-3, false)];
    assert_eq!(Header::from_xml(&all.to_xml()).unwrap(), all);
    assert_eq!(all.encodings[0].description.as_ref().unwrap().number("krmax_per_cm"), Some(3.0));
    let long = format!("{}{}", all.to_xml(), " ".repeat(MAX_XML));
    assert_eq!(Header::from_xml(&long).unwrap_err().kind(), ErrorKind::BadFile);
}

#[test]
fn header_texts_in_the_file() {
    let dir = TempDir::new();
    let path = dir.path("a.h5");
    let attempt = |xml: Option<&str>| {
        write_acquisitions(&path, xml, 1, &mut std::iter::once(acquisition(4, 2, 1))).unwrap();
        read_dataset(&path)
    };
    let good = header([8, 8, 1], TrajectoryKind::Spiral).to_xml();
    for (xml, part) in [(None, "no dataset/xml"), (Some(""), "header is empty"), (Some("<a"), "malformed")] {
        let e = attempt(xml).unwrap_err();
        assert!(e.kind() == ErrorKind::BadFile && e.message().contains(part), "{e}");
    }
    // The ISMRMRD library reads no other type of text.
    attempt(Some(&good)).unwrap();
    let kind = hdf5_pure::File::open(&path).unwrap().dataset("dataset/xml").unwrap().datatype().unwrap();
    assert_eq!(kind, text_type());
    // Text of fixed length, which some other programs write.
    let table = |group: &mut GroupBuilder| add_table(group, &[0], vec![]);
    for length in [good.len(), good.len() + 1, 4096] {
        let text = |group: &mut GroupBuilder| {
            table(group);
            let kind = Datatype::String {
                size: length as u32,
                padding: hdf5_pure::StringPadding::NullPad,
                charset: hdf5_pure::CharacterSet::Utf8,
            };
            let mut bytes = good.clone().into_bytes();
            bytes.resize(length, 0);
            group.create_dataset("xml").with_raw_data(kind, bytes, 1);
        };
        write_group(&path, &text);
        assert!(read_dataset(&path).unwrap_err().message().contains("dataset/data has no acquisitions"));
    }
    write_group(&path, &|group| {
        table(group);
        group.create_dataset("xml").with_f32_data(&[1.0]);
    });
    assert!(read_dataset(&path).unwrap_err().message().contains("dataset/xml is not a text"));
}
