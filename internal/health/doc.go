// Package health serves the liveness and readiness of a process over HTTP.
package health
