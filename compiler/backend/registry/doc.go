// Package registry lists the backends that the program has. One that is added here is there for all: targets may name
// it, and whatever is done with such a target is done by it.
package registry
