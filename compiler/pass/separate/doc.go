// Package separate is the pass that keeps the steps of large unrolled tiles apart.
package separate
