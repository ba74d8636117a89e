//! The library that users import.
