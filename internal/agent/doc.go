// Package agent is what tuners, builders and runners share: joining a tracker, keeping leases alive, surviving
// restarts of the tracker, and draining. It knows the wire; what to do with a lease is up to a Handler. Begin with
// Run.
package agent
