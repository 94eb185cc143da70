// Package policy has the tracker's policies as functions and data without a clock or a store: fair queues, quotas,
// back-off and cooldown after failures, drift of devices, and retention of ended jobs.
package policy
