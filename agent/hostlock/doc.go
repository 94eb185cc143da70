// Package hostlock keeps what computes on a host apart from what is timed there. Runners hold the lock alone while
// they time; builders and tuners share it while they compute. It works between processes and within one.
package hostlock
