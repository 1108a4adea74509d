//! Ends in, delays and giving up out.
