// Package lower converts schedules to programs: it infers the region of each stage that is needed at each point, and
// builds the loops. It depends on schedules and ir, and on no target. Start with Schedule.
package lower
