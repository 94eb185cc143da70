// Package lower makes programs of schedules: it infers which part of each stage is needed where, and builds the loops.
// It knows schedules and ir, and no target. Begin with Schedule.
package lower
