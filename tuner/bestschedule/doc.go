// Package bestschedule chooses the schedules of a compilation: the best records, or else predictions of a cost
// model, or else default schedules, within memory limits. It depends on the compiler and the searches'
// knowledge; records come from a Lookup. Start with Choose.
package bestschedule
