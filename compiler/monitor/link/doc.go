// Package link speaks with the monitor of a board: frames over a serial line, or over what stands in for one. What
// arrives is not trusted: lengths are bounded, checksums checked, and whatever is no frame is skipped. Begin with
// Client.
package link
