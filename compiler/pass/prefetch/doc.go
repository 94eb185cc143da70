// Package prefetch is the pass that fetches lines of memory before they are read or written.
package prefetch
