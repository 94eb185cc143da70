// Package hostlock keeps computing and timing apart on a host. Runners hold the lock exclusively while timing;
// builders and tuners share it while computing. Timing on a separate device, such as a card, also shares it, and holds
// the lock of that device exclusively. It works between and within processes. Start with Lock.
package hostlock
