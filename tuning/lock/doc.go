// Package lock stores the schedule of each task of a model in a file, which makes compilations reproducible
// regardless of later records. Start with File.
package lock
