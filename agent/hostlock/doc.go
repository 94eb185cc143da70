// Package hostlock keeps computing and timing apart on a host. Runners hold the lock alone while they time; builders
// and tuners share it while they compute. It works between processes and within one. Begin with Lock.
package hostlock
