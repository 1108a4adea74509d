//! The table of states and events, cell by cell.
