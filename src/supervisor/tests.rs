//! Events in, actions and states out.
