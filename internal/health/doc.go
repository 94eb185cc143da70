// Package health serves the health of a process over HTTP: whether it is alive, and whether it is ready.
package health
