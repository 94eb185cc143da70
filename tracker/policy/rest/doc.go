// Package rest judges agents by how their last leases ended: one on which everything fails is itself to blame, and is
// given nothing for a while, longer each time. Where all that failed is of one job it may be the job's fault as well:
// then the rest is from that job, and others tell. Clocks are told to it. Begin with Record.
package rest
