// Package rest judges agents by how their last leases ended: one on which everything fails is itself to blame, and is
// given nothing for a while, longer each time. Where all that failed is of one job, or was built by one of several
// builders, that may be at fault as well: then the rest is from that, and other work tells. Clocks are told to it.
// Begin with Record.
package rest
