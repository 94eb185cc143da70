// Package tilthv1 is the wire protocol of the tracker, generated from the definitions beside it.
package tilthv1
