// Package trials sums up a job's events: for people in progress displays and closing tables, for scripts in a log.
package trials
