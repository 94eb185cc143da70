// Package quota computes an owner's share of a farm: its weight, and limits on its jobs, trials, artifacts and stored
// bytes. It knows no jobs; callers pass in the owner's usage. Start with Share.
package quota
