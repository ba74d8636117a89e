//! Step 7 of a message's way: message to disk and back.
