// Package progress displays the progress of a job: live on a terminal, or as occasional lines elsewhere. It
// depends on tallies of trials, but not on a tracker. Start with Display.
package progress
