//! Codes of `.mat` files of level 5.

/// The type of an element's data in the file.
pub mod element {
    pub const INT8: u32 = 1;
    pub const UINT8: u32 = 2;
    pub const INT16: u32 = 3;
    pub const UINT16: u32 = 4;
    pub const INT32: u32 = 5;
    pub const UINT32: u32 = 6;
    pub const SINGLE: u32 = 7;
    pub const DOUBLE: u32 = 9;
    pub const INT64: u32 = 12;
    pub const UINT64: u32 = 13;
    pub const MATRIX: u32 = 14;
    pub const COMPRESSED: u32 = 15;
}

/// The class of an array in MATLAB.
pub mod class {
    pub const DOUBLE: u8 = 6;
    pub const SINGLE: u8 = 7;
    pub const UINT64: u8 = 15;
    /// The names of classes that are not numbers, which have the codes 1 to 5.
    pub const OTHERS: [&str; 5] = ["cell", "struct", "object", "char", "sparse"];
}

/// The bit of the array flags that marks complex numbers.
pub const COMPLEX: u32 = 1 << 11;
/// The length of the file's header in bytes.
pub const HEADER: usize = 128;
