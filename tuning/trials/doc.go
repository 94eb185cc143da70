// Package trials sums up a job's events: for people in displays and closing tables, for scripts in a log. It knows the
// wire, and no terminal. Begin with Tally.
package trials
