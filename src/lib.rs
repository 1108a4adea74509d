//! tenon: a declarative service-unit runner for Linux.
//!
//! One binary, one thread, one loop. Everything that decides is pure; everything that touches Linux is thin.
//! The modules below stand in the order in which data flows through them:
//!
//! ```text
//!  units/*.toml ────┐
//!  profiles/*.toml  ├ text ─▶ config ─▶ trees with spans ─▶ resolve ─▶ UnitGraph   (every value knows its origin)
//!  tenon.toml, CLI ─┘              │                           │   + Facts of this machine
//!                                  └──── Vec<Diagnostic> ◀─────┤
//!                                                              ▼
//!                                     plan ─▶ Plan: per unit { policy, exec }, order, files, ports, needs
//!                                                              │
//!         ┌──────────────────────── supervisor (pure) ─────────▼───────────────┐
//!  Event ─▶  step(now, event, &mut actions)    unit machines · jobs · restart   ├─▶ Action
//!         └──────────▲───────────────────────────────────────────────────┬─────┘
//!                    │ translate                                          │ execute
//!         ┌──────────┴────────────────── linux (shell) ──────────────────▼─────┐
//!         │ epoll · signals · one deadline · children · notify · control · logs │
//!         └─────────────────────────────────────────────────────────────────────┘
//!                    ▲ control protocol
//!                   cli
//! ```
//!
//! What each module may import is a table in `docs/ARCHITECTURE.md`, enforced by `tests/tidy.rs`.

pub mod cli;
pub mod config;
pub mod control;
pub mod diagnostic;
pub mod export;
pub mod expr;
pub mod facts;
pub mod linux;
pub mod load;
pub mod plan;
pub mod resolve;
pub mod sim;
pub mod supervisor;
