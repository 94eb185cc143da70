// Package registry lists the backends of the program. A backend that is added here is known everywhere: targets may
// name it.
package registry
