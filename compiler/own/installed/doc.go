// Package installed asks the shared libraries of this machine which versions they are.
package installed
