// Package registry lists the stores that the program has. One that is added here can be chosen by name wherever a
// store is opened.
package registry
