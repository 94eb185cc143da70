// Package agent is what tuners, builders and runners share: joining a tracker, keeping leases alive, surviving its
// restarts, and draining. What to do with a lease is a Handler's.
package agent
