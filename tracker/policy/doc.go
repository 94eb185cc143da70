// Package policy implements the tracker's policies as pure functions: fair queues, quotas, back-off and cooldown after
// failures, drift of devices, and retention of ended jobs. Callers pass the time.
package policy
