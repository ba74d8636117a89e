//! What each step costs.
