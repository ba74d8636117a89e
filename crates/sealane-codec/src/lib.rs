//! Step 2 of a message's way: value to bytes and back.
