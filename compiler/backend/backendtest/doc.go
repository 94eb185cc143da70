// Package backendtest helps tests that need a backend.
package backendtest
