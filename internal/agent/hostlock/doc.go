// Package hostlock keeps computing and timing apart on a host. Runners hold the lock alone while they time; builders
// and tuners share it while they compute. What is timed on a device of its own, such as a card, shares it too, and
// holds that device's lock alone. It works between processes and within one. Begin with Lock.
package hostlock
