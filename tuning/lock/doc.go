// Package lock keeps the schedule of each task of a model in a file, so that it is compiled the same way again, here
// and elsewhere, whatever is recorded meanwhile. Begin with File.
package lock
