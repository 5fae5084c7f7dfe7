//! UIDs of studies, series and images. They are UUIDs of version 5 (RFC 9562) under the root 2.25, computed from the
//! contents: the same call writes the same bits, and different images never share a UID.

use recon::scan::{Dataset, Scan};
use uuid::Uuid;

/// The namespace of all UIDs of recon, a random number.
const NAMESPACE: Uuid = Uuid::from_u128(0xc8d2_a5d0_83b4_4904_b4c0_cfed_3d2f_6140);

/// The UID of recon as the program that wrote a file.
pub const IMPLEMENTATION_UID: &str = "2.25.296417967002473644606147525151940752536";

/// Length of the parts in bytes in which data are added.
const PART: usize = 1 << 16;

/// The identity of contents that are added one after the other.
#[derive(Debug, Clone, Copy)]
pub struct ContentIdentity(Uuid);

impl ContentIdentity {
    /// Returns the identity of no contents.
    pub fn new() -> ContentIdentity {
        ContentIdentity(NAMESPACE)
    }

    /// Returns an identity that continues `uuid`.
    pub fn from_uuid(uuid: Uuid) -> ContentIdentity {
        ContentIdentity(uuid)
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0 = Uuid::new_v5(&self.0, &(bytes.len() as u64).to_le_bytes());
        for part in bytes.chunks(PART) {
            self.0 = Uuid::new_v5(&self.0, part);
        }
    }

    /// Adds values. `append` appends the bytes of one value.
    pub fn add_values<T>(&mut self, values: &[T], append: impl Fn(&T, &mut Vec<u8>)) {
        let mut bytes = Vec::with_capacity(PART);
        for part in values.chunks(PART / 16) {
            bytes.clear();
            part.iter().for_each(|value| append(value, &mut bytes));
            self.add(&bytes);
        }
    }

    /// Adds the text that describes a value for debugging, which contains all of its numbers.
    pub fn add_debug(&mut self, value: &impl std::fmt::Debug) {
        self.add(format!("{value:?}").as_bytes());
    }

    /// Returns this identity with a text added.
    pub fn with(mut self, text: &str) -> ContentIdentity {
        self.add(text.as_bytes());
        self
    }

    /// Returns the identity as a UUID.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// Returns the identity as a UID of DICOM.
    pub fn uid(self) -> String {
        format!("2.25.{}", self.0.as_u128())
    }
}

/// Returns the identity of raw data: of header, samples, positions and times.
pub fn identify_dataset(dataset: &Dataset) -> Uuid {
    let mut identity = ContentIdentity::new();
    identity.add_debug(&dataset.header);
    for Scan { index, placement, data, .. } in &dataset.scans {
        identity.add_debug(&(index, placement));
        identity.add_values(data, |z, bytes| {
            bytes.extend(z.re.to_le_bytes());
            bytes.extend(z.im.to_le_bytes());
        });
    }
    identity.uuid()
}

/// Returns whether a text is a UID.
pub fn is_valid(uid: &str) -> bool {
    let is_number = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part.len() == 1 || !part.starts_with('0'))
    };
    uid.len() <= 64 && uid.contains('.') && uid.split('.').all(is_number)
}
