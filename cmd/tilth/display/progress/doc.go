// Package progress shows how a job is doing: live on a terminal, as sparse lines elsewhere. It knows tallies of
// trials, and no tracker. Begin with Display.
package progress
