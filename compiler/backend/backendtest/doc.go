// Package backendtest is what tests need of backends.
package backendtest
