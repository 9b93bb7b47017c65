//! States of rows that thread groups have parts of: where they meet, once a round of folds.

use super::layouts::layout;
use crate::vocabulary::WARP;
use axe_passes::PassResult;
use axe_passes::build::{Code, layout_error};
use axe_passes::fuse::rounds::Round;
use axe_passes::ir::Val;

/// Where the states of rounds of folds meet, of so many warps.
#[derive(Debug)]
pub(super) struct States<'c> {
    warps: i64,
    rounds: Vec<Val<'c>>,
}

impl<'c> States<'c> {
    /// Makes room for them, once or in a loop.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn new(
        code: Code<'c>,
        (warps, in_loop): (i64, bool),
        rounds: &[Round<'c>],
    ) -> PassResult<'c, Self> {
        let room = |round: &Round<'c>| {
            let elements: Vec<_> = round.elements().collect();
            code.all_gather_create((warps, &elements), in_loop)
        };
        Ok(Self {
            warps,
            rounds: rounds.iter().map(room).collect::<PassResult<'c, _>>()?,
        })
    }

    /// Each warp's state reaches all, whose lanes have some each: all of them combine them in the same order.
    ///
    /// # Errors
    /// When an operation cannot be built.
    pub(super) fn gather(
        &self,
        code: Code<'c>,
        round: usize,
        states: &[Val<'c>],
    ) -> PassResult<'c, Vec<Val<'c>>> {
        let failed = |error| layout_error(code.builder.location, error);
        let lanes = self.warps.min(WARP);
        let layout = layout(
            &[(self.warps / lanes, 1, "reg"), (lanes, 1, "lane")],
            &[(WARP / lanes, lanes, "lane")],
        );
        let layout = layout.map_err(failed)?;
        let through = self.rounds.get(round).copied();
        let through =
            through.ok_or_else(|| layout_error(code.builder.location, "an unknown round"))?;
        code.all_gather(states, through, |element| {
            code.fragment(&[1, self.warps], element, &layout)
        })
    }
}
