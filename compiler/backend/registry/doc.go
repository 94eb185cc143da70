// Package registry lists the backends of the program. Targets may name any backend in the list.
package registry
