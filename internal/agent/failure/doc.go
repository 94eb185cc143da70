// Package failure classifies why an agent's work failed, in the error classes of the wire.
package failure
