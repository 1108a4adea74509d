//! Who waits for whom: policies in, orders out.
