// Package backendtest provides helpers for tests that need a backend.
package backendtest
