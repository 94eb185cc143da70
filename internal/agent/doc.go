// Package agent implements the common part of tuners, builders and runners: joining a tracker, renewing
// leases, surviving restarts of the tracker, and draining. It handles the wire protocol; a Handler does the
// leased work. Start with Run.
package agent
