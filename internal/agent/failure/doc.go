// Package failure says why an agent did not do its work, and whose fault that is, in the classes of the wire.
package failure
